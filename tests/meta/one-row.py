# SPDX-License-Identifier: BSD-3-Clause
"""What is extensible by one file and one row stays so: the identifier of a source, metric, exporter or operator occurs
in its own file and in the table, and nowhere else."""
import re

import tree

# folder, file names of the things, file of the table, struct of a thing
KINDS = (
    ("src/sampling", r"source-(?!.*-sig)[\w-]+\.c$", "sources.c", "sample_source"),
    ("src/analysis", r"metric-[\w-]+\.c$", "metrics.c", "metric"),
    ("src/export", r"export-[\w-]+\.c$", "exporters.c", "exporter"),
    ("src/analysis", r"op-[\w-]+\.c$", "ops.c", "query_op"),
)


def check_kind(folder, pattern, table, struct):
    """(offenders, number of things found)."""
    texts = {p: tree.without_comments(tree.read(p)) for p in tree.sources(".c")}
    offenders, n_found = [], 0
    for path, text in texts.items():
        if str(path.parent) != folder or not re.match(pattern, path.name):
            continue
        names = re.findall(rf"^(?:extern )?const struct {struct}\w* (\w+)(?:\[\])?\s*=", text, re.M)
        if not names:
            offenders.append(f"{path} defines no const struct {struct}")
        for name in names:
            n_found += 1
            users = {str(p) for p, t in texts.items() if re.search(rf"\b{name}\b", t)}
            if users != {str(path), f"{folder}/{table}"}:
                offenders.append(f"{name} occurs in {', '.join(sorted(users))}, not just in {path} and {table}")
    return offenders, n_found


def main():
    offenders, checked = [], 0
    for kind in KINDS:
        found, n_found = check_kind(*kind)
        if not n_found and not found:
            print(f"SKIP (part): no {kind[3]} in {kind[0]}")
        offenders += found
        checked += n_found
    tree.finish(offenders, checked)


main()
