#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""hpcprof-failing-calls.py [N]: of the calls that hpcprof makes for memory, and of those on files, one fails, each in turn: the
first 150 of each kind, then N (default 120) spread over the rest. hpcprof ends by itself, never by a signal; and where it
says that all is well, the database is that of a run without a failure, or one of its notes tells what is missing."""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["LOCUS_BUILDDIR"]), pathlib.Path(os.environ["LOCUS_SRCDIR"])
N_SPREAD = int(sys.argv[1]) if len(sys.argv) > 1 else 120
PROGRAM = """#include <stdlib.h>
static double table[4096];
struct pair { double a, b; };
int main(void)
{
    size_t n = 1 << 17;
    struct pair *block = malloc(n * sizeof *block);
    double sum = 0;
    for (int k = 0; k < 200; k++)
        for (size_t i = 0; i < n; i++)
            sum += block[i * 7919 % n].a += table[i % 4096] += 1;
    return sum < 0;
}
"""
problems = []


def run(scratch, call=None):
    """(status, output, whether the call was reached)."""
    done = scratch / "happened"
    done.unlink(missing_ok=True)
    shutil.rmtree(scratch / "db", ignore_errors=True)
    more = {"NTH_CALL": call, "NTH_DONE": str(done), "LD_PRELOAD": str(scratch / "nth-call.so")} if call else {}
    command = [build / "hpcprof", "-v", "-j", "1", "-o", "db", "m"]
    try:
        result = subprocess.run(command, cwd=scratch, env={**os.environ, **more}, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "hangs", "", True
    return result.returncode, (result.stdout + result.stderr).decode(errors="replace"), done.exists()


def contents(scratch):
    return {path.relative_to(scratch / "db"): path.read_bytes() for path in sorted((scratch / "db").rglob("*"))
            if path.is_file() and "src" not in path.parts}


def check(scratch, kind, n, whole):
    """False when hpcprof makes fewer calls."""
    status, said, reached = run(scratch, f"{kind}:{n}:fail")
    if status not in (0, 1):
        problems.append(f"{kind} {n}: status {status} {said[-300:]}")
    elif status == 0 and reached and contents(scratch) != whole and "note: " not in said and "left out" not in said \
            and "not found or not readable" not in said:
        problems.append(f"{kind} {n}: all is well, it says, but the database is another")
    if problems and problems[-1].startswith(f"{kind} {n}:"):
        print("FAIL:", problems[-1])
    return reached


def sweep(scratch, kind, whole):
    low, high = 150, 300
    if not all(check(scratch, kind, n, whole) for n in range(1, 151)):
        return
    while run(scratch, f"{kind}:{high}:fail")[2] and high < 1 << 24:
        low, high = high, 2 * high
    rng = random.Random(3)
    for n in sorted(rng.randrange(151, high) for _ in range(N_SPREAD)):
        check(scratch, kind, n, whole)
    print(f"{kind}: more than {low} calls, {150 + N_SPREAD} failures, problems so far: {len(problems)}")


def main():
    with tempfile.TemporaryDirectory(prefix="locus-test.") as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        compiler = os.environ.get("CC", "cc").split()
        (scratch / "program.c").write_text(PROGRAM)
        subprocess.run([*compiler, "-g", "-O1", "-o", "program", "program.c"], cwd=scratch, check=True)
        subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", "nth-call.so", source / "tests/lib/nth-call.c"],
                       cwd=scratch, check=True)
        measured = subprocess.run([build / "hpcrun", "-t", "-o", "m", "./program"], cwd=scratch, capture_output=True)
        if measured.returncode != 0:
            print("SKIP: nothing can be measured here:", measured.stderr.decode(errors="replace"))
            return 77
        status, said, _ = run(scratch)
        whole = contents(scratch)
        if status != 0 or run(scratch)[0] != 0 or contents(scratch) != whole:
            print("FAIL: two runs without failures differ:", said)
            return 1
        for kind in ("memory", "file"):
            sweep(scratch, kind, whole)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
