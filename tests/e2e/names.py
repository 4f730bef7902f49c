# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""Every block and every static array of a program is reported under the name that the program's author would use. The
sources say which: each block has a size of its own, and "@block SIZE NAME" its name; "@type NAME TYPE" is the type of
the elements of a block that is touched first when nobody else has used its pages. Compiled by each compiler at each
level; what is allocated, and which pages are touched first, is recorded as it happens and no sample is taken. With
libc++, some blocks have another size: "@libc++ SIZE NEW-SIZE". Its headers cannot be installed beside
those of libunwind: LOCUS_LIBCXX names a directory with c++/v1 and libc++.so.1, where they were unpacked.
usage: names.py [PROGRAM...]"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
LEVELS = {
    "names-fortran.f90": [("gfortran", level)
                          for level in ("-O0", "-Og", "-O2", "-O3", "-O0 -fopenmp", "-O2 -fopenmp")],
    "names-flow.f90": [("gfortran", f"{level}{omp}") for level in ("-O0", "-O2", "-O3") for omp in ("", " -fopenmp")],
    "names-objects.f90": [("gfortran", level) for level in ("-O0", "-O2", "-O3")],
    "names-old.f": [("gfortran", level) for level in ("-O0", "-O2")],
    "names-pointers.c": [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O0", "-O2", "-O3")],
    "names-particles.cc": [(compiler, level) for compiler in ("g++", "clang++") for level in ("-O0", "-O2", "-O3")]
                          + [("g++", "-O2 -fopenmp")],
    "names-pointed.cc": [(compiler, level) for compiler in ("g++", "clang++") for level in ("-O0", "-O2", "-O3")],
    "names-containers.cc": [(compiler, level) for compiler in ("g++", "clang++") for level in ("-O0", "-O2", "-O3")],
}
if not os.environ.get("LOCUS_TEST_FULL"):
    LEVELS = {source: [way for way in ways if "-O3" not in way[1]] for source, ways in LEVELS.items()}
LIBCXX = os.environ.get("LOCUS_LIBCXX")
if LIBCXX:
    LEVELS["names-containers.cc"] += [
        ("clang++", f"{level} -std=c++17 -nostdinc++ -isystem {LIBCXX}/c++/v1 -nostdlib++ -L{LIBCXX} -Wl,-rpath,{LIBCXX} "
         "-l:libc++.so.1 -l:libc++abi.so.1") for level in ("-O0", "-O2", "-O3")]
failures = []


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True, **options)


def expectations(source, is_libcxx):
    text = source.read_text(encoding="utf-8")
    blocks = {int(size): name for size, name in re.findall(r"@block (\d+) (.+?)(?: \*/)?$", text, re.M)}
    for size, new in re.findall(r"@libc\+\+ (\d+) (\d+)", text) if is_libcxx else []:
        blocks[int(new)] = blocks.pop(int(size))
    return blocks, re.findall(r"@static (.+)", text), re.findall(r"@type (\S+) (.+?)(?: \*/)?$", text, re.M)


def query(database, *words):
    return json.loads(run(BUILD / "hpcquery", *words, "--json", database).stdout)


def check(source, title, database):
    blocks, statics, types = expectations(source, "c++/v1" in title)
    found = {}
    for row in query(database, "leaks", "--all")["paths"]:
        size, rest = divmod(row["allocated_bytes"], row["allocated_blocks"])
        if rest == 0:
            found.setdefault(size, set()).add(row["variable"])
    for size, name in blocks.items():
        if found.get(size) != {name}:
            failures.append(f"{title}: the blocks of {size} bytes are {name}, not {found.get(size)}")
    names = {row["variable"]: row["type"] for row in query(database, "vars", "--metric", "FAULTS")["variables"]}
    failures.extend(f"{title}: {name} is not in {sorted(names)}" for name in statics if name not in names)
    failures.extend(f"{title}: {name} has the type {names.get(name)}, not {kind}" for name, kind in types
                    if names.get(name) != kind)
    return len(blocks) + len(statics) + len(types)


def measure(folder, program, compiler, level):
    """Compiles and runs one program; returns its database."""
    folder.mkdir()
    source = SOURCE / "tests/e2e/programs" / program
    environment = dict(os.environ, DATACENTRIC_MIN_BYTES="32")
    run(compiler, "-g", "-o", folder / "program", source, *level.split(), cwd=folder)
    run(BUILD / "hpcrun", "-e", "MEMLEAK", "-e", "FAULTS@1", "-o", folder / "m", folder / "program", env=environment)
    run(BUILD / "hpcprof", "-o", folder / "db", folder / "m")
    return folder / "db"


def main():
    if not (BUILD / ".libs/libhpcrun.so").exists():
        print("SKIP: libhpcrun.so has not been built")
        return 77
    cases = []
    for program in sys.argv[1:] or LEVELS:
        for compiler, level in LEVELS[program]:
            if shutil.which(compiler):
                cases.append((program, compiler, level))
            else:
                print(f"SKIP part: {compiler} is not installed")
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="locus-names-"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        databases = [pool.submit(measure, scratch / str(i), *case) for i, case in enumerate(cases)]
        n_checked = sum(check(SOURCE / "tests/e2e/programs" / case[0], f"{case[0]} by {case[1]} {case[2]}", database.result())
                        for case, database in zip(cases, databases))
    shutil.rmtree(scratch)
    for failure in failures:
        print(failure)
    print(f"{n_checked} names, {len(failures)} wrong")
    return 1 if failures else 77 if n_checked == 0 else 0


sys.exit(main())
