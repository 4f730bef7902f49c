#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI programs under the launchers of MPICH and Open MPI: the ranks share one measurement directory, which is complete;
# one database has them all under their ranks, and each one's own array has its share. Where the environment does not
# tell the rank, or tells another one, MPI itself does.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
# shellcheck source=tests/lib/ranks.sh
. "$srcdir/tests/lib/ranks.sh"
need python3
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 XDG_CACHE_HOME=$scratch/cache

# launcher MPI: the words that start N processes, but for N.
launcher() {
    case $1 in
    mpich) echo mpiexec.mpich -n ;;
    openmpi) echo mpirun.openmpi --oversubscribe -n ;;
    esac
}

# ranks_of DIR PROGRAM: the ranks in the names of its profiles, in one line.
ranks_of() {
    find "$1" -name "$2-*.hpcrun" | sed -E 's/.*-0*([0-9]+)-[0-9]{3}-[^-]*-[0-9]+-[0-9]+\.hpcrun$/\1/' | sort -nu | xargs
}

n_tested=0
for mpi in mpich openmpi; do
    build_ranks "$mpi" || {
        skip_part "mpicc.$mpi is not installed"
        continue
    }
    n_tested=$((n_tested + 1))
    # shellcheck disable=SC2046 # words
    expect_status 0 timeout 60 $(launcher $mpi) 4 "$hpcrun" -e datacentric -o "$mpi" "./ranks.$mpi" 0.8
    python3 "$srcdir/tests/lib/check-fates.py" "$mpi" --processes 4 || fail "$mpi: the measurement is wrong"
    expect_measured "$mpi" 4
done
[ "$n_tested" -gt 0 ] || skip "neither MPICH nor Open MPI is installed"

# expect_told MPI FLAGS...: two ranks of a launcher with these flags.
expect_told() {
    local mpi=$1
    shift
    # shellcheck disable=SC2046 # words
    expect_status 0 timeout 60 $(launcher "$mpi") 2 "$@" "$hpcrun" -e CPUTIME -o "$mpi-told" "./ranks.$mpi" 0.1 told
    expect_text "$scratch/out" 'rank 1 of 2'
    [ "$(ranks_of "$mpi-told" "ranks.$mpi")" = "0 1" ] || fail "$mpi: wrong ranks told: $(ls "$mpi-told")"
}

# MPICH over a port leaves no rank in the environment; Open MPI's may hold that of a launcher around it.
[ ! -e ranks.mpich ] || expect_told mpich -pmi-port
[ ! -e ranks.openmpi ] || PMI_RANK=7 expect_told openmpi -x PMI_RANK

cat >fortran.f90 <<'CODE'
program fortran
    use mpi
    implicit none
    integer :: code, granted, step
    real(8), allocatable :: field(:)
    call MPI_Init_thread(MPI_THREAD_FUNNELED, granted, code)
    allocate (field(100000))
    field = 1
    do step = 1, 2000
        field = field * 1.0001d0 + 1
    end do
    if (field(7) < 0) print *, field(7)
    call MPI_Finalize(code)
end program
CODE
for mpi in mpich openmpi; do
    if ! command -v "mpif90.$mpi" >/dev/null || ! "mpif90.$mpi" -O1 fortran.f90 -o "fortran.$mpi" 2>"build.$mpi"; then
        skip_part "no Fortran program of $mpi can be built"
        continue
    fi
    # shellcheck disable=SC2046 # words
    PMI_RANK=7 expect_status 0 timeout 60 $(launcher $mpi) 2 $([ $mpi = mpich ] && echo -pmi-port || echo -x PMI_RANK) \
        "$hpcrun" -e CPUTIME -o "$mpi-fortran" "./fortran.$mpi"
    [ "$(ranks_of "$mpi-fortran" "fortran.$mpi")" = "0 1" ] || fail "$mpi: wrong ranks of a Fortran program"
done

finish
