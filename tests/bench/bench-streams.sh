#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What opening a recording costs: made recordings of 1e5 to 1e7 events (N_EVENTS: the largest), of four CPUs, in which each event
# is a switch or a waking: seconds, and bytes of memory per event beside the mapped file. Then the same with couplebreak, which here doubles
# the events, as a multiple of without. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-streams.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make -s -C "$builddir" tests/golden/list-stream

python3 - "$srcdir/tests/lib" "$builddir/tests/golden/list-stream" "$scratch" "${N_EVENTS:-10000000}" <<'PYTHON'
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
import tracedat


def run(path, *options):
    """Seconds, and the greatest memory of the process in bytes."""
    begin = time.monotonic()
    process = subprocess.Popen([sys.argv[2], "--quiet", *options, path], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("a recording cannot be opened")
    return time.monotonic() - begin, usage.ru_maxrss * 1024


print(f"{'events':>10} {'open, s':>8} {'ns/event':>9} {'bytes/event':>12} {'couplebreak':>12}")
n = min(100000, int(sys.argv[4]))
while n <= int(sys.argv[4]):
    path = pathlib.Path(sys.argv[3], "recording.dat")
    tracedat.write_tiled(path, n)
    run(path)
    plain, twins = [run(path) for _ in range(3)], [run(path, "--couplebreak") for _ in range(3)]
    seconds = statistics.median(found[0] for found in plain)
    memory = max(0, plain[0][1] - path.stat().st_size) / n
    ratio = statistics.median(found[0] for found in twins) / seconds
    print(f"{n:>10} {seconds:>8.3f} {1e9 * seconds / n:>9.1f} {memory:>12.1f} {ratio:>12.2f}")
    n *= 10
PYTHON
