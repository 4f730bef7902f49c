# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""What perf alone recorded becomes a database: a program that touches arrays of known sizes once, page by page, in two
threads, gives exactly the expected page faults per variable; binaries of another build are not used for names."""
import csv
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
CC = os.environ.get("CC", "cc")
# Pages of the two arrays in .bss, of the heap block (and what malloc and the loader touch besides).
TRUTH = {"first_array": 400, "second_array": 200, "<heap without allocation log>": 300}
failures = []


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)


def combine(database, *inputs):
    shutil.rmtree(database, ignore_errors=True)
    return run(BUILD / "hpcprof", "-v", "-o", database, *inputs)


def variables(database, metric=None):
    chosen = ["-M", metric] if metric else []
    result = run(BUILD / "hpcquery", "vars", "--csv", "--top", "0", *chosen, database)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return {row["variable"]: row for row in csv.DictReader(io.StringIO(result.stdout))}


def samples(rows, name):
    return float(rows[name]["samples"]) if name in rows else 0


def check_truth(name, database, options):
    rows = variables(database)
    for variable, truth in TRUTH.items():
        found = samples(rows, variable)
        most = truth + (30 if variable.startswith("<") else 0)
        expect(truth <= found <= most, f"{name}: {found} faults on {variable}, {truth} to {most} expected")
    pages = [r for r in rows if r.endswith("/pages")]
    expect(pages and samples(rows, pages[0]) > 0, f"{name}: the mapped file has no row")
    expect(any(r.startswith("stack of thread") for r in rows), f"{name}: no stack has a row")
    if "-g" in options:
        tree = run(BUILD / "hpcquery", "tree", database).stdout
        expect("main" in tree and "touch" in tree, f"{name}: the call paths lack main and touch")


def record(path, program, options):
    into = "-" if "pipe" in path.name else path
    command = ["perf", "record", "-q", "-B", "-N", "-o", into, *options, program, program.parent / "pages"]
    with (open(path, "wb") if into == "-" else open(os.devnull, "wb")) as out:
        result = subprocess.run([str(c) for c in command], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        skip(f"perf records nothing here: {result.stderr.strip()[:200]}")


def build(program, *flags):
    subprocess.run([CC, "-g", "-O1", "-fno-omit-frame-pointer", "-pthread", *flags, "-o", program,
                    SOURCE / "tests/e2e/programs/touch-pages.c"], check=True)


def check_other_build(scratch, program, path):
    """The binary is replaced after the recording: names would be wrong."""
    build(program, "-DOTHER", "-O2")
    result = combine(scratch / "other.db", path)
    rows = variables(scratch / "other.db")
    expect(result.returncode == 0 and "build id differs" in result.stdout, "another build is not told")
    expect("first_array" not in rows, "another build gives names")


def check_inputs(scratch, path):
    bad = scratch / "bad.data"
    bad.write_bytes(path.read_bytes()[:3000])
    result = combine(scratch / "bad.db", bad)
    expect(result.returncode == 1 and str(bad) in result.stderr and "offset" in result.stderr,
           f"a truncated file: {result.stderr}")
    result = combine(scratch / "bad.db", bad, path)
    expect(result.returncode == 1 and "left out" in result.stderr, f"a truncated file beside a whole: {result.stderr}")
    expect(samples(variables(scratch / "bad.db"), "first_array") == 400, "the whole file beside it is not read")
    left = list(pathlib.Path(os.environ["TMPDIR"]).glob("locus-perf-*"))
    expect(not left, f"temporary directories stay: {left}")


def check_mixed(scratch, paths):
    result = combine(scratch / "both.db", *paths)
    expect(result.returncode == 0, f"several files: {result.stderr}")
    found = samples(variables(scratch / "both.db"), "first_array")
    expect(found == 400 * len(paths), f"several files at once: {found} faults on first_array")
    measured = run(BUILD / "hpcrun", "-e", "FAULTS@1", "-o", scratch / "own.m", scratch / "touch-pages",
                   scratch / "pages")
    if measured.returncode:
        return
    result = combine(scratch / "mixed.db", paths[0], scratch / "own.m")
    expect(result.returncode == 0, f"with a measurement directory: {result.stderr}")
    found = samples(variables(scratch / "mixed.db", "page-faults"), "first_array")
    expect(found == 400, f"beside a measurement directory: {found} faults on first_array")


def main():
    if not shutil.which("perf"):
        skip("perf is not installed (linux-perf)")
    with tempfile.TemporaryDirectory(prefix="locus-import-") as name:
        scratch = pathlib.Path(name)
        os.environ["TMPDIR"] = name
        (scratch / "pages").write_bytes(bytes(100 * 4096))
        program = scratch / "touch-pages"
        cases = {"faults": "-e page-faults -c 1 -d", "chains": "-e page-faults -c 1 -d -g",
                 "pipe": "-e page-faults -c 1 -d", "two": "-z -d -e page-faults/period=1/ -e cpu-clock/freq=100/"}
        build(program)
        for case, options in cases.items():
            path = scratch / f"{case}.data"
            record(path, program, options.split())
            result = combine(scratch / "one.db", path)
            expect(result.returncode == 0 and "no allocation log" in result.stdout, f"{case}: {result.stderr}")
            check_truth(case, scratch / "one.db", options)
        check_mixed(scratch, [scratch / "faults.data", scratch / "pipe.data"])
        check_inputs(scratch, scratch / "faults.data")
        record_ids(scratch, program)
        check_other_build(scratch, program, scratch / "ids.data")
    for failure in failures:
        print(f"FAIL: {failure}")
    sys.exit(1 if failures else 0)


def record_ids(scratch, program):
    """Build ids are recorded unless -B forbids it."""
    result = run("perf", "record", "-q", "-N", "--buildid-mmap", "-o", scratch / "ids.data", "-e", "page-faults", "-c",
                 "1", "-d", program, scratch / "pages")
    if result.returncode:
        run("perf", "record", "-q", "-N", "-o", scratch / "ids.data", "-e", "page-faults", "-c", "1", "-d", program,
            scratch / "pages")


main()
