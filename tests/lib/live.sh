# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # srcdir is common.sh's
# After common.sh: a program's ways of living, run natively and under hpcrun. $program runs them, $hpcrun measures.

# Page faults too, where they can be sampled: without them a process that does little has no sample and no profile.
live_events=(-e EADDR)
! works rings || live_events+=(-e FAULTS)

# live WAY PROCESSES THREADS [STATE]: one way natively and measured. PROCESSES and THREADS (profiles): - is any number.
live() {
    local way=$1 native=0 measured=0 arguments=(--state "${4:-complete}")
    [ "$2" = - ] || [ ${#live_events[@]} = 2 ] || arguments+=(--processes "$2")
    [ "$3" = - ] || [ ${#live_events[@]} = 2 ] || arguments+=(--threads "$3")
    (exec "${program:-./life}" "$way") >"$way.native" 2>"$way.native.err" || native=$?
    (exec "$hpcrun" "${live_events[@]}" -o "$way.m" "${program:-./life}" "$way") >"$way.out" 2>"$way.err" || measured=$?
    [ "$native" = "$measured" ] || fail "$way: status $measured instead of $native"
    expect_same "$way.native" "$way.out"
    expect_same "$way.native.err" "$way.err"
    wait_complete "$way.m"
    python3 "$srcdir/tests/lib/check-fates.py" "$way.m" "${arguments[@]}" >"$way.fates" ||
        fail "$way: $(cat "$way.fates")"
    echo "$way: $(cat "$way.fates")"
}

# wait_complete DIR: what the companion writes after the end of a killed program may take a moment.
wait_complete() {
    local waited=0
    while [ -z "$(find "$1" -name '*.log')" ] && [ "$waited" -lt 100 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
}
