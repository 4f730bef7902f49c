# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091
# What hpcstruct costs against a bare walk over every entry and line of the same debug information. Goal: at most 3 times
# its CPU time. STRUCTURE_BENCH names the program; else Debian's python3.11-dbg, else hpcprof as built here.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
walk=$builddir/tests/bench/structure-walk
[ -x "$walk" ] || skip "structure-walk has not been built"
program=${STRUCTURE_BENCH:-/usr/bin/python3.11d}
[ -e "$program" ] || program=$builddir/hpcprof
for _ in 1 2 3 4 5; do
    "$walk" "$program" | awk '{ print $1 }' >>"$scratch/walk"
    "$builddir/hpcstruct" --nocache -q -j1 --time -o "$scratch/out" "$program" 2>"$scratch/time"
    awk '{ print $2 + $5, $8 }' "$scratch/time" >>"$scratch/own"
done
"$walk" "$program"
sort -n "$scratch/walk" | sed -n 3p >"$scratch/walk-median"
sort -n "$scratch/own" | sed -n 3p | awk -v walk="$(cat "$scratch/walk-median")" -v program="$program" \
    '{ printf "%s: hpcstruct %.2f s CPU, %d MiB; bare walk %.2f s; ratio %.2f (goal 3)\n", program, $1, $2, walk, $1 / walk }'
finish
