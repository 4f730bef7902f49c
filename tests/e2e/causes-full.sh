#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# All loops of programs/causes against what the report says of them, by both compilers at two optimisation levels, and
# with the vectors of AVX2 where the processor has them; five runs each.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3 gcc clang

builds=()
for compiler in gcc clang; do
    builds+=(--build "$compiler -O2" --build "$compiler -O3")
    if grep -qw avx2 /proc/cpuinfo; then
        builds+=(--build "$compiler -O3 -march=x86-64-v3")
    else
        skip_part "the processor has no AVX2"
    fi
done
status=0
python3 "$srcdir/tests/e2e/causes.py" --all --runs 5 "${builds[@]}" || status=$?
[ "$status" != 77 ] || skip "see above"
[ "$status" = 0 ] || fail "the report is wrong on some loops"
finish
