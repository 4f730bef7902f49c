#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A thread that calls no function of any library for a long time still has room to record: the companion allocates ahead
# of it. 12 s at 5 kHz with a trace (LOCUS_GROWTH_SECONDS changes it) fill more than what is there at the start.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
seconds=${LOCUS_GROWTH_SECONDS:-12}
cd "$scratch"

cat >spin.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
static _Atomic int stop;
static void *spin(void *argument)
{
    volatile unsigned long *x = argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        ++*x;
    return NULL;
}
int main(int argc, char **argv)
{
    unsigned long x = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, spin, &x);
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    return 4;
}
END
$CC -O2 -pthread spin.c -o spin

expect_status 4 "$builddir/hpcrun" -e CPUTIME@f5000 -t -lm 128k -o grown ./spin "$seconds"
cat grown/spin-*.log >"$scratch/log"
expect_text "$scratch/log" 'name: CPUTIME'
! grep -q 'dropped-' "$scratch/log" || fail "samples were dropped: $(grep EVENT "$scratch/log")"
samples=$(sed -n 's/^SUMMARY: samples: \([0-9]*\).*/\1/p' "$scratch/log")
bytes=$(cat grown/spin-*.hpctrace | wc -c)
echo "$samples samples, $bytes bytes of trace in $seconds s"
[ "$samples" -gt 10000 ] || skip_part "only $samples samples: too busy a machine to fill what is there at the start"
[ "$bytes" -ge $((12 * samples)) ] || fail "$bytes bytes of trace for $samples samples"
finish
