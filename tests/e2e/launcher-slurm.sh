#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Under a real Slurm that tracks processes by cgroups and ends a step with its last task: a task's measurement is
# complete after a normal end and after SIGKILL of the program, and up to the last checkpoint after scancel.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
# shellcheck source=tests/lib/slurm.sh
. "$srcdir/tests/lib/slurm.sh"
[ -d /sys/fs/cgroup/freezer ] || skip "no freezer cgroup, which proctrack/cgroup needs"
start_slurm cgroup || {
    cat "$scratch/start"
    skip "Slurm does not start here"
}

cd "$scratch"
build_burn

# state DIR STATE: one profile of burn, whose side file says this.
state() {
    [ "$(find "$1" -name 'burn-*.hpcrun' | wc -l)" = 1 ] || fail "not one profile in $1: $(ls -A "$1")"
    grep -Eq "\"state\": *\"$2\"" "$1"/burn-*.objects || fail "$1 is not $2"
}

expect_status 4 srun -n1 "$hpcrun" -e CPUTIME -o normal ./burn 0.5
state normal complete

expect_status 137 srun -n1 "$hpcrun" -e CPUTIME -o killed sh -c '(sleep 1; kill -KILL $$) & exec ./burn 30'
state killed killed

srun -n1 "$hpcrun" -e CPUTIME -ck CHECKPOINT_SECONDS=1 -o cancelled ./burn 60 >/dev/null 2>&1 &
task=$!
waited=0
until compgen -G 'cancelled/burn-*.objects' >/dev/null || [ "$waited" = 200 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
scancel --signal=KILL "$(squeue -h -o %i | head -n 1)"
wait "$task" || true
state cancelled '(checkpoint|killed)'
finish
