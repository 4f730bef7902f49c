#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Locus beside other profilers on the same programs in one run: CPU time, memory and size of the output. What a tool
# leaves to a second process or to the analysis afterwards is not counted as CPU time of the run where nobody waits for
# it, but its memory is, where the machine lets us measure that of all processes together.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
for name in heap-threads triad-threads; do
    $CC -O2 -g -pthread "$srcdir/tests/bench/$name.c" -o "$scratch/$name"
done
minicg=$builddir/tests/e2e/programs/minicg/minicg
[ -x "$minicg" ] || make -s -C "$builddir" demo-programs >/dev/null 2>&1 || skip "minicg has not been built"
PYTHONPATH=$srcdir/tests/bench python3 - "$builddir" "$scratch" "${1:-5}" <<'END'
import glob, os, pathlib, shutil, sys, time
import compare
build, scratch, n_rounds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
out = scratch / "out"
programs = {
    "minicg (conjugate gradients, one thread)": [build / "tests/e2e/programs/minicg/minicg", "--steps", "1"],
    "heap-threads (8 threads, 1.6 million blocks of 16 B to 2 KiB)": [scratch / "heap-threads", "8", "200000", "16", "2048"],
    "triad-threads (2 threads on large arrays)": [scratch / "triad-threads", "400"],
}

def library(name):
    found = glob.glob(f"/usr/lib/*/{name}")
    return found[0] if found else None

def preload(name, **variables):
    path = library(name)
    return (lambda program: (program, {**os.environ, "LD_PRELOAD": path, **variables})) if path else None

def command(*words, needs=None):
    if not shutil.which(needs or str(words[0])):
        return None
    return lambda program: ([*words, *program], None)

tools = {
    "native": lambda program: (program, None),
    "hpcrun (data, call paths, allocations)": command(build / "hpcrun", "-o", out / "m", needs=str(build / "hpcrun")),
    "hpcrun -e CPUTIME": command(build / "hpcrun", "-e", "CPUTIME@f1000", "-o", out / "m", needs=str(build / "hpcrun")),
    "perf record -g, 1000/s": command("perf", "record", "-q", "-g", "-F", "1000", "-o", out / "perf.data"),
    "heaptrack (every allocation)": command("heaptrack", "-o", out / "heaptrack"),
    "gperftools, CPU, 1000/s": preload("libprofiler.so.0", CPUPROFILE=str(out / "cpu.prof"), CPUPROFILE_FREQUENCY="1000"),
    "gperftools, heap": preload("libtcmalloc.so.4", HEAPPROFILE=str(out / "heap")),
}
for name in [name for name, make in tools.items() if not make]:
    print(f"SKIP (part): {name} is not installed")
    del tools[name]

def once(make, program):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    words, environment = make(program)
    run = compare.Run(words, environment)
    for _ in range(300):
        if not glob.glob(str(out / "m" / ".writing-*")):
            break
        time.sleep(0.1)
    if run.status:
        raise SystemExit(f"{words} ended with {run.status}: {run.err[-400:]}")
    run.out_bytes = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return run

for title, program in programs.items():
    rows = {name: [] for name in tools}
    for _ in range(n_rounds):
        for name, make in tools.items():
            rows[name].append(once(make, program))
    print(f"\n{title}: native {compare.median([run.cpu_s for run in rows['native']]):.2f} s of CPU time, median of {n_rounds} rounds\n")
    print("| tool | CPU time | elapsed | peak memory | output |\n|---|---:|---:|---:|---:|")
    for name, runs in rows.items():
        cpu = compare.median([run.cpu_s / base.cpu_s for run, base in zip(runs, rows["native"])])
        wall = compare.median([run.wall_s / base.wall_s for run, base in zip(runs, rows["native"])])
        peaks = [run.peak_bytes for run in runs]
        memory = f"{compare.median(peaks) / 2**20:.1f} MiB" if None not in peaks else "unknown"
        size = compare.median([run.out_bytes for run in runs])
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {memory} | {size / 1024:.0f} KiB |" if name != "native"
              else f"| native | 1 | 1 | {memory} | |", flush=True)
END
finish
