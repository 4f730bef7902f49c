#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the companion: its socket, the arenas that programs write, and what becomes of its workers: fuzz-companion.sh
# SECONDS DIRECTORY, see fuzz-common.sh.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin companion "$1" "$2"
fuzz_build -Wl,--wrap=fork,--wrap=waitpid "$srcdir"/tools/hpcrun/{allocator-name,companion*,fraction,topology}.c
python3 "$srcdir/tests/fuzz/companion-seeds.py" "$corpus"
fuzz_run -max_len=6000
finish
