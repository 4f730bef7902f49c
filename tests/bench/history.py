#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The committed history of the benchmarks: history.tsv, a line for each figure of each recorded run. A figure is what a
benchmark prints before "(goal N" or "(limit N"; its name is the text around it, without numbers.

history.py --record|--compare BENCH OUTPUT reads what a benchmark printed: adds its figures to the table, or puts each
beside its last one there. Machines differ, and so do hours on one: figures are ratios, and a difference below a quarter
says nothing on a machine that others use."""
import datetime
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("history.tsv")
HEAD = "date\tcommit\tbenchmark\tfigure\tvalue\tgoal\n"
AIM = re.compile(r"\((?:goal|limit)s?:? (-?[\d.]+)")
NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")
ROUNDS = re.compile(r"\bmedian of \d+(?: \w+)?")
PATH = re.compile(r"\S*/(\w\S*)")
MUCH = 1.25


def figures(text):
    """(name, value, goal) of each figure in a benchmark's output: the first number behind the last colon, semicolon or
    equals sign before its aim."""
    for line in text.splitlines():
        line, before = ROUNDS.sub("median", PATH.sub(r"\1", line)), 0
        for aim in AIM.finditer(line):
            said = line[before:aim.start()].strip(" ;,")
            start = max(said.rfind(mark) for mark in ":;=") + 1
            number = NUMBER.search(said, start) or NUMBER.search(said)
            before = aim.end()
            if number:
                words = NUMBER.sub(" ", said[:number.start()] + " # " + said[number.end():])
                yield " ".join(words.replace("=", " ").split()), float(number.group().replace(",", "")), float(aim[1].rstrip("."))


def commit():
    words = ["git", "-C", str(TABLE.parent), "describe", "--always", "--dirty=+", "--abbrev=8"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def rows():
    return [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[2:]] if TABLE.exists() else []


def record(bench, found):
    today, at = datetime.date.today().isoformat(), commit()
    if not TABLE.exists():
        TABLE.write_text("# SPDX-License-Identifier: BSD-3-Clause\n" + HEAD, encoding="utf-8")
    with TABLE.open("a", encoding="utf-8") as table:
        for name, value, goal in found:
            table.write(f"{today}\t{at}\t{bench}\t{name}\t{value:g}\t{goal:g}\n")


def compare(bench, found):
    known = {(row[2], row[3]): row for row in rows()}
    for name, value, goal in found:
        row = known.get((bench, name))
        if not row:
            print(f"  {value:10g} (goal {goal:g})  {name}: not in the history")
            continue
        before = float(row[4])
        ratio = value / before if before else 1.0
        mark = "  <--" if not 1 / MUCH <= ratio <= MUCH else ""
        print(f"  {value:10g} (goal {goal:g}), {before:g} in {row[1]} of {row[0]}: x {ratio:.2f}  {name}{mark}")


def main():
    how, bench, output = sys.argv[1:]
    found = list(figures(pathlib.Path(output).read_text(encoding="utf-8", errors="replace")))
    (record if how == "--record" else compare)(bench, found)


if __name__ == "__main__":
    main()
