# SPDX-License-Identifier: BSD-3-Clause
"""What only viewers ask: packed answers equal JSON; nodes are those of the database's frame, with its numbers, and folded ones keep
their sums; sources are copies that the database has, and nothing else of the file system; identities are things that there are."""
import collections
import importlib.util
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import packed  # noqa: E402
from measurement import expect, failures, run  # noqa: E402


def load(name):
    """Another golden test, as a module."""
    spec = importlib.util.spec_from_file_location(name, SOURCE / "tests" / "golden" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(database, request, status=0):
    """The answer, as JSON and packed; what was said where it fails."""
    tool, text = BUILD / "tests" / "lib" / "ask-packed", json.dumps(request)
    plain = subprocess.run([tool, "--json", database, text], capture_output=True, text=True, check=False)
    made = subprocess.run([tool, database, text], capture_output=True, check=False)
    expect(plain.returncode == made.returncode == status, f"{text}: exit status {plain.returncode}, {made.returncode}: {plain.stderr}")
    if plain.returncode or made.returncode:
        return plain.stderr
    value = json.loads(plain.stdout)
    for sentence in packed.differences(packed.Answer(made.stdout), value):
        expect(False, f"{database.name}: {text}: {sentence}")
    return value


def check_nodes(database, locus):
    """Against the frame, and against itself: parents have at least what their children have."""
    answer = ask(database, {"report": "nodes"})
    nodes = answer["nodes"]
    items = {}
    for node in nodes:
        kind = (node["item"] or "").partition(":")[0]
        if kind and kind not in items:
            items[kind] = {row["item"] for row in json.loads(run("hpcquery", "items", kind, "--json", database).stdout)["items"]}
        expect(not kind or node["item"] in items[kind], f"{database.name}: there is no {node['item']}")
    expect(any(node["item"] for node in nodes), f"{database.name}: no node is a thing")
    below = [0.0] * len(nodes)
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        expect(abs(node["value"] - node["own"] - below[i]) <= 1e-6 * node["value"], f"{database.name}: node {i} {node}: {below[i]} below")
        if node["parent"] is not None:
            expect(node["parent"] < i, f"{database.name}: node {i} comes before its parent")
            below[node["parent"]] += node["value"]
    if locus and ((database / "meta.db").exists() or (database / "experiment.xml").exists()):
        compare_frame(database, locus, answer)
    for least in (0.5, 5, 40):
        check_folded(database, nodes, answer["total"], least)
    for tree in ("code", "data"):
        part = ask(database, {"report": "nodes", "tree": tree})["nodes"]
        roots = [node["name"] for node in part if node["parent"] is None]
        expect(roots in ([], ["main thread" if tree == "code" else "<datacentric>"]), f"{database.name}: roots of {tree} are {roots}")
    expect("--tree takes code, data or both" in ask(database, {"report": "nodes", "tree": "x"}, 1), "tree x is refused")
    return len(nodes)


def compare_frame(database, locus, answer):
    """Every node of the frame with a value is there, in its order, and no other."""
    with locus.Session(database) as session:
        frame = session.frame("both")
        code, opened = session.frame(), locus.Frame.open(database)
    metric = answer["metric"]
    expect(set(code.attribute("tree")) == {"code"} and code.equal(opened), f"{database.name}: a frame has both trees unless it is said")
    expect(code.names == frame.names[:len(code)], f"{database.name}: nodes of code have other numbers where there are those of data")
    columns = [column["name"] for column in ask(database, {"report": "session"})["frame_columns"]]
    expect(set(columns) == set(frame.columns), f"{database.name}: columns of the frame are {list(frame.columns)}, not {columns}")
    own, inclusive = frame.values(metric), frame.values(metric + " (inc)")
    ids = frame.attribute("id")
    wanted = {int(ids[i]): i for i in range(len(ids)) if inclusive[i] > 0}
    expect([node["node"] for node in answer["nodes"]] == list(wanted), f"{database.name}: nodes differ from the frame's")
    for node in answer["nodes"]:
        i = wanted.get(node["node"])
        if i is None:
            continue
        found = (node["kind"], node["name"], node["value"])
        there = (frame.kinds[i], frame.names[i], inclusive[i])
        expect(found == there, f"{database.name}: node {node['node']} is {found}, in the frame {there}")
        expect(node["own"] == (0 if own[i] != own[i] else own[i]), f"{database.name}: node {node['node']} has {node['own']}, in the frame {own[i]}")


def check_folded(database, nodes, total, least):
    """Those below the least part are one row for each parent, behind its other children, with their sum."""
    folded = ask(database, {"report": "nodes", "min": least})["nodes"]
    by_number = {node["node"]: node for node in folded if node["kind"] != "small"}
    wanted = {node["node"] for node in nodes if node["value"] >= total * least / 100}
    expect(set(by_number) == wanted, f"{database.name}: {least} %: {len(by_number)} nodes, {len(wanted)} expected")
    small = {}
    for node in nodes:
        above = None if node["parent"] is None else nodes[node["parent"]]["node"]
        if node["node"] not in wanted and above in wanted:
            n, value = small.get(above, (0, 0.0))
            small[above] = (n + 1, value + node["value"])
    found = {folded[node["parent"]]["node"]: (node["name"], node["value"]) for node in folded if node["kind"] == "small"}
    expect(found.keys() == small.keys(), f"{database.name}: {least} %: folded below {sorted(found)}, expected {sorted(small)}")
    for above, (n, value) in small.items():
        expect(found.get(above, ("", 0))[0] == f"{n} small" and abs(found[above][1] - value) <= 1e-9 * value, f"{database.name}: {found.get(above)}")


def check_sources(database):
    """Copies are as they are; what is no copy is refused."""
    lines = json.loads(run("hpcquery", "lines", "--json", database).stdout)["lines"]
    n = 0
    for file in sorted({line["file"] for line in lines if line["file"]}):
        copy = database / "src" / file.lstrip("/")
        if not copy.exists():
            expect("has no copy of" in ask(database, {"report": "source", "subject": file}, 1), f"{file} is refused")
            continue
        text = copy.read_bytes().decode(errors="replace").replace("\ufffd", "?").replace("\0", "?")
        whole = ask(database, {"report": "source", "subject": file, "all": True})
        expect([(piece["first"], piece["text"]) for piece in whole["pieces"]] == ([(1, text)] if text else []), f"{file} differs from its copy")
        for piece in ask(database, {"report": "source", "subject": file})["pieces"]:
            there = text.splitlines(keepends=True)[piece["first"] - 1:][:piece["text"].count("\n") + 1]
            expect("".join(there).startswith(piece["text"]), f"{file}: line {piece['first']} differs")
        n += 1
    for path in ("/etc/passwd", "../locus.db", "locus.db", "", "main"):
        expect("names no file" in ask(database, {"report": "source", "subject": path}, 1), f"{path} is refused")
    return n


def check_long_source(scratch, database):
    """Of a long file, and of a system's, only what is around the lines with values."""
    lines = json.loads(run("hpcquery", "lines", "--json", database).stdout)["lines"]
    file = next(line["file"] for line in lines if line["file"] and (database / "src" / line["file"].lstrip("/")).exists())
    copy = database / "src" / file.lstrip("/")
    with copy.open("ab") as out:
        out.write(b"".join(b"\n/* %d \xff */" % i for i in range(20000)))
    used = {line["line"] for line in lines if line["file"] == file and line["line"]}
    text = copy.read_bytes().decode(errors="replace").replace("\ufffd", "?").split("\n")
    near = {n for line in used for n in range(max(line - 20, 1), line + 21) if n <= len(text)}
    found = {}
    for piece in ask(database, {"report": "source", "subject": file})["pieces"]:
        for i, line in enumerate(piece["text"].removesuffix("\n").split("\n")):
            found[piece["first"] + i] = line
    expect(found.keys() == near, f"{file}: lines {sorted(found)} instead of {sorted(near)}")
    expect(all(text[n - 1] == line for n, line in found.items()), f"{file}: lines differ")
    expect(len(ask(database, {"report": "source", "subject": file, "all": True})["pieces"][0]["text"]) > 200000, f"{file}: all of it")


def check_words(database):
    """session and trust against what hpcquery says."""
    session = ask(database, {"report": "session"})
    listed = run("hpcquery", "--list-commands").stdout.split()
    expect([report["report"] for report in session["reports"]] == listed[:len(session["reports"])], f"reports are {session['reports']}")
    by = {report["report"]: report["by"] for report in session["reports"]}
    expect("thread" in by["vars"] and by["leaks"] == [], f"by is {by}")
    expect("fields" in next(report["takes"] for report in session["reports"] if report["report"] == "vars"), "vars takes fields")
    model = json.loads(run("hpcquery", "export", "json", database).stdout)
    expect(session["path"] == str(database) and session["version"] in run("hpcquery", "--version").stdout, f"{session['path']}, {session['version']}")
    expect([note["text"] for note in session["notes"]] == model["notes"], f"notes are {session['notes']}")
    expect(session["metric"] in [metric["name"] for metric in session["metrics"]], f"metrics are {session['metrics']}")
    expect(len(session["threads"]) == len(model["threads"]), f"{len(session['threads'])} threads, {len(model['threads'])} in the model")
    expect(all(line["label"] or line["words"] for line in session["lines"]) and session["lines"], f"the head is {session['lines']}")
    trust = ask(database, {"report": "trust"})
    variables = json.loads(run("hpcquery", "vars", "--json", database).stdout)
    fates = {}
    for row in trust["fates"]:
        fates.setdefault(row["event"], {})[row["fate"]] = row["samples"]
    if "fates" in variables:
        sums = [sum(map(collections.Counter, some), collections.Counter()) for n in range(len(fates)) for some in itertools.combinations(fates.values(), n + 1)]
        expect(variables["fates"] in sums and trust["taken"] == variables["taken"], f"fates are {fates}, not {variables['fates']}")
    expect(trust["named_percent"] == variables["named_percent"] and trust["total_samples"] == variables["total_samples"], f"{trust}")


def main():
    answers = load("answers")
    locus, n_nodes, n_files = answers.load_package(), 0, 0
    if locus is None:
        print("SKIP (part): liblocus.so has not been built for this Python: nodes are not compared with frames")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name).resolve()
        found = answers.databases(scratch)
        for database in found:
            n_nodes += check_nodes(database, locus)
            n_files += check_sources(database)
            check_words(database)
        expect(n_files > 0, "no database has sources")
        check_long_source(scratch, next(path for path in found if path.name == "code"))
        for request, said in (({"report": "nodes", "top": 1}, "--top goes with"), ({"report": "source"}, "give FILE DB after source"),
                              ({"report": "trust", "metric": "x"}, "the database has no metric 'x'"), ({"report": "vars", "tree": "code"}, "--tree")):
            expect(said in ask(found[0], request, 1), f"{request}: not refused with {said}: {ask(found[0], request, 1)}")
    for failure in failures[:20]:
        print(f"FAIL: {failure[:1500]}")
    print(f"{n_nodes} nodes and {n_files} sources of {len(found)} databases")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
