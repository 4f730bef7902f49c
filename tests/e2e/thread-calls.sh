#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a thread costs in system calls, counted by a tracer: so many more than natively, and nobody who waits for the
# list of threads looks again and again. A tracer holds threads up at each call, also those that have the list. And what
# it costs in page faults, which are most of its cost in a virtual machine without page tables of its own.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
limit=10       # more than natively, without events
limit_event=30 # with one
limit_faults=6 # page faults of a thread with one block, more than natively
cd "$scratch"
$CC -O2 -pthread "$srcdir/tests/e2e/thread-calls.c" -o calls || skip "this system has no PTRACE_GET_SYSCALL_INFO"

# counted N AT_ONCE COMMAND...: system calls of N threads under the command in $n_calls, of them waits by turns and by
# time in $n_waits.
counted() {
    local n=$1 at_once=$2 text
    shift 2
    rm -rf m
    text=$(./calls "$@" ./calls - "$n" "$at_once" 2>err) || skip "programs cannot be traced here"
    read -r n_calls n_waits <<<"${text##*$'\n'}"
}

# of_thread COMMAND...: hundredths of calls of a thread; the first have profiles of their own.
of_thread() {
    local few
    counted 400 1 "$@"
    few=$n_calls
    counted 600 1 "$@"
    per_hundred=$(((n_calls - few) / 2))
}

of_thread env
native=$per_hundred
[ "$native" -ge 500 ] || fail "100 threads make $native system calls natively"
of_thread "$builddir/hpcrun" -e MEMLEAK -o m
echo "100 threads: $native system calls natively, $per_hundred without events"
[ $((per_hundred - native)) -le $((limit * 100)) ] || fail "a thread makes more than $limit system calls of ours"
[ $((per_hundred - native)) -ge 200 ] || fail "the threads were not registered"

# faults_of_thread COMMAND...: hundredths of page faults of a thread.
faults_of_thread() {
    local few many
    rm -rf m
    few=$("$@" ./calls faults 100 2>err) || skip "this machine does not run 100 threads at once"
    rm -rf m
    many=$("$@" ./calls faults 300 2>err) || skip "this machine does not run 300 threads at once"
    per_hundred=$(((many - few) / 2))
}

faults_of_thread env
native_faults=$per_hundred
faults_of_thread "$builddir/hpcrun" -e MEMLEAK -o m
echo "100 threads: $native_faults page faults natively, $per_hundred with a recorded block each"
[ $((per_hundred - native_faults)) -le $((limit_faults * 100)) ] || fail "a thread has more than $limit_faults page faults of ours"

perf_works || { skip_part "perf is refused here"; finish; }
of_thread "$builddir/hpcrun" -e EADDR -o m
echo "100 threads: $per_hundred with one event"
[ $((per_hundred - native)) -le $((limit_event * 100)) ] || fail "a thread with an event makes more than $limit_event"
counted 400 8 "$builddir/hpcrun" -e EADDR -o m
echo "400 threads, 8 at once: $n_waits waits"
[ "$n_waits" -lt 5 ] || fail "threads wait for each other by asking again and again: $n_waits times"
finish
