#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes hpcrun --status: arenas that are looked at, and companions that answer: fuzz-status.sh SECONDS DIRECTORY, see
# fuzz-common.sh. The corpus begins with the arenas of fuzz-arena.sh.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin status "$1" "$2"
fuzz_build "$srcdir/tests/fuzz/arena-fill.c" "$srcdir"/tools/hpcrun/status-{find,name,print}.c
mkdir "$scratch/arenas"
python3 "$srcdir/tests/fuzz/corpus.py" unpack "$srcdir/tests/fuzz/arena-corpus.hex" "$scratch/arenas"
for arena in "$scratch"/arenas/*; do
    { printf '\0' && cat "$arena"; } >"$corpus/seed-arena-$(basename "$arena")"
done
python3 "$srcdir/tests/fuzz/companion-seeds.py" "$scratch" "$corpus"
fuzz_run -max_len=16000
finish
