#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""Who touched an array first, of a program that has it done in every way: hpcquery first-touch names thread, function and
part of the block, and says so where the kernel did it or huge pages leave no faults."""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
FUNCTIONS = {"serial": "init_serial", "cleared": "clear_all", "blocked": "touch_block", "shared": "touch_region"}
THREADS = 4
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command, status=0):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120)
    if result.returncode != status:
        sys.exit(f"{command}: status {result.returncode}: {result.stderr}")
    return result.stdout


def check_parts(name, rows, n_pages):
    """Each of four threads has its quarter, in their order."""
    expect(len({row["thread"] for row in rows}) == THREADS, f"{name}: threads {[row['thread'] for row in rows]}")
    ordered = sorted(rows, key=lambda row: int(row["low_byte"]))
    for part, row in enumerate(ordered):
        # a kept selection of the offsets says where the part begins and ends
        slack = n_pages * 4096 // 32
        low, high = part * n_pages * 4096 // THREADS, (part + 1) * n_pages * 4096 // THREADS
        expect(low <= int(row["low_byte"]) < low + slack and high - slack < int(row["high_byte"]) < high, f"{name}: part {part}: {row}")
        expect(abs(int(row["faults"]) - n_pages // THREADS) <= 2, f"{name}: faults of part {part}: {row}")
    times = [int(row["first_ns"]) for row in ordered if row["first_ns"]]
    if name == "blocked" and times:  # with FAULTS@ring they are not known
        expect(times == sorted(times) and times[0] > 0, f"{name}: times {times}")


def check_event(scratch, event):
    measurement, database = scratch / f"{event}.m", scratch / f"{event}.db"
    n_pages = int(run(BUILD / "hpcrun", "-e", event, "-o", measurement, scratch / "touchers"))
    run(BUILD / "hpcprof", "-o", database, measurement)
    rows = {}
    for row in csv.DictReader(io.StringIO(run(BUILD / "hpcquery", "first-touch", "--csv", database))):
        rows.setdefault(row["variable"], []).append(row)
    said = {row["variable"]: row["first_touch"] for row in
            json.loads(run(BUILD / "hpcquery", "first-touch", "--json", database))["variables"]}
    for name, function in FUNCTIONS.items():
        found = rows.get(name, [])
        expect(found and abs(sum(int(row["faults"]) for row in found) - n_pages) <= 4, f"{event}: {name}: {found}")
        if event == "FAULTS@1":
            expect(int(found[0]["first_ns"]) > 0, f"{event}: {name}: no time")
            expect(all(row["function"].startswith(function) for row in found), f"{event}: {name} in {[row['function'] for row in found]}")
        if name in ("blocked", "shared"):
            check_parts(name, found, n_pages)
        else:
            expect(len({row["thread"] for row in found}) == 1 and found[0]["thread"] == "0", f"{event}: {name}: {found}")
    for name in ("filled", "populated"):
        expect(name in rows and rows[name][0]["thread"] == "", f"{event}: {name}: {rows.get(name)}")
        expect("no first touch was seen" in (said.get(name) or ""), f"{event}: {name}: {said.get(name)}")
    enabled = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if enabled.exists() and "[never]" not in enabled.read_text(encoding="ascii"):
        n_faults = sum(int(row["faults"]) for row in rows["huge"])
        expect(0 < n_faults <= n_pages // 64, f"{event}: huge: {n_faults} faults")
        expect("huge pages" in said["huge"], f"{event}: huge: {said['huge']}")
    else:
        print("SKIP: huge pages are switched off here")


def main():
    if subprocess.run([BUILD / "hpcrun", "--print-plan", "-e", "FAULTS"], capture_output=True, check=False).returncode:
        print("SKIP: page faults cannot be sampled here")
        return 77
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        run("gcc", "-g", "-O1", "-fopenmp", "-pthread", "-o", scratch / "touchers", SOURCE / "tests/e2e/programs/touchers.c")
        for event in ("FAULTS@1", "FAULTS@ring"):
            check_event(scratch, event)
    print("\n".join(failures) if failures else "each array was touched first by those who did it")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
