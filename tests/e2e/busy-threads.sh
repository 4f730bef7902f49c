#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Threads that could run and have no processor: the report says for how long, as the kernel does, and the advice about
# waiting for them is to measure elsewhere, not to change the program.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ -r /proc/self/schedstat ] || skip "this kernel does not say how long threads wait for a processor"
cd "$scratch"
${CC:-gcc} -O2 -g -fopenmp "$srcdir/tests/e2e/programs/busy-threads.c" -o busy || skip "no OpenMP"
OMP_WAIT_POLICY=active expect_status 0 "$hpcrun" -e EADDR -o m ./busy
settle m
"$builddir/hpcprof" -q -o db m || fail "no database"
"$builddir/hpcquery" vars --json db >vars.json || fail "no report"
"$builddir/hpcquery" vars db >vars.txt
"$builddir/hpcquery" advice db >advice.txt
expect_text vars.txt 'busy +its threads could run, but had no processor, for [0-9.]+ s'
expect_text advice.txt 'for threads that had no'
python3 - vars.json out <<'END' || fail "the time without a processor is not what the kernel says"
import json, sys
said = json.load(open(sys.argv[1], encoding="utf-8"))["cpu_time"].get("delay_s", 0)
delay, run = (int(word) / 1e9 for word in open(sys.argv[2]).read().split())
print(f"without a processor: {said:.3f} s by the report, {delay:.3f} s by the program, which ran for {run:.3f} s")
sys.exit(abs(said - delay) > 0.05 + 0.1 * delay or delay < 0.3 * run)
END
finish
