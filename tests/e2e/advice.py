#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""hpcquery advice against programs/advice.c, which uses data in a way for which there is a rule, and does the same work after
a change as the rule advises: the rule is among the advice for that variable before, and for no variable after. What the
change gained on this machine is printed: nothing for blocks, near, division, arithmetic and forgotten, whose other half is
there to show no such advice, nor for bare and small, where the change is in how they are compiled and measured. Rules about
places need two nodes (numa.py), and shared-lines hardware that samples loads (replay.sh). No gain is beyond what waited for
memory at most."""
import csv
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
PROFILED_S, NATIVE_S = "1.2", "0.2"
LINES = {"pad", "shared-writes"}
MEMORY = {"stride", "chain", "irregular", "huge-pages", "split", "small-blocks"}
ARITHMETIC = {"resident", "execution"}
# case, variable before and its rule, rules that no variable has after the change; None: that is the one of the case before
CASES = (
    ("loop-order", "matrix", "loop-order", {"loop-order", "loop-blocks", "stride", "chain", "irregular"}),
    ("width", "matrix", "loop-order", None),
    ("hot-field", "particles", "split", {"split"}),
    ("blocks", "boxes[i]", "small-blocks", {"small-blocks"}),
    ("index", "table", "irregular", {"irregular", "stride", "chain", "huge-pages"}),
    ("pages", "pages", "huge-pages", {"huge-pages"}),
    ("list", "nodes", "chain", {"chain", "irregular", "stride"}),
    ("near", "near", "resident", ARITHMETIC),
    ("division", "factors", "execution", ARITHMETIC),
    ("arithmetic", "<compute>", "compute", {"compute"}),
    ("constants", "<compute>", "compute", None),
    ("mixed", "<compute>", "compute", None),
    ("small", "<small block>", "threshold", {"threshold"}),
    ("bare", "near", "debug-info", {"debug-info"}),
    ("counters", "together", "pad", {"pad"}),
    ("published", "published", "shared-writes", None),
    ("forgotten", "forgotten", "leak", {"leak"}),
    ("spinning", "<waiting>", "waiting", {"waiting"}),
    ("poles", "poles", "split", None),
    ("faults", "<kernel>", "page-faults", None),
    ("calls", "<kernel>", "system-calls", None),
)
# Before the change: what is set, and another program.
ENVIRONMENT = {"small": {"DATACENTRIC_SMALL_SITES": "0"}}
PROGRAM = {"bare": "advice-bare"}
# What the advice and its evidence have to name, before.
NAMED = {"faults": r"at first touches of buffer \(advice\.c:\d+\), \d+ blocks of 32\.0 MiB freed again", "calls": r"read_bytes \(advice\.c:\d+\)",
         "spinning": r"spin loop.*spin \(advice\.c:\d+\)",
         "poles": r"keep (?=.*\.energy\b)(?=.*\.width\b)(?=.*\.residue\b)[^:]* together, apart from the rest: of 64 bytes fetched its loops use 48\b",
         "hot-field": r"keep \.mass in an array of its own: of 64 bytes fetched its loops use 8\b",
         "published": r"one thread writes what others read",
         "mixed": r"spread over \d+ loops and functions, of which the largest, mix_\d\d, has [12]\.\d % of the time",
         "constants": r"not vectorized.*loop advice\.c:\d+",
         "arithmetic": r"integers and branches.*loop advice\.c:\d+", "division": r"it divides.*loop advice\.c:\d+"}
# What is said after it: there are sites, and so a variable.
AFTER = {"small": ("small[i]", "small-blocks")}
# what must not be said either, before: the time goes elsewhere
NOT_BEFORE = {"loop-order": MEMORY, "width": MEMORY, "near": MEMORY, "division": MEMORY, "list": ARITHMETIC, "index": ARITHMETIC, "pages": ARITHMETIC}


def run(*command, **environment):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120,
                            env={**os.environ, **environment})
    if result.returncode != 0:
        sys.exit(f"{command}: status {result.returncode}: {result.stderr}")
    return result.stdout


def advice_for(scratch, case, variant):
    """(variable, rule, evidence) of each piece of advice."""
    measurement, database = scratch / f"{case}.{variant}.m", scratch / f"{case}.{variant}.db"
    is_before = variant == "plain"
    program = scratch / (PROGRAM.get(case, "advice") if is_before else "advice")
    run(BUILD / "hpcrun", "-e", "EADDR@f1000", "-e", "FAULTS", "-e", "MEMLEAK", "-o", measurement, program, case, variant, PROFILED_S,
        **(ENVIRONMENT.get(case, {}) if is_before else {}))
    run(BUILD / "hpcprof", "-o", database, measurement)
    rows = list(csv.DictReader(io.StringIO(run(BUILD / "hpcquery", "advice", "--csv", "--top", "0", database))))
    check_gains(database, rows)
    return [(row["variable"], row["rule"], f"{row['advice']}; {row['evidence']}; {row['place']}") for row in rows]


def check_gains(database, rows):
    table = list(csv.DictReader(io.StringIO(run(BUILD / "hpcquery", "vars", "--all", "--csv", database))))
    program = 1 - sum(float(row["share"]) for row in table if row["variable"] == "<profiler>") / 100
    high = {(row["variable"], row["alloc_site"]): float(row.get("memory_high") or 0) for row in table}
    constants = [name for name, _ in high if name.endswith(" .rodata")]
    if constants:
        sys.exit(f"{database.name}: constants of the compiler's are a variable: {constants}")
    for row in rows:
        if row["rule"] not in MEMORY | ARITHMETIC | LINES:
            continue
        most = high[row["variable"], row["alloc_site"]] / program if row["rule"] not in ARITHMETIC else 100
        if not row["gain_at_most"] or not 0 <= float(row["gain_at_most"]) <= most + 1e-5:
            sys.exit(f"{database.name}: {row} gains more than the {most} % that waited for memory, or did not")


def check(scratch, case, variable, rule, forbidden):
    """Sentences about what is wrong."""
    wrong = []
    before = advice_for(scratch, case, "plain")
    after = advice_for(scratch, case, "changed") if forbidden is not None else []
    said = [evidence for name, found, evidence in before if (name, found) == (variable, rule)]
    if not said:
        wrong.append(f"{case}: no {rule} for {variable}, but {before}")
    elif not re.search(NAMED.get(case, ""), said[0]):
        wrong.append(f"{case}: {said[0]} does not say {NAMED[case]}")
    wrong += [f"{case}: {found} for {name}, before: {evidence}" for name, found, evidence in before
              if name == variable and found in NOT_BEFORE.get(case, ())]
    wrong += [f"{case}: {found} for {name}, after the change: {evidence}" for name, found, evidence in after if found in forbidden]
    if forbidden is None:
        print(f"{case}: {rule}", flush=True)
        return wrong
    if case in AFTER and not any((name, found) == AFTER[case] for name, found, _ in after):
        wrong.append(f"{case}: no {AFTER[case]} after the change, but {after}")
    ns = [float(run(scratch / "advice", case, variant, NATIVE_S)) for variant in ("plain", "changed")]
    print(f"{case}: {rule}; {ns[0]:.2f} ns a step, changed {ns[1]:.2f}: {ns[0] / ns[1]:.1f} times as fast; after: "
          f"{', '.join(f'{name} {found}' for name, found, _ in after) or 'nothing'}", flush=True)
    return wrong


def check_library(scratch, name, wanted):
    """Sentences about what is wrong with the advice for a library without debug information, with a name as it has."""
    folder = scratch / name.partition("/")[0]
    folder.mkdir()
    source, library = SOURCE / "tests/e2e/programs/blas.c", scratch / name
    run("gcc", "-O1", "-DLIBRARY", "-shared", "-fPIC", "-s", "-o", library, source)
    run("gcc", "-O1", "-g", "-o", folder / "program", source, library)
    run(BUILD / "hpcrun", "-e", "EADDR@f1000", "-o", folder / "m", folder / "program", PROFILED_S)
    run(BUILD / "hpcprof", "-o", folder / "database", folder / "m")
    rows = list(csv.DictReader(io.StringIO(run(BUILD / "hpcquery", "advice", "--csv", folder / "database"))))
    said = " ".join(row["advice"] for row in rows if row["rule"] in ("execution", "resident", "compute"))
    print(f"{name}: {said}", flush=True)
    return [] if re.search(wanted, said) else [f"{name}: {said or rows} does not say {wanted}"]


def is_possible(rule):
    """Whether this machine can show the rule; else says why not."""
    enabled = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if rule == "huge-pages" and (not enabled.exists() or "[never]" in enabled.read_text(encoding="ascii")):
        print("SKIP (part): huge pages are switched off here")
        return False
    if rule in LINES and len(os.sched_getaffinity(0)) < 2:
        print("SKIP (part): threads on one processor share no line")
        return False
    return True


def main():
    for event in ("EADDR@f1000", "FAULTS"):
        if subprocess.run([BUILD / "hpcrun", "--print-plan", "-e", event], capture_output=True, check=False).returncode:
            print(f"SKIP: {event} cannot be sampled here")
            return 77
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        for program, debug in (("advice", "-g"), ("advice-bare", "-g0")):
            run("gcc", "-O1", debug, "-Wall", "-pthread", "-o", scratch / program, SOURCE / "tests/e2e/programs/advice.c")
        for case, variable, rule, forbidden in CASES:
            if is_possible(rule):
                wrong += check(scratch, case, variable, rule, forbidden)
        wrong += check_library(scratch, "blas/libblas.so.3.9.9", "libblas.so.3.9.9 is the reference BLAS.*OpenBLAS")
        wrong += check_library(scratch, "openblas-pthread/libblas.so.3", "it is not vectorized")
    for sentence in wrong:
        print(f"FAIL: {sentence}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
