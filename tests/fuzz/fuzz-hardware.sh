#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the decoders of SPE packets and IBS registers: fuzz-hardware.sh SECONDS DIRECTORY. The corpus stays in DIRECTORY
# and grows from run to run; it begins with hardware-corpus.hex. A crashing input is left there, its name is printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/abi-common.sh"
fuzz_abi hardware "$1" "$2"
finish
