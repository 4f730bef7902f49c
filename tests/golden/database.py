# SPDX-License-Identifier: BSD-3-Clause
"""hpcprof and hpcquery on measurements made here: sums, classes, sizes, NUMA nodes and shares are as they were put in,
the database keeps the rules of its readers, and bad input is named."""
import csv
import functools
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402
from measurement import expect, failures  # noqa: E402
import v4  # noqa: E402

run = functools.partial(m.run, columns=100)
METRICS = [("EADDR (usec)", m.INT, 1000), ("FAULTS", m.INT, 1), ("Size (byte)", m.INT, 1)]
APP, LIBC = "/nowhere/app", "/nowhere/libfoo.so.1"
START = [(APP, 0x1010), (APP, 0x2020)]


def check_rules(database, *options):
    checker = SOURCE / "tests" / "lib" / "check-database.py"
    result = subprocess.run([sys.executable, str(checker), *options, str(database)], capture_output=True, text=True,
                            check=False)
    expect(result.returncode == 0, f"the database breaks rules: {result.stdout}{result.stderr}")


def check_rules_v4(database, *options):
    checker = SOURCE / "tests" / "lib" / "check-v4.py"
    result = subprocess.run([sys.executable, str(checker), *options, str(database)], capture_output=True, text=True,
                            check=False)
    expect(result.returncode == 0, f"the version 4 form breaks rules: {result.stdout}{result.stderr}")


def rows_of(database, *options):
    return list(csv.DictReader(io.StringIO(run("hpcquery", "vars", "--csv", *options, database).stdout)))


VARIABLES = {  # what thread t of process p takes: (samples, faults), and on what
    "big": lambda t: m.heap(START + [(APP, 0x3030)], size=1 << 20, n_blocks=1 + t, cpus=[[t, 0, 40], [2, 0, 10]]),
    "small": lambda t: m.heap(START + [(APP, 0x3130), (LIBC, 0x500)], size=2048, n_blocks=3),
    "mapped": lambda t: m.heap([(APP, 0x1010), (APP, 0x3230)], kind="mmap", size=1 << 16),
    "grid": lambda t: m.by_address("DATACENTRIC_Static", APP, 0x404040, "static", "grid", 8192, [[3, 0, 7]]),
    "counter": lambda t: m.by_address("DATACENTRIC_ThreadLocal", LIBC, 0x10, "tls", "counter", 1024),
    "frame": lambda t: m.by_address("DATACENTRIC_Stack", APP, 0x3030, "stack"),
    "input": lambda t: m.by_address("DATACENTRIC_FileMapping", "/data/input.bin", 0, "file"),
    "no block": lambda t: m.reason("DATACENTRIC_Unknown_NoBlock"),
    "compute": lambda t: m.reason("DATACENTRIC_No_Compute"),
    "address lost": lambda t: m.reason("DATACENTRIC_No_AddressLost"),
}
SAMPLES = {"big": 50, "small": 20, "mapped": 5, "grid": 7, "counter": 4, "frame": 3, "input": 2, "no block": 1,
           "compute": 6, "address lost": 2}
CLASSES = {"big": "heap", "small": "heap", "mapped": "mmap", "grid": "static", "counter": "thread-local",
           "frame": "stack", "input": "file", "no block": "unknown", "compute": "unattributed",
           "address lost": "unattributed"}
THREADS = {(0, 100): 2, (1, 200): 3}  # (rank, pid): threads


def make_measurement(directory):
    for (rank, pid), n_threads in THREADS.items():
        for thread in range(n_threads):
            profile = m.Profile("app", METRICS, rank=rank, thread=thread, pid=pid)
            profile.topology = "topology.xml"
            profile.events = [{"metric": "EADDR (usec)", "name": "EADDR", "scale": 1000.0, "taken": 101, "overflows": 0,
                               "fates": {"named": 91, "unknown-data": 1, "compute": 6, "address-lost": 2,
                                         "dropped-stopped": 1}}]
            for i, (name, variable) in enumerate(VARIABLES.items()):
                access = START + [(APP, 0x5000 + 16 * i)]
                profile.sample(access, {0: SAMPLES[name], 1: i}, variable(thread))
                profile.sample(access[:-1] + [(APP, 0x6000)], {1: 1}, variable(thread))
            grid = profile.placeholder(profile.placeholder(profile.root, "DATACENTRIC"), "DATACENTRIC_Static")
            profile.add(profile.node(grid, (APP, 0x404041), 0), {2: 8192})  # a value of the variable itself
            profile.write(directory)
    (directory / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")


def name_of(row):
    """Our name for a row: the class and what distinguishes rows of one class."""
    if row["class"] == "heap":
        return "small" if "0x312f" in row["variable"] or "0x4ff" in row["variable"] else "big"
    if row["class"] in ("unknown", "unattributed"):
        return row["variable"].strip("<>")
    return {"mmap": "mapped", "static": "grid", "thread-local": "counter", "stack": "frame", "file": "input"}[row["class"]]


def check_variables(database):
    rows = {name_of(r): r for r in rows_of(database) if r["class"] != "dropped"}
    dropped = [r for r in rows_of(database) if r["class"] == "dropped"]
    n_threads, total = sum(THREADS.values()), sum(SAMPLES.values()) + 1
    expect([(r["variable"], r["samples"]) for r in dropped] == [("<dropped: stopped>", str(n_threads))], f"{dropped}")
    expect(rows.keys() == SAMPLES.keys(), f"rows are {sorted(rows)}")
    for name, row in rows.items():
        expect(float(row["samples"]) == n_threads * SAMPLES[name], f"{name}: {row['samples']} samples")
        expect(abs(float(row["share"]) - 100 * SAMPLES[name] / total) < 1e-4, f"{name}: share {row['share']}")
        expect(float(row["value"]) == 1000 * n_threads * SAMPLES[name], f"{name}: value {row['value']}")
        expect(row["class"] == CLASSES[name], f"{name}: class {row['class']}")
    expect(abs(sum(float(r["share"]) for r in rows_of(database)) - 100) < 1e-3, "the shares do not add up to 100")
    expect(rows["grid"]["variable"] == "grid" and rows["grid"]["size_bytes"] == "8192", f"grid: {rows['grid']}")
    expect(rows["counter"]["variable"] == "counter" and rows["counter"]["n_blocks"] == "1", f"{rows['counter']}")
    n_blocks = sum(1 + t for n in THREADS.values() for t in range(n)) * 2  # two samples, each described
    expect(int(rows["big"]["n_blocks"]) == n_blocks and int(rows["big"]["size_bytes"]) == n_blocks << 20,
           f"big: {rows['big']}")
    expect(rows["big"]["max_block_bytes"] == str(1 << 20), f"big: {rows['big']}")
    places = [0, 0]
    for n in THREADS.values():
        for thread in range(n):
            places[thread // 2] += 80
            places[1] += 20
    expect([rows["big"]["node0_samples"], rows["big"]["node1_samples"]] == list(map(str, places)),
           f"big: nodes {rows['big']}")
    expect(rows["input"]["variable"] == "/data/input.bin", f"input: {rows['input']}")


def counts_of(database):
    """{(class, name of the variable, rank, thread, metric, CPU): samples} of a database."""
    data = json.loads(run("hpcquery", "export", "json", database).stdout)
    counts = {}
    for variable, thread, metric, cpu, samples in data["cpu_counts"]:
        process, number = data["threads"][thread]
        of = data["variables"][variable]
        key = (of["class"], data["strings"][of["name"]], data["processes"][process]["rank"], number, data["metrics"][metric]["name"], cpu)
        expect(key not in counts, f"{key} is there twice")
        counts[key] = samples
    expect(data["cpu_counts"] == sorted(data["cpu_counts"]), "the counts by CPU are not in order")
    return counts, data["machines"]


def check_cpus(database):
    """Which thread took how many samples on a variable on which CPU, and where the CPUs are."""
    counts, machines = counts_of(database)
    wanted = {}
    for (rank, _), n_threads in THREADS.items():
        for thread in range(n_threads):
            for variable, cpu, samples in (("big", thread, 80), ("big", 2, 20), ("grid", 3, 14)):
                key = (variable, rank, thread, cpu)
                wanted[key] = wanted.get(key, 0) + samples
    found = {("grid" if key[0] == 2 else "big", *key[2:4], key[5]): samples for key, samples in counts.items()}
    expect(found == wanted and {key[4] for key in counts} == {"EADDR (usec)"}, f"counts by CPU: {counts}")
    expect(machines == [{"host_id": "007f0100", "cpus": [[c, None, c // 2, c // 2] for c in range(4)]}], f"machines: {machines}")


def check_spread(database):
    """How the samples of a variable spread over threads and ranks."""
    rows = {name_of(r): r for r in rows_of(database) if r["class"] != "dropped"}
    data = json.loads(run("hpcquery", "vars", "--json", database).stdout)["variables"]
    by_value = {r["value"]: r for r in data}
    for name, row in rows.items():
        of_ranks = [n * 1000.0 * SAMPLES[name] for n in THREADS.values()]
        for key, values in (("threads", sum(THREADS.values()) * [1000.0 * SAMPLES[name]]), ("processes", of_ranks)):
            wanted = {"with_value": len(values), "mean": statistics.mean(values), "min": min(values), "max": max(values),
                      "stddev": statistics.pstdev(values), "cov": statistics.pstdev(values) / statistics.mean(values)}
            for what, number in wanted.items():
                expect(abs(float(row[f"{key}_{what}"]) - number) < 1e-5 * max(1, number), f"{name}: {key}_{what} {row}")
                found = by_value[float(row["value"])][key]
                same = sum(r["value"] == float(row["value"]) for r in data) > 1 or abs(found[what] - number) < 1e-6 * max(1, number)
                expect(same, f"{name}: {key} {what} in JSON: {found}")


def check_traces(scratch):
    """Two threads of three have traces, the other one an empty one; events name the function, or nothing. The XML form has
    the same traces."""
    directory = scratch / "traced"
    for thread in range(3):
        profile = m.Profile("app", METRICS, thread=thread)
        leaf = profile.path(profile.root, START + [(APP, 0x5000)], m.LEAF)
        profile.add(leaf, {0: 3})
        entry = profile.path(profile.root, START + [(APP, 0x4f00)], 0)
        path = profile.write(directory, side=False)
        events = [(1000 + thread, entry), (2000, leaf), (1500, entry), (3000 + thread, 9999)][:4 if thread else 0]
        if thread:
            path.with_suffix(".hpctrace").write_bytes(b"HPCRUN-trace______01.01b" + bytes(8) + b"".join(
                m.be(t, 8) + m.be(i, 4) for t, i in events))
    run("hpcprof", "-q", "-j", 1, "-o", scratch / "traced-1", directory)
    run("hpcprof", "-q", "-j", 3, "-o", scratch / "traced-3", directory)
    check_rules_v4(scratch / "traced-1")
    bytes_of = [(scratch / f"traced-{n}" / "trace.db").read_bytes() for n in (1, 3)]
    expect(bytes_of[0] == bytes_of[1], "-j 3 writes another trace.db")
    traces = v4.read(scratch / "traced-1" / "trace.db")
    expect([row["profile"] for row in traces["traces"]] == [1, 2, 3], f"traces {traces}")
    expect(traces["traces"][0]["records"] == [], f"the thread without a trace has {traces['traces'][0]}")
    meta = v4.read(scratch / "traced-1" / "meta.db")
    names = {row[0]: meta["functions"][row[6] - 1][0] if row[6] else "line" for row in meta["contexts"]}
    for thread, events in ((row["profile"] - 1, row["records"]) for row in traces["traces"][1:]):
        found = [(t, names.get(c)) for t, c in events]
        expect(found == [(1000 + thread, "0x4f00 [app]"), (1500, "0x4f00 [app]"), (2000, "line"), (3000 + thread, None)],
               f"trace {found}")
    check_xml_traces(scratch, directory)
    bad = next(directory.glob("*-002-*.hpctrace"))
    bad.write_bytes(bad.read_bytes()[:-5])
    result = run("hpcprof", "-v", "-o", scratch / "traced-bad", directory)
    expect("truncated in the last record: the trace of this thread is missing" in result.stdout, result.stdout)
    check_rules_v4(scratch / "traced-bad")


def check_xml_traces(scratch, directory):
    """A file for each thread with a trace, and the elements that it names; a database has the same as its measurement."""
    run("hpcprof", "-q", "-o", scratch / "traced-1", "--xml", scratch / "traced-xml", directory)
    check_rules(scratch / "traced-xml")
    document = ElementTree.parse(scratch / "traced-xml" / "experiment.xml").getroot()
    names = {p.get("i"): p.get("n") for p in document.iter("Procedure")}
    places = {s.get("it"): names[frame.get("n")] for frame in document.iter("PF") for s in frame.findall("S")}
    files = sorted((scratch / "traced-xml").glob("*.hpctrace"))
    expect([p.name.split("-")[2] for p in files] == ["001", "002"], f"traces in XML: {files}")
    for thread, path in enumerate(files, 1):
        found = [(t, places.get(str(node))) for t, node in struct.iter_unpack(">QI", path.read_bytes()[32:])]
        expect(found == [(1000 + thread, "0x4f00 [app]"), (1500, "0x4f00 [app]"), (2000, "0x5000 [app]"), (3000 + thread, None)],
               f"trace in XML {found}")
        expect("num-records: 4" in run("hpcproftt", path).stdout, f"hpcproftt reads no trace of {path.name}")


def check_own(scratch):
    """The profiler's own functions and variables are one placeholder, and what they call belongs to what called them."""
    directory, database = scratch / "own", scratch / "own-db"
    profile = m.Profile("app", METRICS)
    own = [(profile.runtime, 0x8100), (profile.runtime, 0x8200)]
    profile.sample(START + own[:1] + [(LIBC, 0x500)], {0: 1}, VARIABLES["big"](0))
    profile.sample(START + own, {0: 2}, VARIABLES["grid"](0))
    profile.sample(own, {0: 4}, m.by_address("DATACENTRIC_Stack", profile.runtime, 0x8010, "stack"))
    profile.sample(START + own[:1], {0: 8}, m.by_address("DATACENTRIC_Static", profile.runtime, 0x9000, "static", "pool", 999))
    profile.sample(START + [(APP, 0x5000)], {0: 16}, m.reason("DATACENTRIC_Unknown_NoBlock"))
    entry = profile.path(profile.root, START + own[:1] + [(profile.runtime, 0x8300)], 0)
    path = profile.write(directory)
    path.with_suffix(".hpctrace").write_bytes(b"HPCRUN-trace______01.01b" + bytes(8) + m.be(1000, 8) + m.be(entry, 4))
    run("hpcprof", "-q", "-o", database, "--xml", scratch / "own-xml", directory)
    check_rules(scratch / "own-xml", "--time")
    check_rules_v4(database, "--time")
    check_same_nodes(database, scratch / "own-xml", "EADDR (usec)")
    nodes, found = nodes_of_query(database, "EADDR (usec)"), {}
    for nodes_path, (_, exclusive) in nodes.items():
        names = [name for kind, name, _ in nodes_path if kind == "function"]
        if nodes_path[-1][0] == "function" and exclusive and names[0] != "<datacentric>":
            found[tuple(names)] = exclusive
    first, second = "0x100f [app]", "0x201f [app]"
    expect(found == {(first, second, "0x500 [libfoo.so.1]"): 1000, (first, second, "<profiler>"): 10000, ("<profiler>",): 4000,
                     (first, second, "0x5000 [app]"): 16000}, f"the profiler's own functions: {found}")
    rows = {(r["variable"], r["class"]): r for r in rows_of(database)}
    expect({key: float(r["value"]) for key, r in rows.items() if key[0] in ("<profiler>", "<no block>")} ==
           {("<profiler>", "unknown"): 14000, ("<no block>", "unknown"): 16000}, f"the profiler's own data: {rows.keys()}")
    expect(rows["<profiler>", "unknown"]["size_bytes"] == "", "the profiler's own data have a size")
    for file in (database / "meta.db", scratch / "own-xml" / "experiment.xml"):
        text = file.read_bytes()
        expect(b"pool" not in text and b"0x82" not in text, f"{file.name} names what is the profiler's own")


def nodes_of_query(database, metric):
    """{path: (inclusive, exclusive)} as hpcquery prints them. A path is what a node is, from the root on."""
    nodes, path = {}, []
    rows = []
    for report in ("tree", "datatree"):
        rows += csv.DictReader(io.StringIO(run("hpcquery", report, "--csv", "-M", metric, database).stdout))
    for row in rows:
        kind = row["kind"] if row["kind"] in ("line", "loop") else "function"
        del path[int(row["depth"]):]
        path.append((kind, "" if kind != "function" else row["name"], "" if kind == "function" else row["line"] or "0"))
        old = nodes.get(tuple(path), (0, 0))
        nodes[tuple(path)] = (old[0] + float(row["inclusive"]), old[1] + float(row["exclusive"]))
    return nodes


def add_node(nodes, path, inclusive, exclusive):
    old = nodes.get(path, (0, 0))
    nodes[path] = (old[0] + inclusive, old[1] + exclusive)


def nodes_of_v4(database, metric):
    """The same from the summary in profile.db; call sites and positions are lines with children there."""
    meta, profiles = v4.read(database / "meta.db"), v4.read(database / "profile.db")["profiles"]
    ids = next(dict(m["instances"]) for m in meta["metrics"] if m["name"] == metric)
    function, execution = (ids[[s[0] for s in meta["scopes"]].index(name) + 1] for name in ("function", "execution"))
    values = {(c, m): v for c, m, v in profiles[0]["values"]}
    inner, nodes = {row[1] for row in meta["contexts"] if row[4] != 3}, {}
    paths = {identity: () if kind == 1 else (("function", name, ""),) for identity, kind, name in meta["entries"]}
    for identity, path in paths.items():
        if path:
            add_node(nodes, path, values.get((identity, execution), 0), values.get((identity, function), 0))
    for identity, parent, _, _, kind, _, number, _, line, _, _ in meta["contexts"]:
        paths[identity] = paths[parent]
        if kind == 3 or kind == 2 and identity in inner:
            continue
        name = meta["functions"][number - 1][0] if number else ""
        paths[identity] += (("function", "loop", "line")[kind], name, "" if kind == 0 else str(line)),
        add_node(nodes, paths[identity], values.get((identity, execution), 0), values.get((identity, function), 0))
    return {path: value for path, value in nodes.items() if value[0]}


def nodes_of_xml(database, metric):
    """The same from the sums in experiment.xml."""
    document = ElementTree.parse(database / "experiment.xml").getroot()
    names = {p.get("i"): p.get("n") for p in document.iter("Procedure")}
    columns = {m.get("n"): m.get("i") for m in document.iter("Metric")}
    inclusive, exclusive = (columns[f"{metric}:Sum ({letter})"] for letter in "IE")
    nodes, stack = {}, [(document.find(".//SecCallPathProfileData"), ())]
    while stack:
        element, path = stack.pop()
        values = {m.get("n"): float(m.get("v")) for m in element.findall("M")}
        name, line = names.get(element.get("n"), ""), element.get("l")
        if element.tag in ("S", "L"):
            path += ("line" if element.tag == "S" else "loop", "", line),
        elif element.tag == "PF" or element.tag == "Pr" and name:
            path += ("function", name, ""),
        if path and element.tag != "C" and (element.tag != "Pr" or name):
            add_node(nodes, path, values.get(inclusive, 0), values.get(exclusive, 0))
        stack += [(child, path) for child in element if child.tag != "M"]
    return {path: value for path, value in nodes.items() if value[0]}


def check_same_nodes(database, xml, *metrics):
    """Every node has the same inclusive and exclusive values in all three."""
    for metric in metrics:
        found = {"hpcquery": nodes_of_query(database, metric), "profile.db": nodes_of_v4(database, metric),
                 "experiment.xml": nodes_of_xml(xml, metric)}
        wanted = found["hpcquery"]
        expect(len(wanted) > 5, f"{database.name}: {len(wanted)} nodes of {metric}")
        for name, nodes in found.items():
            expect(nodes.keys() == wanted.keys(), f"{database.name}, {name}: only in one: {list(nodes.keys() ^ wanted.keys())[:3]}")
            for path in nodes.keys() & wanted.keys():
                expect(all(abs(a - b) <= 1e-5 * max(abs(a), 1) for a, b in zip(nodes[path], wanted[path])),
                       f"{database.name}, {name}: {path[-1]} below {path[-2:-1]}: {nodes[path]}, not {wanted[path]}")


OTHER_FILE = """int sum_up(volatile int *numbers, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
# 7 "other.h"
        sum += numbers[i];
# 7 "placed.c"
    }
# 9 "other.h"
    numbers[0] = sum;
# 11 "placed.c"
    return numbers[1];
}
"""


def check_nested(scratch):
    """A program of real code with loops in loops, inlined functions, and functions with lines of another file; every
    address is sampled once."""
    program, directory = scratch / "nested", scratch / "nested-measured"
    (scratch / "placed.c").write_text(OTHER_FILE, encoding="ascii")
    sources = [SOURCE / "tests" / "golden" / "structure-kernels.c", scratch / "placed.c"]
    made = subprocess.run(["gcc", "-O2", "-g", "-no-pie", "-o", program, *sources], capture_output=True, check=False, text=True)
    if made.returncode:
        expect(False, f"structure-kernels.c is not compiled: {made.stderr}")
        return None
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, check=True, text=True).stdout
    profile = m.Profile("nested", METRICS)
    for start, size in re.findall(r"^(\w+) (\w+) [Tt] ", symbols, re.M):
        for address in range(int(start, 16), int(start, 16) + int(size, 16), 3):
            profile.add(profile.path(profile.root, [(APP, 0x1010), (str(program), address)], m.LEAF), {0: 1 + address % 7})
    profile.write(directory, side=False)
    run("hpcprof", "-q", "-o", scratch / "nested-db", "--xml", scratch / "nested-xml", directory)
    check_rules(scratch / "nested-xml", "--time")
    check_rules_v4(scratch / "nested-db", "--time")
    loops = [path for path in nodes_of_query(scratch / "nested-db", "EADDR (usec)") if path[-1][0] == path[-2:][0][0] == "loop"]
    expect(loops, "no loop lies in another one")
    places = [line for line in run("hpcproftt", scratch / "nested-db" / "meta.db").stdout.splitlines() if " line 0" in line]
    expect(places, "no line of another file lies in a function")
    check_same_nodes(scratch / "nested-db", scratch / "nested-xml", "EADDR (usec)")
    return directory


def texts_of(database):
    """What the reports print of a database, without the numbers of contexts."""
    texts = [run("hpcquery", *words, database).stdout for words in
             (["vars", "--csv", "--fields"], ["functions", "--csv"], ["lines", "--csv"], ["types", "--csv"], ["tree"],
              ["datatree", "--top", 0])]
    texts.append(run("hpcquery", "vars", "--json", database).stdout)
    return texts + [[row.split(",", 2)[2] for row in run("hpcquery", tree, "--csv", database).stdout.splitlines()]
                    for tree in ("tree", "datatree")]


def instructions_of(database, metric):
    """{(module, offset): the sum of the metric} of the code, from the summary in profile.db."""
    meta, profiles = v4.read(database / "meta.db"), v4.read(database / "profile.db")["profiles"]
    ids = next(dict(row["instances"]) for row in meta["metrics"] if row["name"] == metric)
    values = {c: v for c, i, v in profiles[0]["values"] if i == ids[3]}
    root, found = {e[0]: e[1] for e in meta["entries"]}, {}
    for identity, parent, _, _, kind, _, _, _, _, module, offset in meta["contexts"]:
        root[identity] = root[parent]
        if kind == 3 and root[identity] == 1 and values.get(identity):
            place = meta["modules"][module - 1][1], offset
            found[place] = found.get(place, 0) + values[identity]
    return found


def check_instructions(directory, nested, scratch):
    """With --instructions every sampled address of a file is a context below its line, with what it was given; all that
    has no instructions says the same as without."""
    sampled = {}
    for name, one in (("made", directory), ("nested", nested)):
        with_them, without = scratch / f"{name}-insn", scratch / f"{name}-plain"
        run("hpcprof", "-q", "--instructions", "-o", with_them, "--xml", scratch / f"{name}-insn-xml", one)
        run("hpcprof", "-q", "-o", without, "--xml", scratch / f"{name}-plain-xml", one)
        check_rules_v4(with_them, "--time")
        for database in (with_them, without):
            expect((database / "locus.db").read_bytes()[:9] == b"LOCUS-DB\7", "the version of locus.db")
        for file in sorted((scratch / f"{name}-plain-xml").glob("*.*")):
            expect(file.read_bytes() == (scratch / f"{name}-insn-xml" / file.name).read_bytes(), f"--instructions: {file.name}")
        expect(texts_of(with_them) == texts_of(without), f"{name}: --instructions changes a report")
        check_same_nodes(with_them, scratch / f"{name}-insn-xml", "EADDR (usec)")
        expect(not instructions_of(without, "EADDR (usec)"), "instructions without --instructions")
        sampled[name] = instructions_of(with_them, "EADDR (usec)")
        shown = run("hpcquery", "hierarchy", "instruction", ":", "table", "--csv", "-M", "EADDR (usec)", "--top", 0, with_them)
        rows = [r for r in csv.DictReader(io.StringIO(shown.stdout)) if r["EADDR (usec)"]]
        expect(sum(float(r["EADDR (usec)"]) for r in rows) == sum(sampled[name].values()), f"{name}: by instruction: {shown.stdout[:300]}")
        expect({int(r["name"], 16) for r in rows} == {offset for _, offset in sampled[name]}, f"{name}: {shown.stdout[:300]}")
        run("hpcquery", "diff", "--by", "line", "--threshold", 0.001, without, with_them)
        run("hpcquery", "filter", 'kind != "x"', ":", "save", scratch / f"{name}-saved", with_them)
        check_rules_v4(scratch / f"{name}-saved", "--time")
    n_threads = sum(THREADS.values())
    expect(sampled["made"] == {(APP, 0x5000 + 16 * i): 1000 * n_threads * SAMPLES[v] for i, v in enumerate(VARIABLES)},
           f"the instructions of made samples: {sampled['made']}")
    program = str(scratch / "nested")
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, check=True, text=True).stdout
    wanted = {(program, address): 1000 * (1 + address % 7) for start, size in re.findall(r"^(\w+) (\w+) [Tt] ", symbols, re.M)
              for address in range(int(start, 16), int(start, 16) + int(size, 16), 3)}
    expect(sampled["nested"] == wanted, f"the instructions of nested: {list(sampled['nested'].items() ^ wanted.items())[:4]}")
    check_damaged_database(scratch / "made-insn", scratch)
    check_made_of_json(scratch / "made-insn", scratch)
    check_extended_instructions(directory, scratch)


def check_extended_instructions(directory, scratch):
    """A database keeps what it was made with when it is extended."""
    first = sorted(directory.glob("app-000000-*.hpcrun"))
    run("hpcprof", "-q", "--instructions", "-o", scratch / "two-steps", *first)
    run("hpcprof", "-q", "-o", scratch / "two-steps", "--extend", directory)
    for file in ("meta.db", "profile.db", "cct.db"):
        same = (scratch / "two-steps" / file).read_bytes() == (scratch / "made-insn" / file).read_bytes()
        expect(same, f"--extend of instructions: {file} differs")
    run("hpcprof", "-q", "-o", scratch / "no-steps", *first)
    result = run("hpcprof", "--instructions", "-o", scratch / "no-steps", "--extend", directory, status=1)
    expect("was made without --instructions" in result.stderr and result.stderr.count("\n") == 1, f"--extend: {result.stderr}")


def check_faults(database):
    rows = {name_of(r): r for r in rows_of(database, "--metric", "FAULTS")}
    for i, name in enumerate(VARIABLES):
        expect(float(rows[name]["samples"]) == sum(THREADS.values()) * (i + 1), f"FAULTS of {name}: {rows[name]}")


def check_reports(database):
    text = run("hpcquery", "vars", "-v", database).stdout
    expect(max(map(len, text.split("\n"))) <= 100, "a line of the report is longer than 100 columns")
    for wanted in ("EADDR because of a test", "2 processes, 5 threads, 5.00 s of CPU time", "455 named, 5 unknown-data",
                   "heap 69.3 %, mmap 5.0 %, static 6.9 %, thread-local 4.0 %, stack 3.0 %, file 2.0 %,",
                   "unknown 1.0 %, unattributed 7.9 %, dropped 1.0 %", "NUMA node 0:", "address found for 91.1 %", "variable named for 90.1 %", "49.5 %  ####"):
        expect(wanted in text, f"the report lacks '{wanted}':\n{text}")
    expect("\033" not in text, "escape sequences in a pipe")
    top = run("hpcquery", "vars", "--top", "2", database).stdout
    expect("9 more" in top and re.findall(r"^ *([\d.]+) %  [# ]", top, re.M)[:2] == ["49.5", "19.8"] and "grid" not in top and
           "<compute>" not in top, f"--top 2 prints {top}")
    data = json.loads(run("hpcquery", "vars", "--json", database).stdout)
    expect(len(data["variables"]) == len(SAMPLES) + 1 and data["total_samples"] == 5 * 101, "vars --json")
    trees = {report: json.loads(run("hpcquery", report, "--json", database).stdout)["nodes"] for report in ("tree", "datatree")}
    tree = trees["tree"] + trees["datatree"]
    roots = {n["name"]: n["inclusive"] for n in tree if n["parent"] == 0}
    expect(roots.get("<datacentric>") == 500000 and sum(roots.values()) == 1000000, f"roots of the tree: {roots}")
    own = sum(n["exclusive"] for n in tree if n["kind"] == "line")
    expect(own == 1000000, f"statements of the tree add up to {own}")
    expect("<datacentric>" not in {n["name"] for n in trees["tree"]} and trees["datatree"][0]["name"] == "<datacentric>", "two trees")
    kinds = {n["name"]: n["kind"] for n in trees["datatree"]}
    expect((kinds["<datacentric>"], kinds["<heap allocation>"], kinds["grid"], kinds["0x201f [app]"]) ==
           ("group", "group", "variable", "function"), f"kinds of nodes: {kinds}")
    for report, nodes in trees.items():
        lines = list(csv.DictReader(io.StringIO(run("hpcquery", report, "--csv", database).stdout)))
        same = [{key: "" if node[key] is None else str(node[key]) for key in ("id", "parent", "depth", "kind", "name", "file", "line", "module")} for node in nodes]
        expect([{key: row[key] for key in same[0]} for row in lines] == same, f"{report}: --csv and --json differ")
        largest = sorted((n["inclusive"] for n in nodes), reverse=True)[:5]
        found = json.loads(run("hpcquery", report, "--json", "--top", "5", database).stdout)["nodes"]
        expect(sorted((n["inclusive"] for n in found), reverse=True) == largest, f"{report} --top 5: {found}")
        known = {n["id"] for n in found}
        expect(all(n["parent"] == 0 or n["parent"] in known for n in found), f"{report} --top 5 is no tree: {found}")
    words = " ".join(run("hpcquery", "datatree", database).stdout.split())
    expect("100.0 % 0.0 % <datacentric>" in words and "<heap allocation> >" in words, f"datatree as text: {words}")
    expect(" 100.0 %    0.0 %  0x100f [app] > 0x201f [app]\n" in run("hpcquery", "tree", "--min", "30", database).stdout, "a chain")


def check_v4_sums(database):
    """Below each entry point the statements add up to what was put in, in seconds where it measures time."""
    meta, profiles = (v4.read(database / n) for n in ("meta.db", "profile.db"))
    names = [metric["name"] for metric in meta["metrics"]]
    expect(names == ["CPUTIME (sec)"] + [n for n, _, _ in METRICS], f"metrics are {names}")
    expect([e[1:] for e in meta["entries"]] == [[1, "main thread"], [0, "<datacentric>"]], f"entries {meta['entries']}")
    values = {(c, m): v for c, m, v in profiles["profiles"][0]["values"]}
    wanted = sum(THREADS.values()) * sum(SAMPLES.values()) * 1000
    for entry in meta["entries"]:
        rows = {row[0]: row for row in meta["contexts"]}
        def below(row):
            return row[1] == entry[0] or (row[1] in rows and below(rows[row[1]]))
        lines = [i for i, row in rows.items() if row[4] == 2 and below(row)]
        sums = [sum(values.get((i, m), 0) for i in lines if not any(r[1] == i for r in rows.values())) for m in (1, 4)]
        expect(abs(sums[0] * 1e6 - wanted) < 1e-3 and sums[1] == wanted, f"{entry[2]}: statements sum up to {sums}")
        expect(values.get((entry[0], 5)) == wanted, f"{entry[2]}: {values.get((entry[0], 5))}, not {wanted}")
    path = {f[0] for f in meta["functions"]}
    expect({"grid", "counter", "<heap allocation>", "<memory access call-path>"} <= path, f"functions {path}")


def check_same_bytes(directory, scratch):
    """The database does not depend on how the profiles are given."""
    paths = sorted(directory.glob("*.hpcrun"))
    run("hpcprof", "-j", 1, "-o", scratch / "forward", *paths)
    run("hpcprof", "-j", 2, "-o", scratch / "again", directory)
    run("hpcprof", "-j", 7, "-o", scratch / "twice", *reversed(paths), directory)
    for other in (scratch / "again", scratch / "twice"):
        names, others = (sorted(str(p.relative_to(d)) for p in d.rglob("*") if p.is_file())
                         for d in (scratch / "forward", other))
        expect(names == others and "metrics/default.yaml" in names, f"{other.name} has other files")
        for name in names:
            same = (other / name).read_bytes() == (scratch / "forward" / name).read_bytes()
            expect(same, f"{name} differs in {other.name}")


def check_many(scratch):
    """Many made profiles: the whole is what was put in, and an interrupted run leaves nothing behind."""
    maker, directory = SOURCE / "tests" / "lib" / "make-profiles.py", scratch / "made"
    options = ["--profiles", "9", "--threads", "3", "--nodes", "500", "--metrics", "5"]
    sums = subprocess.run([sys.executable, str(maker), *options, str(directory)], capture_output=True, text=True,
                          check=True).stdout.split()
    for jobs in (1, 3):
        run("hpcprof", "-q", "-j", jobs, "-o", scratch / f"made-{jobs}", directory)
    check_rules_v4(scratch / "made-1", "--time")
    for path in (scratch / "made-1").glob("*.*"):
        expect(path.read_bytes() == (scratch / "made-3" / path.name).read_bytes(), f"-j 3 writes another {path.name}")
    whole = {m: v for c, m, v in v4.read(scratch / "made-1" / "profile.db")["profiles"][0]["values"] if c == 0}
    found = [whole.get(3 * (i + 1) + 2) for i in range(5)]
    wanted = [float(s) * (1000 if i == 0 else 1) for i, s in enumerate(sums)]
    expect(found == wanted, f"made profiles sum up to {found}, not {wanted}")
    output = scratch / "stopped"
    for delay_s in (0.005, 0.015, 0.03):
        with subprocess.Popen([str(BUILD / "hpcprof"), "-q", "-j", "2", "-o", str(output), str(directory)],
                              stderr=subprocess.PIPE) as process:
            time.sleep(delay_s)
            process.send_signal(signal.SIGTERM)
            text = process.stderr.read().decode()
        expect(process.returncode in (0, -signal.SIGTERM), f"stopped: status {process.returncode}: {text}")
        if process.returncode:
            expect(not list(scratch.glob("stopped*")), f"left behind: {list(scratch.glob('stopped*'))}")
        else:
            shutil.rmtree(output)
    for arguments in (("-j", "0"), ("-j", "x"), ("-j", "99999")):
        run("hpcprof", *arguments, directory, status=2)


def check_extended_older(directory, scratch):
    """A database without counts by CPU gets those of what is added, and says so."""
    database = scratch / "older"
    run("hpcprof", "-q", "-o", database, *sorted(directory.glob("app-000000-*.hpcrun")))
    data = json.loads(run("hpcquery", "export", "json", database).stdout)
    del data["cpu_counts"], data["machines"]
    m.write_database(database, data)
    (database / "text.json").unlink()
    run("hpcprof", "-q", "-o", database, "--extend", directory)
    counts, machines = counts_of(database)
    expect({key[2] for key in counts} == {1} and len(machines) == 1, f"an extended older database: {counts}")
    text = run("hpcquery", "vars", database).stdout
    expect("Samples by CPU are those of the measurements that were added" in " ".join(text.split()), f"older: {text}")


def check_extended(directory, scratch):
    """A database made in two steps is the one made in one: of later ranks in the same directory, and of another one."""
    for name, later in (("same", directory), ("other", scratch / "made")):
        first, database = scratch / f"first-{name}", scratch / f"extended-{name}"
        first.mkdir()
        for path in directory.iterdir():
            if name == "other" or "-000001-" not in path.name:
                shutil.copy(path, first)
        run("hpcprof", "-q", "-o", database, first)
        run("hpcprof", "-q", "-o", scratch / f"whole-{name}", *((first, later) if name == "other" else (later,)))
        shutil.rmtree(first)
        for again in (False, True):  # the second time nothing is new
            result = run("hpcprof", "-v", "-j", 1 + again, "-o", database, "--extend", later)
            known = "are in the database already" in result.stdout
            expect(known == (again or name == "same"), f"extended twice: {result.stdout}")
            for options in (["vars", "--csv", "-M", "FAULTS", "--paths"], ["tree", "--csv"]):
                texts = [run("hpcquery", *options, d).stdout for d in (database, scratch / f"whole-{name}")]
                expect(texts[0] == texts[1], f"extended {name}: {options} differs")
            expect(counts_of(database) == counts_of(scratch / f"whole-{name}"), f"extended {name}: the counts by CPU differ")
            for file in ("meta.db", "profile.db", "cct.db", "metrics/default.yaml"):
                same = (database / file).read_bytes() == (scratch / f"whole-{name}" / file).read_bytes()
                expect(same, f"extended {name}: {file} differs")
    check_extended_older(directory, scratch)
    for arguments in (("--extend", directory), ("-o", scratch / "absent", "--extend", directory)):
        result = run("hpcprof", *arguments, status=2 if len(arguments) == 2 else 1)
        expect(len(arguments) == 2 or result.stderr.count("\n") == 1, f"--extend: {result.stderr}")


def check_paths(scratch):
    """One site reached by two paths, and by recursion: one row, with --paths one for each path; recursion is none."""
    directory = scratch / "paths"
    profile = m.Profile("app", METRICS)
    site, inner = (APP, 0x3030), [(APP, 0x2020)]
    for count, path in ((1, [(APP, 0x1010), site]), (2, [(APP, 0x1510), site]), (4, [(APP, 0x1010)] + 3 * inner + [site]),
                        (8, [(APP, 0x1010)] + 7 * inner + [site])):
        profile.sample([(APP, 0x7070)], {0: count}, m.heap(path, size=100))
    profile.write(directory)
    run("hpcprof", "-q", "-o", scratch / "paths-db", directory)
    rows = rows_of(scratch / "paths-db")
    expect([(r["samples"], r["n_blocks"], r["size_bytes"]) for r in rows] == [("15", "4", "400")], f"one site: {rows}")
    rows = rows_of(scratch / "paths-db", "--paths")
    expect(sorted(r["samples"] for r in rows) == ["1", "12", "2"], f"--paths: {rows}")


def check_metrics_of_xml(directory, scratch):
    """What experiment.xml itself holds: sums, statistics, threads (their values are checked as rules)."""
    one_rank = sorted(directory.glob("app-000001-*.hpcrun"))
    for kind, n_metrics in (("stats", 6), ("thread", len(one_rank))):
        run("hpcprof", "-q", "-M", kind, "-o", scratch / kind, "--xml", scratch / f"{kind}-xml", *one_rank)
        text = (scratch / f"{kind}-xml" / "experiment.xml").read_text(encoding="utf-8")
        expect(text.count("<Metric ") == n_metrics * text.count("<MetricDB "), f"-M {kind}: number of metrics")
        check_rules(scratch / f"{kind}-xml", "--time")
    result = run("hpcprof", "-N", "all", "--remove-redundancy", "--struct-id", "--force-metric", "--metric-db", "no",
                 "-M", "stats", "-o", scratch / "stats", "--xml", scratch / "thread-xml", directory)
    expect(result.stderr.count("has no effect: ") == 3 and result.stderr.count("\n") == 3, f"no effect: {result.stderr}")
    expect([p.name for p in (scratch / "thread-xml").iterdir()] == ["experiment.xml"], "--metric-db no writes more")
    expect("-M has no effect without --xml" in run("hpcprof", "-M", "thread", "-o", scratch / "stats", directory).stderr,
           "-M alone says nothing")


def check_bad_input(directory, scratch):
    bad = directory / "app-000000-007-007f0100-100-0.hpcrun"
    good = next(directory.glob("app-000000-000-*.hpcrun")).read_bytes()
    for content, word in ((good[:200], "truncated"), (b"#!/bin/sh\n", "not a profile"), (b"", "truncated")):
        bad.write_bytes(content)
        result = run("hpcprof", "-o", scratch / "partly", directory, status=1)
        expect(result.stderr.count("\n") == 1 and bad.name in result.stderr, f"bad profile: {result.stderr}")
        expect(word in result.stderr or "begin" in result.stderr or "offset" in result.stderr, result.stderr)
        check_variables(scratch / "partly")
        alone = run("hpcprof", "-o", scratch / "none", bad, status=1)
        expect(alone.stderr.count("\n") == 1 and not (scratch / "none").exists(), f"only bad: {alone.stderr}")
    bad.unlink()
    (scratch / "empty").mkdir()
    for target, words in ((scratch / "empty", "no profile"), (scratch / "absent", "No such file")):
        result = run("hpcprof", "-o", scratch / "none", target, status=1)
        expect(words in result.stderr and result.stderr.count("\n") == 1, f"{target}: {result.stderr}")
    (scratch / "mine").mkdir()
    (scratch / "mine" / "letter.txt").write_text("keep me", encoding="utf-8")
    for output in (scratch / "mine", scratch / "mine" / "letter.txt", scratch / "no" / "such"):
        result = run("hpcprof", "-o", output, directory, status=1)
        expect(result.stderr.count("\n") == 1 and str(output) in result.stderr, f"{output}: {result.stderr}")
    expect((scratch / "mine" / "letter.txt").read_text(encoding="utf-8") == "keep me", "a file was replaced")
    (scratch / "again" / "metrics" / ".mine").write_text("keep me", encoding="utf-8")
    result = run("hpcprof", "-o", scratch / "again", directory, status=1)
    expect("holds other files" in result.stderr and (scratch / "again" / "meta.db").exists(), f"metrics: {result.stderr}")
    for arguments in ((), ("--nonsense", directory), ("-R", "x", directory), ("-M", "x", directory), ("-N", "x", directory),
                      ("--metric-db", "x", directory)):
        run("hpcprof", *arguments, status=2)
    for arguments in ((), ("vars",), ("flowers", scratch / "again"), ("vars", "--top", "x", scratch / "again"),
                      ("tree", "--threshold", "150", scratch / "again"), ("tree", "--threshold", "-1", scratch / "again")):
        run("hpcquery", *arguments, status=2)
    for arguments in (("vars", scratch / "empty"), ("vars", "-M", "none", scratch / "again"), ("tree", scratch / "no")):
        result = run("hpcquery", *arguments, status=1)
        expect(result.stderr.count("\n") == 1, f"{arguments}: {result.stderr}")


def places_of_tree(database, metric):
    """What functions and lines cost, from the nodes of the call tree: {(name, file): [own, with callees]}, {place: own}"""
    rows = csv.DictReader(io.StringIO(run("hpcquery", "tree", "--csv", "--threshold", "0", "-M", metric, database).stdout))
    functions, lines, path = {}, {}, []
    for row in rows:
        depth = int(row["depth"])
        del path[depth:]
        in_data = any(above["name"] == "<datacentric>" for above in path) or row["name"] == "<datacentric>"
        key = (row["name"], row["file"]) if row["kind"] in ("function", "inlined") else None
        if key and not in_data:
            costs = functions.setdefault(key, [0, 0])
            costs[0] += float(row["exclusive"])
            if key not in [above["key"] for above in path]:
                costs[1] += float(row["inclusive"])
        if row["kind"] == "line" and not in_data:
            place = (row["file"], row["line"])
            lines[place] = lines.get(place, 0) + float(row["inclusive"])
        path.append({"name": row["name"], "key": key})
    return {key: costs for key, costs in functions.items() if costs[1]}, {key: cost for key, cost in lines.items() if cost}


def check_places(database):
    for metric in ("EADDR (usec)", "FAULTS"):
        functions, lines = places_of_tree(database, metric)
        found = list(csv.DictReader(io.StringIO(run("hpcquery", "functions", "--csv", "-M", metric, database).stdout)))
        expect({(r["function"], r["file"]): [float(r["own"]), float(r["inclusive"])] for r in found} == functions and functions,
               f"functions by {metric}: {found} instead of {functions}")
        found = list(csv.DictReader(io.StringIO(run("hpcquery", "lines", "--csv", "-M", metric, database).stdout)))
        costs = {}
        for row in found:
            costs[row["file"], row["line"]] = costs.get((row["file"], row["line"]), 0) + float(row["own"])
        costs = {place: cost for place, cost in costs.items() if cost}
        expect(costs == lines and lines, f"lines by {metric}: {costs} instead of {lines}")
        as_json = json.loads(run("hpcquery", "functions", "--json", "-M", metric, database).stdout)["functions"]
        expect(sum(row["own"] for row in as_json) == sum(own for own, _ in functions.values()), f"functions as JSON: {as_json}")
        expect(any(row["data"] for row in as_json), f"no function touches data: {as_json}")
        for report in ("functions", "lines"):
            expect(" % " in run("hpcquery", report, "-M", metric, database).stdout, f"{report} as text")


def check_damaged_bytes(path, content):
    """Cut or changed at many places, a file is read as something or refused in one sentence."""
    random_places = random.Random(len(content))
    for _ in range(60):
        at = random_places.randrange(len(content))
        changed = bytearray(content)
        changed[at] ^= 1 << random_places.randrange(8)
        for damaged in (content[:at], bytes(changed)):
            path.write_bytes(damaged)
            result = run("hpcquery", "vars", path, status=None)
            expect(result.returncode == 0 and damaged != content[:at] or result.returncode == 1 and
                   result.stderr.count("\n") == 1 and path.name in result.stderr,
                   f"{path.name}, {len(damaged)} bytes, {at}: {result.returncode} {result.stderr}")


def check_damaged_database(database, scratch):
    shutil.rmtree(scratch / "damaged", ignore_errors=True)
    text = run("hpcquery", "export", "json", database).stdout
    damaged = scratch / "damaged"
    damaged.mkdir()
    expected = run("hpcquery", "vars", "-v", database).stdout
    m.write_database(damaged, text)
    content = (database / "locus.db").read_bytes()
    expect((damaged / "locus.db").read_bytes() == content, "made of its JSON, locus.db differs")
    expect(run("hpcquery", "vars", "-v", damaged / "locus.db").stdout == expected, "locus.db gives another report")
    check_damaged_bytes(damaged / "locus.db", content)
    for path in database.glob("*.db"):
        if path.name != "locus.db":
            shutil.copy(path, damaged)
    (damaged / "locus.db").write_bytes(content)
    for name in ("meta.db", "profile.db", "cct.db"):
        whole = (damaged / name).read_bytes()
        for content_now, words in ((None, "is missing"), (b"", "does not begin"), (whole[:23], "does not begin"), (whole[:-1], "end mark"),
                                   (whole[:len(whole) // 2], "end mark"), (content, "does not begin")):
            (damaged / name).unlink()
            if content_now is not None:
                (damaged / name).write_bytes(content_now)
            for query in (("vars",), ("vars", "--by", "thread"), ("functions", "--json"), ("tree",)):
                result = run("hpcquery", *query, damaged, status=1)
                expect(result.stderr.count("\n") == 1 and name in result.stderr and words in result.stderr, f"{name}, {words}: {result.stderr}")
            (damaged / name).write_bytes(whole)
    for version, words in ((1, "make the database anew"), (6, "make the database anew"), (8, "a newer version of Locus")):
        (damaged / "locus.db").write_bytes(content[:8] + bytes([version]) + content[9:])
        for query in (("vars",), ("flat", ":", "table")):
            result = run("hpcquery", *query, damaged, status=1)
            expect(result.stderr.count("\n") == 1 and words in result.stderr and f"version {version}, " in result.stderr,
                   f"version {version}: {result.stderr}")


def check_made_of_json(database, scratch):
    """What hpcproftt makes of the JSON of our databases has the same bytes."""
    for path in sorted(set(database.glob("*.db")) - {database / "locus.db"}):
        (scratch / "db.json").write_text(run("hpcproftt", "--json", path).stdout, encoding="utf-8")
        (scratch / path.name).unlink(missing_ok=True)
        run("hpcproftt", "--from-json", "-o", scratch / path.name, scratch / "db.json")
        expect((scratch / path.name).read_bytes() == path.read_bytes(), f"{path.name} made of its JSON differs")


def check_names(scratch):
    """Names that are no XML or no UTF-8, and the default name of the database."""
    directory = scratch / "hpctoolkit-odd-measurements-77"
    profile = m.Profile("o-000-dd", METRICS)
    for i, name in enumerate(("a<b>&\"c", "tab\there", "caf\u00e9 \u65e5", "\udcff\udcfe broken", "\ufffe")):
        profile.sample([(APP, 0x1010 + 16 * i)], {0: 1}, m.by_address("DATACENTRIC_Static", APP, 64 * i, "static", name))
    profile.write(directory)
    result = subprocess.run([str(BUILD / "hpcprof"), str(directory)], cwd=scratch, capture_output=True, check=False)
    expect(result.returncode == 0 and (scratch / "hpctoolkit-odd-database-77").exists(), f"odd names: {result.stderr}")
    run("hpcprof", "-q", "-o", scratch / "odd-database", "--xml", scratch / "odd-xml", directory)
    check_rules(scratch / "odd-xml", "--time")
    check_rules_v4(scratch / "hpctoolkit-odd-database-77", "--time")
    rows = rows_of(scratch / "hpctoolkit-odd-database-77")
    expect({"a<b>&\"c", "caf\u00e9 \u65e5"} <= {r["variable"] for r in rows} and len(rows) == 5, f"odd names: {rows}")


def check_too_many_threads(scratch):
    directory = scratch / "many"
    for thread in range(500):
        m.Profile("app", METRICS, thread=thread).write(directory, side=False)
    result = run("hpcprof", "-o", scratch / "many-db", "--xml", scratch / "many-xml", directory, status=1)
    expect("has 500 threads" in result.stderr and result.stderr.count("\n") == 1, f"500 threads: {result.stderr}")
    expect(not (scratch / "many-xml").exists(), "500 threads are written as XML")
    result = run("hpcprof", "-M", "thread", "--metric-db", "no", "-o", scratch / "many-db", "--xml", scratch / "many-xml",
                 directory, status=1)
    expect("--force-metric" in result.stderr and not (scratch / "many-xml").exists(), f"500 threads: {result.stderr}")
    check_rules_v4(scratch / "many-db")
    profiles = v4.read(scratch / "many-db" / "profile.db")["profiles"]
    expect(len(profiles) == 501, f"{len(profiles)} profiles of 500 threads")
    run("hpcquery", "tree", scratch / "many-db")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        directory = scratch / "app-measurements"
        directory.mkdir()
        make_measurement(directory)
        database = scratch / "database"
        run("hpcprof", "-o", database, "--xml", scratch / "xml", directory)
        check_rules(scratch / "xml", "--time")
        expect(not list(database.glob("*.xml")) and not list(database.glob("*.metric-db")), "the XML form is in the database")
        check_rules_v4(database, "--time")
        check_v4_sums(database)
        check_variables(database)
        check_cpus(database)
        check_spread(database)
        check_traces(scratch)
        check_faults(database)
        for made in (database, scratch / "traced-1"):
            check_made_of_json(made, scratch)
        check_reports(database)
        check_same_nodes(database, scratch / "xml", "EADDR (usec)", "FAULTS")
        nested = check_nested(scratch)
        check_own(scratch)
        check_same_bytes(directory, scratch)
        run("hpcprof", "-q", "-o", database, "--xml", scratch / "xml", directory)
        check_rules(scratch / "xml", "--time")
        check_rules_v4(database, "--time")
        check_many(scratch)
        check_extended(directory, scratch)
        check_paths(scratch)
        check_metrics_of_xml(directory, scratch)
        check_bad_input(directory, scratch)
        check_damaged_database(database, scratch)
        if nested:
            check_instructions(directory, nested, scratch)
        check_places(database)
        check_names(scratch)
        check_too_many_threads(scratch)
    for sentence in failures:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
