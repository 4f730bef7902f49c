#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The build in which libunwind walks (--with-unwinder=libunwind; the default where there is no walker of ours): programs
# live, fork, exec and end as they do natively, and their paths lead from end to end. What it measures on the
# architecture that needs it is seen by ./dev cross s390x.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need gcc make
[ -e /usr/include/libunwind.h ] || [ -e "/usr/include/$(gcc -dumpmachine)/libunwind.h" ] ||
    skip "libunwind-dev is not installed"

mkdir "$scratch/libunwind"
cd "$scratch/libunwind"
"$srcdir/configure" -q --with-unwinder=libunwind --without-mpi >configure.log 2>&1 || {
    fail "configure --with-unwinder=libunwind"
    tail -n 20 configure.log
    finish
}
make -s -j2 libhpcrun.la hpcrun hpcprof hpcquery hpcfnbounds >make.log 2>&1 || {
    fail "make"
    tail -n 20 make.log
    finish
}
./hpcrun --doctor >doctor || true
expect_text doctor '^call paths +walked by libunwind'

cat >deep.c <<'END'
#include <stdlib.h>
__attribute__((noinline)) static double leaf(const double *a)
{
    double sum = 0;
    for (int i = 0; i < 1 << 27; i++)
        sum += a[i & 1023];
    return sum;
}
__attribute__((noinline)) static double down(int n, const double *a)
{
    return n ? down(n - 1, a) + 1 : leaf(a);
}
__attribute__((noinline)) static double *fresh(void)
{
    return calloc(1024, sizeof(double));
}
int main(void)
{
    double *a = fresh();
    return down(8, a) < 0;
}
END
gcc -O1 -g -fno-omit-frame-pointer -o deep deep.c
./hpcrun -e CPUTIME -e MEMLEAK -o m ./deep
./hpcprof -q -o db m
./hpcquery tree --paths -M "CPUTIME (usec)" db >cputime
./hpcquery tree -M "Bytes Allocated" db >allocated
expect_text cputime 'program root'
[ "$(tr -s ' \n' ' ' <cputime | grep -o ' down ' | wc -l)" = 9 ] || fail "the path has not 9 times down(): $(cat cputime)"
expect_text cputime ' leaf '
expect_text allocated ' fresh '
expect_text m/deep-*.log 'errant: 0'

for name in life moves many-threads; do
    LOCUS_BUILDDIR=$PWD bash "$srcdir/tests/e2e/$name.sh" >"$name.out" 2>&1 || fail "$name.sh: $(cat "$name.out")"
done
finish
