# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# HPCRUN_DEBUG: what the runtime says of its own work is in the log of each process, and the program does not notice.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

cat >talker.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *burn(void *argument)
{
    volatile double x = 0;
    double *block = malloc(100000 * sizeof *block);
    for (clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;)
        for (int i = 0; i < 100000; i++)
            x += block[i] = i;
    free(block);
    return argument;
}

int main(void)
{
    pthread_t thread;
    int status;
    printf("out\n");
    fprintf(stderr, "err\n");
    pthread_create(&thread, NULL, burn, NULL);
    pthread_join(thread, NULL);
    fflush(stdout);
    if (fork() == 0) {
        burn(NULL);
        _exit(3);
    }
    wait(&status);
    for (int fd = 3; fd < 64; fd++)
        if (dup2(fd, fd) == fd)
            printf("descriptor %d\n", fd);
    return 5;
}
END
"${CC:-gcc}" -g -O1 -pthread talker.c -o talker

# refused VALUE SENTENCE: one clear error, and the program does not run.
refused() {
    local status=0
    HPCRUN_DEBUG=$1 "$hpcrun" -o refused ./talker >out 2>err || status=$?
    [ "$status" = 2 ] || fail "HPCRUN_DEBUG=$1 gave the status $status, not 2"
    [ ! -s out ] || fail "HPCRUN_DEBUG=$1: the program ran"
    [ "$(wc -l <err)" = 1 ] && grep -qF "$2" err || fail "HPCRUN_DEBUG=$1 said: $(cat err)"
    [ ! -e refused ] || fail "HPCRUN_DEBUG=$1 made a measurement"
}
refused nonsense 'hpcrun: HPCRUN_DEBUG: there is no domain "nonsense"; these are: process, '
refused process,event 'there is no domain "event"'
refused sample:9 'the level must be a number from 1 to 3'
refused sample: 'the level must be a number from 1 to 3'
refused sample:1x 'the level must be a number from 1 to 3'

# measure NAME VALUE: a measurement with that value, what the program wrote without the launcher's own lines.
measure() {
    local status=0
    HPCRUN_DEBUG=$2 "$hpcrun" -e CPUTIME@1000 -e MEMLEAK -o "$1" ./talker >"$1.out" 2>"$1.err" || status=$?
    echo "$status" >>"$1.out"
    grep -v '^hpcrun: ' "$1.err" >"$1.own" || true
}
measure off ''
measure on all:3
for what in out own; do
    cmp off.$what on.$what || fail "the program wrote something else ($what)"
done
[ "$(tail -n 1 on.out)" = 5 ] || fail "the program ended with $(tail -n 1 on.out), not 5"
! grep -h ': debug ' off/*.log || fail "there are lines though none were asked for"

# The parent and its child of fork have a log each.
[ "$(ls on/*.log | wc -l)" = 2 ] || fail "there are not two logs: $(ls on)"
child=$(grep -l ': debug .* process: process starts by fork ' on/*.log) || child=
parent=$(grep -l ': debug .* process: process starts pid=' on/*.log) || parent=
[ -n "$child" ] && [ -n "$parent" ] && [ "$child" != "$parent" ] || fail "the logs of parent and child are not told apart"
for domain in process events sample unwind loadmap blocks; do
    for log in "$child" "$parent"; do
        [ "$domain" = loadmap ] || grep -q ": debug [0-9.]* $domain: " "$log" || fail "$log has no line of $domain"
    done
    grep -q ": debug [0-9.]* $domain: " "$parent" || fail "the parent has no line of $domain"
done
grep -q 'process ends exit_code=' "$parent" || fail "the parent's end is not there"
grep -q 'process ends exit_code=3$' "$child" || fail "the child's end is not there"
[ "$(grep -c ': debug .* thread begins number=' "$parent")" = 2 ] || fail "the parent did not begin two threads"

# Each sample that was taken is a line of its own, in the order of time.
for log in "$child" "$parent"; do
    taken=$((0 $(sed -n 's/^EVENT SUMMARY: taken: \([0-9]*\),.*/+ \1/p' "$log")))
    lines=$(grep -cE ': debug [0-9.]+ sample: (taken|dropped) .* fate=' "$log")
    [ "$taken" -gt 0 ] && [ "$taken" = "$lines" ] || fail "$log: $taken samples were taken, and $lines have a line"
    sed -n 's/^.*: debug \([0-9.]*\) .*/\1/p' "$log" | sort -c -n || fail "$log: the lines are not in the order of time"
done

# Only what is asked for, and nothing of it is lost when the process is killed.
measure few process,events
! grep -hE ': debug [0-9.]+ (sample|unwind|loadmap|blocks): ' few/*.log || fail "there are lines of other domains"
! grep -h ': debug .* events: signal' few/*.log || fail "there are lines of a higher level"
cat >killed.c <<'END'
#include <signal.h>
int main(void)
{
    for (volatile int i = 0; i < 100000000; i++) /* long enough for a sample: without one nothing is kept */
        ;
    return raise(SIGKILL);
}
END
"${CC:-gcc}" killed.c -o killed
(HPCRUN_DEBUG=process "$hpcrun" -o killed-measured ./killed >out 2>err || true) 2>/dev/null
tries=0
until ls killed-measured/*.log >/dev/null 2>&1 || [ $((tries += 1)) -gt 100 ]; do sleep 0.1; done
grep -q ': debug .* process: process starts' killed-measured/*.log || fail "a killed process has no line"
finish
