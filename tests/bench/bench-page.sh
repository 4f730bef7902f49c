# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC1091
# How large the page of a database of 1e5 contexts, 1000 variables and 64 threads is (goal: 1.5 MB), and that of the demo (130 KB) where
# ./dev demo has left one; how soon a browser shows them, and how long what a person does there takes, beside the goals; the same for
# 1e6 contexts by the server.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
python3 "$LOCUS_SRCDIR/tests/bench/many-contexts.py" 100000 "$scratch/many" team
python3 "$LOCUS_SRCDIR/tests/bench/many-contexts.py" 1000000 "$scratch/million" team
"$builddir/hpcviewer" -o "$scratch/many.html" "$scratch/many"
pages=("$scratch/many.html")
if [ -d "$builddir/demo/minicg-database" ]; then
    "$builddir/hpcviewer" -o "$scratch/demo.html" "$builddir/demo/minicg-database"
    pages+=("$scratch/demo.html")
fi
python3 "$LOCUS_SRCDIR/tests/bench/open-page.py" "$scratch/browser" "${pages[@]}" --served "$builddir/hpcviewer" "$scratch/million"
finish
