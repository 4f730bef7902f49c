#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the reader of debug information and machine code: fuzz-structure.sh SECONDS DIRECTORY, see fuzz-common.sh. The
# corpus begins with small programs.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin structure "$1" "$2"
fuzz_build

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
fuzz_run -max_len=30000
finish
