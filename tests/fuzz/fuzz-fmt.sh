#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the readers of src/fmt: fuzz-fmt.sh SECONDS DIRECTORY. The corpus stays in DIRECTORY and grows from run to run;
# it begins with the golden files and their JSON. A crashing input is left there, its name is printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need clang

seconds=$1
directory=$2
corpus=$directory/fmt-corpus
mkdir -p "$corpus"

for input in "$srcdir"/tests/golden/*/input.*; do
    case=$(basename "$(dirname "$input")")
    cp "$input" "$corpus/seed-$case"
    "$builddir/hpcproftt" --json "$input" >"$corpus/seed-$case.json"
done

python3 -c 'import pathlib, sys; sys.path.insert(0, sys.argv[1]); import v4; v4.write_small(pathlib.Path(sys.argv[2]))' \
    "$srcdir/tests/lib" "$scratch/v4"
for input in "$scratch"/v4/*.db; do
    cp "$input" "$corpus/seed-v4-$(basename "$input")"
done

libraries=(-ljansson)
! grep -q 'HAVE_LIBZSTD 1' "$builddir/config.h" || libraries+=(-lzstd)
clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$srcdir/src" "$srcdir/tests/fuzz/fmt-fuzz.c" \
    "$srcdir"/src/fmt/{any,fate,file,hpcrun,json,log,metric,objects,perf,spread,trace,v4,wire}*.c \
    "$srcdir"/src/sampling/abi/*.c "$srcdir"/src/base/{error,spill,vec}.c "-I$builddir" "${libraries[@]}" -o "$directory/fmt-fuzz" || skip "clang cannot build fuzzers here"

"$directory/fmt-fuzz" -max_len=12000 -max_total_time="$seconds" -rss_limit_mb=1500 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$directory/fmt-" "$corpus" >"$scratch/log" 2>&1 ||
    fail "an input crashes a reader: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
grep -E 'stat::number_of_executed_units' "$scratch/log" || true
finish
