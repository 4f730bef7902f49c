#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Threads that the program makes by a system call of its own are not measured: the report says how much CPU time they
# used, which the program knows by the process's clock. Of threads made through libc it says nothing, however short.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "the program makes its threads by instructions of x86-64"
cd "$scratch"
${CC:-gcc} -O2 -g -pthread "$srcdir/tests/e2e/programs/unmeasured-threads.c" -o unmeasured || fail "does not build"
./unmeasured raw >/dev/null || skip "this kernel has no clone3"

# measure KIND: into $scratch/KIND.json and KIND.txt.
measure() {
    expect_status 0 "$hpcrun" -e CPUTIME -o "m-$1" ./unmeasured "$1"
    cp "$scratch/out" "$1.ns"
    settle "m-$1"
    "$builddir/hpcprof" -q -o "db-$1" "m-$1" || fail "no database of $1"
    "$builddir/hpcquery" vars --json "db-$1" >"$1.json" || fail "no report of $1"
    "$builddir/hpcquery" vars "db-$1" >"$1.txt"
}
measure raw
expect_text raw.txt '<unmeasured threads> used [0-9.]+ s, [0-9]+ % of the CPU time'
python3 - raw.json raw.ns <<'END' || fail "the time of the threads is not what the process's clock says"
import json, sys
said = json.load(open(sys.argv[1], encoding="utf-8"))["cpu_time"].get("unmeasured_s", 0)
used = int(open(sys.argv[2]).read()) / 1e9
print(f"unmeasured: {said:.3f} s by the report, {used:.3f} s by the program")
sys.exit(abs(said - used) > 0.02 + 0.1 * used)
END
measure libc
! grep -E '<unmeasured threads>|unmeasured_s' libc.txt libc.json || fail "threads of libc are measured"
finish
