#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpcprof-mpi with some numbers of ranks of MPICH and Open MPI writes the database that hpcprof writes, byte for byte: of
# made-up profiles, of a program's variables, and with a profile that cannot be read. Each failure gives one message.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/hpcprof-mpi.sh
. "$srcdir/tests/lib/hpcprof-mpi.sh"
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 XDG_CACHE_HOME=$scratch/cache
hpcprof=$builddir/hpcprof
[ -x "$builddir/hpcprof-mpi" ] || skip "hpcprof-mpi is not built: there was no mpicc"

# launch MPI N ARGUMENT...: hpcprof-mpi on N ranks.
launch() {
    local mpi=$1 n=$2
    shift 2
    case $mpi in
    mpich) timeout 120 mpiexec.mpich -n "$n" "./hpcprof-mpi.$mpi" "$@" ;;
    openmpi) timeout 120 mpirun.openmpi --oversubscribe -n "$n" "./hpcprof-mpi.$mpi" "$@" ;;
    esac
}

# expect_same MPI N DIR: the databases of DIR agree.
expect_same() {
    rm -rf "$3-$1-$2"
    expect_status 0 launch "$1" "$2" -q -j 2 -o "$3-$1-$2" "$3"
    diff -r "$3-database" "$3-$1-$2" >difference || {
        fail "$1 with $2 ranks writes another database of $3"
        cat difference
    }
}

clean_up() {
    ! mountpoint -q "$scratch/small" || umount "$scratch/small"
}

# expect_end_of_disk MPI: where there is room for the values but not for the database, all ranks end, and say why.
expect_end_of_disk() {
    [ -d small ] || {
        mkdir small
        mount -t tmpfs -o size=3m none small 2>mount.log || true
    }
    if ! mountpoint -q small; then
        skip_part "no small file system: $(cat mount.log)"
        return
    fi
    expect_status 1 launch "$1" 3 -q -j 2 -o small/database wide
    expect_text err 'small/.*cannot write: No space left'
    [ -z "$(ls small)" ] || fail "$1: something is left of half a database: $(ls small)"
}

python3 "$srcdir/tests/lib/make-profiles.py" --profiles 60 --nodes 3000 --metrics 12 wide >/dev/null
python3 "$srcdir/tests/lib/make-profiles.py" --profiles 13 --nodes 800 --metrics 4 --module "$hpcprof" made >/dev/null
"${CC:-gcc}" -O2 -g "$srcdir/tests/e2e/programs/hash.c" -o hash -lm || skip "no compiler"
for _ in 1 2 3; do
    expect_status 0 "$builddir/hpcrun" -t -e datacentric -o real ./hash
done
cp -r made damaged
head -c 900 "$(find made -name '*.hpcrun' | sort | sed -n 5p)" >"damaged/$(cd made && find . -name '*.hpcrun' | sort | sed -n 5p)"
"$hpcprof" -q -o made-database made
"$hpcprof" -q -o real-database real
[ -s real-database/trace.db ] || fail "no trace.db of a traced measurement"
expect_status 0 "$builddir/hpcproftt" real-database/meta.db
expect_text out 'EADDR memory \(usec\)'
! "$hpcprof" -q -o damaged-database damaged 2>left-out || fail "hpcprof takes the damaged profile"

n_tested=0
for mpi in mpich openmpi; do
    build_hpcprof_mpi "$mpi" || {
        skip_part "mpicc.$mpi is not installed"
        continue
    }
    n_tested=$((n_tested + 1))
    for n in 1 2 3 6; do
        expect_same "$mpi" "$n" made
    done
    expect_same "$mpi" 2 real
    expect_status 1 launch "$mpi" 2 -q -S /dev/null -o nothing made
    [ ! -e nothing ] || fail "$mpi: something was written without the structure file"
    expect_status 1 launch "$mpi" 3 -q -o "damaged-$mpi" damaged
    grep "left out" err | sed 's/hpcprof-mpi:/hpcprof:/' | diff left-out - || fail "$mpi: another message about the damaged profile"
    diff -r damaged-database "damaged-$mpi" || fail "$mpi: another database without the damaged profile"
    expect_status 1 launch "$mpi" 3 -q -o nothing "$scratch/missing"
    grep -v "^$\|mpirun\|Primary job\|exit code\|prterun\|normally\|^---\|Process name\|a non-zero\|Per user-direction" err >err.ours || true
    [ "$(grep -c "missing: cannot be read" err.ours)" = 1 ] || fail "$mpi: the missing directory is not named once: $(cat err)"
    [ ! -e nothing ] || fail "$mpi: something was written"
    expect_status 2 launch "$mpi" 2 --xml xml made
    expect_end_of_disk "$mpi"
done
[ "$n_tested" -gt 0 ] || skip "neither mpicc.mpich nor mpicc.openmpi is installed"
if [ "$n_tested" = 2 ]; then
    expect_status 1 timeout 60 mpiexec.mpich -n 2 ./hpcprof-mpi.openmpi -o wrong made
    expect_text err "launcher of another MPI"
fi
expect_status 0 "$builddir/hpcprof-mpi" --help
finish
