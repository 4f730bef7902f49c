#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A child that runs no handlers of fork (clone.c) goes on as without us and is named as not measured; one that becomes a
# measured program, or shares its parent's memory, is not.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
need python3
cd "$scratch"
echo 'extern __typeof__(int(void)) _Fork; int main(void) { return _Fork == 0; }' >probe.c
$CC probe.c -o probe 2>probe.err || skip "this C library has no _Fork"
$CC -O1 -g "$srcdir/tests/e2e/clone.c" -o clone || {
    fail "clone.c does not build"
    finish
}

# run WAY STATUS N_NAMED N_PROCESSES [PROGRAM]: and what the index says
run() {
    local way=$1 expected=$2 n_named=$3 n_processes=$4 native=0 status=0 m fates named
    shift 4
    m=m-$way${1:+-exec}
    ./clone "$way" "$@" || native=$?
    "$builddir/hpcrun" -o "$m" ./clone "$way" "$@" 2>err || status=$?
    [ "$native" = "$expected" ] || fail "$way: natively status $native"
    [ "$status" = "$expected" ] || fail "$way: status $status: $(cat err)"
    settle "$m"
    [ "$n_named" = 0 ] || await grep -rq "not measured" "$m"
    named=$(cat "$m"/index-* 2>/dev/null | grep -c "/clone not measured: process [0-9]* made it by _Fork or clone" || true)
    [ "$named" = "$n_named" ] || fail "$way: named $named times: $(cat "$m"/index-* 2>/dev/null)"
    fates=$(python3 "$srcdir/tests/lib/check-fates.py" "$m" --processes "$n_processes") || fail "$way: $fates"
    echo "$way $*: $fates"
}

for way in underscore clone system-call handler; do
    run "$way" 7 1 1
    run "$way" 5 0 2 ./clone
done
run sharing 7 0 1
# taken_in WAY: samples of the process that made the child.
taken_in() {
    cat "m-$1"/*.log | sed -nE 's/.*EVENT SUMMARY: taken: ([0-9]+).*/\1/p' | head -1
}
# Its parent is sampled to the end, whatever the child does with its signals.
run held 7 1 1
[ $(($(taken_in held) * 2)) -ge $(taken_in underscore) ] || ! perf_works ||
    fail "held: $(taken_in held) samples were taken instead of $(taken_in underscore)"
finish
