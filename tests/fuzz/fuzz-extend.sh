#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes what hpcprof --extend reads: fuzz-extend.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with
# databases of a small program, each with a measurement.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/database-common.sh"
fuzz_begin extend "$1" "$2"
fuzz_build "$srcdir/tests/fuzz/database-try.c"
mkdir "$scratch/database"
database_seeds "$scratch/database" "$corpus"
fuzz_run -max_len=60000 -malloc_limit_mb=256
finish
