#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs of four MPICH ranks under a Slurm, which tracks processes by the process tree and by cgroups in turn: complete
# after a normal end and after SIGKILL of one task, complete up to the last checkpoint when everything is killed at once;
# each time one database of four ranks. Then the batch scripts of doc/slurm.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
# shellcheck source=tests/lib/slurm.sh
. "$srcdir/tests/lib/slurm.sh"
# shellcheck source=tests/lib/ranks.sh
. "$srcdir/tests/lib/ranks.sh"
need python3
build_ranks mpich || skip "mpicc.mpich is not installed"
cd "$scratch"
export PATH=$builddir:$PATH XDG_CACHE_HOME=$scratch/cache

# step ARG...: a step of four ranks.
step() {
    timeout 90 srun --mpi=pmi2 --kill-on-bad-exit=0 -n4 "$@"
}

# states DIR: "N STATE" for each state that its main threads' side files tell.
states() {
    sed -En 's/.*"state": *"([a-z]*)".*/\1/p' "$1"/ranks.mpich-*-000-*.objects | sort | uniq -c | xargs
}

# wait_for DIR: until four ranks have written a checkpoint.
wait_for() {
    local waited=0
    until [ "$(find "$1" -name 'ranks.mpich-*-000-*.objects' 2>/dev/null | wc -l)" = 4 ] || [ "$waited" = 300 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    [ "$waited" -lt 300 ] || fail "$1: no checkpoint of four ranks: $(ls -A "$1")"
}

# cancel DIR SIGNAL: a step of four ranks is sent this signal in the middle; one database has them all.
cancel() {
    step hpcrun -e datacentric -ck CHECKPOINT_SECONDS=1 -o "$1" ./ranks.mpich 60 >"$1.out" 2>&1 &
    local step=$!
    wait_for "$1"
    scancel --signal="$2" "$(squeue -h -o %i | head -n 1)"
    wait "$step" && fail "$1: status 0"
    hpcprof -o "$1.db" "$1" >"$1.said" 2>&1 || fail "$1 cannot be read: $(cat "$1.said")"
    expect_ranks "$1.db" 0 1 2 3
}

# try_steps PROCTRACK
try_steps() {
    local dir=$1-normal
    expect_status 0 step hpcrun -e datacentric -o "$dir" ./ranks.mpich 0.8
    [ "$(states "$dir")" = "4 complete" ] || fail "$dir: $(states "$dir")"
    expect_measured "$dir" 4

    dir=$1-killed
    step hpcrun -e datacentric -o "$dir" ./ranks.mpich 0.8 kill2 >"$dir.out" 2>&1 && fail "$dir: status 0"
    grep -q '"state": *"killed"' "$dir"/ranks.mpich-000002-000-*.objects || fail "$dir: rank 2 is not killed"
    [ "$(states "$dir")" = "3 complete 1 killed" ] || fail "$dir: $(states "$dir")"
    expect_measured "$dir" 4

    cancel "$1-terminated" TERM
    [ "$(states "$1-terminated")" = "4 killed" ] || fail "$1-terminated: $(states "$1-terminated")"
    cancel "$1-cancelled" KILL
    states "$1-cancelled"
}

# batch NAME ARG...: runs a script of doc/slurm to its end; its job id in $job.
batch() {
    local name=$1 waited=0
    shift
    job=$(sbatch --parsable --output="$name-%A.out" "$srcdir/doc/slurm/$name.sbatch" "$@")
    while squeue -h -j "$job" -t all -o %T | grep -qv COMPLETED && [ "$waited" -lt 150 ]; do
        sleep 0.2
        waited=$((waited + 1))
    done
    [ "$waited" -lt 150 ] && return 0
    fail "$name.sbatch did not complete: $(squeue -h -j "$job" -t all -o '%T %r')"
    cat "$name-$job.out" || true
}

try_batch_scripts() {
    local kernel
    for kernel in chase gups; do
        $CC -O1 -g -I"$srcdir/tests/e2e" "$srcdir/tests/e2e/programs/$kernel.c" -o $kernel
    done
    batch job ./ranks.mpich 0.5
    expect_ranks "locus-$job.db" 0 1 2 3
    expect_text "job-$job.out" '% .* (north|east|south|west) +heap'
    batch array ./chase
    hpcprof -o array.db locus-"$job"_[123].m >/dev/null || fail "the array cannot be read"
    expect_ranks array.db 0 0 0
    batch heterogeneous ./chase ./gups
    expect_ranks "locus-$job.db" 0 1 2 3
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
    [ $n_tested -gt 1 ] || try_batch_scripts
    stop_slurm
    sleep 1
done
[ "${n_tested:-0}" -gt 0 ] || skip "Slurm does not start here"
finish
