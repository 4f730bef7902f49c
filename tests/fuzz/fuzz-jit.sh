#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the readers of maps and jitdumps: fuzz-jit.sh SECONDS DIRECTORY. The corpus stays in DIRECTORY and grows from run
# to run; it begins with jit-corpus.hex. A crashing input is left there, its name is printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need clang xxd

seconds=$1
directory=$2
corpus=$directory/jit-corpus
mkdir -p "$corpus"
n=0
while read -r line; do
    n=$((n + 1))
    xxd -r -p <<<"$line" >"$corpus/seed-$n"
done <"$srcdir/tests/fuzz/jit-corpus.hex"
clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$srcdir/src" "-I$builddir" "$srcdir/tests/fuzz/jit-fuzz.c" "$srcdir/src/fmt/jit-names.c" \
    "$srcdir"/src/base/{error,vec}.c -o "$directory/jit-fuzz" || skip "clang cannot build fuzzers here"
"$directory/jit-fuzz" -max_len=2000 -max_total_time="$seconds" -rss_limit_mb=1000 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$directory/jit-" "$corpus" >"$scratch/log" 2>&1 ||
    fail "an input crashes: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
grep -E 'stat::number_of_executed_units' "$scratch/log" || true
finish
