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

if build_ranks mpich; then
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
