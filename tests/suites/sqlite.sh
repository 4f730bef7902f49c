#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The quick tests of sqlite under hpcrun, see tests/lib/suites.sh. A failure is named FILE/TEST.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
# shellcheck source=tests/lib/suites.sh
. "$LOCUS_SRCDIR/tests/lib/suites.sh"
need make gcc tclsh
package=sqlite3
n_expected=100000

build() {
    # The tests would end where root can read what should be unreadable; so that one fails for root as others do.
    sed -i 's/if {\[file writable cannot-read\]}/if {0}/' test/attach.test
    ./configure -q CFLAGS='-g -O1'
    make -s testfixture
}

run() {
    local log=$1
    shift
    timeout "$limit_s" "$@" ./testfixture test/extraquick.test >"$log" 2>&1 </dev/null || true
}

again() {
    local log=$1 file=${2%%/*}
    shift 2
    timeout "$limit_s" "$@" ./testfixture "test/$file" >"$log" 2>&1 || true
}

# A file's failures come before the line with its time.
failed() {
    awk '/^[^ ]+\.\.\.$/ { test = substr($1, 1, length($1) - 3) }
        /^! [^ ]+ expected: / || /^Error: / { n++; names[n] = test }
        /^Time: [^ ]*\.test / { for (i = 1; i <= n; i++) print $2 "/" names[i]; n = 0 }' "$1" | sort -u
}

passed() {
    sed -nE 's/^([0-9]+) errors out of ([0-9]+) tests.*/\2 - \1/p' "$1" | tail -n 1 | xargs -r expr || echo 0
}

suite_main "$@"
