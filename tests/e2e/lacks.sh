#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the machine claims is tried: hpcrun --doctor=NAME says what came of it, and where it does not work, as LOCUS_LACKS
# makes it seem, events are refused, other sources take over, and reports say what is missing.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
for name in perf rings breakpoints tracepoints timers memfd userfaultfd ia32; do
    status=0
    "$hpcrun" --doctor="$name" >line || status=$?
    [ "$status" -le 1 ] || fail "--doctor=$name: status $status"
    # on other processors nothing is said of 32-bit programs
    [ "$name" = ia32 ] && [ ! -s line ] || expect_text line "^$name +(works|does not work): .*\\(.*\\)\$"
    expect_status 1 env LOCUS_LACKS="other,$name" "$hpcrun" --doctor="$name"
    [ ! -s line ] || expect_text "$scratch/out" "^$name +does not work: "
done
# Names are whole ones.
! works userfaultfd || expect_status 0 env LOCUS_LACKS=user,userfault,userfaultfds "$hpcrun" --doctor=userfaultfd
expect_status 2 "$hpcrun" --doctor=watch
expect_text "$scratch/err" "nothing is tried by the name 'watch'"

# Events: refused, with what the trial found.
LOCUS_LACKS=breakpoints expect_status 1 "$hpcrun" --print-plan -e mem:0x1000
expect_text "$scratch/err" 'mem:0x1000.*(counts 0 of 500 writes|perf_event_open)'
LOCUS_LACKS=rings expect_status 1 "$hpcrun" --print-plan -e FAULTS
expect_text "$scratch/err" 'FAULTS cannot be sampled here: (mmap of .* ring: EPERM|perf_event_open)'
if works perf; then
    LOCUS_LACKS=perf expect_status 0 "$hpcrun" --print-plan -e EADDR
    expect_text "$scratch/out" '^flags=.*TIMER'
fi

# Programs: they run, and what is missing is said.
build_burn 0.1
LOCUS_LACKS=memfd expect_status 4 "$hpcrun" -o no-memory ./burn
expect_text "$scratch/err" 'memory files cannot be made'
LOCUS_LACKS=memfd expect_status 1 "$hpcrun" --strict -o no-memory ./burn
LOCUS_LACKS=perf expect_status 4 "$hpcrun" -e EADDR -o no-perf ./burn
expect_text "$scratch/err" 'EADDR: perf is refused here.*: CPU-time timers'
grep -l . no-perf/*.hpcrun >/dev/null || fail "nothing is measured by timers"
cat >small.c <<'END'
int main(void) { return 7; }
END
if works ia32 && $CC -m32 small.c -o small-32 2>/dev/null; then
    LOCUS_LACKS=ia32 expect_status 126 "$hpcrun" ./small-32
    expect_text "$scratch/err" 'small-32: cannot be run: Exec format error'
fi
$CC -O1 -g -pthread "$srcdir/tests/e2e/patterns.c" -o patterns
LOCUS_LACKS=breakpoints expect_status 0 "$hpcrun" --verify-sharing=200 -e EADDR -o watched ./patterns 2 true
expect_status 0 "$builddir/hpcprof" -o watched.db watched
expect_status 0 "$builddir/hpcquery" sharing watched.db
tr -s ' \n' ' ' <"$scratch/out" >said
expect_text said 'watched no line, because hardware breakpoints do not work on this machine \(hpcrun --doctor says why\)'
! grep 'verified:' "$scratch/out" || fail "something is verified without breakpoints"
finish
