#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Slots of a stack frame are named by what the code puts there, where debug information is silent: a parameter by its name,
# values that the compiler puts aside as such. What remains is "stack of" the function: what calls and returns themselves
# take.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "the code of other machines is not read"
command -v gcc >/dev/null || skip "gcc is not installed"
need python3
cd "$scratch"

for level in -O2 -O3; do
    gcc -g "$level" -o program "$srcdir/tests/e2e/programs/names-stack.c"
    rm -rf m db
    expect_status 0 "$builddir/hpcrun" -o m ./program
    expect_status 0 "$builddir/hpcprof" -o db m
    expect_status 0 "$builddir/hpcquery" vars --csv db
    python3 - "$scratch/out" <<'PYTHON' || fail "gcc $level"
import csv
import sys

shares = {}
for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")):
    shares[row["variable"]] = shares.get(row["variable"], 0) + float(row["share"])
least = {"fill()::seed": 8, "spill slot in mix": 3}
wrong = [f"{name} has {shares.get(name, 0):.1f} %" for name, share in least.items() if shares.get(name, 0) < share]
wrong += [f"{name} has {share:.1f} %" for name, share in shares.items() if name.startswith("stack of") and share > 5]
print("\n".join(wrong))
sys.exit(bool(wrong))
PYTHON
done
finish
