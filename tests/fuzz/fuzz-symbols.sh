#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes what reads symbol tables and DWARF: fuzz-symbols.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with
# small programs of several compilers' debug information.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin symbols "$1" "$2"
fuzz_build

cat >"$scratch/seed.c" <<'END'
struct grid { double *cells; int n; } grid;
static int numbers[40] = {1};
__thread long counters[20];
void *malloc(unsigned long n) { static char heap[4096]; return heap + n; }
static inline __attribute__((always_inline)) double *cells_of(int n) { return malloc(8ul * n); }
__attribute__((noinline)) int visit(int i) { volatile int near[8]; near[i & 7] = numbers[i]; counters[i]++; return near[1]; }
void _start(void) { grid.cells = cells_of(visit(3)); double *other = malloc(64); other[1] = visit(4); }
END
# shellcheck disable=SC2054 # the commas are the linker's
flags=(-O1 -nostdlib -fno-builtin -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -Wl,--build-id=none)
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    for version in 4 5; do
        "$compiler" "${flags[@]}" -gdwarf-$version -no-pie "$scratch/seed.c" -o "$corpus/seed-$compiler-$version"
        "$compiler" "${flags[@]}" -gdwarf-$version -fPIC -shared "$scratch/seed.c" \
            -o "$corpus/seed-$compiler-$version-library"
    done
    "$compiler" "${flags[@]}" -g0 -no-pie "$scratch/seed.c" -o "$corpus/seed-$compiler-bare"
done
fuzz_run -max_len=20000
finish
