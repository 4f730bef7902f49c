# SPDX-License-Identifier: BSD-3-Clause
"""How compiled loops walk through memory, as their recipes say: gcc and clang, -O2 and -O3, against what the source says.
The accesses in the loops of each function are checked; what comes before and after an unrolled loop is straight code."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "golden" / "stride-kernels.c"
LISTER = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "tests" / "golden" / "list-strides"

# function: ({walks that must be there}, {walks that may be there, as in the rest of a loop}, is the walk also a chain?)
# At -O1 only counted_columns is checked, for how its loops are laid out. A walk: "KIND DIRECTION CONTRAST", the sign of the stride, 0 where the code does not say how far it goes, and whether places in lines have a meaning; or "irregular".
KERNELS = {
    "chain": ({"strided + yes"}, {"irregular"}, True),
    "triad": ({"strided + yes"}, {"irregular"}, False),
    "backwards": ({"strided - yes"}, {"irregular"}, False),
    "column": ({"strided + no"}, {"irregular"}, True),
    "stepped": ({"strided 0 no"}, {"derived 0 no", "strided + yes", "irregular"}, True),
    "counted_columns": ({"strided 0 no"}, {"derived 0 no", "irregular", "unknown"}, False),
    "strided_x": ({"strided + yes"}, {"irregular"}, True),
    "wide_x": ({"strided + no"}, {"irregular"}, True),
    "apart": ({"strided + no"}, {"irregular"}, False),
    "indexed": ({"strided + yes", "irregular"}, set(), True),
    "indexed_sums": ({"strided + yes", "irregular"}, set(), True),
    "chase": ({"chained"}, set(), False),
    "chase_ahead": ({"chained"}, set(), False),
    "search": ({"chained"}, set(), False),
    "chase_index": ({"chained", "irregular"}, set(), False),
    "by_pointer": ({"strided + yes", "irregular"}, set(), False),
    "update": ({"irregular"}, set(), False),
    "scatter": ({"irregular"}, set(), False),
    "member": ({"strided + yes"}, {"irregular"}, False),
    "two_steps": ({"derived + yes"}, set(), True),
    "rotated": ({"strided + yes"}, set(), False),
    "short_index": (set(), {"strided + yes", "derived + yes", "irregular"}, True),
}


def walk(words):
    _, _, kind, stride, slots, firsts, *_ = words
    if kind not in ("strided", "derived"):
        return "irregular" if kind == "stored" else kind
    return f"{kind} {'+' if int(stride) > 0 else '-' if int(stride) < 0 else '0'} {'yes' if int(firsts) < int(slots) else 'no'}"


def check(compiler, level, folder):
    library = pathlib.Path(folder) / f"{compiler}{level}.so"
    subprocess.run([compiler, level, "-w", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    lines = subprocess.run([LISTER, library], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    failures = []
    for name, (needed, allowed, is_chain) in KERNELS.items():
        if level == "-O1" and name != "counted_columns":
            continue
        own = [row for row in rows if row[0] == name and row[1] == "memory" and row[2] != "fixed"]
        seen = {walk(row) for row in own}
        if not needed <= seen <= needed | allowed:
            failures.append(f"{name}: {sorted(seen)}, expected {sorted(needed)}")
        if level == "-O2" and is_chain != any("m" in row[7] for row in own):
            failures.append(f"{name}: {'no' if is_chain else 'a'} chain was seen")
        links = {"s" in row[7] for row in own if row[2] == "irregular" and "m" in row[7]}
        if name.startswith("indexed") and links and links != {name == "indexed"}:
            failures.append(f"{name}: {'one chain of links was' if True in links else 'several chains were'} seen")
        if name == "short_index" and not seen & {"strided + yes", "derived + yes"}:
            failures.append(f"{name}: {sorted(seen)}")
        if any(row[2] != "fed" for row in rows if row[0] == name and row[1] == "dependent"):
            failures.append(f"{name}: an instruction without access has another pattern than that")
        if name == "scatter" and not any(row[2] == "stored" for row in own):
            failures.append(f"{name}: no store was seen")
        by_register = [row for row in own if walk(row) in ("strided 0 no", "derived 0 no")]
        for head in {row[8] for row in by_register}:  # the copies of an unrolled loop share a turn's step
            steps = [row for row in by_register if row[8] == head]
            accesses = {row[9] for row in steps}
            if any(int(row[10]) == 0 for row in steps):
                failures.append(f"{name}: the step of a walk by a register is not known: {steps}")
            if name == "stepped" and any(not len(accesses) <= int(row[11]) < 2 * len(accesses) for row in steps):
                failures.append(f"{name}: {len(accesses)} accesses in a turn are others: {steps}")
        pools = {row[8] for row in own if row[2] == "irregular"}
        if name == "indexed" and len(pools) > 2:  # of the unrolled loop, and of the rest
            failures.append(f"{name}: copies of one access are in {len(pools)} pools")
        strides = {abs(int(row[3])) for row in own if row[2] in ("strided", "derived")}
        if name in ("chain", "triad", "backwards", "member") and any(stride % 8 for stride in strides):
            failures.append(f"{name}: strides {sorted(strides)}")
    return [f"{compiler} {level}: {failure}" for failure in failures]


def main():
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    if not compilers:
        print("SKIP: neither gcc nor clang is installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        failures = [failure for compiler in compilers for level in ("-O1", "-O2", "-O3")
                    for failure in check(compiler, level, folder)]
    for failure in failures:
        print(f"FAIL: {failure}")
    print(f"{len(KERNELS)} kernels by {', '.join(compilers)}")
    sys.exit(1 if failures else 0)


main()
