# SPDX-License-Identifier: BSD-3-Clause
"""What is found of nests of loops in machine code, against what their source says: which loops should change places, which
should be blocked, which are fine, and of which that is open. C and Fortran, by gcc and clang, from -O0 to -O3; the lines that are named are the
marked ones."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "golden"
LISTER = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "tests" / "golden" / "list-nests"
# gcc changes the order itself at -O3, where it can
OPTIONS = {"gcc": ["-fno-loop-interchange"], "clang": [], "gfortran": ["-fno-loop-interchange"]}


def marks(source):
    """{function: {"outer": line, "inner": line}}"""
    found, name = {}, None
    for number, text in enumerate(source.read_text(encoding="utf-8").split("\n"), 1):
        if head := re.match(r"(?:void|double|subroutine) (\w+)\(", text):
            name = head.group(1)
            found[name] = {}
        for mark in re.finditer(r"(?:/\*|!) (outer|inner)\b", text):
            found[name][mark.group(1)] = number
    return found


def check(compiler, level, source, folder, options):
    library = pathlib.Path(folder) / f"{compiler}{level}.so"
    subprocess.run([compiler, level, "-g", "-w", "-shared", "-fPIC", *options, "-J", folder, "-o", library, source]
                   if source.suffix == ".f90" else
                   [compiler, level, "-g", "-w", "-shared", "-fPIC", *options, "-o", library, source], check=True)
    lines = subprocess.run([LISTER, library], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = {}
    for line in lines:
        symbol, verdict, inner, outer, far, *moves = line.split()
        rows.setdefault(symbol.rpartition("_MOD_")[2], []).append((verdict, int(inner), int(outer), far, *moves))
    failures = []
    for name, lines_of in marks(source).items():
        own, wanted = rows.get(name, []), name.partition("_")[0]
        seen = {row[0] for row in own if row[3] == "far"}
        places = {row[1:3] for row in own if row[3] == "far"}
        if wanted in ("fine", "open"):
            if seen or any(row[0] == "swap" for row in own):
                failures.append(f"{name}: {own}")
        elif seen != {wanted} or any(outer != lines_of["outer"] or inner not in (lines_of["inner"], lines_of["inner"] + 1)
                                     for inner, outer in places):  # an unrolled loop may have lost its own line
            failures.append(f"{name}: {own}, expected {lines_of}")
    return [f"{compiler} {level}: {failure}" for failure in failures]


def main():
    failures, n = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler, options in OPTIONS.items():
            if not shutil.which(compiler):
                print(f"{compiler} is missing: its code is not checked")
                continue
            source = FOLDER / ("nest-kernels.f90" if compiler == "gfortran" else "nest-kernels.c")
            for level in ("-O0", "-O1", "-O2", "-O3"):
                n += len(marks(source))
                failures += check(compiler, level, source, folder, options)
    if not n:
        print("SKIP: there is no compiler")
        sys.exit(77)
    for failure in failures:
        print(f"FAIL: {failure}")
    print(f"{n} nests, {len(failures)} wrong")
    sys.exit(1 if failures else 0)


main()
