#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What it costs to know who touches memory first: CPU time of a page fault, by itself and in each form of FAULTS.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3 gcc
perf_works || skip "perf events cannot be opened here"
gcc -O2 -o "$scratch/touch" "$srcdir/tests/bench/touch-bench.c"
PYTHONPATH=$srcdir/tests/bench python3 - "$builddir" "$scratch" "${1:-9}" <<'END'
import shutil, sys
import compare
build, scratch, n_rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def measured(*options):
    def words():
        shutil.rmtree(f"{scratch}/m", ignore_errors=True)
        return [f"{build}/hpcrun", "-o", f"{scratch}/m", *options, f"{scratch}/touch"]
    return words
forms = {"by itself": [f"{scratch}/touch"],
         "all recorded by the kernel alone": [f"{scratch}/touch", "ring"], "FAULTS": measured("-e", "FAULTS"),
         "default measurement": measured(), "FAULTS@ring": measured("-e", "FAULTS@ring"), "FAULTS@1": measured("-e", "FAULTS@1")}
rows = compare.in_turn(forms, n_rounds, lambda run: float(run.out.split()[0]))
for name, (values, ratio, *_) in rows.items():
    goal = " (goal 10 %)" if name in ("FAULTS", "FAULTS@ring") else ""
    print(f"page fault, {name}: {compare.median(values):.0f} ns of CPU time, {100 * (ratio - 1):+.1f} %{goal}")
END
finish
