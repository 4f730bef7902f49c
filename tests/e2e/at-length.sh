#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# at-length.sh NAME: a test once more, with sizes, numbers or builds for which the usual run has no time. Each NAME is a
# test of its own, tests/e2e/at-length/NAME.sh, which make writes into the build directory.
set -u
tests=${LOCUS_SRCDIR:?run the tests through make check or ./dev test}/tests
e2e=$tests/e2e
status=0

# part COMMAND...: one of several; the others run even if it fails.
part() {
    "$@" || status=$?
}

# All loops of programs/causes against what the report says of them, by both compilers at two optimisation levels, and
# with the vectors of AVX2 where the processor has them; five runs each.
causes() {
    local compiler builds=()
    for compiler in gcc clang; do
        builds+=(--build "$compiler -O2" --build "$compiler -O3")
        if grep -qw avx2 /proc/cpuinfo; then
            builds+=(--build "$compiler -O3 -march=x86-64-v3")
        else
            echo "SKIP (part): the processor has no AVX2"
        fi
    done
    python3 "$e2e/causes.py" --all --runs 5 "${builds[@]}"
}

# The bundled programs against their truth: five runs each, all of which must hold, as make check builds them, once more
# at another optimisation level and with another compiler; then the demo's mini-app.
truth() {
    part python3 "$e2e/truth.py" --all --runs 5
    part python3 "$e2e/truth.py" --all --runs 5 --build "gcc -O3" --build "clang -O2"
    part bash "$e2e/minicg-truth.sh" 5 all
}

# At the size of real jobs: two minutes without a call of any library, twenty million samples and their trace in little
# memory, and 128 ranks that start at once.
launcher() {
    LOCUS_GROWTH_SECONDS=120 part bash "$e2e/launcher-growth.sh"
    LOCUS_BOUNDS_FAULTS=10000000 part bash "$e2e/launcher-bounds.sh"
    LOCUS_RANKS=128 part bash "$e2e/launcher-many.sh"
    LOCUS_RANKS=128 part bash "$e2e/launcher-local.sh"
}

# For a minute and a half, and then five times for half a minute.
stress() {
    part bash "$e2e/stress.sh" 90
    part bash "$e2e/stress.sh" 30 5
}

# Operations on frames against their model: ten thousand cases.
frames() {
    LOCUS_FRAME_CASES=10000 LOCUS_FRAME_SEED=1000 python3 "$tests/golden/frame-ops.py"
}

# The step explorer at every instruction where an injection is cheap, of which there are at least 200,000, and at many
# where each costs a process or a new start of the program.
explore() {
    bash "$tests/explore/explore.sh" --points 8000 --inject malloc,cancel,sample,stop,beside,ticks --least 200000 || exit
    bash "$tests/explore/explore.sh" --points 160 \
        --inject fork,longjmp,throw,exit,pthread-exit,fork-beside,exit-beside,kill
}

case ${1:-} in
causes | explore | frames | launcher | stress | truth) "$1" || status=$? ;;
attach) part python3 "$e2e/attach.py" --rounds 200 ;;                     # to each program so often
answers) part python3 "$tests/golden/answers.py" 200 ;; # random requests
endings) part bash "$e2e/endings.sh" 2000 ;; # each way so many times
failing-calls) part bash "$e2e/failing-calls.sh" all ;;                   # errors of each call
fields) # by other compilers
    "$e2e/fields.sh" clang -O2 clang++ "" || exit
    part "$e2e/fields.sh" gcc -O3 g++ gfortran
    ;;
identical) part bash "$e2e/identical.sh" 8 ;;                             # large inputs
log) LOCUS_TRACE_SAMPLES=100000000 part "$LOCUS_BUILDDIR/tests/unit/trace-put-test" ;;       # of each thread or all together
kills) part python3 "$e2e/kills.py" --alone 200 --together 50 ;;          # random moments
launcher-failures) part bash "$e2e/launcher-failures.sh" 60 ;;            # calls of each function
many-threads) part bash "$e2e/many-threads.sh" 10000 10 ;;                # alive at once, and how often
mirror) part bash "$e2e/mirror.sh" all ;;                                 # ways
page) LOCUS_PAGE_CONTEXTS=100000 part python3 "$tests/golden/page.py" ;; # contexts
replay) LOCUS_REPLAY_SAMPLES=100000 part bash "$e2e/replay.sh" ;;         # each
*)
    sed -n 3p "$0" | cut -c3- >&2
    exit 2
    ;;
esac
exit "$status"
