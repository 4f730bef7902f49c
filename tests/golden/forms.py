# SPDX-License-Identifier: BSD-3-Clause
"""Frames in the forms of other tools. tests/golden/forms.txt holds inputs and what each form makes of them; `forms.py --record`
writes the latter anew. Every form of random trees adds up to what a model in Python says. Readers of their own try what is
written: callgrind_annotate, Graphviz, Chromium, protoc with the fields that are published, and rules for speedscope's format
and for trace events. Chains of a million nodes, names of 10,000 characters, and graphs with cycles are written or refused by one sentence."""
import collections
import csv
import difflib
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import browser  # noqa: E402
import bundle  # noqa: E402

GOLDEN = bundle.golden("forms")
RANKS = bundle.golden("readers") / "inputs" / "caliper.json"  # two profiles
FORMS = ["flamegraph", "folded", "dot", "callgrind", "callgrind-data", "pprof", "speedscope", "chrome", "literal"]
PLACES = {"line", "call", "instruction"}
CHAIN = 1000000 if os.environ.get("LOCUS_TEST_FULL") else 200000
PROTO = """syntax = "proto3";
message Profile {
  repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  int64 drop_frames = 7; int64 keep_frames = 8; int64 time_nanos = 9; int64 duration_nanos = 10; ValueType period_type = 11;
  int64 period = 12; repeated int64 comment = 13; int64 default_sample_type = 14;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping {
  uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4; int64 filename = 5; int64 build_id = 6;
  bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9; bool has_inline_frames = 10;
}
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; bool is_folded = 5; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
"""
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def show(*words):
    return subprocess.run([str(BUILD / "tests" / "golden" / "show-form"), *map(str, words)], capture_output=True, check=False)


def shown(form, path, *more):
    result = show(form, path, *more)
    expect(result.returncode == 0 and not result.stderr, f"{form} of {path}: {result.stderr.decode(errors='replace')}")
    return result.stdout


def text_of(form, path, *more):
    return shown(form, path, *more).decode()


# --- pprof, decoded ---


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """[(number, value)] of a message: integers and bytes."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found.append((key >> 3, value))
    return found


def numbers(data):
    at, found = 0, []
    while at < len(data):
        value, at = varint(data, at)
        found.append(value - (1 << 64) if value >> 63 else value)
    return found


def profile_of(data):
    """Types and samples of a pprof profile: stacks from the root on, as "name:line"."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    parts = collections.defaultdict(list)
    for number, value in fields(data):
        parts[number].append(value)
    texts = [value.decode() for value in parts[6]]
    expect(texts[0] == "" and len(set(texts)) == len(texts), "pprof: the table of strings does not begin with an empty one")
    functions = {f[1]: f for f in map(dict, map(fields, parts[5]))}
    mappings = {m[1]: texts[m[5]] for m in map(dict, map(fields, parts[3]))}
    places = {}
    for location in map(dict, map(fields, parts[4])):
        line = dict(fields(location[4]))
        expect(location.get(2, 0) in mappings or 2 not in location, "pprof: a location of no mapping")
        places[location[1]] = f"{texts[functions[line[1]][2]]}:{line.get(2, 0)}"
    types = [(texts[t.get(1, 0)], texts[t.get(2, 0)]) for t in map(dict, map(fields, parts[1]))]
    samples = []
    for sample in map(fields, parts[2]):
        labels = {texts[dict(fields(v))[1]]: texts[dict(fields(v))[2]] for n, v in sample if n == 3}
        stack = [places[i] for n, v in sample if n == 1 for i in numbers(v)]
        samples.append((stack[::-1], [i for n, v in sample if n == 2 for i in numbers(v)], labels))
    return {"types": types, "samples": samples, "default": texts[parts[14][0] if parts[14] else 0], "modules": sorted(mappings.values())}


def profile_text(data):
    profile = profile_of(data)
    lines = ["types " + ", ".join(f"{name} [{unit}]" for name, unit in profile["types"]) + f"; default {profile['default']}"]
    lines += ["modules " + ", ".join(profile["modules"])]
    lines += [f"{' < '.join(stack) or '-'} {values} {json.dumps(labels, ensure_ascii=False)}"
              for stack, values, labels in profile["samples"]]
    return "\n".join(lines) + "\n"


# --- what is committed ---


def golden_text(form, path):
    """What a form prints, for a person to read: without the style and the script of a page."""
    data = shown(form, path)
    if form == "pprof":
        return profile_text(data)
    text = data.decode()
    if form == "flamegraph":
        text = re.sub(r"<style>.*?</style>", "<style/>", re.sub(r"<script>.*?</script>", "<script/>", text, flags=re.S), flags=re.S)
    return text


def check_golden(inputs):
    expected = GOLDEN / "expected"
    texts = {f"{path.stem}.{form}": golden_text(form, path) for path in inputs for form in FORMS
             if form != "callgrind-data" or path.stem == "data"}
    if "--record" in sys.argv:
        shutil.rmtree(expected, ignore_errors=True)
        expected.mkdir()
        for name, text in texts.items():
            (expected / name).write_text(text, encoding="utf-8")
        bundle.keep_golden("forms")
    for name, text in texts.items():
        path = expected / name
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if known != text:
            failures.append("\n".join([f"{name} is another one:", *difflib.unified_diff(
                known.split("\n"), text.split("\n"), "committed", "now", n=0, lineterm="")]))


# --- a model ---


def random_tree(seed, is_recursive):
    """A literal of functions and lines with whole and other costs."""
    rand = random.Random(seed)
    whole = rand.random() < .5

    def cost():
        return rand.randrange(0, 9) if whole else round(rand.random() * 3, 4)

    def node(depth, above):
        name = rand.choice("abcdef") if is_recursive else f"f{depth}{rand.choice('xyz')}"
        is_line = above and rand.random() < .3
        frame = {"name": f"x.c:{depth}", "type": "line", "file": "x.c", "line": depth + 1} if is_line else \
            {"name": name, "type": "function", "file": rand.choice(["x.c", "y.c"]) if is_recursive else "x.c"}
        metrics = {key: cost() for key in ("time", "loads") if rand.random() < .8}
        children = [node(depth + 1, True) for _ in range(rand.randrange(0, 4) if depth < 6 else 0)]
        return {"frame": frame, "metrics": metrics, "children": children}

    return [node(0, False) for _ in range(rand.randrange(1, 3))]


def paths(roots, column):
    """[(functions from the root on, cost)] of the nodes with a cost."""
    found, left = [], [(root, ()) for root in roots]
    while left:
        node, above = left.pop()
        frame = node["frame"]
        path = above if frame["type"] in PLACES and above else (*above, (frame["name"], frame.get("file", "")))
        if node["metrics"].get(column, 0) > 0:
            found.append((path, node["metrics"][column]))
        left += [(child, path) for child in node["children"]]
    return found


def is_near(a, b):
    return abs(a - b) <= 1e-6 * max(1, abs(a), abs(b))


def added(pairs):
    sums = collections.Counter()
    for key, value in pairs:
        sums[key] += value
    return sums


def are_near(found, truth):
    return all(is_near(found.get(key, 0), truth.get(key, 0)) for key in {*found, *truth})


def named(path):
    return ";".join(name for name, _ in path)


def check_folded(text, truth, what):
    found = added((line.rsplit(" ", 1)[0], float(line.rsplit(" ", 1)[1])) for line in text.splitlines())
    expect(are_near(found, added((named(path), cost) for path, cost in truth)), f"{what}: folded stacks differ")


def prefixes(truth):
    """Inclusive costs by path of names."""
    return added((named(path[:i + 1]), cost) for path, cost in truth for i in range(len(path)))


# --- speedscope ---


def check_speedscope(text, truth, what):
    """The rules of its schema and of its importer; the costs of all paths."""
    data = json.loads(text)
    expect(data["$schema"] == "https://www.speedscope.app/file-format-schema.json", f"{what}: no schema")
    frames = data["shared"]["frames"]
    expect(all(isinstance(f["name"], str) and f["name"] and isinstance(f.get("line", 0), int) for f in frames), f"{what}: frames")
    expect(0 <= data["activeProfileIndex"] < len(data["profiles"]), f"{what}: the active profile")
    totals = []
    for profile in data["profiles"]:
        expect(profile["type"] == "evented" and isinstance(profile["name"], str), f"{what}: {profile['type']}")
        expect(profile["unit"] in ("bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"), f"{what}: unit")
        stack, at, sums = [], profile["startValue"], collections.Counter()
        for event in profile["events"]:
            expect(event["at"] >= at and 0 <= event["frame"] < len(frames), f"{what}: {event} after {at}")
            if stack:
                sums[";".join(frames[f]["name"] for f in stack)] += event["at"] - at
            at = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                expect(event["type"] == "C" and stack and stack.pop() == event["frame"], f"{what}: {event} ends nothing")
        expect(not stack and is_near(profile["endValue"], at), f"{what}: {len(stack)} frames are open at the end")
        totals.append(sums)
    if truth is not None:
        expect(are_near(totals[0], added((named(path), cost) for path, cost in truth)), f"{what}: speedscope's costs differ")
    return totals


# --- trace events ---


def check_chrome(text, truth, what, us_per_cost):
    """Events of a track nest, and the costs of their paths are right."""
    data = json.loads(text)
    tracks, names = collections.defaultdict(list), set()
    for event in data["traceEvents"]:
        if event["ph"] == "M":
            names.add((event["name"], event["pid"], event["tid"]))
            continue
        expect(event["ph"] == "X" and event["dur"] >= 0, f"{what}: {event}")
        tracks[event["pid"], event["tid"]].append(event)
    sums = collections.Counter()
    for track, events in tracks.items():
        expect(("thread_name", *track) in names, f"{what}: track {track} has no name")
        stack = []
        for event in events:
            begin, end = round(event["ts"] * 1000), round(event["ts"] * 1000) + round(event["dur"] * 1000)
            while stack and stack[-1][1] <= begin and not (stack[-1][1] == begin == end and stack[-1][0] < begin):
                stack.pop()
            expect(not stack or (stack[-1][0] <= begin and end <= stack[-1][1]), f"{what}: {event} does not nest")
            stack.append((begin, end, event["name"]))
            sums[";".join(name for _, _, name in stack)] += event["dur"]
    if truth is not None:
        expect(are_near({k: v / us_per_cost for k, v in sums.items()}, prefixes(truth)), f"{what}: the costs of events differ")
    return tracks


# --- flame graphs ---

SVG = "{http://www.w3.org/2000/svg}"


def flames(text):
    """[(name, x, width, y, title)] of the frames."""
    root = ET.fromstring(text)
    found = []
    for group in root.iter(f"{SVG}g"):
        rect, title = group.find(f"{SVG}rect"), group.find(f"{SVG}title")
        if rect is not None:
            found.append((title.text.rsplit(" \u2014 ", 1)[0], *(float(rect.get(k)) for k in ("x", "width", "y")), title.text))
    return found


def check_flamegraph(text, truth, what):
    found, stack, sums = flames(text), [], collections.Counter()
    total = sum(cost for _, cost in truth)
    for name, x, width, y, _ in found:
        del stack[round((y - 64) / 18):]
        expect(not stack or (x >= stack[-1][1] - 1e-3 and x + width <= stack[-1][2] + 1e-3), f"{what}: {name} is not above its caller")
        stack.append((name, x, x + width))
        sums[";".join(each[0] for each in stack)] += width / 1200 * total
    least = {path: cost for path, cost in prefixes(truth).items() if cost >= total / 12000}
    expect(all(abs(sums[path] - cost) <= 1e-4 * total for path, cost in least.items()), f"{what}: the widths of flames differ")
    expect("http" not in re.sub(r'xmlns="[^"]*"', "", text), f"{what}: a flame graph refers to something outside")


# --- callgrind ---


class Callgrind:
    """A file of callgrind: self costs by function, calls as (caller, callee) -> cost."""

    def __init__(self, text):
        self.own, self.calls, self.by_file = collections.Counter(), collections.Counter(), collections.Counter()
        self.header, at, is_call, known = {}, {}, False, {}
        for line in text.splitlines():
            found = re.match(r"(c?)(ob|fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$", line)
            if found:
                kind = {"ob": "ob", "fn": "fn"}.get(found[2], "fl")
                if found[4] is not None:
                    expect((kind, found[3]) not in known, f"callgrind: a name is defined twice: {line}")
                    known[kind, found[3]] = found[4]
                at[found[1] + found[2]] = known[kind, found[3]]
                if found[2] == "fn" and not found[1]:
                    at["file"] = at["fl"]
                elif found[2] in ("fi", "fe") and not found[1]:
                    at["file"] = at[found[2]]
            elif line.startswith("calls="):
                is_call = True
            elif re.match(r"\d", line):
                costs = [int(word) for word in line.split()[1:]]
                me = (at["fn"], at["fl"], at["ob"])
                if is_call:
                    callee = (at["cfn"], at.get("cfi", at["file"]), at.get("cob", at["ob"]))
                    self.calls[me, callee] += costs[0]
                    at.pop("cfi", None)
                    at.pop("cob", None)
                else:
                    self.own[me] += costs[0]
                    self.by_file[f"{at['file']}:{at['fn']}"] += costs[0]
                is_call = False
            elif ": " in line and not line.startswith("event:"):
                self.header[line.split(": ")[0]] = line.split(": ", 1)[1]

    def inclusive(self, function):
        """As KCachegrind has it: the calls to a function, without those of itself; its own cost and calls where there is none."""
        to = [cost for (caller, callee), cost in self.calls.items() if callee == function != caller]
        return sum(to) if to else self.own[function] + sum(c for (caller, callee), c in self.calls.items() if caller == function != callee)


def annotated(path):
    """What callgrind_annotate says: its total, and costs by function."""
    result = subprocess.run(["callgrind_annotate", "--show=time", "--sort=time", "--threshold=100", "--auto=no", str(path)], capture_output=True, check=False,
                            text=True, encoding="utf-8", errors="replace")
    expect(result.returncode == 0 and not result.stderr, f"callgrind_annotate: {result.stderr}")
    total, costs = None, collections.Counter()
    for line in result.stdout.splitlines():
        found = re.match(r"\s*([\d,]+) (?:\([ \d.]+%\))?\s+(.*)$", line)
        if found and found[2] == "PROGRAM TOTALS":
            total = int(found[1].replace(",", ""))
        elif found and ":" in found[2]:
            costs[found[2].rsplit(" [", 1)[0]] += int(found[1].replace(",", ""))
    return total, costs


def check_callgrind(text, truth, what, scratch):
    """Self costs, and inclusive ones in which recursion counts once."""
    file = Callgrind(text)
    scale = 10 ** (9 if ": time, in nanoseconds\n" in text else 0)
    total = sum(cost for _, cost in truth)
    expect(file.header["summary"] == file.header["totals"], f"{what}: summary and totals differ")
    own = added((path[-1], cost) for path, cost in truth)
    expect(are_near({(f[0], "" if f[1] == "???" else f[1]): c / scale for f, c in file.own.items() if c}, own), f"{what}: callgrind's own costs")
    inclusive = added((function, cost) for path, cost in truth for function in set(path))
    mine = {(f[0], "" if f[1] == "???" else f[1]): file.inclusive(f) / scale for f in {*file.own, *(c for c, _ in file.calls)}
            if f[0] != "<root>"}
    expect(are_near({k: v for k, v in mine.items() if v}, inclusive), f"{what}: callgrind's inclusive costs")
    if scratch is None or not shutil.which("callgrind_annotate"):
        return
    path = scratch / "callgrind.out"
    path.write_text(text, encoding="utf-8")
    of_all, costs = annotated(path)
    expect(of_all == int(file.header["summary"].split()[0]) and is_near(of_all / scale, total), f"{what}: total {of_all}, not {total}")
    expect(+costs == +file.by_file, f"{what}: callgrind_annotate: {costs}, not {file.by_file}")


# --- all of them, of random trees ---


def check_pprof(data, roots, what):
    profile = profile_of(data)
    for i, (name, unit) in enumerate(profile["types"]):
        factor = 1e9 if unit == "nanoseconds" else float(unit.partition("/")[2] or 1)
        found = added((";".join(place.rsplit(":", 1)[0] for place in stack), values[i] / factor)
                      for stack, values, _ in profile["samples"])
        truth = added((named(path), cost) for path, cost in paths(roots, name))
        expect(are_near({k: v for k, v in found.items() if v}, truth), f"{what}: pprof's {name} differs")


def check_dot(text, truth, what):
    labels = re.findall(r'label="([^"\\]*)\\n([\d.]+)%\\n\(([\d.]+)%\)"', text)
    found = added((name, float(share)) for name, _, share in labels)
    total = sum(cost for _, cost in truth)
    shares = added((path[-1][0], 100 * cost / total) for path, cost in truth)
    expect(all(abs(found[name] - share) < .4 for name, share in shares.items()), f"{what}: dot: {found}, not {shares}")
    expect(text.count(" -> ") == len({path[:i] for path, _ in truth for i in range(2, len(path) + 1)}), f"{what}: edges")


def check_random(scratch):
    has_annotate = shutil.which("callgrind_annotate")
    if not has_annotate:
        print("SKIP (part): no callgrind_annotate")
    for seed in range(40):
        roots, path = random_tree(seed, seed % 2), scratch / "random.json"
        path.write_text(json.dumps(roots), encoding="utf-8")
        truth, what = paths(roots, "time"), f"tree {seed}"
        if not truth:
            words = show("folded", path, "time").stderr.decode()
            expect("nothing to show" in words or "no such column" in words, f"{what}: {words}")
            continue
        is_seconds = any(cost != int(cost) for _, cost in truth)
        check_folded(text_of("folded", path, "time"), truth, what)
        check_flamegraph(text_of("flamegraph", path, "time"), truth, what)
        check_speedscope(text_of("speedscope", path, "time"), truth, what)
        check_chrome(text_of("chrome", path, "time"), truth, what, 1e6 if is_seconds else 1)
        check_callgrind(text_of("callgrind", path, "time"), truth, what, scratch if has_annotate and seed < 10 else None)
        check_dot(text_of("dot", path, "time"), truth, what)
        check_pprof(shown("pprof", path), roots, what)
        again = scratch / "again.json"
        again.write_bytes(shown("literal", path))
        expect(shown("literal", again) == again.read_bytes(), f"{what}: its literal reads as another one")
        difference = show("--equal", path, again)  # knows no frames in which siblings are the same
        expect(difference.returncode == show("--equal", path, path).returncode, f"{what}: its literal is another frame: "
               f"{difference.stderr.decode()}")


# --- several profiles, hard names, pruning ---


def check_profiles(path):
    """Each profile is one of its own, and they add up to the first one, which is all."""
    totals = check_speedscope(text_of("speedscope", path), None, path.name)
    sums = added(pair for each in totals[1:] for pair in each.items())
    expect(len(totals) == 3 and sum(totals[0].values()) > 0 and are_near(sums, totals[0]), f"{path.name}: {totals}")
    tracks = check_chrome(text_of("chrome", path), None, path.name, 1)
    expect(len(tracks) == 2, f"{path.name}: tracks {list(tracks)}")


def check_names(scratch, hard):
    """A name of 10,000 characters, and names that mean something in a format."""
    long, path = "long" * 2500, scratch / "long.json"
    path.write_text(json.dumps([{"frame": {"name": long, "type": "function"}, "metrics": {"time": 3}, "children": []}]), encoding="utf-8")
    for form in set(FORMS) - {"callgrind-data"}:
        data = shown(form, path)
        expect(long.encode() in (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data), f"{form}: the long name is cut")
    tiny = hard.with_name("tiny.json")
    tiny.write_text('[{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 5e-324}, "children": []}]', encoding="utf-8")
    expect([flame[1:3] for flame in flames(text_of("flamegraph", tiny))][-1:] == [(0, 1200)],
           f"a flame graph of 5e-324: {flames(text_of('flamegraph', tiny))}")
    names = {name for name, *_ in flames(text_of("flamegraph", hard))}
    expect({'<b>&amp;"\'', "a;b", "two\\x0alines", "gr\u00fc\u00df", "bad\\xff\\xfe"} <= names, f"flamegraph: names {sorted(names)}")
    frames = {frame["name"] for frame in json.loads(text_of("speedscope", hard))["shared"]["frames"]}
    expect(frames == names, f"speedscope: {sorted(frames)}, flamegraph: {sorted(names)}")
    again = scratch / "again.json"
    again.write_bytes(shown("literal", hard))
    found = {node["frame"]["name"] for node in nodes_of(json.loads(again.read_text(encoding="utf-8")))}
    expect("two\nlines" in found and '<b>&amp;"\'' in found, f"literal: {sorted(found)}")


def nodes_of(roots):
    left, found = list(roots), []
    while left:
        found.append(left.pop())
        left += found[-1]["children"]
    return found


def check_data(path):
    """Variables cost what is spent below them, and functions what they spend on variables; allocations call nobody."""
    file = Callgrind(text_of("callgrind-data", path))
    own = {function[0]: cost for function, cost in file.own.items() if cost}
    expect(own == {"matrix": 38, "table": 7, "<kernel>": 5}, f"callgrind-data: {own}")
    found = {f[0]: file.inclusive(f) for f in {*file.own, *(callee for _, callee in file.calls)}}
    expect(found == {**own, "main": 50, "solve": 42, "norm": 8, "<root>": 50}, f"callgrind-data: {found}")


def check_units(scratch):
    """Events of time compare: all are nanoseconds, and say so; what costs nothing is no event."""
    path = scratch / "units.json"
    path.write_text(json.dumps([{"frame": {"name": "f", "type": "function"}, "metrics":
                                 {"time": 1.5, "EADDR (usec)": 1500000, "EADDR memory (usec)": 750000.5, "bytes": 7, "none": 0}, "children": []}]),
                    encoding="utf-8")
    text = text_of("callgrind", path)
    events = dict(zip(Callgrind(text).header["events"].split(), map(int, Callgrind(text).header["summary"].split()), strict=True))
    expect(events == {"time": 1500000000, "EADDR_ns": 1500000000, "EADDR_memory_ns": 750000500, "bytes": 7}, f"callgrind: {events}")
    expect("\nevent: EADDR_memory_ns : EADDR memory, in nanoseconds\n" in text, f"callgrind's description: {text}")


def check_least(scratch):
    """What is left out counts for what is above it."""
    roots, path = random_tree(2, False), scratch / "least.json"
    path.write_text(json.dumps(roots), encoding="utf-8")
    truth = paths(roots, "time")
    for form in ("folded", "speedscope", "flamegraph", "dot"):
        few, all_of_it = text_of(form, path, "time", 20), text_of(form, path, "time")
        expect(len(few) < len(all_of_it), f"{form}: nothing is left out")
    total = sum(float(line.rsplit(" ", 1)[1]) for line in text_of("folded", path, "time", 20).splitlines())
    expect(is_near(total, sum(cost for _, cost in truth)), f"folded: {total} is left")


def check_graphs(scratch, graph):
    """A graph with a cycle: drawn, or written with references, or refused."""
    for form in FORMS:
        result = show("--graph", form, graph)
        is_written = form in ("dot", "literal")
        expect((result.returncode == 0) == is_written and result.stderr.count(b"\n") == (not is_written),
               f"{form} of a graph: {result.stderr.decode()}")
    literal, again = scratch / "graph.json", scratch / "again.json"
    literal.write_bytes(show("--graph", "literal", graph).stdout)
    again.write_bytes(shown("literal", literal))
    expect(literal.read_bytes() == again.read_bytes(), "literal: a graph is another one when it is read back")
    parents = text_of("dot", literal)
    expect(re.search(r"n\d+ -> n\d+;", parents) and re.search(r'n\d+ -> n\d+ \[label="', parents), "dot: edges of a graph")


def check_chains():
    for form in FORMS:
        result = show("--chain", CHAIN, form)
        if form == "callgrind-data":
            expect(result.returncode == 1 and b"no variable" in result.stderr, f"{form} of a chain: {result.stderr.decode()}")
            continue
        expect(result.returncode == 0 and not result.stderr, f"{form} of a chain: {result.stderr.decode()[:500]}")
        expect(result.stdout.count(b"ping") >= (CHAIN / 2 if form in ("flamegraph", "folded", "dot", "chrome", "literal") else 0),
               f"{form} of a chain: names are missing")


def check_other_files(scratch):
    """Lines of a function that are in another file have a function of that file in pprof's profiles."""
    path = scratch / "files.json"
    line = [{"frame": {"type": "line", "file": f, "line": n}, "metrics": {"time": v}} for f, n, v in (("a.c", 4, 1), ("b.y", 10, 2), ("c.y", 4, 4))]
    path.write_text(json.dumps([{"frame": {"name": "f", "type": "function", "file": "a.c"}, "metrics": {"time": 0}, "children": line}]),
                    encoding="utf-8")
    found = sorted((file, lines[0], values[0]) for _, lines, values, file in samples_by_file(shown("pprof", path)))
    expect(found == [("a.c", 4, 1), ("b.y", 10, 2), ("c.y", 4, 4)], f"pprof: lines by file are {found}")


def samples_by_file(data):
    """Of each sample, the name, line, values and file of its leaf."""
    parts = collections.defaultdict(list)
    for number, value in fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data):
        parts[number].append(value)
    functions = {f[1]: f for f in map(dict, map(fields, parts[5]))}
    locations = {p[1]: dict(fields(p[4])) for p in map(dict, map(fields, parts[4]))}
    for sample in map(fields, parts[2]):
        ids = [i for n, v in sample if n == 1 for i in numbers(v)]
        of = functions[locations[ids[0]][1]]
        yield (parts[6][of[2]].decode(), [locations[ids[0]].get(2, 0)], [i for n, v in sample if n == 2 for i in numbers(v)],
               parts[6][of[4]].decode())


def check_spreadsheet(scratch):
    """--csv=spreadsheet guards what begins like a formula, and no number."""
    names = ["=1+1", "+f", "-x", "@sum", "-5", "plain", "a,=b", '="q"', "operator-"]
    path = scratch / "formulas.json"
    path.write_text(json.dumps([{"frame": {"name": n, "type": "function"}, "metrics": {"time": i - 4}} for i, n in enumerate(names)]),
                    encoding="utf-8")
    rows = {}
    for option in ("--csv", "--csv=spreadsheet"):
        result = subprocess.run([str(BUILD / "hpcquery"), "flat", ":", option, str(path)], capture_output=True, check=True, text=True)
        rows[option] = list(csv.DictReader(result.stdout.splitlines()))
    plain, guarded = ([row["name"] for row in rows[option]] for option in rows)
    expect(sorted(plain) == sorted(names), f"--csv: {plain}")
    expect(guarded == [("'" + n if n[0] in "=+@" or n == "-x" else n) for n in plain], f"--csv=spreadsheet: {guarded}")
    expect([row["time"] for row in rows["--csv"]] == [row["time"] for row in rows["--csv=spreadsheet"]], "--csv=spreadsheet: numbers differ")
    result = subprocess.run([str(BUILD / "hpcquery"), "flat", ":", "--csv=other", str(path)], capture_output=True, check=False, text=True)
    expect(result.returncode == 2 and "--csv takes nothing" in result.stderr, f"--csv=other: {result.stderr}")


# --- readers of others ---


def check_protoc(scratch, inputs):
    if not shutil.which("protoc"):
        print("SKIP (part): no protoc")
        return
    (scratch / "profile.proto").write_text(PROTO, encoding="utf-8")
    for path in inputs:
        data = shown("pprof", path)
        plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        result = subprocess.run(["protoc", f"--proto_path={scratch}", "--decode=Profile", "profile.proto"], input=plain,
                                capture_output=True, check=False)
        text = result.stdout.decode()
        expect(result.returncode == 0 and not result.stderr, f"protoc: {path.name}: {result.stderr.decode()}")
        expect(not re.search(r"^\s*\d+[:{ ]", text, re.M), f"protoc: {path.name}: a field that the schema does not have")
        theirs = sum(int(v) for s in re.findall(r"^sample \{.*?^\}", text, re.M | re.S) for v in re.findall(r"^  value: (-?\d+)", s, re.M))
        ours = sum(value for _, values, _ in profile_of(data)["samples"] for value in values)
        expect(theirs == ours > 0, f"protoc: {path.name}: {theirs}, not {ours}")


def check_graphviz(scratch, inputs):
    if not shutil.which("dot"):
        print("SKIP (part): no Graphviz")
        return
    for path in inputs:
        graph = scratch / "graph.dot"
        graph.write_bytes(shown("dot", path))
        result = subprocess.run(["dot", "-Tsvg", str(graph)], capture_output=True, check=False)
        expect(result.returncode == 0 and not result.stderr, f"dot: {path.name}: {result.stderr.decode()}")
        n = sum(1 for g in ET.fromstring(result.stdout).iter(f"{SVG}g") if g.get("class") == "node")
        expect(n == len(re.findall(r"^n\d+ \[", graph.read_text(encoding="utf-8"), re.M)) > 0, f"dot: {path.name}: {n} nodes are drawn")


WIDTHS = "Array.from(document.querySelectorAll('g.f')).filter(g=>g.style.display!=='none').map(g=>[g.querySelector('title')" \
    ".textContent,g.querySelector('rect').getBoundingClientRect().width])"


def try_page(page, scratch, data, hard):
    """Search, zoom by mouse and keyboard, at 80 and 200 % and in both schemes; nothing on the console, nothing loaded."""
    def status():
        return page.value("document.getElementById('status').textContent")

    def widths():
        return {title.rsplit(" \u2014 ", 1)[0]: width for title, width in page.value(WIDTHS)}

    for path in (hard, data):
        svg = scratch / "flames.svg"
        svg.write_bytes(shown("flamegraph", path))
        page.open(svg.as_uri())
        expect(page.loads == [svg.as_uri()] and not page.troubles, f"flamegraph: {path.name}: {page.loads} {page.troubles}")
        expect(set(widths()) == {name for name, *_ in flames(svg.read_text(encoding="utf-8"))}, f"flamegraph: {path.name}: {widths()}")
    for zoom in (.8, 1, 2):
        page.size(1200, 800, zoom)
        page.value("new Promise(done=>requestAnimationFrame(()=>requestAnimationFrame(done)))")
        room = page.value("document.documentElement.clientWidth") - 20
        whole = widths()
        expect(abs(whole["main"] - room) < 1 and abs(whole["solve"] - .84 * room) < 1, f"flamegraph: at {zoom}: {whole} in {room}")
        page.press("/")
        page.type("SOLVE")
        expect(status() == "2 frames, 84.00 %", f"flamegraph: at {zoom}: the search says {status()}")
        page.press("Escape")
        expect(status() == "", f"flamegraph: at {zoom}: the search goes on: {status()}")
        at = page.value("(r=>[r.x+r.width/2,r.y+r.height/2])(document.querySelectorAll('g.f rect')[5].getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)
        zoomed = widths()
        expect(abs(zoomed["norm"] - room) < 1 and "solve" not in zoomed, f"flamegraph: at {zoom}: a click shows {zoomed}")
        page.press("Escape")
        expect(widths() == whole, f"flamegraph: at {zoom}: Escape shows {widths()}")
        page.press("ArrowLeft", "Enter")
        expect(abs(widths()["solve"] - room) < 1 and "norm" not in widths(), f"flamegraph: at {zoom}: the keys show {widths()}")
        page.press("Escape", "ArrowUp", "ArrowDown", "ArrowRight")
        name = page.value("document.activeElement.querySelector('title').textContent")
        expect(name.startswith("norm"), f"flamegraph: at {zoom}: the keys lead to {name}")
    papers = []
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        papers.append(page.value("getComputedStyle(document.documentElement).backgroundColor"))
    expect(papers == ["rgb(255, 255, 255)", "rgb(20, 24, 31)"] and not page.troubles, f"flamegraph: {papers} {page.troubles}")


def check_browser(scratch, data, hard):
    try:
        page = browser.Browser(scratch / "browser")
    except browser.Failure as failure:
        print(f"SKIP (part): {failure}")
        return
    try:
        try_page(page, scratch, data, hard)
    finally:
        page.close()


def main():
    inputs = [*sorted((GOLDEN / "inputs").iterdir()), RANKS]
    hard, graph = GOLDEN / "inputs" / "hard.json", GOLDEN / "inputs" / "recursive.json"
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        check_golden(inputs)
        check_random(scratch)
        check_profiles(RANKS)
        check_names(scratch, hard)
        check_data(GOLDEN / "inputs" / "data.json")
        check_units(scratch)
        check_least(scratch)
        check_graphs(scratch, graph)
        check_chains()
        check_other_files(scratch)
        check_spreadsheet(scratch)
        check_protoc(scratch, inputs)
        check_graphviz(scratch, inputs)
        check_browser(scratch, GOLDEN / "inputs" / "data.json", hard)
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
