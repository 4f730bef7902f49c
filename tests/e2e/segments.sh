#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program with gaps between its segments (as node is linked): its loader knows each segment by itself, and call paths
# through all of them are complete.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "the addresses are those of x86-64"
need python3
cd "$scratch"
$CC -O1 -g -fomit-frame-pointer -no-pie -Wl,--section-start=.far=0x3000000 "$srcdir/tests/e2e/segments.c" -o segments \
    2>/dev/null || skip "the program cannot be linked here"

# The first run may begin before the program's table has been made.
expect_status 0 "$builddir/hpcrun" -e CPUTIME@f500 -o first ./segments 0.2
expect_status 0 "$builddir/hpcrun" -e CPUTIME@f500 -o second ./segments 0.5
python3 - second/segments-*.objects <<'PYTHON' || fail "call paths are not complete"
import json, sys
stops = [int(n) for n in json.load(open(sys.argv[1], encoding="utf-8"))["unwind_stops"]]
print(f"{stops[0]} of {sum(stops)} walks are complete")
assert stops[0] > 0 and stops[0] >= 0.95 * sum(stops), stops
PYTHON
expect_status 0 "$builddir/hpcprof" -o db second
expect_status 0 "$builddir/hpcquery" tree db
expect_text out 'far_work'
finish
