# SPDX-License-Identifier: BSD-3-Clause
"""trace.dat as we write it: trace-cmd and libkshark find in 200,000 events exactly what was written, with gaps that need
more than 27 bits, payloads of all sizes, lost events, and CPUs without any."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import kshark  # noqa: E402

N_EVENTS = 200_000
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def wanted(text):
    """[(time, CPU, thread, name, text, lost)] in the order of readers: by time, then CPU; lost: before it, None: none,
    0: some."""
    events, lost = [], None
    for line in text.splitlines():
        if line.startswith("lost "):
            lost = int(line.split()[2])
            continue
        cpu, time, tid, name, info = line.split(" ", 4)
        events.append((int(time), int(cpu), int(tid), name, info, lost))
        lost = None
    return sorted(events, key=lambda event: event[:2])


def compare(who, ours, theirs):
    expect(len(ours) == len(theirs), f"{who}: {len(theirs)} events, not {len(ours)}")
    differing = [(a, b) for a, b in zip(ours, theirs) if a != b]
    expect(not differing, f"{who}: {len(differing)} events differ, the first: {differing[:1]}")


def check_trace_cmd(path, events):
    if not shutil.which("trace-cmd"):
        print("SKIP (part): trace-cmd is not installed")
        return
    report = subprocess.run(["trace-cmd", "report", "-t", "-i", str(path)], capture_output=True, text=True, check=False)
    expect(report.returncode == 0, f"trace-cmd: {report.stderr[:300]}")
    line_form = re.compile(r"^\s*(\S+)-(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}):\s+(\S+):\s+(.*)$")
    found, lost = [], {}
    for line in report.stdout.splitlines():
        match = line_form.match(line)
        if match:
            comm, tid, cpu, seconds, ns, name, info = match.groups()
            expect(comm == f"task-{tid}", f"trace-cmd: thread {tid} is called {comm}")
            found.append((int(seconds) * 10**9 + int(ns), int(cpu), int(tid), name, info, lost.pop(int(cpu), None)))
        elif match := re.match(r"^CPU:(\d+) \[(?:(\d+) )?EVENTS DROPPED\]", line):
            lost[int(match.group(1))] = int(match.group(2) or 0)
        else:
            expect(line.startswith(("cpus=", "CPU ", "version")), f"trace-cmd: a line that nobody expects: {line}")
    compare("trace-cmd", [(*event[:3], event[3].split("/")[1], *event[4:]) for event in events], found)
    print(f"trace-cmd: {len(found)} events")


def check_libkshark(path, events, scratch):
    rows, why = kshark.rows(path, scratch)
    if rows is None:
        print(f"SKIP (part): {why}")
        return
    missed = [row for row in rows if row.name == "missed_events"]
    n_lost = sum(event[5] is not None for event in events)
    expect(len(missed) == n_lost, f"libkshark: {len(missed)} times events were lost, not {n_lost}")
    expect(not any(row.id < 0 for row in rows if row not in missed), "libkshark: an event without an id")
    found = [(row.time, row.cpu, row.tid, row.name, row.info) for row in rows if row.name != "missed_events"]
    compare("libkshark", [event[:5] for event in events], found)
    print(f"libkshark: {len(found)} events and {len(missed)} times lost ones")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        path = scratch / "made.dat"
        made = subprocess.run([str(BUILD / "tests/golden/make-trace-dat"), str(path), str(N_EVENTS)],
                              capture_output=True, text=True, check=True)
        events = wanted(made.stdout)
        expect(len(events) == N_EVENTS, f"{len(events)} events were written")
        expect(any(event[5] for event in events), "no events were lost")
        check_trace_cmd(path, events)
        check_libkshark(path, events, scratch)
    for sentence in failures[:20]:
        print(f"FAIL: {sentence}")
    return 1 if failures else 0


sys.exit(main())
