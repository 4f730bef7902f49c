# SPDX-License-Identifier: BSD-3-Clause
"""The code tour of CONTRIBUTING.md leads where it says: each stop is a file that exists and defines that function. So does
the table of what is not where one looks first."""
import re

import tree

CELL = re.compile(r"^\|.*?`((?:src|tools)/[\w/.-]+\.c)` `(\w+)`", re.M)
STOP = re.compile(r"^\d+\. `((?:src|tools)/[\w/.-]+)`\s+`(\w+)`:", re.M)


def main():
    page = "CONTRIBUTING.md"
    before, _, after = tree.read(page).partition("## A code tour")
    text = after.partition("\n## ")[0]
    offenders = [] if text else [f"{page} has no code tour"]
    stops = STOP.findall(text) + CELL.findall(before)
    offenders += [f"{page}: this stop names no file and function: {line}" for line in re.findall(r"^\d+\. .*", text, re.M)
                  if not STOP.match(line + (":" if line.endswith("`") else ""))]
    for path, function in stops:
        if not (tree.ROOT / path).exists():
            offenders.append(f"{page}: there is no {path}")
        elif not re.search(rf"^(?!.*;$)[A-Za-z_].*\b{function}\(", tree.without_comments(tree.read(path)), re.M):
            offenders.append(f"{page}: {path} does not define {function}")
    tree.finish(offenders, len(stops))


main()
