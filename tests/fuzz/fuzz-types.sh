#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the model of types and locals: fuzz-types.sh SECONDS DIRECTORY. The corpus stays in DIRECTORY and grows from run
# to run; it begins with small programs of gcc and clang in DWARF 4 and 5. A crashing input is left there, its name is
# printed.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need clang

seconds=$1
directory=$2
corpus=$directory/types-corpus
mkdir -p "$corpus"

cat >"$scratch/seed.c" <<'END'
struct vector { double x, y, z; };
typedef struct particle { struct vector at; unsigned a : 3, b : 9; union { int i; double d; } u; struct particle *next;
    int m[3][4]; } particle;
struct message { int n; struct vector items[]; };
static particle table[9];
__thread struct vector own;
struct message *message;
static inline double inner(particle *p, int n) { struct vector local[4]; local[n & 3] = p->at; own = local[n & 1];
    return p->next->at.x; }
int use(particle *p, int n) { int vla[n]; vla[0] = p->a; return (int)inner(p, n) + vla[0] + message->n + table[n].b; }
void _start(void) { use(table, 3); }
END
# shellcheck disable=SC2054 # the commas are the linker's
flags=(-nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -no-pie -fno-stack-protector)
for version in 4 5; do
    clang "${flags[@]}" -O0 -gdwarf-$version "$scratch/seed.c" -o "$corpus/seed-clang-$version"
    ! command -v gcc >/dev/null ||
        gcc "${flags[@]}" -O2 -gdwarf-$version "$scratch/seed.c" -o "$corpus/seed-gcc-$version"
done

clang -g -O1 -std=gnu17 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -I"$srcdir/src" "$srcdir/tests/fuzz/types-fuzz.c" \
    "$srcdir"/src/structure/{demangle,locals,alloc-name-dwarf}.c "$srcdir"/src/structure/{symbols,types}*.c \
    "$srcdir"/src/fnbounds/modtab-{make,check,height,rule}*.c "$srcdir"/src/base/{error,vec}.c \
    -ldw -lelf -lZydis -ldl -o "$directory/types-fuzz" || skip "clang cannot build fuzzers here"

# The libraries themselves leak on some damaged files; what they leak ends with the worker process.
printf 'leak:libelf.so\nleak:libdw.so\n' >"$scratch/leaks"
export LSAN_OPTIONS=suppressions=$scratch/leaks:print_suppressions=0
"$directory/types-fuzz" -max_len=24000 -max_total_time="$seconds" -rss_limit_mb=1500 -timeout=20 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$directory/types-" "$corpus" >"$scratch/log" 2>&1 ||
    fail "an input crashes the model of types: $(grep -E 'Test unit written|SUMMARY' "$scratch/log")"
grep -E 'stat::number_of_executed_units' "$scratch/log" || true
finish
