#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs beside busy loops and processes that fork without pause, and on a tenth of one processor: under the default
# events each of them ends, and its output, errors and status are what they are without hpcrun. What does not end stops
# the test, which says what it was. ./dev test --loaded runs all the e2e tests so.
# usage: loaded.sh [STARTS]: how often a short program is started (15)
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
choose_faults
starts=${1:-15}
limit_s=${LOCUS_LOADED_SECONDS:-240} # for what takes a second on a quiet machine
cd "$scratch"
ulimit -c 0
# usage: loaded WAY N: starts, forks, creates threads or becomes itself again and again.
cat >loaded.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

static unsigned long work(unsigned long n)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum += i;
    return sum;
}

static unsigned long forks(int n)
{
    unsigned long sum = 0;
    for (int i = 0; i < n; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(work(1000) % 7 == 0 ? 1 : i % 100);
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
            abort();
        sum = sum * 31 + (unsigned long)WEXITSTATUS(status);
    }
    return sum;
}

static void *in_thread(void *data)
{
    void *block = malloc(4096);
    *(unsigned long *)data = work(100000) + (block != NULL);
    free(block);
    return NULL;
}

static unsigned long threads(int n)
{
    unsigned long sum = 0, results[THREADS];
    pthread_t ids[THREADS];
    for (int round = 0; round < n; round++) {
        for (int i = 0; i < THREADS; i++) {
            if (pthread_create(&ids[i], NULL, in_thread, &results[i]) != 0)
                abort();
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(ids[i], NULL);
            sum = sum * 31 + results[i];
        }
    }
    return sum;
}

static unsigned long execs(char **argv, int n)
{
    char left[16];
    if (n == 0)
        return work(100000);
    snprintf(left, sizeof left, "%d", n - 1);
    execl(argv[0], argv[0], "execs", left, (char *)NULL);
    abort();
}

int main(int argc, char **argv)
{
    const char *way = argc == 3 ? argv[1] : "";
    int n = argc == 3 ? atoi(argv[2]) : 0;
    unsigned long sum = 0;
    if (strcmp(way, "short") == 0)
        sum = work((unsigned long)n * 1000000);
    else if (strcmp(way, "forks") == 0)
        sum = forks(n);
    else if (strcmp(way, "threads") == 0)
        sum = threads(n);
    else if (strcmp(way, "execs") == 0)
        sum = execs(argv, n);
    else
        return 2;
    printf("%s %lu\n", way, sum);
    return 3;
}
END
$CC -O2 -g -pthread loaded.c -o loaded

load=
clean_up() {
    [ -z "$load" ] || kill "$load"
}

# same NAME COMMAND...: natively and measured; both have to end.
same() {
    local name=$1 status=0 native=0
    shift
    timeout -s KILL "$limit_s" "$@" >native.out 2>native.err || native=$?
    [ "$native" != 137 ] || {
        fail "$name does not end in $limit_s s without hpcrun: the machine is too busy for this test"
        finish
    }
    rm -rf m
    timeout -s KILL "$limit_s" "${within[@]}" "$hpcrun" -o m "$@" >out 2>err || status=$?
    if [ "$status" = 137 ] && [ "$native" != 137 ]; then
        fail "$name does not end in $limit_s s under hpcrun"
        cat m/*.log m/index-* 2>/dev/null | tail -n 20
        finish
    fi
    sed -E -i -e '/^hpcrun: (datacentric|warning): /d' -e '/^load.sh: /d' err
    [ "$status" = "$native" ] || fail "$name: status $status instead of $native"
    cmp -s native.out out || fail "$name: output differs: $(diff native.out out | head -n 4)"
    cmp -s native.err err || fail "$name: errors differ: $(diff native.err err | head -n 4)"
}

# all WAY STARTS: every program once, a short one again and again.
all() {
    local i
    within=()
    [ "$1" != tenth ] || within=(bash "$srcdir/tests/lib/load.sh" tenth)
    for ((i = 0; i < $2; i++)); do
        same "$1, start $i" ./loaded short 20
    done
    same "$1, forks" ./loaded forks $(($2 * 4))
    same "$1, threads" ./loaded threads $(($2 / 2 + 2))
    same "$1, execs" ./loaded execs $(($2 / 5 + 2))
    same "$1, sh" sh -c 'for i in 1 2 3; do seq $i | sort -r | tail -n 1; done; exit 5'
    if command -v python3 >/dev/null; then
        same "$1, python3" python3 -c 'import json, subprocess, sys
print(len(json.dumps(list(range(10000)))), subprocess.run(["true"]).returncode)
sys.exit(6)'
    fi
    echo "$1: all of them ended"
}

bash "$srcdir/tests/lib/load.sh" busy 8 4 600 >load.out &
load=$!
await grep -q '^load: 12 processes' load.out
all load "$starts"
if [ "$(uname -m)" = x86_64 ]; then
    $CC -O2 -g -pthread "$srcdir/tests/e2e/failing-calls.c" -o failing-calls
    status=0
    timeout -s KILL "$limit_s" "$hpcrun" -e EADDR "${faults[@]}" -o calls ./failing-calls fork 24 >out 2>err || status=$?
    [ "$status" = 0 ] && [ ! -s err ] || fail "failing-calls fork 24: status $status, $(cat err)"
fi
kill "$load"
wait "$load" || true
load=
all tenth $((starts / 6))
finish
