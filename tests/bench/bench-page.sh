# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091
# How long a browser takes for the page of a database of 1e5 contexts (goal: 2 s), and for that of the demo (0.5 s) where
# ./dev demo has left one.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
python3 "$LOCUS_SRCDIR/tests/bench/many-contexts.py" 100000 "$scratch/many"
"$builddir/hpcquery" export html "$scratch/many" >"$scratch/many.html"
pages=("$scratch/many.html")
if [ -d "$builddir/demo/minicg-database" ]; then
    "$builddir/hpcquery" export html "$builddir/demo/minicg-database" >"$scratch/demo.html"
    pages+=("$scratch/demo.html")
fi
python3 "$LOCUS_SRCDIR/tests/bench/open-page.py" "$scratch/browser" "${pages[@]}"
finish
