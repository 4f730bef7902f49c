#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the options do that no other test looks at: the program's environment, traces, fractions, several events, -d.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need_machine rings # of page faults
cd "$scratch"

# The environment: ours in front, the user's behind, and what scripts expect.
touch other.so
LD_PRELOAD=$scratch/other.so expect_status 0 "$hpcrun" -e CPUTIME@f50 -t -ds -c f20 -m 1 -ck SAMPLE_BYTES=1m -o environment env
for line in "LD_PRELOAD=$builddir/.libs/libhpcrun.so:$scratch/other.so" HPCRUN_TRACE=1 HPCRUN_DELAY_SAMPLING=1 \
    HPCRUN_EVENT_LIST=CPUTIME@f50 HPCRUN_PERF_COUNT=f20 \
    "HPCRUN_OUT_PATH=$scratch/environment"; do
    grep -qxF "$line" "$scratch/out" || fail "the program does not see $line"
done
expect_text "$scratch/err" '^hpcrun: -m has no effect'

# What nobody reads is refused.
expect_status 2 "$hpcrun" -ck CHECKPOINT_SECOND=5 true
expect_text "$scratch/err" "there is no knob 'CHECKPOINT_SECOND'"

# Options that do nothing say so, and only they do.
expect_status 0 "$hpcrun" -r -fnb path -e CPUTIME@f50 -o without-effect true
expect_text "$scratch/err" '^hpcrun: -r has no effect'
expect_text "$scratch/err" '^hpcrun: -fnb has no effect'
! grep -q '^hpcrun: -m ' "$scratch/err" || fail "-m was not given: $(cat "$scratch/err")"

build_burn 0.5

# Events from the environment, several at once, with a trace.
HPCRUN_EVENT_LIST='CPUTIME@f500 FAULTS@1' expect_status 4 "$hpcrun" -t -o traced ./burn
compgen -G 'traced/burn-*.hpctrace' >/dev/null || fail "no trace: $(ls traced)"
cat traced/burn-*.log >"$scratch/log"
expect_text "$scratch/log" 'name: CPUTIME'
expect_text "$scratch/log" 'name: FAULTS'

# A rate is a rate: twice as many samples at four times the frequency, at the very least.
samples() {
    cat "$1"/burn-*.log | sed -n 's/^SUMMARY: samples: \([0-9]*\).*/\1/p'
}
expect_status 4 "$hpcrun" -e CPUTIME@f200 -o slow ./burn
expect_status 4 "$hpcrun" -e CPUTIME@f800 -o fast ./burn
[ "$(samples fast)" -gt $((2 * $(samples slow))) ] ||
    fail "$(samples fast) samples at 800 Hz, $(samples slow) at 200 Hz"

# A sample of the allocations stands for all of them: 100000 blocks of 2000 bytes, one in five recorded.
cat >blocks.c <<'END'
#include <stdlib.h>
int main(void)
{
    static void *p[100000];
    for (int i = 0; i < 100000; i++)
        p[i] = malloc(2000);
    return p[77777] == NULL;
}
END
$CC -fno-builtin blocks.c -o blocks
DATACENTRIC_MIN_BYTES=2000 expect_status 0 "$hpcrun" -mp 0.2 -e MEMLEAK -o blocks-sampled ./blocks
bytes=$(cat blocks-sampled/blocks-*.log | sed -n 's/.*blocks: [0-9]* recorded (\([0-9]*\) bytes).*/\1/p')
[ "${bytes:-0}" -gt 190000000 ] && [ "$bytes" -lt 210000000 ] ||
    fail "${bytes:-no} bytes allocated instead of 200000000, give or take 5 %"

# A fraction so small that no process is chosen: the program runs as it is, and the index says so.
expect_status 4 "$hpcrun" -f 1/1000000000000 -o none ./burn
! compgen -G 'none/burn-*' >/dev/null || fail "a process was measured that was not chosen: $(ls none)"
cat none/index-* >"$scratch/index"
expect_text "$scratch/index" '^[0-9]+ .*/burn not measured: outside of the fraction'

# -d waits; the default directory bears the command's name and the job's number.
: >waiting
PBS_JOBID=77 "$hpcrun" -e CPUTIME -d ./burn 2>>waiting &
started=$!
waited=0
until grep -q 'waits for a debugger' waiting || [ "$waited" = 200 ]; do
    sleep 0.05
    waited=$((waited + 1))
done
expect_text waiting "gdb -p $started"
[ "$(readlink "/proc/$started/exe")" = "$(readlink -f "$hpcrun")" ] || fail "the program did not wait"
kill "$started"
wait "$started" 2>/dev/null || true
[ -d hpctoolkit-burn-measurements-77 ] || fail "no directory with the job's number: $(ls)"

expect_status 0 "$hpcrun" -L
expect_text "$scratch/out" 'EADDR .*data address'
expect_text "$scratch/out" 'page-faults'
expect_status 0 "$hpcrun" -V
expect_text "$scratch/out" '^hpcrun .*[0-9]+\.[0-9]+'
"$hpcrun" --doctor >"$scratch/out" || true
for source in EADDR FAULTS CPUTIME REALTIME MEMLEAK skid library cache companion; do
    expect_text "$scratch/out" "^$source +(works|does not work): ."
done
finish
