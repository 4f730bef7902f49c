# SPDX-License-Identifier: BSD-3-Clause
"""Reports say the same in every form: random requests over databases of the other tests, each as text, CSV and JSON, as packed
columns for a viewer, and asked by the package of Python. Every value of a row of CSV must be in JSON, Python and packed columns must have all values of JSON and no others, and text
must show the same rows with the same shares. A request that one refuses is refused by all of them, with the same words.

usage: answers.py [N_REQUESTS [SEED]]"""
import csv
import ctypes
import importlib.util
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402
import packed  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

N_REQUESTS = 40
BY = ("thread", "process", "rank", "region", "cpu", "core", "package", "node")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")


def load(name):
    """Another golden test, as a module."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), SOURCE / "tests" / "golden" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def databases(scratch):
    """The databases of the other tests, and one with sources and several ranks. Returns [directory]."""
    found = [path for _, path in load("report").databases(scratch)]
    reports, fields = load("reports"), load("fields")

    def add(name, measure):
        measure(scratch / f"{name}-m")
        run("hpcprof", "-q", "-o", scratch / name, scratch / f"{name}-m")
        found.append(scratch / name)

    def make(name, measure):
        (scratch / f"{name}-m").mkdir()
        add(name, measure)

    add("code", lambda path: reports.measure(reports.Program(scratch), path))
    for seed in range(2):
        add(f"fields-{seed}", lambda path, seed=seed: fields.Case(seed).write(path))
    make("numa", lambda path: load("numa").make_measurement(path, 100, 1))
    make("first-touch", load("first-touch").make_measurement)
    make("hardware-2", load("hardware").make_measurement)
    return found


# Columns of CSV that are words of what JSON has in lists, in another order or only in part.
AS_WORDS = {"types": ("variables",), "sharing": ("sample_place", "trap_place"), "vars": ("top_lines", "top_loops")}

# What may stand behind each verb, beside --top, --min and --metric.
OPTIONS = {
    "vars": ["--paths", "--fields", "--order time", "-a", "--derive twice=2*time", *(f"--by {by}" for by in (*BY, "function"))],
    "functions": ["--derive twice=2*time", *(f"--by {by}" for by in BY)],
    "lines": ["--derive twice=2*time", *(f"--by {by}" for by in BY)],
    "annotate": ["-a", "--instructions", "--by thread", "--by rank"],
    "types": ["-a", "--derive twice=2*time", *(f"--by {by}" for by in (*BY, "function"))],
    "tree": ["--derive twice=2*time", "--by thread", "--by rank"],
    "datatree": ["--by thread", "--by node"],
    "advice": [],
    "leaks": ["-a", "--mark"],
    "cpus": ["--by core", "--by package", "--by node", "--variable grid"],
    "numa": [],
    "first-touch": ["--paths", "--order time"],
    "patterns": ["--variable grid"],
    "sharing": ["--variable grid"],
    "alignment": ["--variable grid"],
    "items": [],
}
SUBJECTS = {
    "annotate": ("main", "app.c", "leaf", "solver.c", "solve", "util.c"),
    "items": ("variable", "variable:grid", "function", "function:leaf", "line", "line:app.c:14", "node", "node:5", "thread", "type", "field"),
}


def request(rng, metrics, verb):
    """Words of a random request of a report."""
    words = [verb] + ([rng.choice(SUBJECTS[verb])] if verb in SUBJECTS else [])
    if OPTIONS[verb] and rng.random() < 0.6:
        words += rng.choice(OPTIONS[verb]).split()
    words += ["--top", str(rng.choice((0, 0, 1, 2, 5)))]
    words += ["--min", rng.choice(("0", "0", "0.5", "3", "30", "90"))]
    if metrics and rng.random() < 0.3:
        words += ["--metric", rng.choice(metrics)]
    return words


# --- CSV against JSON ---

# Lists that CSV spreads over lines, by report; of numa the cells of its lists, which have no keys.
SPREAD = {"numa": "pairs", "first-touch": "touchers", "vars --by region": "variables"}
PAIR = ("thread_node", "page_node", "samples")


def flat_of(row):
    """The cells of a row of JSON that are no lists; those of objects in it as its own."""
    flat = {}
    for key, value in row.items():
        if key == "metrics":
            flat.update({f"{name}:{metric}": cell for metric, cells in value.items() for name, cell in cells.items()})
        elif isinstance(value, dict):
            flat.update({f"{key}_{name}" if key in ("threads", "processes") else name: cell for name, cell in value.items()})
        elif not isinstance(value, list):
            flat[key] = value
    flat.update({f"node{i}_samples": n for i, n in enumerate(row.get("node_samples") or [])})
    return flat


def spread(row, key):
    return [{**flat_of(row), **(flat_of(cell) if isinstance(cell, dict) else dict(zip(PAIR, cell)))} for cell in row.get(key) or []]


def lines_of(report, row):
    """The lines that CSV has for a row of JSON: [(line, row)]."""
    if report == "vars --fields":
        around = {**flat_of(row), "element_type": row.get("type"), "type": None, "size_bytes": None}
        return [{**around, **field} for field in row.get("fields") or []] or [around]
    if report in SPREAD:
        return spread(row, SPREAD[report]) or ([] if report in ("numa", "vars --by region") else [flat_of(row)])
    below = [{"type": row.get("type"), "size_bytes": row.get("size_bytes"), **field} for field in row.get("fields") or []]
    if "--by" in report:
        return [line for one in [row, *below] for line in spread(one, "cells")]
    return [flat_of(row)] + ([flat_of(field) for field in below] if report == "types" else [])


def is_same(cell, value):
    """Whether a cell of CSV says what JSON says, within the digits of CSV."""
    if value is None or cell == "":
        return cell == "" and value in (None, "")
    if isinstance(value, bool):
        return cell == str(int(value))
    if not NUMBER.fullmatch(cell) or isinstance(value, str):
        return cell in (str(value), hex(value) if isinstance(value, int) else None)
    digits = len(cell.partition("e")[0].partition(".")[2])
    return abs(float(cell) - float(value)) <= 0.51 * 10.0 ** -digits + 1e-9 * abs(float(value))


def text_of_data(row):
    return "; ".join(f"{item['variable']} {item['value']:.15g}" for item in row["data"])


def text_of_path(row):
    return " < ".join((frame["function"] or "") + (f" ({frame['file'] or ''}:{frame['line']})" if frame["line"] else "") for frame in row["path"])


# Columns of CSV for what JSON has as a list.
OF_LISTS = {
    "data": text_of_data, "path": text_of_path,
    "n_variables": lambda row: len(row["variables"]), "threads": lambda row: len(row["threads"]),
    "touchers": lambda row: None if row["touchers"] is None else len({touch["thread"] for touch in row["touchers"]}),
    "users": lambda row: None if row["users"] is None else len(row["users"]),
}


def compare_lines(what, report, table, rows):
    expected = [(line, row) for row in rows for line in lines_of(report, row)]
    expect(len(table) == len(expected), f"{what}: {len(table)} lines of CSV, {len(expected)} in JSON")
    n = 0
    for cells, (line, row) in zip(table, expected):
        for column, cell in cells.items():
            if column in AS_WORDS.get(report, ()):
                continue
            if column in OF_LISTS and column not in line:
                value = OF_LISTS[column](row) if line.get("field") is None else None
            else:
                value = line.get(column)
            expect(is_same(cell, value), f"{what}: {column} is {cell!r} in CSV, {value!r} in JSON: {line}")
            n += 1
    return n


def compare_places(what, table, rows):
    """cpus: CSV has a line for each place, thread and variable; JSON the sums of both."""
    places = [column for column in ("host", "cpu", "core", "package", "node") if table and column in table[0]]
    sums = {}
    for cells in table:
        key = tuple(cells[column] for column in places)
        for kind, of in (("threads", (cells["process"], cells["thread"])), ("variables", (cells["variable"], cells["alloc_site"]))):
            sums[key, kind, of] = sums.get((key, kind, of), 0) + int(cells["samples"])
    for row in rows:
        key = tuple("" if row[column] is None else str(row[column]) for column in places)
        for thread in row["threads"]:
            found = sums.pop((key, "threads", (str(thread["process"]), str(thread["thread"]))), 0)
            expect(found == thread["samples"], f"{what}: {key}: {thread}, not {found}")
        named = {}
        for variable in row["variables"]:
            of = (variable["variable"], variable["alloc_site"] or "")
            named[of] = named.get(of, 0) + variable["samples"]
        for of, n in named.items():
            expect(sums.pop((key, "variables", of), 0) == n, f"{what}: {key}: {of}")
        expect(sum(thread["samples"] for thread in row["threads"]) == row["samples"], f"{what}: {row}")
    expect(not sums, f"{what}: only in CSV: {sums}")
    return len(table)


# --- text against CSV ---

def percent(cell):
    return re.escape(f"{float(cell):.1f} %")


def short(name):
    """The beginning of a name, as far as text leaves it alone."""
    return re.escape(re.split(r"[<(\[ ]", name)[0][:12])


def last(path):
    return path.rsplit("/", 1)[-1]


# What a line of text has of a row of CSV, in this order; None: text does not show it.
IN_TEXT = {
    "vars": lambda row: (percent(row["share"]), short(row["variable"])) if not row["variable"].startswith("<") else None,
    "functions": lambda row: (percent(row["own_share"]), percent(row["inclusive_share"]), short(row["function"])),
    "lines": lambda row: (percent(row["own_share"]), percent(row["inclusive_share"]), short(last(row["file"]))),
    "types": lambda row: (percent(row["share"]), short(row["type"])) if row["field"] == "" else None,
    "leaks": lambda row: (rf" {row['live_blocks']} ", rf" {row['allocated_blocks']} ", short(row["variable"])),
    "first-touch": lambda row: (percent(row["share"]), short(row["variable"])),
    "patterns": lambda row: (percent(row["share"]), short(row["variable"]), row["used_as"], row["confidence"]),
    "sharing": lambda row: (row["samples"], row["sharing"], short(row["variable"])) if row["sharing"] != "no candidate" else None,
    "vars --by region": lambda row: (percent(row["share"]), short(row["variable"])),
}


def compare_text(what, report, table, text):
    """Each row of CSV is a line of text, and they stand in the same order."""
    lines, at, n, seen = text.split("\n"), 0, 0, None
    for row in table:
        pieces = IN_TEXT[report](row)
        if not pieces or pieces == seen:
            continue
        seen = pieces
        pattern = re.compile(".*?".join(pieces))
        while at < len(lines) and not pattern.search(lines[at]):
            at += 1
        if at == len(lines):
            expect(False, f"{what}: text has no line with {pieces}:\n{text[:3000]}")
            break
        n += 1
    return n


# --- Python against JSON ---

def load_package():
    """The package locus; None where this Python cannot load the library of this build."""
    os.environ.setdefault("LOCUS_LIBRARY", str(pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / ".libs" / "liblocus.so"))
    sys.path.insert(0, str(SOURCE / "python"))
    try:
        return None if os.environ.get("LOCUS_SANITIZER") else importlib.import_module("locus")
    except OSError:
        return None


FLAGS = {"--paths": "paths", "--fields": "fields", "-a": "all", "--instructions": "instructions", "--mark": "mark"}


def options_of(words):
    """(operands, options) of Session.ask that say the same as words."""
    operands, options, at = [], {}, 0
    while at < len(words):
        if words[at] in FLAGS:
            options[FLAGS[words[at]]] = True
        elif words[at].startswith("--"):
            key, at = words[at][2:], at + 1
            options[key] = int(words[at]) if key == "top" else float(words[at]) if key == "min" else words[at]
        else:
            operands.append(words[at])
        at += 1
    return operands, options


def differences(where, found, value):
    """Sentences on what Python has and JSON has not, and the reverse; JSON may leave out what is not known."""
    if isinstance(value, list) and not isinstance(found, list):
        rows = list(found) if found is not None else []
        if len(rows) != len(value):
            yield f"{where}: {len(rows)} rows in Python, {len(value)} in JSON"
        for i, (row, line) in enumerate(zip(rows, value)):
            if not isinstance(line, dict):  # without keys
                row, line = list(row.values()), line if len(row) > 1 else [line]
            yield from differences(f"{where}[{i}]", row, line)
    elif isinstance(value, list):
        if len(found) != len(value):
            yield f"{where}: {found} in Python, {value} in JSON"
        for i, (a, b) in enumerate(zip(found, value)):
            yield from differences(f"{where}[{i}]", a, b)
    elif isinstance(value, dict):
        for key in {**(found or {}), **value}:
            yield from differences(f"{where}.{key}", found[key] if found and key in found else None, value.get(key))
    elif found != value and not (isinstance(value, str) and found == int(value) > 2**53) or isinstance(found, bool) != isinstance(value, bool):
        yield f"{where} is {found!r} in Python, {value!r} in JSON"


def values_of(value):
    """How many values there are in JSON."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if below is None else sum(map(values_of, below))


def compare_python(what, locus, database, words, answer):
    """The same request of the package."""
    operands, options = options_of(words)
    with locus.Session(database) as session:
        said, made, text = [], [], ctypes.c_void_p()
        asked = json.dumps({**dict(zip(("report", "subject"), operands)), **options}).encode()
        for ask in (lambda: session.ask(*operands, **options),
                    lambda: locus._library.check("session_ask_json", session._open().handle, asked, text)):
            try:
                made.append(ask())
            except locus.Error as error:
                said.append(f"hpcquery: {error}\n")
        if text:
            expect(locus._library.text(ctypes.string_at(text.value)) == answer.stdout, f"{what}: the library says {text.value}")
            locus._library.free(text)
        expect(said == ([answer.stderr] * 2 if answer.returncode else []), f"{what}: Python says {said}, hpcquery {answer.stderr}")
    if said or answer.returncode:
        return 0
    made = made[0]
    expect(made.to_json() == answer.stdout, f"{what}: the JSON of Python is {made.to_json()[:300]}")
    value = json.loads(answer.stdout)
    found = {"program": made.program, **({"metric": made.metric} if "metric" in value else {}), **made.head, made.name: made}
    expect(found.keys() >= value.keys(), f"{what}: Python has {list(found)}, JSON {list(value)}")
    for sentence in differences(what, found, value):
        expect(False, sentence)
    return values_of(value)


# --- packed columns against JSON ---

IDENTITIES = {}  # by database and the words behind "items": those that there are


def identities(database, *words):
    key = (database, *words)
    if key not in IDENTITIES:
        answer = json.loads(run("hpcquery", "items", *words, "--json", database).stdout)
        IDENTITIES[key] = {row["item"] for row in answer["items"]}
    return IDENTITIES[key]


def compare_packed(what, database, words, answer):
    """The same request, packed; and each of its rows is a thing that there is."""
    operands, options = options_of(words)
    asked = json.dumps({**dict(zip(("report", "subject"), operands)), **options})
    found = subprocess.run([pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "tests" / "lib" / "ask-packed", database, asked],
                           capture_output=True, check=False)
    said = found.stderr.decode(errors="replace").replace("ask-packed: ", "hpcquery: ", 1)
    expect((found.returncode, said) == (answer.returncode, answer.stderr), f"{what}: packed says {said}, hpcquery {answer.stderr}")
    if found.returncode or answer.returncode:
        return 0
    made = packed.Answer(found.stdout)
    for sentence in packed.differences(made, json.loads(answer.stdout)):
        expect(False, f"{what}: {sentence}")
    metric = ("--metric", options["metric"]) if "metric" in options else ()
    for item in made.columns.get("item", ()) if words[0] != "items" else ():
        if item:
            expect(item in identities(database, item.partition(":")[0], *metric), f"{what}: there is no {item}")
    return made.n * len(made.columns)


# --- requests ---

def kind_of(words):
    """What decides how a report's forms map to each other."""
    if "--by" in words and words[0] != "cpus":
        return f"{words[0]} --by" + (" region" if words[0] == "vars" and "region" in words else "")
    return f"{words[0]} --fields" if "--fields" in words else words[0]


# Requests that are no command lines, and what is said of them.
REFUSED = {
    "": "request: ", "[]": "request: ", "{}": "a request names a report; there are", '{"report": "vrs"}': "there is no report 'vrs'; did you mean 'vars'",
    '{"report": "vars", "tp": 1}': "a request has no 'tp'; did you mean 'top'", '{"report": "vars", "top": -1}': "request: top takes a number, 0 or more",
    '{"report": "vars", "top": "1"}': "request: top takes a number, 0 or more", '{"report": "vars", "paths": 1}': "request: paths takes true or false",
    '{"report": "vars", "metric": 1}': "request: metric takes a text", '{"report": "vars", "derive": [1]}': "request: derive takes texts",
    '{"report": "vars", "derive": "a"}': "--derive takes a name, = and an expression", '{"report": "vars", "min": 101}': "--min and --threshold take a percentage",
    '{"report": "vars", "order": "x"}': "--order takes time or memory", '{"report": "vars", "by": "x"}': "vars --by takes thread, process,",
    '{"report": "annotate"}': "give FILE|FUNCTION DB after annotate", '{"report": "numa", "fields": true}': "--fields goes with vars, not with numa",
    '{"report": "leaks", "by": "thread"}': "leaks has no --by: a block belongs", '{"report": "vars", "metric": "x"}': "the database has no metric 'x'; there are",
}


def check_refusals(locus, database):
    with locus.Session(database) as session:
        for request, words in {**REFUSED, '{"report": "vars", "metric": null, "paths": false, "top": 1}': ""}.items():
            text, said = ctypes.c_void_p(), ""
            try:
                locus._library.check("session_ask_json", session._open().handle, request.encode(), text)
            except locus.Error as error:
                said = str(error)
            locus._library.free(text)
            expect(said.startswith(words) and bool(said) == bool(words), f"{request}: {said}")


def check(database, words, locus):
    """Asks in all forms, and the package; returns how many values were compared."""
    what, report = f"{database.name}: {' '.join(words)}", kind_of(words)
    answers = [run("hpcquery", *words, *form, database, status=None, columns=400) for form in ((), ("--csv",), ("--json",))]
    states = {(answer.returncode, answer.stderr) for answer in answers}
    if len(states) > 1:
        expect(False, f"{what}: {[(answer.returncode, answer.stderr) for answer in answers]}")
    n = compare_python(what, locus, database, words, answers[2]) if locus else 0
    n += compare_packed(what, database, words, answers[2])
    if any(answer.returncode for answer in answers):
        return 0
    table, answer = list(csv.DictReader(io.StringIO(answers[1].stdout))), json.loads(answers[2].stdout)
    rows = next(value for value in reversed(answer.values()) if isinstance(value, list) and (not value or isinstance(value[0], dict)))
    n += compare_places(what, table, rows) if words[0] == "cpus" else compare_lines(what, report, table, rows)
    return n + (compare_text(what, report, table, answers[0].stdout) if report in IN_TEXT else 0)


def main():
    n_requests = int(sys.argv[1]) if len(sys.argv) > 1 else N_REQUESTS
    rng, n_values, n_answered = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1), 0, 0
    locus = load_package()
    if locus is None:
        print("SKIP (part): liblocus.so has not been built for this Python: the package is not asked")
    with tempfile.TemporaryDirectory() as name:
        found = databases(pathlib.Path(name).resolve())
        metrics = {path: [metric["name"] for metric in json.loads(run("hpcquery", "export", "json", path).stdout)["metrics"]] for path in found}
        listed = run("hpcquery", "--list-commands").stdout.split()
        reports = set(listed[:listed.index("events")])  # those on a database come first
        expect(not reports - set(OPTIONS), f"OPTIONS of answers.py lacks the reports {sorted(reports - set(OPTIONS))}: add a row with the options of each")
        expect(not set(OPTIONS) - reports, f"OPTIONS of answers.py has {sorted(set(OPTIONS) - reports)}, which hpcquery has not")
        for i in range(n_requests):
            database, verb = rng.choice(found), sorted(OPTIONS)[i % len(OPTIONS)]
            n = check(database, request(rng, metrics[database], verb), locus)
            n_values, n_answered = n_values + n, n_answered + (n > 0)
        if locus:
            check_refusals(locus, found[0])
    for failure in failures[:20]:
        print(f"FAIL: {failure[:2000]}")
    print(f"{n_answered} of {n_requests} requests had rows, {n_values} values were compared")
    return 1 if failures or n_answered < n_requests // 4 else 0


if __name__ == "__main__":
    sys.exit(main())
