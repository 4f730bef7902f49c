#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the maker of module tables: fuzz-modtab.sh SECONDS DIRECTORY. The corpus stays in DIRECTORY and grows from run
# to run; it begins with small ELF files. A crashing input is left there, its name is printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need clang

seconds=$1
directory=$2
corpus=$directory/modtab-corpus
mkdir -p "$corpus"

cat >"$scratch/seed.c" <<'END'
int numbers[40] = {1};
static char buffer[300];
__thread long counters[20];
int common_block[8] __attribute__((common));
int visible(int i) { int *p = __builtin_alloca(i); counters[i]++; p[0] = buffer[i & 7]++; return numbers[p[0]]; }
void _start(void) { visible(common_block[0]); }
END
# shellcheck disable=SC2054 # the commas are the linker's
flags=(-O1 -nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096)
clang "${flags[@]}" -shared -fPIC "$scratch/seed.c" -o "$corpus/seed-library"
clang "${flags[@]}" -no-pie "$scratch/seed.c" -Wl,--build-id -o "$corpus/seed-fixed"
clang "${flags[@]}" -pie -fPIE -s "$scratch/seed.c" -o "$corpus/seed-stripped"

clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$srcdir/src" "$srcdir/tests/fuzz/modtab-fuzz.c" "$srcdir"/src/fnbounds/*.c \
    "$srcdir"/src/base/{error,vec}.c -ldw -lelf -lZydis -o "$directory/modtab-fuzz" || skip "clang cannot build fuzzers here"

# The libraries themselves leak on some damaged files; what they leak ends with the worker process.
printf 'leak:libelf.so\nleak:libdw.so\n' >"$scratch/leaks"
export LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0
"$directory/modtab-fuzz" -max_len=20000 -max_total_time="$seconds" -rss_limit_mb=1500 -timeout=20 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$directory/modtab-" "$corpus" >"$scratch/log" 2>&1 ||
    fail "an input crashes the maker: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
grep -E 'stat::number_of_executed_units' "$scratch/log" || true
finish
