#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpcrun is invisible to whoever starts the program: exit status, signals, process id, standard streams; as the program
# itself and, where it has to stay (Slurm, containers), as its parent.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
export HPCRUN_OUT_PATH=$scratch/measurements

check_all() {
    for status in 0 7 255; do
        expect_status "$status" "$hpcrun" -e CPUTIME sh -c "exit $status"
    done
    expect_status 143 "$hpcrun" -e CPUTIME sh -c 'kill -TERM $$'
    expect_status 137 "$hpcrun" -e CPUTIME sh -c 'kill -KILL $$'
    expect_status 139 "$hpcrun" -e CPUTIME sh -c 'kill -SEGV $$'

    # A signal sent to the process that was started reaches the program.
    cat >"$scratch/catch.sh" <<'END'
trap 'echo caught; exit 9' USR1
echo ready
while :; do sleep 0.05; done
END
    : >"$scratch/caught"
    "$hpcrun" -e CPUTIME bash "$scratch/catch.sh" >>"$scratch/caught" 2>/dev/null &
    local started=$! waited=0 status=0
    until grep -q ready "$scratch/caught" || [ "$waited" = 200 ]; do
        sleep 0.05
        waited=$((waited + 1))
    done
    kill -USR1 "$started"
    wait "$started" || status=$?
    [ "$status" = 9 ] || fail "status $status instead of 9 after SIGUSR1"
    expect_text "$scratch/caught" caught

    # Streams: input arrives, output and errors are the program's own, a reader sees the end at the program's end.
    echo input | "$hpcrun" -e CPUTIME cat >"$scratch/copied"
    expect_text "$scratch/copied" '^input$'
    "$hpcrun" -e CPUTIME sh -c 'echo out; echo err >&2' 2>"$scratch/errors" | cat >"$scratch/piped"
    expect_text "$scratch/piped" '^out$'
    expect_text "$scratch/errors" '^err$'
    [ "$(wc -l <"$scratch/errors")" = 1 ] || fail "hpcrun writes to the program's stderr: $(cat "$scratch/errors")"
}

check_all

# Replaced by the program: the same process.
"$hpcrun" -e CPUTIME sh -c 'echo $$' >"$scratch/pid" &
started=$!
wait "$started"
[ "$(cat "$scratch/pid")" = "$started" ] || fail "the program is process $(cat "$scratch/pid"), not $started"

# A script without a first line runs as a shell would run it.
echo 'exit 5' >"$scratch/plain-script"
chmod +x "$scratch/plain-script"
expect_status 5 "$hpcrun" -e CPUTIME "$scratch/plain-script"

# The default measurement names its source in one line.
expect_status 0 "$hpcrun" true
expect_text "$scratch/err" '^hpcrun: datacentric: '
[ "$(wc -l <"$scratch/err")" = 1 ] || fail "more than the one line of the plan"

export SLURM_JOB_ID=1
check_all
finish
