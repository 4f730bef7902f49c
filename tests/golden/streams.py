# SPDX-License-Identifier: BSD-3-Clause
"""Streams on the command line: times that are printed go back in, tasks have their names at times, what is not known is
never zero, and what one finds in KernelShark's list is found here."""
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
import schedfile  # noqa: E402
import tracedat  # noqa: E402
QUERY = BUILD / "hpcquery"
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark"
failures, skipped = [], []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def query(*words, status=0):
    command = [str(word) for word in (QUERY, *words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C.UTF-8"))
    expect(done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}")
    return done


def rows(report, *words):
    return json.loads(query("sched", report, "--json", *words).stdout)["rows"]


def column(text, name):
    """The cells of a numeric column of a table in text, by where its title ends."""
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if re.search(rf"(^|\s){re.escape(name)}(\s|$)", line))
    end = re.search(rf"(^|\s){re.escape(name)}(?=\s|$)", lines[at]).end()
    return [line[:end].split()[-1] for line in lines[at + 1:] if line.strip()]


def rounded(ns):
    return f"{(ns + 500) // 1000 // 1000000}.{(ns + 500) // 1000 % 1000000:06}"


def cut(ns):
    return f"{ns // 1000000000}.{ns // 1000 % 1000000:06}"


# --- times ------------------------------------------------------------------------------------------------------------


def times_go_back_in(path, printed):
    """Each printed time, given as --from and --to, has exactly the events that are printed so; in all reports, the nine
    digits of --ns and the nanoseconds of CSV and JSON as well."""
    events = [row["time_ns"] for row in rows("events", path)]
    shown = column(query("sched", "events", path).stdout, "time")
    expect(shown == [printed(t) for t in events], f"{path}: times {shown[:5]}, not {[printed(t) for t in events][:5]}")
    whole = column(query("sched", "events", "--ns", path).stdout, "time")
    expect(whole == [f"{t // 10**9}.{t % 10**9:09}" for t in events], f"{path}: --ns {whole[:5]}")
    chosen = sorted(set(events))
    chosen = chosen[::max(1, len(chosen) // 5)] + chosen[-1:]
    for t in chosen:
        wanted = [e for e in events if printed(e) == printed(t)]
        for text, those in ((printed(t), wanted), (f"{t // 10**9}.{t % 10**9:09}", [e for e in events if e == t]),
                            (f"{t}ns", [e for e in events if e == t])):
            got = [row["time_ns"] for row in rows("events", "--from", text, "--to", text, path)]
            expect(got == those, f"{path}: --from {text} --to {text}: {got}, not {those}")
        listed = query("sched", "events", "--csv", "--from", printed(t), "--to", printed(t), path).stdout
        got = [int(row["time_ns"]) for row in csv.DictReader(io.StringIO(listed))]
        expect(got == wanted, f"{path}: CSV from {printed(t)}: {got}")
    for title, report, key in (("from", "runs", "from_ns"), ("to", "runs", "to_ns"), ("time", "migrations", "time_ns"),
                               ("max at", "latencies", "latency_max_at_ns")):
        found = [row[key] for row in rows(report, "--top", "0", path)]
        if found:
            shown = column(query("sched", report, "--top", "0", path).stdout, title)[:len(found)]
            expect(shown == ["-" if t is None else printed(t) for t in found], f"{path}: {report} {title}: {shown[:5]}")
    head = re.search(r"time: +(\S+) - (\S+) s", query("topo", path).stdout)
    expect(head and head.groups() == (printed(events[0]), printed(events[-1])), f"{path}: head of topo {head}")
    done = query("sched", "events", "--to", "0", path, status=1).stderr
    expect(f"from {printed(events[0])} to {printed(events[-1])} s" in done, f"{path}: {done}")


def odd(start=7_000_000_000):
    """Times of all kinds of fractions of a microsecond, some of one of them."""
    made = tracedat.Recording(2)
    made.tasks = {7: "seven", 8: "eight"}
    made.switch(0, start + 1, 0, 7)
    made.waking(0, start + 499, 7, 8, 1)
    made.waking(0, start + 500, 7, 8, 1)
    made.switch(1, start + 1499, 0, 8)
    made.switch(1, start + 1500, 8, 0, prev_state=1)
    made.waking(0, start + 1999, 7, 8, 0)
    made.switch(0, start + 999_999_500, 7, 8)
    made.switch(0, start + 999_999_999, 8, 7, prev_state=1)
    made.switch(0, start + 1_000_000_499, 7, 0)
    return made


def perf_file(path, recording):
    out = perfdata.Sched("<", "tracepoints", recording.n_cpus, recording)
    for cpu in range(recording.n_cpus):
        for time, raw, _ in recording.events[cpu]:
            key = next(k for k, number in tracedat.IDS.items() if number == int.from_bytes(raw[:2], "little"))
            out.tracepoint(key, time, int.from_bytes(raw[4:8], "little", signed=True), cpu, raw)
    path.write_bytes(out.bytes())


def times(scratch):
    path, wall, perf = scratch / "odd.dat", scratch / "wall.dat", scratch / "odd.perf"
    path.write_bytes(odd().version_6())
    wall.write_bytes(odd(1_764_400_000_123_456_000).version_6())
    perf_file(perf, odd())
    times_go_back_in(path, rounded)
    times_go_back_in(wall, rounded)
    times_go_back_in(perf, cut)
    # what lies between the events is exact: a window counts as much time as it says
    found = {row["tid"]: row["running_ns"] for row in rows("tasks", "--from", "7.000100", "--to", "7.000300", path)}
    expect(found == {7: 200_000, 8: 0}, f"time in a window: {found}")
    for words in (("--from", "1.2.3"), ("--from", "7s"), ("--to", "."), ("--from", "1e3"), ("--from", "12345678901234567890")):
        query("sched", "events", *words, path, status=2)
    for real in sorted(DATA.glob("*.dat")):
        times_go_back_in(real, rounded)
        if shutil.which("trace-cmd"):
            listed = subprocess.run(["trace-cmd", "report", real], capture_output=True, text=True, check=False)
            theirs = re.findall(r"\[\d+\]\s+(\d+\.\d{6}):", listed.stdout)
            ours = column(query("sched", "events", real).stdout, "time")
            expect(theirs and theirs == ours, f"trace-cmd (exit status {listed.returncode}, {listed.stderr[-300:]}) has {len(theirs)} times: {sum(a != b for a, b in zip(theirs, ours))} of {len(ours)} differ")


def times_of_perf(scratch):
    """Times of a file that perf recorded are those that perf script prints."""
    path = scratch / "perf.data"
    command = ["perf", "record", "-q", "-o", path, "-e", "page-faults", "-c", "1", "sh", "-c", "ls >/dev/null"]
    if not shutil.which("perf") or subprocess.run(command, capture_output=True, check=False).returncode:
        skipped.append("perf cannot record page faults here")
        return
    listed = subprocess.run(["perf", "script", "-i", path, "-F", "time"], capture_output=True, text=True, check=False).stdout
    theirs, ours = re.findall(r"(\d+\.\d+):", listed), column(query("sched", "events", path).stdout, "time")
    expect(theirs and theirs == ours, f"perf script: {theirs[:3]}, not {ours[:3]}")


# --- names at times ---------------------------------------------------------------------------------------------------


def renamed():
    """Task 7 is alpha, from its second stay on beta, then gamma; it is woken as beta. Task 8 keeps its name."""
    made = tracedat.Recording(1)
    made.tasks = {7: "alpha", 8: "eight"}
    made.switch(0, 1_000_000, 0, 7)
    made.switch(0, 2_000_000, 7, 8, prev_state=1)
    made.tasks[7] = "beta"
    made.waking(0, 2_500_000, 8, 7, 0)
    made.switch(0, 3_000_000, 8, 7)
    made.tasks[7] = "gamma"  # within this stay
    made.switch(0, 5_000_000, 7, 8, prev_state=1)
    made.switch(0, 6_000_000, 8, 7)
    made.switch(0, 9_000_000, 7, 0)
    made.tasks = {8: "eight"}  # as where the recording names tasks itself, and not this one
    return made


def names_at_times(scratch):
    path, perf = scratch / "renamed.dat", scratch / "renamed.perf"
    path.write_bytes(renamed().version_6())
    perf_file(perf, renamed())
    for recording in (path, perf):
        found = [(r["from_ns"], r["comm"]) for r in rows("runs", recording) if r["tid"] == 7]
        expect(found == [(1_000_000, "alpha"), (3_000_000, "gamma"), (6_000_000, "gamma")], f"{recording}: stays {found}")
        found = [(r["time_ns"], r["comm"]) for r in rows("events", recording) if r["tid"] == 7]
        expect(found == [(2_000_000, "alpha"), (5_000_000, "gamma"), (9_000_000, "gamma")], f"{recording}: events {found}")
        for name in ("alpha", "beta", "gam*", "7"):
            found = {(r["tid"], r["name"], r["comm"]) for r in rows("tasks", "--task", name, recording)}
            expect(found == {(7, "alpha, then beta, then gamma:7", "gamma")}, f"{recording}: --task {name}: {found}")
            expect(len(rows("runs", "--task", name, recording)) == 3, f"{recording}: stays of {name}")
        for report, key in (("latencies", "name"), ("displaced", "by_name"), ("timeline", "name")):
            found = {r[key] for r in rows(report, recording)}
            expect(any(name.startswith("alpha, then beta, then gamma") for name in found) or report == "displaced", f"{recording}: {report} {found}")
        moved = json.loads(query("sched", "runs", "--json", "--offset", "1", recording).stdout)["rows"]
        expect([r["comm"] for r in moved if r["tid"] == 7] == ["alpha", "gamma", "gamma"], f"{recording}: moved {moved}")
        events = json.loads(query("sched", "chrome", recording).stdout)["traceEvents"]
        tracks = [e["args"]["name"] for e in events if e["name"] == "thread_name" and e["tid"] == 7]
        stays = [e["name"] for e in events if e["ph"] == "X" and e["pid"] == 1 and e["args"]["tid"] == 7]
        expect(tracks == ["alpha, then beta, then gamma"] and stays == ["alpha:7", "gamma:7", "gamma:7"], f"chrome: {tracks} {stays}")
    said = query("sched", "--task", "betta", path, status=1).stderr
    expect("'beta'" in said, f"a name that is none: {said}")
    many = tracedat.Recording(1)
    for i in range(9):
        many.tasks = {7: f"name{i}"}
        many.switch(0, 1000 * (2 * i + 1), 0, 7)
        many.switch(0, 1000 * (2 * i + 2), 7, 0, prev_state=1)
    path.write_bytes(many.version_6())
    found = [r["name"] for r in rows("tasks", "--task", "7", path)]
    expect(found == ["name0, then name1, then 6 others, then name8:7"], f"many names: {found}")


def names_of_launchers(scratch):
    """hpcrun becomes the program: its own name is none of the program's, at no time. Whoever is called so later is."""
    names = [(1000, 4711, "hpcrun"), (3000, 4711, "stages"), (3500, 4712, "stages"), (4000, 4712, "hpcrun"), (1000, 4713, "hpcrun")]
    switches = [(1000 + 500 * i, 0, (4711, 4712, 4713)[i % 3], (4712, 4713, 4711)[i % 3], 1) for i in range(12)]
    path = schedfile.write(scratch / f"stages{schedfile.NAME}", 2, 2, switches, names)
    found = {row["tid"]: row["name"] for row in rows("tasks", path)}
    wanted = {4711: "stages:4711", 4712: "stages, then hpcrun:4712", 4713: "hpcrun:4713"}
    expect(found == wanted, f"names of a program that hpcrun became: {found}")
    found = {row["comm"] for row in rows("events", path) if row["tid"] == 4711}
    expect(found == {"stages"}, f"names in events: {found}")


def wakers(scratch):
    """Who woke a task before each stay, and on which CPU, in all forms."""
    path = scratch / "wakers.dat"
    path.write_bytes(odd().version_6())
    keys = ("waker_name", "waker_comm", "waker_tid", "waker_cpu")
    found = [(row["tid"], *(row[key] for key in keys)) for row in rows("runs", path)]
    nobody = (None,) * 4
    wanted = [(7, *nobody), (8, "seven:7", "seven", 7, 0), (8, "seven:7", "seven", 7, 0), (7, *nobody)]
    expect(found == wanted, f"woken by {found}")
    listed = list(csv.DictReader(io.StringIO(query("sched", "runs", "--csv", path).stdout)))
    expect([row["waker_name"] for row in listed] == [row[1] or "" for row in wanted], f"woken by, in CSV: {listed}")
    shown = column(query("sched", "runs", path).stdout, "woken by")
    expect(shown == [row[1] or "-" for row in wanted], f"woken by, in text: {shown}")


def names_by_perf(scratch):
    """Records of perf tell when a name changes, also where nobody recorded switches."""
    path, program = scratch / "names.data", "import ctypes\nfor n in b'alpha', b'beta':\n ctypes.CDLL(None).prctl(15, n)\n bytearray(1 << 24)"
    command = ["perf", "record", "-q", "-o", path, "-e", "page-faults", "-c", "1", sys.executable, "-c", program]
    if not shutil.which("perf") or subprocess.run(command, capture_output=True, check=False).returncode:
        skipped.append("perf cannot record page faults here")
        return
    listed = subprocess.run(["perf", "script", "-i", path, "-F", "comm,time"], capture_output=True, text=True, check=False).stdout
    theirs = re.findall(r"^\s*(\S+) +(\d+\.\d+):", listed, re.M)
    ours = [(r["comm"], cut(r["time_ns"])) for r in rows("events", path)]
    expect(theirs == ours and len({name for name, _ in ours}) >= 3, f"perf script: {[p for p in zip(theirs, ours) if p[0] != p[1]][:3]}")


# --- what is not known ------------------------------------------------------------------------------------------------


def unknown_is_not_zero(scratch):
    path = scratch / "faults.data"
    command = ["perf", "record", "-q", "-o", path, "-e", "page-faults", "-c", "1", "true"]
    if shutil.which("perf") and subprocess.run(command, capture_output=True, check=False).returncode == 0:
        cells = [r["events"] for r in json.loads(query("topo", "--json", path).stdout)["rows"]]
        expect(cells and not any(cells), f"events on CPUs of a recording without CPUs: {cells}")
        text = query("topo", path).stdout
        expect("does not say on which CPUs" in text and not re.search(r"CPU \d+ +\d", text), f"topo: {text}")
        for row in rows("cpus", path):
            known = {k: v for k, v in row.items() if v is not None and k not in ("cpu", "stream", "clock", "tier")}
            expect(not known, f"cpus of a recording without CPUs: {known}")
    else:
        skipped.append("perf cannot record page faults here")
    made = tracedat.Recording(4)  # CPU 1 has no events, and CPU 2 none that say what ran
    made.tasks = {7: "seven", 8: "eight"}
    made.switch(0, 1_000_000, 0, 7)
    made.add(2, 1_500_000, 8, ("test", "mark"))
    made.waking(3, 1_600_000, 0, 8, 3)
    made.switch(3, 2_000_000, 0, 8)
    made.switch(0, 3_000_000, 7, 0, prev_state=1)
    path = scratch / "gaps.dat"
    path.write_bytes(made.version_6())
    cpus = {r["cpu"]: (r["running_ns"], r["idle_ns"]) for r in rows("cpus", path)}
    busy = {r["number"]: (r["busy_ns"], r["idle_ns"]) for r in json.loads(query("topo", "--json", path).stdout)["rows"] if r["level"] == "cpu"}
    expect(cpus == busy == {0: (2_000_000, 0), 1: (None, None), 2: (None, None), 3: (1_000_000, 1_000_000)}, f"cpus {cpus}, topo {busy}")


# --- lists: search, filters, twins ------------------------------------------------------------------------------------


def search_and_filters(scratch):
    path = scratch / "list.dat"
    path.write_bytes(odd().version_6())
    everything = rows("events", "--couplebreak", path)
    expect([r["index"] for r in everything] == list(range(len(everything))), "numbers of events")
    for row in everything:
        is_twin = row["event"].startswith("couplebreak/")
        expect(is_twin == (row["event_id"] <= -10000) == (row["origin"] is not None), f"twin: {row}")
        if is_twin:
            origin = everything[row["origin"]]
            expect(row["origin"] == row["index"] - 1 and origin["time_ns"] == row["time_ns"] and origin["tid"] == row["origin_tid"] and
                   f"couplebreak/{origin['event'].split('/')[1]}[target]" == row["event"], f"origin of {row}: {origin}")
    head = json.loads(query("sched", "events", "--json", "--couplebreak", path).stdout)["streams"][0]["couplebreak"]
    expect(head == {"on": True, "types": 2, "flags": 3, "ids": {"couplebreak/sched_switch[target]": -10000,
                                                                "couplebreak/sched_waking[target]": -10001}}, f"couplebreak: {head}")
    lines = query("sched", "events", "--couplebreak", "--lines", path).stdout.split("\n")[:-1]
    expect(lines == [r["line"] for r in rows("events", "--couplebreak", "--lines", path)], "lines in JSON")
    library = subprocess.run([BUILD / "tests/golden/list-stream", "--couplebreak", path], capture_output=True, text=True, check=False).stdout
    expect(lines == [line for line in library.split("\n") if line.startswith("0; ")], f"lines: {lines[:3]}")
    expect(any("; origin_task_name=seven; origin_pid=7; " in line for line in lines), f"the line of a twin: {lines}")

    def found(*words):
        return [r["index"] for r in rows("events", *words, path)]

    wakings = [r["index"] for r in rows("events", path) if r["event"] == "sched/sched_waking"]
    expect(found("--event", "sched_waking") == found("--find", "SCHED_waking") == wakings, "--find")
    expect(found("--find", "target_cpu=001") == wakings[:2], "--find in info")
    expect(found("--event", "sched_waking", "--next", "#1") == wakings[1:2] and
           found("--event", "sched_waking", "--next", "0#1", "--top", "9") == wakings[1:], "--next by number")
    expect(found("--event", "sched_waking", "--previous", f"#{wakings[-1]}") == wakings[-2:-1] and
           found("--event", "sched_waking", "--previous", f"#{wakings[-1]}", "--top", "0") == wakings[:-1], "--previous by number")
    expect(found("--next", "7.000001") == [4] and found("--previous", "7.000001") == [1], "--next and --previous by a printed time")
    expect(found("--find", "nowhere") == [] and found("--next", "99") == [], "nothing is found")
    expect(found("--filter", "sched/sched_waking:target_cpu == 1") == wakings[:2], "--filter")
    expect({r["event_id"] for r in rows("events", "--couplebreak", "--filter", "sched/sched_waking:target_cpu == 1", path)} >=
           {-10000, -10001}, "conditions on fields do not hide twins")
    instants = json.loads(query("sched", "chrome", "--event", "sched_waking", "--filter", "sched/sched_waking:target_cpu == 1", path).stdout)
    expect(sum(e["ph"] == "i" for e in instants["traceEvents"]) == 2, "--filter in chrome")
    query("sched", "events", "--filter", "nothing", path, status=2)
    expect("twins" in query("sched", "events", "--filter", "couplebreak/sched_switch[target]:prev_pid == 1", path, status=1).stderr, "twins")
    for words in (("--next", "#99"), ("--next", "1#0"), ("--next", "x"), ("--next", "1", "--previous", "2")):
        query("sched", "events", *words, path, status=2)
    # two streams: by time, equal times in the order of the streams
    both = (path, "--offset", "0", path)
    merged = [(r["stream"], r["index"]) for r in rows("events", *both)]
    for at, (stream, index) in enumerate(merged):
        for option, part in (("--next", merged[at + 1:]), ("--previous", merged[:at])):
            if at % 5 == 0:
                got = [(r["stream"], r["index"]) for r in rows("events", option, f"{stream}#{index}", "--top", "0", *both)]
                expect(got == part, f"{option} {stream}#{index}: {got}")
    # what a report does not use is refused
    for report, words in (("tasks", ("--find", "x")), ("cpus", ("--task", "7")), ("runs", ("--slices", "3")), ("tasks", ("--event", "x")),
                          ("timeline", ("--filter", "x")), ("summary", ("--top", "1"))):
        said = query("sched", report, *words, path, status=2).stderr
        expect(f"sched {report} has no {words[0]}" in said, f"{report} {words}: {said}")
    query("topo", "--event", "x", path, status=2)
    expect(len({r["from_ns"] for r in rows("timeline", "--slices", "3", path)}) == 3, "slices of a time line")


# --- sessions ---------------------------------------------------------------------------------------------------------


def same_with_twins(scratch):
    """What is known of tasks and CPUs does not depend on twins."""
    path = scratch / "twins.dat"
    path.write_bytes(odd().version_6())
    for report in ("tasks", "cpus", "latencies", "displaced", "runs", "migrations", "timeline"):
        plain, twins = (rows(report, "--top", "0", *words, path) for words in ((), ("--couplebreak",)))
        expect(plain == twins and (plain or report in ("displaced", "migrations")), f"{report}: {plain} are {twins} with twins")


def conditions(scratch):
    """What a condition on fields lacks is said before libtraceevent takes it for false, or ends on it."""
    path = scratch / "first.dat"
    for text, what in (("sched/sched_switch:no_such_field == 1", "no field 'no_such_field'; sched/sched_switch has common_type"), ("nofield == 1", "no field 'nofield'"),
                       ("sched/sched_switch:prev_pid ==", "ends where a value is expected"), ("sched/sched_switch:", "ends where a value"),
                       ("sched/sched_switch:(prev_pid == 1", "bracket in it is not closed"), ("sched/sched_switch:prev_pid == 1)", "bracket in it is not opened"),
                       ('sched/sched_switch:prev_comm == "x', "text in it has no end"), ("sched/sched_switch:prev_pid == 1 && bad > 3", "no field 'bad'")):
        said = query("sched", "events", "--filter", text, path, status=2).stderr
        expect(what in said and said.count("\n") == 1, f"--filter {text}: {said}")
    for text in ("sched/sched_switch:!(prev_pid == 1) && next_prio >= 0", 'sched_switch:prev_comm ~ "*e*" || CPU == 1', "sched_waking,sched/sched_switch:common_pid != -1"):
        query("sched", "events", "--filter", text, path)


def names_of_rows(scratch):
    """A name as rows have it goes back in, one with a comma too; what cannot be printed is one name, whoever tells it."""
    out, path = tracedat.Recording(1), scratch / "commas.dat"
    out.tasks = {11: "a, b", 12: "c"}
    for i, task in enumerate((11, 12, 11, 12, 0)):
        out.switch(0, 1000 * (i + 1), (0, 11, 12, 11, 12)[i], task)
    path.write_bytes(out.version_6())
    wanted = query("sched", "events", "--task", "11", path).stdout
    for text in ("a, b", "a, b:11", "a*:11", "11"):
        expect(query("sched", "events", "--task", text, path).stdout == wanted, f"--task {text}")
    expect(query("sched", "events", "--task", "12,a, b:11", path).stdout.count("\n") >= wanted.count("\n"), "a list with a name of a row")
    query("sched", "events", "--task", "a:12", path, status=1)
    done = query("sched", "trace-dat", "--task", "c", "-o", scratch / "c-alone.dat", path)
    expect("what was chosen is written alone" in done.stderr, f"trace-dat --task: {done.stderr}")


def sessions(scratch):
    first, second, session, again = (scratch / name for name in ("first.dat", "second.dat", "session.json", "again.json"))
    first.write_bytes(odd().version_6())
    second.write_bytes(odd(8_000_000_000).version_6())
    words = ("--couplebreak", first, "--offset", "-0.999999999", second)
    chosen = ("--task", "sev*", "--event", "sched_*", "--from", "7.000001", "--to", "7.9")
    shown = query("sched", "events", *chosen, "--save-session", session, *words)
    kept = json.loads(session.read_text())
    expect(kept["version"] == 2 and kept["streams"][1]["offset_ns"] == -999_999_999 and kept["streams"][0]["couplebreak"] and
           kept["task"] == "sev*" and kept["event"] == "sched_*" and kept["from_ns"] == 7_000_000_500, f"session: {kept}")
    expect(query("sched", "events", "--session", session).stdout == shown.stdout, "a session shows something else")
    query("sched", "events", "--session", session, "--save-session", again)
    expect(again.read_bytes() == session.read_bytes(), "a session that was saved again differs")
    other = query("sched", "events", "--session", session, "--task", "8").stdout
    expect(other == query("sched", "events", *chosen[2:], "--task", "8", *words).stdout, "an option over a session")
    tasks = query("sched", "--session", session).stdout  # a report without --event
    expect(tasks == query("sched", "tasks", *chosen[:2], *chosen[4:], *words).stdout, "tasks of a session")
    topo = query("topo", "--session", session).stdout
    expect(topo == query("topo", *chosen[4:], *words).stdout, "topo of a session")
    # what the command line does not show is kept: rows, markers, colours
    kept.update(rows=[{"stream_id": 0, "cpu": 1, "pinned": True}, {"stream_id": 1, "task": 7, "hidden": True}],
                markers={"active": "b", "a": {"ns": "7000000500"}, "b": {"row": "3"}}, colors="variable")
    kept["streams"][0]["filters"] = {"type": "kshark.config.filter", "hide event filter": ["sched/sched_waking"], "hide task filter": [4]}
    session.write_text(json.dumps(kept))
    filtered = rows("events", "--session", session)
    expect(not any(r["event"] == "sched/sched_waking" and r["stream"] == 0 for r in filtered) and
           any(r["event"] == "sched/sched_waking" for r in filtered), "filters of a session")
    query("topo", "--session", session, "--save-session", again)
    expect(json.loads(again.read_text()) == kept, f"kept: {again.read_text()}")
    kept["streams"][0]["filters"] = {"fields": ["sched/sched_waking:target_cpu == 1", "sched/sched_switch:next_pid == 8"]}
    for key in ("task", "event", "from_ns", "to_ns"):
        del kept[key]
    session.write_text(json.dumps(kept))
    found = {r["info"] for r in rows("events", "--session", session) if r["stream"] == 0 and r["origin"] is None}
    expect(found and all("target_cpu=001" in info or ":8 [" in info.split("==>")[-1] or "next_pid=8 " in info for info in found),
           f"conditions on two types: {found}")
    expect(len({"==>" in info for info in found}) == 2, f"conditions on two types: {found}")
    filtered = rows("events", "--session", session)
    # files that have moved are beside the session
    moved = scratch / "moved"
    moved.mkdir()
    for path in (first, second, session):
        path.rename(moved / path.name)
    expect(rows("events", "--session", moved / "session.json") == filtered, "files beside a session")
    # version 1, damaged ones, and a topology that is gone
    old = moved / "old.json"
    text = {"format": "locus-session", "version": 1, "streams": [{"stream_id": 0, "file": str(first), "couplebreak": True}],
            "NUMA TV": {"type": "kshark.config.topology", "topologies": [{"stream_id": 0, "view": 1, "topology_xml_fpath": "/gone.xml"}]}}
    old.write_text(json.dumps(text))
    done = query("sched", "events", "--session", old)
    expect(done.stdout == query("sched", "events", "--couplebreak", moved / "first.dat").stdout and
           "/gone.xml: the topology of stream 0 is gone" in done.stderr and done.stderr.count("\n") == 1, f"version 1: {done.stderr}")
    for key, value in (("version", 3), ("streams", 7), ("streams", [{"stream_id": 1, "file": "x"}])):
        old.write_text(json.dumps(dict(text, **{key: value})))
        expect(query("sched", "--session", old, status=1).stderr.count("\n") == 1, f"{key}={value}")
    query("sched", "--session", old, "x.dat", status=2)
    query("sched", "--couplebreak", "--session", old, status=2)


def sessions_of_kernelshark(scratch):
    path, session = scratch / "ks.dat", scratch / "ks.json"
    path.write_bytes(odd().version_6())
    text = {"type": "kshark.config.session", "data streams": [
        {"type": "kshark.config.stream", "stream id": 0, "data": {"type": "kshark.config.data", "file": str(path), "name": "top buffer", "time": 1},
         "filters": {"type": "kshark.config.filter", "hide event filter": ["sched/sched_switch"], "filter mask": 7}, "couplebreak": True,
         "calib. array": [1500], "CPUPlots": [1, 0], "TaskPlots": [7]}],
        "Model": {"type": "kshark.config.model", "range": [7_000_001_000, 7_000_003_400], "bins": 100},
        "Markers": {"type": "kshark.config.markers", "markA": {"isSet": True, "row": 2}, "markB": {"isSet": False}, "Active": "A"},
        "ViewTop": 0, "Splitter": [1, 1], "ColorScheme": 0.75}
    session.write_text(json.dumps(text))
    found = [(r["time_ns"], r["event"]) for r in rows("events", "--session", session)]
    wanted = [(r["time_ns"], r["event"]) for r in rows("events", "--from", "7000001000ns", "--to", "7000003400ns", "--couplebreak",
                                                       "--offset", "0.0000015", path) if r["event"] != "sched/sched_switch"]
    expect(found and found == wanted, f"KernelShark: {found}, not {wanted}")
    ours = scratch / "ours.json"
    query("sched", "--session", session, "--save-session", ours)
    kept = json.loads(ours.read_text())
    expect(kept["rows"] == [{"stream_id": 0, "cpu": 1}, {"stream_id": 0, "cpu": 0}, {"stream_id": 0, "task": 7}] and
           kept["markers"] == {"active": "a", "a": {"row": "2"}} and kept["streams"][0]["offset_ns"] == 1500, f"KernelShark's as ours: {kept}")
    expect([(r["time_ns"], r["event"]) for r in rows("events", "--session", ours)] == wanted, "KernelShark's, saved as ours")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "first.dat").write_bytes(odd().version_6())
        if "libtraceevent" in subprocess.run([QUERY, "sched", scratch / "first.dat"], capture_output=True, text=True, check=False).stderr:
            print("SKIP: built without libtraceevent")
            return 77
        for check in CHECKS:
            before = len(failures)
            check(scratch)
            print(f"{check.__name__}: {'FAIL' if len(failures) > before else 'ok'}")
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    for reason in skipped:
        print("SKIP (part):", reason)
    return 1 if failures else 0


CHECKS = (times, times_of_perf, names_at_times, names_of_launchers, wakers, names_by_perf, unknown_is_not_zero, search_and_filters, same_with_twins, conditions, names_of_rows,
          sessions, sessions_of_kernelshark)
sys.exit(main())
