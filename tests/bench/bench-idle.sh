#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the runtime costs when nothing is sampled: instructions of a computation counted by callgrind (which neither load
# nor clock rates change), CPU time in pairs, and what is added to the shortest program, by the clock.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
CC=${CC:-gcc} "$srcdir/tests/e2e/build-kernels" "$scratch/kernels" matmul
PYTHONPATH=$srcdir/tests/bench python3 - "$builddir" "$scratch" "${1:-15}" <<'END'
import os, re, shutil, subprocess, sys
import compare
build, scratch, n_rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
hpcrun = f"{build}/hpcrun"
def measured(*options):
    def words():
        shutil.rmtree(f"{scratch}/m", ignore_errors=True)
        return [hpcrun, "-o", f"{scratch}/m", *options]
    return words
program = [f"{scratch}/kernels/matmul"]

def instructions(prefix):
    run = compare.Run(prefix + ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{scratch}/loop", "30"])
    less = compare.Run(prefix + ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{scratch}/loop", "10"])
    n = [int(m.group(1)) if (m := re.search(r"Collected : (\d+)", r.err + r.out)) else None for r in (run, less)]
    return n[0] - n[1] if None not in n else None

if shutil.which("valgrind"):
    with open(f"{scratch}/loop.c", "w") as file:
        file.write("""#include <stdlib.h>
int main(int argc, char **argv) {
    double *a = malloc(1 << 20); double sum = 0;
    for (int i = 0; i < 1 << 17; i++) a[i] = i;
    for (int pass = 0; pass < atoi(argv[argc - 1]); pass++) {
        void *block = malloc(64 << 10);
        for (int i = 0; i < 1 << 17; i++) sum += a[i] * pass;
        free(block);
    }
    free(a); return sum == 1; }""")
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", f"{scratch}/loop.c", "-o", f"{scratch}/loop"], check=True)
    native, idle = instructions([]), instructions(measured("-ds")())
    if native and idle:
        print(f"idle runtime, computation with a recorded block every 130 thousand loads: {100 * (idle - native) / native:+.3f} % instructions (goal 0.1)")
rows = compare.in_turn({"native": program, "idle": lambda: measured("-ds")() + program, "again": program}, n_rounds,
                       lambda run: run.cpu_s)
print(f"idle runtime, matmul with its start: {100 * (rows['idle'][1] - 1):+.2f} % CPU time, median of {n_rounds} pairs "
      f"(of {compare.median(rows['native'][0]):.2f} s; native against itself {100 * (rows['again'][1] - 1):+.2f} %)")
starts = {"native": ["/bin/true"], "-ds": lambda: measured("-ds")() + ["/bin/true"], "hpcrun": lambda: measured()() + ["/bin/true"]}
for run in range(2):
    compare.Run(measured()() + ["/bin/true"])
cpu = []
rows = compare.in_turn(starts, 3 * n_rounds, lambda run: cpu.append(1000 * run.cpu_s) or 1000 * run.wall_s)
for i, name in enumerate(starts):
    added = [a - b for a, b in zip(rows[name][0], rows["native"][0])]
    cpu_added = [a - b for a, b in zip(cpu[i::3], cpu[0::3])]
    if name != "native":
        print(f"start and end of `true`, {name}: {compare.median(added):+.1f} ms by the clock, best {min(added):+.1f} ms "
              f"(goal 30); {compare.median(cpu_added):+.1f} ms of CPU time that it waits for")
END
finish
