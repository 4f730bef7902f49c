#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Steps of four MPICH ranks under a Slurm, which tracks processes by the process tree and by cgroups in turn: complete
# after a normal end and after SIGKILL of one task, complete up to the last checkpoint when everything is killed at
# once; each time one database of four ranks, and one report where it is asked for. hpcprof-mpi in steps of two to four
# ranks on both nodes writes the one that hpcprof writes, byte for byte.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
# shellcheck source=tests/lib/slurm.sh
. "$srcdir/tests/lib/slurm.sh"
# shellcheck source=tests/lib/ranks.sh
. "$srcdir/tests/lib/ranks.sh"
need python3
# shellcheck source=tests/lib/hpcprof-mpi.sh
. "$srcdir/tests/lib/hpcprof-mpi.sh"
build_ranks mpich || skip "mpicc.mpich is not installed"
build_hpcprof_mpi mpich
cd "$scratch"
export PATH=$builddir:$PATH XDG_CACHE_HOME=$scratch/cache

# step ARG...: a step of four ranks.
step() {
    timeout 120 srun --mpi=pmi2 --kill-on-bad-exit=0 -n4 "$@"
}

# states DIR: "N STATE" for each state in its main threads' side files.
states() {
    sed -En 's/.*"state": *"([a-z]*)".*/\1/p' "$1"/ranks.mpich-*-000-*.objects | sort | uniq -c | xargs
}

# wait_for DIR: until four ranks have written a checkpoint.
wait_for() {
    local waited=0
    until [ "$(find "$1" -name 'ranks.mpich-*-000-*.objects' 2>/dev/null | wc -l)" = 4 ] || [ "$waited" = 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    [ "$waited" -lt 600 ] || fail "$1: no checkpoint of four ranks: $(ls -A "$1")"
}

# expect_read DIR STATES: one database of the four ranks, which ended so.
expect_read() {
    hpcprof -o "$1.db" "$1" >"$1.said" 2>&1 || fail "$1 cannot be read: $(cat "$1.said")"
    expect_ranks "$1.db" 0 1 2 3
    [[ "$(states "$1")" =~ ^$2$ ]] || fail "$1: $(states "$1") instead of $2"
}

# cancel DIR SIGNAL STATES: a step is sent this signal in the middle.
cancel() {
    step hpcrun -e datacentric -ck CHECKPOINT_SECONDS=1 -o "$1" ./ranks.mpich 60 >"$1.out" 2>&1 &
    local step=$!
    wait_for "$1"
    scancel --signal="$2" "$(squeue -h -o %i | head -n 1)"
    wait "$step" && fail "$1: status 0"
    expect_read "$1" "$3"
}

# expect_same_by_mpi DIR: hpcprof-mpi makes DIR.db of it, with ranks on both nodes.
expect_same_by_mpi() {
    local n
    for n in 2 3 4; do
        expect_status 0 timeout 120 srun --mpi=pmi2 -N2 "-n$n" ./hpcprof-mpi.mpich -q -j1 -o "$1.db-mpi-$n" "$1"
        diff -r "$1.db" "$1.db-mpi-$n" >difference || {
            fail "hpcprof-mpi with $n ranks under Slurm writes another database of $1"
            cat difference
        }
    done
}

# try_steps PROCTRACK
try_steps() {
    local dir=$1-killed
    expect_status 0 step hpcrun -e datacentric -o "$1-normal" ./ranks.mpich 0.6
    expect_read "$1-normal" '4 complete'
    expect_same_by_mpi "$1-normal"
    [ "$1" = cgroup ] || expect_favourites "$1-normal" 2

    step hpcrun --report -o "$1-reported" ./ranks.mpich 0.4 >"$1-reported.out" 2>"$1-reported.err" || fail "--report fails"
    grep -Ec '^(program |hpcrun: datacentric: )' "$1-reported.err" | grep -qx 2 ||
        fail "not one report and one first line: $(cat "$1-reported.err")"
    expect_text "$1-reported.err" '4 processes'

    step hpcrun -e datacentric -o "$dir" ./ranks.mpich 0.2 kill2 >"$dir.out" 2>&1 && fail "$dir: status 0"
    expect_read "$dir" '3 complete 1 killed'
    grep -q '"state": *"killed"' "$dir"/ranks.mpich-000002-000-*.objects || fail "$dir: rank 2 is not killed"

    cancel "$1-terminated" TERM '4 killed'
    cancel "$1-cancelled" KILL '[0-9 a-z]*(checkpoint|killed)'
}

for proctrack in linuxproc cgroup; do
    if [ $proctrack = cgroup ] && [ ! -d /sys/fs/cgroup/freezer ]; then
        skip_part "no freezer cgroup, which proctrack/cgroup needs"
        continue
    fi
    if ! start_slurm $proctrack; then
        cat "$scratch/start"
        skip_part "Slurm with proctrack/$proctrack does not start here"
        continue
    fi
    try_steps $proctrack
    n_tested=$((${n_tested:-0} + 1))
    stop_slurm
done
[ "${n_tested:-0}" -gt 0 ] || skip "Slurm does not start here"
finish
