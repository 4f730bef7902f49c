# SPDX-License-Identifier: BSD-3-Clause
"""What frame_open makes of the files and databases that it knows. tests/golden/readers.txt holds the inputs and what list-frame
prints of each; `readers.py --record` writes the latter anew. A database of ours has the values that hpcquery prints. Damaged
input, cut or changed anywhere, is read or refused by one sentence that names file and place, within bounded memory. Databases
of HPCToolkit itself lie in $LOCUS_SHARED_DATA or in ../shared/data; what Hatchet documents of them is checked where they are."""
import collections
import csv
import difflib
import json
import math
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "hpctoolkit"
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import v4  # noqa: E402

GOLDEN = bundle.golden("readers")
MEMORY_KIB = 400 << 10
NODE = re.compile(r"(\d+)  *(\w+) '([^']*)'(.*)$")
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def open_frame(path, *options):
    return subprocess.run([str(BUILD / "tests" / "golden" / "list-frame"), *options, str(path)], capture_output=True, check=False)


def listed(path, *options):
    result = open_frame(path, *options)
    expect(result.returncode == 0, f"{path}: {result.stderr.decode(errors='replace')}")
    return result.stdout.decode(errors="replace")


class Frame:
    """The text of list-frame, taken apart: nodes as (kind, name, parent, attributes, {column: value})."""

    def __init__(self, path):
        lines = listed(path).split("\n")
        self.profiles = [line for line in lines if line.startswith("profile ")]
        self.columns = [line.split("'")[1] for line in lines if line.startswith("column ")]
        self.nodes = []
        for line in lines:
            found = NODE.match(line)
            if not found or line.startswith(("profile ", "column ")) or line.split(" ")[1].startswith("nodes"):
                continue
            rest, *values = found[4].split(" | ")
            parents = [int(word[1:]) for word in rest.split() if re.fullmatch(r"\^\d+", word)]
            attributes = dict(word.split("=", 1) for word in rest.split() if re.fullmatch(r"\w+=\S+", word))
            self.nodes.append((found[2], found[3], parents[0] if parents else None, attributes,
                               {v.rsplit(" ", 1)[0]: float(v.rsplit(" ", 1)[1]) for v in values}))

    def total(self, column):
        """Of the roots."""
        return sum(node[4].get(column, 0) for node in self.nodes if node[2] is None)


# --- what is committed ---


def inputs(scratch):
    """Every input by name: those of the text, and databases that are made here."""
    found = {path.name: path for path in sorted((GOLDEN / "inputs").iterdir())}
    v4.write_small(scratch / "small-v4")
    found["small-v4"] = scratch / "small-v4"
    subprocess.run([str(BUILD / "hpcquery"), "save", str(scratch / "saved"), str(scratch / "small-v4")], check=True)
    found["saved"] = scratch / "saved"
    return found


def check_golden(found):
    expected = GOLDEN / "expected"
    texts = {name: listed(path, "--cells") for name, path in found.items()}
    if "--record" in sys.argv:
        shutil.rmtree(expected, ignore_errors=True)
        expected.mkdir()
        for name, text in texts.items():
            (expected / f"{name}.txt").write_text(text, encoding="utf-8")
        bundle.keep_golden("readers")
    for name, text in texts.items():
        path = expected / f"{name}.txt"
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if known != text:
            failures.append("\n".join([f"{name} is read otherwise:", *difflib.unified_diff(
                known.split("\n"), text.split("\n"), "committed", "now", n=0, lineterm="")]))


def check_once(path, tolerance=1e-9):
    """Of a database in the XML form, whose functions and loops have the values of what is in them once more: each node
    has its own value and those of its children, so that nothing counts twice."""
    frame = Frame(path)
    pairs = [(c, c + " (inc)") for c in frame.columns if c + " (inc)" in frame.columns]
    expect(pairs, f"{path}: columns {frame.columns}")
    for own, inclusive in pairs:
        sums = [node[4].get(own, 0) for node in frame.nodes]
        for node in frame.nodes:
            if node[2] is not None:
                sums[node[2]] += node[4].get(inclusive, 0)
        for node, found in zip(frame.nodes, sums):
            expect(math.isclose(found, node[4].get(inclusive, 0), rel_tol=tolerance), f"{path}: {node}: in it are {found} of {own}")


def check_functions(path):
    """The function of a database in the XML form that is called at two lines is one function."""
    for operation, column, value in (("flat", "time (inc)", 930e-6), ("callgraph", "time (inc)", 930e-6), ("callers", "time", 310e-6)):
        result = subprocess.run([str(BUILD / "hpcquery"), operation, ":", "csv", str(path)], capture_output=True, check=True, text=True)
        rows = [row for row in csv.DictReader(result.stdout.splitlines()) if row["name"] == "work"]
        rows = rows if operation == "callgraph" else [row for row in rows if not row["parents"]]
        expect(len(rows) == 1 and math.isclose(float(rows[0][column]), value), f"{operation}: {rows}")


def check_exports(scratch):
    """What hpcquery writes for other tools, read again, has the totals of what it was written from."""
    shutil.copy(GOLDEN / "inputs" / "hatchet.json", scratch / "exported")
    columns = {"folded": "samples", "speedscope": "time", "pprof": "time", "literal": "time"}
    total = sum(node[4].get("time", 0) for node in Frame(scratch / "exported").nodes)
    for form, column in columns.items():
        path = scratch / f"exported.{form}"
        subprocess.run([str(BUILD / "hpcquery"), "export", form, "-M", "time", "-o", str(path), str(scratch / "exported")], check=True)
        found = sum(node[4].get(column, 0) for node in Frame(path).nodes)
        expect(math.isclose(found, total, rel_tol=1e-9), f"{form}: the total is {found}, not {total}")


def check_drawn(scratch):
    """A drawing of ours, read again, has the names that it shows and the parts of the total; so has one of Hatchet's, by number."""
    nodes = [("main", 10, 1), ('say "hi" \\ a', 9, 6), ("n1", 3, 3)]
    made = None
    for name, whole, own in reversed(nodes):
        made = {"frame": {"name": name, "type": "function"}, "metrics": {"time": own, "time (inc)": whole}, "children": [made] if made else []}
    (scratch / "drawn.json").write_text(json.dumps([made]), encoding="utf-8")
    subprocess.run([str(BUILD / "hpcquery"), "export", "dot", "-o", str(scratch / "drawn.dot"), str(scratch / "drawn.json")], check=True)
    found = [(name.replace("\\\\", "\\"), values.get("time (inc)"), values.get("time")) for _, name, _, _, values in Frame(scratch / "drawn.dot").nodes]
    expect(found == [(name, 10 * whole, 10 * own) for name, whole, own in nodes], f"a drawing read again: {found}")
    (scratch / "numbered.dot").write_text('strict digraph {\n "0" [label="main"];\n "1" [label="work"];\n "0" -> "1";\n}\n', encoding="utf-8")
    expect([node[1] for node in Frame(scratch / "numbered.dot").nodes] == ["main", "work"], "Hatchet's to_dot")


def check_depth(scratch):
    """A chain of nodes that no recursion could follow."""
    n, chain = 200000, scratch / "chain.json"
    chain.write_text("[" + '{"frame": {"name": "f", "type": "function"}, "metrics": {"time": 1}, "children": [' * n + "]}" * n + "]",
                     encoding="utf-8")
    lines = listed(chain).split("\n")
    expect(lines[0] == f"{n} nodes, a tree" and f"^{n - 2} | time 1" in lines[-2], f"a chain: {lines[0]} ... {lines[-2]}")


# --- damage ---


def check_damaged(path, what, opened):
    """The file path, damaged, of the input opened."""
    result = open_frame(opened, "--cells")
    words = result.stderr.decode(errors="replace")
    place = re.search(r"offset \d|line \d|the number \d|not a profile that can be read|cannot open|the file is empty", words)
    fits = result.returncode == 0 or (result.returncode == 1 and words.count("\n") == 1 and place and str(opened) in words)
    expect(fits, f"{path.name}, {what}: status {result.returncode}: {words[:500]}")


def damage(path, opened, rng, n_cases):
    data = path.read_bytes()
    cuts = sorted({rng.randrange(len(data)) for _ in range(n_cases)} | {0, 1, len(data) - 1})
    for n in cuts:
        path.write_bytes(data[:n])
        check_damaged(path, f"cut to {n} bytes", opened)
    for i in range(n_cases):
        changed = bytearray(data)
        where = [rng.randrange(len(data)) for _ in range(rng.choice((1, 1, 2, 5)))]
        for at in where:
            changed[at] = rng.choice((0, 255, 128, changed[at] ^ (1 << rng.randrange(8)), rng.randrange(256)))
        path.write_bytes(changed)
        check_damaged(path, f"changed at {where} (case {i})", opened)
    path.write_bytes(data)


def check_damage(found, scratch):
    rng = random.Random(7)
    for name, source in found.items():
        copy = scratch / "damaged" / name
        copy.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(source, copy)
        for path in sorted(copy.rglob("*")) if copy.is_dir() else [copy]:
            if path.is_file() and path.name != "trace.db":
                damage(path, copy, rng, 40)
    noise = scratch / "noise"
    for n in (0, 1, 100, 70000):
        noise.write_bytes(rng.randbytes(n))
        result = open_frame(noise)
        said = b"not a profile that can be read; these can: a saved result" if n else b"noise: the file is empty"
        expect(result.returncode == 1 and said in result.stderr,
               f"noise of {n} bytes: {result.stderr}")
    (scratch / "empty").mkdir()
    expect(b"not a profile" in open_frame(scratch / "empty").stderr, "an empty folder is read")
    expect(b"No such file" in open_frame(scratch / "nowhere").stderr, "a file that is not there is read")
    wide = scratch / "wide.json"
    wide.write_text("[" + ", ".join('{"frame": {"name": "f"}, "metrics": {"m%d": 1}}' % i for i in range(20000)) + "]", encoding="utf-8")
    expect(b"20001 columns and attributes of 20000 nodes are too many" in open_frame(wide).stderr, "a column for each node is read")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    expect(peak < MEMORY_KIB or os.environ.get("LOCUS_SANITIZER"), f"reading damaged files took {peak} KiB")


# --- a database of ours ---


def measured(directory):
    """Variables of all classes with their accesses, on three threads of two ranks."""
    app = "/nowhere/app"
    start = [(app, 0x1010), (app, 0x2020)]
    variables = [m.heap(start + [(app, 0x3030)], size=1 << 20), m.reason("DATACENTRIC_No_Compute"),
                 m.by_address("DATACENTRIC_Static", app, 0x404040, "static", "grid", 8192),
                 m.by_address("DATACENTRIC_Stack", app, 0x3030, "stack")]
    for rank, thread in ((0, 0), (0, 1), (1, 0)):
        profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000), ("FAULTS", m.INT, 1)], rank=rank, thread=thread, pid=100 + rank)
        for i, variable in enumerate(variables):
            profile.sample(start + [(app, 0x5000 + 16 * i)], {0: 10 * i + thread + 1, 1: rank}, variable)
        profile.write(directory)


def check_ours(scratch):
    measured(scratch / "measured")
    if os.environ.get("LOCUS_NATIVE_BUILDDIR"):
        print("SKIP (part): the reports of our databases are for little-endian machines only")
        return
    database = scratch / "ours"
    subprocess.run([str(BUILD / "hpcprof"), "-q", "-o", str(database), "--xml", str(scratch / "xml"), str(scratch / "measured")], check=True)
    check_cells(database)
    frame = Frame(database)
    check_forms(frame, Frame(scratch / "xml"))
    by_id = {node[3].get("id"): node for node in frame.nodes}
    n_values = 0
    for metric in ("EADDR (usec)", "FAULTS"):
        rows = []
        for report in ("tree", "datatree"):
            command = [str(BUILD / "hpcquery"), report, "--csv", "--top", "0", "--metric", metric, str(database)]
            rows += csv.DictReader(subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines())
        for row in rows:
            kind, name, _, _, values = by_id.get(row["id"], (None, None, None, None, {}))
            expect(kind == row["kind"], f"{row}: the frame has a {kind}")
            expect(row["name"] in (name, ""), f"{row}: the frame has {name}")
            same = [math.isclose(values.get(metric + suffix, 0), float(row[key]), rel_tol=1e-9)
                    for suffix, key in ((" (inc)", "inclusive"), (" (function)", "exclusive"))]
            expect(all(same), f"{row}: the frame has {values}")
            n_values += 1
    expect(n_values > 40, f"only {n_values} nodes of hpcquery are compared")
    found = collections.Counter(node[0] for node in frame.nodes)
    expect(found["variable"] == 3, f"{found['variable']} variables, not 3: {found}")
    check_variables(database, frame)
    opened = scratch / "damaged" / "ours"
    shutil.copytree(database, opened)
    damage(opened / "locus.db", opened, random.Random(8), 150)
    (opened / "locus.db").unlink()
    expect(collections.Counter(node[0] for node in Frame(opened).nodes) == found, "without locus.db the kinds are other ones")
    places = sorted(re.findall(r"rank (\d+) thread (\d+) ", "\n".join(frame.profiles)))
    expect(places == [("0", "0"), ("0", "1"), ("1", "0")], f"profiles {frame.profiles}")


def check_forms(one, other):
    """Functions and variables have the same values in both forms of a database: names, sums and units."""
    hidden = [c for c in one.columns if c.endswith(" (function)")]
    expect(set(one.columns) - set(hidden) == set(other.columns), f"columns {one.columns} and {other.columns}")
    for column in other.columns:
        values = [sorted((kind, name, value[column]) for kind, name, _, _, value in frame.nodes
                          if kind in ("function", "variable") and value.get(column))
                  for frame in (one, other)]
        same = len(values[0]) == len(values[1]) and all(
            a[:2] == b[:2] and math.isclose(a[2], b[2], rel_tol=1e-9) for a, b in zip(*values))
        expect(same, f"{column} differs between the forms of a database: {values}")
    expect({"time", "time (inc)"} < set(other.columns) and 0.1 < other.total("time (inc)") < 1, f"seconds: {other.total('time (inc)')}")


def check_variables(database, frame):
    """Every row of `hpcquery vars`: the nodes of the variable have its name and class, the topmost of them its cost and size."""
    lines = [line for line in listed(database).split("\n") if " id=" in line]
    named = [re.search(r" class=(\S+) variable=(.*?)(?: size=(\d+))?(?: blocks=(\d+))?(?: (?:site|element_\w+)=.*?)?(?: \||$)", line)
             for line in lines]
    trees = ["data" if " tree=data" in line else "code" for line in lines]
    roots = [node[2] is None for node in frame.nodes]
    expect(len(named) == len(frame.nodes) and [t for t, r in zip(trees, roots) if r] == ["code", "data"], f"roots: {lines}")
    expect(all(r or t == trees[n[2]] for t, r, n in zip(trees, roots, frame.nodes)), "a tree has nodes of the other one")
    result = subprocess.run([str(BUILD / "hpcquery"), "vars", "--csv", str(database)], capture_output=True, check=True, text=True)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    for row in rows:
        tops = [i for i, found in enumerate(named) if found and found[2] == row["variable"] and
                not (named[frame.nodes[i][2]] and named[frame.nodes[i][2]][2] == row["variable"])]
        expect({named[i][1] for i in tops} == {row["class"]}, f"{row}: classes of {tops}")
        expect(math.isclose(sum(frame.nodes[i][4]["EADDR (usec) (inc)"] for i in tops), float(row["value"])), f"{row}: cost of {tops}")
        kinds = {frame.nodes[i][0] for i in tops}
        expect(kinds == {"group" if row["class"] == "unattributed" else "variable"}, f"{row}: {kinds}")
        for i in tops:
            known = [named[i][k] or "0" for k in (3, 4)]
            expect(known == [row["size_bytes"] or "0", row["n_blocks"] or "0"], f"{row}: size and blocks are {known}")
    expect(len(rows) == 4 and sum(found is not None for found in named) > 20, f"{len(rows)} variables")


def check_costs(scratch):
    """Costs of callgrind that are no plain numbers, and more parts than functions with costs in them."""
    path = scratch / "costs.out"
    for text, sentence in (("nan", "a cost is no number"), ("inf", "a cost is no number"), ("-", "a cost is no number"),
                           ("1e999", "a cost is no number"), ("1\ncfn=b\ncalls=-3 1\n1 4", "a call has no number"),
                           ("1\ncfn=b\ncalls=nan 1\n1 4", "a call has no number")):
        path.write_text(f"events: Ir\nfn=a\n1 {text}\n", encoding="utf-8")
        result = open_frame(path)
        expect(result.returncode == 1 and sentence.encode() in result.stderr, f"a cost of {text}: {result.stderr}")
    path.write_text("events: Ir\nfn=a\n1 -5\n1 1e3\nfn=b\n1 99999999999999999999999\n",
                    encoding="utf-8")
    values = {node[1]: node[4]["Ir"] for node in Frame(path).nodes}
    expect(values == {"a": 995, "b": 1e23}, f"costs that are no small numbers: {values}")
    path.write_text("events: Ir Dr\nfn=a\n1 1 2\nfn=b\n1 3 4\nfn=c\n1 5 6\n" +
                    "".join(f"part: {i}\nevents: Ir\nfn=c\n1 {i}\n" for i in range(2, 50)) +
                    "part: 50\nevents: Ir Dr\nfn=b\n1 7 8\nfn=a\n1 9\n", encoding="utf-8")
    values = {node[1]: (node[4]["Ir"], node[4].get("Dr")) for node in Frame(path).nodes}
    expect(values == {"a": (10, 2), "b": (10, 12), "c": (5 + sum(range(2, 50)), 6)}, f"costs of many parts: {values}")


def check_callgrind(scratch):
    """A file that callgrind writes: the functions' own costs add up to its totals, and to those by name."""
    if not shutil.which("valgrind") or not shutil.which("callgrind_annotate"):
        print("SKIP: a file of callgrind itself: there is no valgrind")
        return
    path = scratch / "callgrind.out"
    result = subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes", f"--callgrind-out-file={path}",
                             "/bin/true"], capture_output=True, check=False)
    expect(result.returncode == 0, f"valgrind: {result.stderr}")
    frame = Frame(path)
    total = re.search(r"^totals: (\d+)", path.read_text(encoding="utf-8"), re.M)
    expect(sum(node[4].get("Ir", 0) for node in frame.nodes) == int(total[1]), f"callgrind's {total[0]} are other ones here")
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show=Ir", str(path)], capture_output=True, check=True,
                          text=True).stdout
    known, found = collections.Counter(), collections.Counter()
    for cost, name in re.findall(r"^ *([\d,]+) \([^)]*\) +\S+?:(.*?)(?: \[[^\]]*\])?$", text, re.M):
        known[name] += int(cost.replace(",", ""))
    for node in frame.nodes:
        found[node[1]] += node[4].get("Ir", 0)
    expect(len(known) > 20 and all(found[name] == cost for name, cost in known.items()),
           f"callgrind_annotate and the frame differ in {[(n, c, found[n]) for n, c in known.items() if found[n] != c][:5]}")


# --- databases of others ---


def check_others():
    """Nodes, profiles and rows as the facts of the samples have them, and their values as cct.db has them."""
    hatchet = DATA / "hatchet"
    if not hatchet.exists():
        print(f"SKIP: databases of HPCToolkit itself: {hatchet} is not there")
        return
    for database in (hatchet / "hatchet_cpi_v4_database", *sorted((DATA / "develop-dbase").glob("*.d"))):
        check_cells(database)
    for name, n_nodes, n_profiles, total in (("hatchet_cpi_v4_database", 205, 16, None), ("hpctoolkit-cpi-database", 34, 4, 3.998242),
                                             ("hpctoolkit-allgather-database", 1474, 20, None)):
        frame = Frame(hatchet / name)
        expect((len(frame.nodes), len(frame.profiles)) == (n_nodes, n_profiles),
               f"{name}: {len(frame.nodes)} nodes, {len(frame.profiles)} profiles")
        expect(total is None or math.isclose(frame.total("time (inc)"), total, rel_tol=1e-9),
               f"{name}: {frame.total('time (inc)')} in all")
        n_rows = len(frame.nodes) * len(frame.profiles)
        expect(n_rows in (3280, 136, 29480), f"{name}: {n_rows} rows")
        expect(frame.columns[:2] in (["time", "time (inc)"], ["time (inc)", "time"]), f"{name}: columns {frame.columns}")
    check_table(hatchet / "hpctoolkit-cpi-database", hatchet / "hpctoolkit-cpi-graphframe.csv")
    for database, tolerance in ((hatchet / "hpctoolkit-allgather-database", 1e-9), (DATA / "hpcviewer-gauss", 1e-9),
                                (DATA / "datacentric-03.10" / "database", 1e-4)):
        check_once(database, tolerance)


def check_cells(database):
    """Sums and single values of a version 4 database, read by other code."""
    meta = v4.read(database / "meta.db")
    blocks = v4.read(database / "cct.db")["contexts"]
    summary = next(i for i, p in enumerate(v4.read(database / "profile.db")["profiles"]) if not p["ids"])
    scopes = [scope[0] for scope in meta["scopes"]]
    columns = {}
    for metric in meta["metrics"]:
        name = "time" if metric["name"] == "CPUTIME (sec)" else metric["name"]
        for scope, number in metric["instances"]:
            if scopes[scope - 1] in ("function", "execution"):
                columns[name + (" (inc)" if scopes[scope - 1] == "execution" else " (function)")] = number
    n_values = 0
    check_own(database)
    for line in listed(database, "--cells").split("\n"):
        row = re.search(r" id=(\d+)", line)
        found = {v[0]: (float(v[1]), v[2]) for v in re.findall(r"\| (.+?) (-?[\d.e+-]+) \(([^)]*)\)", line)}
        for name, number in columns.items() if row else ():
            known = {p - (p > summary): v for p, metric, v in blocks[int(row[1])] if metric == number}
            total, cells = found.get(name, (0, ""))
            cells = {int(c.split(":")[0]): float(c.split(":")[1]) for c in cells.split()}
            same = cells.keys() == known.keys() and all(math.isclose(cells[p], known[p], rel_tol=1e-8) for p in known)
            expect(same and math.isclose(total, sum(known.values()), rel_tol=1e-8), f"{database.name}: {name} of {line}: {known}")
            n_values += len(known)
    expect(n_values > 10, f"{database}: {n_values} values")


def check_own(database):
    """Exclusive values are those of the nodes alone: what the inclusive ones have beyond their children's."""
    frame, n_values = Frame(database), 0
    for column in [c for c in frame.columns if c + " (inc)" in frame.columns]:
        left = [node[4].get(column + " (inc)", 0) for node in frame.nodes]
        for node in frame.nodes:
            if node[2] is not None:
                left[node[2]] -= node[4].get(column + " (inc)", 0)
        for i, (node, value) in enumerate(zip(frame.nodes, left)):
            found = node[4].get(column, 0)
            expect(math.isclose(found, value, rel_tol=1e-7, abs_tol=1e-7 * node[4].get(column + " (inc)", 0)),
                   f"{database.name}: {column} of node {i} {node}: {found}, not {value}")
            n_values += found != 0
    expect(n_values > 0, f"{database}: no values of nodes alone")


def check_table(database, table):
    """Every value that Hatchet expects of a database, in microseconds, by row number and rank."""
    cells = {}
    for line in listed(database, "--cells").split("\n"):
        row = re.search(r" id=(\d+)", line)
        for column, of in re.findall(r"\| (time(?: \(inc\))?) \S+ \(([^)]*)\)", line):
            cells.update({(row[1], rank, column): float(v) for rank, v in (c.split(":") for c in of.split())})
    n_values = 0
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
        for column in ("time", "time (inc)"):
            value = cells.get((row["nid"], row["rank"], column), 0)
            expect(math.isclose(value, float(row[column]) / 1e6, rel_tol=1e-9), f"{database.name}: {value} in {column} of {row}")
            n_values += 1
    expect(n_values == 272, f"{table}: {n_values} values")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        found = inputs(scratch)
        check_golden(found)
        check_once(found["xml-db"])
        check_functions(found["xml-db"])
        check_once(found["sums.xml"])
        check_exports(scratch)
        check_drawn(scratch)
        check_depth(scratch)
        check_damage(found, scratch)
        check_ours(scratch)
        check_costs(scratch)
        check_callgrind(scratch)
        check_others()
    for sentence in failures[:20]:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
