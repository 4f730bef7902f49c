# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2154
# A program that is linked with 30 libraries, loads 30 more and works in one of each: with an empty cache, tables are made
# of these two and of what every process starts with, and of hardly any other. The path of the one block that a library allocates
# is complete all the same: it waits for the table.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need gcc
hpcprof=$builddir/hpcprof
hpcquery=$builddir/hpcquery
export XDG_CACHE_HOME=$scratch/cache
mkdir "$XDG_CACHE_HOME" "$scratch/lib"
cd "$scratch"

cat >part.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) double *take(long n) { double *block = malloc(n * sizeof *block); block[0] = 0; return block; }
double work(long n)
{
    double *block = take(n), sum = 0;
    for (int turn = 0; turn < 40; turn++)
        for (long i = 0; i < n; i++) {
            block[i] += turn;
            sum += block[i * 7919 % n];
        }
    return sum;
}
END
cat >main.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
double work_7(long n);
int main(void)
{
    double (*plugin)(long) = NULL;
    for (int i = 30; i < 60; i++) {
        char name[64];
        snprintf(name, sizeof name, "lib/libpart%d.so", i);
        void *library = dlopen(name, RTLD_NOW);
        if (!library)
            return 1;
        snprintf(name, sizeof name, "work_%d", i);
        if (i == 41)
            plugin = (double (*)(long))dlsym(library, name);
    }
    return !(work_7(1 << 20) + plugin(1 << 20) > 0);
}
END
linked=()
for i in $(seq 0 59); do
    # the first 16 digits of the build id are the name of the table
    gcc -O2 -g -fomit-frame-pointer -fPIC -shared "-Dwork=work_$i" -Wl,--build-id=0x"$(printf '%016d%024d' "$((i + 1))" 0)" \
        -o "lib/libpart$i.so" part.c
    [ "$i" -lt 30 ] && linked+=("-lpart$i")
done
gcc -O2 -g -o program main.c -Llib -Wl,--no-as-needed "${linked[@]}" -Wl,-rpath,"$PWD/lib" -ldl

"$hpcrun" -e EADDR -o measurement ./program 2>run.err || fail "the program failed: $(cat run.err)"
n_tables=$(find cache -name '*.lmt' | wc -l)
# program, loader, C library, vdso, profiler and two libraries; and a few that the loader was sampled in while it relocated
[ "$n_tables" -le 20 ] || fail "$n_tables tables: $(find cache -name '*.lmt' -printf '%f ')"
"$hpcprof" -o database measurement >/dev/null 2>prof.err || fail "hpcprof: $(cat prof.err)"
for i in 7 41; do
    [ -e "cache/locus/$(printf '%016d' "$((i + 1))").lmt" ] || fail "no table of library $i, which works"
done
"$hpcquery" datatree database >datatree.txt
grep -q partial datatree.txt && fail "a path ends early: $(cat datatree.txt)"
finish
