#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Who touched each variable first and who used it, on a measurement of two NUMA nodes where that is known: the three
forms, the line in the table of variables, the advice that follows, databases that are extended, and damaged side files."""
import csv
import io
import json
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import choice  # noqa: E402
import measurement as m  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

METRICS = [("EADDR (usec)", m.INT, 1000), ("FAULTS", m.INT, 1)]
APP, LIBC = "/nowhere/app", "/nowhere/libc.so.6"
START = [(APP, 0x1010)]
N_THREADS, SIZE, START_NS = 4, 8 << 20, 1_700_000_000_000_000_000
ONE_NODE = m.TWO_NODES.split("<object type=\"Package\" os_index=\"1\"")[0] + "</object>\n</topology>\n"
# variable: (samples of use by thread, {thread: (faults, low, high)}, path of the faults); thread t runs on CPU t
VARIABLES = {
    "serial": ([100, 100, 100, 100], {0: (2048, 0, SIZE - 4096)}, [(APP, 0x5000)]),
    "cleared": ([0, 0, 90, 90], {1: (2048, 0, SIZE - 4096)}, [(APP, 0x5100), (LIBC, 0x9000)]),
    "blocked": ([100, 100, 100, 100], {t: (512, t * SIZE // 4, (t + 1) * SIZE // 4 - 4096) for t in range(4)}, [(APP, 0x5200)]),
    "shared": ([60, 60, 60, 60], {0: (1024, 0, SIZE // 2), 1: (1024, SIZE // 2, SIZE - 4096)}, [(APP, 0x5300)]),
    "little": ([5, 5, 5, 5], {0: (2048, 0, SIZE - 4096)}, [(APP, 0x5400)]),
    "untold": ([50, 50, 50, 50], {0: (2048, 0, SIZE - 4096)}, [(APP, 0x5600)]),
    "huge": ([40, 40, 0, 0], {0: (4, 0, SIZE - 1)}, [(APP, 0x5500)]),
    "unseen": ([40, 0, 0, 0], {}, []),
}
# Which sixty-fourths of it each thread uses, where that is known.
PARTS = {"serial": lambda t: range(16 * t, 16 * t + 16), "shared": lambda t: range(64)}
WORDS = {"serial": "let each thread write first the part that it uses", "untold": "if all threads use all of it"}
ADVICE = {"untold": "parallel-first-touch", "serial": "parallel-first-touch", "cleared": "first-touch", "shared": "interleave", "little": "not-worth-it"}


def make_thread(profile, thread):
    """Adds the thread's samples and faults; returns {variable: (node at the end of the path of the faults)}."""
    leaves = {}
    for i, (name, (uses, touches, path)) in enumerate(VARIABLES.items()):
        cpus = [[thread, 0, uses[thread]]] * (uses[thread] > 0) + ([[thread, 1, touches[thread][0]]] if thread in touches else [])
        variable = m.by_address("DATACENTRIC_Static", APP, 0x404040 + 0x1000000 * i, "static", name, SIZE, cpus)
        if uses[thread]:
            profile.sample(START + [(APP, 0x7000 + 16 * i)], {0: uses[thread]}, variable)
        if thread in touches:
            nothing = m.by_address("DATACENTRIC_Static", APP, 0x404040 + 0x1000000 * i, "static", name, SIZE)
            profile.sample(START + path, {1: touches[thread][0]}, nothing if uses[thread] else variable)
            top = profile.placeholder(profile.root, "DATACENTRIC", m.ROOT)
            leaves[name] = profile.path(nothing(profile, top), START + path, m.ACCESS)
    return leaves


def make_measurement(directory, pid=100, topology=m.TWO_NODES, touched=True, rough=False, pages=None):
    for thread in range(N_THREADS):
        profile = m.Profile("app", METRICS, thread=thread, pid=pid)
        profile.topology = "topology.xml"
        profile.events = [{"metric": name, "name": name, "scale": scale, "taken": 1000, "overflows": 0, "fates": {"named": 1000}}
                          for (name, _, _), scale in zip(METRICS, (1000.0, 1.0))]
        leaves = make_thread(profile, thread)
        profile.write(directory)
        path = next(directory.glob(f"app-000000-{thread:03d}-*-{pid}-0.objects"))
        side = json.loads(path.read_text(encoding="utf-8"))
        side["start_ns"], side["end_ns"] = START_NS, START_NS + 10**9
        for row in side["variables"]:
            if touched and row["name"] in leaves:
                n, low, high = VARIABLES[row["name"]][1][thread]
                n_samples = n // 2 if rough else n
                row["touches"] = [[1, leaves[row["name"]], n_samples, n, str(START_NS + 1000000 * (thread + 1)), low, high]]
            if pages and row["name"] in pages and thread == min(VARIABLES[row["name"]][1]):
                row["pages"] = [SIZE // 4096, sum(pages[row["name"]].values()), 0, -1, *(word for pair in pages[row["name"]].items() for word in pair)]
            if row["name"] in PARTS:
                parts = PARTS[row["name"]](thread)
                bins = [word for part in parts for word in (part, 4)]
                row["lines"], row["reach"] = [], [17, parts[0] << 17, (parts[-1] + 1 << 17) - 8, 0, 0, 0, 0, bins, []]
        path.write_text(json.dumps(side), encoding="utf-8")
    (directory / "topology.xml").write_text(topology, encoding="utf-8")


def check_csv(database, n_processes=1):
    found = {}
    for row in csv.DictReader(io.StringIO(run("hpcquery", "first-touch", "--csv", database).stdout)):
        key = row["variable"], row.get("thread", row.get("process.thread", ""))
        expect(key not in found, f"CSV: {key} twice")
        found[key] = row
    for name, (uses, touches, path) in VARIABLES.items():
        rows = [row for (variable, _), row in found.items() if variable == name]
        expect(len(rows) == max(1, n_processes * len(touches)), f"CSV: rows of {name}: {rows}")
        if not touches:
            expect(rows[0]["samples"] == "" and rows[0]["touchers"] == "", f"CSV: {rows}")
        for row in rows if touches else []:
            thread = int((row.get("thread") or row["process.thread"]).split(".")[-1])
            n, low, high = touches[thread]
            share = 100 * n / sum(t[0] for t in touches.values()) / n_processes
            wanted = {"node": str(thread // 2), "samples": str(n), "faults": str(n), "low_byte": str(low), "high_byte": str(high),
                      "first_ns": str(START_NS + 1000000 * (thread + 1)), "touchers": str(n_processes * len(touches)),
                      "users": str(n_processes * sum(u > 0 for u in uses))}
            expect({key: row[key] for key in wanted} == wanted, f"CSV: {name}: {row}, not {wanted}")
            expect(abs(float(row["faults_share"]) - share) < 1e-3, f"CSV: {name}: share {row['faults_share']}, not {share}")
            place = path[0][1] - (len(path) > 1)  # that of a call is before the address of its return
            expect("app" in row["function"] and f"{place:x}" in row["function"], f"CSV: {name}: place {row['function']}")


def check_sentences(database):
    rows = {row["variable"]: row for row in json.loads(run("hpcquery", "first-touch", "--json", database).stdout)["variables"]}
    said = {name: row["first_touch"] for name, row in rows.items()}
    expect(said["serial"].startswith("first touched by thread 0 on node 0 in ") and
           said["serial"].endswith(", used by threads 0-3 on nodes 0-1"), f"serial: {said['serial']}")
    expect(said["cleared"].startswith("first touched by thread 1 on node 0 in ") and "libc" not in said["cleared"] and
           said["cleared"].endswith(", used by threads 2-3 on node 1"), f"cleared: {said['cleared']}")
    expect(said["blocked"].startswith("first touched by threads 0-3 on nodes 0-1 in ") and ", about 25 % each, used by" in said["blocked"],
           f"blocked: {said['blocked']}")
    expect("one fault for each 2.0 MiB" in said["huge"] and "huge pages" in said["huge"], f"huge: {said['huge']}")
    expect(said["unseen"].startswith("no first touch was seen"), f"unseen: {said['unseen']}")
    expect(rows["serial"]["users"] == ["0", "1", "2", "3"] and rows["cleared"]["users"] == ["2", "3"], "users")
    expect([touch["thread"] for touch in rows["blocked"]["touchers"]] == ["0", "1", "2", "3"], "touchers")
    told = {row["variable"]: row["first_touch"] for row in json.loads(run("hpcquery", "vars", "--json", "--all", database).stdout)["variables"]}
    rows = csv.DictReader(io.StringIO(run("hpcquery", "vars", "--csv", "--all", database).stdout))
    expect(told == said == {row["variable"]: row["first_touch"] for row in rows}, f"vars: {told}, not {said}")
    large = {row["variable"] for row in csv.DictReader(io.StringIO(run("hpcquery", "vars", "--csv", database).stdout)) if float(row["share"]) >= 5}
    expect(0 < len(large & said.keys()) < len(said), f"variables with 5 %: {large}")
    for report, names in ((["vars", "-v"], said), (["vars"], large), (["first-touch"], said)):
        text = " ".join(run("hpcquery", *report, "--top", "0", database).stdout.split())
        for name, sentence in said.items():
            expect((" ".join(sentence.split()) in text) == (name in names), f"{report}: the sentence about {name}: {sentence}")


def rules_of(database):
    rows = csv.DictReader(io.StringIO(run("hpcquery", "advice", "--csv", database).stdout))
    return {row["variable"]: row for row in rows if row["rule"] in (*ADVICE.values(),)}


def check_advice(database):
    rows = rules_of(database)
    expect({name: row["rule"] for name, row in rows.items()} == ADVICE, f"advice: {rows}")
    total = sum(sum(uses) for uses, _, _ in VARIABLES.values())
    for name, row in rows.items():
        uses, touches, _ = VARIABLES[name]
        away = sum(uses[2:]) / sum(uses)
        expect(WORDS.get(name, "") in row["advice"] and (name == "untold" or "if all" not in row["advice"]), f"{name}: {row['advice']}")
        expect(f"gain at most {100 * away * sum(uses) / total:.1f} %" in row["evidence"] and touches, f"{name}: {row['evidence']}")


def check_policies(scratch):
    """Too few samples say where pages live, but they were counted: a policy put them elsewhere than first touch would."""
    make_measurement(scratch / "policy.m", pages={"serial": {0: 256, 1: 256}, "cleared": {1: 512}, "untold": {0: 500, 1: 12}, "little": {0: 8}})
    run("hpcprof", "-o", scratch / "policy", scratch / "policy.m")
    rows = rules_of(scratch / "policy")
    expect({name: row["rule"] for name, row in rows.items()} == {name: ADVICE[name] for name in ("untold", "shared", "little")}, f"policies: {rows}")
    for name, row in rows.items():
        is_counted = name == "untold"
        expect(("98 % of its pages, counted, live on node 0" in row["evidence"]) == is_counted, f"policies: {name}: {row['evidence']}")
        expect(("too few samples say where its pages live" in row["evidence"]) == (not is_counted), f"policies: {name}: {row['evidence']}")


def check_one_node(scratch):
    make_measurement(scratch / "one.m", topology=ONE_NODE)
    run("hpcprof", "-o", scratch / "one", scratch / "one.m")
    expect(not rules_of(scratch / "one"), f"advice about places on a machine with one node: {rules_of(scratch / 'one')}")
    text = run("hpcquery", "advice", scratch / "one").stdout
    expect(text.count("one node") == 1, f"advice on one node: {text}")
    text = run("hpcquery", "first-touch", scratch / "one").stdout
    expect("on node" not in text and "first touched by thread 0 in " in text, f"one node: {text}")


def check_nothing(scratch):
    make_measurement(scratch / "none.m", touched=False)
    run("hpcprof", "-o", scratch / "none", scratch / "none.m")
    for form in ([], ["--csv"], ["--json"]):
        error = run("hpcquery", "first-touch", *form, scratch / "none", status=1).stderr
        expect("no page faults were sampled" in error, f"without touches: {error}")
    expect("first_touch" not in run("hpcquery", "vars", "--csv", scratch / "none").stdout, "a column of first touches without any")
    expect("first touch" not in run("hpcquery", "vars", scratch / "none").stdout, "a first touch that nobody measured")


def check_rough(scratch):
    """Where not every fault was sampled, nothing follows from few of them."""
    make_measurement(scratch / "rough.m", rough=True)
    run("hpcprof", "-o", scratch / "rough", scratch / "rough.m")
    text = " ".join(run("hpcquery", "first-touch", scratch / "rough").stdout.split())
    expect("one fault for each" not in text and "none of its page faults was sampled" in text and "limited rate" in text, f"rough: {text}")


def check_extended(scratch):
    make_measurement(scratch / "second.m", pid=200)
    run("hpcprof", "-o", scratch / "both", scratch / "m", scratch / "second.m")
    run("hpcprof", "-o", scratch / "grown", scratch / "second.m")
    run("hpcprof", "--extend", "-o", scratch / "grown", scratch / "m")
    for database in ("both", "grown"):
        check_csv(scratch / database, 2)
    text = run("hpcquery", "export", "json", scratch / "both").stdout
    m.write_database(scratch / "text", text)
    expect(run("hpcquery", "export", "json", scratch / "text").stdout == text, "JSON that is read again")


def check_damage(scratch):
    path = next((scratch / "m").glob("app-000000-000-*.objects"))
    good = path.read_text(encoding="utf-8")
    side = json.loads(good)
    for damage in ([[9, 1, 1, 1, 1]], [[1, 4_000_000_000, 1, 1, 1]], [[1, 13, 1, 1, 1, 5, 2]]):  # none of these is an error
        side["variables"][0]["touches"] = damage
        path.write_text(json.dumps(side), encoding="utf-8")
        run("hpcprof", "-o", scratch / "odd", scratch / "m")
    for damage in ([[1, "x"]], [[1]], 7):
        side["variables"][0]["touches"] = damage
        path.write_text(json.dumps(side), encoding="utf-8")
        run("hpcprof", "-o", scratch / "odd", scratch / "m")
        text = run("hpcquery", "vars", scratch / "odd").stdout
        expect("touches" in text and path.name in text, f"a side file with touches {damage}: {text}")
    path.write_text(good, encoding="utf-8")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        make_measurement(scratch / "m")
        run("hpcprof", "-o", scratch / "db", scratch / "m")
        check_csv(scratch / "db")
        check_sentences(scratch / "db")
        check_advice(scratch / "db")
        failures.extend(choice.problems(pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcquery", scratch / "db", ("first-touch",)))
        check_policies(scratch)
        check_one_node(scratch)
        check_nothing(scratch)
        check_rough(scratch)
        check_extended(scratch)
        check_damage(scratch)
    print("\n".join(failures) if failures else "first touches are those of the measurement")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
