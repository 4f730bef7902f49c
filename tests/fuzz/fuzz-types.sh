#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the model of types and locals: fuzz-types.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with small
# programs of gcc and clang in DWARF 4 and 5.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin types "$1" "$2"
fuzz_build

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
fuzz_run -max_len=24000
finish
