#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ends of threads and processes at instants of their own (endings.c), many times: each has the status and the words that
# it has without hpcrun, and every sample of every run has a fate. Arguments: the number of runs, and the ways to run.
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

if [ $# = 0 ]; then
    set -- detached alarm-leaves exit-twice cancel-early cancel-pending fork-in-malloc leave-in-malloc exit-in-map \
        exec-in-malloc jump-out pthread-exit-in-map map-in-map main-is-gone \
        exit-in-destructor
fi
for way in "$@"; do
    many "$way"
done
finish
