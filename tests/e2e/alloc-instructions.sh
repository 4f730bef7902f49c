# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2154
# Instructions that a malloc and free pair takes more than natively, counted by callgrind: a figure that load, clock
# rates and processors leave alone. Below the threshold for the wrappers, without and with a note of where the block
# comes from; then with the whole runtime, which distinguishes callers' callers, and for a block that it records with its
# call path. The start of the program is subtracted.
. "$LOCUS_SRCDIR/tests/e2e/alloc-common.sh"
need valgrind g++
limit=26
limit_noted=79
limit_wrapper=108
limit_new=124
limit_new_two=153
limit_recorded=1260

program=("$builddir/tests/bench/alloc-pairs")

# instructions N BYTES COMMAND...: of a program with N pairs, run by a command.
instructions() {
    local n=$1 n_bytes=$2
    shift 2
    "$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null "${program[@]}" "$n" "$n_bytes" 2>&1 |
        sed -n 's/.*Collected : //p'
}

# per_hundred BYTES COMMAND...: instructions of 100 pairs, once it is known where they come from.
per_hundred() {
    local none many
    none=$(instructions 1000 "$@")
    many=$(instructions 21000 "$@")
    [ -n "$none" ] && [ -n "$many" ] || skip "callgrind does not run here"
    echo $(((many - none) / 200))
}

native=$(per_hundred 64 env)
wrapped=$(per_hundred 64 env LD_PRELOAD="$sink")
echo "100 pairs: $native instructions natively, $wrapped wrapped"
[ "$wrapped" -gt "$native" ] || fail "the wrappers were not called"
[ $((wrapped - native)) -le $((limit * 100)) ] || fail "the wrappers add more than $limit instructions to a pair"

noted=$(per_hundred 64 env LD_PRELOAD="$sink" ALLOC_SINK_SITES=1)
echo "100 pairs: $noted instructions with a note of their site"
[ "$noted" -gt "$wrapped" ] || fail "the sites were not noted"
[ $((noted - native)) -le $((limit_noted * 100)) ] || fail "the notes add more than $limit_noted instructions to a pair"

native=$(per_hundred 2048 env)
recorded=$(per_hundred 2048 "$builddir/hpcrun" -e MEMLEAK -o "$scratch/recorded")
echo "100 pairs of 2 KiB: $native instructions natively, $recorded recorded"
[ "$recorded" -gt $((native * 3)) ] || fail "the blocks were not recorded"
[ $((recorded - native)) -le $((limit_recorded * 100)) ] ||
    fail "recording a block adds more than $limit_recorded instructions to a pair"

# added WAY LIMIT: the pairs of alloc-callers in this way take so many instructions more at most when their blocks have
# sites, and are noted at all.
added() {
    local native noted
    program=("$scratch/callers" "$1")
    native=$(per_hundred 64 env)
    noted=$(per_hundred 64 env DATACENTRIC_SMALL_SITES=1 "$builddir/hpcrun" -e MEMLEAK -o "$scratch/$1")
    echo "100 pairs, $1: $native instructions natively, $noted with the runtime"
    [ $((noted - native)) -ge $((limit * 100)) ] || fail "$1: nothing was noted"
    [ $((noted - native)) -le $(($2 * 100)) ] || fail "$1: the notes add more than $2 instructions to a pair"
}

g++ -O2 "$srcdir/tests/e2e/alloc-callers.cc" -o "$scratch/callers" || fail "alloc-callers.cc does not build"
added malloc "$limit_noted"
added wrapper2 "$limit_wrapper"
added wrapper10 "$limit_wrapper"
added new "$limit_new"
added new2 "$limit_new_two"
finish
