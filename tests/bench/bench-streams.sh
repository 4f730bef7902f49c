#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What opening a recording costs: made recordings of 1e5 to 1e7 events (N_EVENTS: the largest) of four CPUs, in which each
# event is a switch or a waking: seconds of CPU time, and bytes of memory per event beside the mapped file. Then the same
# with couplebreak, which here doubles the events, as a multiple of without. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-streams.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make -s -C "$builddir" tests/golden/list-stream

for ((n = 100000; n <= ${N_EVENTS:-10000000}; n *= 10)); do
    # A process of its own: what it holds would count as its children's memory.
    PYTHONPATH=$srcdir/tests/lib python3 -c \
        'import pathlib, sys, tracedat; tracedat.write_tiled(pathlib.Path(sys.argv[1]), int(sys.argv[2]))' "$scratch/$n.dat" "$n"
done
python3 - "$builddir/tests/golden/list-stream" "$scratch" <<'PYTHON'
import os
import pathlib
import statistics
import subprocess
import sys


def run(path, *options):
    """Seconds of CPU time, and the greatest memory of the process in bytes."""
    process = subprocess.Popen([sys.argv[1], "--quiet", *options, path], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("a recording cannot be opened")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


print(f"{'events':>10} {'open, s':>8} {'ns/event':>9} {'bytes/event':>12} {'couplebreak':>12}")
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.dat"), key=lambda path: int(path.stem)):
    n = int(path.stem)
    run(path)
    plain, twins = [run(path) for _ in range(3)], [run(path, "--couplebreak") for _ in range(3)]
    seconds = statistics.median(found[0] for found in plain)
    memory = max(0, plain[0][1] - path.stat().st_size) / n
    ratio = statistics.median(found[0] for found in twins) / seconds
    print(f"{n:>10} {seconds:>8.3f} {1e9 * seconds / n:>9.1f} {memory:>12.1f} {ratio:>12.2f}")
PYTHON
