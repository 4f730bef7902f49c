#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the collector, which reads what a process has left in its arena: fuzz-arena.sh SECONDS DIRECTORY, see
# fuzz-common.sh. The corpus begins with arenas of the tests' maker.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin arena "$1" "$2"

fuzz_build "$srcdir/tests/fuzz/arena-fill.c"
if clang "${fuzz_flags[@]}" -fsanitize=$fuzz_sanitizers -I"$srcdir/tests/unit" "$srcdir"/tests/fuzz/arena-seeds.c \
    "$srcdir/tests/unit/arena-maker.c" "${fuzz_libraries[@]}" -lcmocka -o "$scratch/seeds" \
    2>"$scratch/seeds.err"; then
    ASAN_OPTIONS=detect_leaks=0 "$scratch/seeds" "$corpus"
else
    skip_part "no seeds without cmocka"
fi
fuzz_run -max_len=16000
finish
