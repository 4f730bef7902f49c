#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Trials of programs that mpiexec and srun start: the action is done in each rank, by what the launcher prints its trial
# is judged, and an interrupted one leaves no rank, step, file or shared memory behind.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ -e "$builddir/.libs/liblocus-actions.so" ] || skip "liblocus-actions.so has not been built"
need pgrep
grep -Eq '\[(madvise|always)\]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null ||
    skip "there are no huge pages for programs that ask for them"
cd "$scratch"
${CC:-cc} -O2 -g -pthread -o try "$srcdir/tests/e2e/programs/try.c"
expect_status 0 "$hpcrun" -e EADDR -o m ./try same
expect_status 0 "$builddir/hpcprof" -q -o db m
seconds=$((5000 + $$ % 4000)) # for which the interrupted ranks sleep: no other program of that name does

# judged WORD...: the launcher's words; two ranks have a block each.
judged() {
    expect_status 3 timeout 300 "$hpcrun" --try=db --try=huge-pages:table --metric='work: ([0-9]+)' "$@" ./try same
    expect_text out '^  effect +2 blocks of 16.0 MiB in all'
    expect_text out '^  verdict +no difference$'
}

# ranks_are N: so many ranks sleep. await calls these.
# shellcheck disable=SC2317
ranks_are() {
    [ "$(pgrep -cf "^[^ ]*/try waits $seconds")" = "$1" ]
}

# shellcheck disable=SC2317
no_jobs() {
    [ -z "$(squeue -h)" ]
}

# interrupted WORD...: in the middle of its first run.
interrupted() {
    local status=0 before
    before=$(find /dev/shm -name '*locus*' 2>/dev/null | wc -l)
    "$hpcrun" --try=db --try=huge-pages:table --metric=wall "$@" ./try waits "$seconds" >out 2>err &
    local launcher=$!
    await ranks_are 2
    kill -TERM "$launcher"
    wait "$launcher" || status=$?
    [ "$status" = 143 ] || fail "$1: an interrupted trial ended with status $status: $(cat err)"
    expect_text err '^hpcrun: --try: stopped by a signal in run 1 of 11: nothing of the trial was kept$'
    [ "$(grep -vc "more runs" err)" = 1 ] || fail "$1: more than a sentence: $(cat err)"
    await ranks_are 0 # a launcher may end its ranks a little later
    [ ! -e db/tried.new ] || fail "$1: db/tried.new was left behind"
    [ "$(find /dev/shm -name '*locus*' 2>/dev/null | wc -l)" -le "$before" ] || fail "$1: shared memory is left behind"
}

if command -v mpiexec.mpich >/dev/null; then
    judged mpiexec.mpich -n 2
    interrupted mpiexec.mpich -n 2
else
    skip_part "mpiexec.mpich is not installed"
fi

# shellcheck source=tests/lib/slurm.sh
. "$srcdir/tests/lib/slurm.sh"
start_slurm linuxproc || {
    cat "$scratch/start"
    skip_part "Slurm does not start here"
    finish
}
judged srun -n 2
interrupted srun -n 2
await no_jobs
# What a rank starts by itself would be a trial for each of them.
expect_status 2 srun -n 1 "$hpcrun" --try=db --try=huge-pages:table ./try same
expect_text err "before mpiexec or srun"
finish
