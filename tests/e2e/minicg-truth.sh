#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo's mini-app against the truth that it measures itself: the two costly variables are the first two of the
# report, by name, and their shares lie within 8 points of the truth; five runs, then at -O3 and with clang.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
for tool in hpcrun hpcprof hpcquery; do
    [ -x "$builddir/$tool" ] || skip "$tool has not been built"
done
need python3

programs=$srcdir/tests/e2e/programs/minicg
readonly tolerance=8
export OMP_NUM_THREADS=2

# build NAME COMPILER...: the mini-app as users build it; 1 when this compiler has no OpenMP.
build() {
    local name=$1
    shift
    "$@" -g -fopenmp -o "$scratch/$name" "$programs"/*.c -lm 2>"$scratch/err"
}

# check PROGRAM RUN: one measured run compared with the truth of PROGRAM.
check() {
    local program=$1 run=$2
    rm -rf "$scratch/m" "$scratch/db"
    expect_status 0 "$builddir/hpcrun" -o "$scratch/m" "$scratch/$program"
    expect_status 0 "$builddir/hpcprof" -o "$scratch/db" "$scratch/m"
    expect_status 0 "$builddir/hpcquery" vars --csv "$scratch/db"
    python3 - "$scratch/out" "$scratch/$program.truth" "$tolerance" <<'PYTHON' || fail "$program, run $run"
import csv
import re
import sys

rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
lines = open(sys.argv[2], encoding="utf-8").read().split("variable,class,share,phase_share\n")[1].splitlines()
truth = [line.split(",") for line in lines if line.count(",") == 3]
wrong = False
named = [r for r in rows if r["class"] in ("heap", "static")]
ranks = {id(r): i for i, r in enumerate(sorted(named, key=lambda r: -float(r["share"])))}
for rank, (name, kind, share, phase) in enumerate(truth):
    found = [r for r in named if re.search(rf"(^|[>.]){name}$", r["variable"])]
    measured = sum(float(r["share"]) for r in found)
    low, high = float(share) - float(sys.argv[3]), float(share) + float(sys.argv[3])
    print(f"{name}: truth {share} (phase {phase}), measured {measured:.1f}")
    wrong |= not low <= measured <= high
    wrong |= rank < 2 and (not found or min(ranks[id(r)] for r in found) != rank or found[0]["class"] != kind)
sys.exit(wrong)
PYTHON
}

# compare PROGRAM RUNS: the truth of a program, measured without a profiler, and so many measured runs.
compare() {
    "$scratch/$1" --truth >"$scratch/$1.truth"
    local run
    for run in $(seq "$2"); do
        check "$1" "$run"
    done
}

build gcc-o2 gcc -O2 || skip "gcc cannot build OpenMP programs here"
compare gcc-o2 5
build gcc-o3 gcc -O3 && compare gcc-o3 1
if command -v clang >/dev/null && build clang-o2 clang -O2; then
    compare clang-o2 1
else
    skip_part "clang cannot build OpenMP programs here (libomp-dev)"
fi
finish
