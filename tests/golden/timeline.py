# SPDX-License-Identifier: BSD-3-Clause
"""What viewers ask of time lines: rows, pictures and legends have the figures of hpcquery sched for the same window, packed answers
equal JSON, two recordings stand on one axis, and what a recording cannot know is absent."""
import base64
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark"
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import packed  # noqa: E402
import tracedat  # noqa: E402

N_WINDOWS = 16
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def ask(recordings, request, status=0):
    """The answer, as JSON and packed; what was said where it fails."""
    tool, text = BUILD / "tests" / "lib" / "ask-packed", json.dumps(request)
    paths = recordings if isinstance(recordings, list) else [recordings]
    plain = subprocess.run([tool, "--json", *paths, text], capture_output=True, text=True, check=False)
    made = subprocess.run([tool, *paths, text], capture_output=True, check=False)
    expect(plain.returncode == made.returncode == status, f"{text}: exit status {plain.returncode}, {made.returncode}: {plain.stderr}")
    if plain.returncode or made.returncode:
        return plain.stderr
    value = json.loads(plain.stdout)
    for sentence in packed.differences(packed.Answer(made.stdout), value):
        expect(False, f"{text}: {sentence}")
    return value


def sched(*words):
    done = subprocess.run([BUILD / "hpcquery", "sched", *words, "--json"], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"sched {words}: {done.stderr}")
    return json.loads(done.stdout)["rows"] if done.returncode == 0 else []


def window(base, from_ns, to_ns):
    """Of hpcquery; times are exact to the nanosecond as long as a double holds them."""
    return ["--from", f"{(base + from_ns) / 1e9:.9f}", "--to", f"{(base + to_ns) / 1e9:.9f}"]


def recording(path, seed, n_events=3000, n_cpus=4, n_tasks=15):
    """Switches and wakings by chance, of tasks that run in one place at a time."""
    dice, out = random.Random(seed), tracedat.Recording(n_cpus)
    out.tasks, out.clock = {100 + i: f"task {i}" for i in range(n_tasks)}, "local [mono]\0"
    out.options.append((11, (77).to_bytes(8, "little")))  # of one trace, so that clocks are the same
    running, t = [0] * n_cpus, 5_000_000
    for _ in range(n_events):
        t += dice.choice([1, 1, 3, 1000, 40_000, 900_000])
        cpu, task = dice.randrange(n_cpus), 100 + dice.randrange(n_tasks)
        if task in running:
            out.add(cpu, t, running[cpu], ("test", "mark"), value=t)
        elif dice.random() < 0.4:
            out.waking(cpu, t, running[cpu], task, dice.randrange(n_cpus))
        else:
            task = 0 if dice.random() < 0.3 else task
            if task != running[cpu]:
                out.switch(cpu, t, running[cpu], task, prev_state=dice.choice([0, 1, 2]))
                running[cpu] = task
    path.write_bytes(out.version_6())
    return path


def share(part, whole):
    """Of a pixel, in 255 parts: one at least of what there is, and one less of what is not all."""
    return 0 if part <= 0 else 255 if part >= whole else min(254, max(1, int(part / whole * 255 + 0.5)))


# --- rows --------------------------------------------------------------------------------------------------------------

def check_rows(path):
    answer = ask(path, {"report": "streams"})
    tasks, cpus = {row["tid"]: row for row in sched("tasks", path)}, {row["cpu"]: row for row in sched("cpus", path)}
    expect([row["row"] for row in answer["rows"]] == list(range(len(answer["rows"]))), "rows are not numbered")
    for row in answer["rows"]:
        if row["kind"] == "cpu":
            expect(row["run_ns"] == cpus[row["number"]]["running_ns"] and row["wait_ns"] is None, f"{row} is not {cpus[row['number']]}")
            continue
        known = tasks.get(row["number"], {"running_ns": 0, "runnable_ns": 0})
        expect((row["run_ns"], row["wait_ns"]) in ((known["running_ns"], known["runnable_ns"]), (None, None)), f"{row} is not {known}")
        expect(row["run_ns"] is not None or not known["running_ns"], f"{row} is known: {known}")
    for kind, names in (("cpu", cpus), ("task", tasks)):
        numbers = [row["number"] for row in answer["rows"] if row["kind"] == kind]
        expect(numbers == sorted(numbers) and set(names) <= set(numbers), f"{kind}s: {numbers}")
    events = sched("events", "--top", "0", path)
    for kind, key in (("cpu", "cpu"), ("task", "tid")):
        for row in answer["rows"]:
            times = [event["time_ns"] for event in events if event[key] == row["number"]] if row["kind"] == kind else []
            expect(row["kind"] != kind or row["events"] == len(times), f"{row} has {len(times)} events")
    expect(answer["from_ns"] == events[0]["time_ns"] and answer["length_ns"] == events[-1]["time_ns"] - events[0]["time_ns"],
           f"from {answer['from_ns']}, {answer['length_ns']}")
    return answer


# --- pictures ----------------------------------------------------------------------------------------------------------

def pixels_of(answer):
    """{row: [(key, run, wait, unknown, events, flags) of each pixel]}"""
    blank, found = (None, 0, 0, 0, 0, 0), {}
    for run in answer["pixels"]:
        row = found.setdefault(run["row"], [blank] * answer["width"])
        for x in range(run["x"], run["x"] + run["n"]):
            expect(row[x] == blank, f"pixel {x} of row {run['row']} twice")
            row[x] = tuple(run[key] for key in ("key", "run", "wait", "unknown", "events", "flags"))
    return found


def check_slices(path, rows):
    """hpcquery's hundred slices are a picture of a hundred pixels."""
    answer = ask(path, {"report": "timeline", "width": 100})
    pixels, numbers = pixels_of(answer), {(row["kind"], row["number"]): row["row"] for row in rows}
    seen, ends = {}, {run["tid"]: run["to_ns"] for run in sched("runs", "--top", "0", path) if run["then"] == "dead"}
    for line in sched("timeline", "--top", "0", path):
        row = numbers[line["row"], line["number"]]
        x = seen[row] = seen.get(row, -1) + 1
        _, run, wait, unknown, _, _ = pixels.get(row, [(None, 0, 0, 0, 0, 0)] * 100)[x]
        length = line["to_ns"] - line["from_ns"]
        expect(run == share(line["running_ns"], length), f"row {row}, pixel {x}: {run} of {line}")
        if line["row"] == "task":
            expect(wait == share(line["waiting_ns"], length), f"row {row}, pixel {x}: waits {wait} of {line}")
            known = line["running_ns"] + line["off_ns"]
        else:
            known = line["running_ns"] + line["idle_ns"]
        expect(unknown == share(length - known, length) or (unknown == 0 and line["to_ns"] > ends.get(line["number"], line["to_ns"])),
               f"row {row}, pixel {x}: {unknown} not known of {line}")
    expect(len(seen) >= 5 and set(seen.values()) == {99}, f"{len(seen)} rows have slices")


def check_windows(path, streams):
    """Legends are the sums of hpcquery for the window; pictures of some rows are parts of those of all."""
    dice, base, length = random.Random(3), streams["from_ns"], streams["length_ns"]
    names = {row["name"]: row for row in streams["rows"]}
    for i in range(N_WINDOWS):
        from_ns = dice.randrange(length)
        to_ns = min(length, from_ns + dice.randrange(1, 10 ** dice.randrange(2, 10)))
        width = dice.choice([1, 7, 320, 1500])
        answer = ask(path, {"report": "timeline", "from": from_ns, "to": to_ns, "width": width})
        expect((answer["from_ns"], answer["to_ns"], answer["width"], answer["by"]) == (from_ns, to_ns, width, "task"), f"head: {answer}")
        wanted = {row["tid"]: row["running_ns"] for row in sched("tasks", *window(base, from_ns, to_ns), path) if row["running_ns"]}
        found = {names[key["name"]]["number"]: key["ns"] for key in answer["keys"] if key["ns"]}
        expect(found == wanted, f"window {from_ns} {to_ns}: {found} are not {wanted}")
        expect([key["key"] for key in answer["keys"]] == list(range(len(answer["keys"]))), "places of keys")
        expect(sorted(answer["keys"], key=lambda key: -key["ns"]) == answer["keys"], "the list is not by time")
        some = sorted(dice.sample(range(len(streams["rows"])), 3))
        part = ask(path, {"report": "timeline", "from": from_ns, "to": to_ns, "width": width, "rows": some})
        expect(part["pixels"] == [run for run in answer["pixels"] if run["row"] in some], f"rows {some} differ")
        if i % 8 == 0:
            by_cpu = ask(path, {"report": "timeline", "from": from_ns, "to": to_ns, "width": width, "by": "cpu"})
            wanted = {row["cpu"]: row["running_ns"] for row in sched("cpus", *window(base, from_ns, to_ns), path) if row["running_ns"]}
            found = {names[key["name"]]["number"]: key["ns"] for key in by_cpu["keys"] if key["ns"]}
            expect(found == wanted, f"CPUs of window {from_ns} {to_ns}: {found} are not {wanted}")
            own = {(run["row"], run["key"]) for run in by_cpu["pixels"] if run["row"] < 4 and run["key"] is not None}
            expect(all(by_cpu["keys"][key]["name"] == streams["rows"][row]["name"] for row, key in own), f"CPUs have other CPUs' colours: {own}")


def check_narrow(path, streams):
    """Where pixels are shorter than a nanosecond, they show what is there."""
    runs = [run for run in sched("runs", path) if run["to_ns"] == run["from_ns"] + 1][:5]
    expect(runs, "no stay of a nanosecond")
    for run in runs:
        row = next(row for row in streams["rows"] if row["kind"] == "task" and row["number"] == run["tid"])
        from_ns = run["from_ns"] - streams["from_ns"]
        answer = ask(path, {"report": "timeline", "from": from_ns - 2, "to": from_ns + 3, "width": 1000, "rows": [row["row"]]})
        shares = [pixel[1] for pixel in pixels_of(answer)[row["row"]]]
        expect(shares.count(255) == 200 and shares[400:600] == [255] * 200, f"{run}: {[x for x in range(1000) if shares[x]]}")
        answer = ask(path, {"report": "timeline", "width": 3, "rows": [row["row"]]})
        expect(any(pixel[1] for pixel in pixels_of(answer)[row["row"]]), f"{run} is not seen")


# --- single things -----------------------------------------------------------------------------------------------------

def check_events(path, streams):
    """The list is hpcquery's, from any place on, and with its filters."""
    base = streams["from_ns"]
    rows = {(row["kind"], row["number"]): row["row"] for row in streams["rows"]}
    task = next(row["name"].rpartition(":")[0].partition(", then")[0] for row in streams["rows"] if row["kind"] == "task")
    for filters in ({}, {"task": task}, {"cpu": "1-2"}, {"event": "sched_switch"}, {"event": "sched*", "cpu": "0", "task": "*1*,*e*"}):
        wanted = sched("events", "--top", "0", *(word for key, value in filters.items() for word in (f"--{key}", value)), path)
        for start, count in ((0, 50), (len(wanted) // 2, 7), (max(0, len(wanted) - 3), 10), (len(wanted) + 5, 5)):
            answer = ask(path, {"report": "events", "start": start, "count": count, **filters})
            part = wanted[start:start + count]
            expect(answer["found"] == len(wanted) and len(answer["events"]) == len(part), f"{filters}: {answer['found']} of {len(wanted)}")
            for i, (event, line) in enumerate(zip(answer["events"], part)):
                expect(event["place"] == start + i and event["time_ns"] == line["time_ns"] - base and
                       [event[key] for key in ("cpu", "task", "comm", "event", "info", "latency")] ==
                       [line[key] for key in ("cpu", "tid", "comm", "event", "info", "latency")], f"{event} is not {line}")
                expect(event["time"] == f"{line['time_ns'] // 10**9}.{line['time_ns'] % 10**9:09}", f"time of {event}")
                expect(event["cpu_row"] == rows.get(("cpu", line["cpu"])) and event["task_row"] == rows.get(("task", line["tid"])), f"rows of {event}")
        if wanted:
            line = wanted[2 * len(wanted) // 3]
            answer = ask(path, {"report": "events", "at": line["time_ns"] - base, "count": 1, **filters})
            expect(answer["events"][0]["time_ns"] == line["time_ns"] - base, f"at {line}: {answer['events']}")


def check_find(path, streams):
    """Of the events that are looked at the first and the last one that have a text in task, type, info or time; or a number."""
    wanted = sched("events", "--top", "0", path)
    line = wanted[len(wanted) // 2]
    us = (line["time_ns"] + 500) // 1000
    for text, filters in (("SCHED_switch", {}), (f"{line['comm']}:{line['tid']}", {}), ("pid=", {"cpu": "1-2"}), (f"{us // 10**6}.{us % 10**6:06}", {}),
                          (f"#{line['index']}", {}), ("zzz", {}), ("target_cpu=00", {"event": "sched_waking"})):
        listed = sched("events", "--top", "0", *(word for key, value in filters.items() for word in (f"--{key}", value)), path)
        for start, count in ((0, len(listed)), (len(listed) // 3, len(listed) // 3), (len(listed) // 2, 40)):
            found = []
            for place, row in enumerate(listed[start:start + count], start):
                ns, us = row["time_ns"], (row["time_ns"] + 500) // 1000
                cells = [f"{row['comm']}:{row['tid']}", row["event"], row["info"], f"{ns // 10**9}.{ns % 10**9:09}" if "." in text else "", f"{us // 10**6}.{us % 10**6:06}" if "." in text else ""]
                if f"#{row['index']}" == text if text[0] == "#" else any(text.lower() in cell.lower() for cell in cells):
                    found.append(place)
            answer = ask(path, {"report": "events", "start": start, "count": count, "find": text, **filters})
            expect([event["place"] for event in answer["events"]] == ([found[0], *found[1:][-1:]] if found else []) and answer["found"] == len(listed), f"{text} in {count} from {start} on: {answer['events']}, not {found}")
            expect(all(event["time_ns"] == listed[event["place"]]["time_ns"] - streams["from_ns"] for event in answer["events"]), f"{text}: {answer['events']}")


def check_stays(path, streams):
    """Against hpcquery's runs."""
    base, rows = streams["from_ns"], {(row["kind"], row["number"]): row["row"] for row in streams["rows"]}
    runs = sched("runs", "--top", "0", path)
    wakings = [event for event in sched("events", "--top", "0", "--event", "sched_waking", path)]
    ended = {(run["cpu"], run["to_ns"]): run for run in runs}
    for run in runs[3::max(1, len(runs) // 20)]:
        if run["to_ns"] is None or run["to_ns"] <= run["from_ns"]:
            continue
        at = (run["from_ns"] + run["to_ns"]) // 2 - base
        task, cpu = (ask(path, {"report": "stay", "row": rows[kind, run[key]], "at": at})["stay"][0] for kind, key in (("task", "tid"), ("cpu", "cpu")))
        expect({**task, "row": None} == {**cpu, "row": None}, f"a stay from both of its rows: {task}, {cpu}")
        expect((task["from_ns"], task["to_ns"], task["task"], task["cpu"], task["then"], task["state"]) ==
               (run["from_ns"] - base, run["to_ns"] - base, run["name"], run["cpu"], run["then"], "running"), f"{task} is not {run}")
        waited = run["latency_ns"] if run["latency_ns"] is not None else task["waited_ns"] and run["off_ns"]
        expect(task["waited_ns"] == (waited or None), f"{task} waited otherwise than {run}")
        if run["latency_ns"]:
            woken = [event for event in wakings if event["time_ns"] == run["from_ns"] - run["latency_ns"] and f"pid={run['tid']} " in event["info"]]
            expect(woken and task["waker_cpu"] == woken[0]["cpu"] and task["woken_ns"] == woken[0]["time_ns"] - base, f"{task}: woken by {woken}")
            expect((task["waker"], task["waker_cpu"]) == (run["waker_name"], run["waker_cpu"]), f"{task}: woken by {run}")
        last = ended.get((run["cpu"], run["from_ns"]))
        if last:
            expect((task["before"], task["before_state"]) == (last["name"], last["then"]), f"{task} comes behind {last}")
        if run["next_tid"]:
            expect(task["next"].endswith(f":{run['next_tid']}") and task["next_row"] == rows["task", run["next_tid"]], f"{task}: then {run}")
        if run["off_ns"] and not run["latency_ns"] and task["waited_ns"]:
            before = ask(path, {"report": "stay", "row": rows["task", run["tid"]], "at": run["from_ns"] - base - 1})["stay"][0]
            expect(before["state"] == "preempted" and before["to_ns"] == task["from_ns"], f"before {task}: {before}")
    expect("a row and the time" in ask(path, {"report": "stay", "row": 0}, 1), "a stay without a time")


def check_panel(path, streams):
    """What a window holds is what hpcquery says of it."""
    dice, base = random.Random(5), streams["from_ns"]
    rows = {row["row"]: row for row in streams["rows"]}
    for i in range(4):
        from_ns = dice.randrange(streams["length_ns"]) if i else 0
        to_ns = dice.randrange(from_ns, streams["length_ns"] + 1) if i else streams["length_ns"]
        answer, words = ask(path, {"report": "window", "from": from_ns, "to": to_ns}), window(base, from_ns, to_ns)
        picture = ask(path, {"report": "timeline", "from": from_ns, "to": to_ns, "width": 1})
        expect(answer["keys"] == [key for key in picture["keys"] if key["ns"]], "the window's list is not the picture's")
        cpus = {row["cpu"]: (row["running_ns"], row["idle_ns"], row["unknown_ns"]) for row in sched("cpus", *words, path)}
        found = {rows[cpu["row"]]["number"]: (cpu["busy_ns"], cpu["idle_ns"], cpu["unknown_ns"]) for cpu in answer["cpus"]}
        same = {cpu for cpu in cpus if found[cpu] == cpus[cpu] or (found[cpu][0] is None and not cpus[cpu][0])}
        expect(same == set(cpus), f"CPUs of {from_ns} {to_ns}: {found} are not {cpus}")
        tasks = sched("tasks", *words, path)
        expect((answer["running_ns"], answer["woken_ns"], answer["preempted_ns"]) ==
               tuple(sum(row[key] for row in tasks) for key in ("running_ns", "woken_ns", "preempted_ns")), f"sums of {from_ns} {to_ns}")
        wanted = {(row["tid"], row["by_tid"]): (row["times"], row["waited_ns"]) for row in sched("displaced", "--top", "0", *words, path) if row["by_tid"]}
        found = {(rows[pair["row"]]["number"], rows[pair["by_row"]]["number"]): (pair["times"], pair["waited_ns"])
                 for pair in answer["displaced"] if pair["by_row"] is not None}
        expect(len(answer["displaced"]) == 100 or found == wanted, f"displaced in {from_ns} {to_ns}: {found} are not {wanted}")
        expect(all(wanted.get(pair) == values for pair, values in found.items()), f"displaced in {from_ns} {to_ns}")


# --- several recordings, and what is not known --------------------------------------------------------------------------

def check_two(first, other):
    answer = ask([first, other], {"report": "streams"})
    alone = ask(first, {"report": "streams"})
    expect(len(answer["streams"]) == 2 and {row["stream"] for row in answer["rows"]} == {0, 1}, "two recordings")
    expect([stream["alignment"] for stream in answer["streams"]] == ["its own clock", "same clock"], f"{answer['streams']}")
    expect([row["name"] for row in answer["rows"]][:2] == ["CPU 0 [0]", "CPU 1 [0]"], "names of rows")
    shift = alone["from_ns"] - answer["from_ns"]
    picture, plain = (ask(of, {"report": "timeline", "from": by, "to": by + alone["length_ns"], "width": 50})
                      for of, by in (([first, other], shift), (first, 0)))
    n = len(alone["rows"])
    same = [{**run, "key": picture["keys"][run["key"]]["name"].removesuffix(" [0]") if run["key"] is not None else None}
            for run in picture["pixels"] if run["row"] < n]
    wanted = [{**run, "key": plain["keys"][run["key"]]["name"] if run["key"] is not None else None} for run in plain["pixels"]]
    expect(same == wanted, "the first recording looks otherwise beside another one")


def check_refused(path, n_rows):
    for request, sentence in (({"by": "colour"}, "--by takes task"), ({"width": 20000}, "width takes 1 to"),
                              ({"from": 5, "to": 4}, "--from is later than --to"), ({"rows": [n_rows]}, f"there is no row {n_rows}"),
                              ({"from": "x"}, "from takes a number of nanoseconds"), ({"rows": 3}, "rows takes a list of numbers"),
                              ({"top": 3}, "--top goes with"), ({"from": -2**62, "to": 2**63 - 1}, "292 years")):
        said = ask(path, {"report": "timeline", **request}, 1)
        expect(sentence in said, f"{request}: {said}")
    expect("no samples" in ask(path, {"report": "vars"}, 1), "vars of a recording")
    answer = ask(path, {"report": "session"})
    expect(answer["reports"] == [] and answer["metrics"] == [], f"{answer}")


# --- what is kept ------------------------------------------------------------------------------------------------------

def check_bounds(path, scratch):
    """Long answers say how much they leave out; a recording that is cut short while it is open is an error."""
    answer = ask(path, {"report": "events", "count": 50})
    expect(len(answer["events"]) == 50 and answer["found"] > 50, f"50 events of {answer['found']}")
    made = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", path, '{"report": "events", "count": 50}'], capture_output=True, check=True).stdout
    expect(f'"more": {answer["found"] - 50}'.encode() in made[:4000] or f'"more":{answer["found"] - 50}'.encode() in made[:4000], f"how many events are left out: {made[:200]}")
    cut = scratch / "cut.dat"
    cut.write_bytes(path.read_bytes())
    os.environ["ASK_MEANWHILE"] = f"truncate -s 20000 {cut}"
    try:
        said = ask(cut, {"report": "events"}, 1)
        cut.write_bytes(path.read_bytes())
        expect("cut short" in said, f"a recording that is cut short: {said}")
    finally:
        del os.environ["ASK_MEANWHILE"]


def check_kept(scratch):
    """Levels of large recordings are kept beside them: answers are the same, and what is damaged or stale is made anew."""
    path, cache = scratch / "large.dat", scratch / "cache"
    kept = path.with_name("large.dat.locus-time")
    tracedat.write_tiled(path, 240_000)
    path.chmod(0o600)
    questions = ({"report": "streams"}, {"report": "timeline", "width": 300}, {"report": "window", "from": 1000, "to": 10**7},
                 {"report": "stay", "row": 1, "at": 5 * 10**6}, {"report": "events", "start": 777, "count": 3})

    def answers(some=questions[:2]):
        found = []
        for question in some:
            done = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", "--json", path, json.dumps(question)], capture_output=True,
                                  text=True, check=False, env={**os.environ, "XDG_CACHE_HOME": str(cache)})
            expect(done.returncode == 0, f"{question}: {done.stderr}")
            found.append(done.stdout)
        return found

    first = []
    for question in questions:
        first += answers([question])
        expect(kept.exists() and kept.stat().st_mode & 0o777 == 0o600, "nothing is kept, or others may read it")
        expect(list(scratch.glob("large.dat.locus-time*")) == [kept], f"left: {list(scratch.glob('large.dat.*'))}")
        kept.unlink()
    answers()
    whole, number = kept.read_bytes(), kept.stat().st_ino
    expect(answers(questions) == first and kept.stat().st_ino == number, "what is kept answers otherwise, or was made again")
    dice = random.Random(9)
    for i in range(8):
        at = dice.randrange(len(whole)) if i > 3 else (0, 8, 47, len(whole) - 9)[i]
        damaged = whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1:] if i % 4 != 3 else whole[:at]
        kept.write_bytes(damaged)
        expect(answers() == first[:2], f"damage at {at} is seen in answers")
        expect(kept.read_bytes() == whole, f"damage at {at} was not mended")
    other = path.with_name("other.dat")
    tracedat.write_tiled(other, 250_000)
    done = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", "--json", path, json.dumps(questions[-1])], capture_output=True, text=True,
                          check=False, env={**os.environ, "ASK_MEANWHILE": f"cp -p {path} {path}.old; mv {other} {path}"})
    expect(done.returncode == 1 and "changed since" in done.stderr, f"a recording that was replaced: {done.stderr} {done.stdout[:200]}")
    os.replace(f"{path}.old", path)
    if os.geteuid() == 0:
        os.chown(kept, 65534, -1)
        expect(answers() == first[:2] and kept.stat().st_uid == 0, "what somebody else keeps is believed")
    os.utime(path, (1, 1))
    expect(answers() == first[:2] and kept.read_bytes() != whole, "a stale file was not made anew")
    kept.unlink()
    kept.mkdir()  # so that nothing can be written there
    expect(answers(questions) == first, "answers without a place beside the recording")
    found = list((cache / "locus").glob("*.locus-time"))
    expect(len(found) == 1, f"the cache has {found}")
    number = found[0].stat().st_ino
    expect(answers() == first[:2] and found[0].stat().st_ino == number, "the cache is not used")


def check_pieces(scratch):
    """Of large recordings the events are read that are listed: they are those that are found when all are looked at, and take no memory for the others."""
    path, other, dice = scratch / "pieces.dat", scratch / "others.dat", random.Random(4)
    tracedat.write_tiled(path, 1_200_000)
    tracedat.write_tiled(other, 400_000)
    sessions, last = (scratch / "one.json", scratch / "both.json"), 1_200_000 // 4 * 400
    for session, paths in zip(sessions, ([path], [path, other])):
        session.write_text(json.dumps({"format": "locus-session", "version": 2, "streams": [{"stream_id": i, "file": str(each), "offset_ns": 0} for i, each in enumerate(paths)]}))
    one, both = sessions

    def answered(session, request, before=()):
        done = subprocess.run([*before, BUILD / "tests" / "lib" / "ask-packed", "--json", "--session", session, json.dumps(request)], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"{request}: {done.stderr}")
        return json.loads(done.stdout)

    def peak(request):
        small = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3, check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        return answered(one, request, [sys.executable, "-c", small]) << 10  # a process is at first as large as who starts it

    for session in sessions:
        found = answered(session, {"report": "events", "find": "sched_waking", "count": 200_000})["events"]
        seen = [answered(session, {"report": "events", "start": event["place"], "count": 1})["events"][0] for event in found]
        expect(len(found) == 2 and found == seen and found[1]["place"] > 199_000 and {event["event"] for event in found} == {"sched/sched_waking"}, f"found {found}, which are {seen}")
    for i in range(12):
        from_ns = dice.choice((0, dice.randrange(last)))
        request = {"report": "events", "from": from_ns, "to": dice.choice((last, from_ns + dice.randrange(last // 50))), "count": 30}
        request |= dice.choice(({"at": from_ns + dice.randrange(last // 100)}, {"start": dice.randrange(20_000)}, {"start": dice.randrange(1_600_000)}, {}))
        recordings = both if i % 3 else one
        pieces, whole = answered(recordings, request), answered(recordings, {**request, "event": "*"})
        expect(pieces == whole, f"{request}: {pieces['start']} of {pieces['found']}, not {whole['start']} of {whole['found']}; {str(pieces['events'][:1])} {str(whole['events'][:1])}")
    tracedat.write_tiled(path, 3_000_000)
    answered(one, {"report": "streams"})
    few, stay, many = peak({"report": "events", "start": 900_000}), peak({"report": "stay", "row": 1, "at": last // 2}), peak({"report": "events", "start": 900_000, "event": "*"})
    expect(max(few, stay) < many - 24 * 3_000_000, f"peaks: a list has {few >> 20} MiB, a stay {stay >> 20} MiB, all events {many >> 20} MiB")


def check_memory(path):
    """Recordings that are opened and closed leave nothing: the fiftieth time the process is as large as after the tenth."""
    made = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", path, '{"report": "timeline", "width": 800}'], capture_output=True, text=True, check=False, env={**os.environ, "ASK_AGAIN": "50"})
    pages = [int(word) for word in made.stdout.split()]
    expect(made.returncode == 0 and len(pages) == 50 and abs(pages[49] - pages[9]) <= 0.05 * pages[9], f"pages after each time: {pages} {made.stderr}")


def check_sizes(scratch):
    """Answers are as long as the picture is wide, not as the recording has events."""
    sizes = []
    for n_events in (150_000, 1_200_000):
        path = scratch / f"{n_events}.dat"
        tracedat.write_tiled(path, n_events)
        sizes.append(len(subprocess.run([BUILD / "tests" / "lib" / "ask-packed", path, json.dumps({"report": "timeline", "width": 100, "rows": list(range(50))})], capture_output=True, check=True).stdout))
        path.unlink()
    expect(sizes[1] <= 1.25 * sizes[0] and sizes[1] < 32 * 50 * 100, f"answers have {sizes} bytes")


def check_arranged(first, other, scratch):
    """What a session says of its recordings, and what a question changes: couplebreak, topology, window, filters."""
    topology, session = scratch / "four.xml", scratch / "session.json"
    topology.write_text(tracedat.topology_of([[0, 1], [2, 3]]))
    views = {"type": "kshark.config.topology", "topologies": [{"stream_id": 0, "view": 1, "topology_xml_fpath": str(topology)}]}
    text = {"format": "locus-session", "version": 2, "NUMA TV": views, "from_ns": 6_000_000, "to_ns": 7_000_000, "task": "task 3",
            "markers": {"active": "b", "a": {"ns": "6000001"}}, "rows": [{"stream_id": 0, "cpu": 1, "hidden": True}, {"stream_id": 1, "cpu": 0, "pinned": True}],
            "streams": [{"stream_id": 0, "file": str(first), "couplebreak": False, "filters": {"hide event filter": ["sched/sched_waking"], "type": "kshark.config.filter"}},
                        {"stream_id": 1, "file": str(other), "couplebreak": True, "offset_ns": 5000}]}
    session.write_text(json.dumps(text))
    words = ["--session", session]
    streams = ask(words, {"report": "streams"})
    one, two = streams["streams"]
    rows = {(row["stream"], row["kind"], row["number"]): row["row"] for row in streams["rows"]}
    base = streams["from_ns"]
    expect((one["topology"], one["given_topology"], two["topology"], two["offset_ns"], two["couplebreak"], two["alignment"]) ==
           ("given", str(topology), "none", 5000, True, "given"), f"streams of a session: {one}, {two}")
    expect([(row["node"], row["cpus"], row["near"]) for row in streams["nodes"]] == [(0, 2, ""), (1, 2, "")], f"nodes of a session: {streams['nodes']}")
    expect(len(streams["topology"]) == 4 and {row["node"] for row in streams["topology"]} == {0, 1}, f"topology of a session: {streams['topology']}")
    kept = streams["view"][0]
    expect((kept["from_ns"], kept["to_ns"], kept["a_ns"], kept["b_ns"], kept["on"], kept["task"]) == (6_000_000 - base, 7_000_000 - base, 6_000_001 - base, None, "b", "task 3"),
           f"view of a session: {kept}")
    expect((kept["hide"], kept["pin"]) == (str(rows[0, "cpu", 1]), str(rows[1, "cpu", 0])), f"rows of a session: {kept}")
    events = ask(words, {"report": "events", "count": 20000})["events"]
    expect(not any(e["stream"] == 0 and e["event"] == "sched/sched_waking" for e in events) and any(e["stream"] == 1 and e["twin_of"] is not None for e in events) and
           not any(e["stream"] == 0 and e["twin_of"] is not None for e in events), "the events of a session")
    os.environ["ASK_BEFORE"] = json.dumps({"report": "streams", "stream": 0, "couplebreak": "on", "topology": "none"})
    try:
        changed = ask(words, {"report": "streams"})
        expect(changed["streams"][0]["couplebreak"] and changed["streams"][0]["topology"] == "none" and not changed["topology"], f"changed: {changed['streams'][0]}")
        twins = [e for e in ask(words, {"report": "events", "count": 20000})["events"] if e["stream"] == 0 and e["twin_of"] is not None]
        expect(twins, "no twins come")
        text["streams"][0]["couplebreak"] = True
        session.write_text(json.dumps(text))
        os.environ["ASK_BEFORE"] = json.dumps({"report": "streams", "stream": 0, "couplebreak": "off"})
        expect(ask(words, {"report": "streams"}) == streams, "couplebreak that is switched off leaves something")
    finally:
        del os.environ["ASK_BEFORE"]
    for request, what in (({"stream": 7}, "no recording 7"), ({"stream": 1, "topology": "given"}, "no topology was given"), ({"topology": "x"}, "own, given, given:FILE or none"),
                          ({"couplebreak": "maybe"}, "on or off")):
        said = ask(words, {"report": "streams", **request}, 1)
        expect(what in said, f"{request}: {said}")
    good = scratch / "other.xml"
    good.write_text(topology.read_text())
    topology.write_text(tracedat.topology_of([[0, 1], [2]]))
    for path, what in ((topology, "3 CPUs"), (scratch / "none.xml", "none.xml"), (session, "is not a topology")):
        said = ask(words[:1] + [session], {"report": "streams", "topology": f"given:{path}"}, 1)
        expect(what in said, f"{path}: {said}")
    answer = ask(words, {"report": "streams", "topology": f"given:{good}"})
    expect((answer["streams"][0]["topology"], answer["streams"][0]["given_topology"]) == ("given", str(good)) and len(answer["topology"]) == 4, f"a topology that is given later: {answer['streams'][0]}")
    answer = ask(words, {"report": "streams", "topology": "given:"})
    expect(answer["streams"][0]["topology"] == "none" and answer["streams"][0]["given_topology"] is None, f"an empty path: {answer['streams'][0]}")
    refused = ask(words, {"report": "streams"})
    expect(refused["streams"][0]["topology"] == "none" and any("3 CPUs" in row["text"] for row in refused["lacking"]), f"a topology of another machine: {refused['lacking']}")


def check_files(first, other, scratch):
    """A window as a file of another tool has the bytes that hpcquery sched writes for it."""
    streams = ask(first, {"report": "streams"})
    base, length = streams["from_ns"], streams["length_ns"]
    for form, ending in (("trace-dat", "dat"), ("chrome", "json")):
        for from_ns, to_ns in ((0, length), (length // 3, length // 2), (length, length)):
            made, wanted = ask(first, {"report": "file", "subject": form, "from": from_ns, "to": to_ns})["file"][0], scratch / "wanted"
            subprocess.run([BUILD / "hpcquery", "sched", form, "-o", wanted, "--from", f"{base + from_ns}ns", "--to", f"{base + to_ns}ns", first], check=True)
            held = base64.b64decode(made["base64"], validate=True)
            expect(held == wanted.read_bytes() and made["bytes"] == len(held) and made["name"].endswith("." + ending), f"{form} {from_ns}-{to_ns}: {made['bytes']} bytes are not those of hpcquery")
    both, second = [str(first), str(other)], ask(other, {"report": "file", "subject": "trace-dat"})["file"][0]
    expect(ask(both, {"report": "file", "subject": "trace-dat", "stream": 1})["file"][0]["bytes"] == second["bytes"], "the second of two recordings is not the file of it alone")
    expect("not as pdf" in ask(first, {"report": "file", "subject": "pdf"}, 1), "a form that there is not")
    expect("no recording 7" in ask(first, {"report": "file", "subject": "trace-dat", "stream": 7}, 1), "a recording that there is not")
    expect("give FORM" in ask(first, {"report": "file"}, 1), "no form")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        first, other = recording(scratch / "one.dat", 1), recording(scratch / "two.dat", 2, 500)
        files = [first] + [path for path in (DATA / "guest-4cpu-2node.dat",) if path.exists()]
        for path in files:
            streams = check_rows(path)
            check_slices(path, streams["rows"])
            check_windows(path, streams)
            check_events(path, streams)
            check_find(path, streams)
            check_stays(path, streams)
            check_panel(path, streams)
        check_narrow(first, ask(first, {"report": "streams"}))
        check_two(first, other)
        check_arranged(first, other, scratch)
        check_bounds(first, scratch)
        check_kept(scratch)
        check_memory(first)
        check_pieces(scratch)
        check_sizes(scratch)
        check_files(first, other, scratch)
        check_refused(first, len(ask(first, {"report": "streams"})["rows"]))
    for sentence in failures[:30]:
        print("FAIL:", sentence[:700])
    sys.exit(bool(failures))


main()
