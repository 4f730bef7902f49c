#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""What the report says of memory and execution, against loops that know how much of their time is waiting for memory:
right within 20 points, or inside the interval that is printed. The loops are those whose answer is not at the edge."""
import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
PROGRAM = BUILD / "tests/e2e/kernels/causes"
# loop, its variable, what most of its time must be called
LOOPS = (("add_16k", "addends", "execution_share"), ("chase", "nodes", "memory_share"),
         ("indexed_256m", "picked", "memory_share"), ("gups_8k", "table", "execution_share"), ("triad", None, None))
TRUTH = re.compile(r"truth: loop (\S+) variable all memory (\S+) low (\S+) high (\S+) least", re.M)
PARTS = ("memory_share", "execution_share", "unverified_share")
NO_VARIABLES = ("unknown", "unattributed", "waiting", "dropped", "kernel")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def table(database, *options):
    done = run(BUILD / "hpcquery", "vars", "--csv", *options, database)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def is_down(rows):
    shares = [float(row["share"]) for row in rows]
    return shares == sorted(shares, reverse=True)


def check_order(loop, database):
    """The rows are in the order that was asked for, and the parts of each are no more than its share. By memory that is
    the order of what waits, or may wait, at variables, and of all time at other rows; before them stands one row with most of
    the largest cause."""
    by_memory, by_time = table(database), table(database, "--order", "time")
    stakes = [float(row["share"]) if row["class"] in NO_VARIABLES else float(row["memory_share"] or 0) + float(row["unverified_share"])
              for row in by_memory if row["class"] != "kernel"]
    wrong = [f"{loop}: {what}" for what, is_wrong in (
        ("no rows", not by_memory),
        ("the rows are not in order", stakes[1:] != sorted(stakes[1:], reverse=True)),
        ("--order time is not in order", not is_down(by_time))) if is_wrong]
    for row in by_memory:
        parts = sum(float(row[part] or 0) for part in PARTS)
        if row["memory_share"] and parts > 0 and abs(parts - float(row["share"])) > 0.01:
            wrong.append(f"{loop}: {row['variable']} has {row['share']} %, and its parts are {parts}")
    return wrong


def check(loop, variable, part, folder):
    truth = TRUTH.search(run(PROGRAM, loop, "--truth", "0.4").stdout)
    measurement, database = folder / f"{loop}-m", folder / f"{loop}-db"
    # The loop alone is sampled: making its data takes first touches, which are a quarter of the time on some machines.
    done = run(BUILD / "hpcrun", "--delay-sampling", "-o", measurement, "-e", "EADDR", PROGRAM, loop)
    if done.returncode != 0 or run(BUILD / "hpcprof", "-o", database, measurement).returncode != 0 or not truth:
        return [f"{loop}: cannot be measured: {done.stderr}"]
    rows = table(database)
    memory, low, high = (sum(float(row[key] or 0) for row in rows)
                         for key in ("memory_share", "memory_low", "memory_high"))
    true_low, true_high = float(truth[3]), float(truth[4])
    print(f"{loop}: memory {memory:.1f} ({low:.1f}-{high:.1f}), truth {truth[2]} ({true_low}-{true_high})")
    wrong = check_order(loop, database)
    if abs(memory - float(truth[2])) > 20 and not (low - 2 <= true_high and true_low <= high + 2):
        wrong.append(f"{loop}: memory {memory:.1f} ({low:.1f}-{high:.1f}), and in truth {truth[2]}")
    found = [row for row in rows if row["variable"].split("::")[-1] == variable]
    if variable and (not found or float(found[0][part] or 0) < 0.5 * float(found[0]["share"])):
        wrong.append(f"{loop}: of {variable} too little is {part}: {found}")
    head = run(BUILD / "hpcquery", "vars", database).stdout
    causes = re.search(r"^causes +((?:.|\n {10})*)", head, re.M)
    words = (r"waiting for memory (?:\d+ % \(\d+-\d+\)|unknown \(\d+-\d+ %\))", r"execution \d+ %", r"unverified \d+ %")
    if not causes or not all(re.search(word, " ".join(causes[1].split())) for word in words):
        wrong.append(f"{loop}: the head does not tell causes: {head[:400]}")
    return wrong


def main():
    if not PROGRAM.exists():
        print(f"SKIP: {PROGRAM} has not been built")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        wrong = [sentence for loop in LOOPS for sentence in check(*loop, pathlib.Path(folder))]
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    sys.exit(1 if wrong else 0)


main()
