# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091
# What a frame costs the unwinder. Goals: 60 ns on the first pass with its cache, 12 warm, 1 for an unchanged path.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
bench=$builddir/tests/bench/unwind-bench
[ -x "$bench" ] || skip "unwind-bench has not been built"
"$bench"
finish
