# SPDX-License-Identifier: BSD-3-Clause
"""The code tour of CONTRIBUTING.md leads where it says: each stop is a file that exists and defines that function. So does
the table of what is not where one looks first. And "The room:" at the head of a room's main header names files that are
there."""
import re

import tree

CELL = re.compile(r"^\|.*?`((?:src|tools)/[\w/.-]+\.c)` `(\w+)`", re.M)
STOP = re.compile(r"^\d+\. `((?:src|tools)/[\w/.-]+)`\s+`(\w+)`:", re.M)


ROOM = re.compile(r"\* The room: (.*?)\*/", re.S)
IN_ROOM = re.compile(r"(?<![\w*/-])([a-z][\w-]*\.[ch])\b")


def rooms():
    """A sentence for each file that a room's readme names and that is not there."""
    n = 0
    for path in tree.sources(".h"):
        for text in ROOM.findall(tree.read(path)):
            n += 1
            for name in IN_ROOM.findall(text):
                if not re.search(r"-x\.c$|-CPU", name) and not (tree.ROOT / path).with_name(name).exists():
                    yield f"{path}: the room has no {name}"
    if n < 20:
        yield f"{n} rooms have a readme, at least 20"


def main():
    page = "CONTRIBUTING.md"
    before, _, after = tree.read(page).partition("## A code tour")
    text = after.partition("\n## ")[0]
    offenders = [] if text else [f"{page} has no code tour"]
    stops = STOP.findall(text) + CELL.findall(before)
    offenders += [f"{page}: this stop names no file and function: {line}" for line in re.findall(r"^\d+\. .*", text, re.M)
                  if not STOP.match(line + (":" if line.endswith("`") else ""))]
    offenders += rooms()
    for path, function in stops:
        if not (tree.ROOT / path).exists():
            offenders.append(f"{page}: there is no {path}")
        elif not re.search(rf"^(?!.*;$)[A-Za-z_].*\b{function}\(", tree.without_comments(tree.read(path)), re.M):
            offenders.append(f"{page}: {path} does not define {function}")
    tree.finish(offenders, len(stops))


main()
