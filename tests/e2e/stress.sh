#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A loop of dlopen and dlclose, malloc and backtrace in three threads, sampled at 10 kHz, ends normally and every sample
# has a fate. usage: stress.sh [SECONDS [RUNS]], default 5 and 1; stress-long.sh runs it for minutes.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
need python3
seconds=${1:-5} runs=${2:-1}
cd "$scratch"

cat >library.c <<'END'
#include <stdlib.h>
#include <string.h>
static _Thread_local char own[3000];
static long table[4096];
static void *kept;
__attribute__((constructor)) static void start(void) { kept = malloc(5000); }
__attribute__((destructor)) static void stop(void) { free(kept); }
void library_work(void)
{
    memset(own, 1, sizeof own);
    for (int i = 0; i < 4096; i++)
        table[i] += own[i % 3000] + i;
}
END
$CC -O2 -g -pthread "$srcdir/tests/e2e/stress.c" -o stress || fail "stress.c does not build"
for name in a b c; do
    $CC -O2 -g -shared -fPIC library.c -o "lib$name.so" || fail "library.c does not build"
done

for run in $(seq "$runs"); do
    rm -rf m
    expect_status 21 "$builddir/hpcrun" -e EADDR@f10000 -e FAULTS -o m ./stress "$seconds" ./liba.so ./libb.so ./libc.so
    [ -d m ] || finish
    [ "$(cat "$scratch/out")" = "all worked: 1" ] || fail "run $run: $(cat "$scratch/out")"
    python3 "$srcdir/tests/lib/check-fates.py" m --processes 1 --threads 4 --min-taken $((seconds * 500)) ||
        fail "run $run: the fates do not add up"
done
finish
