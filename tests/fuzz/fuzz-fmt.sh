#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the readers of src/fmt: fuzz-fmt.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with the golden
# files and their JSON.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin fmt "$1" "$2"
fuzz_build

for input in "$(unpack_golden formats)"/*/input.*; do
    case=$(basename "$(dirname "$input")")
    cp "$input" "$corpus/seed-$case"
    "$builddir/hpcproftt" --json "$input" >"$corpus/seed-$case.json"
done

python3 -c 'import pathlib, sys; sys.path.insert(0, sys.argv[1]); import v4; v4.write_small(pathlib.Path(sys.argv[2]))' \
    "$srcdir/tests/lib" "$scratch/v4"
for input in "$scratch"/v4/*.db; do
    cp "$input" "$corpus/seed-v4-$(basename "$input")"
done
fuzz_run -max_len=12000
finish
