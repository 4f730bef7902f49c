#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Stacks without room for a signal (stacks.c): nothing below them is touched, the program sees no alternate signal stack
# but its own, and the samples are taken.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
choose_faults
need python3
perf_works || skip "no perf event can be opened here, and timers sample too seldom"
cd "$scratch"
ulimit -c 0
export XDG_CACHE_HOME=$scratch/cache
$CC -O2 -g -pthread "$srcdir/tests/e2e/stacks.c" -o stacks || {
    fail "stacks.c does not build"
    finish
}

# taken WAY: samples of EADDR.
taken() {
    sed -nE 's/.*EVENT SUMMARY: taken: ([0-9]+).*name: EADDR/\1/p' "$1".m/*.log | head -1
}

for way in coroutines guarded alternate small leave; do
    native=0 measured=0
    ./stacks $way >$way.native 2>&1 || native=$?
    "$hpcrun" -e EADDR@f1000 "${faults[@]}" -o $way.m ./stacks $way >$way.out 2>&1 || measured=$?
    [ "$native" = "$measured" ] || fail "$way: status $measured instead of $native"
    expect_same $way.native $way.out
    python3 "$srcdir/tests/lib/check-fates.py" $way.m >$way.fates || fail "$way: $(cat $way.fates)"
    [ "$(taken $way)" -gt 0 ] || fail "$way: no sample was taken"
    echo "$way: $(taken $way) samples"
done
# Where the program's handler has no room for a sample, it is not sampled, and the log says so.
cat small.m/*.log >small.log
expect_text small.log 'no room for a sample'
[ "$(taken coroutines)" -ge 100 ] || fail "coroutines on small stacks are not sampled: $(taken coroutines)"
finish
