#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 64 threads that create threads, load libraries, fork, allocate, send signals and jump, sampled at 10 kHz in total: the
# program ends as it does natively, and every sample of it and of its children has a fate.
# usage: stress.sh [SECONDS [RUNS]], default 10 and 1; ./dev stress runs it for minutes.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
choose_faults
need python3
seconds=${1:-10} runs=${2:-1}
cd "$scratch"

cat >library.c <<'END'
#include <stdlib.h>
#include <string.h>
static _Thread_local char own[3000];
static long table[4096];
static void *kept;
__attribute__((constructor)) static void start(void) { kept = malloc(5000); }
__attribute__((destructor)) static void stop(void) { free(kept); }
long library_work(void)
{
    long sum = 0;
    memset(own, 1, sizeof own);
    for (int i = 0; i < 4096; i++) {
        __atomic_store_n(&table[i], own[i % 3000] + i - 1, __ATOMIC_RELAXED);
        sum += table[i];
    }
    return sum;
}
END
$CC -O2 -g -pthread "$srcdir/tests/e2e/stress.c" -o stress || fail "stress.c does not build"
for name in a b c; do
    $CC -O2 -g -shared -fPIC library.c -o "lib$name.so" || fail "library.c does not build"
done

# A program that hangs is killed, and its measurement then is not complete.
for run in $(seq "$runs"); do
    rm -rf m
    expect_status 21 timeout -s KILL $((2 * seconds + 60)) "$builddir/hpcrun" -e "EADDR@f$((10000 / ($(nproc) > 1 ? $(nproc) : 2)))" "${faults[@]}" \
        -o m ./stress "$seconds" ./liba.so ./libb.so ./libc.so
    [ -d m ] || finish
    if [ "$(cat "$scratch/out")" != "all worked: 1" ]; then
        fail "run $run: $(cat "$scratch/out")"
        sed 's/^/    | /' "$scratch/err"
    fi
    settle m 120
    python3 "$srcdir/tests/lib/check-fates.py" m --min-taken $((seconds * 200)) || fail "run $run: the fates do not add up"
    tail -n 11 "$scratch/err" | tr '\n' ',' && echo
done
finish
