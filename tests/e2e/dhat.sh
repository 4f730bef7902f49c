#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Valgrind's heap profiler agrees on bundled programs: the same allocation call paths above the threshold, as many
# blocks and bytes at each; also in the first run, when the tables of the program are made while it allocates.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3 valgrind addr2line
[ -z "${DEBUGINFOD_URLS:-}" ] || unset DEBUGINFOD_URLS
programs=$srcdir/tests/e2e/programs
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache

# agree NAME PROGRAM...: one run under valgrind and two under hpcrun, without and with the tables of the first.
agree() {
    local name=$1 run
    shift
    valgrind --tool=dhat --dhat-out-file="$name.dhat" "$@" >/dev/null 2>valgrind.err || {
        skip_part "$name: $(tail -n 1 valgrind.err)"
        return 0
    }
    for run in first second; do
        rm -rf m
        expect_status 0 "$builddir/hpcrun" -o m "$@"
        python3 "$srcdir/tests/lib/check-fates.py" m || fail "$name: the fates do not add up"
        python3 "$srcdir/tests/lib/compare-dhat.py" "$name.dhat" m "$builddir/hpcproftt" 1024 || fail "$name, $run run"
    done
}

CC=$CC "$srcdir/tests/e2e/build-kernels" kernels matmul containers hash >/dev/null || fail "the programs do not build"
agree matmul kernels/matmul 0.1
agree hash kernels/hash 0.1
[ ! -x kernels/containers ] || agree containers kernels/containers 0.1
if $CC -O2 -g -fopenmp -o minicg "$programs"/minicg/*.c -lm 2>/dev/null; then
    OMP_NUM_THREADS=2 agree minicg ./minicg --side 20 --steps 2
else
    skip_part "no OpenMP"
fi
finish
