# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery topo: trees, rows and labels of machines that are described here, and the busy times of made recordings and of
the real one where it is, against an independent computation. Functions that check a requirement of the NUMA topology
views begin with its number (doc/streams.md)."""
import csv
import itertools
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
import schedfile  # noqa: E402
import tracedat  # noqa: E402
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark"
SCRATCH = tempfile.TemporaryDirectory()
HERE = pathlib.Path(SCRATCH.name)
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def topo(*words, status=0, **environment):
    done = subprocess.run([str(BUILD / "hpcquery"), "topo", *map(str, words)], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "60", **environment})
    expect(done.returncode == status, f"topo {words}: status {done.returncode}, not {status}: {done.stderr}")
    return done


# --- machines: hwloc's XML from a description ---------------------------------------------------------------------------


class Part:
    """An object of a machine. memory: [(OS number, bytes, kind)] of the NUMA nodes that hang at it."""

    def __init__(self, kind, os_number, children=(), memory=()):
        self.kind, self.os, self.children, self.memory = kind, os_number, list(children), list(memory)

    def cpus(self):
        return {self.os} if self.kind == "PU" else set().union(*(c.cpus() for c in self.children))

    def nodes(self):
        return {m[0] for m in self.memory}.union(*(c.nodes() for c in self.children))


def pus(*numbers):
    return [Part("PU", n) for n in numbers]


def cores(*lists):
    return [Part("Core", i, pus(*numbers)) for i, numbers in enumerate(lists)]


def word(numbers):
    value = sum(1 << n for n in numbers)
    words = []
    while value or not words:
        words.append(f"0x{value & 0xffffffff:08x}")
        value >>= 32
    return ",".join(reversed(words))


def xml(machine, offline=(), allowed=None):
    number = itertools.count(1)

    def attributes(kind, index, cpus, nodes, more=""):
        complete = cpus | set(offline) if kind == "Machine" else cpus
        return (f'<object type="{kind}" os_index="{index}" cpuset="{word(cpus)}" complete_cpuset="{word(complete)}" '
                f'nodeset="{word(nodes)}" complete_nodeset="{word(nodes)}" gp_index="{next(number)}"{more}')

    def emit(part, above):
        nodes = above | part.nodes()
        more = ""
        if part.kind == "Machine":
            more = f' allowed_cpuset="{word(allowed if allowed is not None else part.cpus())}" allowed_nodeset="{word(nodes)}"'
        text = attributes(part.kind, part.os, part.cpus(), nodes, more) + ">\n"
        for index, size, kind in part.memory:
            subtype = f' subtype="{kind}"' if kind else ""
            text += attributes("NUMANode", index, part.cpus(), {index}, f'{subtype} local_memory="{size}"') + "/>\n"
        below = above | {m[0] for m in part.memory}
        return text + "".join(emit(child, below) for child in part.children) + "</object>\n"

    return ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n' +
            emit(machine, set()) + "</topology>\n")


def rows_of(machine):
    """[(node, core, logical, os, package)] sorted, with logical numbers; and [(logical, os)] of nodes."""
    found, nodes, count = [], [], {"Core": 0, "PU": 0, "Package": 0}

    def number(part):
        for child in part.children:
            number(child)
        for index, *_ in part.memory:
            nodes.append(index)

    def walk(part, local, core, package):
        local = local | {m[0] for m in part.memory}
        if part.kind in count:
            mine = count[part.kind]
            count[part.kind] += 1
            core = mine if part.kind == "Core" else core
            package = mine if part.kind == "Package" else package
            if part.kind == "PU":
                found.append((nodes.index(min(local)), core, mine, part.os, package))
        for child in part.children:
            walk(child, local, core, package)

    number(machine)
    walk(machine, set(), None, None)
    return sorted(found), nodes


def blocks_of(rows):
    """The tree as a list of (label, first row, rows)."""
    found = [("M", 0, len(rows))]
    for node, in_node in itertools.groupby(enumerate(rows), lambda r: r[1][0]):
        in_node = list(in_node)
        found.append((f"NN {node}", in_node[0][0], len(in_node)))
        for core, in_core in itertools.groupby(in_node, lambda r: r[1][1]):
            in_core = list(in_core)
            found.append((f"C {core}", in_core[0][0], len(in_core)))
    return found


def two_nodes():
    return Part("Machine", 0, [
        Part("Package", p, cores(*[(8 * p + 2 * c, 8 * p + 2 * c + 1) for c in range(4)]), [(p, 1 << 30, "")])
        for p in range(2)])


def interleaved():
    """Threads are numbered last, and nodes take CPUs in turn."""
    return Part("Machine", 0, [
        Part("Package", n, cores(*[(n + 4 * c, n + 4 * c + 8) for c in range(2)]), [(n, 1 << 30, "")])
        for n in range(4)])


def nested():
    return Part("Machine", 0, [
        Part("Package", p, [Part("Group", 2 * p + g, cores((4 * p + 2 * g,), (4 * p + 2 * g + 1,)), [(2 * p + g, 1 << 30, "")])
                            for g in range(2)], [(4 + p, 1 << 34, "")]) for p in range(2)])


def sub_numa():
    """Several nodes in a package."""
    return Part("Machine", 0, [
        Part("Package", p, [Part("Group", 2 * p + g, cores((4 * p + 2 * g,), (4 * p + 2 * g + 1,)), [(2 * p + g, 1 << 30, "")])
                            for g in range(2)]) for p in range(2)])


def without_cpus():
    """HBM beside each package's memory, and memory of a device for all."""
    return Part("Machine", 0, [
        Part("Package", p, cores((2 * p,), (2 * p + 1,)), [(p, 1 << 33, "DRAM"), (2 + p, 1 << 30, "HBM")])
        for p in range(2)], [(4, 1 << 36, "CXL")])


def large():
    return Part("Machine", 0, [
        Part("Package", p, [Part("Group", 4 * p + g,
                                 cores(*[(16 * (4 * p + g) + c, 16 * (4 * p + g) + c + 128) for c in range(16)]),
                                 [(4 * p + g, 1 << 36, "")]) for g in range(4)]) for p in range(2)])


MACHINES = {"two-nodes": two_nodes, "interleaved": interleaved, "nested": nested, "sub-numa": sub_numa,
            "without-cpus": without_cpus, "large": large}


def write_xml(name, **more):
    path = HERE / f"{name}.xml"
    path.write_text(xml(MACHINES[name](), **more), encoding="utf-8")
    return path


def n04_n16_n22_trees():
    """The brief topology, the order of rows and the blocks of every machine."""
    for name, make in MACHINES.items():
        found = json.loads(topo("--json", "--topology", write_xml(name)).stdout)["topologies"][0]
        rows, nodes = rows_of(make())
        expect([(r["node"], r["core"], r["logical"], r["cpu"], r["package"]) for r in found["rows"]] == rows,
               f"{name}: rows {found['rows'][:4]}, not {rows[:4]}")
        expect([n["os"] for n in found["nodes"]] == nodes, f"{name}: nodes {found['nodes']}, not {nodes}")
        expect([(b["label"], b["first_row"], b["n_rows"]) for b in found["blocks"]] == blocks_of(rows),
               f"{name}: blocks {found['blocks'][:4]}")
        for block in found["blocks"]:
            expect(block["height_px"] == block["n_rows"] * 80 + (block["n_rows"] - 1) * 20, f"{name}: height of {block}")
        listed = list(csv.DictReader(topo("--csv", "--topology", write_xml(name)).stdout.split("\n")))
        expect([int(r["cpu"]) for r in listed] == [r[3] for r in rows], f"{name}: CSV {listed[:4]}")


def n21_only_wanted_cpus():
    found = json.loads(topo("--json", "--cpu", "3,12-13", "--topology", write_xml("two-nodes")).stdout)["topologies"][0]
    expect([b["label"] for b in found["blocks"]] == ["M", "NN 0", "C 1", "NN 1", "C 6"], f"pruned: {found['blocks']}")
    expect([b["name"] for b in found["blocks"]][2] == "Core 1 in NUMA Node 0", f"names: {found['blocks']}")


def beyond_n04_memory_and_limits():
    text = topo("--topology", write_xml("without-cpus")).stdout
    rows, nodes = rows_of(without_cpus())
    for index, size, kind, near in ((2, "1.0 GiB", "HBM", 2), (3, "1.0 GiB", "HBM", 2), (4, "64.0 GiB", "CXL", 4)):
        line = f"  NN {nodes.index(index)} (node {index} of the system): {size} {kind}, near {near} CPUs of other nodes\n"
        expect(line in text, f"{line!r} is not in: {text}")
    text = topo("--topology", write_xml("two-nodes", offline=[16, 17], allowed={0, 1, 2})).stdout
    expect("2 packages, 2 CPUs offline, 13 CPUs outside of the cgroup\n" in text, f"limits: {text}")
    expect("    C 1  CPU 2, 3 (not allowed)\n" in text, f"a CPU that is not allowed: {text}")


def n04_os_numbers_that_contradict():
    """OS numbers that were edited by hand: the tree and the numbers of the CPUs count."""
    text = xml(Part("Machine", 0, [Part("Package", p, cores(*[(4 * p + 2 * c, 4 * p + 2 * c + 1) for c in range(2)]),
                                        [(p, 1 << 30, "")]) for p in range(2)]))
    for old, new in enumerate((4, 1, 2, 7, 0, 5, 6, 3)):
        text = text.replace(f'type="PU" os_index="{old}" ', f'type="PU" os_index="@{new}" ')
    path = HERE / "edited.xml"
    path.write_text(text.replace("@", ""), encoding="utf-8")
    found = json.loads(topo("--json", "--topology", path).stdout)["topologies"][0]
    expect([(r["node"], r["cpu"]) for r in found["rows"]] ==
           [(0, 4), (0, 1), (0, 2), (0, 7), (1, 0), (1, 5), (1, 6), (1, 3)], f"edited: {found['rows']}")


# --- busy times ---------------------------------------------------------------------------------------------------------


def busy_of(events, n_cpus):
    """{cpu: [(from, to, is busy)]} by the rule: a switch tells who ran until then, and who runs from then on. Between the
    event before a loss and the loss nothing is known."""
    begin, end = min(e.time for e in events), max(e.time for e in events)
    found = {}
    for cpu in range(n_cpus):
        mine = [e for e in events if e.cpu == cpu]
        at, running, pieces = begin, None, []
        for i, event in enumerate(mine):
            if event.id == tracedat.LOST:
                if running is not None and i:
                    pieces.append((at, mine[i - 1].time, running != 0))
                at, running = event.time, None
            elif event.name == "sched/sched_switch":
                pieces.append((at, event.time, (running if running is not None else event.fields["prev_pid"]) != 0))
                at, running = event.time, event.fields["next_pid"]
        if running is not None:
            pieces.append((at, end, running != 0))
        found[cpu] = pieces
    return begin, end, found


def expected_cells(events, n_cpus, groups, n_slices):
    """{name: [(busy, idle)] by slice}"""
    begin, end, pieces = busy_of(events, n_cpus)
    edges = [begin + (end - begin) * i // n_slices for i in range(n_slices + 1)]
    cells = {name: [[0, 0] for _ in range(n_slices)] for name in groups}
    for name, members in groups.items():
        for cpu in members:
            for start, stop, is_busy in pieces[cpu]:
                for i in range(n_slices):
                    shared = min(stop, edges[i + 1]) - max(start, edges[i])
                    if shared > 0:
                        cells[name][i][0 if is_busy else 1] += shared
    return cells, edges


def groups_of(rows):
    groups = {"M": [r[3] for r in rows]}
    for node, core, _, cpu, package in rows:
        for name in (f"P {package}", f"NN {node}", f"C {core}", f"CPU {cpu}"):
            groups.setdefault(name, []).append(cpu)
    return groups


def check_busy(name, recording, topology, rows, n_slices):
    events = tracedat.Reader(recording.read_bytes()).events
    n_cpus = len(rows)
    groups = groups_of(rows)
    cells, edges = expected_cells(events, n_cpus, groups, n_slices)
    found = list(csv.DictReader(topo("--csv", "--slices", n_slices, "--topology", topology, recording).stdout.split("\n")))
    seen = {}
    for row in found:
        seen.setdefault(row["name"], []).append(row)
    expect(set(seen) == set(groups), f"{name}: rows {sorted(seen)}, not {sorted(groups)}")
    shown = [r["name"] for r in found[::n_slices] if r["level"] == "cpu"]
    expect(shown == [f"CPU {r[3]}" for r in rows], f"{name}: order {shown}")
    for place, wanted in cells.items():
        got = [[int(r["busy_ns"]), int(r["idle_ns"])] for r in seen.get(place, [])]
        expect(got == wanted, f"{name}: {place}: {got[:3]}, not {wanted[:3]}")
        expect([int(r["from_ns"]) for r in seen.get(place, [])] == edges[:-1], f"{name}: slices of {place}")
        n_events = sum(e.id >= 0 and e.cpu in groups[place] for e in events)
        expect(sum(int(r["events"]) for r in seen.get(place, [])) == n_events, f"{name}: events of {place}")


def made(n_cpus, seed, with_loss=False):
    """A recording whose switches follow each other, as a kernel's do. The first CPU is busy most, the last one least."""
    chance = random.Random(seed)
    recording = tracedat.Recording(n_cpus)
    running = [chance.choice((0, 100 + cpu)) for cpu in range(n_cpus)]
    now = 10_000_000_000
    lost_at = {(3, 40), (1, 90)} if with_loss else set()
    counts = [0] * n_cpus
    for step in range(120 * n_cpus):
        now += chance.randrange(1, 400_000)
        cpu = step if step < n_cpus else chance.randrange(n_cpus)
        after = 0 if running[cpu] and chance.random() < 0.2 + 0.8 * cpu / n_cpus else 100 + cpu + n_cpus * chance.randrange(4)
        counts[cpu] += 1
        lost = 5 if (cpu, counts[cpu]) in lost_at else None
        before = running[cpu]
        if lost is not None:  # who runs now came while nothing was recorded
            before = 900 + cpu
        if before != after:
            recording.switch(cpu, now, before, after, lost=lost)
            running[cpu] = after
    path = HERE / f"made-{n_cpus}-{seed}.dat"
    path.write_bytes(recording.version_6())
    return path


def busy_of_made_recordings():
    for name, seed, n_slices in (("two-nodes", 1, 1), ("interleaved", 2, 7), ("sub-numa", 3, 50)):
        rows, _ = rows_of(MACHINES[name]())
        check_busy(name, made(len(rows), seed), write_xml(name), rows, n_slices)


def busy_around_lost_records():
    rows, _ = rows_of(sub_numa())
    recording = made(8, 4, with_loss=True)
    n_lost = sum(e.id == tracedat.LOST for e in tracedat.Reader(recording.read_bytes()).events)
    expect(n_lost == 2, f"{n_lost} losses were made")
    check_busy("losses", recording, write_xml("sub-numa"), rows, 9)


def busy_of_tiers():
    """The same switches by tier: of all tasks, as busy as they were; of some, that much at least; of none, nothing."""
    rows, _ = rows_of(sub_numa())
    recording, topology = made(8, 11), write_xml("sub-numa")
    events = [e for e in tracedat.Reader(recording.read_bytes()).events if e.name == "sched/sched_switch"]
    groups, n_slices = groups_of(rows), 5

    def cells(path):
        found = {}
        for row in csv.DictReader(topo("--csv", "--slices", n_slices, "--topology", topology, path).stdout.split("\n")):
            found.setdefault(row["name"], []).append((row["busy_ns"], row["idle_ns"]))
        return found

    switches = [(e.time, e.cpu, e.fields["prev_pid"], e.fields["next_pid"], 1) for e in events]
    path = schedfile.write(HERE / f"all{schedfile.NAME}", 2, 8, switches)
    wanted, _ = expected_cells(events, 8, groups, n_slices)
    expect(cells(path) == {name: [(str(b), str(i)) for b, i in of] for name, of in wanted.items()}, f"switches of all: {cells(path)}")
    text = topo("--topology", topology, path).stdout
    expect("known: switches of all tasks" in text and "no better: perf_event_open: EACCES" in text and "  busy\n" in text, f"switches of all: {text}")
    # single threads: when they came and left, and where; who else ran is not known
    own, running, stays, records = {e.fields["next_pid"] for e in events if e.fields["next_pid"] % 3 == 0} - {0}, {}, [], []
    for event in events:
        before, after = event.fields["prev_pid"], event.fields["next_pid"]
        if before in running:
            stays.append((event.cpu, running.pop(before), event.time))
            records.append((event.time, event.cpu, before, None, 1))
        if after in own:
            running[after] = event.time
            records.append((event.time, event.cpu, after, None, 0))
    begin, end = min(r[0] for r in records), max(r[0] for r in records)
    stays += [(next(r[1] for r in reversed(records) if r[2] == task), since, end) for task, since in running.items()]
    edges = [begin + (end - begin) * i // n_slices for i in range(n_slices + 1)]
    path = schedfile.write(HERE / f"own{schedfile.NAME}", 3, 8, records, [(0, task, f"task{task}") for task in own])
    for name, members in groups.items():
        ran = [sum(max(0, min(to, edges[i + 1]) - max(since, edges[i])) for cpu, since, to in stays if cpu in members)
               for i in range(n_slices)]
        expect(cells(path)[name] == [(str(n), "") for n in ran], f"own threads: {name}: {cells(path)[name]}, not {ran}")
    text = topo("--topology", topology, path).stdout
    expect("known: switches of the recorded threads alone" in text and "  at least\n" in text, f"own threads: {text}")
    # nothing but what the kernel counts: there are no events, and no shares
    path = schedfile.write(HERE / f"none{schedfile.NAME}", 4, 8, totals=[(20_000_000_000, 5_000_000, 101, 3)])
    expect(all(busy == "" and idle == "" for of in cells(path).values() for busy, idle in of), f"totals: {cells(path)}")
    text = topo("--topology", topology, path).stdout
    expect("what the kernel counted" in text and " %" not in text, f"totals: {text}")


def busy_of_the_real_recording():
    recording = DATA / "guest-4cpu-2node.dat"
    if not recording.exists():
        print(f"SKIP (part): {recording} is not there (set LOCUS_SHARED_DATA)")
        return
    rows = [(0, 0, 0, 0, 0), (0, 1, 1, 1, 0), (1, 2, 2, 2, 1), (1, 3, 3, 3, 1)]
    for n_slices in (1, 13):
        check_busy("real", recording, recording.with_suffix(".xml"), rows, n_slices)


# --- views of streams, and sessions -------------------------------------------------------------------------------------


def n01_n02_default_view():
    recording, topology = made(16, 5), write_xml("interleaved")
    plain = topo("--csv", recording).stdout
    rows = [r["name"] for r in csv.DictReader(plain.split("\n"))]
    expect(rows == ["M"] + [f"CPU {i}" for i in range(16)], f"without topology: {rows}")
    expect(topo("--csv", "--topology", topology, "--view", "default", recording).stdout == plain, "the default view differs")
    expect(topo("--csv", "--view", "default", recording).stdout == plain, "the default view without topology differs")


def n05_n06_refused_topologies():
    recording, large_one, bad = made(16, 6), write_xml("large"), HERE / "bad.xml"
    bad.write_text("<topology>", encoding="utf-8")
    plain = topo("--csv", recording).stdout
    for path, words in ((large_one, "the topology has 256 CPUs, but the stream has 16"),
                        (bad, "is not a topology that hwloc can read"), (HERE / "gone.xml", "No such file")):
        done = topo("--csv", "--topology", path, recording, status=1)
        expect(done.stdout == plain, f"{path}: the program does not go on")
        expect(words in done.stderr and done.stderr.count("\n") == 1, f"{path}: {done.stderr}")
        expect(topo("--topology", path, status=0 if path == large_one else 1).stderr.count("\n") == (path != large_one),
               f"{path}: messages without a stream")


def several_streams_have_their_own():
    first, second, topology = made(16, 7), made(16, 8), write_xml("interleaved")
    done = topo("--csv", first, "--topology", topology, "--offset", 0, second)
    names = {n: [r["name"] for r in csv.DictReader(done.stdout.split("\n")) if r["stream"] == n and r["level"] == "cpu"]
             for n in "01"}
    expect(names["0"] == [f"CPU {i}" for i in range(16)], f"first stream: {names['0']}")
    expect(names["1"] == [f"CPU {r[3]}" for r in rows_of(interleaved())[0]], f"second stream: {names['1']}")
    twins = topo("--csv", "--couplebreak", first).stdout
    expect(twins == topo("--csv", first).stdout, "twins change how busy the machine was")


def n10_c19_sessions():
    recording, topology, session = made(16, 9), write_xml("interleaved"), HERE / "session.json"
    shown = topo("--save-session", session, "--couplebreak", "--topology", topology, recording).stdout
    kept = json.loads(session.read_text())
    expect(kept["streams"] == [{"stream_id": 0, "file": str(recording.resolve()), "couplebreak": True}], f"session: {kept}")
    expect(kept["NUMA TV"] == {"type": "kshark.config.topology", "topologies": [
        {"stream_id": 0, "view": 1, "topology_xml_fpath": str(topology.resolve())}]}, f"session: {kept}")
    again = topo("--session", session).stdout
    expect(again == shown, f"a session shows something else: {again}")
    copy = HERE / "again.json"
    topo("--session", session, "--save-session", copy)
    expect(copy.read_bytes() == session.read_bytes(), "a session that was saved again differs")
    before = recording.read_bytes()
    refused = topo("--save-session", recording, recording, status=1).stderr
    expect("is no session" in refused and recording.read_bytes() == before, f"a recording was replaced: {refused}")
    link = HERE / "link.json"
    link.symlink_to(copy)
    topo("--save-session", link, recording, status=1)
    expect(link.is_symlink() and copy.read_bytes() == session.read_bytes(), "a link was replaced")
    plain = topo("--couplebreak", recording).stdout
    topology.unlink()
    expect(topo("--session", session).stdout == plain, "a topology that is gone is not left out")
    session.write_text("{}")
    expect(topo("--session", session, status=1).stderr.count("\n") == 1, "a damaged session")


def empty_selections():
    recording = made(2, 12)
    for words, said in ((("--cpu", "99"), "they have 0 to 1\n"), (("--from", "99"), "the recordings are from 10.")):
        done = topo(*words, recording, status=1)
        expect(not done.stdout and done.stderr.count("\n") == 1 and said in done.stderr, f"{words}: {done.stderr}")


def text_of_a_recording():
    recording = tracedat.Recording(2)
    recording.tasks = {7: "seven"}
    recording.switch(0, 1000, 0, 7)
    recording.switch(1, 2000, 0, 8)
    recording.switch(1, 6000, 8, 0)
    recording.switch(0, 9000, 7, 0)
    (HERE / "small.dat").write_bytes(recording.version_6())
    (HERE / "small.xml").write_text(xml(Part("Machine", 0, cores((0,), (1,)), [(0, 1 << 30, "")])), encoding="utf-8")
    text = topo("--topology", HERE / "small.xml", "--slices", "8", HERE / "small.dat").stdout
    for line in ("M                    75.0 % |", "  NN 0               75.0 % |", "    C 0             100.0 % |████████|", "      CPU 0         100.0 % |████████|",
                 "      CPU 1          50.0 % |·████···|"):
        expect(line in text, f"{line!r} is not in: {text}")
    plain = topo("--topology", HERE / "small.xml", "--slices", "8", HERE / "small.dat", LC_ALL="C").stdout
    expect("      CPU 1          50.0 % |.####...|" in plain, f"text in ASCII: {plain}")


# --- damaged XML --------------------------------------------------------------------------------------------------------


def damaged_xml():
    """One message and status 1, or a topology: nothing else."""
    chance = random.Random(12)
    text = write_xml("without-cpus").read_bytes()
    path = HERE / "damaged.xml"
    for i in range(40):
        raw = bytearray(text)
        if i % 4 == 0:
            del raw[chance.randrange(len(raw)):]
        else:
            for _ in range(chance.choice((1, 3, 20))):
                raw[chance.randrange(len(raw))] = chance.choice(b"0f<>\"/ \x00\xff9xP")
        path.write_bytes(raw)
        done = subprocess.run([str(BUILD / "hpcquery"), "topo", "--json", "--topology", str(path)], capture_output=True,
                              check=False)
        expect(done.returncode in (0, 1) and done.stderr.count(b"\n") == done.returncode,
               f"damaged {i}: status {done.returncode}: {done.stderr}")


OF_RECORDINGS = (busy_of_made_recordings, busy_around_lost_records, busy_of_the_real_recording, n01_n02_default_view,
                 n05_n06_refused_topologies, several_streams_have_their_own, n10_c19_sessions, empty_selections, text_of_a_recording)


def reads_recordings():
    done = subprocess.run([str(BUILD / "hpcquery"), "topo", str(made(2, 1))], capture_output=True, text=True, check=False)
    return "libtraceevent" not in done.stderr


def main():
    with_recordings = reads_recordings()
    if not with_recordings:
        print("SKIP (part): built without libtraceevent: there are no recordings of tracepoints")
    for check in (n04_n16_n22_trees, n21_only_wanted_cpus, beyond_n04_memory_and_limits, n04_os_numbers_that_contradict, busy_of_tiers,
                  damaged_xml, *(OF_RECORDINGS if with_recordings else ())):
        before = len(failures)
        check()
        print(f"{check.__name__}: {'FAIL' if len(failures) > before else 'ok'}")
    for failure in failures[:30]:
        print("FAIL:", failure[:1500])
    return 1 if failures else 0


sys.exit(main())
