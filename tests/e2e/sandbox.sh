#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program in a sandbox that allows only what it does itself makes no other system call under hpcrun, on any way in
# which it can go on: sandbox.c, sampled by perf events and by timers. A program that is started behind such a filter makes
# none either, and is named as not measured.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
[ "$(uname -m)" = x86_64 ] || skip "other C libraries end threads and processes by other calls"
$CC -O2 -Wall -Werror -pthread "$srcdir/tests/e2e/sandbox.c" -o "$scratch/sandbox" || {
    fail "sandbox.c does not build"
    finish
}
cd "$scratch"
$CC -O2 "$srcdir/tests/lib/refuse-perf.c" -o refuse-perf || fail "refuse-perf.c does not build"

# compare WAY HOW MIN_TAKEN PREFIX...
compare() {
    local way=$1 how=$2 min_taken=$3 native=0 measured=0 state fates
    shift 3
    ./sandbox "$way" >native 2>&1 || native=$?
    [ "$native" = 77 ] && skip "no filters of system calls here"
    [ "$native" = 4 ] || fail "$way: natively status $native: $(cat native)"
    "$@" "$builddir/hpcrun" -o "m-$way-$how" ./sandbox "$way" >measured 2>errors || measured=$?
    [ "$measured" = "$native" ] || fail "$way, $how: status $measured instead of $native: $(cat measured)"
    cmp -s native measured || fail "$way, $how: it printed $(cat measured)"
    # Nothing of ours runs when a system call ends the process.
    case $way in
    raw-exit | strict) state=killed ;;
    *) state=complete ;;
    esac
    fates=$(python3 "$srcdir/tests/lib/check-fates.py" "m-$way-$how" --min-taken "$min_taken" --state "$state") || fail "$way, $how: $fates"
    case $way in
    become | vfork | spawn | fork-become)
        await grep -rq "not measured" "m-$way-$how"
        [ "$(grep -c "/sandbox not measured: it is in a sandbox" "m-$way-$how"/index-*)" = 1 ] ||
            fail "$way, $how: the index says $(cat "m-$way-$how"/index-*)"
        ;;
    esac
    echo "$way, $how: status $measured; $fates"
}

for way in $(./sandbox); do
    compare "$way" perf 3 env
done
if ./refuse-perf true; then
    for way in return no-signals threads; do
        compare "$way" timers 1 ./refuse-perf
    done
else
    skip_part "no filters of system calls here"
fi
finish
