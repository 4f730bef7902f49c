# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the fuzzers, behind tests/lib/common.sh. The corpus of a fuzzer stays in DIRECTORY and grows from run to run;
# a crashing input is left there, and its name is printed.
# shellcheck disable=SC2154 # srcdir, builddir and scratch come from common.sh

# fuzz_begin NAME SECONDS DIRECTORY: sets name, seconds, directory and corpus; NAME-corpus.hex, where there is one, is
# the beginning of the corpus.
fuzz_begin() {
    name=$1 seconds=$2 directory=$3 corpus=$3/$1-corpus
    need clang python3
    mkdir -p "$corpus"
    [ ! -e "$srcdir/tests/fuzz/$name-corpus.hex" ] ||
        python3 "$srcdir/tests/fuzz/corpus.py" unpack "$srcdir/tests/fuzz/$name-corpus.hex" "$corpus"
}

# fuzz_build SOURCE... -LIBRARY...: the target NAME-fuzz.c with the sources, under sanitizers.
fuzz_build() {
    clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
        -I"$srcdir/src" -I"$builddir" "$srcdir/tests/fuzz/$name-fuzz.c" "$@" -o "$directory/$name-fuzz" ||
        skip "clang cannot build fuzzers here"
}

# fuzz_run OPTION...: for the time given to fuzz_begin.
fuzz_run() {
    "$directory/$name-fuzz" -max_total_time="$seconds" -rss_limit_mb=2500 -timeout=20 -verbosity=0 \
        -print_final_stats=1 -artifact_prefix="$directory/$name-" "$@" "$corpus" >"$scratch/log" 2>&1 ||
        fail "an input breaks $name: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
    grep -E 'stat::number_of_executed_units' "$scratch/log" || true
}
