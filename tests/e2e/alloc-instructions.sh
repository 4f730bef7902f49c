# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2154
# Instructions that the wrappers add to a malloc and free pair below the threshold, counted by callgrind: a figure that
# load and clock rates leave alone. The start of the program is subtracted.
. "$LOCUS_SRCDIR/tests/e2e/alloc-common.sh"
need valgrind
limit=28

# instructions PRELOAD N: of a program with N pairs.
instructions() {
    env LD_PRELOAD="$1" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$builddir/tests/bench/alloc-pairs" "$2" 64 2>&1 | sed -n 's/.*Collected : //p'
}

# per_hundred PRELOAD: instructions of 100 pairs.
per_hundred() {
    local none many
    none=$(instructions "$1" 0)
    many=$(instructions "$1" 20000)
    [ -n "$none" ] && [ -n "$many" ] || skip "callgrind does not run here"
    echo $(((many - none) / 200))
}

native=$(per_hundred "")
wrapped=$(per_hundred "$sink")
echo "100 pairs: $native instructions natively, $wrapped wrapped"
[ "$wrapped" -gt "$native" ] || fail "the wrappers were not called"
[ $((wrapped - native)) -le $((limit * 100)) ] || fail "the wrappers add more than $limit instructions to a pair"
finish
