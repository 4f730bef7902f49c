#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Events by name, for real where this machine has them: breakpoints, groups, tracepoints, context switches; and the
# plans of a described machine.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"

cat >places.c <<'END'
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
volatile long counter __attribute__((aligned(64)));
volatile long other __attribute__((aligned(64)));
int main(void)
{
    const struct timespec shortly = {0, 100000};
    for (int i = 0; i < 500; i++) {
        counter = i;
        other = counter;
    }
    for (int i = 0; i < 100; i++)
        nanosleep(&shortly, NULL);
    for (int i = 0; i < 50; i++)
        syscall(SYS_getppid);
    return 3;
}
END
$CC -O1 -g -no-pie places.c -o places

# taken DIR EVENT: samples taken of it.
taken() {
    sed -n "s/^EVENT SUMMARY: taken: \([0-9]*\),.* name: $2\$/\1/p" "$1"/places-*.log
}

# A breakpoint counts every access, and knows which variable that was.
if "$hpcrun" --print-plan -e mem:0x1000 >/dev/null 2>&1; then
    address=0x$(nm places | sed -n 's/^0*\([0-9a-f]*\) . counter$/\1/p')
    expect_status 3 "$hpcrun" -e "mem:$address/8:w" -o write ./places
    [ "$(taken write "mem:$address.8:w")" = 500 ] || fail "not 500 writes: $(cat write/places-*.log)"
    expect_status 3 "$hpcrun" -e "mem:$address/8:rw" -o both ./places
    [ "$(taken both "mem:$address.8:rw")" = 1000 ] || fail "not 1000 accesses: $(cat both/places-*.log)"
    expect_status 0 "$builddir/hpcprof" -o write.db write
    expect_status 0 "$builddir/hpcquery" vars --csv write.db
    expect_text "$scratch/out" '^"?counter"?,"?static.*,500,'
else
    skip_part "no breakpoints here: $("$hpcrun" --print-plan -e mem:0x1000 2>&1)"
fi

if "$hpcrun" --print-plan -e context-switches >/dev/null 2>&1; then
    expect_status 3 "$hpcrun" -e context-switches -o switches ./places
    expect_text "$scratch/err" 'context-switches happens in the kernel'
    [ "$(taken switches context-switches)" -ge 100 ] || fail "fewer switches than sleeps"
else
    skip_part "context switches cannot be sampled: $("$hpcrun" --print-plan -e context-switches 2>&1)"
fi

# Tracepoints, in a mount namespace where tracefs is mounted.
cat >traced.sh <<'END'
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
[ -e /sys/kernel/tracing/events/syscalls/sys_enter_getppid/id ] || exit 77
"$1" --print-plan -e syscalls:sys_enter_getpid_ 2>near
"$1" -L 'syscalls:sys_enter_getp*' >traced.list
"$1" -e syscalls:sys_enter_getppid -o traced ./places
END
status=0
unshare -m bash traced.sh "$hpcrun" 2>err || status=$?
works tracepoints || status=77
case $status in
    3)
        [ "$(taken traced syscalls:sys_enter_getppid)" = 50 ] || fail "not 50 calls: $(cat traced/places-*.log)"
        expect_text near 'similar names: .*syscalls:sys_enter_getpid'
        expect_text traced.list '^  [+] syscalls:sys_enter_getppid$'
        [ "$(grep -vc 'syscalls:sys_enter_getp' traced.list)" = 3 ] || fail "other events match: $(cat traced.list)"
        ;;
    77 | 1) skip_part "tracepoints cannot be counted here, or tracefs cannot be mounted: $why" ;;
    *) fail "exit status $status under a tracepoint: $(cat err)" ;;
esac

# Described machines: the plan of another machine, and no run.
machines=$scratch/golden/machines
for machine in haswell sapphire-rapids zen4; do
    unpack_golden "machines/$machine" >/dev/null
done
expect_status 0 "$hpcrun" --machine "$machines/haswell" --print-plan -e cycles:P -e '{r1b7,cpu/mem-stores/}@20000'
expect_text "$scratch/out" '^description=perf event cycles:P, precise level 2$'
expect_text "$scratch/out" '^leader=2$'
[ "$(grep -c '^\[event [123]\]$' "$scratch/out")" = 3 ] || fail "not three events"
expect_status 2 "$hpcrun" --machine "$machines/haswell" ./places
expect_text "$scratch/err" 'cannot run on a machine that is merely described'
expect_status 2 "$hpcrun" --machine "$scratch" --doctor
expect_text "$scratch/err" 'describes no machine: it has no directory sys'
expect_status 1 "$hpcrun" --machine "$machines/haswell" --print-plan -e cycles:k
expect_text "$scratch/err" 'EACCES.*sysctl kernel.perf_event_paranoid=1'
expect_status 2 "$hpcrun" --machine "$machines/haswell" --print-plan -e cpu/ldlat=70000/
expect_text "$scratch/err" 'ldlat=70000/ does not fit into config1:0-15: at most 65535'

# The list: by unit, marked, filtered, and as long as somebody reads it.
expect_status 0 "$hpcrun" -L
for line in 'Sources:' '  [+] datacentric ' '  [-+] page-faults .*also faults' 'Tracepoints of the kernel:' '    rHEX '; do
    expect_text "$scratch/out" "^$line"
done
! works rings || expect_text "$scratch/out" '^  [+] page-faults '
{ "$hpcrun" -L || [ $? = 141 ]; } | head -1 >first # 141: by SIGPIPE
expect_text first '^[+] opens'
expect_status 0 "$hpcrun" --machine "$machines/sapphire-rapids" -L
expect_text "$scratch/out" '^  - cpu/mem-loads/ .*ldlat=3 \[[12]\]$'
expect_text "$scratch/out" '^  [+] cpu/mem-loads-aux/ '
expect_text "$scratch/out" '^    cpu/TERM=VALUE,.../ with the terms .*ldlat [(]config1:0-15[)]'
expect_text "$scratch/out" '^\[[12]\] .*ENODATA.*leader'
expect_status 0 "$hpcrun" --machine "$machines/sapphire-rapids" -L '*/MEM-*' CLOCK
sed -n 's/^  [-+*] \([^ ]*\).*/\1/p' "$scratch/out" | tr '\n' ' ' >names
expect_text "$scratch/out" '^  [+] cpu/mem-stores/'
[ "$(cat names)" = "task-clock cpu-clock cpu/mem-loads/ cpu/mem-loads-aux/ cpu/mem-stores/ " ] ||
    fail "the patterns match $(cat names)"
expect_status 1 "$hpcrun" -L no-such-event
expect_text "$scratch/err" 'no event of this machine matches'
[ ! -s "$scratch/out" ] || fail "something is printed about nothing"
expect_status 0 "$hpcrun" --machine "$machines/zen4" --doctor
expect_text "$scratch/out" '^ +ibs_op: type [0-9]+, 0 events, 3 terms$'
finish
