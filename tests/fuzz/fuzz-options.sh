#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes options, events and descriptions of machines: fuzz-options.sh SECONDS DIRECTORY, see fuzz-common.sh.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin options "$1" "$2"
fuzz_build "$srcdir"/tools/hpcrun/{control-options,fraction,hpcrun-options}.c
python3 "$srcdir/tests/fuzz/options-seeds.py" "$srcdir" "$corpus"
cd "$scratch"
fuzz_run -max_len=6000
finish
