# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the fuzzers of src/sampling/abi; behind tests/lib/common.sh.
# shellcheck disable=SC2154 # srcdir and scratch come from there

# fuzz_abi NAME SECONDS DIRECTORY: NAME-fuzz.c, from the inputs of NAME-corpus.hex on.
fuzz_abi() {
    local name=$1 seconds=$2 directory=$3
    local corpus=$directory/$name-corpus
    need clang python3
    mkdir -p "$corpus"
    python3 -c 'import pathlib, sys
for number, line in enumerate(open(sys.argv[1], encoding="ascii")):
    pathlib.Path(sys.argv[2], f"seed-{number}").write_bytes(bytes.fromhex(line))' \
        "$srcdir/tests/fuzz/$name-corpus.hex" "$corpus"

    clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
        -I"$srcdir/src" "$srcdir/tests/fuzz/$name-fuzz.c" "$srcdir"/src/sampling/abi/*-sig.c \
        -o "$directory/$name-fuzz" || skip "clang cannot build fuzzers here"

    "$directory/$name-fuzz" -max_len=2048 -max_total_time="$seconds" -rss_limit_mb=1500 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$directory/$name-" "$corpus" >"$scratch/log" 2>&1 ||
        fail "an input breaks the decoder: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
    grep -E 'stat::number_of_executed_units' "$scratch/log" || true
}
