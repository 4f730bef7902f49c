# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""Static programs that hpclink made, in C, C++ and Fortran, give the variable table of the dynamic build: the same
variable at the top, from the same place, and the same shares within sampling noise."""
import collections
import csv
import io
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests/e2e/programs"
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
C = os.environ.get("CC") or "gcc"
PROGRAMS = [  # name, source, compiler
    ("chase", "chase.c", C),
    ("chase-clang", "chase.c", "clang"),
    ("containers", "containers.cc", os.environ.get("CXX") or "g++"),
    ("fortran", "fortran.f90", os.environ.get("FC") or "gfortran"),
]
SECONDS = "1.5"
TOLERANCE = 8  # points: three standard deviations of the difference of two runs of 1500 samples, and the machine's own


def run(command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def table(program, folder):
    """[(variable, class, where from, share in %)], largest first."""
    measured, database = folder / (program.name + ".m"), folder / (program.name + ".db")
    run([BUILD / "hpcrun", "-e", "EADDR", "-o", measured, program, SECONDS])
    run([BUILD / "hpcprof", "-o", database, measured])
    rows = list(csv.DictReader(io.StringIO(run([BUILD / "hpcquery", "vars", "--csv", database]))))
    return sorted(((r["variable"], r["class"], r["alloc_site"], float(r["share"])) for r in rows), key=lambda row: -row[3])


def compare(name, dynamic, static):
    """Sentences of what differs."""
    if dynamic[0][:3] != static[0][:3]:
        yield f"{name}: {static[0][:3]} is at the top instead of {dynamic[0][:3]}"
    shares = collections.Counter()  # "big" is a list, and the pointer to it, whose class is another
    for variable, kind, _, share in static:
        shares[variable, kind] += share
    for variable, kind, _, share in dynamic:
        found = shares[variable, kind]
        if kind in ("heap", "static", "stack") and share >= 5 and abs(share - found) > TOLERANCE:
            yield f"{name}: {variable} ({kind}) has {found:.1f} % instead of {share:.1f} %"


def check(name, source, compiler, folder):
    """(links that were tried, what differs)"""
    words = shlex.split(compiler)
    if not shutil.which(words[0]):
        print(f"SKIP (part): {name}: {words[0]} is not installed")
        return 0, []
    line = [*words, "-O2", "-g", SOURCES / source, *(["-J", folder] if source.endswith("90") else [])]
    dynamic = folder / f"{name}-dynamic"
    run([*line, "-o", dynamic])
    expected, offences, n_tried = table(dynamic, folder), [], 0
    for kind in ("-static", "-static-pie"):
        program = folder / (name + kind)
        plain = subprocess.run([*map(str, line), kind, "-o", str(program)], capture_output=True)
        if plain.returncode != 0:
            print(f"SKIP (part): {words[0]} cannot link {kind} here")
            continue
        run([BUILD / "hpclink", *line, kind, "-o", program])
        found = table(program, folder)
        print(program.name, *(f"{row[0]} {row[3]:.1f}" for row in found[:3]), "dynamic:",
              *(f"{row[0]} {row[3]:.1f}" for row in expected[:3]))
        offences += compare(program.name, expected, found)
        n_tried += 1
    return n_tried, offences


def main():
    if not (BUILD / "libhpcrun-static.o").exists():
        print("SKIP: libhpcrun-static.o has not been built")
        return 77
    n_tried, offences = 0, []
    with tempfile.TemporaryDirectory(prefix="locus-test.") as name:
        for program in PROGRAMS:
            n, found = check(*program, pathlib.Path(name))
            n_tried += n
            offences += found
    for offence in offences:
        print("FAIL:", offence)
    if not n_tried:
        print("SKIP: nothing can be linked static here (libc.a is missing)")
        return 77
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
