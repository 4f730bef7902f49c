# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery sched: its runs are those of perf sched timehist, its trace events keep the rules of their format, what a tier
cannot know is absent, streams stand on one axis only where that is known or said, and bad files are one message."""
import csv
import io
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
sys.path.insert(0, str(SOURCE / "tests/lib"))
import perfdata  # noqa: E402
import tracedat  # noqa: E402
QUERY = BUILD / "hpcquery"
skipped = []
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def command_line(words):
    return [str(w) for w in (QUERY, "sched", *words)]


def query(*words, status=0, **options):
    command = command_line(words)
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    expect(done.returncode == status, f"sched {words}: status {done.returncode}: {done.stderr}")
    return done


def rows(*words):
    return json.loads(query("--json", *words).stdout)["rows"]


# --- a made recording of which everything is known ---------------------------------------------------------------------

def made(clock="local [mono]\0"):
    out = tracedat.Recording(2)
    out.tasks, out.clock = {7: "seven", 8: "eight"}, clock
    out.switch(0, 1_000_000, 0, 7)
    out.waking(0, 1_200_000, 7, 8, 1)
    out.switch(1, 1_500_000, 0, 8)
    out.switch(0, 2_000_000, 7, 0, prev_state=1)
    out.add(1, 2_100_000, 8, ("test", "mark"), value=5)
    out.waking(1, 2_500_000, 8, 7, 1)
    out.switch(1, 3_000_000, 8, 7, prev_state=0x100)
    out.switch(1, 5_000_000, 7, 8, prev_state=0x20)
    out.switch(0, 6_000_000, 0, 9)
    return out


def known(path):
    tasks = {r["tid"]: r for r in rows(path)}
    seven, eight = tasks[7], tasks[8]
    expect((seven["running_ns"], seven["sleeping_ns"], seven["woken_ns"], seven["migrations"]) ==
           (3_000_000, 500_000, 500_000, 1), f"task 7: {seven}")
    expect((eight["running_ns"], eight["woken_ns"], eight["preempted_ns"], eight["preemptions"]) ==
           (2_500_000, 300_000, 2_000_000, 1), f"task 8: {eight}")
    expect(rows("latencies", path)[0]["tid"] == 7, "the longest latency does not come first")
    moves = rows("migrations", path)
    expect([(m["tid"], m["from_cpu"], m["to_cpu"], m["off_ns"]) for m in moves] == [(7, 0, 1, 1_000_000)], f"moves: {moves}")
    text = query(path).stdout
    expect("clock: monotonic" in text and "known: switches, wakings" in text, f"the head lacks clock or tier: {text}")
    table = list(csv.DictReader(io.StringIO(query("tasks", "--csv", path).stdout)))
    expect({r["tid"]: r["running_ns"] for r in table}["7"] == "3000000" and table[0]["tier"] == "full" and
           table[0]["clock"] == "monotonic", f"CSV: {table[:1]}")
    expect([r["tid"] for r in rows("--task", "sev*", path)] == [7], "--task")
    expect([r["cpu"] for r in rows("cpus", "--cpu", "1", path)] == [1], "--cpu")
    expect({r["tid"] for r in rows("tasks", "--cpu", "0", path)} == {7}, "tasks of CPU 0")
    names = {r["event"] for r in rows("events", "--event", "mark,sched:sched_wak*", path)}
    expect(names == {"test/mark", "sched/sched_waking"}, f"--event: {names}")
    expect(len(rows("events", "--top", "3", path)) == 3, "--top")
    n_events = len(rows("events", path))
    expect(query("events", "--top", "3", path).stdout.endswith(f"\n{n_events - 3} more (--top 0 shows all)\n"), "events left out")
    expect(" more (" not in query("events", "--top", "0", path).stdout, "none are left out")
    expect("\n1 more (--top 0" in query("tasks", "--top", str(len(table) - 1), path).stdout, "tasks left out")
    expect([r["time_ns"] for r in rows("events", "--from", "+0.001", "--to", "0.0025", path)] ==
           [2_000_000, 2_100_000, 2_500_000], "--from and --to")
    twins = rows("events", "--couplebreak", path)
    expect(sum(r["event"].startswith("couplebreak/") for r in twins) == 8 and
           [r["origin_tid"] for r in twins if r["event"] == "couplebreak/sched_waking[target]"] == [7, 8], f"twins: {twins}")
    wide = [query("timeline", path, env=dict(os.environ, COLUMNS=str(n))).stdout.split("\n") for n in (80, 140)]
    for lines, n in zip(wide, (80, 140)):
        bars = [line for line in lines if line.endswith(" %")]
        expect(bars and all(len(line) == n for line in bars), f"a time line does not fill {n} columns: {bars}")
        # each time stands under the slice that it begins with
        bar = bars[0].index("|") + 1
        axis, n_slices = lines[lines.index(bars[-1]) + 1], len(bars[0][bar:].rpartition("|")[0])
        ticks = [(m.start() - bar, float(m.group(1))) for m in re.finditer(r"\|\+([0-9.]+)", axis)]
        expect(len(ticks) > 2 and ticks[0] == (0, 0) and all(abs(t - 0.005 * i / n_slices) <= 5.1e-5 for i, t in ticks), f"times: {axis!r}")
    displaced = [(r["tid"], r["by_tid"], r["times"], r["waited_ns"]) for r in rows("displaced", path)]
    expect(displaced == [(8, 7, 1, 2_000_000)], f"displaced: {displaced}")
    displaced = rows("displaced", "--task", "seven", "--to", "0.004", path)
    expect([(r["name"], r["by_name"], r["longest_ns"]) for r in displaced] == [("eight:8", "seven:7", 1_000_000)], f"displaced: {displaced}")
    summary = query("summary", path).stdout.split("\n")
    expect(len(summary) <= 24 and [line for line in summary if line.endswith(":")] ==
           ["Tasks that ran longest:", "Who took whose CPU:", "From waking to running:"], f"summary: {summary}")
    query("summary", "--csv", path, status=2)
    out = tracedat.Recording(1)
    for i in range(8):
        out.waking(0, 1000 * (3 * i + 1), i, 100 + i, 0)
        out.switch(0, 1000 * (3 * i + 2), 99 + i if i else 0, 100 + i)
    out.switch(0, 1000 * 25, 107, 0)
    crowd = path.with_name("crowd.dat")
    crowd.write_bytes(out.version_6())
    for recording in (path, crowd):
        summary = query("summary", recording).stdout
        for report, most in (("tasks", 5), ("displaced", 3), ("latencies", 3)):
            n = len(rows(report, "--top", "0", recording))
            expect((f"\n{n - most} more (hpcquery sched {report})\n" in summary) == (n > most), f"summary of {n} {report}: {summary}")
            expect(n > most or recording == path, f"{report}: {n} rows")
    slices = rows("timeline", path)
    expect(sum(r["running_ns"] for r in slices if r["row"] == "task" and r["number"] == 7) == 3_000_000, "slices of task 7")


def unseen(scratch):
    """A task that leaves, is woken, and leaves again: when it came, nobody has recorded."""
    out, path = made(), scratch / "unseen.dat"
    out.switch(0, 7_000_000, 9, 0, prev_state=1)
    out.waking(0, 8_000_000, 0, 9, 0)
    out.switch(1, 9_000_000, 9, 8, prev_state=1)
    path.write_bytes(out.version_6())
    said = query("latencies", path).stdout
    expect(said.endswith("\n1 waking is in no row: nobody recorded when the task came onto the CPU that it left next\n"), f"unseen: {said}")
    expect(sum(r["wakings"] for r in rows("latencies", path)) == 2, "unseen: wakings with a latency")


def corrections(scratch):
    """What is not applied to times is said by its name."""
    out, path = made(), scratch / "shifted.dat"
    out.options.append((12, bytes(24)))
    path.write_bytes(out.version_6())
    expect("  note: TIME_SHIFT is not applied" in query(path).stdout, f"TIME_SHIFT: {query(path).stdout}")
    out, path = perfdata.Sched("<", "wide", 1), scratch / "counts.perf"
    out.record(79, 0, out.pack("QQQ", 31, 1 << 30, 5))
    out.wide(1000, 0, 7, True, 8)
    path.write_bytes(out.bytes())
    expect("  note: TIME_CONV is not applied" in query(path).stdout, f"TIME_CONV: {query(path).stdout}")


def one_axis(scratch):
    first, second, wall = (scratch / name for name in ("a.dat", "b.dat", "c.dat"))
    first.write_bytes(made().version_6())
    second.write_bytes(made("[local]\0").version_6())
    done = query(first, second, status=2)
    expect("--offset" in done.stderr and done.stderr.count("\n") == 1, f"clocks that nobody knows: {done.stderr}")
    found = json.loads(query("events", "--json", first, "--offset", "0.5", second).stdout)
    expect([s["alignment"] for s in found["streams"]] == ["its own clock", "given"] and
           found["streams"][1]["offset_ns"] == 500_000_000, f"alignment: {found['streams']}")
    times = [r["time_ns"] for r in found["rows"]]
    expect(times == sorted(times) and times[-1] == 506_000_000, "events of two streams are not in order")
    expect("moved by 500.000 ms (given)" in query(first, "--offset", "0.5", second).stdout, "the text does not say the offset")


# --- trace events ------------------------------------------------------------------------------------------------------

def check_chrome(path):
    """The rules of the format: phases and their members; on a track, stretches nest or follow each other."""
    found = json.loads(query("chrome", path).stdout)
    named, tracks = set(), {}
    for event in found["traceEvents"]:
        expect(event["ph"] in "MXi" and isinstance(event["pid"], int) and isinstance(event["tid"], int), f"trace event {event}")
        if event["ph"] == "M":
            expect(event["name"] in ("process_name", "thread_name", "process_sort_index", "thread_sort_index"), f"{event}")
            named.add((event["name"], event["pid"], event["tid"]))
            continue
        expect(isinstance(event["ts"], (int, float)) and event["name"] and event["cat"], f"trace event {event}")
        if event["ph"] == "X":
            expect(event["dur"] > 0, f"trace event {event}")
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"], event["name"]))
        else:
            expect(event["s"] in "tpg", f"trace event {event}")
    for track, spans in tracks.items():
        expect(("thread_name", *track) in named and ("process_name", track[0], 0) in named, f"track {track} has no name")
        spans.sort()
        expect(all(a[1] <= b[0] + 0.0006 for a, b in zip(spans, spans[1:])), f"stretches overlap on {track}")
    expect(found["otherData"]["streams"][0]["tier"], "the trace events do not say the tier")
    return found, tracks


def chrome(path):
    found, tracks = check_chrome(path)
    expect(sum(b - a for a, b, name in tracks[2, 7] if name == "running") == 3000, f"task 7 ran: {tracks[2, 7]}")
    expect([e["name"] for e in found["traceEvents"] if e["ph"] == "i"] == ["test/mark"], "instants")
    query("chrome", "--csv", path, status=2)


# --- tiers -------------------------------------------------------------------------------------------------------------

def own_threads(scratch):
    """Records of single threads: 8 comes right behind 7, 9 does not; 7 is preempted."""
    out = perfdata.Sched("<", "own", 2)
    out.own(1_000_000, 0, 7, False)
    out.own(2_000_000, 0, 7, True, True)
    out.own(2_000_800, 0, 8, False)
    out.own(3_000_000, 0, 8, True)
    out.own(3_100_000, 0, 9, False)
    out.own(4_000_000, 1, 7, False)
    out.own(4_500_000, 1, 7, True)
    path = scratch / "own.perf"
    path.write_bytes(out.bytes())
    found = json.loads(query("--json", path).stdout)
    stream, tasks = found["streams"][0], {r["tid"]: r for r in found["rows"]}
    expect(stream["tier"] == "own" and stream["synthesised"] is True, f"own threads: {stream}")
    seven = tasks[7]
    expect((seven["running_ns"], seven["preempted_ns"], seven["migrations"]) == (1_500_000, 2_000_000, 1), f"own 7: {seven}")
    expect(all(seven[k] is None for k in ("woken_ns", "sleeping_ns", "blocked_ns", "wakings", "latency_max_ns")),
           f"what is not known is not absent: {seven}")
    infos = [r["info"] for r in rows("events", path)]
    expect(len(infos) == 6 and "prev_pid=7 prev_state=R+ ==> next_comm=<...> next_pid=8" in infos[1] and
           "prev_pid=-1" in infos[3], f"joined switches: {infos}")
    cpus = rows("cpus", path)
    expect(all(r["idle_ns"] is None and r["unknown_ns"] is None for r in cpus), f"idle times of own threads: {cpus}")
    line = [t for t in query(path).stdout.split("\n") if ":7 " in t][0]
    expect(" - " in line and " 0 " not in line.split("ms")[0], f"text: {line}")
    expect("nobody recorded" not in query(path).stdout, "all switches were recorded")
    # 7 leaves CPU 1 again 300 us later, and nobody saw it come
    out.own(4_800_000, 1, 7, True)
    path.write_bytes(out.bytes())
    expect("1 time nobody recorded when a task came onto the CPU that it left; of 300.0 us " in query(path).stdout,
           f"a switch that is missing: {query(path).stdout}")


# --- perf itself -------------------------------------------------------------------------------------------------------

def switches_in(path):
    """By the (microsecond, CPU, task) of each switch: the task that the switch before it on that CPU let run."""
    running, before = {}, {}
    listed = subprocess.run(["perf", "script", "--ns", "-i", path, "-F", "cpu,time,event,trace"], capture_output=True, text=True,
                            check=False).stdout
    for m in re.finditer(r"\[(\d+)\]\s+(\d+)\.(\d+):\s+sched:sched_switch: .*prev_pid=(\d+).*next_pid=(\d+)", listed):
        cpu, time = int(m[1]), int(m[2] + m[3]) // 1000
        before[time, cpu, int(m[4])] = running.get(cpu)
        running[cpu] = int(m[5])
    return before


def peers(scratch):
    path = scratch / "perf.data"
    events = ",".join("sched:" + e for e in ("sched_switch", "sched_waking", "sched_wakeup_new", "sched_migrate_task"))
    work = "for i in 1 2 3 4 5 6; do sleep 0.01 | cat; done"
    if not shutil.which("perf") or subprocess.run(["perf", "record", "-q", "-a", "-e", events, "-o", path, "sh", "-c", work],
                                                  capture_output=True, check=False).returncode:
        skipped.append("perf cannot record tracepoints here")
        return
    check_chrome(path)
    listed = subprocess.run(["perf", "sched", "timehist", "-i", path], capture_output=True, text=True, check=False).stdout
    pattern = re.compile(r"\s*(\d+)\.(\d+) \[(\d+)\]\s+(.*)\[(\d+)(?:/\d+)?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)")
    theirs = [pattern.match(line) for line in listed.split("\n")]
    theirs = [m for m in theirs if m and float(m[8]) > 0]
    ours = {(r["to_ns"] // 1000, r["cpu"], r["tid"]): r for r in rows("runs", path) if r["to_ns"]}
    n_equal, n_guessed, worst = 0, 0, ""
    switched_in = switches_in(path)
    for m in theirs:
        end = (int(m[1]) * 10 ** 6 + int(m[2]), int(m[3]), int(m[5]))
        row = ours.get(end)
        if not row and switched_in.get(end) != end[2]:  # kernels may leave out switches from the idle task
            n_guessed += 1
            continue
        same = row and abs(row["running_ns"] / 1e6 - float(m[8])) < 0.002
        same = same and (row["off_ns"] is None or abs(row["off_ns"] / 1e6 - float(m[6])) < 0.002)
        same = same and (row["latency_ns"] is None or abs(row["latency_ns"] / 1e6 - float(m[7])) < 0.002)
        n_equal += bool(same)
        worst = worst if same else f"{m[0]} is {row}"
    expect(len(theirs) > 20, f"perf sched timehist has {len(theirs)} rows")
    n_recorded = len(theirs) - n_guessed
    expect(n_recorded > 10 and n_equal >= 0.99 * n_recorded, f"{n_equal} of {n_recorded} runs are those of perf: {worst}")
    wide = scratch / "wide.data"
    subprocess.run(["perf", "record", "-q", "-a", "--switch-events", "-e", "dummy", "-o", wide, "sh", "-c", work],
                   capture_output=True, check=False)
    found = json.loads(query("--json", wide).stdout)
    expect(found["streams"][0]["tier"] == "switches" and found["rows"][0]["running_ns"] > 0 and
           found["rows"][0]["woken_ns"] is None, f"perf --switch-events: {found['streams']}")
    print(f"{n_equal} of {n_recorded} runs are those of perf sched timehist, which makes up the begin of {n_guessed} more")


# --- bad input ---------------------------------------------------------------------------------------------------------

def bad(scratch):
    recording = made()
    out = perfdata.Sched("<", "tracepoints", 2, recording)
    for cpu in (0, 1):
        for time, raw, _ in recording.events[cpu]:
            key = next(k for k, number in tracedat.IDS.items() if number == int.from_bytes(raw[:2], "little"))
            out.tracepoint(key, time, 7, cpu, raw)
    whole, path = out.bytes(), scratch / "bad.perf"
    for length in [*range(0, len(whole), 331), len(whole) - 1]:
        path.write_bytes(whole[:length])
        done = subprocess.run([QUERY, "sched", path], capture_output=True, text=True, check=False)
        expect(done.returncode == 1 and done.stderr.count("\n") == 1 and not done.stdout and done.stderr.startswith("hpcquery: "),
               f"cut to {length} bytes: {done.returncode} {done.stderr}")
    for words in (["nothing"], [SOURCE / "README.md"], [SOURCE]):
        done = query(*words, status=1)
        expect(done.stderr.count("\n") == 1, f"{words}: {done.stderr}")
    path.write_bytes(whole)
    for words, said in ((["--task", "sevn"], "did you mean 'seven'?"), (["--task", "4711"], "there are: 'seven'"),
                        (["--cpu", "99"], "they have 0 to 1"), (["events", "--event", "sched_swich"], "'sched/sched_switch'"),
                        (["--from", "+99"], "the recordings are from 0.001000 to 0.006000 s"), (["--to", "0.0005"], "0.001000 to")):
        done = query(*words, path, status=1)
        expect(done.stderr.count("\n") == 1 and not done.stdout and said in done.stderr, f"{words}: {done.stderr}")
    for words in ([], ["tasks"], [path, "--couplebreak"], ["--cpu", "x", path], ["--from", "x", path], ["--by", "thread", path],
                  ["--view", "x", path], ["--view", "numatree", path], ["--offset", "x", path]):
        path.write_bytes(whole)
        query(*words, status=2)
    done = query("latency", path, status=2)
    expect("no report 'latency'" in done.stderr and "'latencies'" in done.stderr, f"a report that is none: {done.stderr}")
    done = subprocess.run(f"'{QUERY}' sched events '{path}' | head -n 1", shell=True, capture_output=True, text=True, check=False)
    expect(not done.stderr and done.stdout, f"a pipe that closes: {done.stderr}")


def main():
    if subprocess.run([BUILD / "tests/golden/list-stream", "/dev/null"], capture_output=True, check=False).returncode > 1:
        print("SKIP: list-stream is missing")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        path = scratch / "known.dat"
        path.write_bytes(made().version_6())
        known(path)
        chrome(path)
        unseen(scratch)
        corrections(scratch)
        one_axis(scratch)
        own_threads(scratch)
        bad(scratch)
        peers(scratch)
    for sentence in failures[:30]:
        print("FAIL:", sentence)
    for reason in skipped:
        print("SKIP (part):", reason)
    sys.exit(bool(failures))


main()
