#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What opening a recording costs: made recordings of trace-cmd and perf with 1e5 to 1e7 events (N_EVENTS: the largest) of
# four CPUs, in which each event is a switch or a waking: seconds of CPU time, and bytes of memory per event beside the mapped file. Then the same
# with couplebreak, which here doubles the events, as a multiple of without. Then what recording costs (hpcrun -e sched):
# CPU time of a program whose two threads switch SWITCHES times a second (50000), as a multiple of without, in N_PAIRS
# rounds; beside it what perf record of the same tracepoints costs, and the kernel alone, which writes the records into
# rings that nobody reads; and the recorder's own CPU time. Figures are printed, none can fail.
set -euo pipefail
builddir=${LOCUS_BUILDDIR:-.} srcdir=${LOCUS_SRCDIR:-$(dirname "$0")/../..}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-streams.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make -s -C "$builddir" tests/golden/list-stream

for ((n = 100000; n <= ${N_EVENTS:-10000000}; n *= 10)); do
    # A process of its own: what it holds would count as its children's memory.
    PYTHONPATH=$srcdir/tests/lib python3 -c \
        'import pathlib, perfdata, sys, tracedat
for module, suffix in ((tracedat, ".dat"), (perfdata, ".data")):
    module.write_tiled(pathlib.Path(sys.argv[1] + suffix), int(sys.argv[2]))' "$scratch/$n" "$n"
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


print(f"{'':>9} {'events':>10} {'open, s':>8} {'ns/event':>9} {'bytes/event':>12} {'couplebreak':>12}")
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.da*"), key=lambda path: (path.suffix == ".data", int(path.stem))):
    n = int(path.stem)
    run(path)
    rounds = [(run(path), run(path, "--couplebreak")) for _ in range(5)]
    seconds = statistics.median(plain[0] for plain, _ in rounds)
    memory = max(0, rounds[0][0][1] - path.stat().st_size) / n
    ratio = statistics.median(twins[0] / plain[0] for plain, twins in rounds)
    print(f"{'perf.data' if path.suffix == '.data' else 'trace.dat':>9} {n:>10} {seconds:>8.3f} {1e9 * seconds / n:>9.1f} {memory:>12.1f} {ratio:>12.2f}")
PYTHON

cat >"$scratch/switches.c" <<'PROGRAM'
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int there[2], back[2];
static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
static void *answer(void *nothing)
{
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
        ;
    return nothing;
}
static void work(long n)
{
    for (volatile long i = 0; i < n; i++)
        ;
}
/* Opens tracepoints on all CPUs; the kernel goes on writing over the oldest records. */
static void open_rings(char **ids)
{
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
        for (int i = 0, first = -1; ids[i]; i++) {
            struct perf_event_attr attr = {.size = sizeof attr,
                                           .type = PERF_TYPE_TRACEPOINT,
                                           .config = strtoull(ids[i], NULL, 10),
                                           .sample_period = 1,
                                           .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
                                           .watermark = 1,
                                           .wakeup_watermark = 1 << 20,
                                           .write_backward = 1};
            int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);
            if (fd < 0 || (i && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first)))
                continue;
            if (!i && mmap(NULL, 4096 + (4 << 20), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
                continue;
            first = i ? first : fd;
        }
}
static void trips(long n, long pause)
{
    char byte = 0;
    for (; n > 0; n--) {
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            exit(1);
        work(pause);
    }
}
/* usage: switches RATE SECONDS [PAUSE [TRACEPOINT...]]: without PAUSE prints the one that gives this rate */
int main(int argc, char **argv)
{
    long rate = atol(argv[1]), n = rate / 2 * atol(argv[2]), pause = argc > 3 ? atol(argv[3]) : 0;
    cpu_set_t one;
    pthread_t thread;
    struct rusage before, after;
    char line[8];
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    if (argc > 4)
        open_rings(argv + 4);
    if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
        return 1;
    trips(2000, 0);
    if (argc < 4) {
        double begin = now(CLOCK_PROCESS_CPUTIME_ID);
        trips(20000, 0);
        double trip = (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / 20000;
        begin = now(CLOCK_PROCESS_CPUTIME_ID);
        work(20000000);
        double step = (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / 20000000;
        double left = 2.0 / (double)rate - trip;
        printf("%ld\n", left > 0 ? (long)(left / step) : 0);
        return 0;
    }
    getrusage(RUSAGE_SELF, &before);
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    trips(n, pause);
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    getrusage(RUSAGE_SELF, &after);
    printf("%.9f %ld\n", cpu, after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL;
}
PROGRAM
${CC:-gcc} -O2 -pthread -o "$scratch/switches" "$scratch/switches.c"
python3 - "$builddir/hpcrun" "$scratch" "${SWITCHES:-50000}" "${N_PAIRS:-15}" <<'PYTHON'
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

hpcrun, scratch, rate, n_pairs = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
program, seconds, ticks = str(scratch / "switches"), "2", os.sysconf("SC_CLK_TCK")
pause = subprocess.run([program, rate, seconds], capture_output=True, text=True, check=True).stdout.strip()


def recorder_seconds(path):
    """CPU time of the process that has the file open."""
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == str(path):
                fields = (link.parents[1] / "stat").read_text().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / ticks
        except OSError:
            pass
    return 0


def run(way):
    """CPU time and switches of the loop, and the recorder's CPU time."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=scratch), "measured")
    before = {"hpcrun -e sched": [hpcrun, "-e", "sched", "-o", directory],
              "perf record": ["perf", "record", "-q", "-a", *(w for p in points for w in ("-e", "sched:" + p)), "-o", scratch / "perf.data"]}
    behind = ids if way == "the kernel alone" else []
    process = subprocess.Popen([*before.get(way, []), program, rate, seconds, pause, *behind], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    cpu, n = process.stdout.readline().split()
    recorder = recorder_seconds(next(directory.glob("*.sched"))) if way == "hpcrun -e sched" else 0
    process.communicate("\n")
    return float(cpu), int(n), recorder


points = ("sched_switch", "sched_waking", "sched_migrate_task")
ids = [pathlib.Path("/sys/kernel/tracing/events/sched", p, "id").read_text().strip() for p in points]
ways = ["", "hpcrun -e sched", "the kernel alone"] + ["perf record"] * bool(shutil.which("perf"))
ratios, shares, counts = {way: [] for way in ways[1:]}, [], []
for i in range(n_pairs):
    # what comes later has the warmer caches: each is first in turn
    first = i % len(ways)
    found = {way: run(way) for way in ways[first:] + ways[:first]}
    for way in ways[1:]:
        ratios[way].append(found[way][0] / found[""][0])
    counts.append(found[""][1] / found[""][0])
    shares.append(found["hpcrun -e sched"][2] / found["hpcrun -e sched"][0])
print(f"recording {statistics.median(counts):.0f} switches per CPU second, {n_pairs} rounds: CPU time")
for way, all_of in ratios.items():
    all_of.sort()
    print(f"  x {statistics.median(all_of):.3f} (quartiles {all_of[len(all_of) // 4]:.3f}, {all_of[-1 - len(all_of) // 4]:.3f})  {way}")
print(f"  the recorder of hpcrun beside it: {100 * statistics.median(shares):.1f} % of that")
PYTHON
