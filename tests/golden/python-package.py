# SPDX-License-Identifier: BSD-3-Clause
"""The package locus of Python: nodes, values and cells of a frame are those that list-frame prints of the same file, with arrays of
numpy and without; operations, queries, selections, tables of pandas and the display of a notebook say the same; what is wrong is an
exception. `python-package.py --ask FILE` prints what the package makes of a file, under any interpreter that can run it. The notebook in doc shows what its cells put out;
`python-package.py --write-notebook` writes that there."""
import ast
import contextlib
import gc
import html.parser
import importlib.util
import inspect
import io
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import zipfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
if os.environ.get("LOCUS_SANITIZER"):
    print("SKIP: a program without the sanitizer cannot load a library that has it")
    sys.exit(77)
os.environ["LOCUS_LIBRARY"] = str(BUILD / ".libs" / "liblocus.so")
sys.path.insert(0, str(SOURCE / "python"))
import locus  # noqa: E402

sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402

failures = []
TREE = [{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 1.5, "time (inc)": 13.5}, "children": [
    {"frame": {"name": "f<1>", "type": "function"}, "metrics": {"time": 4, "time (inc)": 12}, "children": [
        {"frame": {"name": "g", "type": "function"}, "metrics": {"time": 8, "time (inc)": 8}}]}]}]


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def refused(what, kind, words, function, *operands):
    """The function raises an exception of this kind that says these words."""
    try:
        function(*operands)
    except kind as error:
        expect(words in str(error), f"{what}: {error}")
    else:
        failures.append(f"{what} is not refused")


def number(value):
    return None if math.isnan(value) else float(value)


def ask(path):
    """What the package says of a file."""
    frame = locus.Frame.open(path, tree="both")
    made = {"names": frame.names, "kinds": frame.kinds, "parents": [frame.parents(i) for i in range(len(frame))],
            "profiles": [p.name for p in frame.profiles], "columns": frame.all_columns, "type": type(frame.depths).__module__,
            "values": [[number(v) for v in frame.values(c)] for c in frame.all_columns],
            "cells": [[[float(x) for x in row] for row in zip(*frame.cells(c))] for c in frame.all_columns]}
    try:
        import pandas  # noqa: F401
    except ImportError:
        return made
    table = frame.to_pandas(frame.all_columns)
    made["table"] = {"names": list(table["name"]), "values": [[number(v) for v in table[c]] for c in frame.all_columns]}
    rows = frame.to_pandas(frame.all_columns, by_profile=True)
    levels = rows.index.names[1:]
    place = {tuple(p.name if level == "profile" else getattr(p, level) for level in levels): i for i, p in enumerate(frame.profiles)}
    made["rows"] = [[[float(node), float(place[tuple(at)]), float(v)] for (node, *at), v in rows[c].items() if not math.isnan(v)]
                    for c in frame.all_columns]
    return made


def listed(path):
    """The same from list-frame: names, kinds, and for each node {column: (sum, {profile: value})}."""
    text = subprocess.run([str(BUILD / "tests" / "golden" / "list-frame"), "--cells", str(path)], capture_output=True, check=True,
                          text=True, encoding="utf-8", errors="surrogateescape").stdout
    rows = []
    for line in text.split("\n"):
        found = re.match(r"\d+ +(\w+) '(.*?)'(?: |$)", line)
        if not found or line.startswith(("profile ", "column ")):
            continue
        values = {v[0]: (float(v[1]), {int(c.split(":")[0]): float(c.split(":")[1]) for c in v[2].split()})
                  for v in re.findall(r"\| (.+?) (-?inf|-?[\d.e+-]+)(?: \(([^)]*)\))?(?= \||$)", line)}
        rows.append((found[1], found[2], values))
    return rows


def near(a, b):
    return a is None and b is None or None not in (a, b) and math.isclose(a, b, rel_tol=1e-8)


def compare(path, made):
    rows = listed(path)
    expect(len(rows) > 2 and [r[1] for r in rows] == made["names"] and [r[0] for r in rows] == made["kinds"], f"{path}: nodes {made}")
    n_values = 0
    for i, column in enumerate(made["columns"]):
        sums = [r[2].get(column, (None,))[0] for r in rows]
        cells = [[n, p, v] for n, r in enumerate(rows) for p, v in r[2].get(column, (0, {}))[1].items()]
        for what, found in (("values", made["values"][i]), ("table", made.get("table", made)["values"][i])):
            expect(len(found) == len(sums) and all(map(near, sums, found)), f"{path}: {what} of {column}: {found}, not {sums}")
        for what in ("cells", "rows"):
            found = made.get(what, made["cells"])[i]
            same = len(found) == len(cells) and all(a[:2] == b[:2] and near(a[2], b[2]) for a, b in zip(sorted(found), sorted(cells)))
            expect(same, f"{path}: {what} of {column}: {found}, not {cells}")
        n_values += len(cells)
    expect(n_values > 2, f"{path}: {n_values} values")


def interpreters():
    """This one, and the first that has numpy and pandas."""
    yield sys.executable, None
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy, pandas"], capture_output=True, check=False).returncode == 0:
            yield python, "numpy"
            return
    print("SKIP: arrays of numpy and tables of pandas: no interpreter has both (python3-numpy, python3-pandas)")


class Tags(html.parser.HTMLParser):
    """That every element is closed, and the texts in it."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag):
        expect(self.open and self.open.pop() == tag, f"</{tag}> closes something else")

    def handle_data(self, data):
        self.texts.append(data)


def check_methods(path, scratch):
    frame = locus.Frame.open(path)
    expect((len(frame), frame.is_tree, frame.roots, frame.children(0), list(frame.depths)) == (3, True, [0], [1], [0, 1, 2]), "shape")
    for name, _, _, _ in locus.operations():
        expect(callable(getattr(locus.Frame, name, None)), f"frames have no method {name}")
    opaque = [name for name in dir(locus.Frame) if name[0] != "_" and callable(method := getattr(locus.Frame, name)) and any(
        p.kind == p.VAR_KEYWORD or p.name == "rest" for p in inspect.signature(method).parameters.values())]
    expect(not opaque, f"operands without names: {opaque}")
    expect([name for name in dir(locus) if name[0] != "_"] == sorted(locus.__all__), f"dir(locus) is {dir(locus)}")
    for made in (frame.group("name", edges=True, how="max"), frame.group("name", "edges", "max"), frame.group(attribute="name", how="max")):
        expect(list(made.values("time")) == [1.5, 4, 8], f"a group: {list(made.values('time'))}")
    refused("an operand that there is not", TypeError, "unexpected keyword argument 'depht'", lambda: frame.callers(depht=1))
    expect(list(frame.filter("time > 2").values("time (inc)")) == [12, 8], "filter")
    expect(list((frame + frame).values()) == [3, 8, 16] and list((frame - frame).values()) == [0, 0, 0], "arithmetic")
    expect(list(frame.derive("twice", "2 * time").values("twice")) == [3, 8, 16], "derive")
    expect(frame.hierarchy("function").names == frame.flat().names == ["main", "f<1>", "g"], "hierarchy")
    expect(list(frame.squash([True, False, True]).values("time (inc)")) == [9.5, 8], "squash")
    expect(math.isnan(frame.mask([True, False, True]).values("time")[1]), "mask")
    expect(frame.find('MATCH (".", p)->("*") WHERE p."name" = "f<1>"') == [1, 2], "find")
    expect(frame.paths('["*", {"name": "g"}]') == [[0, 1, 2], [1, 2], [2]], "paths")
    for nodes in ([1], [0, 2], [2, 1, 0]):
        for by in ("path", "node"):
            expect(frame.find(frame.select(nodes, by)) == sorted(nodes), f"select {nodes} by {by}: {frame.select(nodes, by)}")
    expect(frame.hot_path() == [0, 1, 2] and frame.hot(top=2) == [(2, 8.0), (1, 4.0)], "what is hot")
    expect(frame.sums("time (inc)") == "inclusive" and frame.default_column == "time", "columns")
    expect(list(frame.values("time", profiles=[])) != list(frame.values("time")) and list(frame.values(aggregate="count")) == [1] * 3,
           "views")
    both = frame.union(frame)
    expect(len(both.profiles) == 2 and list(both.values("time", profiles=[1])) == [1.5, 4, 8], "union")
    after, found = frame.diff(frame + frame, "time", 10)
    expect([(d.node, d.before, d.after) for d in found] == [(2, 8, 16), (1, 4, 8), (0, 1.5, 3)] and len(after) == 3, f"diff: {found}")
    frame.save(scratch / "saved")
    expect(frame.equal(locus.Frame.open(scratch / "saved")) and not frame.equal(both), "what is saved is another frame")


def check_display(path):
    frame = locus.Frame.open(path)
    page = frame._repr_html_()
    tags = Tags()
    tags.feed(page)
    expect(not tags.open and "f<1>" in tags.texts and "f<1>" not in page, f"the display: {page}")
    expect(tags.texts.index("g") < tags.texts.index("f<1>") < tags.texts.index("main") and "time" in tags.texts, f"{tags.texts}")
    expect("3 nodes" in repr(frame), repr(frame))


def check_errors(path, scratch):
    frame = locus.Frame.open(path)
    (scratch / "bad.json").write_text(json.dumps(TREE)[:90], encoding="ascii")
    refused("a file that is not there", locus.Error, "No such file", locus.Frame.open, scratch / "nowhere")
    refused("a file that is cut", locus.Error, "bad.json: line", locus.Frame.open, scratch / "bad.json")
    refused("an unknown column", locus.Error, "there is no column 'tim'; did you mean 'time'", frame.values, "tim")
    refused("an unknown attribute", locus.Error, "there is no attribute 'size'", frame.attribute, "size")
    refused("a query", locus.Error, "query: character 12", frame.find, "MATCH (p)->")
    refused("a filter", locus.Error, "character 7: the end comes", frame.filter, "time >")
    refused("a filter of nothing", locus.Error, "no node is left", frame.filter, "time > 99")
    refused("an operation without operands", locus.Error, "derive has the operands", frame.derive)
    refused("a filter without one", TypeError, "required positional argument", frame.filter)
    refused("an array that is written", ValueError, "read-only", lambda: frame.values().__setitem__(0, 1.0)) if locus.numpy else None
    refused("an aggregate", ValueError, "'all' is none of", frame.values, "time", None, "all")
    refused("a node", IndexError, "there is no node 3", frame.children, 3)
    refused("a selection", IndexError, "there is no node 7", frame.select, [7])
    refused("too few flags", ValueError, "2 flags for 3 nodes", frame.squash, [1, 1])
    refused("a NUL", ValueError, "NUL", frame.filter, "a\0b")
    with locus.Frame.open(path) as other:
        flat = other.flat()
    refused("a closed frame", ValueError, "the frame is closed", len, other)
    refused("a closed operand", ValueError, "the frame is closed", frame.union, other)
    expect("closed" in repr(other) and "closed" in other._repr_html_() and flat.names == ["main", "f<1>", "g"], "a closed frame")


def check_types(scratch):
    """mypy has nothing to say."""
    python = next((p for p in (sys.executable, "/usr/bin/python3") if subprocess.run(
        [p, "-c", "import mypy"], capture_output=True, check=False).returncode == 0), None)
    if not python:
        print("SKIP (part): no mypy")
        return
    done = subprocess.run([python, "-m", "mypy", "--ignore-missing-imports", f"--cache-dir={scratch}", "-p", "locus"],
                          capture_output=True, check=False, text=True, cwd=SOURCE / "python")
    expect(done.returncode == 0, f"mypy: {done.stdout[:2000]}{done.stderr[:500]}")


def check_wheel(scratch):
    """The version is that of the rest. A wheel, unpacked alone, has the package, which finds the library by hpcquery's place."""
    version = re.search(r"AC_INIT\(\[locus\], \[(.*?)\]\)", (SOURCE / "configure.ac").read_text(encoding="utf-8"))[1]
    expect(locus.__version__ == version, f"the package is {locus.__version__}, and the rest {version}")
    python = next((p for p in (sys.executable, "/usr/bin/python3") if subprocess.run(
        [p, "-c", "import setuptools, wheel"], capture_output=True, check=False).returncode == 0), None)
    if not python:
        print("SKIP (part): no setuptools and wheel")
        return
    shutil.copytree(SOURCE / "python", scratch / "python", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run([python, "-c", "import setuptools.build_meta as b, sys; b.build_wheel(sys.argv[1])", str(scratch)],
                          capture_output=True, check=False, text=True, cwd=scratch / "python")
    wheels = list(scratch.glob("*.whl"))
    expect(len(wheels) == 1 and wheels[0].name == f"locus-{version}-py3-none-any.whl", f"the wheel: {wheels} {done.stderr[-500:]}")
    if not wheels:
        return
    zipfile.ZipFile(wheels[0]).extractall(scratch / "unpacked")
    for folder in ("bin", "lib"):
        (scratch / "prefix" / folder).mkdir(parents=True)
    (scratch / "prefix" / "bin" / "hpcquery").write_text("#!/bin/sh\n", encoding="ascii")
    (scratch / "prefix" / "bin" / "hpcquery").chmod(0o755)
    (scratch / "prefix" / "lib" / "liblocus.so.0").symlink_to((BUILD / ".libs" / "liblocus.so.0").resolve())
    around = {k: v for k, v in os.environ.items() if k != "LOCUS_LIBRARY"}
    around.update(PATH=f"{scratch}/prefix/bin:{os.environ['PATH']}", PYTHONPATH=str(scratch / "unpacked"))
    done = subprocess.run([sys.executable, "-c", "import locus; print(locus.__version__, locus.__file__, locus._library._LIBRARY._name)"],
                          capture_output=True, check=False, text=True, env=around, cwd=scratch)
    words = done.stdout.split()
    expect(words[:1] == [version] and "unpacked" in words[1] and "prefix" in words[2], f"the wheel's package: {done.stdout}{done.stderr}")


LITERAL = [{"frame": {"name": "foo"}, "metrics": {"time (inc)": 100.0, "time": 10.0}, "children": [
    {"frame": {"name": "corge"}, "metrics": {"time (inc)": 60.0, "time": 5.0}, "children": [
        {"frame": {"name": name}, "metrics": {"time (inc)": value, "time": value}} for name, value in (("bar", 20.0), ("<b>&", 25.0), ("fred", 10.0))]},
    {"frame": {"name": "waldo"}, "metrics": {"time (inc)": 30.0, "time": 0.2}, "children": [
        {"frame": {"name": "bar"}, "metrics": {"time (inc)": 29.8, "time": 29.8}}]}]}]


def tags_of(text):
    """The elements of a page, which must all be closed."""
    tags = Tags()
    tags.feed(text)
    expect(not tags.open, f"not closed: {tags.open} in {text[:300]}")
    return tags


def check_tree():
    """What Frame.show returns, by itself: HTML that needs no script, and all that a page can ask for."""
    frame = locus.Frame.from_literal(LITERAL)
    tree, seen = frame.show(), []
    static = tree._repr_html_().partition("<script>")[0]
    texts = tags_of(static).texts
    expect(static.count("<details") == 3 and "<b>&" in texts and texts.index("foo") < texts.index("corge") < texts.index("waldo"),
           f"the static tree: {texts}")
    tree.observe(lambda change: seen.append(change["new"]))
    corge = frame.names.index("corge")
    tags_of(tree.handle({"do": "choose", "node": corge, "whole": True}))
    expect(tree.query == '[{"name": "corge"}, "*"]' and len(frame.query(tree.query)) == 4 and seen == [tree.nodes],
           f"corge with all below: {tree.query}, {seen}")
    if importlib.util.find_spec("pandas"):
        expect(tree.table.equals(frame.to_pandas().loc[tree.nodes]), "the table of the chosen nodes")
    bars = [n for n, name in enumerate(frame.names) if name == "bar"]
    expect(sorted(frame.find(tree.choose(bars[:1]).query)) == bars[:1], f"one of two bars: {tree.query}")
    tree.handle({"do": "choose", "node": bars[1], "more": True})
    expect(sorted(frame.find(tree.query)) == bars, f"both bars: {tree.query}")
    tree.hide()
    expect(sorted(tree.frame.names) == ["<b>&", "corge", "foo", "fred", "waldo"] and tree.nodes == [], f"bars hidden: {tree.frame.names}")
    tree.back()
    expect(tree.frame.names == frame.names and len(tree.prune(26).frame) == 4, f"pruned: {tree.frame.names}")
    expect(len(tree.back().focus(corge).frame) == 4 and "waldo" not in tree.html(), "focused on corge")
    tree.back()
    expect("2 found" in tree.search("BAR").html() and tree.back().nodes == [], "searched")
    changed = json.loads(json.dumps(LITERAL))
    changed[0]["children"][1]["frame"]["name"] = "grault"
    text = "".join(tags_of((frame - locus.Frame.from_literal(changed)).show()._static()).texts)
    expect(all(word in text for word in ("waldo \N{BLACK LEFT-POINTING TRIANGLE}", "grault \N{BLACK RIGHT-POINTING TRIANGLE}", "+30", "-30")),
           f"a difference: {text}")
    refused("a node that is not there", IndexError, "", tree.choose, [99])
    for message in ({"do": "choose"}, {"do": "open", "node": 99}, {"do": "least", "percent": "much"}, {"do": "nothing"}, {}):
        expect("role=\"tree\"" in tree.handle(message), f"{message}")
    for name in ("operator()(int, char*)", "operator[](", "*x", "a\\", "x\ny", 'a "b"', "\N{GRINNING FACE}"):
        odd = locus.Frame.from_literal([{"frame": {"name": "top"}, "metrics": {"time": 1.0}, "children": [
            {"frame": {"name": name}, "metrics": {"time": 2.0}, "children": [{"frame": {"name": "g"}, "metrics": {"time": 1.0}}]}]}])
        chosen = odd.show().choose([odd.names.index(name)], whole=True)
        expect(sorted(odd.find(chosen.query)) == sorted(chosen.nodes), f"{name}: {chosen.query}")
    bare = locus.Frame.from_literal([{"frame": {"name": "f"}, "metrics": {}}])
    expect("<b>f</b>" in bare.show().html() and "f" in repr(bare.show()), "a frame without columns")
    wide = locus.Frame.from_literal([{"frame": {"name": "top"}, "metrics": {"time": 1.0}, "children": [
        {"frame": {"name": f"a function with a name {n} " + "of a template " * 8}, "metrics": {"time": float(n % 97)}} for n in range(20000)]}])
    big = wide.show()
    expect(len(big._repr_html_()) < 200000 and len(big.html()) < 200000 and " more, with less" in big.html(),
           f"a wide tree: {len(big._repr_html_())} and {len(big.html())} characters")


def check_tree_of_anywidget():
    """What is asked of anywidget, of which there is none here: a class with its script, messages to it and from it."""
    class AnyWidget:
        def on_msg(self, handler):
            self.handler = handler

        def send(self, message):
            self.sent = message

        def _repr_mimebundle_(self, **_):
            return {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
    module = types.ModuleType("anywidget")
    module.AnyWidget, module.__spec__ = AnyWidget, importlib.util.spec_from_loader("anywidget", None)
    kept, sys.modules["anywidget"] = sys.modules.get("anywidget"), module
    try:
        tree = locus.Frame.from_literal(LITERAL).show()
        shown, _ = tree._repr_mimebundle_()
        expect("text/html" in shown and "application/vnd.jupyter.widget-view+json" in shown, f"with anywidget: {list(shown)}")
        widget = tree._widget
        widget.handler(widget, {"do": "choose", "node": 1}, [])
        expect(tree.nodes == [1] and "chosen" in widget.sent["html"] and "render(" in type(widget)._esm, "a click by anywidget")
        tree.hide()
        expect("1 hidden" not in widget.sent["html"] and "hidden" in widget.sent["html"], "what Python hides is gone from the page")
    finally:
        sys.modules.pop("anywidget")
        if kept:
            sys.modules["anywidget"] = kept


def check_tree_page(scratch):
    """The script, in Chromium, with messages carried to and fro as a kernel does."""
    sys.path.insert(0, str(SOURCE / "tests" / "lib"))
    import browser
    import viewer
    from locus import _widget
    try:
        page = viewer.Viewer(scratch / "profile")
    except browser.Failure as failure:
        print("SKIP (part): no page of the tree:", failure)
        return
    frame = locus.Frame.from_literal(LITERAL)
    tree = frame.show()
    file = scratch / "tree.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8><div id=here>{tree._static()}</div><script>{_widget.SCRIPT}\n"
                    "const said = []; let show; locusTree(document.getElementById('here'), {send: (m) => said.push(m), on: (s) => { show = s; }});</script>",
                    encoding="utf-8")

    def carry():
        for message in page.value("said.splice(0)"):
            page.value(f"show({json.dumps(tree.handle(message))})")

    def act(script):
        page.value(f"(() => {{ {script} }})()")
        carry()
    row = "[...document.querySelectorAll('[data-node]')].find((r) => r.querySelector('b').textContent === '{}')"
    page.open(file.as_uri())
    carry()
    act(row.format("corge") + ".dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true, detail: 1}))")
    expect(tree.query == '[{"name": "corge"}, "*"]', f"Shift and a click on corge: {tree.query}")
    expect(page.value("document.querySelectorAll('.chosen').length") == 4, "four chosen rows")
    table = page.value("[...document.querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent)")
    act("document.querySelector('th[data-sort=\"time\"]').click()")
    expect(page.value("[...document.querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent)") == ["<b>&", "bar", "fred", "corge"],
           f"sorted by time, from {table}")
    key = "document.querySelector('.locus-tree').dispatchEvent(new KeyboardEvent('keydown', {{bubbles: true, key: '{}'}}))"
    act(row.format("fred") + ".dispatchEvent(new MouseEvent('click', {bubbles: true, detail: 1}))")
    act(key.format("h"))
    expect("fred" not in tree.frame.names and page.value("document.body.innerText.includes('1 hidden')"), f"H: {tree.frame.names}")
    act(row.format("waldo") + ".dispatchEvent(new MouseEvent('click', {bubbles: true, detail: 2}))")
    expect(page.value("document.querySelectorAll('[data-node]').length") == 2 and tree.frame.names == ["waldo", "bar"], "a double click focuses")
    act(key.format("Escape"))
    act(key.format("/"))
    expect(page.value("document.activeElement.type") == "search", "/ searches")
    act("const i = document.querySelector('input[type=search]'); i.value = 'wal'; i.dispatchEvent(new Event('change', {bubbles: true}))")
    expect(page.value("document.querySelectorAll('.found').length") == 1, "wal is found once")
    act(row.format("corge") + ".querySelector('.locus-open').click()")
    expect(page.value(f"{row.format('corge')}.getAttribute('aria-expanded')") == "false" and page.value(f"{row.format('bar')} !== undefined"),
           "corge is closed, and waldo's bar still there")
    page.close()


NOTEBOOK = SOURCE / "doc" / "twelve-questions.ipynb"


def run_notebook():
    """The cells of the notebook with what each puts out in a notebook."""
    notebook, names, count = json.loads(NOTEBOOK.read_text(encoding="utf-8")), {}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        said, count, value = io.StringIO(), count + 1, None
        with contextlib.redirect_stdout(said):
            exec(compile(ast.Module(body, []), "cell", "exec"), names)  # pylint: disable=exec-used
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # pylint: disable=eval-used
        cell["execution_count"], cell["outputs"] = count, []
        if said.getvalue():
            cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": said.getvalue().splitlines(keepends=True)})
        if value is not None:
            data = {"text/plain": repr(value).splitlines(keepends=True)}
            if hasattr(value, "_repr_html_"):
                data["text/html"] = value._repr_html_().splitlines(keepends=True)
            cell["outputs"].append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return notebook


def shown(notebook):
    """What the cells put out as text, blanks apart, with which versions of pandas differ."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(o.get("text", []) or o["data"]["text/plain"]).split() for o in outputs]


def check_notebook():
    """The notebook in doc shows what its cells put out."""
    python = next((p for p, wanted in interpreters() if wanted and subprocess.run([p, "-c", "import pandas"], check=False, capture_output=True).returncode == 0), None)
    if not python:
        print("SKIP (part): no pandas for the notebook")
        return
    done = subprocess.run([python, __file__, "--notebook"], capture_output=True, check=False, text=True)
    expect(done.returncode == 0, f"the notebook: {done.stderr[-800:]}")
    made, kept = shown(json.loads(done.stdout or '{"cells": []}')), shown(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    expect(len(made) >= 12, f"the notebook puts out {len(made)} texts")
    for number, (now, before) in enumerate(zip(made, kept)):
        expect(now == before, f"output {number} of the notebook: {' '.join(now)}, not {' '.join(before)}")
    expect(len(made) == len(kept), "the notebook has other outputs")


def main():
    if sys.argv[1:2] == ["--notebook"]:
        print(json.dumps(run_notebook()))
        return
    if sys.argv[1:2] == ["--write-notebook"]:
        NOTEBOOK.write_text(json.dumps(run_notebook(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    if sys.argv[1:2] == ["--ask"]:
        print(json.dumps(ask(sys.argv[2])))
        return
    golden = bundle.golden("readers") / "inputs"
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        tree = scratch / "tree.json"
        tree.write_text(json.dumps(TREE), encoding="ascii")
        for path in (*sorted(golden.iterdir()), tree):
            compare(path, ask(path))
        for python, wanted in interpreters():
            done = subprocess.run([python, __file__, "--ask", str(tree)], capture_output=True, check=False, text=True)
            expect(done.returncode == 0, f"{python}: {done.stderr}")
            made = json.loads(done.stdout or "{}")
            compare(tree, made)
            expect(not wanted or (made["type"] == wanted and "table" in made), f"{python}: {made}")
        check_types(scratch)
        check_wheel(scratch)
        check_notebook()
        check_methods(tree, scratch)
        check_display(tree)
        check_tree()
        check_tree_of_anywidget()
        check_tree_page(scratch)
        check_errors(tree, scratch)
        gc.collect()
    for sentence in failures[:20]:
        print("FAIL:", sentence[:1000])
    sys.exit(1 if failures else 0)


main()
