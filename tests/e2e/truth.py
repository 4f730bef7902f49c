#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""Runs the programs whose answer is known under hpcrun and compares the report with the truth.

Each program of truth.tsv is profiled (only while it runs its loops: hpcrun -ds), the shares of its variables are held
against the truth with its tolerance, the variable with the largest truth must come first, and addresses must have been
recovered for 80 % of all samples.

usage: truth.py [--all] [--runs N] [--seconds S] [--build "COMPILER FLAGS"]... [PROGRAM...]
Without programs a few of them are taken, with --all all: most of the few measure their truth in the profiled run itself,
which holds as well on a machine that others use.
With --build the programs are built once more with that compiler, "gcc -O3" or "clang -O2"; without it the ones of make
check are taken. Where perf is refused, or what is needed has not been built, the test is skipped."""
import argparse
import collections
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import kernels  # noqa: E402

FEW = ("chase", "containers", "fortran", "gups", "memops", "stack", "statics", "threads")
RECOVERED_MIN = 80
NOT_DELAYED = ("fortran",)  # cannot call the profiler's start function, so the filling of its arrays is sampled too
TOP_LEAD = 15  # points by which the first truth must lead for the order to count
Row = collections.namedtuple("Row", "program flags variable method truth tolerance names")


def read_table():
    rows = []
    for line in (SOURCE / "tests/e2e/truth.tsv").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        names = fields[6] if len(fields) > 6 else fields[2].replace("+", "|")
        rows.append(Row(*fields[:4], fields[4], float(fields[5]), tuple(names.split("|"))))
    return rows


def read_truth(text):
    truth = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "truth":
            truth[words[1]] = float(words[2])
    return truth


def share_of(report, names):
    return sum(float(r["share"]) for r in report
               if r["variable"] in names or f"@{r['max_block_bytes']}" in names or f"@{r['size_bytes']}" in names)


def unrecovered(report):
    return sum(float(r["share"]) for r in report if r["class"] == "unattributed")


def compare(rows, report, truth):
    """Sentences about what is wrong, and a line about what was measured."""
    wrong, figures = [], []
    expected = {row: float(row.truth) if row.truth != "printed" else truth.get(row.variable) for row in rows}
    for row in rows:
        if expected[row] is None:
            wrong.append(f"the program printed no truth for {row.variable}")
            continue
        share = share_of(report, row.names)
        figures.append(f"{row.variable} {share:.1f} (truth {expected[row]:.1f})")
        if abs(share - expected[row]) > row.tolerance:
            wrong.append(f"{row.variable} has {share:.1f} %, truth {expected[row]:.1f} +- {row.tolerance:g}")
    order = sorted((r for r in rows if expected[r] is not None), key=lambda r: -expected[r])
    if order and expected[order[0]] >= TOP_LEAD + (expected[order[1]] if len(order) > 1 else 0):
        top = max(report, key=lambda r: float(r["share"]), default=None)
        # Several variables of one row may each have less than another one.
        leads = share_of(report, order[0].names)
        if top is None or (share_of([top], order[0].names) == 0 and leads < float(top["share"])):
            wrong.append(f"the first variable is {top['variable'] if top else 'missing'}, not {order[0].variable}")
    recovered = 100 - unrecovered(report)
    if recovered < RECOVERED_MIN:
        wrong.append(f"addresses were recovered for {recovered:.1f} % of the samples only")
    return wrong, ", ".join(figures) + f"; recovered {recovered:.1f} %"


def check_program(name, rows, directory, flags, scratch, seconds):
    program = directory / name
    rows = [r for r in rows if r.program == name and r.flags in ("*", flags)]
    if not program.exists():
        print(f"SKIP (part): {name} has not been built")
        return []
    is_timer = all(r.method == "timer" for r in rows)
    command = [program, "--truth", seconds] if is_timer else [program, seconds]
    report, printed = kernels.profile(command, scratch, is_delayed=name not in NOT_DELAYED)
    if report is None:
        print(f"SKIP (part): {name} does not run on this processor")
        return []
    truth = read_truth(printed if is_timer else kernels.run([program, "--truth", seconds]))
    wrong, figures = compare(rows, report, truth)
    if wrong and not is_timer:  # on a shared machine two runs differ: between two truths anything is right
        print(f"{name} [{flags}]: {figures}; once more, without the profiler")
        again = read_truth(kernels.run([program, "--truth", seconds]))
        shares = {row.variable: share_of(report, row.names) for row in rows}
        truth = {v: min(max(shares.get(v, t), min(t, again[v])), max(t, again[v])) for v, t in truth.items()}
        wrong, figures = compare(rows, report, truth)
    print(f"{name} [{flags}]: {figures}")
    return [f"{name} [{flags}]: {sentence}" for sentence in wrong]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", default="2.5", help="CPU seconds of each program")
    parser.add_argument("--build", action="append", default=[])
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    kernels.check_needs()
    rows = read_table()
    names = options.programs or [n for n in dict.fromkeys(r.program for r in rows) if options.all or n in FEW]
    wrong = []
    with tempfile.TemporaryDirectory(prefix="locus-truth.") as scratch:
        scratch = pathlib.Path(scratch)
        places = [(kernels.build(b, scratch), b) for b in options.build] or [(kernels.AS_BUILT, "gcc -O2")]
        for directory, flags in places:
            for name in names:
                for _ in range(options.runs):
                    wrong += check_program(name, rows, directory, flags, scratch, options.seconds)
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    sys.exit(1 if wrong else 0)


main()
