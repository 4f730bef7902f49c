#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What make install puts into a prefix works from there, without the build directory: tools, library, man pages.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need gcc make

prefix=$scratch/prefix
expect_status 0 make -s -C "$builddir" install prefix="$prefix"
[ -e "$prefix/lib/locus/libhpcrun.so" ] || fail "no $prefix/lib/locus/libhpcrun.so"
[ ! -e "$builddir/libhpcrun-static.o" ] || [ -e "$prefix/lib/locus/libhpcrun-static.o" ] ||
    fail "no $prefix/lib/locus/libhpcrun-static.o"
for tool in hpcrun hpcprof hpcquery hpcproftt; do
    expect_status 0 "$prefix/bin/$tool" --version
    expect_text "$scratch/out" "^$tool \(Locus\) [0-9.]+$"
    [ -s "$prefix/share/man/man1/$tool.1" ] || fail "no man page of $tool"
    if strings -a "$prefix/bin/$tool" | grep -q "$scratch"; then
        fail "$tool holds the path of the scratch directory"
    fi
done
expect_status 0 "$prefix/bin/hpcrun" --machine "$(unpack_golden machines/knights-landing)" --print-plan -e PEBS
expect_text "$scratch/out" "^description=Loads by data address \(the installed event table"
if find "$prefix" -type f ! -path '*/bin/*' ! -path '*/include/*' ! -path '*/lib/*' ! -path '*/share/*' | grep .; then
    fail "files outside bin, include, lib and share were installed"
fi

cat >"$scratch/spin.c" <<'END'
#include <stdlib.h>
int main(void)
{
    size_t n = 1 << 24;
    unsigned *counts = calloc(n, sizeof *counts), at = 1;
    for (int i = 0; i < 20000000; i++)
        counts[(at = at * 1664525u + 1013904223u) >> 8]++;
    return counts[1] == 12345;
}
END
gcc -O1 -g -o "$scratch/spin" "$scratch/spin.c"
cd "$scratch"
mv "$prefix" "$scratch/moved"
expect_status 0 env -u LOCUS_SRCDIR -u LOCUS_BUILDDIR "$scratch/moved/bin/hpcrun" --report -o m "$scratch/spin"
expect_text "$scratch/err" '% .* counts '
finish
