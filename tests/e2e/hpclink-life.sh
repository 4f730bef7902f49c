#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The ways in which processes and threads live and end (life.c), in a static program that hpclink made: output and
# status are those without hpcrun, and the measurement is complete; killed by SIGKILL, too.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/live.sh
. "$LOCUS_SRCDIR/tests/lib/live.sh"
[ -e "$builddir/libhpcrun-static.o" ] || skip "libhpcrun-static.o has not been built"
need python3
cd "$scratch"
ulimit -c 0

echo 'int main(void) { return 0; }' >nothing.c
$CC -static nothing.c -o nothing 2>/dev/null || skip "$CC cannot link static programs here (libc.a is missing)"
"$builddir/hpclink" "$CC" -static -O2 -g -pthread "$srcdir/tests/e2e/life.c" -o life || fail "life.c cannot be linked"

live plain 1 1
live vfork 2 2
live spawn 3 3
live fork 2 2
live fork-thread 2 3
live exec 2 2
live thread-ends 1 -
live exit-in-thread 1 2
live main-leaves 1 2
live leave 1 1
live quick 1 1
live abort 1 1 killed
live crash 1 1 killed
live killed 1 1 killed
live close-all 1 2
live block-signals 1 1
live own-handler 1 1
# The first image only sets the limit and executes itself: often it takes no sample and is a line of the index.
for way in limit-files limit-memory; do
    live "$way" - -
    n_images=$(($(find "$way.m" -name '*.log' | wc -l) + $({ cat "$way.m"/index-* 2>/dev/null || true; } | wc -l)))
    [ "$n_images" = 2 ] || fail "$way: $n_images images are accounted for instead of 2"
done
live small-stacks 1 41
live alternate-stack 1 1
live coroutines 1 1
live detached 1 -
finish
