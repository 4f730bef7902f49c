# SPDX-License-Identifier: BSD-3-Clause
"""The code tour of CONTRIBUTING.md leads where it says: each stop is a file that exists and defines that function."""
import re

import tree

STOP = re.compile(r"^\d+\. `((?:src|tools)/[\w/.-]+)`\s+`(\w+)`:", re.M)


def main():
    page = "CONTRIBUTING.md"
    text = tree.read(page).partition("## A code tour")[2].partition("\n## ")[0]
    offenders = [] if text else [f"{page} has no code tour"]
    stops = STOP.findall(text)
    offenders += [f"{page}: this stop names no file and function: {line}" for line in re.findall(r"^\d+\. .*", text, re.M)
                  if not STOP.match(line + (":" if line.endswith("`") else ""))]
    for path, function in stops:
        if not (tree.ROOT / path).exists():
            offenders.append(f"{page}: there is no {path}")
        elif not re.search(rf"^(?!.*;$)[A-Za-z_].*\b{function}\(", tree.without_comments(tree.read(path)), re.M):
            offenders.append(f"{page}: {path} does not define {function}")
    tree.finish(offenders, len(stops))


main()
