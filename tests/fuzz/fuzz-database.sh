#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes what hpcprof and hpcquery read: fuzz-database.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with
# measurements of a small program, and with their databases.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/database-common.sh"
fuzz_begin database "$1" "$2"
fuzz_build "$srcdir/tests/fuzz/database-try.c"
mkdir "$scratch/extend"
database_seeds "$corpus" "$scratch/extend"
fuzz_run -max_len=30000 -malloc_limit_mb=256
finish
