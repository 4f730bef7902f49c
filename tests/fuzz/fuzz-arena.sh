#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the collector, which reads what a process has left in its arena: fuzz-arena.sh SECONDS DIRECTORY, see
# fuzz-common.sh. The corpus begins with arenas of the tests' maker.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin arena "$1" "$2"

shared=("$srcdir"/src/fmt/*.c "$srcdir"/src/sampling/abi/*.c "$srcdir"/src/base/{error,spill,vec}.c -ljansson)
! grep -q 'HAVE_LIBZSTD 1' "$builddir/config.h" || shared+=(-lzstd)
if clang -std=gnu17 -D_GNU_SOURCE -I"$srcdir/src" -I"$srcdir/tests/unit" -I"$builddir" "$srcdir/tests/fuzz/arena-seeds.c" \
    "$srcdir/tests/unit/arena-maker.c" "${shared[@]}" -lcmocka -o "$scratch/seeds" 2>"$scratch/seeds.err"; then
    "$scratch/seeds" "$corpus"
else
    skip_part "no seeds without cmocka"
fi
fuzz_build "${shared[@]}"
fuzz_run -max_len=16000
finish
