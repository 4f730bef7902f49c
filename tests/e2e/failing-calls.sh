#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every system call that the profiler makes while a thread begins and ends, a process forks or ends fails once, with two
# kinds of errors (failing-calls.c), or one of them each: the program ends as ever, and what is recorded adds up.
# usage: failing-calls.sh [all]
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
choose_faults
[ "$(uname -m)" = x86_64 ] || skip "failing-calls.c knows the registers of x86-64 only"
need python3
cd "$scratch"
ulimit -c 0

$CC -O2 -g -pthread "$srcdir/tests/e2e/failing-calls.c" -o failing-calls || fail "failing-calls.c does not build"
for way in thread fork exit leave; do
    for error in 12 24; do # ENOMEM, EMFILE
        case ${1:-}/$way/$error in
        /thread/24 | /fork/12 | /exit/24 | /leave/12) continue ;;
        esac
        status=0
        "$builddir/hpcrun" -e EADDR "${faults[@]}" -o "$way.$error" ./failing-calls "$way" "$error" >out 2>err || status=$?
        cat out
        if [ "$status" != 0 ] || [ -s err ]; then
            fail "$way with error $error: status $status, $(cat err)"
        fi
        n_calls=$(sed -n 's/.*: \([0-9]*\) calls,.*/\1/p' out)
        [ "${n_calls:-0}" -ge 5 ] || fail "$way: only ${n_calls:-0} calls were made to fail"
        python3 "$srcdir/tests/lib/check-fates.py" --min-taken 0 --state complete,killed,running "$way.$error" >fates ||
            fail "$way with error $error: $(cat fates)"
    done
done
finish
