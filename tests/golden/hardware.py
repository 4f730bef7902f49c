# SPDX-License-Identifier: BSD-3-Clause
"""What hardware reports of accesses, from a measurement made here to the reports: exact counts, values that periods and
shared counters have scaled, derived metrics by their formulas, percentiles within a bin; and the database, its reports and
its XML form as committed in tests/golden/hardware.txt. `hardware.py --record` writes these anew."""
import csv
import fcntl
import io
import json
import math
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import xml.etree.ElementTree as ET

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402

GOLDEN = bundle.golden("hardware")
APP = "/nowhere/app"
LOADS, STORES = {"mem-loads"}, {"mem-stores"}
EVENTS = {"mem-loads": 1000, "mem-stores": 2000}  # periods
INSTRUCTIONS = ("instructions:u", 100000)
LATENCY, REMOTE = "LATENCY (cycles)", "LATENCY-REMOTE (cycles)"
REMOTE_METRICS = {"MEM-hitm-rmt", "MEM-rmt-hit", "DRAM-miss-to-rmt"}
LEVELS = ["MEM-Load", "MEM-Load-FBhit", "MEM-Load-L1hit", "MEM-Load-L2hit", "MEM-LLC-hit", "MEM-hitm-local", "MEM-hitm-rmt",
          "MEM-rmt-hit", "DRAM-miss-to-lcl", "DRAM-miss-to-rmt", "MEM-Store", "MEM-Store-L1hit", "MEM-Store-L1miss",
          "MEM-dTLB-walk", "MEM-Locked"]
NAMES = ["Size (byte)", *EVENTS, "FAULTS", INSTRUCTIONS[0], *LEVELS, LATENCY, REMOTE]
INDEX = {name: i for i, name in enumerate(NAMES)}
THREADS = {(0, 100): 2, (1, 200): 2}  # (rank, pid): threads; the last thread's loads were counted half of the time
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def none(profile, top):
    """A sample without address."""
    node = m.reason("DATACENTRIC_No_AddressLost")(profile, top)
    profile.describe(node, "none")
    return node


VARIABLES = {
    "grid": lambda: m.by_address("DATACENTRIC_Static", APP, 0x404040, "static", "grid", 1 << 20,
                                 [[0, INDEX["mem-loads"], 7], [3, INDEX["mem-stores"], 2]]),
    "table": lambda: m.by_address("DATACENTRIC_Static", APP, 0x604040, "static", "table", 4096),
    "list": lambda: m.heap([(APP, 0x1010), (APP, 0x3030)], size=64, n_blocks=3),
    "lost": lambda: none,
}
# variable, event, metrics beside the operation, latencies of its samples (0: none told)
ACCESSES = [
    ("grid", "mem-loads", {"MEM-Load-L1hit"}, [5] * 30 + [6, 7, 7]),
    ("grid", "mem-loads", {"DRAM-miss-to-rmt", "MEM-dTLB-walk"}, [400 + 10 * i for i in range(20)]),
    ("grid", "mem-loads", {"DRAM-miss-to-lcl"}, [210, 214, 230]),
    ("grid", "mem-loads", {"MEM-hitm-rmt", "MEM-Locked"}, [70000]),
    ("grid", "mem-stores", {"MEM-Store-L1miss", "MEM-Locked"}, [0] * 4),
    ("table", "mem-loads", {"MEM-Load-L1hit"}, [4] * 80 + [5] * 20),
    ("table", "mem-loads", {"MEM-Load-FBhit"}, [9, 11, 13]),
    ("table", "mem-stores", {"MEM-Store-L1hit"}, [0] * 50),
    ("list", "mem-loads", {"MEM-Load-L2hit"}, [14] * 7),
    ("list", "mem-loads", {"MEM-LLC-hit"}, [44, 45, 47, 90]),
    ("list", "mem-loads", {"MEM-hitm-local"}, [130]),
    ("lost", "mem-loads", None, [0] * 2),  # the data source names neither load nor store
]


def bin_of(latency):
    """As FORMAT.md says."""
    if latency < 8:
        return latency
    e = latency.bit_length() - 1
    return min(63, 4 * (e - 1) + ((latency >> (e - 2)) & 3))


def least_of(index):
    e, quarter = index // 4 + 1, index % 4
    return index if index < 8 else (1 << e) + quarter * (1 << (e - 2))


def is_shared(rank, thread):
    return (rank, thread) == (1, 1)


def period_of(name, rank, thread):
    """The event that a metric comes from decides; locked accesses come from both, which have 1000 in common."""
    stores = name == "mem-stores" or name.startswith("MEM-Store")
    if name in (*EVENTS, *LEVELS, LATENCY, REMOTE):
        return 2000 if stores else 2000 if is_shared(rank, thread) else 1000
    return INSTRUCTIONS[1] if name == INSTRUCTIONS[0] else 1


def metrics_of(event, told):
    operation = "MEM-Store" if event == "mem-stores" else "MEM-Load"
    return [] if told is None else [operation, *sorted(told)]


def counts_of(event, told, latencies):
    """Samples of each metric."""
    counts = {event: len(latencies), **{name: len(latencies) for name in metrics_of(event, told)}}
    n_known = sum(1 for x in latencies if x)
    if n_known:
        counts[LATENCY] = n_known
        if REMOTE_METRICS & set(told):
            counts[REMOTE] = n_known
    return counts


def words_of(event, told, latencies, rank, thread):
    """Raw values of a node: counts in the unit of the column, cycles for latencies."""
    worth = EVENTS[event] * (2 if is_shared(rank, thread) and event == "mem-loads" else 1)
    words = {}
    for name, count in counts_of(event, told, latencies).items():
        amount = sum(latencies) if name in (LATENCY, REMOTE) else count
        words[INDEX[name]] = amount * worth // period_of(name, rank, thread)
    return words


def describe(profile, event, told, latencies):
    """Adds samples and latencies to the side file's row of the variable that was sampled last."""
    row = profile.described
    samples = dict(map(tuple, row.get("samples", [])))
    for name, count in counts_of(event, told, latencies).items():
        samples[INDEX[name]] = samples.get(INDEX[name], 0) + count
    row["samples"] = [list(item) for item in samples.items()]
    known, remote = [x for x in latencies if x], bool(told and REMOTE_METRICS & set(told))
    if not known:
        return
    old = row.get("latencies", [[list(EVENTS).index(event), 0, 0, 0, 0, []]])[0]
    bins = dict(map(tuple, old[5]))
    for latency in known:
        bins[bin_of(latency)] = bins.get(bin_of(latency), 0) + 1
    row["latencies"] = [[old[0], old[1] + len(known), old[2] + sum(known), old[3] + remote * len(known),
                         old[4] + remote * sum(known), [list(b) for b in sorted(bins.items())]]]


def event_row(name, rank, thread):
    n = sum(len(a[3]) for a in ACCESSES if a[1] == name)
    lost = 2 if name == "mem-loads" else 0
    return {"metric": name, "name": name, "scale": float(EVENTS[name]), "taken": n + lost, "overflows": n + lost + 1,
            "fates": {"named": n - lost, "address-lost": lost, "dropped-arena-full": lost, "not-delivered": 1},
            "enabled_ns": 2000, "running_ns": 1000 if is_shared(rank, thread) and name == "mem-loads" else 2000,
            "n_throttles": thread, "n_no_metric": lost, "n_truncated": 3 * thread, "n_collisions": 5 * thread,
            "has_data_source": 1}


def make_measurement(directory):
    for (rank, pid), n_threads in THREADS.items():
        for thread in range(n_threads):
            shared = is_shared(rank, thread)
            table = [(n, m.INT, period_of(n, rank, thread), shared and period_of(n, rank, thread) == 2000) for n in NAMES]
            profile = m.Profile("app", table, rank=rank, thread=thread, pid=pid)
            profile.side_version, profile.plan = 2, "mem-loads and mem-stores of a test"
            profile.topology = "topology.xml"
            profile.events = [event_row(name, rank, thread) for name in EVENTS]
            for i, (variable, event, told, latencies) in enumerate(ACCESSES):
                path = [(APP, 0x1010), (APP, 0x5000 + 16 * i)]
                profile.sample(path, words_of(event, told, latencies, rank, thread), VARIABLES[variable]())
                describe(profile, event, told, latencies)
            profile.add(profile.path(profile.root, [(APP, 0x1010), (APP, 0x5000)], m.LEAF), {INDEX[INSTRUCTIONS[0]]: 3})
            profile.write(directory)
    (directory / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")


def run(*arguments):
    result = subprocess.run([str(BUILD / arguments[0]), *map(str, arguments[1:])], capture_output=True, check=False,
                            text=True, env={**os.environ, "LC_ALL": "C"})
    expect(result.returncode == 0, f"{arguments}: {result.stderr}")
    return result.stdout


def expected_counts(name):
    """Samples and value of every metric of a variable, over all threads."""
    samples, values = dict.fromkeys(NAMES[1:], 0), dict.fromkeys(NAMES[1:], 0)
    for (rank, _), n_threads in THREADS.items():
        for thread in range(n_threads):
            for variable, event, told, latencies in ACCESSES:
                if variable != name:
                    continue
                words = words_of(event, told, latencies, rank, thread)
                for metric, count in counts_of(event, told, latencies).items():
                    samples[metric] += count
                    values[metric] += words[INDEX[metric]] * period_of(metric, rank, thread)
    return samples, values


def ratio(above, below):
    return 100 * above / below if below > 0 else None


def expected_derived(name, samples, values, n_instructions):
    v = values
    misses = sum(v[n] for n in ("DRAM-miss-to-lcl", "DRAM-miss-to-rmt", "MEM-rmt-hit", "MEM-hitm-rmt"))
    accesses = v["MEM-Load"] + v["MEM-Store"]
    known = sorted(x for a in ACCESSES if a[0] == name for x in a[3] if x)
    remote = [x for a in ACCESSES if a[0] == name and a[2] and REMOTE_METRICS & set(a[2]) for x in a[3]]
    del samples
    return {"latency_mean_cycles": sum(known) / len(known) if known else None,
            "l1_percent": ratio(v["MEM-Load-L1hit"], v["MEM-Load"]),
            "lfb_percent": ratio(v["MEM-Load-FBhit"], v["MEM-Load"]),
            "l2_percent": ratio(v["MEM-Load-L2hit"], v["MEM-Load"] - v["MEM-Load-L1hit"]),
            "llc_percent": ratio(v["MEM-LLC-hit"] + v["MEM-hitm-local"],
                                 v["MEM-Load"] - v["MEM-Load-L1hit"] - v["MEM-Load-L2hit"]),
            "llc_misses": misses,
            "dram_local_percent": ratio(v["DRAM-miss-to-lcl"], misses),
            "remote_percent": ratio(misses - v["DRAM-miss-to-lcl"], misses),
            "store_l1_percent": ratio(v["MEM-Store-L1hit"], v["MEM-Store"]),
            "remote_latency_mean_cycles": sum(remote) / len(remote) if remote else None,
            "remote_latency_percent": ratio(v[REMOTE], v[LATENCY]),
            "remote_cost": v[REMOTE] / n_instructions,
            "dtlb_walk_percent": ratio(v["MEM-dTLB-walk"], accesses),
            "locked_percent": ratio(v["MEM-Locked"], accesses),
            "pmem_percent": ratio(0, accesses), "cxl_percent": ratio(0, accesses),
            "blocked_data_percent": ratio(0, v["MEM-Load"]), "blocked_address_percent": ratio(0, v["MEM-Load"])}


def check_percentile(row, name, percent):
    """The exact percentile lies in the same bin."""
    known = sorted(x for a in ACCESSES if a[0] == name for x in a[3] if x)
    text = row[f"latency_p{percent}_cycles"]
    if not known:
        expect(text == "", f"{name}: p{percent} of nothing is {text}")
        return
    exact = known[math.ceil(len(known) * percent / 100) - 1]
    low, high = least_of(bin_of(exact)), least_of(bin_of(exact) + 1)
    expect(low <= float(text) < high, f"{name}: p{percent} is {text}, exact {exact}, bin {low} to {high}")


def check_rows(text):
    rows = {{"grid": "grid", "table": "table"}.get(r["variable"], "list" if r["class"] == "heap" else "lost"): r
            for r in csv.DictReader(io.StringIO(text))}
    expect(set(rows) == set(VARIABLES), f"rows: {sorted(rows)}")
    n_instructions = 3 * INSTRUCTIONS[1] * sum(THREADS.values())
    for name, row in rows.items():
        samples, values = expected_counts(name)
        for metric in NAMES[1:]:
            expect(float(row[f"samples:{metric}"]) == samples[metric],
                   f"{name}: {row[f'samples:{metric}']} samples of {metric}, not {samples[metric]}")
            expect(float(row[f"value:{metric}"]) == values[metric],
                   f"{name}: {metric} is {row[f'value:{metric}']}, not {values[metric]}")
        for metric, value in expected_derived(name, samples, values, n_instructions).items():
            same = row[metric] == "" if value is None else row[metric] and abs(float(row[metric]) - value) < 1e-5 + value / 1e6
            expect(same, f"{name}: {metric} is '{row[metric]}', not {value}")
        for percent in (50, 95):
            check_percentile(row, name, percent)
    n_sampled = sum(THREADS.values()) * sum(1 for a in ACCESSES if a[0] == "grid")
    expect([rows["grid"]["node0_samples"], rows["grid"]["node1_samples"]] == [str(7 * n_sampled), str(2 * n_sampled)],
           f"NUMA nodes: {rows['grid']}")
    order = [r["variable"] for r in csv.DictReader(io.StringIO(text))]
    expect(order[0] == "grid" and float(rows["grid"]["share"]) > 90, f"not sorted by latency: {order}")


def outputs(database):
    yield "vars.txt", run("hpcquery", "vars", database)
    yield "vars.csv", run("hpcquery", "vars", "--csv", database)
    yield "vars.json", run("hpcquery", "vars", "--json", database)
    yield "vars-stores.txt", run("hpcquery", "vars", "--metric", "mem-stores", database)
    yield "tree-remote.txt", run("hpcquery", "tree", "--metric", "Load-miss-to-rmt-DRAM", database)
    yield "datatree-remote.txt", run("hpcquery", "datatree", "--metric", "Load-miss-to-rmt-DRAM", database)
    yield "locus.json", run("hpcquery", "export", "json", database)


def check_xml(database):
    checker = SOURCE / "tests" / "lib" / "check-database.py"
    result = subprocess.run([sys.executable, str(checker), str(database)], capture_output=True, text=True, check=False)
    expect(result.returncode == 0, f"the database breaks rules: {result.stdout}{result.stderr}")
    rows = {r.get("n"): r for r in ET.parse(database / "experiment.xml").getroot().iter("Metric")}
    for name in NAMES:
        expect(f"{name}:Sum (I)" in rows and f"{name}:Sum (E)" in rows, f"experiment.xml lacks {name}")
    expect(rows["MEM-Load:Sum (I)"].get("em") == "1" and rows["FAULTS:Sum (I)"].get("em") == "0", "em of the XML form")


def widest_line(database, n_columns):
    """Of the report on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, n_columns, 0, 0))
    with subprocess.Popen([str(BUILD / "hpcquery"), "vars", str(database)], stdout=theirs,
                          env={**os.environ, "LC_ALL": "C", "NO_COLOR": "1"}) as process:
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # the other side is closed
            pass
    os.close(ours)
    expect(process.returncode == 0 and b"grid" in text, f"on a terminal of {n_columns} columns: {text}")
    return max(len(line.rstrip(b"\r")) for line in text.split(b"\n"))


def check_frame(database):
    """A frame finds the variables behind latencies and places in locus.db."""
    shown = subprocess.run([str(BUILD / "tests" / "golden" / "list-frame"), str(database)], capture_output=True, check=True, text=True)
    rows = list(csv.DictReader(io.StringIO(run("hpcquery", "vars", "--csv", database))))
    for row in rows:
        expect(row["class"] in ("dropped", "kernel") or f" class={row['class']} variable={row['variable']}" in shown.stdout,
               f"the frame has no {row['class']} variable {row['variable']}")
    expect(len(rows) > 3 and " variable 'grid'" in shown.stdout, f"{len(rows)} variables, and no grid")
    data = json.loads(run("hpcquery", "json", database))
    expect(data["column"] == LATENCY, f"without -M steps are about {data['column']}")
    expect(LATENCY in data["nodes"][0]["values"] and "Size (byte)" not in data["nodes"][0]["values"], f"columns {data['nodes'][0]}")
    tree, steps = (run("hpcquery", *words, database).split(":")[0] for words in (("tree",), ("filter", "line >= 0 or depth >= 0")))
    expect(tree == steps == LATENCY, f"tree is about {tree}, a tree of steps about {steps}")


def check_older(database, scratch):
    """A database without the numbers that came later is one without hardware."""
    older, data = scratch / "older", json.loads(run("hpcquery", "export", "json", database))
    del data["has_samples"]
    for row in data["events"] + data["variables"]:
        for key in ("enabled_ns", "running_ns", "n_throttles", "n_no_metric", "n_truncated", "n_collisions",
                    "has_data_source", "samples", "latencies"):
            row.pop(key, None)
    m.write_database(older, data)
    rows = list(csv.DictReader(io.StringIO(run("hpcquery", "vars", "--csv", "--metric", "MEM-Load", older))))
    grid = next(r for r in rows if r["variable"] == "grid")
    expect(float(grid["samples"]) == expected_counts("grid")[0]["MEM-Load"] and grid["latency_mean_cycles"] == "",
           f"an older database: {grid}")


def main():
    record = "--record" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "m").mkdir()
        make_measurement(scratch / "m")
        database = scratch / "database"
        run("hpcprof", "-q", "-o", database, "--xml", scratch / "xml", scratch / "m")
        check_xml(scratch / "xml")
        check_frame(database)
        check_rows(run("hpcquery", "vars", "--csv", database))
        for file, text in outputs(database):
            if record:
                (GOLDEN / file).write_text(text, encoding="utf-8")
            known = (GOLDEN / file).read_text(encoding="utf-8") if (GOLDEN / file).exists() else ""
            expect(text == known, f"{file} is not the committed one:\n{text[:3000]}")
        committed = scratch / "committed"
        m.write_database(committed, (GOLDEN / "locus.json").read_text(encoding="utf-8"))
        for name in ("cct.db", "meta.db", "profile.db"):
            shutil.copy(database / name, committed)
        for file, text in outputs(committed):
            expect((GOLDEN / file).read_text(encoding="utf-8") == text, f"{file} of the committed database differs")
        if record:
            bundle.keep_golden("hardware")
        check_older(database, scratch)
        for n_columns in (60, 80, 94, 100, 160):
            wide = widest_line(database, n_columns)
            expect(n_columns - 30 < wide <= n_columns, f"{n_columns} columns: a line has {wide}")
        data = json.loads(run("hpcquery", "vars", "--json", database))
        expect(data["hardware"]["remote_cost_per"] == "instruction" and data["n_no_metric"] == 8, "vars --json")
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
