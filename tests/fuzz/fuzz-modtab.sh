#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes the maker of module tables: fuzz-modtab.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with small
# ELF files.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin modtab "$1" "$2"
fuzz_build

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
fuzz_run -max_len=20000
finish
