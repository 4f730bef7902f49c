#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery runs: what runs were, statistics of functions over them and over groups of them, scaling and regressions, as text, CSV, JSON
and in Python. Costs are written down here, and what is expected is computed from them."""
import csv
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402

# run: what its functions cost
COSTS = {"a-1": {"main": 100, "work": 900}, "b-1": {"main": 120, "work": 880}, "c-2": {"main": 200, "work": 900, "wait": 100}, "d-4": {"main": 400, "work": 880, "wait": 720}}
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*words, status=0):
    result = subprocess.run([str(BUILD / "hpcquery"), "runs", *map(str, words)], capture_output=True, check=False, text=True, env={**os.environ, "COLUMNS": "200"})
    expect(result.returncode == status, f"{words}: status {result.returncode}, not {status}: {result.stderr}")
    return result.stdout if status in (0, 3) else result.stderr


def rows_of(*words, status=0):
    return list(csv.DictReader(io.StringIO(run(words[0], "--csv", *words[1:], status=status))))


def check_costs(scratch):
    paths = []
    for name, costs in COSTS.items():
        paths.append(scratch / name)
        paths[-1].write_text("events: Ir\n" + "".join(f"fl=/somewhere/{name}/a.c\nfn={function}\n{line} {cost}\n" for line, (function, cost) in enumerate(costs.items(), 1)),
                             encoding="utf-8")
    listed = rows_of("list", *paths)
    expect([(row["run"], float(row["total"])) for row in listed] == [(str(path), sum(COSTS[path.name].values())) for path in paths], f"list: {listed}")
    rows = {row["function"]: row for row in rows_of("functions", *paths)}
    for function in ("main", "work", "wait"):
        values, row = [costs.get(function, 0) for costs in COSTS.values()], rows[function]
        expected = (4, statistics.mean(values), min(values), max(values), statistics.pstdev(values))
        have = tuple(float(row[key]) for key in ("runs", "mean", "min", "max", "deviation"))
        expect(all(abs(x - y) < 1e-3 for x, y in zip(have, expected)) and row["file"] == "a.c", f"{function}: {row}, not {expected}")
    changed = rows_of("regression", *paths[:3], status=3)
    expect([(pathlib.Path(row["run"]).name, row["function"], float(row["change"])) for row in changed] ==
           [("b-1", "work", -20), ("b-1", "main", 20), ("c-2", "main", 100), ("c-2", "wait", 100)], f"regression: {changed}")
    changed = rows_of("regression", "--threshold", "5", "--base", "c-2", *paths[1:], status=3)
    expect([(pathlib.Path(row["run"]).name, row["function"], float(row["change"])) for row in changed] ==
           [("b-1", "wait", -100), ("b-1", "main", -80), ("d-4", "wait", 620), ("d-4", "main", 200)], f"regression: {changed}")
    expect(not rows_of("regression", "--threshold", "50", *paths[:2]), "no change is no row")
    expect("no input is called 'z'" in run("regression", "--base", "z", *paths, status=1), "a base that is none")
    expect("is known of the runs" in run("functions", "--by", "size", *paths, status=1), "a key that is none")
    expect("has no metric 'Cy'" in run("-M", "Cy", *paths, status=1), "a metric that is none")
    expect("give inputs" in run("scaling", status=2), "no inputs")


def check_places(scratch):
    """Functions of the same name in files of the same name: told apart in a run, and found again where another run was built elsewhere."""
    paths = []
    for root, costs in (("/old", (100, 30, 7)), ("/builds/new", (100, 50, 7))):
        paths.append(scratch / root.strip("/").replace("/", "-"))
        files = ("one/a.c", "two/a.c", "one/b.c")
        paths[-1].write_text("events: Ir\n" + "".join(f"fl={root}/{file}\nfn=main\n1 {cost}\n" for file, cost in zip(files, costs)), encoding="utf-8")
    rows = rows_of("functions", *paths)
    expect([(row["function"], row["file"], float(row["mean"])) for row in rows] == [("main", "one/a.c", 100), ("main", "two/a.c", 40), ("main", "b.c", 7)],
           f"places: {rows}")
    changed = rows_of("regression", *paths, status=3)
    expect([(row["file"], float(row["change"]), row["noise"]) for row in changed] == [("two/a.c", 20, "")], f"places: {changed}")


def check_noise(scratch):
    """Runs of the same commit differ by some; what differs by no more is noise."""
    text, paths = json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8")), []
    for i, (commit, factor) in enumerate((("a", 1), ("a", 1.1), ("b", 1.05), ("b", 1.06), ("c", 2))):
        paths.append(scratch / f"noise-{i}")
        m.write_database(paths[-1], scaled(text, factor))
        (paths[-1] / "runs.json").write_text(json.dumps([{"HPCRUN_RUN_commit": commit, "build_id": f"{ord(commit):x}"}]), encoding="utf-8")
    words = ("regression", "--by", "HPCRUN_RUN_commit", "--threshold", "0", *paths)
    every, beyond = rows_of(*words, status=3), rows_of(words[0], "--beyond-noise", *words[1:], status=3)
    expect({pathlib.Path(row["run"]).name for row in every} == {f"noise-{i}" for i in (1, 2, 3, 4)}, f"{len(every)} changes")
    expect({pathlib.Path(row["run"]).name for row in beyond} == {"noise-4"} and beyond, f"beyond noise: {beyond}")
    expect(all(abs(float(row["noise"]) - 0.1 * float(row["before"])) < 1e-6 * abs(float(row["before"])) + 1e-9 for row in every), f"noise: {every[0]}")
    said = run(*words[:3], *paths, status=3).splitlines()[0]
    expect(said.endswith("of 5 runs") and "(" in said, f"the metric is named: {said}")
    answer = json.loads(run("functions", "--json", *paths))
    expect(answer["unit"] and f"({answer['unit']})" in answer["metric"], f"the unit: {answer['metric']}, {answer['unit']}")
    expect([row["build_id"] for row in rows_of("list", *paths)] == ["61", "61", "62", "62", "63"], "build ids are listed where they differ")


def scaled(text, factor):
    """A database whose costs are so many times as large."""
    made = {**text, "values": [[scope, metric, value * factor] for scope, metric, value in text["values"]]}
    return made


def check_databases(scratch):
    text = json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8"))
    paths = []
    for i, (threads, size) in enumerate((("1", "small"), ("4", "small"), ("1", "large"))):
        paths.append(scratch / f"db-{i}")
        m.write_database(paths[-1], text)
        (paths[-1] / "runs.json").write_text(json.dumps([{"command": "./minicg", "OMP_NUM_THREADS": threads, "HPCRUN_RUN_size": size}]), encoding="utf-8")
    listed = rows_of("list", *paths)
    expect([row["OMP_NUM_THREADS"] for row in listed] == ["1", "4", "1"] and "command" not in listed[0], f"list: {listed}")
    every = rows_of("list", "-a", *paths)
    expect({row["command"] for row in every} == {"./minicg"} and float(every[0]["cpu_s"]) > 0, f"list -a: {every}")
    groups = {row["group"]: int(row["runs"]) for row in rows_of("functions", "--by", "HPCRUN_RUN_size", *paths)}
    expect(groups == {"small": 2, "large": 1}, f"groups: {groups}")
    scaling = [row for row in rows_of("scaling", "--by", "OMP_NUM_THREADS", *paths) if row["function"] == "<all>"]
    expect([(float(row["workers"]), int(row["runs"]), row["speed_up"], float(row["efficiency"])) for row in scaling] == [(1, 2, "", 100), (4, 1, "", 100)],
           f"the same costs on four threads: {scaling}")
    expect("needs a number" in run("scaling", "--by", "HPCRUN_RUN_size", *paths, status=1), "scaling by a word")
    answer = json.loads(run("functions", "--json", *paths))
    expect(answer["metric"] and len(answer["functions"]) == len(rows_of("functions", *paths)), f"JSON: {answer}")
    expect("deviation" in run("functions", *paths).split("\n")[1], "text has titles")
    code = ("import sys, locus\nanswer = locus.runs(sys.argv[1:], 'functions', by='OMP_NUM_THREADS', top=1)\n"
            "print(answer.name, [(row['group'], row['runs']) for row in answer], answer.metric)")
    result = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, check=False, text=True,
                            env={**os.environ, "PYTHONPATH": str(SOURCE / "python"), "LOCUS_LIBRARY": str(BUILD / ".libs/liblocus.so")})
    expect(result.stdout.startswith("functions [('1', 2), ('4', 1)]"), f"Python: {result.stdout} {result.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        check_costs(scratch)
        check_places(scratch)
        check_noise(scratch)
        check_databases(scratch)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
