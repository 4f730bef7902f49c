#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the making of recipes: fuzz-recipe.sh SECONDS DIRECTORY. The corpus stays in DIRECTORY and grows from run to
# run; it begins with pieces of a real program's code. A crashing input is left there, its name is printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need clang objcopy

seconds=$1
directory=$2
corpus=$directory/recipe-corpus
mkdir -p "$corpus"

clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$srcdir/src" "$srcdir/tests/fuzz/recipe-fuzz.c" \
    "$srcdir"/src/fnbounds/*.c "$srcdir"/src/base/{error,vec}.c \
    -ldw -lelf -lZydis -o "$directory/recipe-fuzz" || skip "clang cannot build fuzzers here"

objcopy -O binary -j .text "$directory/recipe-fuzz" "$scratch/text"
for piece in {0..63}; do
    dd if="$scratch/text" of="$corpus/seed-$piece" bs=1024 skip=$((piece * 7)) count=1 status=none
done

"$directory/recipe-fuzz" -max_len=2048 -max_total_time="$seconds" -rss_limit_mb=1500 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$directory/recipe-" "$corpus" >"$scratch/log" 2>&1 ||
    fail "an input breaks the recipes: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
grep -E 'stat::number_of_executed_units' "$scratch/log" || true
finish
