#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes what reads module tables: fuzz-table.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with tables of
# small programs.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin table "$1" "$2"
fuzz_build
cat >"$scratch/seed.c" <<'END'
int numbers[40] = {1};
static char buffer[300];
__thread long counters[20];
int visible(int i) { counters[i]++; return numbers[buffer[i & 7]++]; }
void _start(void) { visible(1); }
END
clang -O1 -nostdlib -shared -fPIC "$scratch/seed.c" -o "$scratch/library"
clang -O1 -nostdlib -no-pie -Wl,--build-id "$scratch/seed.c" -o "$scratch/fixed"
clang -O1 -nostdlib -pie -fPIE -s "$scratch/seed.c" -o "$scratch/stripped"
for program in library fixed stripped; do
    table=$("$builddir/hpcfnbounds" --table "$scratch" "$scratch/$program" | head -n 1)
    cp "$table" "$corpus/seed-$program" || fail "no table of $program"
done
fuzz_run -max_len=8000
finish
