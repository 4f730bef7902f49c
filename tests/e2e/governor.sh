#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sampling takes no more than its share, however much a sample costs: a handler that is slowed to 1 ms has at most a
# fifth of the program's time, what is reported is still all of that time, and the report says so. And a handler that
# never ends is stopped by the companion: the program ends, and log, index and report say what happened.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cd "$scratch"
build_burn 2 5

# slowed EVENT US: measures ./burn with samples of so many microseconds, into EVENT.json.
slowed() {
    local status=0
    LOCUS_TEST_SAMPLE_US=$2 timeout -s KILL 300 "$hpcrun" -e "$1" -o "m.$1" ./burn 2>err || status=$?
    [ "$status" = 5 ] || fail "$1: status $status instead of 5"
    "$builddir/hpcprof" -q -o "d.$1" "m.$1" || fail "$1: hpcprof failed"
    "$builddir/hpcquery" vars --json "d.$1" >"$1.json" || fail "$1: hpcquery failed"
    "$builddir/hpcquery" vars "d.$1" >"$1.text"
}

for event in EADDR CPUTIME; do
    slowed "$event" 1000
    python3 - "$event.json" <<'END_OF_CHECK' || fail "$event: sampling took more than its share, or lost time"
import json, sys
answer = json.load(open(sys.argv[1]))
event, time = answer, answer["cpu_time"]
cpu_s = time["user_s"] + time["system_s"]
part = event["taken"] * 1e-3 / cpu_s
told = time["sampled_s"] / cpu_s # the slowed handler reads its clock by system calls
print(f"{event['taken']} samples of 1 ms and {event['n_spared']} spared in {cpu_s:.2f} s: {part:.1%} of the time; "
      f"the samples stand for {told:.1%} of it; a sample costs {event['sample_cost_ns'] / 1e6:.2f} ms")
# a dozen more while it learns
sys.exit(not (event["taken"] > 20 and event["taken"] - 12 <= 0.2 * cpu_s / 1e-3 and 0.8 <= told <= 1.1 and
              0.85e6 <= event["sample_cost_ns"] <= 2e8)) # two clocks differ by what a switch of threads takes
END_OF_CHECK
    grep -Eq '^rate +sampled at [0-9]+ % of the rate' "$event.text" || fail "$event: the head does not tell the rate"
done

# What is counted goes by what the program gets between samples. A change of the period makes the kernel take a sample at
# the next event, which must not count: the samples stand for the faults that there were.
# build_toucher LOOP: makes ./burn, which touches a new MiB page by page in each turn of the loop.
build_toucher() {
    cat >burn.c <<END
#include <sys/mman.h>
#include <time.h>
int main(void)
{
    $1 {
        char *memory = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory, 1 << 20, MADV_NOHUGEPAGE);
        for (int i = 0; i < 1 << 20; i += 4096)
            memory[i] = 1;
        munmap(memory, 1 << 20);
    }
    return 5;
}
END
    ${CC:-gcc} -O1 burn.c -o burn
}

build_toucher "for (int k = 0; k < 400; k++)"
slowed page-faults@1000 1000
python3 - page-faults@1000.json <<'END_OF_CHECK' || fail "page-faults: the samples stand for other numbers"
import json, sys
event = json.load(open(sys.argv[1]))
periods = event["taken"] + event.get("n_spared", 0)
print(f"{event['taken']} samples stand for {periods} periods of 1000 faults, of which there are 103")
sys.exit(not 50 <= periods <= 125)
END_OF_CHECK

# Samples that bring their weights are counted, too, when there are fewer.
if works rings; then
    build_toucher "while (clock() < CLOCKS_PER_SEC)"
    slowed FAULTS 1000
    grep -Eq '^rate +sampled at [0-9]+ % of the rate' FAULTS.text || fail "FAULTS: the head does not tell the rate"
    build_burn 2 5
else
    skip_part "no rings here, so no FAULTS"
fi

# On a machine whose ticks cost so much that no clock may have its period, events are slow from the start.
export XDG_CACHE_HOME=$scratch/cache
mkdir cache
"$hpcrun" --doctor >doctor.out || true
if grep -q ' tick [0-9]' cache/locus/skid-* 2>/dev/null; then
    sed -i -E 's/ tick [0-9]+ / tick 400000 /' cache/locus/skid-*
    slowed EADDR 0
    tr -s '\n ' '  ' <EADDR.text | grep -q 'sampled at [12][0-9] % of the rate.* a sample costs [4-9][0-9][0-9] us' ||
        fail "the head does not tell what a tick costs: $(cat EADDR.text)"
else
    skip_part "there is no EADDR here"
fi

# Threads that live for about a period do one thing after the other, each the same number of turns in all: no part of
# such a life is seen less than another. By construction 30:20 for the last two; four standard errors of some 750 samples
# are 7 points.
cat >lives.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#define WORK(name, start)                                                                                              \
    __attribute__((noinline, noclone)) static unsigned long name(long n)                                               \
    {                                                                                                                  \
        unsigned long x = start;                                                                                       \
        for (long i = 0; i < n; i++) {                                                                                 \
            x = x * 6364136223846793005u + 1;                                                                          \
            __asm__ volatile("" : "+r"(x));                                                                            \
        }                                                                                                              \
        return x;                                                                                                      \
    }
WORK(begins, 1)
WORK(goes_on, 2)
WORK(ends, 3)
static volatile unsigned long sink;
static long turns; /* of a hundredth of a life */
static void *live(void *argument)
{
    sink = begins(50 * turns) + goes_on(30 * turns) + ends(20 * turns);
    return argument;
}
int main(void)
{
    pthread_t thread;
    clock_t from = clock();
    sink = begins(20000000);
    turns = (long)(20000000 * 1.1e-5 / ((double)(clock() - from) / CLOCKS_PER_SEC));
    for (int i = 0; i < 2000; i++) {
        if (pthread_create(&thread, NULL, live, NULL) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
END
if works perf && grep -q ' tick [0-9]' cache/locus/skid-* 2>/dev/null; then
    sed -i -E 's/ tick [0-9]+ / tick 20000 /' cache/locus/skid-*
    $CC -O1 -pthread lives.c -o lives
    expect_status 0 "$hpcrun" -e EADDR -o lives.m ./lives
    "$builddir/hpcprof" -q -o lives.d lives.m
    expect_status 0 "$builddir/hpcquery" functions --csv --top 0 lives.d
    python3 - "$scratch/out" <<'END' || fail "threads that live for a period: $(cat "$scratch/out")"
import csv, sys
own = {row["function"]: float(row["own"]) for row in csv.DictReader(open(sys.argv[1], encoding="utf-8"))}
later = own["goes_on"] + own["ends"]
part = own["ends"] / later  # of begins, main has some too
print(f"goes_on and ends: {own['goes_on']:.0f}, {own['ends']:.0f}; begins {own['begins']:.0f}")
sys.exit(not 0.33 < part < 0.47)
END
else
    skip_part "there is no EADDR here"
fi

# A handler that goes on for an hour.
slowed CPUTIME 3600000000
grep -q 'sampling was stopped' m.CPUTIME/*.log || fail "the log does not tell that the sampling was stopped"
grep -q 'sampling was stopped' m.CPUTIME/index-* || fail "the index does not tell that the sampling was stopped"
grep -q 'the sampling of burn was stopped' CPUTIME.text || fail "the report does not tell that the sampling was stopped"
finish
