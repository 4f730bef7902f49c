# SPDX-License-Identifier: BSD-3-Clause
"""Each statement of statements.tsv is held by tests that exist: a function of a file that is in a list of tests, called there."""
import pathlib
import re

import tree

TABLE = "tests/meta/statements.tsv"
NUMBERS = [str(i + 1) for i in range(53)] + [f"i{i + 1}" for i in range(23)] + [f"v{i + 1}" for i in range(11)]  # statements, items of the time line, rows of the viewer


def why_not(test, lists):
    """What is wrong with a test, "FILE FUNCTION"; None: nothing."""
    path, _, function = test.partition(" ")
    if pathlib.PurePosixPath(path) not in tree.files():
        return f"there is no {path}"
    if path.removesuffix(".c") not in lists and path not in lists:
        return f"{path} is in no list of tests"
    text = tree.read(path)
    if not re.search(rf"^(?:def|static void) {re.escape(function)}\(", text, re.M):
        return f"{path} has no {function}"
    if len(re.findall(rf"\b{re.escape(function)}\b", text)) < 2:
        return f"{path} does not call {function}"
    return None


def main():
    lists = "\n".join(tree.read(path).replace("%D%", str(path.parent)) for path in tree.files() if path.name == "Makefile.am")
    rows = [line.split("\t") for line in tree.read(TABLE).splitlines() if not line.startswith("#")]
    offenders = [] if [row[0] for row in rows] == NUMBERS else [f"{TABLE}: rows are numbered {[row[0] for row in rows]}"]
    for number, _, tests in rows:
        offenders += [f"{TABLE}: {number}: {why}" for why in (why_not(test, lists) for test in tests.split("; ")) if why]
    tree.finish(offenders, len(rows))


main()
