#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The test suite of coreutils under hpcrun, see tests/lib/suites.sh: make, the shells, perl and every program of the
# tests are measured. They wait for each other's processes more than they compute, so several run at a time.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/suites.sh
. "$LOCUS_SRCDIR/tests/lib/suites.sh"
need make gcc perl
package=coreutils
n_expected=400

build() {
    FORCE_UNSAFE_CONFIGURE=1 ./configure -q --disable-nls CFLAGS='-g -O1'
    make -s -j2
}

run() {
    local log=$1
    shift
    find tests -name '*.trs' -delete
    timeout "$limit_s" "$@" make -k check SUBDIRS=. -j6 VERBOSE=no >"$log" 2>&1 </dev/null || true
}

again() {
    local log=$1 name=$2
    shift 2
    timeout "$limit_s" "$@" make check SUBDIRS=. TESTS="$name" >"$log" 2>&1 || true
}

failed() {
    sed -nE 's/.*(FAIL|ERROR): (tests[^ ]*\.[a-z]+)$/\2/p' "$1" | sort -u
}

passed() {
    grep -c '^PASS: ' "$1" || true
}

suite_main "$@"
