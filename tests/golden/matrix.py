# SPDX-License-Identifier: BSD-3-Clause
"""Every report with every option that reports share: --by, --top, --min, --derive, in text, as CSV and as JSON. What is split
adds up to the report that is not split, what is left out is the same with and without --by, and all forms have the same rows.
A derived column follows from the sums of its row, at each level of code and data, and is missing where its denominator is. What is
refused is in a table here, with the reason that hpcquery must give."""
import csv
import io
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import choice  # noqa: E402
import measurement as m  # noqa: E402

APP, LIBRARY = "/nowhere/app", "/nowhere/libmore.so"
METRICS = [("EADDR (usec)", m.INT, 1000), ("FAULTS", m.INT, 1)]
THREADS = [(rank, thread) for rank in range(3) for thread in range(2)]
BYS = ("thread", "process", "rank", "cpu", "node", "region", "function")
# The columns that name a row, the column of its value, and of its share; with --by all have value.
REPORTS = {"vars": (("variable", "class", "alloc_site"), "value", "share"),
           "functions": (("function", "file", "line", "module"), "own", "own_share"),
           "lines": (("function", "file", "line", "module"), "own", "own_share"),
           "types": (("type", "size_bytes"), "value", "share"),
           "tree": (("id",), "inclusive", "percent"),
           "datatree": (("id",), "inclusive", "percent")}
REFUSED = {("functions", "function"): "not split by function", ("lines", "function"): "not split by function",
           **{(report, by): f"{report} has no --by: " for report in ("leaks", "advice") for by in BYS}}
failures = []
n_checks = 0


def expect(condition, sentence):
    global n_checks
    n_checks += 1
    if not condition:
        failures.append(sentence)


def query(*arguments, status=0):
    result = subprocess.run([str(BUILD / "hpcquery"), *map(str, arguments)], capture_output=True, text=True, check=False,
                            env={**os.environ, "LC_ALL": "C", "COLUMNS": "200"})
    expect(result.returncode == status, f"{arguments}: status {result.returncode}, not {status}: {result.stderr}")
    return result.stdout if status == 0 else result.stderr


def table(*arguments):
    return list(csv.DictReader(io.StringIO(query(*arguments, "--csv"))))


def measured(directory):
    """Seven variables of four classes on different call paths of six threads, on two NUMA nodes."""
    start = [(APP, 0x1010)]
    for k, (rank, thread) in enumerate(THREADS):
        profile = m.Profile("app", METRICS, rank=rank, thread=thread, pid=100 + rank)
        profile.topology = "topology.xml"

        def places(count, k=k):
            return [[k % 4, 0, count]]

        for i in range(4):
            count = (5 + 7 * i + 3 * k) * (i != 2 or rank == 1)
            variable = m.by_address("DATACENTRIC_Static", APP, 0x404040 + 0x1000 * i, "static", f"grid_{i}", 4096 << i, places(count))
            for path in ([(APP, 0x2020), (APP, 0x5000 + 16 * i)], [(LIBRARY, 0x3030 + 16 * i)]):
                profile.sample(start + path, {0: count, 1: thread}, variable)
        profile.sample(start + [(APP, 0x2030)], {0: 11 + k}, m.heap(start + [(APP, 0x3333)], size=1 << 16, cpus=places(11 + k)))
        profile.sample(start + [(APP, 0x2040), (APP, 0x5050)], {0: 9}, m.by_address("DATACENTRIC_ThreadLocal", APP, 0x7000,
                       "tls", "mine", 64, places(9)))
        profile.sample(start + [(APP, 0x2050)], {0: 13 * (rank == 2)}, m.reason("DATACENTRIC_No_Compute"))
        profile.write(directory)
    (directory / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")


def key_of(report, row):
    return tuple("" if row[name] is None else str(row[name]) for name in REPORTS[report][0])


def unsplit(report, database, *options):
    """The rows of a report in order: (key, value, share). A function counts with what it calls, where that is more."""
    rows = table(report, *options, database)
    return [(key_of(report, row), float(row[REPORTS[report][1]]), max(float(row[REPORTS[report][2]]), float(row.get("inclusive_share", 0))))
            for row in rows if report != "types" or not row["field"]]


def split_rows(report, by, database, *options):
    """Key -> {column: value} of a report that is split, as CSV and as JSON."""
    rows = table(report, "--by", by, *options, database)
    data = json.loads(query(report, "--by", by, "--json", *options, database))
    cells, of_json = {}, {}
    if report in ("tree", "datatree"):
        for row in rows:
            cells.setdefault(key_of(report, row), {})[row[by]] = float(row["value"])
        of_json = {(str(node["id"]),): {cell[by]: cell["value"] for cell in node["cells"]} for node in data["nodes"]}
    elif (report, by) == ("vars", "region"):
        for row in rows:
            cells.setdefault(key_of(report, row), {})[row["region"]] = float(row["value"])
        for region in data["regions"]:
            for row in region["variables"]:
                of_json.setdefault(key_of(report, row), {})[region["region"]] = row["value"]
    else:
        for row in rows:
            if not row.get("field"):
                cells.setdefault(key_of(report, row), {})[row[by]] = float(row["value"])
        of_json = {key_of(report, row): {cell[by]: cell["value"] for cell in row["cells"]}
                   for row in data["rows"]}
    of_json = {key: row for key, row in of_json.items() if row}
    expect(cells == of_json, f"{report} --by {by} {options}: CSV has {cells}, JSON {of_json}")
    return cells


def name_of(report, key):
    """What a text calls a row; None where that is not in its key."""
    names = {"vars": key[0], "functions": key[0].split(" [")[0], "types": key[0] or "type not known"}
    return names.get(report)


def check_split(report, by, database):
    everything = unsplit(report, database)
    for top, least in itertools.product((None, 0, 2), (None, 6, 30)):
        options = (*(("--top", top) if top is not None else ()), *(("--min", least) if least is not None else ()))
        wanted, found = unsplit(report, database, *options), split_rows(report, by, database, *options)
        wanted = [row for row in wanted if row[1]]  # what has no value has no cells
        keys = [key for key, _, _ in wanted]
        expect(list(found) == keys, f"{report} --by {by} {options}: rows {list(found)}, and {keys} without --by")
        for key, value, _ in wanted:
            expect(math.isclose(sum(found.get(key, {}).values()), value, rel_tol=1e-9),
                   f"{report} --by {by} {options}: {key} is {found.get(key)}, and {value} without --by")
        for key, value, share in everything:
            expect(key in keys or share < (least or 0) + 1e-6 or (top and len(keys) >= top) or not value,
                   f"{report} --by {by} {options}: {key} with {share} % is not there")
        text = query(report, "--by", by, *options, database)
        names = [name_of(report, key) for key in keys[:12]]
        expect(all(name is None or name in text for name in names), f"{report} --by {by} {options}: not {names} in {text}")


def check_unsplit(report, database):
    """CSV and JSON have the same values, and --top and --min leave out the same rows in all forms."""
    names, value, share = REPORTS[report]
    everything = unsplit(report, database)
    total, shares = sum(v for _, v, _ in everything), sum(share for *_, share in everything)
    expect(report not in ("vars", "types") or math.isclose(shares, 100, rel_tol=1e-6), f"{report} adds up to {shares} %")
    expect(len(everything) >= (1 if report == "types" else 5) and total > 0, f"{report}: {everything}")
    for top, least in itertools.product((None, 0, 2), (None, 6, 30)):
        options = (*(("--top", top) if top is not None else ()), *(("--min", least) if least is not None else ()))
        rows = unsplit(report, database, *options)
        data = json.loads(query(report, "--json", *options, database))
        listed = next(data[key] for key in ("variables", "functions", "lines", "types", "nodes") if key in data)
        of_json = [(tuple("" if row[name] is None else str(row[name]) for name in names), row[value]) for row in listed]
        expect([(key, v) for key, v, _ in rows] == of_json, f"{report} {options}: CSV has {rows}, JSON {of_json}")
        enough = [row for row in everything if row[2] >= (least or 0)]
        largest = sorted((v for _, v, _ in enough), reverse=True)[:top or None] # reports are in order of their value
        expect(sorted((v for _, v, _ in rows), reverse=True) == largest, f"{report} {options}: {rows}, not {largest}")
        expect([row for row in everything if row in rows] == rows, f"{report} {options}: another order {rows}")
        text = query(report, *options, database)
        shown = [name_of(report, key) for key, _, _ in rows[:12]]
        expect(all(name is None or name in text for name in shown), f"{report} {options}: not {shown} in {text}")


RATIO = "per mille = 1000 * FAULTS / 'EADDR (usec)'"
WITH_CALLEES = "with = 1000 * 'FAULTS (inc)' / 'EADDR (usec) (inc)'"
SECONDS = "s=time"


def ratio(faults, time):
    """What the expressions above give; None: missing. A missing numerator is 0."""
    return 1000 * faults / time if time else None


def is_same(text, value):
    return (text in ("", None)) if value is None else text not in ("", None) and math.isclose(float(text), value, rel_tol=1e-9)


def check_derived(report, database):
    """Derived columns of a report, from what it says of both metrics by itself."""
    names, value, _ = REPORTS[report]
    inclusive = "inclusive" if report in ("functions", "lines", "tree", "datatree") else value
    own = {"tree": "exclusive", "datatree": "exclusive"}.get(report, value)
    options = ("--derive", RATIO, "--derive", WITH_CALLEES, "--derive", SECONDS)
    faults = {key_of(report, row): row for row in table(report, "-M", "FAULTS", database) if not row.get("field")}
    rows = [row for row in table(report, *options, database) if not row.get("field")]
    data = json.loads(query(report, "--json", *options, database))
    listed = next(data[key] for key in ("variables", "functions", "lines", "types", "nodes") if key in data)
    expect(len(rows) == len(listed), f"{report} --derive: {len(rows)} rows, and {len(listed)} as JSON")
    n_known = 0
    for row, of_json in zip(rows, listed):
        other = faults.get(key_of(report, row), {})
        wanted = {"per mille": ratio(float(other.get(own, 0)), float(row[own])),
                  "with": ratio(float(other.get(inclusive, 0)), float(row[inclusive])), "s": float(row[own]) / 1e6 or None}
        expect(all(is_same(row[name], v) and is_same(of_json["derived"][name], v) for name, v in wanted.items()),
               f"{report} --derive: {row} and {of_json}, not {wanted}")
        n_known += sum(v is not None for v in wanted.values())
    expect(n_known >= 3 and (report not in ("functions", "datatree") or any(not row["per mille"] for row in rows)), f"{report} --derive: {rows}")
    text = query(report, *options, database)
    expect(all(f" {name} " in text for name in ("per mille", "with", "s")), f"{report} --derive: {text}")
    plain = table(report, database)
    expect([{k: v for k, v in row.items() if k not in wanted} for row in table(report, *options, database)] == plain,
           f"{report} --derive changes other columns")
    for bad, words in (("x = nonsense + 1", "nonsense"), ("x = 1 +", "--derive: ")):
        expect(words in query(report, "--derive", bad, database, status=1), f"{report} --derive {bad}")


def check_levels(database):
    """A ratio in steps, at every level that costs are inherited to: that of the sums there."""
    for tree, levels in (("code", ("line", "name", "file", "module")), ("data", ("name", "variable", "class"))):
        nodes = [row for row in table("filter", f'tree = "{tree}"', database)]
        for level in levels:
            sums = {}
            for row in nodes:
                of = sums.setdefault(row[level], [0, 0])
                for i, column in enumerate(("FAULTS", "EADDR (usec)")):
                    of[i] += float(row[column] or 0)
            grouped = table("--tree", tree, "--derive", RATIO, "group", level, database)
            found = {row[level] if level in ("line", "variable", "class") else row["name"]: row["per mille"] for row in grouped}
            wanted = {key: ratio(*of) for key, of in sums.items()}
            expect(len(grouped) == len(wanted) and all(is_same(found.get(key), v) for key, v in wanted.items()),
                   f"{tree}, by {level}: {found}, not {wanted}")
        shape = "module file function line" if tree == "code" else "class variable function"
        rows = table("--tree", tree, "--derive", WITH_CALLEES, "hierarchy", shape, database)
        expect(len(rows) > 8 and all(is_same(row["with"], ratio(float(row["FAULTS (inc)"] or 0), float(row["EADDR (usec) (inc)"] or 0)))
                                     for row in rows), f"hierarchy {shape}: {rows}")
    rows = table("--derive", "x = missing + 1", "--derive", RATIO, "filter", 'tree = "data"', database)
    expect(all(row["x"] == "" for row in rows) and all(row["per mille"] != "" for row in rows if row["EADDR (usec)"]) and
           any(row["per mille"] == "" for row in rows), f"a ratio without its denominator, or none with it: {rows}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        measured(scratch / "measurement")
        database = scratch / "database"
        subprocess.run([str(BUILD / "hpcprof"), "-q", "-o", str(database), str(scratch / "measurement")], check=True)
        for report in REPORTS:
            check_unsplit(report, database)
            check_derived(report, database)
        check_levels(database)
        for sentence in choice.problems(BUILD / "hpcquery", database, (*REPORTS, "advice", "leaks", "cpus")):
            expect(False, sentence)
        for arguments in (("annotate", "func", "--derive", RATIO), ("leaks", "--derive", RATIO), ("advice", "--derive", RATIO),
                          ("vars", "--by", "rank", "--derive", RATIO), ("vars", "--csv", "--fields", "--derive", RATIO),
                          ("vars", "--html", "--derive", RATIO)):
            expect("--derive " in query(*arguments, database, status=2), f"{arguments}")
        for report, by in itertools.product((*REPORTS, "leaks", "advice"), BYS):
            if (report, by) not in REFUSED:
                check_split(report, by, database)
                continue
            for form in ((), ("--csv",), ("--json",)):
                status = 2 if "has no" in REFUSED[report, by] else 1
                text = query(report, "--by", by, *form, database, status=status)
                expect(REFUSED[report, by] in text and text.count("\n") == 1, f"{report} --by {by} {form}: {text}")
    for failure in failures[:30]:
        print("FAIL:", failure[:1500])
    expect(n_checks > 1500, f"only {n_checks} checks")
    sys.exit(1 if failures else 0)


main()
