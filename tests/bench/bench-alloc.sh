# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091
# What the allocation wrappers cost: forwarding alone (no block is recorded), and with the tests' simple table.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
bench=$builddir/tests/bench/alloc-bench
sink=$builddir/tests/lib/.libs/alloc-sink.so
[ -x "$bench" ] && [ -e "$sink" ] || skip "alloc-bench has not been built"
echo "Forwarding only (threshold 1 GiB):"
"$bench" env LD_PRELOAD="$sink" ALLOC_SINK_MIN=1073741824
echo "Recorded by a hash table with one lock (threshold 1 KiB):"
"$bench" env LD_PRELOAD="$sink"
finish
