#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the parser of perf records and rings: fuzz-record.sh SECONDS DIRECTORY, see fuzz-common.sh.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin record "$1" "$2"
fuzz_build
fuzz_run -max_len=2048
finish
