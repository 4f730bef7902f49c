# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of the package locus: columns have the types that Table names and say what rows say, with numpy, with pandas and without;
tables, texts and displays say the same; options are refused as hpcquery refuses them; answers outlive their session, in whatever order
both go, under valgrind as well; a thousand questions leave nothing behind; the examples of the docstrings run. answers.py compares
every report with JSON. `python-session.py --columns DB`, `--orders DB`: parts of it, under another interpreter or valgrind."""
import ctypes
import doctest
import gc
import html.parser
import importlib.util
import inspect
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
if os.environ.get("LOCUS_SANITIZER"):
    print("SKIP: a program without the sanitizer cannot load a library that has it")
    sys.exit(77)
os.environ.setdefault("LOCUS_LIBRARY", str(BUILD / ".libs" / "liblocus.so"))
sys.path.insert(0, str(SOURCE / "python"))
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import locus  # noqa: E402
import measurement as m  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

NOT_FOUND, UNSUPPORTED = -7, -6
REPORTS = [report for report in locus.reports() if "subject" not in report.options]


def load(name):
    """Another golden test, as a module."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), SOURCE / "tests" / "golden" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def databases(scratch):
    """Two databases: one with source lines and several ranks, one with latencies, nodes and fields."""
    reports = load("reports")
    reports.measure(reports.Program(scratch), scratch / "code-m")
    run("hpcprof", "-q", "-o", scratch / "code", scratch / "code-m")
    (scratch / "numa-m").mkdir()
    load("numa").make_measurement(scratch / "numa-m", 100, 1)
    run("hpcprof", "-q", "-o", scratch / "numa", scratch / "numa-m")
    return [scratch / "code", scratch / "numa"]


def raised(what, kind, words, function, *operands, **options):
    try:
        function(*operands, **options)
    except kind as error:
        expect(words in str(error), f"{what}: {error}")
    else:
        expect(False, f"{what} is not refused")


def answers_of(session, **options):
    """The answers of all reports that the database has what it takes for."""
    found = []
    for report in REPORTS:
        try:
            found.append(session.ask(report.name, **options))
        except locus.Error as error:
            expect(error.code in (NOT_FOUND, UNSUPPORTED), f"{report.name}: {error}")
    expect(len(found) > 10, f"{len(found)} reports answer")
    return found


# --- columns ---

def leaf(row, name):
    """The value of a row that a column has; a column in an object has both keys in its name."""
    for i in range(len(name)):
        if name[i] == "." and isinstance(row.get(name[:i]), dict):
            return leaf(row[name[:i]], name[i + 1:])
    return row.get(name)


def is_same(cell, value):
    if value is None:
        return cell is None or isinstance(cell, float) and math.isnan(cell)
    if isinstance(value, locus.Table):
        return isinstance(cell, locus.Table) and len(cell) == len(value)
    return cell == value and isinstance(cell, bool) == isinstance(value, bool)


def check_table(what, table, numpy):
    """Columns and rows of a table and of those below it; returns how many cells were compared."""
    rows, n = list(table), 0
    types = {"text": "O", "table": "O", "words": "O", "number": "f", "percent": "f", "count": "if", "span": "if", "time": "if", "word": "uf",
             "address": "uO", "flag": "bO"}
    for name, kind in table.kinds.items():
        column, values = table[name], [leaf(row, name) for row in rows]
        is_whole = None not in values
        expect(len(column) == len(rows) and table[name] is column, f"{what}: {name} has {len(column)} values for {len(rows)} rows")
        if numpy:
            wanted = types[kind][0 if is_whole or len(types[kind]) == 1 else 1]
            expect(column.dtype.kind == wanted, f"{what}: {name}, {kind}, is of {column.dtype}, not {wanted}")
        same = all(is_same(a, b) for a, b in zip(column.tolist() if numpy else column, values)
                   if not ("." in name and b is None))  # of an object that is not there
        expect(same, f"{what}: {name} is {column}, rows have {values}")
        n += len(rows)
        for below in values:
            if isinstance(below, locus.Table):
                n += check_table(f"{what}: {name}", below, numpy)
    return n


def check_pandas(answer):
    """Tables of pandas, by row and by row of a table below it."""
    frame = answer.to_pandas()
    expect(list(frame.columns) == answer.columns and len(frame) == len(answer), f"{answer.report}: {frame}")
    for name in (name for name, kind in answer.kinds.items() if kind == "table"):
        frame, tables, first = answer.to_pandas(name), [table for table in answer[name] if table], answer.columns[0]
        expect(len(frame) == sum(map(len, tables)), f"{answer.report} by {name}: {frame}")
        around = [value for value, table in zip(answer[first], answer[name]) for _ in table or ()]
        expect(first == name or list(frame[first]) == around, f"{answer.report} by {name}: {frame[first]}, not {around}")
        for key in tables[0].columns if tables else ():
            same = all(is_same(a, b) for a, b in zip(frame[f"{name}.{key}"].tolist(), (leaf(row, key) for row in tables[0])))
            expect(same or tables[0].kinds[key] == "table", f"{answer.report} by {name}: {frame[f'{name}.{key}']}")


def check_columns(path):
    try:
        import numpy
        import pandas
    except ImportError:
        numpy = pandas = None
    with locus.Session(path) as session:
        for answer in answers_of(session):
            n = check_table(answer.report, answer, numpy)
            expect(n > 0 or not len(answer), f"{answer.report}: {n} cells")
            if pandas:
                check_pandas(answer)
        answer = session.ask("vars", by="thread")
        if pandas:
            check_pandas(answer)
        answer = session.ask("vars")
        if numpy:
            share = answer["share"]
            expect(share.dtype == numpy.float64 and answer["variable"][share.argmax()] == answer[0]["variable"], f"{share}")
    for failure in failures:
        print("FAIL:", failure[:1000])
    print("numpy" if numpy else "lists")
    sys.exit(1 if failures else 0)


def interpreters():
    """The first that has numpy and pandas, and this one."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy, pandas"], capture_output=True, check=False).returncode == 0:
            yield [python], "numpy"
            break
    else:
        print("SKIP (part): arrays of numpy and tables of pandas: no interpreter has both (python3-numpy, python3-pandas)")
    yield [sys.executable, "-S"], "lists"


# --- what belongs to whom ---

def use(table):
    """Reads everything of a table."""
    return [use(value) if isinstance(value, locus.Table) else str(value) for row in table for value in row.values()]


def check_orders(path):
    """Sessions, answers and tables below them end in every order."""
    first = locus.Session(path)
    answers = answers_of(first, top=3)
    frame, wanted = first.frame(), [use(answer) for answer in answers]
    texts = [answer.to_json() for answer in answers]
    expect(frame + frame == frame * 2 and frame * 2 + frame == frame * 3, "a frame plus itself is not twice the frame, hidden columns and all")
    first.close()
    raised("a closed session", ValueError, "the session is closed", first.ask, "vars")
    del first
    gc.collect()
    expect([use(answer) for answer in answers] == wanted and len(frame.names) > 3, "answers change when their session is closed")
    expect([answer.to_json() for answer in answers] == texts, "JSON changes when the session is closed")
    below = [value for answer in answers for row in answer for value in row.values() if isinstance(value, locus.Table)]
    wanted = [use(table) for table in below]
    del answers, frame
    gc.collect()
    expect(below and [use(table) for table in below] == wanted, "tables change when their answer has gone")
    del below
    session = locus.Session(path)
    answer = session.ask("vars")
    del answer
    gc.collect()
    expect(len(session.ask("vars")) > 0, "a session does not answer behind an answer that has gone")


def check_valgrind(path):
    """The same under valgrind: nothing is read or written that has been freed."""
    if not shutil.which("valgrind"):
        print("SKIP (part): there is no valgrind")
        return
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=no", "--undef-value-errors=no", sys.executable, "-S", __file__, "--orders", str(path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONMALLOC": "malloc"}, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"under valgrind: status {done.returncode}: {done.stdout} {done.stderr[:3000]}")


class Mallinfo(ctypes.Structure):
    """struct mallinfo2 of glibc"""
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def check_leaks(path):
    """What malloc has given and not got back, behind as many questions as before them."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    session = locus.Session(path)
    gc.disable()  # nothing waits for it

    def used(n):
        for i in range(n):
            report = REPORTS[i % len(REPORTS)]
            try:
                answer = session.ask(report.name, top=5)
                use(answer)
                len(answer.to_json())
                session.ask(report.name, metric="none")
            except locus.Error:
                pass
        del answer
        info = mallinfo()
        return info.uordblks + info.hblkhd
    used(3 * len(REPORTS))
    before = used(len(REPORTS))
    after = used(1000)
    gc.enable()
    expect(after - before < 100000, f"1000 questions leave {after - before} bytes behind")


# --- displays and refusals ---

class Tags(html.parser.HTMLParser):
    """That every element is closed, and the texts in it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.rows = [], [], 0
        self.feed(text)
        expect(not self.open, f"{self.open} are open in {text}")

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag):
        expect(self.open and self.open.pop() == tag, f"</{tag}> closes something else")

    def handle_data(self, data):
        self.texts.append(data)


def check_display(path, scratch):
    session = locus.Session(path)
    answer = session.ask("vars")
    for made in answers_of(session):
        tags = Tags(made._repr_html_())
        expect(tags.rows == (min(len(made), 50) + 1 if len(made) else 0), f"{made.report}: {tags.rows} rows of HTML for {len(made)}")
        text = subprocess.run([str(BUILD / "hpcquery"), made.report, "--top", "0", str(path)], check=True, capture_output=True, text=True,
                              encoding="utf-8", env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}).stdout
        expect(made.to_text(100, top=0) == text, f"{made.report}: the text is {made.to_text(100, top=0)}, not {text}")
    expect(repr(answer) == answer.to_text().rstrip("\n") and answer[0]["variable"] in repr(answer), repr(answer))
    expect(answer[-1]["variable"] == answer[len(answer) - 1]["variable"] == answer["variable"][-1] and "variable" in answer, "rows by number")
    tree = json.loads(run("hpcquery", "export", "json", path).stdout)
    text = json.dumps(tree).replace(json.dumps(answer[0]["variable"]), json.dumps("<b>&"))
    m.write_database(scratch / "escaped", text)
    with locus.Session(scratch / "escaped") as odd:
        made = odd.ask("vars")
        tags = Tags(made._repr_html_())
        expect(made[0]["variable"] == "<b>&" and "<b>&" in "".join(tags.texts) and "<b>" not in made._repr_html_(), made._repr_html_())


def check_plot(path):
    """Bars are the first rows', as matplotlib or what stands for it is told to draw them."""
    class Axes:
        said = {}

        def __getattr__(self, name):
            return lambda *what: self.said.update({name: what})
    answer, axes = locus.Session(path).ask("vars"), Axes()
    expect(answer.plot(top=3, ax=axes) is axes, "plot returns other axes")
    n = min(3, len(answer))
    expect(list(axes.said["barh"][1]) == [answer[i]["share"] for i in range(n)] and axes.said["set_xlabel"] == ("share, %",) and
           list(axes.said["set_yticks"][1]) == [answer[i]["variable"] for i in range(n)], f"drawn: {axes.said}")
    answer.plot("samples", "class", ax=axes)
    expect(list(axes.said["barh"][1])[:n] == [answer[i]["samples"] for i in range(n)] and axes.said["set_xlabel"] == ("samples",), f"{axes.said}")
    for column in ("shares", 3):
        try:
            answer.plot(column, ax=axes)
            expect(False, f"there is no column {column}")
        except KeyError:
            pass
    python = next((p for p in (sys.executable, "/usr/bin/python3") if subprocess.run(
        [p, "-c", "import matplotlib"], check=False, capture_output=True).returncode == 0), None)
    if not python:
        print("SKIP (part): no matplotlib (python3-matplotlib)")
        return
    script = ("import matplotlib, sys; matplotlib.use('Agg'); sys.path.insert(0, sys.argv[1]); import locus; "
              "ax = locus.Session(sys.argv[2]).ask('vars').plot(top=2); print(len(ax.patches), ax.get_xlabel())")
    done = subprocess.run([python, "-c", script, str(SOURCE / "python"), str(path)], check=False, capture_output=True, text=True)
    expect(done.stdout == f"{min(2, len(answer))} share, %\n", f"matplotlib: {done.stdout} {done.stderr}")


def check_refusals(path):
    session = locus.Session(path)

    def refused(what, words, *operands, **options):
        """With the sentence of hpcquery."""
        said = run("hpcquery", *words, path, status=None).stderr
        raised(what, locus.Error, said.removeprefix("hpcquery: ").strip() or "?", session.ask, *operands, **options)
    refused("a metric", ["vars", "--metric", "tme"], "vars", metric="tme")
    refused("a variable", ["patterns", "--variable", "gird"], "patterns", variable="gird")
    refused("a subject", ["annotate", "nowhere"], "annotate", "nowhere")
    raised("a report", locus.Error, "there is no report 'var'; did you mean 'vars'?", session.ask, "var")
    raised("an option that leaks has", TypeError, "vars takes no option 'mark'; it takes metric, by, ", session.ask, "vars", mark=True)
    raised("an option of a method", TypeError, "numa takes no option 'by'; it takes metric, top, min", session.numa, by="thread")
    for bad in (3, True, 3.0, None, ["vars"]):
        raised(f"a report {bad!r}", TypeError, "a report is a name, not ", session.ask, bad)
    raised("a state", TypeError, "a text is wanted, not 3", session.ask_state, 3)
    raised("an expression", TypeError, "a text is wanted, not 3", session.ask, "vars", derive=[3])
    raised("a path", ValueError, "a path has no byte 0", locus.Session, session.path + "\0x")
    for state in ("top=0x10", "top=5 ", "top=1e3", "top=-1", "top=18446744073709551618", "min=nan", "min=101"):
        raised(state, locus.Error, "a state: '", session.ask_state, state)
    expect(len(session.ask_state("top=007&min=1.").columns) > 3, "numbers with zeros before, a point behind")
    raised("a subject of vars", TypeError, "vars takes no option 'subject'", session.ask, "vars", "main")
    raised("what by takes", locus.Error, "--by takes thread, process", session.ask, "vars", by="thraed")
    raised("top", ValueError, "top is how many rows", session.ask, "vars", top=-1)
    raised("top", TypeError, "", session.ask, "vars", top="many")
    raised("min", locus.Error, "take a percentage", session.ask, "vars", min=101)
    raised("an expression", locus.Error, "--derive takes a name", session.ask, "vars", derive="twice")
    raised("a NUL", ValueError, "NUL", session.ask, "vars", metric="a\0b")
    raised("a column", KeyError, "there is no column 'time'; there are: variable, class", lambda: session.ask("vars")["time"])
    raised("a row", IndexError, "there is no row 99", lambda: session.ask("vars")[99])
    raised("a tree", ValueError, "'codes' is none of code, data, both, fields", session.frame, "codes")
    raised("a database", locus.Error, "nowhere", locus.Session, path / "nowhere")
    expect(str(inspect.signature(locus.Session.annotate)).startswith("(self, /, subject, *, metric=None"), "the signature of annotate")
    expect(len(session.ask("vars", top=1, min=0, by=None, paths=False)) == 1, "options that say nothing")
    both = [[session.ask("vars", derive=derive).to_json()] for derive in ({"twice": "2 * time"}, "twice = 2 * time")]
    expect(both[0] == both[1] and "twice" in both[0][0], "derive")


def check_others(scratch):
    """What another tool wrote has its code, and says why it has no data; rows can be taken by a slice."""
    path = scratch / "app.folded"
    path.write_text("main;work 4\nmain 1\n", encoding="utf-8")
    session = locus.Session(path)
    functions = session.ask("functions")
    expect(list(functions["function"]) == ["work", "main"], f"functions of stacks: {functions}")
    expect([row["function"] for row in functions[1:]] == ["main"] and functions[2:] == [], "rows of a slice")
    raised("data", locus.Error, "has no data accesses", session.ask, "vars")


def check_states(path):
    """States say what hpcquery --at says."""
    session = locus.Session(path)
    for state in ("view=functions&top=2", "#view=vars&order=time&min=1", "view=annotate&active=function:leaf"):
        said = run("hpcquery", "--at", state, "--json", path)
        expect(session.ask_state(state).to_json() == said.stdout, f"{state}: {session.ask_state(state).to_json()}, not {said.stdout}")
        expect(session.command(state) == run("hpcquery", "--at", state, "--command", path).stdout.strip(), f"{state}: {session.command(state)}")
    for state in ("view=var", "view=annotate&active=line:nowhere.c:1"):
        said = run("hpcquery", "--at", state, path, status=None).stderr.removeprefix("hpcquery: ").strip()
        raised(state, locus.Error, said or "?", session.ask_state, state)


def check_examples(path):
    """The examples of the docstrings, with a session of that name."""
    tests = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(verbose=False)
    n = 0
    for name in ("locus._tables", "locus._session"):
        module = sys.modules[name]
        for test in tests.find(module, globs={"locus": locus, "json": json, "session": locus.Session(path), "database": path}):
            text = []
            runner.run(test, out=text.append)
            n += len(test.examples)
            expect(not "".join(text), "".join(text))
    expect(n >= 32, f"{n} examples")
    for cls in (locus.Session, locus.Answer, locus.Table):
        for name, member in vars(cls).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                expect(inspect.getdoc(member), f"{cls.__name__}.{name} has no docstring")


def main():
    if sys.argv[1:2] == ["--columns"]:
        check_columns(sys.argv[2])
    if sys.argv[1:2] == ["--orders"]:
        check_orders(sys.argv[2])
        sys.exit(f"FAIL: {failures}" if failures else 0)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name).resolve()
        found = databases(scratch)
        for path in found:
            for python, wanted in interpreters():
                done = subprocess.run([*python, __file__, "--columns", str(path)], capture_output=True, check=False, text=True)
                expect(done.returncode == 0 and done.stdout.endswith(f"{wanted}\n"), f"{python} {path.name}: {done.stdout} {done.stderr}")
            check_orders(path)
        check_valgrind(found[1])
        check_leaks(found[0])
        check_display(found[0], scratch)
        check_plot(found[0])
        check_refusals(found[0])
        check_states(found[0])
        check_others(scratch)
        check_examples(found[0])
    for failure in failures[:20]:
        print("FAIL:", failure[:2000])
    sys.exit(1 if failures else 0)


main()
