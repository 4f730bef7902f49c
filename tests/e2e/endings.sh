#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ends of threads and processes at instants of their own (endings.c), many times: each has the status and the words that
# it has without hpcrun, and every sample of every run has a fate. While the companion is waited for, the other threads
# do nothing that they would not do without. Arguments: the number of runs, and the ways to run.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
choose_faults
need python3
n_runs=${1:-4}
shift $(($# ? 1 : 0))
cd "$scratch"
ulimit -c 0

$CC -O2 -g -pthread "$srcdir/tests/e2e/endings.c" -o endings || fail "endings.c does not build"

# once WAY RUN: true when the run ends as natively.
once() {
    local status=0
    timeout -s KILL 60 "$builddir/hpcrun" -e EADDR "${faults[@]}" -o "m/$2" ./endings "$1" >out 2>err || status=$?
    [ "$status" = "$native" ] && cmp -s native.out out && [ ! -s err ] && return 0
    echo "$1: run $2 ends with status $status instead of $native: $(cat out err)"
    return 1
}

# many WAY: natively, and n_runs times measured; the fates are checked by the hundred.
many() {
    local native=0 n_bad=0 run
    ./endings "$1" >native.out || native=$?
    for ((run = 1; run <= n_runs; run++)); do
        [ $((run % 100)) != 1 ] || mkdir m
        once "$1" "$run" || n_bad=$((n_bad + 1))
        [ $((run % 100)) != 0 ] && [ "$run" != "$n_runs" ] && continue
        python3 "$srcdir/tests/lib/check-fates.py" --min-taken 0 --state complete m/* >fates ||
            fail "$1: $(grep -v ' samples: ' fates)"
        rm -rf m
    done
    [ "$n_bad" = 0 ] || fail "$1: $n_bad of $n_runs runs do not end as they do natively"
    echo "$1: $((n_runs - n_bad)) of $n_runs"
}

# late WAY: one run whose companion is stopped when the end begins; sets n_late to how often the other thread slept after
# that, and n_cut to how many of its sleeps ended early.
late() {
    local before cut_before n_pauses self companion launcher status=0
    rm -rf late.m counts
    ENDINGS_MARKER="late.m/.writing-*-[0-9]*" timeout -s KILL 60 "$builddir/hpcrun" -e EADDR -o late.m ./endings "$1" >out 2>err &
    launcher=$!
    await sh -c 'test "$(od -An -td4 -j16 -N4 counts)" -gt 0'
    read -r self companion < <(od -An -td4 -j16 -N8 counts)
    await sh -c "! test -e /proc/$self/exe"
    kill -CONT "$companion"
    wait "$launcher" || status=$?
    [ "$status" = "$2" ] && [ ! -s err ] || fail "$1: status $status instead of $2 while the companion is stopped: $(cat err)"
    read -r n_pauses n_cut before cut_before < <(od -An -td4 -N16 counts)
    n_late=$((n_pauses - before))
    n_cut=$((n_cut - cut_before))
}

# stands WAY STATUS: the other thread sleeps for 1 ms each time, and the end waits for 250 ms: on a busy machine, some of
# its sleeps are before the first thing that the end does.
stands() {
    local run least=1000
    for run in 1 2 3; do
        late "$1" "$2"
        [ "$n_late" -ge "$least" ] || least=$n_late
        [ "$n_cut" = 0 ] || fail "$1: in run $run, $n_cut sleeps of the other thread ended early"
    done
    [ "$least" -le 50 ] || fail "$1: another thread slept at least $least times after the end had begun"
    echo "$1: $least"
}

if [ $# = 0 ]; then
    stands stand-till-exit 13
    stands stand-for-good 14
    set -- detached alarm-leaves exit-twice cancel-early cancel-pending fork-in-malloc leave-in-malloc exit-in-map \
        exec-in-malloc jump-out pthread-exit-in-map map-in-map main-is-gone \
        exit-in-destructor
fi
for way in "$@"; do
    many "$way"
done
finish
