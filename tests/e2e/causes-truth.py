#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The programs that know how much of their time is waiting for memory: what they say is well formed, and where the
answer follows from how they are made, it is that one. No profiler is involved, and no time is asserted: a loop is
compared with its own twin, in turns."""
import csv
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
PROGRAM = BUILD / "tests/e2e/kernels/causes"
# Those that need little time, and one of each file and of each way to run.
LOOPS = ("add_16k", "branches_16m", "four_sums_threads", "tile", "gather_8k", "indexed_128k", "chase", "csr_112k", "cg",
         "stencil", "four_loops")
AT_MOST = {"add_16k": 30, "gather_8k": 30}  # the loop is its own twin
AT_LEAST = {"chase": 60}  # each node of 256 MB says where the next is
NUMBER = r"(\d+\.\d)"
TRUTH = re.compile(rf"truth: loop (\S+) variable (\S+) memory {NUMBER} low {NUMBER} high {NUMBER} "
                   rf"least {NUMBER} most {NUMBER}$")
TIMER = re.compile(rf"timer: loop (\S+) variable (\S+) time {NUMBER}$")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


def read_table():
    with open(SOURCE / "tests/e2e/causes.tsv", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if not row[0].startswith("#")]
    groups = {}
    for loop, variables, _, _ in rows:
        groups.setdefault(loop, set()).add(variables)
    return groups


def check_shares(loop, text, groups):
    """Sentences about what is wrong with the truth that a loop has printed."""
    wrong, seen, times = [], {}, []
    for line in text.splitlines():
        truth, timer = TRUTH.match(line), TIMER.match(line)
        if not (truth or timer) or (truth or timer).group(1) != loop:
            wrong.append(f"{loop} prints: {line}")
        elif timer:
            times.append(float(timer.group(3)))
        else:
            memory, low, high, least, most = map(float, truth.groups()[2:])
            seen[truth.group(2)] = memory
            if not (0 <= low <= memory <= high <= 100 and 0 <= least <= most <= 100):
                wrong.append(f"{loop}: not in order, or not within 0 to 100: {line}")
    if set(seen) != groups | {"all"}:
        wrong.append(f"{loop} has truth for {sorted(seen)}, and the table has {sorted(groups)}")
    if times and abs(sum(times) - 100) > 0.5:
        wrong.append(f"{loop}: the times of its parts are {times}")
    if not AT_LEAST.get(loop, 0) <= seen.get("all", 0) <= AT_MOST.get(loop, 100):
        wrong.append(f"{loop}: memory is {seen.get('all')} %, which cannot be by how it is made")
    return wrong


def main():
    if not PROGRAM.exists():
        print(f"SKIP: {PROGRAM} has not been built")
        sys.exit(77)
    groups, wrong = read_table(), []
    listed = run("--list").stdout.split()
    if sorted(listed) != sorted(groups):
        wrong.append(f"causes --list and causes.tsv differ: {sorted(set(listed) ^ set(groups))}")
    if run("no-such-loop").returncode != 2:
        wrong.append("an unknown loop is not refused")
    for loop in LOOPS:
        result = run(loop, "--truth", "0.1")
        if result.returncode == 77:
            print(f"SKIP (part): {loop} does not run on this processor")
            continue
        print(result.stdout, end="")
        if result.returncode != 0:
            wrong.append(f"{loop} ends with {result.returncode}: {result.stderr}")
        wrong += check_shares(loop, result.stdout, groups.get(loop, set()))
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    sys.exit(1 if wrong else 0)


main()
