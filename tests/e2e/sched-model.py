# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery sched on random recordings, against a model that follows every task by itself: times in each state, latencies,
counts, of tasks and CPUs, with lost records, missing events and windows; from trace.dat and from perf.data of all tiers.
LOCUS_STREAMS: how many. Then a thousand against the model of couplebreak, and damaged ones (trace-dat.py --long)."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests/lib"))
import perfdata  # noqa: E402
import tracedat  # noqa: E402
N_STREAMS = int(os.environ.get("LOCUS_STREAMS", "100" if os.environ.get("LOCUS_TEST_FULL") else "30"))
OFF_STATES = ("woken", "preempted", "sleeping", "uninterruptible", "stopped", "off")
STATES = {1: "sleeping", 2: "uninterruptible", 4: "stopped", 0: "preempted", 0x100: "preempted", 0x20: "dead"}
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


# --- random recordings: a list of (time, cpu, kind, ...) -------------------------------------------------------------

def make(rng, n_events):
    n_cpus, tasks = rng.randint(1, 5), list(range(100, 100 + rng.randint(2, 12)))
    running = {cpu: 0 for cpu in range(n_cpus)}
    asleep, ready = set(tasks), set()
    time, events = rng.randint(10 ** 6, 10 ** 12), []
    gaps = rng.choice([0, 0, 0.02])
    missing = rng.choice([0, 0, 0.03])
    for _ in range(n_events):
        time += rng.choice([0, 1, 17, 900, 25_000, 4_000_000])
        cpu = rng.randrange(n_cpus)
        lost = rng.random() < gaps
        if asleep and rng.random() < 0.45:
            woken = rng.choice(sorted(asleep))
            asleep.discard(woken)
            ready.add(woken)
            event = ("waking", time, cpu, running[cpu], woken)
        elif ready and rng.random() < 0.5 or running[cpu]:
            before = running[cpu]
            after = rng.choice(sorted(ready)) if ready and rng.random() < 0.8 else 0
            if after == before:
                continue
            state = rng.choice([0, 0x100, 1, 1, 2, 4]) if before else 0
            if before:
                (ready if state in (0, 0x100) else asleep).add(before)
            ready.discard(after)
            running[cpu] = after
            event = ("switch", time, cpu, before, after, state)
        else:
            event = ("mark", time, cpu, running[cpu])
        if rng.random() >= missing:
            events.append(("lost", time, cpu) if lost and events else event)
            if lost and len(events) > 1:
                events.append(event)
    events.sort(key=lambda e: (e[1], e[2]))
    return n_cpus, events


# --- the model -------------------------------------------------------------------------------------------------------

class Task:
    def __init__(self, begin):
        self.state, self.since, self.known = "unknown", begin, begin
        self.left = self.woken = self.cpu = None


class Model:
    """Eager: every event closes what it ends at once, and a loss closes everything that it makes uncertain."""

    def __init__(self, events, knows_wakings=True, knows_all=True):
        self.begin, self.end = (events[0][1], events[-1][1]) if events else (0, 0)
        self.tasks, self.current, self.since, self.last = {}, {}, {}, {}
        self.switched = set()  # CPUs of which it is known what they ran
        self.pieces, self.cpu_pieces, self.latencies, self.waits = [], [], [], []
        self.runs, self.leaves, self.moves = [], [], []
        self.by = {}  # (task, time): who came onto the CPU that it left
        self.knows_wakings, self.knows_all = knows_wakings, knows_all
        for event in events:
            getattr(self, event[0])(*event[1:])
            self.last[event[2]] = event[1]
        for cpu in list(self.current):
            self.forget_cpu(cpu, self.end, self.end)
        for number, task in self.tasks.items():
            state = task.state
            if not knows_wakings and state in ("sleeping", "uninterruptible", "stopped"):
                state = "off"
            self.close(number, task, self.end, state)

    def task(self, number):
        return self.tasks.setdefault(number, Task(self.begin))

    def meet(self, cpu):
        if cpu not in self.current:
            self.current[cpu], self.since[cpu], self.last[cpu] = None, self.begin, self.begin

    def close(self, number, task, to, state):
        task.known = max(task.known, to)
        if state not in ("unknown", "dead") and to > task.since:
            self.pieces.append((number, state, task.since, to))

    def unknown(self, task, time):
        task.state, task.since = "unknown", time
        task.left = task.woken = task.cpu = None

    def close_cpu(self, cpu, to):
        if self.current[cpu] is not None and to > self.since[cpu]:
            self.cpu_pieces.append((cpu, "idle" if self.current[cpu] == 0 else "running", self.since[cpu], to))

    def forget_cpu(self, cpu, to, time):
        to = max(to, self.since[cpu])
        self.close_cpu(cpu, to)
        number = self.current[cpu]
        if number and self.tasks[number].state == "running":
            self.close(number, self.tasks[number], to, "running")
            self.unknown(self.tasks[number], time)
        self.current[cpu], self.since[cpu] = None, time

    def mark(self, time, cpu, task):
        self.meet(cpu)

    def lost(self, time, cpu):
        self.meet(cpu)
        gap = self.last[cpu]
        self.forget_cpu(cpu, gap, time)
        for number, task in self.tasks.items():
            if task.state not in ("running", "unknown"):
                self.close(number, task, gap, task.state)
                self.unknown(task, gap)

    def waking(self, time, cpu, waker, woken):
        self.meet(cpu)
        task = self.task(woken)
        if task.state in ("running", "preempted", "woken"):
            return
        self.close(woken, task, time, task.state)
        if task.state == "dead":
            self.unknown(task, time)
        task.state, task.since, task.woken = "woken", time, time

    def switch(self, time, cpu, before, after, state):
        self.meet(cpu)
        self.switched.add(cpu)
        self.leave(time, cpu, before, STATES[state] if before else None, after)
        self.come(time, cpu, after)

    def leave_elsewhere(self, number, cpu, time):
        task = self.tasks[number]
        other = task.cpu
        if other is not None and other != cpu and self.current.get(other) == number:
            self.forget_cpu(other, self.last[other], time)
        self.unknown(task, time)

    def leave(self, time, cpu, number, state, after):
        task = self.task(number) if number else None
        free = task and (task.state == "unknown" or task.state == "woken" and task.left is None)
        if self.current[cpu] is None and self.knows_all and (not number or free):
            if task:
                task.state, task.since, task.cpu = "running", max(self.since[cpu], task.known), cpu
                self.since[cpu] = task.since
            self.current[cpu] = number
        if self.current[cpu] != number:
            self.forget_cpu(cpu, self.last[cpu], time)
        self.close_cpu(cpu, time)
        self.current[cpu], self.since[cpu] = None, time
        if not task:
            return
        if task.state == "running" and task.cpu != cpu:
            self.leave_elsewhere(number, cpu, time)
        if task.state == "running":
            self.close(number, task, time, "running")
        self.by[number, time] = after
        task.state, task.since, task.cpu, task.left, task.woken = state, time, cpu, time, None
        self.leaves.append((number, cpu, time, state == "preempted"))

    def come(self, time, cpu, number):
        self.current[cpu], self.since[cpu] = number, time
        if not number:
            return
        task = self.task(number)
        if task.state == "running":
            self.leave_elsewhere(number, cpu, time)
        if task.state in ("woken", "preempted") and time > task.since:
            self.waits.append((cpu, task.since, time))
        if task.state == "woken":
            self.latencies.append((number, cpu, time - task.woken, time))
        seen = "off" if task.state in ("sleeping", "uninterruptible", "stopped") else task.state
        self.close(number, task, time, seen)
        if task.cpu is not None and task.cpu != cpu:
            self.moves.append((number, cpu, time))
        self.runs.append((number, time))
        task.state, task.since, task.cpu = "running", time, cpu


def clipped(pieces, window):
    return sum(max(0, min(p[-1], window[1]) - max(p[-2], window[0])) for p in pieces)


def percentile(values):
    return sorted(values)[-(-95 * len(values) // 100) - 1]


def latency_row(found):
    values = [f[2] for f in found]
    return {"wakings": len(values), "latency_mean_ns": sum(values) // len(values) if values else None,
            "latency_p95_ns": percentile(values) if values else None, "latency_max_ns": max(values) if values else None}


def expected(model, window):
    """The rows of the reports: tasks by number, CPUs by number."""
    inside = lambda time: window[0] <= time <= window[1]  # noqa: E731
    tasks, cpus = {}, {}
    for number in model.tasks:
        mine = [p for p in model.pieces if p[0] == number]
        sums = {state: clipped([p for p in mine if p[1] == state], window) for state in ("running",) + OFF_STATES}
        row = {f"{state}_ns": sums[state] for state in ("running", "woken", "preempted", "sleeping", "uninterruptible", "stopped")}
        row["off_ns"] = sum(sums[s] for s in OFF_STATES)
        row["runs"] = sum(n == number and inside(t) for n, t in model.runs)
        row["switches"] = sum(n == number and inside(t) for n, _, t, _ in model.leaves)
        row["preemptions"] = sum(n == number and p and inside(t) for n, _, t, p in model.leaves)
        row["migrations"] = sum(n == number and inside(t) for n, _, t in model.moves)
        row.update(latency_row([f for f in model.latencies if f[0] == number and inside(f[3])]))
        if row["running_ns"] + row["off_ns"] or row["runs"] or row["switches"]:
            tasks[number] = row
    for cpu in model.current:
        mine = [p for p in model.cpu_pieces if p[0] == cpu]
        row = {"running_ns": clipped([p for p in mine if p[1] == "running"], window),
               "idle_ns": clipped([p for p in mine if p[1] == "idle"], window),
               "waited_ns": clipped([p for p in model.waits if p[0] == cpu], window),
               "preemptions": sum(c == cpu and p and inside(t) for _, c, t, p in model.leaves),
               "migrations": sum(c == cpu and inside(t) for _, c, t in model.moves)}
        row["unknown_ns"] = clipped([(model.begin, model.end)], window) - row["running_ns"] - row["idle_ns"]
        row.update(latency_row([f for f in model.latencies if f[1] == cpu and inside(f[3])]))
        if cpu not in model.switched:  # the rest is not known, which is not zero
            row = {key: value if key == "unknown_ns" else None for key, value in row.items()}
        cpus[cpu] = row
    return tasks, cpus


# --- files -----------------------------------------------------------------------------------------------------------

def record(n_cpus, events):
    made = tracedat.Recording(n_cpus)
    made.tasks = {n: f"task{n}" for n in range(100, 120)}
    lost = {}
    for event in events:
        kind, time, cpu = event[:3]
        if kind == "lost":
            lost[cpu] = 3
            continue
        more = {"lost": lost.pop(cpu)} if cpu in lost else {}
        if kind == "switch":
            made.switch(cpu, time, event[3], event[4], prev_state=event[5], **more)
        elif kind == "waking":
            made.waking(cpu, time, event[3], event[4], 0, **more)
        else:
            made.add(cpu, time, event[3], ("test", "mark"), value=1, **more)
    return made


KEY_OF = {"switch": ("sched", "sched_switch"), "waking": ("sched", "sched_waking"), "mark": ("test", "mark")}


def perf_tracepoints(rng, n_cpus, events, order):
    """As perf writes them: some time of one CPU, then of the next."""
    made = record(n_cpus, events)
    if order != made.order:
        made = tracedat.Recording(n_cpus, order)
        made.tasks = {n: f"task{n}" for n in range(100, 120)}
    out = perfdata.Sched(order, "tracepoints", n_cpus, made)
    for first in range(0, len(events), 40):
        part = events[first:first + 40]
        for cpu in rng.sample(range(n_cpus), n_cpus):
            for event in part:
                if event[2] != cpu:
                    continue
                if event[0] == "lost":
                    body = out.pack("QQ", 1000, 3) + out.trailer(0, 0, 0, event[1], cpu)
                    out.record(perfdata.LOST, 0, body)
                    continue
                single = tracedat.Recording(n_cpus, order)
                single.tasks = made.tasks
                if event[0] == "switch":
                    single.switch(cpu, event[1], event[3], event[4], prev_state=event[5])
                elif event[0] == "waking":
                    single.waking(cpu, event[1], event[3], event[4], 0)
                else:
                    single.add(cpu, event[1], event[3], ("test", "mark"), value=1)
                out.tracepoint(KEY_OF[event[0]], event[1], event[3], cpu, single.events[cpu][0][1])
        out.finished_round()
    return out.bytes() if rng.random() < 0.5 else out.piped()


def perf_switches(rng, n_cpus, events, order):
    """CPU-wide records of the switches; one of a thread that comes stands alone sometimes."""
    out = perfdata.Sched(order, "wide", n_cpus)
    for cpu in range(n_cpus):
        for event in events:
            if event[2] != cpu:
                continue
            if event[0] == "lost":
                out.record(perfdata.LOST, 0, out.pack("QQ", 1000, 3) + out.trailer(0, 0, 0, event[1], cpu))
            elif event[0] == "switch":
                _, time, _, before, after, state = event
                out.wide(time, cpu, before, True, after, state in (0, 0x100) and before != 0)
                out.wide(time, cpu, after, False, before)
    return out.bytes()


# --- comparison ------------------------------------------------------------------------------------------------------

def report(name, path, window=None):
    options = [] if window is None else ["--from", f"{window[0] / 1e9:.9f}", "--to", f"{window[1] / 1e9:.9f}"]
    done = subprocess.run([BUILD / "hpcquery", "sched", name, "--json", *options, path], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        failures.append(f"{path.name}: {done.stderr}")
        return {"rows": [], "streams": []}
    return json.loads(done.stdout)


def compare(what, found, wanted, absent=()):
    expect(found.keys() == wanted.keys(), f"{what}: {sorted(found)} instead of {sorted(wanted)}")
    for number in found.keys() & wanted.keys():
        for key, value in wanted[number].items():
            value = None if key in absent else value
            expect(found[number][key] == value, f"{what} {number}: {key} is {found[number][key]} instead of {value}")


LATENCIES = ("wakings", "latency_mean_ns", "latency_p95_ns", "latency_max_ns")


def displaced(model, window):
    """{(task, by): (times, waited, longest)}"""
    found = {}
    for number, state, since, until in model.pieces:
        if state == "preempted" and window[0] <= since <= window[1]:
            waited, by = min(until, window[1]) - since, model.by[number, since]
            n, sum_of, longest = found.get((number, by), (0, 0, 0))
            found[number, by] = (n + 1, sum_of + waited, max(longest, waited))
    return found


def check(path, model, window, tier, absent=(), cpu_absent=()):
    tasks, cpus = expected(model, window or (model.begin, model.end))
    found = report("tasks", path, window)
    expect([s["tier"] for s in found["streams"]] == [tier], f"{path.name}: {found['streams']} instead of {tier}")
    compare(f"{path.name} task", {r["tid"]: r for r in found["rows"]}, tasks, absent)
    found = {(r["tid"], r["by_tid"]): (r["times"], r["waited_ns"], r["longest_ns"]) for r in report("displaced", path, window)["rows"]}
    wanted = displaced(model, window or (model.begin, model.end))
    expect(found == wanted, f"{path.name}: who displaced whom: {found} instead of {wanted}")
    found = report("cpus", path, window)
    compare(f"{path.name} CPU", {r["cpu"]: r for r in found["rows"] if r["cpu"] in cpus}, cpus, cpu_absent)


def one(seed, scratch):
    rng = random.Random(seed)
    n_cpus, events = make(rng, rng.choice([5, 40, 300]))
    if not any(e[0] == "switch" for e in events) or not any(e[0] == "waking" for e in events):
        return
    while events[-1][0] == "lost":
        events.pop()
    # a loss is told with the next event of its CPU
    following = {}
    for i in range(len(events) - 1, -1, -1):
        if events[i][0] == "lost":
            follower = following.get(events[i][2])
            events[i] = ("lost", follower, events[i][2]) if follower is not None else None
        if events[i]:
            following[events[i][2]] = events[i][1]
    events = [e for e in events if e]
    events.sort(key=lambda e: (e[1], e[2], e[0] != "lost"))
    if events[0][0] == "lost":
        events = events[1:]
    inner = sorted(rng.randint(events[0][1], events[-1][1]) for _ in range(2))
    model = Model(events)
    path = scratch / f"{seed}.dat"
    path.write_bytes(record(n_cpus, events).version_6())
    # as in libkshark, losses in trace.dat lie 10 ns before the event that follows: perf.data stands for them
    if not any(e[0] == "lost" for e in events):
        check(path, model, None, "full")
    path = scratch / f"{seed}.perf"
    path.write_bytes(perf_tracepoints(rng, n_cpus, events, rng.choice("<>")))
    check(path, model, None, "full")
    check(path, model, inner, "full")
    path = scratch / f"{seed}.wide"
    path.write_bytes(perf_switches(rng, n_cpus, events, rng.choice("<>")))
    lesser = [e if e[0] != "switch" else e for e in events if e[0] in ("switch", "lost")]
    if lesser:
        blocked = LATENCIES + ("woken_ns", "sleeping_ns", "uninterruptible_ns", "stopped_ns")
        check(path, Model(lesser, knows_wakings=False), None, "switches", blocked, LATENCIES + ("waited_ns",))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(N_STREAMS):
            one(seed, pathlib.Path(scratch))
            if failures:
                break
    for sentence in failures[:20]:
        print("FAIL:", sentence)
    print(f"{N_STREAMS} streams")
    couplebreak = subprocess.run([sys.executable, SOURCE / "tests/golden/trace-dat.py", "--long"], check=False)
    sys.exit(bool(failures) or couplebreak.returncode)


main()
