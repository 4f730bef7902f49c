#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The batch scripts of doc/slurm under a real Slurm, except those that wait for a time limit (slurm-limit.sh): MPICH and
# Open MPI under srun, Open MPI under its own launcher, an array, two programs in one step, a heterogeneous step. Each
# gives a database of the right ranks; hpcprof-mpi of Open MPI makes the same one under srun.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
# shellcheck source=tests/lib/slurm.sh
. "$srcdir/tests/lib/slurm.sh"
# shellcheck source=tests/lib/ranks.sh
. "$srcdir/tests/lib/ranks.sh"
# shellcheck source=tests/lib/hpcprof-mpi.sh
. "$srcdir/tests/lib/hpcprof-mpi.sh"
need python3
cd "$scratch"
export PATH=$builddir:$PATH XDG_CACHE_HOME=$scratch/cache
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
start_slurm linuxproc || {
    cat "$scratch/start"
    skip "Slurm does not start here"
}

# batch NAME ARG...: submits a script of doc/slurm; its job id in $job.
batch() {
    local name=$1
    shift
    job=$(sbatch --parsable --output="$name-%A.out" "$srcdir/doc/slurm/$name.sbatch" "$@")
}

# expect_done NAME JOB: it completes.
expect_done() {
    local waited=0
    while squeue -h -j "$2" -t all -o %T | grep -qv COMPLETED && [ "$waited" -lt 300 ]; do
        sleep 0.2
        waited=$((waited + 1))
    done
    [ "$waited" -lt 300 ] && return 0
    fail "$1.sbatch did not complete: $(squeue -h -j "$2" -t all -o '%T %r')"
    cat "$1-$2.out" || true
}

# try_ranks NAME MPI: a script for one MPI program.
try_ranks() {
    batch "$1" "./ranks.$2" 0.3
    expect_done "$1" "$job"
    expect_ranks "locus-$job.db" 0 1 2 3
    expect_text "$1-$job.out" '% .* (north|east|south|west) +heap'
}

# live_ranks OPERAND...: ranks of the processes that hpcviewer --live shows, through a command in $look.
live_ranks() {
    "${look[@]}" hpcviewer --live --json --once "$@" 2>look.err | python3 -c 'import json, sys
print(*sorted(each["rank"] for each in json.load(sys.stdin)["processes"] if each["program"] == "ranks.mpich" and each["address_samples"]))'
}

# expect_live NAME OPERAND...: it comes to show four ranks.
expect_live() {
    local name=$1 found='' waited=0
    shift
    until found=$(live_ranks "$@") && [ "$found" = '0 1 2 3' ] || [ "$waited" = 40 ]; do
        waited=$((waited + 1))
    done
    [ "$found" = '0 1 2 3' ] || fail "$name shows the ranks '$found': $(cat look.err)"
}

# try_live NODES: a job that runs is looked at, from a step of its own and by its number.
try_live() {
    srun --mpi=pmi2 "-N$1" -n4 hpcrun -e EADDR@f500 -o "live-$1" ./ranks.mpich 600 >"live-$1.out" 2>&1 &
    local step=$! job='' waited=0 look
    until job=$(squeue -h -t R -o %i) && [ -n "$job" ] || [ "$waited" = 300 ]; do
        sleep 0.2
        waited=$((waited + 1))
    done
    look=(timeout 60 srun "--jobid=$job" --overlap -N1 -n1)
    expect_live "a step in the job on $1 nodes" "$job"
    expect_live 'a directory' "live-$1"
    "${look[@]}" hpcviewer --live --plain --once "$job" >"look-$1.txt" || fail "no text comes: $(cat "look-$1.txt")"
    [ "$(grep -c '^process .*: .*/ranks.mpich' "look-$1.txt")" = 4 ] || fail "not four ranks: $(cat "look-$1.txt")"
    grep -q 'rank 3' "look-$1.txt" || fail "the ranks are not named: $(cat "look-$1.txt")"
    look=()
    expect_live 'the number of the job' "$job"
    scancel "$job"
    wait "$step" || true
}

if build_ranks mpich; then
    try_live 1
    try_live 2
    try_ranks job mpich
else
    skip_part "mpicc.mpich is not installed"
fi
if build_ranks openmpi; then
    LOCUS_MPIRUN=mpirun.openmpi try_ranks mpirun openmpi
    if srun --mpi=list 2>&1 | grep -q pmix; then
        LOCUS_MPI=pmix try_ranks job openmpi
        build_hpcprof_mpi openmpi
        expect_status 0 timeout 120 srun --mpi=pmix -n3 ./hpcprof-mpi.openmpi -q -j1 -o by-mpi.db "locus-$job.m"
        hpcprof -q -o alone.db "locus-$job.m"
        diff -r alone.db by-mpi.db || fail "hpcprof-mpi under srun --mpi=pmix writes another database"
    else
        skip_part "this Slurm has no PMIx"
    fi
else
    skip_part "mpicc.openmpi is not installed"
fi

# The scripts give their programs no arguments.
echo 'int kernel_main(int, char **); int main(void) { char *words[] = {"kernel", "0.2", 0}; return kernel_main(2, words); }' >main.c
for kernel in chase gups; do
    $CC -O1 -g -Dmain=kernel_main -I"$srcdir/tests/e2e" -c "$srcdir/tests/e2e/programs/$kernel.c" -o $kernel.o
    $CC main.c $kernel.o -lm -o short-$kernel
done
batch array ./short-chase
array=$job
batch heterogeneous ./short-chase ./short-gups
shared=$job
expect_done array "$array"
hpcprof -q -o array.db locus-"$array"_[123].m || fail "the array cannot be read"
expect_ranks array.db 0 0 0
expect_done heterogeneous "$shared"
expect_ranks "locus-$shared.db" 0 1 2 3
batch heterogeneous-step ./short-chase ./short-gups
expect_done heterogeneous-step "$job"
expect_ranks "locus-$job.db" 0 1 2 3
for program in short-chase short-gups; do
    [ "$(find "locus-$job.m" -name "$program-*.log")" ] || fail "no measurement of the component $program"
done
finish
