# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery numa on a measurement whose pages and threads are where it says: the matrix, each variable's homes, the three
forms, databases that are extended, JSON and back, machines with one node, and damaged side files."""
import collections
import csv
import io
import json
import os
import pathlib
import random
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import choice  # noqa: E402
import measurement as m  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

METRICS = [("EADDR (usec)", m.INT, 1000)]
APP = "/nowhere/app"
START = [(APP, 0x1010), (APP, 0x2020)]
DISTANCES = [[10, 21], [17, 10]]  # from the thread's node to the page's
TOPOLOGY = m.TWO_NODES.replace("</topology>", "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\">\n"
                               "<indexes length=\"4\">0 1 </indexes>\n<u64values length=\"12\">10 21 17 10 </u64values>\n"
                               "</distances2>\n</topology>")
VARIABLES = ["wrong", "spread", "right", "unasked"]
N_CPUS, N_THREADS = 4, 3


def homes_of(rng, name, cpu):
    """{home: samples} of one thread's samples on a CPU: all of "wrong" on node 0, and so on."""
    if name == "wrong":
        return {0: 40 + cpu}
    if name == "spread":
        return {0: rng.randrange(1, 30), 1: rng.randrange(1, 30), -1: 2}
    return {cpu // 2: 10} if name == "right" else {}


def pages_of(name, thread):
    """[pages, asked for, without memory, bytes in huge pages, node, pages, ...]; one thread's file has them."""
    if thread:
        return None
    return {"wrong": [1000, 500, 50, 4 << 20, 0, 450], "spread": [64, 64, 0, -1, 0, 32, 1, 32]}.get(name)


def make_measurement(directory, pid, seed, topology=TOPOLOGY):
    """Returns {(variable, thread's node, home): samples}."""
    rng, truth = random.Random(seed), collections.Counter()
    for thread in range(N_THREADS):
        profile = m.Profile("app", METRICS, thread=thread, pid=pid)
        profile.topology, profile.side_version = "topology.xml", 1
        profile.events = [{"metric": METRICS[0][0], "name": "EADDR", "scale": 1000.0, "taken": 1000, "overflows": 0,
                           "fates": {"named": 1000}}]
        for i, name in enumerate(VARIABLES):
            variable = m.by_address("DATACENTRIC_Static", APP, 0x404040 + 0x10000 * i, "static", name, 8192)
            profile.sample(START + [(APP, 0x5000 + 16 * i)], {0: 250}, variable)
        profile.write(directory)
        path = next(directory.glob(f"app-000000-{thread:03d}-*-{pid}-0.objects"))
        side = json.loads(path.read_text(encoding="utf-8"))
        for row in side["variables"]:
            counts = {cpu: homes_of(rng, row["name"], cpu) for cpu in range(N_CPUS)}
            row["homes"] = [[cpu, 0, home, n] for cpu in counts for home, n in counts[cpu].items()]
            row["n_moved"] = 5 if row["name"] == "spread" else 0
            pages = pages_of(row["name"], thread)
            if pages:
                row["pages"] = pages
            for cpu in counts:
                for home, n in counts[cpu].items():
                    truth[row["name"], cpu // 2, home] += n
        path.write_text(json.dumps(side), encoding="utf-8")
    (directory / "topology.xml").write_text(topology, encoding="utf-8")
    return truth


def known(truth, variable=None, node=None, home=None):
    return sum(n for (v, t, h), n in truth.items()
               if h >= 0 and variable in (None, v) and node in (None, t) and home in (None, h))


def mean_distance(truth, variable=None):
    far = sum(n * DISTANCES[t][h] / DISTANCES[t][t] for (v, t, h), n in truth.items() if h >= 0 and variable in (None, v))
    return far / known(truth, variable)


def check_csv(database, truth):
    found = collections.Counter()
    for row in csv.DictReader(io.StringIO(run("hpcquery", "numa", "--csv", database).stdout)):
        found[row["variable"], int(row["thread_node"]), int(row["page_node"] or -1)] += int(row["samples"])
        expect(row["class"] == "static", f"class: {row}")
    expect(found == truth, f"CSV: {found}, not {truth}")


def check_json(database, truth):
    data = json.loads(run("hpcquery", "numa", "--json", database).stdout)
    matrix = [[known(truth, None, node, home) for home in range(2)] for node in range(2)]
    expect(data["n_nodes"] == 2 and data["matrix"] == matrix, f"matrix {data['matrix']}, not {matrix}")
    expect(data["local"] == matrix[0][0] + matrix[1][1] and data["remote"] == matrix[0][1] + matrix[1][0], f"sums: {data}")
    expect(abs(data["mean_distance"] - mean_distance(truth)) < 1e-9, f"distance {data['mean_distance']}")
    rows = {row["variable"]: row for row in data["variables"]}
    order = sorted((v for v in VARIABLES if known(truth, v)), key=lambda v: -known(truth, v))
    expect([row["variable"] for row in data["variables"]] == order, f"order: {list(rows)}, not {order}")
    for name in order:
        row, pairs = rows[name], sorted((t, -1 if h is None else h, n) for t, h, n in rows[name]["pairs"])
        remote = known(truth, name, 0, 1) + known(truth, name, 1, 0)
        expect(pairs == sorted((t, h, n) for (v, t, h), n in truth.items() if v == name), f"{name}: pairs {pairs}")
        expect(row["remote"] == remote and row["local"] == known(truth, name) - remote, f"{name}: {row}")
        expect(abs(row["mean_distance"] - mean_distance(truth, name)) < 1e-9, f"{name}: distance {row}, not {mean_distance(truth, name)}")
        expect(abs(row["remote_share"] - 100 * remote / known(truth, name)) < 1e-9, f"{name}: share {row}")
    return rows


def check_pages(rows, n_runs):
    wrong, spread = rows["wrong"], rows["spread"]
    expect([wrong[k] for k in ("pages", "pages_asked", "pages_without_memory", "huge_bytes")] ==
           [n * n_runs for n in (1000, 500, 50, 4 << 20)], f"pages: {wrong}")
    expect(wrong["pages_on"] == [450 * n_runs, 0] and spread["pages_on"] == [32 * n_runs, 32 * n_runs], f"pages: {wrong}, {spread}")
    expect("huge_bytes" not in spread and "pages" not in rows["right"], f"what is not known: {spread}, {rows['right']}")
    expect(spread["moved"] == 5 * N_THREADS * n_runs and wrong["moved"] == 0, f"moved: {spread}")


def check_text(database, truth):
    text = " ".join(run("hpcquery", "numa", database).stdout.split())
    remote = 100 * (known(truth, None, 0, 1) + known(truth, None, 1, 0)) / known(truth)
    on_1 = 100 * sum(n for (v, t, _), n in truth.items() if v == "wrong" and t == 1) / \
        sum(n for (v, _, _), n in truth.items() if v == "wrong")
    wanted = [f"{remote:.1f} % on pages of another node than the thread's", "threads on pages on node 0 node 1 all",
              f"pages live on node 0: 100 %; threads ran on node 0: {100 - on_1:.0f} %, node 1: {on_1:.0f} %; remote {on_1:.0f} %; "
              f"{mean_distance(truth, 'wrong'):.2f} times as far away as the own node's; 1000 pages, 10 % of them never written, 4.0 MiB around it in huge pages",
              "pages live on node 0: 50 %, node 1: 50 %", "15 samples on pages that had moved",
              "sampled pages live on node 0: 50 %, node 1: 50 %; threads ran on node 0: 50 %, node 1: 50 %; remote 0 %"]
    for part in wanted:
        expect(part in text, f"the text lacks '{part}': {text}")
    short = run("hpcquery", "numa", "--top", "1", database).stdout
    expect("2 more variables (--top 0 shows all)" in short, f"--top: {short}")


def check_one_node(scratch):
    """Where there is one node the report says so."""
    directory = scratch / "one"
    directory.mkdir()
    (directory / "m").mkdir()
    one = m.TWO_NODES.replace("0x3\" complete_nodeset", "0x1\" complete_nodeset")
    lines = one.splitlines()
    second = next(i for i, line in enumerate(lines) if "<object type=\"Package\" os_index=\"1\"" in line)
    end = next(i for i in range(second, len(lines)) if lines[i] == "</object>")
    text = "\n".join(lines[:second] + lines[end + 1:]) + "\n"
    text = text.replace("\"0xf\"", "\"0x3\"").replace("nodeset=\"0x3\"", "nodeset=\"0x1\"")
    profile = m.Profile("app", METRICS, pid=7)
    profile.topology = "topology.xml"
    profile.sample(START, {0: 5}, m.by_address("DATACENTRIC_Static", APP, 0x404040, "static", "grid", 8192, [[1, 0, 5]]))
    profile.write(directory / "m")
    (directory / "m" / "topology.xml").write_text(text, encoding="utf-8")
    run("hpcprof", "-q", "-o", directory / "db", directory / "m")
    words = " ".join(run("hpcquery", "numa", directory / "db").stdout.split())
    expect("NUMA cannot be seen here" in words, f"one node: {words}")
    expect(len(run("hpcquery", "numa", "--csv", directory / "db").stdout.splitlines()) == 1, "one node: CSV has rows")
    data = json.loads(run("hpcquery", "numa", "--json", directory / "db").stdout)
    expect("mean_distance" not in data and data["n_nodes"] == 1 and not data["variables"] and "one memory node" in data["note"], f"one node: {data}")


def check_unknown(scratch):
    """Two nodes, and nothing known of pages; then no topology at all."""
    directory = scratch / "unknown"
    directory.mkdir()
    profile = m.Profile("app", METRICS, pid=8)
    profile.topology = "topology.xml"
    profile.sample(START, {0: 5}, m.by_address("DATACENTRIC_Static", APP, 0x404040, "static", "grid", 8192, [[1, 0, 5]]))
    profile.write(directory)
    (directory / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")
    run("hpcprof", "-q", "-o", scratch / "unknown-db", directory)
    words = " ".join(run("hpcquery", "numa", scratch / "unknown-db").stdout.split())
    expect("It is not known on which nodes the pages are." in words, f"nothing known: {words}")
    (directory / "topology.xml").unlink()
    run("hpcprof", "-q", "-o", scratch / "bare-db", directory)
    words = " ".join(run("hpcquery", "numa", scratch / "bare-db").stdout.split())
    expect("The nodes are not known" in words, f"no topology: {words}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "m").mkdir()
        (scratch / "more").mkdir()
        truth = make_measurement(scratch / "m", 100, 1)
        run("hpcprof", "-q", "-o", scratch / "db", scratch / "m")
        check_csv(scratch / "db", truth)
        check_pages(check_json(scratch / "db", truth), 1)
        check_text(scratch / "db", truth)
        failures.extend(choice.problems(pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcquery", scratch / "db", ("numa",)))
        exported = run("hpcquery", "export", "json", scratch / "db").stdout
        m.write_database(scratch / "text", exported)
        for form in ("--csv", "--json"):
            texts = [run("hpcquery", "numa", form, path).stdout for path in (scratch / "db", scratch / "text")]
            expect(texts[0] == texts[1], f"from JSON: {form} differs")
        truth += make_measurement(scratch / "more", 200, 2)
        run("hpcprof", "-q", "--extend", "-o", scratch / "db", scratch / "more")
        run("hpcprof", "-q", "-o", scratch / "whole", scratch / "m", scratch / "more")
        for database in ("db", "whole"):
            check_csv(scratch / database, truth)
            check_pages(check_json(scratch / database, truth), 2)
        check_one_node(scratch)
        check_unknown(scratch)
    for failure in failures:
        print("FAIL:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
