#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The signal of the profiler is also the program's (signals.c): by every function of libc that sets actions and masks or
# waits for signals, the program reads back what it set and gets its own signals, no others; what it starts finds them as
# without the profiler. And it is sampled all the while.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/live.sh
. "$LOCUS_SRCDIR/tests/lib/live.sh"
need_runtime
need python3
cd "$scratch"
ulimit -c 0
export XDG_CACHE_HOME=$scratch/cache
$CC -O2 -g -pthread -Wno-deprecated-declarations "$srcdir/tests/e2e/signals.c" -o signals || {
    fail "signals.c does not build"
    finish
}
export program=./signals
for way in actions masks jumps waits senders raw; do
    live "$way" 1 -
    taken=$(sed -nE 's/.*EVENT SUMMARY: taken: ([0-9]+).*/\1/p' "$way".m/*.log | head -1)
    [ "${taken:-0}" -gt 0 ] || ! perf_works || fail "$way: no sample was taken"
done
# Who leaves a wait for the signal by a jump or by its end computes for 0.3 s then.
for way in jump-from-wait cancel-in-wait; do
    live "$way" 1 -
    taken=$(sed -nE 's/.*EVENT SUMMARY: taken: ([0-9]+).*/\1/p' "$way".m/*.log | head -1)
    [ "${taken:-0}" -ge 20 ] || ! perf_works || fail "$way: $taken samples were taken"
done
# taken_in WAY: samples of all its processes.
taken_in() {
    cat "$1".m/*.log | sed -nE 's/.*EVENT SUMMARY: taken: ([0-9]+).*name: EADDR.*/\1/p' | awk '{ n += $1 } END { print n + 0 }'
}
# A program that ignores the signal is sampled as any other while it waits for a shell, and when that thread is
# cancelled.
for way in system cancel-in-system; do
    live "$way" - -
    live "$way-ignored" - -
    [ $(($(taken_in "$way-ignored") * 4)) -ge $(($(taken_in "$way") * 3)) ] || ! perf_works ||
        fail "$way: $(taken_in "$way-ignored") samples were taken where the signal is ignored, else $(taken_in "$way")"
    ! grep -q "has replaced the profiler's action" "$way-ignored".m/*.log || fail "$way: the log blames the program"
done
cat raw.m/*.log >raw.log
expect_text raw.log "has replaced the profiler's action"
live children - -

# The first process, too, finds what it inherits: here everything is blocked and the signal ignored.
cat >inherit.py <<'END_PYTHON'
import os, signal, sys
signal.signal(signal.SIGURG, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execvp(sys.argv[1], sys.argv[1:])
END_PYTHON
for way in found masks; do
    python3 inherit.py ./signals $way >inherit.native || true
    python3 inherit.py "$hpcrun" -e EADDR -o "inherit-$way.m" ./signals $way >inherit.out || true
    expect_same inherit.native inherit.out
done
taken=$(sed -nE 's/.*EVENT SUMMARY: taken: ([0-9]+).*/\1/p' inherit-masks.m/*.log | head -1)
[ "${taken:-0}" -gt 0 ] || ! perf_works || fail "no sample was taken where the signal was blocked at first"
finish
