# SPDX-License-Identifier: BSD-3-Clause
"""trace.dat as we write it: trace-cmd and libkshark find in 200,000 events exactly what was written, with gaps that need
more than 27 bits, payloads of all sizes, lost events, and CPUs without any; so they do when hpcquery has read it and written it again, and in what it makes
of a recording of perf. Twins appear when they are asked for."""
import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark"
N_EVENTS = 200_000
failures = []
Row = collections.namedtuple("Row", "cpu time tid id name task info")
HEADERS = [pathlib.Path("/usr/include", name) for name in ("kernelshark", "traceevent", "trace-cmd", "tracefs", "json-c")]


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def build_lister(scratch):
    """The program and None, or None and why there is none."""
    program = pathlib.Path(scratch) / "list-kshark"
    if program.exists():
        return program, None
    if not HEADERS[0].exists():
        return None, "libkshark is not installed (libkshark-dev, libjson-c-dev)"
    built = subprocess.run([os.environ.get("CC", "gcc"), "-w", "-D_GNU_SOURCE", "-O1", "-o", str(program), str(SOURCE / "tests/golden/list-kshark.c"),
                            *(f"-I{folder}" for folder in HEADERS), "-lkshark"], capture_output=True, text=True, check=False)
    return (program, None) if built.returncode == 0 else (None, f"libkshark: {built.stderr.strip()[:300]}")


def kshark_rows(path, scratch):
    """The rows of the trace and None, or None and why it cannot be asked."""
    program, why = build_lister(scratch)
    if program is None:
        return None, why
    listed = subprocess.run([str(program), "--rows", str(path)], capture_output=True, text=True, check=True)
    result = []
    for line in listed.stdout.splitlines():
        cpu, time, tid, event, name, task, info = line.split("\t", 6)
        result.append(Row(int(cpu), int(time), int(tid), int(event), name, task, info))
    return result, None


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
    rows, why = kshark_rows(path, scratch)
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


def report_of(path):
    return subprocess.run(["trace-cmd", "report", "-t", "-i", str(path)], capture_output=True, text=True, check=False).stdout


def export(path, target, *options):
    done = subprocess.run([str(BUILD / "hpcquery"), "sched", "trace-dat", "-o", str(target), *options, str(path)],
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and not done.stderr, f"hpcquery sched trace-dat {path}: {done.stderr}")
    return done.returncode == 0


def check_export(path, scratch):
    """A trace that is read and written again is the same to everybody."""
    again = scratch / "again.dat"
    if not export(path, again):
        return
    if shutil.which("trace-cmd"):
        before, after = report_of(path), report_of(again)
        differing = [pair for pair in itertools.zip_longest(before.splitlines(), after.splitlines()) if pair[0] != pair[1]]
        expect(before == after and before.count("\n") > 1000, f"{path}: trace-cmd finds other events in the export: {len(differing)} of {before.count(chr(10))} lines, first {differing[:2]}")
    before, _ = kshark_rows(path, scratch)
    if before is not None:
        after, _ = kshark_rows(again, scratch)
        expect(sorted(before) == sorted(after), f"{path}: libkshark finds other events in the export")
        print(f"exported: {path.name}, {len(after)} entries")


def check_twins(scratch):
    """Twins that were asked for are events with the number of their origin's task and CPU."""
    path, twins = scratch / "real.dat", scratch / "twins.dat"
    real = DATA / "guest-4cpu-2node.dat"
    if not real.exists():
        print(f"SKIP (part): {real} is not here")
        return
    path.write_bytes(real.read_bytes())
    check_export(path, scratch)
    before, why = kshark_rows(path, scratch)
    if before is None or not export(path, twins, "--couplebreak"):
        print(f"SKIP (part): {why}")
        return
    after, _ = kshark_rows(twins, scratch)
    expect(not any(row.id < 0 for row in after), "an event without an id among the twins")
    for origin, task in (("sched/sched_switch", r"==> .*:(\d+) \["), ("sched/sched_waking", r"pid=(\d+)")):
        origins = [row for row in before if row.name == origin]
        made = collections.Counter((row.time, row.tid, row.info) for row in after
                                   if row.name == f"couplebreak/{origin.split('/')[1]}_target")
        made.subtract((row.time, row.tid, row.info) for row in before
                      if row.name == f"couplebreak/{origin.split('/')[1]}_target")
        wanted_twins = collections.Counter((row.time, int(re.search(task, row.info).group(1)),
                                            f"origin_pid={row.tid} origin_cpu={row.cpu}") for row in origins)
        expect(+made == wanted_twins and len(origins) > 100, f"twins of {origin} differ from their origins")


def check_perf(scratch):
    """A recording of perf with scheduler events: as many, at the same times, with the same texts."""
    path, made = scratch / "perf.data", scratch / "perf.dat"
    if not shutil.which("perf"):
        print("SKIP (part): perf is not installed")
        return
    recorded = subprocess.run(["perf", "record", "-q", "-a", "-k", "mono", "-e", "sched:sched_switch", "-e",
                               "sched:sched_waking", "-o", str(path), "sleep", "0.3"], capture_output=True, text=True,
                              check=False)
    if recorded.returncode != 0:
        print(f"SKIP (part): perf cannot record scheduler events here: {recorded.stderr.strip()[:200]}")
        return
    if not export(path, made):
        return
    listed = subprocess.run([str(BUILD / "hpcquery"), "sched", "events", "--json", str(path)], capture_output=True,
                            text=True, check=True)
    rows, why = kshark_rows(made, scratch)
    if rows is None:
        print(f"SKIP (part): {why}")
        return
    events = json.loads(listed.stdout)["rows"]
    lost = ("missed_events", "locus/lost")  # perf may lose some on a busy machine; readers join what was lost at once
    ours = sorted((event["time_ns"], event["cpu"], event["event"], event["info"]) for event in events
                  if event["event"] not in lost)
    theirs = sorted((row.time, row.cpu, row.name, row.info) for row in rows if row.name not in lost)
    expect(ours == theirs and len(ours) > 10, f"libkshark finds {len(theirs)} events in the export of perf.data, not the "
           f"{len(ours)} of it: {[pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:1]}")
    print(f"perf.data: {len(theirs)} events")


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
        check_export(path, scratch)
        check_twins(scratch)
        check_perf(scratch)
    for sentence in failures[:20]:
        print(f"FAIL: {sentence}")
    return 1 if failures else 0


sys.exit(main())
