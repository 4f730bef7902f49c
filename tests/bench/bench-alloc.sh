# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091
# What the allocation wrappers cost: forwarding alone (no block is recorded), with the tests' simple table, with the
# whole runtime, and what heaptrack costs on the same loops (in the program itself; it interprets in a second process).
. "$LOCUS_SRCDIR/tests/lib/common.sh"
bench=$builddir/tests/bench/alloc-bench
sink=$builddir/tests/lib/.libs/alloc-sink.so
[ -x "$bench" ] && [ -e "$sink" ] || skip "alloc-bench has not been built"
echo "Forwarding only (threshold 1 GiB):"
"$bench" env LD_PRELOAD="$sink" ALLOC_SINK_MIN=1073741824
echo "Recorded by a hash table with one lock (threshold 1 KiB):"
"$bench" env LD_PRELOAD="$sink"
if [ -e "$builddir/.libs/libhpcrun.so" ]; then
    echo "The whole runtime, hpcrun -e datacentric (threshold 1 KiB, call path of every recorded block):"
    "$bench" "$builddir/hpcrun" -o "$scratch/measured" 2>"$scratch/err" || cat "$scratch/err"
fi
if command -v heaptrack >/dev/null; then
    echo "heaptrack:"
    "$bench" heaptrack -o "$scratch/heaptrack" 2>/dev/null | grep -E 'ratio|^[0-9].* [0-9.]+$'
else
    skip_part "heaptrack is not installed"
fi
finish
