#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the reader of debug information and machine code: fuzz-structure.sh SECONDS DIRECTORY. The corpus stays in
# DIRECTORY and grows from run to run; it begins with small programs. A crashing input is left there, its name is printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need clang

seconds=$1
directory=$2
corpus=$directory/structure-corpus
mkdir -p "$corpus"

cat >"$scratch/seed.c" <<'END'
int table[40], sum;
static inline __attribute__((always_inline)) int add(const int *p, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += p[i];
    return s;
}
int visible(int n)
{
    for (int i = 0; i < n; i++)
        switch (table[i]) {
        case 0: sum++; break;
        case 1: sum += n; break;
        case 2: sum -= i; break;
        case 3: sum ^= i; break;
        case 4: sum |= i; break;
        default: sum += add(table, i);
        }
    return sum;
}
void _start(void) { visible(table[0]); __builtin_trap(); }
END
# shellcheck disable=SC2054 # the commas are the linker's
flags=(-nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -Wl,--build-id)
clang -g -O1 "${flags[@]}" -no-pie "$scratch/seed.c" -o "$corpus/seed-fixed"
clang -g -gdwarf-4 -O2 "${flags[@]}" -shared -fPIC "$scratch/seed.c" -o "$corpus/seed-4"
gcc -g -O2 "${flags[@]}" -shared -fPIC "$scratch/seed.c" -o "$corpus/seed-gcc" 2>/dev/null || true
clang -O1 "${flags[@]}" -pie -fPIE -s "$scratch/seed.c" -o "$corpus/seed-stripped"

clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$srcdir/src" "$srcdir/tests/fuzz/structure-fuzz.c" "$srcdir"/src/structure/*.c "$srcdir"/src/fnbounds/*.c \
    "$srcdir"/src/base/{error,vec}.c -ldw -lelf -lZydis -ldl -lpthread -o "$directory/structure-fuzz" ||
    skip "clang cannot build fuzzers here"

# The libraries themselves leak on some damaged files; what they leak ends with the worker process.
printf 'leak:libelf.so\nleak:libdw.so\n' >"$scratch/leaks"
export LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0
"$directory/structure-fuzz" -max_len=30000 -max_total_time="$seconds" -rss_limit_mb=2000 -timeout=20 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$directory/structure-" "$corpus" >"$scratch/log" 2>&1 ||
    fail "an input crashes the reader: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
grep -E 'stat::number_of_executed_units' "$scratch/log" || true
finish
