#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpcrun --verify-sharing against programs whose answer is known: threads that use one word, words of one line, lines of their
# own, or nothing in common, and threads that use one word, but never at the same time. The program's own breakpoints, and
# those of a debugger, work as without us. RUNS: how often each of the six runs.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
cd "$scratch"
if ! works breakpoints; then # which the report says, instead of "none"
    $CC -O1 -g -pthread "$srcdir/tests/e2e/patterns.c" -o patterns
    expect_status 0 "$hpcrun" --verify-sharing=200 -e EADDR -o m ./patterns 2 true
    expect_status 0 "$builddir/hpcprof" -o m.db m
    expect_status 0 "$builddir/hpcquery" sharing m.db
    expect_text <(tr -s ' \n' ' ' <"$scratch/out") 'watched no line, because hardware breakpoints do not work on this machine'
    ! grep 'verified:' "$scratch/out" || fail "something is verified"
    [ "$n_failures" != 0 ] || skip "$why"
    finish
fi
[ "$(nproc)" -gt 1 ] || skip "threads on one processor do not meet"
$CC -O1 -g -pthread "$srcdir/tests/e2e/patterns.c" -o patterns

# verdict DIR: what watchpoints say of the line of "words", and the words of both sides.
verdict() {
    "$builddir/hpcprof" -o "$1.db" "$1" >/dev/null 2>&1 || fail "hpcprof"
    "$builddir/hpcquery" sharing --json "$1.db" | python3 -c 'import json, sys
lines = json.load(sys.stdin)["lines"]
assert all(line["variable"] == "words" for line in lines), lines
for line in lines:
    assert line["verified"] in ("not verified", "none") or line["sharing"] in (line["verified"], "no candidate"), line
    if line["verified"] in ("not verified", "none"):
        continue
    places = [(access["function"], access["variable"], access["access"]) for access in line["accesses"]]
    assert len(places) == 2 and all(place[:2] == ("count_words", "words") for place in places), line
    assert all([call["function"] for call in access["called_by"]] == ["run"] for access in line["accesses"]), line
    assert any("writes" in place[2] for place in places), line
    offsets = {access["offset"] for access in line["accesses"]}
    assert offsets == ({24} if "'"$2"'" == "true" else {0, 8} if "'"$2"'" == "false" else offsets) or len(offsets) == 2, line
print(*(line["verified"] for line in lines))'
}

# On a crowded machine two threads may never run at the same time: then there is nothing to see, and the program runs again.
# What is never right is another verdict.
for kind in false true padded unshared turns serial; do
    n_first=0
    for run in $(seq "${RUNS:-1}"); do
        for try in 1 2 3 4 5 6; do
            rm -rf m m.db
            expect_status 0 "$hpcrun" --verify-sharing=200 -e EADDR@f1000 -o m ./patterns 2 "$kind"
            found=$(verdict m "$kind") || fail "$kind, run $run: $found"
            case $kind:$found in
                false:*sharing | true:*sharing) break ;;
                false:* | true:*) ;;
                *) break ;;
            esac
        done
        [ "$try" -gt 1 ] || n_first=$((n_first + 1))
        case $kind in
            false | true)
                n=$(sed -n 's/.*watched lines \([0-9]*\) times.*/\1/p' m/*.log)
                if [ "$found" != "$kind sharing" ]; then
                    [ "$n" -ge 5 ] || skip "the two threads hardly ran at the same time: the machine is too busy"
                    fail "$kind, run $run, try $try: '$found' after $n watches"
                fi
                ;;
            turns | serial)
                case $found in
                    *sharing*) fail "$kind, run $run: '$found' of threads that never ran at the same time" ;;
                esac
                ;;
            *) [ -z "$found" ] || fail "$kind, run $run: '$found'" ;;
        esac
        grep -q 'sharing: threads watched lines [0-9]* times; there was no room for 0' m/*.log || fail "$kind: no count in the log"
    done
    echo "$kind: $n_first of ${RUNS:-1} runs right at the first try"
done
# What was verified is in the advice as well.
rm -rf m m.db
expect_status 0 "$hpcrun" --verify-sharing=200 -e EADDR@f1000 -o m ./patterns 2 false
if [ "$(verdict m false)" = "false sharing" ]; then
    "$builddir/hpcquery" advice --csv m.db >advice.csv || fail "hpcquery advice"
    expect_text advice.csv '^words,static,.*,pad,.*watchpoints saw them do so at the same time'
fi
expect_status 0 "$builddir/hpcrun" --verify-sharing -e EADDR@f1000 -o m2 ./patterns 2 true
expect_status 0 "$builddir/hpcprof" -o m2.db m2
expect_status 0 "$builddir/hpcquery" sharing m2.db
if grep -q ' verified: ' out; then
    tr -s ' \n' ' ' <out >words
    expect_text words 'in count_words \(patterns.c:[0-9]+\), called by run \(patterns.c:[0-9]+\)'
fi

# Not asked for: no watchpoint is opened, nothing is said.
expect_status 0 "$hpcrun" -e EADDR@f1000 -o off ./patterns 2 false
"$builddir/hpcprof" -o off.db off >/dev/null 2>&1 || fail "hpcprof"
"$builddir/hpcquery" sharing off.db >off.text || fail "hpcquery"
[ "$("$builddir/hpcquery" sharing --csv off.db | wc -l)" = 1 ] || expect_text off.text 'verify-sharing finds out'
grep -q 'verified:' off.text && fail "verified without being asked"
grep -q 'sharing:' off/*.log && fail "sharing in the log without being asked"
expect_status 2 "$hpcrun" --verify-sharing=0 -o wrong true
expect_text err "verify-sharing: '0' is not a number from 1 to 1000"

# The program has all four breakpoints of each thread to itself, and a debugger two.
cat >own.c <<'END_OF_C'
#define _GNU_SOURCE
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static _Alignas(64) volatile long words[8];
static int is_early;
static void burn(long t, double seconds)
{
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 100000; i++)
            words[t]++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
}
static void *run(void *number)
{
    long t = (long)(intptr_t)number;
    static volatile long watched[2][4];
    int fds[4];
    long n = 0;
    if (!is_early)
        burn(t, 0.3);
    for (int i = 0; i < 4; i++) {
        struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof attr, .exclude_kernel = 1,
                                       .bp_type = HW_BREAKPOINT_W, .bp_addr = (uintptr_t)&watched[t][i], .bp_len = 8};
        fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fds[i] < 0)
            perror("perf_event_open"), _exit(1);
    }
    for (int i = 0; i < 4; i++)
        watched[t][i] = 1;
    for (int i = 0; i < 4; i++) {
        uint64_t count = 0;
        if (read(fds[i], &count, sizeof count) != sizeof count)
            _exit(2);
        n += (long)count;
    }
    burn(t, 0.3);
    return (void *)(intptr_t)n;
}
static int debug(pid_t child)
{
    int status;
    for (int round = 0; round < 20; round++) {
        usleep(20000);
        if (ptrace(PTRACE_ATTACH, child, NULL, NULL) || waitpid(child, &status, 0) != child)
            return 3;
#ifdef __x86_64__
        for (int i = 0; i < 2; i++)
            if (ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg) + 8 * (size_t)i, &words[6]))
                return 4;
        if (ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg) + 56, 0xdd0005L) ||
            ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg) + 56, 0L))
            return 5;
#endif
        if (ptrace(PTRACE_DETACH, child, NULL, NULL))
            return 6;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t threads[2];
    void *counts[2];
    (void)argv;
    is_early = argc > 1;
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&threads[0], NULL, (void *(*)(void *))run, (void *)0);
        burn(1, 60);
    }
    int status = debug(child);
    for (long t = 0; t < 2; t++)
        pthread_create(&threads[t], NULL, run, (void *)t);
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], &counts[t]);
    printf("%d %ld %ld\n", status, (long)(intptr_t)counts[0], (long)(intptr_t)counts[1]);
    return 0;
}
END_OF_C
$CC -O1 -g -pthread own.c -o own
./own >native 2>&1
expect_status 0 "$hpcrun" --verify-sharing=1000 -e EADDR@f1000 -o own-m ./own
expect_same native out
expect_text out '^0 4 4$'
# The report says that they were given away, and does not advise what was done.
expect_status 0 "$hpcrun" --verify-sharing=1000 -e EADDR@f1000 -o early ./own early
for m in own-m early; do
    grep -q 'sharing: the program asked for breakpoints of its own' $m/own-*.log || fail "$m: not in the log"
    expect_status 0 "$builddir/hpcprof" -o $m.db $m
    for report in sharing vars; do
        expect_status 0 "$builddir/hpcquery" $report $m.db
        tr -s ' \n' ' ' <out >words
        expect_text words 'hpcrun --verify-sharing: threads of own watched no more lines after the program had asked for breakpoints'
        grep -q 'verify-sharing finds out' words && fail "$m: $report advises what was done"
    done
    "$builddir/hpcquery" sharing --json $m.db | grep -q '"notes": \["hpcrun --verify-sharing: threads of own watched' || fail "$m: no note in JSON"
done

# An ordinary user may do it too.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] &&
    chmod 755 "$scratch" && setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$hpcrun"; then
    mkdir -m 777 user
    (cd user && setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_CACHE_HOME="$PWD" HOME="$PWD" "$hpcrun" \
        --verify-sharing -e EADDR@f1000 -o m ../patterns 2 true >out 2>&1) || fail "as nobody: $(cat user/out)"
    grep -q 'sharing: threads watched lines' user/m/*.log || fail "nothing as nobody"
    grep 'refuses breakpoints' user/m/*.log && fail "refused as nobody"
fi
finish
