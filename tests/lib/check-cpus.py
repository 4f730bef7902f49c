#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-cpus.py HPCQUERY DB TRUTH: `hpcquery cpus` of a database that was measured here. TRUTH has lines "variable CPU
pages", one page more or less is the allocator's; where the CPUs are is read from the kernel's files."""
import csv
import io
import pathlib
import subprocess
import sys

CPUS, NODES = pathlib.Path("/sys/devices/system/cpu"), pathlib.Path("/sys/devices/system/node")
failures = []


def table(*arguments):
    return list(csv.DictReader(io.StringIO(subprocess.run([sys.argv[1], "cpus", "--csv", *arguments, sys.argv[2]], check=True,
                                                          capture_output=True, text=True).stdout)))


def counts(rows, place):
    found = {}
    for row in rows:
        found[row["variable"], row[place]] = found.get((row["variable"], row[place]), 0) + int(row["samples"])
    return found


def cpus_of(text):
    """The CPUs of a list such as 0-3,8."""
    ranges = [part.partition("-") for part in text.strip().split(",") if part]
    return {str(cpu) for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)}


def check_counts(rows, wanted):
    found = {key: n for key, n in counts(rows, "cpu").items() if key[0] in {name for name, _ in wanted}}
    for key in sorted(set(found) | set(wanted)):
        if abs(found.get(key, 0) - wanted.get(key, 0)) > (key in wanted):
            failures.append(f"{key[0]} on CPU {key[1]}: {found.get(key, 0)} pages, not {wanted.get(key, 0)}")


def check_places(rows):
    """CPUs are in one core or package of the report if the kernel says so; nodes have the kernel's numbers."""
    places = {row["cpu"]: row for row in rows}
    for cpu, row in places.items():
        for column, path in (("core", "core_cpus_list"), ("package", "package_cpus_list")):
            said = CPUS / f"cpu{cpu}" / "topology" / path
            together = {other for other in places if places[other][column] == row[column]}
            if said.exists() and together != cpus_of(said.read_text(encoding="ascii")) & set(places):
                failures.append(f"CPU {cpu} is in {column} {row[column]} with {together}")
        for path in NODES.glob("node*/cpulist"):
            if cpu in cpus_of(path.read_text(encoding="ascii")) and row["node"] != path.parent.name[4:]:
                failures.append(f"CPU {cpu} is on node {row['node']}, not on {path.parent.name}")


def main():
    rows = table()
    wanted = {}
    for line in pathlib.Path(sys.argv[3]).read_text(encoding="ascii").splitlines():
        name, cpu, pages = line.split()
        wanted[name, cpu] = int(pages)
    check_counts(rows, wanted)
    check_places(rows)
    for place in ("core", "package", "node"):
        if counts(table("--by", place), place) != counts(rows, place):
            failures.append(f"by {place}: the sums are not those of the CPUs")
        one = counts(table("--by", place, "--variable", "both"), place)
        if one != {key: n for key, n in counts(rows, place).items() if key[0] == "both"}:
            failures.append(f"by {place}: the sums of one variable differ: {one}")
    for sentence in failures:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
