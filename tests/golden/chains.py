# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery's operations on frames: chains of them on random trees, as Hatchet literals, must give what the model in
frame-model.py gives; the grammar of the words, forms, files, and what is said about nonsense."""
import csv
import importlib.util
import json
import math
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402
import v4  # noqa: E402

spec = importlib.util.spec_from_file_location("model", SOURCE / "tests" / "golden" / "frame-model.py")
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
NAMES = ("main", "solve", "f", "g", "MPI_Send", "a b", "it's")
COLUMNS = (("time", 1), ("time (inc)", 2), ("loads", 1))
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*words, status=0, columns=100):
    environment = dict(os.environ, LC_ALL="C.UTF-8", COLUMNS=str(columns))
    done = subprocess.run([str(BUILD / "hpcquery"), *map(str, words)], capture_output=True, text=True, check=False, env=environment)
    expect(done.returncode == status, f"{words}: status {done.returncode}, not {status}: {done.stderr}")
    expect((done.stderr.count("\n") == 1) if status not in (0, 3) else not done.stderr, f"{words}: says {done.stderr!r}")
    return done


def refused(status, says, *words):
    """The command fails with one message that has the words of says."""
    done = run(*words, status=status)
    expect(done.stderr.startswith("hpcquery: ") and says in done.stderr, f"{words}: {done.stderr!r} does not say {says!r}")
    expect(not done.stdout, f"{words}: prints {done.stdout!r}")


# --- the same as the model ---


def make_tree(rng):
    """A tree as frame-model.py reads it."""
    n = rng.randint(2, 14)
    nodes = [[rng.choice(("function", "function", "loop", "line", "group")), rng.choice(NAMES), rng.choice(("", "a.c")), 0]
             for _ in range(n)]
    for node in nodes:
        if node[0] in ("loop", "line"):
            node[3] = rng.choice((1, 7))
    edges = [[rng.randrange(i), i] for i in range(1, n) if rng.random() < 0.9]
    columns = [[name, sums, [[i, 0, rng.randint(-4, 40) / 4] for i in range(n) if rng.random() < 0.8]] for name, sums in COLUMNS]
    for column in columns:
        column[2] = column[2] or [[0, 0, 1.0]]
    return {"profiles": [[-1, -1, ""]], "nodes": nodes, "edges": edges, "columns": columns, "attributes": {}}


def write_literal(spec, path):
    """Metrics of all columns at every node, so that the columns keep their order: missing ones are nan."""
    values = [{node: value for node, _, value in column[2]} for column in spec["columns"]]
    kids = {i: [e[1] for e in spec["edges"] if e[0] == i] for i in range(len(spec["nodes"]))}

    def node(i):
        kind, name, file, line = spec["nodes"][i]
        frame = {"name": name, "type": kind, "file": file} | ({"line": line} if line else {})
        metrics = {column[0]: values[k].get(i, math.nan) for k, column in enumerate(spec["columns"])}
        return {"frame": frame, "metrics": metrics, "children": [node(k) for k in kids[i]]}
    below = {e[1] for e in spec["edges"]}
    path.write_text(json.dumps([node(i) for i in kids if i not in below]), encoding="utf-8")


def filtered(frame, column, bound):
    values = next(c[2] for c in frame.columns if c[0] == column)
    return model.squash(frame, [(values.total(i) if values.total(i) is not None else -math.inf) > bound for i in range(frame.n)])


def queried(frame, bound):
    values = next(c[2] for c in frame.columns if c[0] == "time")
    found = model.find(frame, [("*", lambda i: True), (".", lambda i: (values.total(i) or -math.inf) > bound)])
    return model.squash(frame, [i in found for i in range(frame.n)])


def random_step(rng):
    """(words, function of a frame)."""
    bound = rng.randint(0, 8)
    return rng.choice((
        (("filter", f"time > {bound}"), lambda f: filtered(f, "time", bound)),
        (("filter", f"'time (inc)' > {bound}"), lambda f: filtered(f, "time (inc)", bound)),
        (("query", f'["*", {{"time": "> {bound}"}}]'), lambda f: queried(f, bound)),
        (("query", f'MATCH ("*")->(p) WHERE p."time" > {bound}'), lambda f: queried(f, bound)),
        (("flat",), model.flat), (("inclusive",), model.sum_up), (("group", "name"), model.group_by_name),
        (("callers", "2"), lambda f: model.bottom_up(f, 2)), (("callers",), lambda f: model.bottom_up(f, 0)),
        (("callgraph",), lambda f: model.callgraph(f, False)), (("callgraph", "collapsed"), lambda f: model.callgraph(f, True)),
        (("derive", "d", "2 * loads"), lambda f: model.derive(f, "d", ("*", ("number", 2.0), ("column", "loads")))),
    ))


def random_join(rng):
    name = rng.choice(("union", "add", "subtract", "multiply", "divide"))
    return (name,), (lambda a, b: model.union([a, b])) if name == "union" else lambda a, b: model.arithmetic(a, b, name)


def shown(frame):
    """What --json says of a frame of the model."""
    return [{"node": i, "parents": frame.parents[i], "kind": frame.nodes[i][0], "name": frame.nodes[i][1],
             "file": frame.nodes[i][2], "line": frame.nodes[i][3], "values": {c[0]: c[2].total(i) for c in frame.columns}}
            for i in range(frame.n)]


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return a == b


def check_case(rng, scratch):
    specs = [make_tree(rng) for _ in range(2)]
    paths = [scratch / f"random{i}.json" for i in range(2)]
    for tree, path in zip(specs, paths):
        write_literal(tree, path)
    frames, words = [model.Frame.read(s) for s in specs], []
    n_inputs = rng.choice((1, 1, 2))
    frames = frames[:n_inputs]
    join_at = rng.randrange(2) if n_inputs == 2 else -1
    for i in range(rng.randint(2, 3)):
        if i == join_at:
            step, join = random_join(rng)
            frames = [join(*frames)]
        else:
            step, change = random_step(rng)
            frames = [None if f is None else change(f) for f in frames]
        words += [*step, ":"]
        if any(f is None for f in frames) or not all(c[0] in [c[0] for c in f.columns] for f in frames for c in COLUMNS):
            break
    if len(frames) > 1:
        words += ["union", ":"]
        frames = None if None in frames else [model.union(frames)]
    if frames is None or frames[0] is None:
        run(*words, "json", *paths[:n_inputs], status=1)
        return
    if not frames[0].columns:
        return
    done = run(*words[:-1], "--json", *paths[:n_inputs])
    answer = json.loads(done.stdout)["nodes"] if done.returncode == 0 else []
    for node in answer:
        node.pop("module"), node.pop("attributes")
    expect(same(shown(frames[0]), answer), f"{words}: {json.dumps(specs)}: {answer}, not {shown(frames[0])}")


# --- words ---


def check_grammar(scratch):
    a, b = scratch / "a.json", scratch / "b.json"
    refused(2, "there is no report or operation 'tabel'; did you mean 'table'", "filter", "time > 5", ":", "tabel", a)
    refused(2, "there is no report or operation 'nonsense'", "nonsense", a)
    refused(2, "there is no step before the first :", ":", "flat", a)
    refused(2, "there is no step before the next :", "flat", ":", ":", "table", a)
    refused(2, "give an input after the last step", "filter", "time > 5")
    refused(2, "filter: give its operands: CONDITION", "filter", ":", "flat", a)
    refused(2, "flat has no operands", "flat", "x", ":", "table", a)
    refused(2, "these steps work on one input, not on 2", "flat", a, b)
    refused(2, "these steps work on two inputs, not on 1", "add", a)
    refused(2, "these steps work on two inputs, not on 3", "add", a, b, b)
    refused(2, "give one or more inputs after the last step", "union", ":", "tree")
    refused(2, "nothing follows table but inputs", "table", ":", "flat", a)
    refused(2, "there is no form 'nonsense'; there are: 'tree', 'table', 'csv', 'json'", "export", "nonsense", a)
    refused(2, "there is no form 'flat'", "export", "flat", a)
    refused(2, "give a form and an input after export", "export", "folded")
    refused(2, "--csv and folded do not go together", "folded", "--csv", a)
    refused(2, "--paths goes with vars, ", "flat", "--paths", a)
    refused(1, "the fields that its code touches are not known", "flat", "--fields", a)
    refused(2, "--by goes with vars, ", "flat", "--by", "region", a)
    refused(2, "--derive takes a name", "flat", "--derive", "x + 1", a)
    refused(2, "--html goes with vars, not with operations and forms", "flat", "--html", a)
    refused(1, "step 2, add: add works on 2 profiles, not on 1", "union", ":", "add", a, b)
    same_words = [run("flat", "--json", a), run("flat", ":", "json", a), run("flat", ":", "--json", a), run("flat", ":", "json", ":", a)]
    expect(len({done.stdout for done in same_words}) == 1, "a : before the inputs changes something")
    expect(run("union", ":", "callers", a, b).stdout == run("union", ":", "callers", ":", a, b).stdout, "callers a b")
    expect(run("union", ":", "callers", "0", a, b).stdout == run("union", ":", "callers", "0", ":", a, b).stdout, "callers [DEPTH]")
    expect(run("folded", a).stdout == run("export", "folded", a).stdout, "export FORM is not FORM")
    expect(run("tree", a).stdout == run("export", "tree", a).stdout, "tree of another's file is not the form")
    run("flat", "-o", scratch / "out.csv", "--csv", a)
    expect((scratch / "out.csv").read_text() == run("flat", "--csv", a).stdout, "-o writes something else")
    run("flat", "-o", "/dev/null", a)
    refused(1, "nowhere/out", "flat", "-o", scratch / "nowhere" / "out", a)


def make_set(rng):
    """A set of a regular expression, as Python reads it: no class, no range that ends in an escape."""
    elements = [rng.choice(("a", "k", "z", "b-f", "0-3", ".", "$", ":", r"\]", r"\[", r"\^", r"\-", r"\\", r"\d")) for _ in range(rng.randint(1, 4))]
    return "[" + rng.choice(("", "^")) + rng.choice(("", "", "]")) + "".join(elements) + "]"


def check_patterns(scratch):
    """Sets match the characters that they match in Python."""
    rng = random.Random(7)
    names = [chr(c) for c in range(33, 127)]
    path = scratch / "characters.json"
    path.write_text(json.dumps([{"frame": {"name": name, "type": "function"}, "metrics": {"time": 1}, "children": []} for name in names]))
    for _ in range(60):
        pattern = make_set(rng) + rng.choice(("", "+", "|%"))
        quoted = pattern.replace("\\", "\\\\")
        lines = run("filter", f'name matches "{quoted}" or name = "#"', ":", "csv", path).stdout.splitlines()
        found = {row["name"] for row in csv.DictReader(lines)}
        wanted = {name for name in names if re.fullmatch(pattern, name)} | {"#"}
        expect(found == wanted, f"{pattern}: finds {sorted(found - wanted)} too, not {sorted(wanted - found)}")
    refused(1, "a set, [...], has no end", "filter", 'name =~ "[a"', path)


def check_pipes(scratch):
    """What comes through a pipe is as what lies in a file; names of fifos, which may have no writer, are refused."""
    a, wide = scratch / "a.json", scratch / "wide.json"

    def piped(command, status=0):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="100", TOOL=str(BUILD / "hpcquery"), A=str(a), WIDE=str(wide)))
        expect(done.returncode == status, f"{command}: status {done.returncode}: {done.stderr}")
        return done.stdout if status == 0 else done.stderr
    flat, union = run("flat", ":", "csv", a).stdout, run("union", ":", "csv", a, wide).stdout
    for command in ('cat "$A" | "$TOOL" flat : csv -', 'cat "$A" | "$TOOL" flat : csv /dev/stdin', '"$TOOL" flat : csv - <"$A"',
                    '"$TOOL" flat : csv <(cat "$A")'):
        expect(piped(command) == flat, f"{command} prints something else")
    expect(piped('"$TOOL" union : csv <(cat "$A") <(cat "$WIDE")') == union, "two pipes")
    expect(piped('cat "$WIDE" | "$TOOL" tree -') == run("tree", wide).stdout, "tree of a pipe")
    expect(piped('"$TOOL" diff --json <(cat "$A") "$A"') == run("diff", "--json", a, a).stdout, "diff of a pipe")
    expect(piped('cat "$A" | head -c 100 | "$TOOL" flat -', 1).startswith("hpcquery: -: "), "what is wrong with a pipe does not say which")
    expect("the file is empty" in piped('printf "" | "$TOOL" flat -', 1), "nothing at all")
    expect("not a regular file" in piped('"$TOOL" flat -', 1), "a device")
    os.mkfifo(scratch / "fifo")
    refused(1, "not a regular file", "flat", scratch / "fifo")
    refused(1, "not a regular file", "tree", scratch / "fifo")


def check_near(scratch):
    """What is like the name of a metric, function, file or variable; what is no database; texts in the wrong quotes."""
    a, ours = scratch / "a.json", scratch / "ours"
    refused(1, "has no metric 'EADR (usec)'; did you mean 'EADDR (usec)'?", "vars", "-M", "EADR (usec)", ours)
    for report in ("cpus", "patterns", "sharing", "alignment"):
        for form in ((), ("--csv",), ("--json",)):
            refused(1, "no variable is called 'gird'; did you mean 'grid'?", report, *form, "--variable", "gird", ours)
    function = next(csv.DictReader(run("functions", "--csv", ours).stdout.splitlines()))["function"]
    refused(1, f"'{function[:-1]}' is neither a file nor a function with samples; did you mean '{function}", "annotate", function[:-1], ours)
    refused(1, "hpcquery functions list those", "annotate", "zzzzzzzzzzz", ours)
    for report in ("vars", "types", "leaks"):
        refused(1, "a.json has no data accesses: it is no database of hpcprof", report, a)
    refused(1, "measured is a measurement; hpcprof makes a database from it", "flat", scratch / "measured")
    refused(1, "there is no column or attribute 'main'; texts stand in double quotes; there are: ", "filter", "name = 'main'", a)
    refused(2, "there is no report or operation 'cpu'; did you mean 'cpus'", "cpu", a)


def check_nonsense(scratch):
    a = scratch / "a.json"
    refused(1, "filter: ", "filter", "tim > 5", a)
    refused(1, "'time'", "filter", "tim > 5", a)
    refused(1, "step 2, filter: ", "flat", ":", "filter", "name > 5", a)
    refused(1, "filter: no node is left", "filter", "time > 1e9", a)
    refused(1, "query: ", "query", 'MATCH ("*")->(p) WHERE p."nothing" > 5', a)
    refused(1, "query: ", "query", "MATCH (", a)
    refused(1, "a.json: --derive: ", "flat", "--derive", "x = time +", a)
    refused(1, "a.json: --profiles: ", "flat", "--profiles", "rank = 77", a)
    refused(1, "there is no column 'cycles'", "flat", "-M", "cycles", a)
    for mistaken, said in (
            (("filter", "tmie > 5"), "there is no column or attribute 'tmie'; did you mean 'time' or 'type'?"),
            (("filter", "persentile(time, 5) > 1"), "there is no function 'persentile'; did you mean 'percentile'?"),
            (("filter", "time"), "this is a number, where a condition is needed"),
            (("filter", f'name =~ "a{"?" * 200}"'), "no regular expression: a repetition of a repetition"),
            (("query", '[{"tmie": 5}]'), "there is no column or attribute 'tmie'; did you mean 'time' or 'type'?"),
            (("query", '[{"name": "zzz"}]'), "query: no node is left"),
            (("query", 'MATCH (p) WHERE p.time > "x"'), "this is a text, where a number is needed"),
            (("derive", "x", "name"), "this is a text, where a number is needed"),
            (("choose", "rnak = 1"), "profiles have no 'rnak', but name, profile, rank, thread, process and host"),
            (("choose", "process = 7"), "no profile here tells its process, but rank or thread"),
            (("choose", "rank = 77"), "no profile is left"), (("section", "rank = 77"), "no profile is left"),
            (("aggregate", "rnak"), "not put together by 'rnak', but by rank"),
            (("aggregate", "rank", "medain"), "'medain' is no way to make one value of several: sum, mean"),
            (("group", "fiel"), "there is no attribute 'fiel'; did you mean 'file'?"),
            (("hierarchy", "modul"), "there is no attribute 'modul'; did you mean 'module'?"),
            (("hierarchy", "module"), "no node has one of the levels 'module'"),
            (("hotpath", "tmie"), "there is no column 'tmie'; did you mean 'time'?"),
            (("imbalance", "tmie"), "there is no column 'tmie'; did you mean 'time'?"),
            (("imbalance", "time", "x"), "'x' is no number of outliers"), (("callers", "x"), "'x' is no depth"),
            (("callgraph", "x"), "a call graph is 'collapsed' or nothing, not 'x'"),
            (("table", "-M", "tmie"), "there is no column 'tmie'; did you mean 'time'?")):
        refused(1, said, *mistaken, ":", a)
    refused(1, "there is no column 'tmie'; did you mean 'time'?", "diff", "-M", "tmie", a, a)
    refused(1, "a profile has no node that is a variable", "diff", "--by", "variable", a, a)
    refused(1, "exclusive: ", "exclusive", scratch / "cycle.dot")
    refused(1, "No such file", "flat", scratch / "nowhere.json")
    (scratch / "nothing").write_text("")
    for report in ("vars", "tree", "patterns", "flat"):
        refused(1, "nothing: the file is empty", report, scratch / "nothing")
    listed = set(run("--list-commands").stdout.split())
    expect({"vars", "events", "sched", "tree", "flat", "save"} <= listed, f"--list-commands: {listed}")
    refused(1, "not a profile that can be read", "flat", __file__)
    refused(1, "folded: this form needs call paths", "folded", scratch / "cycle.dot")
    done = subprocess.run(f"'{BUILD}/hpcquery' table '{scratch / 'wide.json'}' | head -n 1; echo ${{PIPESTATUS[0]}}", shell=True,
                          executable="/bin/bash", capture_output=True, text=True, check=True)
    expect(done.stdout.endswith("\n141\n") and not done.stderr, f"a broken pipe: {done}")


# --- forms ---


def literal(name, time, *children, **more):
    return {"frame": {"name": name, "type": "function"} | more, "metrics": {"time": time}, "children": list(children)}


def check_tree(scratch):
    one = scratch / "one.json"
    one.write_text(json.dumps([literal("main", 0, literal("run", 0, literal("solve", 6, literal("dot", 2), literal("axpy", 1.5),
                                                                            literal("rare", 0.05, file="/x/rare.c")), literal("io", 0.45)))]))
    expect(run("tree", one).stdout == """time: 10   (nodes below 1 % are left out)
   with     without   what is called
 100.0 %    0.0 %  main › run
  95.5 %   60.0 %    solve
  20.0 %   20.0 %      dot
  15.0 %   15.0 %      axpy
   4.5 %    4.5 %    io
""", "the tree is " + run("tree", one).stdout)
    expect("rare  rare.c" in run("tree", "--min", "0", one).stdout, "--min 0 leaves something out")
    expect(run("tree", "--top", "2", one).stdout.endswith("solve\nmore (--top 0 shows all)\n"), "--top 2")
    long_name = "std::vector<double, std::allocator<double> >& " * 4 + "end"
    wide = scratch / "wide-name.json"
    wide.write_text(json.dumps([literal("main", 1, literal(long_name, 2, file="/x/a.cc"))]))
    lines = run("table", wide).stdout.splitlines()
    expect(max(map(len, lines)) <= 100 and " ".join(" ".join(lines).split()).count(" ".join((long_name + " a.cc").split())) == 1,
           f"a long name in a table: {lines}")
    ascii_text = subprocess.run([str(BUILD / "hpcquery"), "tree", str(one)], capture_output=True, check=True,
                                env=dict(os.environ, LC_ALL="C")).stdout
    expect(b"main > run\n" in ascii_text, f"without Unicode: {ascii_text}")
    expect(run("subtract", one, one, status=0).stdout.startswith("time\n        with      without  what is called\n"),
           "differences are no percentages")
    text = run("tree", scratch / "cycle.dot").stdout
    expect(text.count("(as above)") == 1, f"a cycle: {text}")
    deep, n = scratch / "deep.json", 100000
    deep.write_text("[" + '{"frame": {"name": "f"}, "metrics": {"time": 1}, "children": [' * n + "]}" * n + "]")
    text = run("tree", "--min", "0", deep).stdout
    n_nodes = sum("[" in line for line in text.splitlines())
    expect(1900 < n_nodes < 2100 and len(text) < 100 * n and "[1990] f" in text, f"a deep tree: {text[-500:]}")
    long = scratch / "long.json"
    long.write_text(json.dumps([literal("main", 1, literal("std::map<std::string, std::vector<double> >::insert " * 4, 2, file="/src/wide.cc"))]))
    for columns in (80, 100):
        for path in (deep, long):
            text = run("tree", "--min", "0", path, columns=columns).stdout
            expect(max(map(len, text.splitlines())) <= columns, f"a line is too long for {columns}: {text[:1000]}")
    deep.write_text("[" + '{"frame": {"name": "f"}, "children": [' * n + '{"frame": {"name": "g"}, "metrics": {"time": 1}}' + "]}" * n + "]")
    text = run("tree", deep).stdout
    expect(f"more) › g\n" in text and len(text) < 300, f"a deep chain: {text[:500]}")


def check_tables(scratch):
    one = scratch / "one.json"
    text = run("table", "--top", "2", "--derive", "half = time / 2", one).stdout
    expect(text == """       time         half  name
          6            3  solve
          2            1  dot
5 more (--top 0 shows all)
""", "the table is " + text)
    expect(run("table", "-M", "time", "--derive", "half = time / 2", "--derive", " a b = 1", "--top", "1", one).stdout.splitlines()[0].split()
           == ["time", "half", "a", "b", "name"], "-M and --derive")
    expect(run("table", "-M", "half", "--derive", "half = time / 2", "--top", "1", one).stdout.split()[:2] == ["half", "name"],
           "-M shows other columns")
    rows = list(csv.DictReader(run("csv", one).stdout.splitlines()))
    expect([r["name"] for r in rows] == ["main", "run", "solve", "dot", "axpy", "rare", "io"] and rows[5]["file"] == "/x/rare.c" and
           rows[3]["parents"] == "2" and float(rows[6]["time"]) == 0.45, f"csv: {rows}")
    odd = scratch / "odd.json"
    odd.write_text(json.dumps([literal('a, "b"\n', 1, value="x,y", size=8), literal("none", math.nan)]))
    rows = list(csv.DictReader(run("csv", odd).stdout.splitlines()))
    expect(rows[0]["name"] == 'a, "b"\\x0a' and rows[0]["value"] == "x,y" and rows[0]["size"] == "8" and rows[1]["time"] == "",
           f"csv: {rows}")
    nodes = json.loads(run("json", odd).stdout)["nodes"]
    expect(nodes[0]["name"] == 'a, "b"\n' and nodes[0]["attributes"] == {"value": "x,y", "size": 8} and
           nodes[1]["values"] == {"time": None}, f"json: {nodes}")
    expect(run("export", "table", scratch / "callgrind.out.1").stdout.splitlines()[1].split()[:3] == ["40", "60", "main"],
           "callgrind: " + run("export", "table", scratch / "callgrind.out.1").stdout)


def check_modules(scratch):
    """A line lies in the module of its function, whose name a group has once."""
    path = scratch / "modules.json"
    line = {"frame": {"type": "line", "name": "a.c:3", "file": "a.c", "line": 3}, "metrics": {"time": 4}, "children": []}
    path.write_text(json.dumps([dict(literal("main", 1, line), attributes={"module": "/bin/app"})]))
    printed = run("group", "module", ":", "table", path).stdout
    expect([row.split() for row in printed.splitlines()[1:]] == [["5", "/bin/app"]], "group module: " + printed)
    kept = json.loads(run("filter", 'module = "/bin/app" and kind = "line"', ":", "json", path).stdout)["nodes"]
    expect([node["values"]["time"] for node in kept] == [4], f"filter module: {kept}")


def check_diff(scratch):
    before, after, moved = scratch / "before.json", scratch / "after.json", scratch / "moved.json"
    before.write_text(json.dumps([literal("main", 1, literal("f", 5, file="/x/a.c", line=3), literal("gone", 2),
                                          literal("same", 2, literal("f", 0, file="/x/a.c", line=3)))]))
    after.write_text(json.dumps([literal("main", 1, literal("f", 8, file="/x/a.c", line=3), literal("new", 0.5),
                                         literal("same", 2.05))]))
    moved.write_text(json.dumps([literal("main", 1, literal("wrap", 0, literal("f", 5, file="/y/b.c", line=77)), literal("gone", 2),
                                         literal("same", 2))]))
    done = run("diff", before, after, status=3)
    expect(done.stdout == """time: 10 before, 11.55 after (+15.5 %); 3 functions differ by more than 1 % of what was before
     before        after       change   of all  function
          5            8           +3    +30.0 %  f  a.c:3
          2            -           -2    -20.0 %  gone
          -          0.5         +0.5     +5.0 %  new
""", "diff prints " + done.stdout)
    expect("1 more" in run("diff", "--top", "2", before, after, status=3).stdout, "diff --top")
    expect(run("diff", "--increases", before, after, status=3).stdout == """time: 10 before, 11.55 after (+15.5 %); 2 functions increase by more than 1 % of what was before
     before        after       change   of all  function
          5            8           +3    +30.0 %  f  a.c:3
          -          0.5         +0.5     +5.0 %  new
""", "diff --increases")
    expect("1 function increases by" in run("diff", "--increases", "--threshold", "5", before, after, status=3).stdout, "one increase")
    expect("goes with diff" in run("vars", "--increases", before, status=2).stderr, "--increases without diff")
    expect("0 functions increase" in run("diff", "--increases", "--threshold", "30", before, after).stdout, "no increase")
    expect("0 functions differ" in run("diff", before, moved).stdout, "what has moved differs")
    run("diff", before, before, "--threshold", "0")
    run("diff", before, after, "--threshold", "29", status=3)
    run("diff", before, after, "--threshold", "30")
    rows = json.loads(run("diff", "--json", "--threshold", "0", before, after, status=3).stdout)["differences"]
    expect([(r["name"], r["before"], r["after"]) for r in rows] == [("f", 5, 8), ("gone", 2, None), ("new", None, 0.5),
                                                                    ("same", 2, 2.05)], f"diff --json: {rows}")
    rows = list(csv.DictReader(run("diff", "--csv", before, after, status=3).stdout.splitlines()))
    expect([r["change"] for r in rows] == ["3", "-2", "0.5"] and rows[2]["before"] == "", f"diff --csv: {rows}")
    check_same_names(scratch)
    check_noise(scratch)
    lines = [scratch / f"lines{i}.json" for i in range(2)]
    for i, path in enumerate(lines):
        path.write_text(json.dumps([literal("main", 0, *({"frame": {"type": "line", "file": f"/x{i}/a.c", "line": line},
                                                          "metrics": {"time": line + i * (line == 5)}, "children": []}
                                                         for line in (4, 5)))]))
    expect(run("diff", "--by", "line", *lines, status=3).stdout.splitlines()[2].split()[-1] == "a.c:5", "diff by line")
    refused(1, "diff: a profile has no node that is a variable", "diff", "--by", "variable", *lines)
    refused(1, "there is no column 'cycles'", "diff", "-M", "cycles", *lines)
    refused(2, "differences are by function, line or variable, not by 'file'", "diff", "--by", "file", *lines)
    refused(2, "diff compares two inputs, not 1", "diff", before)
    refused(1, "No such file", "diff", before, scratch / "nowhere.json")


def check_same_names(scratch):
    """What has the same name in two files, or two modules, is two rows; what was moved or built elsewhere is one."""
    def differences(before, after):
        paths = [scratch / "names-before.json", scratch / "names-after.json"]
        for path, functions in zip(paths, (before, after)):
            path.write_text(json.dumps([literal("main", 1, *(literal(name, time, **where) for name, time, where in functions))]))
        found = json.loads(run("diff", "--json", "--threshold", "0", *paths, status=3).stdout)["differences"]
        return sorted((r["name"], (r["file"] or r["module"]).rsplit("/", 1)[-1], r["before"], r["after"]) for r in found)

    def at(file):
        return {"file": file}
    # two static functions of two files, whose changes would cancel out
    found = differences([("init", 5, at("/b1/app/a.c")), ("init", 7, at("/b1/app/b.c"))],
                        [("init", 6, at("/b2/app/a.c")), ("init", 6, at("/b2/app/b.c"))])
    expect(found == [("init", "a.c", 5, 6), ("init", "b.c", 7, 6)], f"two files: {found}")
    # files of the same name in two folders
    found = differences([("init", 5, at("/b1/app/x/a.c")), ("init", 7, at("/b1/app/y/a.c"))],
                        [("init", 6, at("/b2/app/x/a.c")), ("init", 6, at("/b2/app/y/a.c"))])
    expect([f[2:] for f in found] == [(5, 6), (7, 6)], f"two folders: {found}")
    # one stays, one moves to another file, and one is new
    found = differences([("f", 5, at("/b/a.c")), ("f", 1, at("/b/old.c")), ("g", 3, at("/b/a.c"))],
                        [("f", 7, at("/b/a.c")), ("f", 2, at("/b/new.c")), ("g", 3, at("/b/a.c")), ("g", 4, at("/b/new.c"))])
    expect([f[0::2] + f[3:] for f in found] == [("f", 5, 7), ("f", 1, 2), ("g", None, 4)], f"moved: {found}")
    # a build without line information knows no files
    found = differences([("f", 5, at("/b/a.c"))], [("f", 8, {})])
    expect([f[2:] for f in found] == [(5, 8)], f"no file: {found}")
    found = differences([("f", 5, {}), ("f", 3, at("/b/b.c"))], [("f", 8, at("/b/a.c")), ("f", 4, at("/b/b.c"))])
    expect(sorted(f[2:] for f in found) == [(3, 4), (5, 8)], f"one file: {found}")

    def within(module, file="/b/inline.h"):
        return {"file": file, "module": module}
    # a function of a header in two libraries, whose changes would cancel out; the libraries are elsewhere, of another version
    found = differences([("f", 5, within("/old/liba.so.1")), ("f", 7, within("/old/libb.so.1"))],
                        [("f", 6, within("/new/liba.so.2")), ("f", 6, within("/new/libb.so.2"))])
    expect([f[2:] for f in found] == [(5, 6), (7, 6)], f"two libraries: {found}")
    # programs have any name, and what went into another library is the same
    found = differences([("f", 5, within("/old/app")), ("g", 2, within("/old/liba.so"))],
                        [("f", 6, within("/new/app.new")), ("g", 3, within("/new/libc.so"))])
    expect([f[2:] for f in found] == [(5, 6), (2, 3)], f"another program and library: {found}")
    # lambdas: further down in a file with as many, each is the one of its place; of another number they are one row
    lambdas = [f"{{lambda at a.cc:{line}}}::operator()" for line in (3, 5, 8, 9)]
    found = differences([(lambdas[0], 5, at("/b/a.cc")), (lambdas[1], 7, at("/b/a.cc"))],
                        [(lambdas[2], 6, at("/b/a.cc")), (lambdas[3], 6, at("/b/a.cc"))])
    expect([f[2:] for f in found] == [(5, 6), (7, 6)], f"lambdas that moved: {found}")
    found = differences([(lambdas[0], 5, at("/b/a.cc")), (lambdas[1], 7, at("/b/a.cc"))],
                        [(lambdas[0], 6, at("/b/a.cc")), (lambdas[2], 9, at("/b/a.cc"))])
    expect([f[2:] for f in found] == [(5, 6), (7, 9)], f"one lambda that moved: {found}")
    found = differences([(lambdas[0], 5, at("/b/a.cc")), (lambdas[1], 7, at("/b/a.cc"))], [(lambdas[2], 13, at("/b/a.cc"))])
    expect([f[2:] for f in found] == [(12, 13)], f"lambdas of another number: {found}")
    # the same call path in two libraries is no call path
    paths = [scratch / "libraries.json", scratch / "moved-libraries.json"]
    for path, place in zip(paths, ("old", "new")):
        path.write_text(json.dumps([literal("main", 1, literal("f", 2, **within(f"/{place}/liba.so.1")), literal("f", 4, **within("/x/libb.so")))]))
    rows = list(csv.DictReader(run("subtract", ":", "csv", *paths).stdout.splitlines()))
    expect(len(rows) == 3 and all(float(row["time"] or 0) == 0 for row in rows), f"subtract of two libraries: {rows}")


def write_threads(path, functions):
    """A file of callgrind with a part for each thread: functions {name: cost of each thread}."""
    n_threads = len(next(iter(functions.values())))
    path.write_text("# callgrind format\nversion: 1\ncreator: test\n" + "".join(
        f"pid: 1\npart: 1\nthread: {t}\nevents: Ir\n" + "".join(f"fn={name}\n1 {costs[t]}\n" for name, costs in functions.items())
        for t in range(n_threads)))


def check_noise(scratch):
    """The noise of differences, by the threads and by the number of samples, as Python's own statistics have it."""
    before, after = scratch / "callgrind.out.1", scratch / "callgrind.out.2"
    steady = [[100, 100, 100, 100], [110, 110, 109, 111]]  # every thread has more
    moved = [[100, 0, 50, 50], [20, 90, 80, 40]]  # work that other threads do now
    for i, path in enumerate((before, after)):
        write_threads(path, {"steady": steady[i], "moved": moved[i]})
    rows = json.loads(run("diff", "--json", "--threshold", "1", before, after, status=3).stdout)["differences"]
    expect([r["name"] for r in rows] == ["steady", "moved"], f"diff of threads: {rows}")
    for row, (was, now) in zip(rows, (steady, moved)):
        differences = [b - a for a, b in zip(was, now)]
        noise = 3.182446 * statistics.stdev(differences) * 4 ** 0.5
        expect(abs(row["noise"] - noise) <= 1e-6 * noise, f"noise of {row}: not {noise}")
    text = run("diff", "--threshold", "1", before, after, status=3).stdout.splitlines()
    expect(text[0].endswith("2 functions differ by more than 1 % of what was before, 1 of them not beyond the noise"), f"noise: {text}")
    expect([line.endswith("(noise?)") for line in text[2:]] == [False, True], f"noise: {text}")
    rows = json.loads(run("diff", "--json", "--beyond-noise", before, after, status=3).stdout)["differences"]
    expect([r["name"] for r in rows] == ["steady"], f"--beyond-noise: {rows}")
    write_threads(after, {"steady": steady[0], "moved": moved[1]})
    run("diff", before, after, status=3)
    run("diff", "--beyond-noise", before, after)
    for i, path in enumerate((before, after)):  # three threads say too little
        write_threads(path, {"steady": steady[i][:3]})
    rows = json.loads(run("diff", "--json", before, after, status=3).stdout)["differences"]
    expect(rows[0]["noise"] is None, f"noise of three threads: {rows}")
    expect("goes with diff" in run("vars", "--beyond-noise", before, status=2).stderr, "--beyond-noise without diff")
    # samples of 1000 us: 900 and 1000 differ by 100, and both vary by their roots; 400 and 410 do as well
    for number, counts in enumerate(((900, 400), (1000, 410))):
        profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)], thread=0, pid=100)
        for i, count in enumerate(counts):
            start = [("/nowhere/app", 0x1010), ("/nowhere/app", 0x2000 + 0x1000 * i)]
            profile.sample(start, {0: count}, m.reason("DATACENTRIC_No_Compute"))
        profile.write(scratch / f"sampled{number}")
        subprocess.run([str(BUILD / "hpcprof"), "-q", "-o", f"sampled{number}.db", f"sampled{number}"], cwd=scratch, check=True)
    rows = json.loads(run("diff", "--json", "--threshold", "0.1", scratch / "sampled0.db", scratch / "sampled1.db", status=3).stdout)["differences"]
    found = [(round(r["before"] * 1000), round(r["after"] * 1000), r["noise"] * 1000) for r in rows]
    wanted = [(900, 1000, 1.959964 * 1900 ** 0.5), (400, 410, 1.959964 * 810 ** 0.5)]
    expect(len(found) == 2 and all(abs(f - w) < 1e-6 * w for row in zip(found, wanted) for f, w in zip(*row)), f"noise of samples: {found}")
    rows = json.loads(run("diff", "--json", "--threshold", "0.1", "--beyond-noise", scratch / "sampled0.db", scratch / "sampled1.db",
                          status=3).stdout)["differences"]
    expect([round(r["before"] * 1000) for r in rows] == [900], f"--beyond-noise of samples: {rows}")


def check_save(scratch, *inputs):
    """What is saved is opened again, and nothing is missing: not even what json does not show (cells, identities)."""
    list_frame = BUILD / "tests" / "golden" / "list-frame"
    for i, (words, paths) in enumerate(inputs):
        saved = scratch / f"saved{i}"
        run(*words, "save", saved, *paths)
        expect(run(*words, "json", *paths).stdout == run("json", saved).stdout, f"{words}: {paths}: json changes when saved")
        run("save", scratch / f"again{i}", saved)
        expect((saved / "frame.db").read_bytes() == (scratch / f"again{i}" / "frame.db").read_bytes(), f"{words}: saved again, it differs")
        if not words:
            texts = [subprocess.run([str(list_frame), "--cells", str(p)], capture_output=True, check=True).stdout for p in (*paths, saved)]
            expect(texts[0] == texts[1], f"{paths}: the frame changes when saved")
        refused(1, "cannot make the directory: File exists", *words, "save", saved, *paths)
    run("export", "save", "-o", scratch / "exported", scratch / "a.json")
    run("save", scratch / "saved-alike", scratch / "a.json")
    expect((scratch / "exported" / "frame.db").read_bytes() == (scratch / "saved-alike" / "frame.db").read_bytes(), "export save")
    refused(2, "export save: give the new directory with -o DIR", "export", "save", scratch / "a.json")
    refused(1, "cannot make the directory: File exists", "export", "save", "-o", scratch / "exported", scratch / "a.json")
    (saved / "frame.db").write_bytes((saved / "frame.db").read_bytes()[:-5])
    refused(1, "frame.db: offset ", "table", saved)
    refused(2, "save: give its operands: DIR", "save", ":", saved)
    refused(2, "--json and save do not go together", "save", scratch / "x", "--json", saved)
    refused(1, "cannot make the directory: No such file", "save", scratch / "nowhere" / "x", scratch / "a.json")
    expect(sorted(p.name for p in scratch.iterdir() if "." in p.name[-8:-6]) == [], "a temporary directory is left")


def check_viewers(scratch, source):
    """The version 4 form beside frame.db keeps the rules of viewers, and holds the same nodes and values."""
    saved, alone = scratch / "for-viewers", scratch / "v4-alone"
    run("save", saved, source)
    check = subprocess.run([sys.executable, str(SOURCE / "tests" / "lib" / "check-v4.py"), str(saved)], capture_output=True, text=True,
                           check=False)
    expect(check.returncode == 0, "what is saved for viewers: " + check.stdout + check.stderr)
    shutil.copytree(saved, alone)
    (alone / "frame.db").unlink()

    def rows(path, *words):
        nodes = json.loads(run(*words, "json", path).stdout)["nodes"]
        parents = [n["parents"] for n in nodes]
        return sorted((n["kind"], n["name"], n["file"], n["line"], n["module"], len(parents[i]),
                       str(sorted((k, v and round(v, 9)) for k, v in n["values"].items()))) for i, n in enumerate(nodes))
    expect(rows(saved) == rows(alone), f"what viewers see differs: {rows(saved)}, {rows(alone)}")
    function = ("derive", "f", "'time (function)'", ":")
    expect(rows(source, *function) == rows(alone, *function), "the scope function differs")
    run("flat", ":", "save", scratch / "flat-saved", source)
    (scratch / "flat-saved" / "frame.db").unlink()
    flat = {n["name"]: n["values"]["time"] for n in json.loads(run("json", scratch / "flat-saved").stdout)["nodes"]}
    same = {n["name"]: n["values"]["time"] for n in json.loads(run("flat", ":", "json", source).stdout)["nodes"]}
    expect(flat == {source.name: None} | same, f"many roots: {flat}, not {same}")
    run("save", scratch / "graph", scratch / "cycle.dot")
    expect([p.name for p in (scratch / "graph").iterdir()] == ["frame.db"], "a graph is written as a version 4 database")


def check_databases(scratch):
    """Of HPCToolkit, and of ours: reports stay what they are."""
    v4.write_small(scratch / "small-v4")
    expect(run("tree", scratch / "small-v4").stdout, "no tree of a version 4 database")
    start = [("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)]
    for rank in (0, 1):
        profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)], rank=rank, thread=0, pid=100 + rank)
        profile.sample(start, {0: 10 + 20 * rank}, m.heap(start, size=1 << 20))
        profile.sample([("/nowhere/app", 0x1010)], {0: 5}, m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x404040, "static", "grid", 64))
        profile.write(scratch / "measured")
    ours = scratch / "ours"
    subprocess.run([str(BUILD / "hpcprof"), "-q", "-o", str(ours), str(scratch / "measured")], check=True)
    other = scratch / "other"
    profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)], rank=0, thread=0, pid=100)
    profile.sample(start, {0: 47}, m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x404040, "static", "grid", 64))
    profile.write(scratch / "measured-other")
    subprocess.run([str(BUILD / "hpcprof"), "-q", "-o", str(other), str(scratch / "measured-other")], check=True)
    rows = json.loads(run("diff", "--by", "variable", "--json", ours, other, status=3).stdout)["differences"]
    expect([(r["name"], r["before"] and round(r["before"], 6), r["after"] and round(r["after"], 6)) for r in rows if r["name"] == "grid"] ==
           [("grid", 0.01, 0.047)], f"diff by variable: {rows}")
    run("diff", "--by", "variable", ours, ours)
    rows = json.loads(run("diff", "--json", "--threshold", "0", ours, other, status=3).stdout)
    expect(math.isclose(rows["total_before"], 0.05) and math.isclose(rows["total_after"], 0.047), f"diff counts data twice: {rows}")
    expect(run("tree", ours).stdout.startswith("EADDR (usec): ") and run("tree", ours).stdout != run("export", "tree", ours).stdout,
           "tree alone is not the report")
    expect(json.loads(run("export", "json", ours).stdout)["format"] == "locus-database", "export json is not the database")
    expect(json.loads(run("table", "--json", ours).stdout)["nodes"], "table --json")
    whole, part = (json.loads(run("json", *more, "-M", "EADDR (usec) (inc)", ours).stdout)["nodes"][0]["values"]["EADDR (usec) (inc)"]
                   for more in ((), ("--profiles", "rank = 1")))
    expect(math.isclose(whole / part, 50 / 35), f"--profiles: {part} of {whole}")
    sums = {words: sum(n["values"]["EADDR (usec)"] or 0 for n in json.loads(run(*words, "json", ours).stdout)["nodes"])
            for words in (("flat", ":"), ("--tree", "both", "flat", ":"), ("group", "variable", ":"), ("--tree", "data", "flat", ":"))}
    expect([round(s / 1000) for s in sums.values()] == [50, 100, 50, 50], f"code and data are added up: {sums}")
    trees = {words: sum(n["values"]["EADDR (usec)"] or 0 for n in json.loads(run("filter", words, ":", "json", ours).stdout)["nodes"])
             for words in ('tree = "code"', 'tree = "data"', 'tree = "code" and not (name = "nowhere")')}
    expect([round(s / 1000) for s in trees.values()] == [50, 50, 50], f"a condition that names the tree chooses it: {trees}")
    refused(2, "--tree takes code, data or both", "--tree", "x", "flat", ours)
    refused(2, "--profiles goes with vars, functions, lines, annotate, export, diff and operations and forms, not with numa", "numa", "--profiles",
            "rank = 1", ours)


def check_processes(scratch):
    """Without MPI there are processes, by their numbers, and no ranks: in steps, in what they write, and in reports."""
    start = [("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)]
    threads = {(321, 0): 10, (322, 0): 20, (322, 1): 40}
    for (pid, thread), n in threads.items():
        profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)], rank=0, thread=thread, pid=pid)
        profile.sample(start, {0: n}, m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x404040, "static", "grid", 64))
        profile.write(scratch / "measured-processes")
    ours = scratch / "processes"
    subprocess.run([str(BUILD / "hpcprof"), "-q", "-o", str(ours), str(scratch / "measured-processes")], check=True)
    saved = scratch / "saved-processes"
    run("flat", ":", "save", saved, ours)

    for database in (ours, saved):
        for condition, wanted in (("process = 322", 60), ("process = 321", 10), ("process = 322 and thread = 1", 40), ("rank = 0", 70)):
            found = json.loads(run("choose", condition, ":", "flat", ":", "json", database).stdout)["nodes"]
            found = round(sum(n["values"]["EADDR (usec)"] or 0 for n in found) / 1000)
            expect(found == wanted, f"{database.name}: {condition}: {found}, not {wanted}")
        refused(1, "no profile is left", "choose", "process = 320", database)
        refused(1, "no profile is left", "choose", "rank = 1", database)
    text = run("aggregate", "process", ":", "imbalance", "time", ":", "table", ours).stdout
    expect("process 322: 0.06" in text and "rank" not in text, f"imbalance of processes: {text}")
    for words in (("export", "speedscope"), ("export", "chrome"), ("export", "html"), ("export", "flamegraph"), ("export", "csv")):
        text = run(*words, ours).stdout
        names = re.findall(r"\brank \d+", text)
        expect(not names, f"{words}: {set(names)}")
    expect('"process 322 thread 1"' in run("export", "speedscope", ours).stdout, "the names of profiles in speedscope")
    expect({event["pid"] for event in json.loads(run("export", "chrome", ours).stdout)["traceEvents"]} == {321, 322}, "processes of chrome")
    for words in (("vars",), ("vars", "-v"), ("vars", "--by", "thread"), ("vars", "--by", "process"), ("tree",), ("vars", "--json"), ("vars", "--csv")):
        text = run(*words, ours).stdout
        expect(not re.search(r"(?<![a-z])ranks?(?![a-z])", text), f"{words}: a rank: {text}")


def write_inputs(scratch):
    rng = random.Random(1)
    for name in ("a", "b"):
        write_literal(make_tree(rng), scratch / f"{name}.json")
    (scratch / "cycle.dot").write_text('digraph { m [label="main\\n100%\\n(10%)"]; f [label="f\\n90%\\n(50%)"]; g [label="g\\n40%\\n(40%)"];'
                                       " m -> f; f -> g; g -> f; }")
    (scratch / "callgrind.out.1").write_text("events: Ir\nfl=a.c\nfn=main\n1 40\ncfn=work\ncalls=1 5\n2 20\nfn=work\n5 20\n")
    (scratch / "wide.json").write_text(json.dumps([literal(f"f{i}", 1) for i in range(20000)]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        write_inputs(scratch)
        rng = random.Random(int(os.environ.get("LOCUS_FRAME_SEED", "1")))
        for _ in range(int(os.environ.get("LOCUS_CHAINS", "150"))):
            check_case(rng, scratch)
        check_grammar(scratch)
        check_pipes(scratch)
        check_nonsense(scratch)
        check_patterns(scratch)
        check_tree(scratch)
        check_tables(scratch)
        check_modules(scratch)
        check_diff(scratch)
        check_databases(scratch)
        check_processes(scratch)
        check_near(scratch)
        a, b, ours = scratch / "a.json", scratch / "b.json", scratch / "ours"
        check_save(scratch, ((), (a,)), ((), (scratch / "cycle.dot",)), ((), (ours,)),
                   (("union", ":"), (a, b, ours)), (("divide", ":"), (ours, ours)), (("callers", ":"), (scratch / "callgrind.out.1",)),
                   (("derive", "x", "100 * 'time (inc)' / time", ":"), (a,)))
        check_viewers(scratch, ours)
    for failure in failures[:20]:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
