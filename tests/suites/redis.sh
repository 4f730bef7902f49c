#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The unit tests of redis under hpcrun, see tests/lib/suites.sh: the server, which brings its own jemalloc, and the
# tests' interpreter are measured. A failure is named as redis names it, TEST in FILE. Left out are the tests of active
# defragmentation, which ask how far a background task gets in a given time, and fail on a busy machine anyway.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/suites.sh
. "$LOCUS_SRCDIR/tests/lib/suites.sh"
need make gcc g++ tclsh
package=redis
n_expected=1200

build() {
    make -s -j2 OPTIMIZATION=-O1
}

# units LOG UNIT... -- PREFIX...: latencies are not judged, and what ends a server does not end the others.
units() {
    local log=$1 single=()
    shift
    while [ "$1" != -- ]; do
        single+=(--single "$1")
        shift
    done
    shift
    timeout "$limit_s" "$@" ./runtest --clients 2 --durable --no-latency --tags -slow \
        --skiptest "/^Active defrag" "${single[@]}" 2>&1 </dev/null |
        sed 's/\x1b\[[0-9;]*m//g' >"$log" || true
}

run() {
    local log=$1 all
    shift
    mapfile -t all < <(./runtest --list-tests | grep '^unit/')
    units "$log" "${all[@]}" -- "$@"
}

again() {
    local log=$1 unit=${2##* in tests/}
    shift 2
    units "$log" "${unit%.tcl}" -- "$@"
}

failed() {
    sed -nE 's/^\*\*\* \[[a-z]+\]: (.* in tests\/.*)$/\1/p' "$1" | sort -u
}

passed() {
    grep -c '^\[ok\]: ' "$1" || true
}

suite_main "$@"
