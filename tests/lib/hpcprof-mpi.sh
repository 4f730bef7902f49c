# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# For tests of hpcprof-mpi that have sourced common.sh.

# build_hpcprof_mpi MPI: $scratch/hpcprof-mpi.MPI for that MPI; false when its compiler is missing.
build_hpcprof_mpi() {
    local libraries
    command -v "mpicc.$1" >/dev/null || return 1
    libraries=$(make -s -C "$builddir" print-EXPORT_LIBS)
    # shellcheck disable=SC2086 # words
    (cd "$builddir" && "mpicc.$1" -D_GNU_SOURCE -DHAVE_CONFIG_H -I. -I"$srcdir/src" \
        "$srcdir"/tools/hpcprof/{main-mpi,hpcprof,settings}.c \
        librunning.a $libraries libfnbounds.a libbase.a -lm -lpthread -o "$scratch/hpcprof-mpi.$1") >"$scratch/build.log" 2>&1 || {
        fail "hpcprof-mpi cannot be built with mpicc.$1"
        cat "$scratch/build.log"
    }
}
