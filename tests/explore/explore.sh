#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The step explorer (explore.c) over the preloaded library. Without arguments a fixed part of it: every entry point, every
# injection, spread instructions. One case again, as it prints it:
#     make -s -C build run-script SCRIPT=tests/explore/explore.sh ARGUMENTS="--only fork --inject stop --at NAME+0xN"
# and with --points 0 every instruction.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ -x "$builddir/tests/explore/explore" ] || skip "the step explorer knows x86-64 only, not $(uname -m)"
need python3 nm
need_machine breakpoints # by which it stops its subject
perf_works || skip_part "no perf events: samples are not injected"
ulimit -c 0
export XDG_CACHE_HOME=$scratch/cache

status=0
"$builddir/tests/explore/explore" --library "$builddir/.libs/libhpcrun.so" --hpcrun "$builddir/hpcrun" \
    --subject "$builddir/tests/explore/subject" --scratch "$scratch" --known "$srcdir/tests/explore/known.txt" \
    --check "python3 '$srcdir/tests/lib/check-fates.py' --state complete,killed --min-taken 0" \
    --points 7 --seed 10 "$@" || status=$?
[ "$status" != 77 ] || exit 77
[ "$status" = 0 ] || fail "see above; $(basename "$0") --only ENTRY --inject KIND --at WHERE does one case again"
finish
