# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091,SC2034,SC2154
# For the tests of the allocation wrappers under LD_PRELOAD with the recording sink (tests/lib/alloc-sink.c).
. "$LOCUS_SRCDIR/tests/lib/common.sh"
sink=$builddir/tests/lib/.libs/alloc-sink.so
[ -e "$sink" ] || skip "tests/lib/alloc-sink.la has not been built"
cxx=${CXX:-g++}
export ALLOC_SINK_OUT=$scratch/counts

# check_counts WHAT PATTERN: the last program wrote a line that matches, and no line since the last check reports a
# missed release, an unknown block or an unbalanced bracket.
check_counts() {
    if ! [ -s "$ALLOC_SINK_OUT" ]; then
        fail "$1: the sink wrote nothing"
        return
    fi
    if grep -v 'overwritten=0 unknown=0 full=0 inside=0 ' "$ALLOC_SINK_OUT"; then
        fail "$1: events out of order"
    fi
    tail -n 1 "$ALLOC_SINK_OUT" | grep -Eq -- "$2" || fail "$1: expected $2 in: $(tail -n 1 "$ALLOC_SINK_OUT")"
    rm -f "$ALLOC_SINK_OUT"
}
