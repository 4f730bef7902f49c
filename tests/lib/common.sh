# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# For test scripts: . "$LOCUS_SRCDIR/tests/lib/common.sh". Gives a scratch directory $scratch that disappears, the
# directories $srcdir and $builddir, the launcher $hpcrun, and the functions below. A script ends with `finish`.
set -euo pipefail

srcdir=${LOCUS_SRCDIR:?run the tests through make check or ./dev test}
builddir=${LOCUS_BUILDDIR:?run the tests through make check or ./dev test}
# shellcheck disable=SC2034 # the scripts use it
hpcrun=$builddir/hpcrun
scratch=$(mktemp -d "${TMPDIR:-/tmp}/locus-test.XXXXXX")

# clean_up: what is to be undone before $scratch goes; a script that has something defines its own. Whatever of it fails,
# for example because it has been undone already, changes neither the rest of it nor the script's status.
clean_up() {
    :
}
trap 'status=$?; set +e; clean_up; rm -rf "$scratch"; exit "$status"' EXIT
export TMPDIR=$scratch # also for measurements whose directory the end of a script removes
n_failures=0

# skip REASON...: the whole test cannot run here.
skip() {
    echo "SKIP: $*"
    exit 77
}

# skip_part REASON...: a part of the test cannot run here; the rest goes on.
skip_part() {
    echo "SKIP (part): $*"
}

# fail SENTENCE...: counts a failure and goes on.
fail() {
    echo "FAIL: $*"
    n_failures=$((n_failures + 1))
}

# finish: the verdict, last command of every script.
finish() {
    [ "$n_failures" = 0 ] || exit 1
    exit 0
}

# need PROGRAM...: skips when one is not installed.
need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
}

# need_runtime: skips where the preloaded library has not been built, or nothing can be measured.
need_runtime() {
    [ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
    need_machine memfd
}

# build_burn [SECONDS [STATUS]]: makes ./burn, which takes that much CPU time (1 s), or as much as its argument says, and
# ends with STATUS (4).
build_burn() {
    cat >burn.c <<END
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
    volatile unsigned long x = 0;
    double seconds = argc > 1 ? atof(argv[1]) : ${1:-1};
    while ((double)clock() / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < 100000; i++)
            x += (unsigned long)i;
    return ${2:-4};
}
END
    ${CC:-gcc} -O1 burn.c -o burn
}

# expect_status N COMMAND...: runs it, output to $scratch/out and $scratch/err.
expect_status() {
    local expected=$1 status=0
    shift
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" = "$expected" ] && return 0
    fail "exit status $status instead of $expected: $*"
    sed 's/^/    | /' "$scratch/err"
}

# expect_text FILE PATTERN: FILE has a line that matches the extended regular expression.
expect_text() {
    grep -Eq -- "$2" "$1" && return 0
    fail "no line of $1 matches: $2"
    sed 's/^/    | /' "$1"
}

# expect_same EXPECTED ACTUAL: two files are equal.
expect_same() {
    diff -u "$1" "$2" || fail "$2 differs from $1"
}

# unpack_golden NAME: unpacks tests/golden/NAME.txt (see bundle.py) into $scratch/golden/NAME and prints that path.
unpack_golden() {
    python3 -B "$srcdir/tests/lib/bundle.py" unpack "$srcdir/tests/golden/$1.txt" "$scratch/golden/$1" >&2
    printf '%s\n' "$scratch/golden/$1"
}

# await COMMAND...: until it succeeds, at most 30 s.
await() {
    local waited=0
    until "$@" >/dev/null 2>&1 || [ "$waited" = 600 ]; do
        sleep 0.05
        waited=$((waited + 1))
    done
    [ "$waited" -lt 600 ] || fail "waited 30 s in vain for: $*"
}

# settle DIR [SECONDS]: waits until nothing of the measurement is still being written, at most 20 s.
settle() {
    local waited=0 limit=$((${2:-20} * 20))
    while compgen -G "$1/.writing-*" >/dev/null && [ "$waited" -lt "$limit" ]; do
        sleep 0.05
        waited=$((waited + 1))
    done
    [ "$waited" -lt "$limit" ] || fail "$1 is still being written after ${2:-20} s"
}

# companion_of DIR: prints the process id of the companion that writes into it (.writing-HOST-PID).
companion_of() {
    find "$1" -name '.writing-*' | sed 's/.*-//'
}

# filter_volatile <IN >OUT: replaces what differs from run to run: addresses, times, process ids, scratch paths.
filter_volatile() {
    sed -E -e "s|$scratch|SCRATCH|g" -e "s|$builddir|BUILD|g" -e "s|$srcdir|SOURCE|g" \
        -e 's/0x[0-9a-f]{4,}/ADDR/g' \
        -e 's/[0-9]+(\.[0-9]+)? ?(s|ms|us|ns)\b/TIME/g' \
        -e 's/\b(pid|tid|process|thread) [0-9]+/\1 N/g'
}

# works NAME: whether this machine has it, by the trial of hpcrun --doctor=NAME (LOCUS_LACKS takes it away); $why is the line
# that says what came of it.
works() {
    why=$("$hpcrun" --doctor="$1" 2>&1)
}

# need_machine NAME...: skips where one of them does not work.
need_machine() {
    local name
    for name in "$@"; do
        works "$name" || skip "$why"
    done
}

# perf_works: whether a clock of perf interrupts a program here; timers are slower.
perf_works() {
    works perf
}

# choose_faults: the array faults is the option that samples page faults as well, or empty where that does not work.
choose_faults() {
    faults=()
    ! works rings || faults=(-e FAULTS)
}
