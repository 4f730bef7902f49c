#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the advice against programs with a known cure (cures.tsv; programs/advice.c, cures.c and cures.f90, and a
program in Python, below).

Each program does the same work before and after the cure. What the cure gains is measured without a profiler, in turns, as a
part of the CPU time. Then the program is profiled as anybody would, and its advice must have
  - a piece with the right rule about the right variable among the first three,
  - whose "at most" is not below the gain (and WITHIN points, as both are measured).
With --runs each is profiled that often, and each time counts.

usage: cures.py [--runs N] [--table] [CASE...]      --table prints the rows for doc/cures.md"""
import argparse
import csv
import fnmatch
import io
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
PROFILED_S, NATIVE_S, TURNS = "2", "0.3", 5
WITHIN, RANKS = 5, 3
CODE = {"compute", "execution", "resident", "interpreter"}
PROGRAMS = {"advice": ("gcc", "-O1", "-g", "-pthread", "programs/advice.c"),
            "cures": ("gcc", "-O2", "-g", "-pthread", "programs/cures.c", "-lm"),
            "cures-fortran": ("gfortran", "-O1", "-g", "programs/cures.f90")}

PYTHON = """#!/usr/bin/python3
import operator, sys, time
def plain(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
def changed(a, b):
    return sum(map(operator.mul, a, b))
def main():
    step, seconds, n = {"plain": plain, "changed": changed}[sys.argv[2]], float(sys.argv[3]), 0
    a, b = [0.5 * i for i in range(2000)], [float(i % 7) for i in range(2000)]
    begin = time.process_time()
    while time.process_time() < begin + seconds:
        step(a, b)
        n += 1
    print((time.process_time() - begin) / n)
main()
"""


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=300)
    if result.returncode != 0:
        sys.exit(f"{command}: status {result.returncode}: {result.stderr}")
    return result.stdout


def read_table(names):
    with open(SOURCE / "tests/e2e/cures.tsv", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if not row[0].startswith("#")]
    return [row for row in rows if not names or row[1] in names]


def user_and_system():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def gain_of(program, case):
    """(percent of the CPU time that the cure saves, how many times as fast the steps are): medians of runs in turns. Only the
    steps are cured, and what comes before them is not."""
    gains, factors = [], []
    for _ in range(TURNS):
        before = user_and_system()
        plain = float(run(program, case, "plain", NATIVE_S))
        total = user_and_system() - before
        changed = float(run(program, case, "changed", NATIVE_S))
        gains.append(100 * (1 - changed / plain) * min(1, float(NATIVE_S) / total))
        factors.append(plain / changed)
    return statistics.median(gains), statistics.median(factors)


def advice_for(program, case, scratch):
    measurement, database = scratch / "m", scratch / "db"
    for directory in (measurement, database):
        subprocess.run(["rm", "-rf", str(directory)], check=True)
    run(BUILD / "hpcrun", "-o", measurement, program, case, "plain", PROFILED_S)
    run(BUILD / "hpcprof", "-o", database, measurement)
    return list(csv.DictReader(io.StringIO(run(BUILD / "hpcquery", "advice", "--csv", "--top", "0", database))))


def is_right(row, variable, rules):
    """rules: RULE, or RULE~WORD that its advice must have."""
    said = any(row["rule"] == rule.partition("~")[0] and rule.partition("~")[2] in row["advice"] for rule in rules)
    return said and fnmatch.fnmatchcase(row["variable"], variable.replace("[", "[[]"))


def most_of(advice, piece):
    """The bound of a piece, with those of the other variables that the same sentence is about, as behind a report. That of advice
    about code is of the place, whatever data it works on."""
    if piece["rule"] in CODE:
        return piece["gain_at_most"]
    bounds = [float(other["gain_at_most"]) for other in advice if other["gain_at_most"] and other["advice"] == piece["advice"]]
    return f"{sum(bounds):.1f}" if bounds else ""


def check(row, scratch, n_runs, is_table):
    """Sentences about what is wrong with the advice for one case."""
    name, case, variable, rules, cure = row
    rules, wrong, ranks, bounds = rules.split("|"), [], [], []
    gain, factor = gain_of(scratch / name, case)
    for _ in range(n_runs):
        advice = advice_for(scratch / name, case, scratch)
        found = [i for i, piece in enumerate(advice) if is_right(piece, variable, rules)]
        if not found or found[0] >= RANKS:
            wrong.append(f"{case}: no {' or '.join(rules)} for {variable} among the first {RANKS}, but "
                         f"{[(piece['variable'], piece['rule'], piece['gain_at_most']) for piece in advice]}")
            continue
        most = most_of(advice, advice[found[0]])
        ranks.append(found[0] + 1)
        if most:
            bounds.append(float(most))
        if most and float(most) + WITHIN < gain:
            wrong.append(f"{case}: gains at most {most} %, but {gain:.1f} % are measured")
    said = f"{min(bounds):.0f}" + (f"-{max(bounds):.0f}" if max(bounds) - min(bounds) >= 1 else "") if bounds else "-"
    place = "/".join(str(rank) for rank in sorted(set(ranks))) or "-"
    if is_table:
        print(f"| `{name} {case}` | {cure} | {factor:.1f} | {gain:.0f} | {place} | {said} |", flush=True)
    else:
        print(f"{case}: {factor:.1f} times as fast, {gain:.0f} % of the time; rank {place}, at most {said} %", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    if subprocess.run([BUILD / "hpcrun", "--print-plan", "-e", "EADDR"], capture_output=True, check=False).returncode:
        print("SKIP: EADDR cannot be sampled here")
        return 77
    rows, wrong = read_table(options.cases), []
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        program = scratch / "cures-python"
        program.write_text(PYTHON, encoding="utf-8")
        program.chmod(0o755)
        if not pathlib.Path("/usr/bin/python3").exists():
            print("SKIP (part): no /usr/bin/python3, so nothing about Python")
            rows = [row for row in rows if row[0] != program.name]
        for program in {row[0] for row in rows} & set(PROGRAMS):
            words = [SOURCE / "tests/e2e" / word if word.startswith("programs/") else word for word in PROGRAMS[program]]
            run(*words, "-o", scratch / program)
        for row in rows:
            wrong += check(row, scratch, options.runs, options.table)
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
