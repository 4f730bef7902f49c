#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the reader of the self-test's cache: fuzz-skid.sh SECONDS DIRECTORY, see fuzz-common.sh.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin skid "$1" "$2"
fuzz_build
fuzz_run -max_len=600
finish
