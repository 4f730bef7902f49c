#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Throughput of eight threads that allocate and free all the time, their blocks now and then freed by others: natively,
# with the runtime idle, and sampled. Operations per second of CPU time and of the clock, as ratios of one round.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
$CC -O2 -g -pthread "$srcdir/tests/bench/heap-threads.c" -o "$scratch/heap-threads"
PYTHONPATH=$srcdir/tests/bench python3 - "$builddir/hpcrun" "$scratch" "${1:-7}" <<'END'
import shutil, sys
import compare
hpcrun, scratch, n_rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def measured(*options):
    def words():
        shutil.rmtree(f"{scratch}/m", ignore_errors=True)
        return [hpcrun, "-o", f"{scratch}/m", *options]
    return words
for title, goal, arguments in (("16-800 B, below the threshold", "goal 0.75", ["8", "2000000", "16", "800"]),
                               ("1-4 KiB, every block recorded with its call path", "", ["8", "100000", "1024", "4096"])):
    program = [f"{scratch}/heap-threads", *arguments]
    commands = {"native": program, "idle runtime": lambda: measured("-ds")() + program,
                "hpcrun": lambda: measured()() + program, "native again": program}
    both = []
    rows = compare.in_turn(commands, n_rounds, lambda run: both.append(run.out.split()) or float(run.out.split()[1]))
    walls = [float(wall) for wall, _ in both]
    print(f"8 threads, {title}: throughput / native, median of {n_rounds} rounds")
    for i, (name, (values, ratio)) in enumerate(rows.items()):
        wall = compare.median([walls[r * 4] / walls[r * 4 + i] for r in range(n_rounds)])
        print(f"  {name:13} {1 / ratio:5.2f} of CPU time, {wall:5.2f} of the clock {'(' + goal + ')' if goal and i in (1, 2) else ''}")
END
finish
