#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What looking at a large recording costs: made recordings of trace-cmd with N_EVENTS (10000000) events, each a switch or a waking;
# from opening to the first picture, the first time and again, when what was made of it is mapped; then random windows at
# random zoom, 1500 pixels of 40 rows. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-timeline.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make -s -C "$builddir" tests/bench/timeline-bench
PYTHONPATH=$srcdir/tests/lib python3 -c 'import pathlib, sys, tracedat
tracedat.write_tiled(pathlib.Path(sys.argv[1]), int(sys.argv[2]))' "$scratch/app.dat" "${N_EVENTS:-10000000}"
for round in "the first time" again "and again"; do
    echo "$round:"
    "$builddir/tests/bench/timeline-bench" "$scratch/app.dat" "${N_WINDOWS:-200}" | sed 's/^/  /'
done
echo "kept: $(($(stat -c %s "$scratch/app.dat.locus-time") >> 20)) MiB beside $(($(stat -c %s "$scratch/app.dat") >> 20)) MiB"
