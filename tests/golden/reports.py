# SPDX-License-Identifier: BSD-3-Clause
"""The reports of code and data on a measurement whose answers are known: a program is compiled, samples are put at marked
lines of it, and each report must show what was put there. CSV and JSON of a report say the same, and bad input is named."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402

METRIC = "EADDR (usec)"
METRICS = [(METRIC, m.INT, 1)]
failures = []

APP_C = """#define MARK(name) __asm__ volatile("mark_" #name ": nop\\n nop")
void use(void);
void use_more(void);
double grid[4096];
double table[8192];

static inline __attribute__((always_inline)) void touch(void)
{
\tMARK(touch);
}

void leaf(void)
{
    MARK(leaf_grid);  /* "grid", <1> & more */
    MARK(leaf_table);
}

void solve(void)
{
    MARK(solve_call); leaf();
    MARK(solve_own);
    touch();
    MARK(solve_again);
}

int main(void)
{
    MARK(main_call); solve();
    MARK(main_use); use();
    MARK(main_more); use_more();
    return 0;
}
"""
UTIL_C = """#define MARK(name) __asm__ volatile("mark_" #name ": nop\\n nop")
static void helper(void)
{
    MARK(NAMEhelper);
}
void NAME(void)
{
    MARK(NAMEcall); helper();
}
"""
# Where samples are: marks from the outermost call to the statement; on which variable; how many in thread t of rank r.
SAMPLES = [
    (("main_call", "solve_call", "leaf_grid"), "grid", lambda r, t: 100 + 10 * t + r),
    (("main_call", "solve_call", "leaf_table"), "table", lambda r, t: 40 if t == 0 else 0),
    (("main_call", "solve_own"), "table", lambda r, t: 6),
    (("main_call", "touch"), "grid", lambda r, t: 9 + r),
    (("main_call", "solve_again", "solve_again", "solve_call", "leaf_grid"), "grid", lambda r, t: 20),
    (("main_call", "solve_again", "solve_own"), None, lambda r, t: 3),
    (("main_use", "usecall", "usehelper"), "table", lambda r, t: 1 if r == 2 else 0),
    (("main_more", "use_morecall", "use_morehelper"), None, lambda r, t: 2),
]
RANKS, THREADS = 3, 4
FUNCTIONS = {"main": "main", "solve": "solve", "leaf": "leaf", "touch": "touch", "usecall": "use", "use_morecall": "use_more",
             "usehelper": "helper", "use_morehelper": "helper"}


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *arguments, status=0, columns=100):
    result = subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, text=True, check=False,
                            errors="replace", env={**os.environ, "LC_ALL": "C", "COLUMNS": str(columns)})
    expect(result.returncode == status, f"{tool} {arguments}: status {result.returncode}, not {status}: {result.stderr}")
    expect(status == 0 or result.stderr.count("\n") == 1, f"{tool} {arguments}: {result.stderr}")
    return result.stderr if status else result.stdout


def table(*arguments):
    return list(csv.DictReader(io.StringIO(run("hpcquery", *arguments, "--csv"))))


def as_json(*arguments):
    return json.loads(run("hpcquery", *arguments, "--json"))


class Program:
    """The compiled program, and where its marks are."""

    def __init__(self, folder):
        self.texts = {"app.c": APP_C, "a/util.c": UTIL_C.replace("NAME", "use"), "b/util.c": UTIL_C.replace("NAME", "use_more")}
        for name, text in self.texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        self.path, self.folder = folder / "app", folder
        done = subprocess.run([*os.environ.get("CC", "gcc").split(), "-g", "-O0", "-o", str(self.path),
                               *(str(folder / name) for name in self.texts)], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"SKIP: the compiler makes no program: {done.stderr[:200]}")
            sys.exit(77)
        names = subprocess.run(["nm", str(self.path)], capture_output=True, text=True, check=True).stdout.split("\n")
        self.addresses = {line.split()[2]: int(line.split()[0], 16) for line in names if len(line.split()) == 3}
        self.places = {}
        for name, text in self.texts.items():
            for number, line in enumerate(text.split("\n"), 1):
                if "MARK(" in line and "#define" not in line:
                    self.places[line.partition("MARK(")[2].partition(")")[0]] = (str(folder / name), number)

    def line_of(self, text):
        return self.texts["app.c"].split("\n").index(text) + 1


def function_of(mark):
    return FUNCTIONS.get(mark) or FUNCTIONS[mark.partition("_")[0]]


def measure(program, directory):
    for rank in range(RANKS):
        for thread in range(THREADS):
            profile = m.Profile("app", METRICS, rank=rank, thread=thread, pid=100 + rank)
            for marks, variable, count in SAMPLES:
                address = [program.addresses["mark_" + mark] for mark in marks]
                path = [(str(program.path), a + 1) for a in address[:-1]] + [(str(program.path), address[-1])]
                n = count(rank, thread)
                if n and variable:
                    profile.sample(path, {0: n}, m.by_address("DATACENTRIC_Static", str(program.path),
                                                              program.addresses[variable], "static", variable, 32768))
                elif n:
                    profile.sample(path, {0: n}, m.reason("DATACENTRIC_No_Compute"))
            profile.write(directory)


def frames_of(program, marks):
    """The functions and lines of a path, outermost first, inlined ones included."""
    for mark in marks:
        if mark == "touch":
            yield "solve", (str(program.folder / "app.c"), program.line_of("    touch();"))
        yield function_of(mark), program.places[mark]


def sums(program):
    """By line, and by function and file: [own, with callees, {variable: value}]."""
    lines, functions = {}, {}
    for marks, variable, count in SAMPLES:
        n = sum(count(r, t) for r in range(RANKS) for t in range(THREADS))
        frames = list(frames_of(program, marks))
        for costs, keys in ((lines, [place for _, place in frames]), (functions, [(f, place[0]) for f, place in frames])):
            for key in set(keys):
                costs.setdefault(key, [0, 0, {}])[1] += n
            costs[keys[-1]][0] += n
            data = costs[keys[-1]][2]
            name = variable or "<compute>"
            data[name] = data.get(name, 0) + n
    return lines, functions


def data_of(text):
    parts = [part.rpartition(" ") for part in text.split("; ") if part]
    return {name: float(value) for name, _, value in parts}


def check_code(program, database):
    lines, functions = sums(program)
    total = sum(own for own, _, _ in lines.values())
    found = {(row["file"], int(row["line"])): [float(row["own"]), float(row["inclusive"])] for row in table("lines", database)}
    expect(found == {key: costs[:2] for key, costs in lines.items()}, f"lines: {found} instead of {lines}")
    found = {(row["function"], row["file"]): [float(row["own"]), float(row["inclusive"])] for row in table("functions", database)}
    expect(found == {key: costs[:2] for key, costs in functions.items()}, f"functions: {found} instead of {functions}")
    least = 10.0
    for report, costs in (("lines", lines), ("functions", functions)):
        rows = table(report, "--min", least, database)
        expect(len(rows) == sum(c[1] >= least / 100 * total for c in costs.values()), f"{report} --min: {rows}")
        rows = table(report, "--top", "2", database)
        owns = sorted((c[0] for c in costs.values()), reverse=True)[:2]
        expect([float(row["own"]) for row in rows] == owns, f"{report} --top 2: {rows}")


def check_annotated(program, database, subject, name, wanted, own):
    """wanted: by line of the file; own: of all of it"""
    rows = table("annotate", subject, database)
    found = {int(row["line"]): [float(row["own"]), float(row["inclusive"])] for row in rows}
    expect(found == {line: costs[:2] for line, costs in wanted.items()}, f"annotate {subject}: {found}, not {wanted}")
    expect(sum(float(row["own"]) for row in rows) == own, f"annotate {subject}: the lines do not add up to {own}: {rows}")
    text = program.texts[name].split("\n")
    for row in rows:
        expect(row["file"] == str(program.folder / name) and row["source"] == text[int(row["line"]) - 1].replace("\t", " " * 8), f"source of {row}")
        expect(not data_of(row["data"]) or data_of(row["data"]) == {k: v for k, v in wanted[int(row["line"])][2].items()
                                                                  if not k.startswith("<")}, f"{row}, not {wanted}")
    data = as_json("annotate", subject, database)
    expect(data["own"] == own and data["has_source"], f"annotate {subject} as JSON: {data}")
    same = [{"file": row["file"], "line": int(row["line"]), "own": float(row["own"]), "inclusive": float(row["inclusive"]),
             "data": data_of(row["data"]), "source": row["source"]} for row in rows]
    for row in data["lines"]:
        row["data"] = {d["variable"]: d["value"] for d in row["data"]}
        for share in ("own", "inclusive"):
            expect(abs(row.pop(f"{share}_share") - 100 * row[share] / data["total"]) < 1e-9, f"annotate {subject} as JSON: {row}")
    expect(data["lines"] == same, f"annotate {subject}: JSON {data['lines']} is not CSV {same}")


def check_annotate(program, database):
    lines, functions = sums(program)
    for name in program.texts:
        wanted = {line: costs for (file, line), costs in lines.items() if file.endswith("/" + name)}
        check_annotated(program, database, name, name, wanted, sum(c[0] for c in wanted.values()))
    for function in ("solve", "leaf", "main", "touch"):
        own = functions[function, str(program.folder / "app.c")][0]
        places = {place for marks, _, _ in SAMPLES for f, place in frames_of(program, marks) if f == function}
        wanted = {line: costs for (file, line), costs in lines.items() if (file, line) in places}
        check_annotated(program, database, function, "app.c", wanted, own)
        check_annotated(program, database, "app.c:" + function, "app.c", wanted, own)
    check_annotated(program, database, "a/util.c:helper", "a/util.c", {4: lines[str(program.folder / "a/util.c"), 4]}, THREADS)
    text = run("hpcquery", "annotate", "app.c", database)
    total = sum(own for own, _, _ in lines.values())
    for mark, source, data in (("leaf_grid", '    MARK(leaf_grid);  /* "grid", <1> & more */', "100 % grid"),
                               ("touch", "        MARK(touch);", "100 % grid"), ("main_call", "    MARK(main_call); solve();", "")):
        own, inclusive, _ = lines[program.places[mark]]
        wanted = f"{100 * own / total:5.1f} %  {100 * inclusive / total:5.1f} %  {program.places[mark][1]:6}  {source:46}  {data}"
        expect(wanted.rstrip() + "\n" in text, f"annotate lacks '{wanted}':\n{text}")
    expect(f"{'':18}{program.line_of('void leaf(void)'):6}  void leaf(void)\n" in text, f"no context: {text}")
    expect(max(map(len, text.split("\n"))) <= 100, f"a line is too long: {text}")
    expect("\n" + " " * 21 + "...\n" in run("hpcquery", "annotate", "--top", "1", "app.c", database), "gaps")
    whole = run("hpcquery", "annotate", "--all", "app.c", database, columns=200)
    for line in program.texts["app.c"].split("\n"):
        expect(line.replace("\t", " " * 8) in whole, f"annotate --all lacks '{line}'")
    expect(len(table("annotate", "--all", "app.c", database)) == program.texts["app.c"].count("\n"), "annotate --all --csv")
    rows = table("annotate", "--top", "2", "app.c", database)
    most = sorted((c[0] for c in lines.values()), reverse=True)[:2]
    expect(sorted((float(r["own"]) for r in rows), reverse=True) == most, f"annotate --top 2: {rows}")


def check_annotate_refusals(program, database):
    for subject, words in (("util.c", ["a/util.c", "b/util.c", "give more of the path"]),
                           ("helper", ["a/util.c", "b/util.c", "FILE:FUNCTION"]), ("nothing", ["'nothing' is neither"]),
                           ("app.c:helper", ["is neither"]), ("til.c", ["is neither"]), ("", ["is neither"])):
        message = run("hpcquery", "annotate", subject, database, status=1)
        expect(all(word in message for word in words), f"annotate {subject}: {message}")
    run("hpcquery", "annotate", database, status=2)
    run("hpcquery", "annotate", "app.c", database, "more", status=2)
    run("hpcquery", "annotate", "--min", "x", "app.c", database, status=2)


def check_without_sources(program, database, scratch):
    bare = scratch / "bare"
    shutil.copytree(database, bare)
    shutil.rmtree(bare / "src")
    text = run("hpcquery", "annotate", "app.c", bare)
    expect("the database has no copy of it" in " ".join(text.split()), f"without sources: {text}")
    for mark in ("leaf_grid", "leaf_table"):
        expect(f"{program.places[mark][1]:6}  app.c" in text, f"without sources: {text}")
    rows, known = table("annotate", "app.c", bare), table("annotate", "app.c", database)
    expect(rows == [{**row, "source": ""} for row in known] and rows, f"without sources: {rows}")
    short = scratch / "short"
    shutil.copytree(database, short)
    copy = short / "src" / str(program.folder / "app.c").lstrip("/")
    copy.write_text("\n".join(APP_C.split("\n")[:16]), encoding="utf-8")
    text = run("hpcquery", "annotate", "app.c", short)
    expect(f"{program.places['main_call'][1]:6}  (behind the end of the copy)" in text, f"a shorter copy: {text}")
    rows = table("annotate", "app.c", short)
    expect(sum(float(r["own"]) for r in rows) == sum(float(r["own"]) for r in known), f"a shorter copy: {rows}")


def sums_by(program, by):
    """Values of variables, and own values of functions and lines, by thread, process, rank or function."""
    columns = {"thread": lambda r, t, f: f"{r}.{t}", "process": lambda r, t, f: str(100 + r), "rank": lambda r, t, f: str(r),
               "function": lambda r, t, f: f}
    result = {"vars": {}, "functions": {}, "lines": {}, "types": {}}
    for marks, variable, count in SAMPLES:
        function, place = list(frames_of(program, marks))[-1]
        keys = {"vars": variable or "<compute>", "functions": (function, place[0]), "lines": (place[0], str(place[1]))}
        keys["types"] = "" if variable else "<compute>"  # types come with the places of accesses, which are not in these profiles
        for r in range(RANKS):
            for t in range(THREADS):
                for report, key in keys.items():
                    cell = key, columns[by](r, t, function)
                    if count(r, t):
                        result[report][cell] = result[report].get(cell, 0) + count(r, t)
    return result


def check_split(program, database, report, by, wanted):
    key = {"vars": lambda row: row["variable"], "functions": lambda row: (row["function"], row["file"]),
           "lines": lambda row: (row["file"], str(row["line"])), "types": lambda row: row["type"] or ""}[report]
    rows = table(report, "--by", by, database)
    found = {(key(row), row[by]): float(row["value"]) for row in rows}
    expect(found == wanted and len(rows) == len(wanted), f"{report} --by {by}: {found}, not {wanted}")
    data, total = as_json(report, "--by", by, database), sum(sums_by(program, by)["vars"].values())
    cells = {(key(row), cell[by]): cell["value"] for row in data["rows"] for cell in row["cells"]}
    expect(cells == wanted and data["by"] == by and data["total"] == total, f"{report} --by {by} as JSON: {data}")
    for row in rows:
        share = 100 * float(row["value"]) / total
        expect(abs(float(row["share"]) - share) < 1e-5, f"{report} --by {by}: {row}")
    for row in data["rows"]:
        own = [wanted.get((key(row), column), 0) for column in data["columns"]]
        expect(sum(own) == row["value"], f"{report} --by {by}: {row} is not the sum of {own}")
        if by != "function":
            spread = max(own) * len(own) / sum(own)
            expect(abs(row["max_over_mean"] - spread) < 1e-9, f"{report} --by {by}: {row}, not {spread}")


def check_by(program, database):
    for by in ("thread", "process", "rank"):
        for report, wanted in sums_by(program, by).items():
            check_split(program, database, report, by, wanted)
    for report in ("vars", "types"):
        check_split(program, database, report, "function", sums_by(program, "function")[report])
    expect({row["size_bytes"] for row in table("types", "--by", "rank", database)} == {""}, "bytes of no type")
    wanted = sums_by(program, "thread")["vars"]
    total = sum(wanted.values())
    text = run("hpcquery", "vars", "--by", "thread", database)  # 12 threads: the extremes
    for name in ("grid", "table"):
        own = {f"{r}.{t}": wanted.get((name, f"{r}.{t}"), 0) for r in range(RANKS) for t in range(THREADS)}
        least, most, mean = (100 * n / total for n in (min(own.values()), max(own.values()), sum(own.values()) / 12))
        where = [min(c for c in own if 100 * own[c] / total == n) for n in (least, most)]
        row = f"{sum(own.values()) * 100 / total:5.1f} %  {name:26}    12{mean:8.3f} %{least:8.3f} % {where[0]:7}" \
            f"{most:8.3f} % {where[1]:7} {most / mean:8.2f}\n"
        expect(row in text, f"vars --by thread lacks '{row}':\n{text}")
    expect("rank.thread (12)" in text, f"vars --by thread: {text}")
    for columns in (60, 80, 100):
        for by in ("thread", "rank", "function"):
            text = run("hpcquery", "vars", "--by", by, database, columns=columns)
            expect(max(map(len, text.split("\n"))) <= columns, f"a line is too long for {columns}: {text}")
    text = run("hpcquery", "vars", "--by", "rank", database)
    cells = "".join(f"{100 * sum(v for (n, c), v in wanted.items() if n == 'grid' and c[0] == str(r)) / total:7.1f} %" for r in range(RANKS))
    expect("grid" + " " * 22 + cells in text, f"vars --by rank lacks '{cells}': {text}")
    text = run("hpcquery", "vars", "--by", "function", "--top", "1", database)
    expect(" %  leaf\n" in text and "2 more (--top 0" in text, f"vars --by function: {text}")
    for arguments, words in ((("functions", "--by", "node"), "on which CPUs"), (("lines", "--by", "function"), "not split by function"),
                             (("vars", "--by", "node"), "on which NUMA nodes")):
        expect(words in run("hpcquery", *arguments, database, status=1), f"{arguments}")
    for arguments in (("vars", "--by", "x"), ("vars by",),
                      ("vars", "--html", "--by", "thread")):
        run("hpcquery", *arguments, database, status=2)
    rows = table("vars", "--by", "thread", "--top", "1", database)
    expect({row["variable"] for row in rows} == {"grid"} and len(rows) == 12, f"--top 1: {rows}")


def cells_of(rows, by):
    """Rows of a tree that is split: {id: {column: value}}"""
    of = {}
    for row in rows:
        of.setdefault(row["id"], {})[row[by]] = float(row["value"])
    return of


def check_trees(program, database):
    """The columns of a node add up to its value; in each, children are at most their parent, and roots are all of it."""
    for by in ("thread", "process", "rank"):
        wanted = {}
        for (name, column), value in sums_by(program, by)["vars"].items():
            wanted[column] = wanted.get(column, 0) + value
        for report in ("tree", "datatree"):
            rows, data = table(report, "--by", by, database), as_json(report, "--by", by, database)["nodes"]
            expect({row[by] for row in rows} == set(wanted), f"{report} --by {by}: {rows}")
            of, roots = cells_of(rows, by), {}
            for node in data:
                cells, above = of[str(node["id"])], of.get(str(node["parent"]))
                expect(sum(cells.values()) == node["inclusive"], f"{report} --by {by}: {node}")
                expect({cell[by]: cell["value"] for cell in node["cells"]} == cells, f"{node}, not {cells}")
                expect(above is None or all(value <= above[name] for name, value in cells.items()), f"{report} --by {by}: {node}")
                for name, value in cells.items() if above is None else ():
                    roots[name] = roots.get(name, 0) + value
            expect(len(of) == len(data) and roots == wanted, f"{report} --by {by}: {roots}, not {wanted}")
            expect(table(report, "--top", "3", "--by", by, database) == [row for row in rows if row["id"] in
                   {row["id"] for row in table(report, "--top", "3", database)}], f"{report} --by {by} --top 3")
    leaf = [row for row in table("tree", "--by", "thread", database) if row["name"] == "leaf" and row["kind"] == "function"]
    for r in range(RANKS):
        for t in range(THREADS):
            own = sum(count(r, t) for marks, _, count in SAMPLES if marks[-1].startswith("leaf"))
            found = sum(float(row["value"]) for row in leaf if row["thread"] == f"{r}.{t}")
            expect(found == own, f"leaf in {r}.{t}: {leaf}")
    for columns in (100, 200):
        text = run("hpcquery", "tree", "--by", "rank", database, columns=columns)
        expect("max/mean" in text and max(map(len, text.split("\n"))) <= columns, f"tree --by rank: {text}")
    expect("rank" not in run("hpcquery", "tree", database), "tree")
    wanted = {}
    for (_, function), value in sums_by(program, "function")["vars"].items():
        wanted[function] = wanted.get(function, 0) + value
    for report in ("tree", "datatree"):
        rows = table(report, "--by", "function", database)
        roots = {}
        for row in rows:
            roots[row["function"]] = roots.get(row["function"], 0) + (float(row["value"]) if row["parent"] == "0" else 0)
        expect({name: value for name, value in roots.items() if value} == wanted, f"{report} --by function: {roots}, not {wanted}")
        of = cells_of(rows, "function")
        expect(all(sum(of[row["id"]].values()) == float(row["inclusive"]) for row in rows), f"{report} --by function: {rows}")
        text = run("hpcquery", report, "--by", "function", database)
        expect("max/mean" not in text and "most  in" in text, f"{report} --by function: {text}")
    regions = table("tree", "--by", "region", database)
    expect(all(row["value"] == row["inclusive"] and not row["region"] for row in regions) and regions, f"tree --by region: {regions}")


def check_without(database):
    """A function without what it calls is its lines, in the report and in trees of steps."""
    rows = [row for row in table("tree", database) if row["name"] in ("leaf", "touch", "helper") or float(row["exclusive"])]
    total = max(float(row["inclusive"]) for row in table("tree", database))
    known = sorted((row["name"], *(f"{100 * float(row[key]) / total:.1f}" for key in ("inclusive", "exclusive"))) for row in rows
                   if row["name"])
    for command in (("tree",), ("filter", "depth >= 0")):
        text = run("hpcquery", *command, "--min", "0", database)
        found = re.findall(r"^ *([\d.]+) % +([\d.]+) %  +(?:\S.* > )?(\w+)(?: \[inlined\])?(?:  .*)?$", text, re.M)
        found = sorted((name, with_, without) for with_, without, name in found if name != "main")
        expect("   with     without   what is called\n" in text, f"{command}: {text}")
        expect(found == known, f"{command}: {found}, not {known}: {text}")
    expect(len(known) == 7 and all(k[2] != "0.0" for k in known), f"functions: {known}")


LAMBDAS_CC = """#define MARK(name) __asm__ volatile("mark_" #name ": nop\\n nop")
template <class F> __attribute__((noinline)) void call(F f)
{
    __asm__ volatile("call_%=: nop\\n nop" ::);
    f(1);
}
template <class T> __attribute__((noinline)) T with(T t)
{
    auto inner = [&](T i) __attribute__((noinline)) { __asm__ volatile("with_%=: nop\\n nop" ::); t += i; };
    inner(2);
    return t;
}
int main()
{
    int sum = (int)with(1.5) + with(1);
    call([&](int i) { MARK(first); sum += i; });
    call([&](int i) {
        MARK(second);
        sum -= i;
    });
    auto inlined = [&](int i) __attribute__((always_inline)) { MARK(third); sum *= i; };
    inlined(sum);
    return sum;
}
"""


def check_lambdas(scratch):
    """Lambdas are rows of their own, named by the line that they begin at, and so are the instances of templates that
    have one, or are called with one."""
    folder = scratch / "lambdas"
    folder.mkdir()
    (folder / "work.cc").write_text(LAMBDAS_CC, encoding="utf-8")
    lines = {mark: next(i for i, line in enumerate(LAMBDAS_CC.split("\n"), 1) if "[&]" in line and (mark in line or mark == "second"
             and line.endswith("{"))) for mark in ("first", "second", "third")}
    for compiler in (os.environ.get("CXX", "g++").split(), ["clang++"]):
        program = folder / compiler[-1].replace("/", "-")
        if not shutil.which(compiler[0]) or subprocess.run([*compiler, "-g", "-O1", "-o", str(program), str(folder / "work.cc")],
                                                           capture_output=True, check=False).returncode:
            print(f"SKIP: lambdas of {compiler[-1]}: it is not there")
            continue
        names = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout.split("\n")
        addresses = {line.split()[2]: int(line.split()[0], 16) for line in names if len(line.split()) == 3}
        profile = m.Profile("work", METRICS)
        for i, mark in enumerate(lines):
            profile.sample([(str(program), addresses["mark_" + mark])], {0: 10 + i}, m.reason("DATACENTRIC_No_Compute"))
        instances = sorted(name for name in addresses if re.fullmatch("(call|with)_[0-9]+", name))
        expect([name[:5] for name in instances] == ["call_"] * 2 + ["with_"] * 2, f"instances of {compiler[-1]}: {instances}")
        for name in instances:
            profile.sample([(str(program), addresses[name])], {0: 50}, m.reason("DATACENTRIC_No_Compute"))
        profile.write(folder / (program.name + ".m"))
        run("hpcprof", "-q", "-o", folder / (program.name + ".d"), folder / (program.name + ".m"))
        wanted = {f"{{lambda at work.cc:{line}}}::operator()": 10 + i for i, line in enumerate(lines.values())}
        for report in ("functions", "lines"):
            rows = table(report, folder / (program.name + ".d"))
            found = {row["function"]: float(row["own"]) for row in rows if float(row["own"])}
            of_templates = {name: value for name, value in found.items() if name not in wanted}
            expect({name: value for name, value in found.items() if name in wanted} == wanted, f"{report} of {compiler[-1]}: {found}, not {wanted}")
            expect(sorted(of_templates.values()) == [50] * 4 and sum("{lambda at work.cc:" in name and "with<" in name for name in of_templates) == 2
                   and sum("call<" in name for name in of_templates) == 2, f"{report} of {compiler[-1]}: instances {of_templates}")
            text = run("hpcquery", report, folder / (program.name + ".d"))
            expect(all(name.partition("::")[0] in text for name in wanted), f"{report} of {compiler[-1]}: {text}")


def check_nodes(scratch):
    """Samples by NUMA node are of variables, as their places are."""
    directory = scratch / "nodes-measurement"
    profile = m.Profile("app", METRICS)
    profile.topology = "topology.xml"
    for name, cpus in (("near", [[0, 0, 30], [1, 0, 10]]), ("far", [[0, 0, 15], [3, 0, 45]])):
        profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 100},
                       m.by_address("DATACENTRIC_Static", "/nowhere/app", len(name) << 12, "static", name, 4096, cpus))
    profile.write(directory)
    (directory / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")
    run("hpcprof", "-q", "-o", scratch / "nodes", directory)
    found = {(row["variable"], row["node"]): float(row["value"]) for row in table("vars", "--by", "node", scratch / "nodes")}
    expect(found == {("near", "0"): 100, ("far", "0"): 25, ("far", "1"): 75}, f"by node: {found}")
    found = {(row["type"], row["node"]): float(row["value"]) for row in table("types", "--by", "node", scratch / "nodes")}
    expect(found == {("", "0"): 125, ("", "1"): 75}, f"types by node: {found}")
    before = (scratch / "nodes" / "locus.db").read_bytes()
    words = run("hpcquery", "vars", "-o", scratch / "nodes" / "locus.db", scratch / "nodes", status=1)
    expect("is a file of a database and is not replaced" in words, words)
    expect((scratch / "nodes" / "locus.db").read_bytes() == before, "a report has replaced a file of its database")


# Of two hosts with two packages of two cores of two threads: {(host, thread): {variable: {CPU: samples}}}. Core 1 of the
# second package has the CPUs 3 and 7.
RAN = {(0x7f0100, 0): {"near": {0: 40, 4: 20}, "far": {3: 7}}, (0x7f0100, 1): {"near": {7: 5, 3: 60}, "both": {1: 11, 6: 13}},
       (0x7f0200, 2): {"near": {2: 31}, "both": {0: 9}}}
HOSTS = {0x7f0100: "007f0100", 0x7f0200: "007f0200"}
PLACES = {"cpu": lambda c: c, "core": lambda c: c % 4, "package": lambda c: c % 4 // 2, "node": lambda c: c % 4 // 2}
CODE = {"near": "/nowhere/liba.so", "far": "/nowhere/libb.so", "both": "/nowhere/liba.so"}  # that uses the variables
SHOWN = {"cpu": ["cpu", "core", "package", "node"], "core": ["core", "package", "node"], "package": ["package"], "node": ["node"]}


def make_places(scratch, hosts, name):
    directory = scratch / f"{name}-measurement"
    for (host, thread), variables in RAN.items():
        if host not in hosts:
            continue
        profile = m.Profile("app", METRICS, rank=host >> 8 & 3, thread=thread, host=host, pid=100)
        profile.topology = f"topology-{host:x}.xml"
        for variable, cpus in variables.items():
            profile.sample([("/nowhere/app", 0x1010), (CODE[variable], 0x2020)], {0: 100 * sum(cpus.values())},
                           m.by_address("DATACENTRIC_Static", "/nowhere/app", len(variable) << 12 | ord(variable[0]), "static", variable, 4096,
                                        [[cpu, 0, n] for cpu, n in cpus.items()]))
        profile.write(directory)
        (directory / profile.topology).write_text(m.topology(2, 2, 2), encoding="utf-8")
    run("hpcprof", "-q", "-o", scratch / name, directory)
    return scratch / name


def check_cpus(scratch):
    """Samples by CPU, core, package and node of each host, of all variables and of one, against sums made here."""
    for hosts in (HOSTS, [0x7f0100]):
        database = make_places(scratch, hosts, f"places-{len(hosts)}")
        for by, variable in ((by, variable) for by in PLACES for variable in (None, "near", "both")):
            wanted, totals = {}, {}
            for (host, thread), variables in RAN.items():
                for name, cpus in variables.items():
                    for cpu, n in cpus.items() if host in hosts and variable in (None, name) else ():
                        key = (HOSTS[host], PLACES[by](cpu), thread, name)
                        wanted[key] = wanted.get(key, 0) + n
                        totals[key[:2]] = totals.get(key[:2], 0) + n
            arguments = ("cpus", "--by", by, *(("--variable", variable) if variable else ()), database)
            rows, data = table(*arguments), as_json(*arguments)
            found = {(r["host"], int(r[by]), int(r["thread"]), r["variable"]): int(r["samples"]) for r in rows}
            expect(found == wanted and len(rows) == len(wanted), f"{arguments}: {found}, not {wanted}")
            expect(all(set(SHOWN) & set(r) == set(SHOWN[by]) for r in rows), f"{arguments}: columns of {rows[0]}")
            expect(abs(sum(float(r["share"]) for r in rows) - 100) < 1e-3, f"{arguments}: shares of {rows}")
            for row in rows if by in ("cpu", "core") else ():
                core = int(row["core"])
                expect((row["package"], row["node"]) == (str(core // 2), str(core // 2)), f"{arguments}: {row}")
                expect(by == "core" or core == int(row["cpu"]) % 4, f"{arguments}: {row}")
            found = {(r["host"], r[by]): r["samples"] for r in data["rows"]}
            unused = {(HOSTS[h], p): 0 for h in hosts for p in range(2)} if by in ("package", "node") else {}
            expect(found == {**unused, **totals} and list(found) == sorted(found), f"{arguments}: {found}, not {totals}")
            expect(data["samples"] == sum(totals.values()) and data["variable"] == variable, f"{arguments}: {data}")
            for row in data["rows"]:
                for part, key in (("threads", 2), ("variables", 3)):
                    sums = {}
                    for place, n in wanted.items():
                        if place[:2] == (row["host"], row[by]):
                            sums[place[key]] = sums.get(place[key], 0) + n
                    parts = {item[part[:-1]]: item["samples"] for item in row[part]}
                    expect(parts == sums and list(parts.values()) == sorted(parts.values(), reverse=True), f"{arguments}: {row}")
        check_split_by_cpus(database, hosts)


def check_split_by_cpus(database, hosts):
    """Each variable's value goes to the places in the proportions of its samples; types add them up."""
    for by, place in PLACES.items():
        wanted, in_all = {}, {}
        for (host, _), variables in RAN.items():
            for name, cpus in variables.items():
                for cpu, n in cpus.items() if host in hosts else ():
                    column = f"{place(cpu)}@{HOSTS[host]}" if len(hosts) > 1 else str(place(cpu))
                    wanted[name, column] = wanted.get((name, column), 0) + 100.0 * n
                    in_all[column] = in_all.get(column, 0) + 100.0 * n
        found = {(row["variable"], row[by]): float(row["value"]) for row in table("vars", "--by", by, database)}
        expect(found == wanted, f"vars --by {by}: {found}, not {wanted}")
        found = {row[by]: float(row["value"]) for row in table("types", "--by", by, database)}
        expect(found == in_all, f"types --by {by}: {found}, not {in_all}")
        check_code_by_cpus(database, hosts, by)


def check_code_by_cpus(database, hosts, by):
    """Functions, lines and both trees have what their threads took at each place on the variables that they use."""
    wanted, of_variable = {}, {}
    for (host, _), variables in RAN.items():
        for name, cpus in variables.items():
            for cpu, n in cpus.items() if host in hosts else ():
                column = f"{PLACES[by](cpu)}@{HOSTS[host]}" if len(hosts) > 1 else str(PLACES[by](cpu))
                for sums, key in ((wanted, CODE[name]), (wanted, "all"), (of_variable, name), (of_variable, "all")):
                    sums[key, column] = sums.get((key, column), 0) + 100.0 * n
    for report in ("functions", "lines"):
        found = {(row["module"], row[by]): float(row["value"]) for row in table(report, "--by", by, database)}
        expect(found == {key: n for key, n in wanted.items() if key[0] != "all"}, f"{report} --by {by}: {found}, not {wanted}")
    for report, sums, key in (("tree", wanted, "module"), ("datatree", of_variable, "name")):
        rows = table(report, "--by", by, database)
        cells = {(row[key] if row["parent"] != rows[0]["parent"] else "all", row[by]): float(row["value"]) for row in reversed(rows)}
        expect({k: n for k, n in cells.items() if k in sums} == sums, f"{report} --by {by}: {cells}, not {sums}")


# {(rank, thread): ({CPU: samples on near}, of no data, dropped)}: of the last thread no CPU is known.
TAKEN = {(0, 0): ({0: 30, 4: 10}, 20, 0), (0, 1): ({3: 40}, 0, 6), (1, 0): ({1: 5}, 10, 3), (1, 1): ({}, 7, 2)}


def make_dropped(scratch):
    """Samples that are worth 10 each; two of two threads were dropped for another reason than the others."""
    directory = scratch / "dropped-measurement"
    for (rank, thread), (cpus, n_compute, n_dropped) in TAKEN.items():
        profile = m.Profile("app", METRICS, rank=rank, thread=thread, pid=100 + rank)
        profile.topology = "topology.xml"
        n = sum(cpus.values())
        if n:
            profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 10 * n},
                           m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x4000, "static", "near", 4096, [[c, 0, k] for c, k in cpus.items()]))
        if n_compute:
            profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x3030)], {0: 10 * n_compute}, m.reason("DATACENTRIC_No_Compute"))
        full = n_dropped // 2
        fates = {"named": n, "compute": n_compute, "dropped-arena-full": full, "dropped-stopped": n_dropped - full}
        profile.events = [{"metric": METRIC, "name": "EADDR", "scale": 10.0, "taken": sum(fates.values()), "overflows": 0, "fates": fates}]
        profile.write(directory)
    (directory / "topology.xml").write_text(m.topology(2, 2, 2), encoding="utf-8")
    run("hpcprof", "-q", "-o", scratch / "dropped", directory)
    return scratch / "dropped"


def check_dropped(scratch):
    """Rows by whatever add up to all samples that were taken: dropped ones are those of their threads, and at each place what
    is at no data is like what its thread did at data."""
    database = make_dropped(scratch)
    wanted, of_rows = {by: {} for by in ("thread", "process", "rank", "cpu", "core", "node", "function", "region")}, {}
    for (rank, thread), (cpus, n_compute, n_dropped) in TAKEN.items():
        columns = {"thread": f"{rank}.{thread}", "process": str(100 + rank), "rank": str(rank)}
        rows = {"near": sum(cpus.values()), "<compute>": n_compute, "<dropped: arena full>": n_dropped // 2,
                "<dropped: stopped>": n_dropped - n_dropped // 2}
        for row, n in rows.items():
            of_rows[row] = of_rows.get(row, 0) + 10 * n
            for by, column in columns.items():
                wanted[by][row, column] = wanted[by].get((row, column), 0) + 10 * n
            for cpu, part in cpus.items() or (("?", 1),):
                for by, place in PLACES.items():
                    if by in wanted:
                        key = row, str(place(cpu)) if cpu != "?" else cpu
                        wanted[by][key] = wanted[by].get(key, 0) + 10 * n * part / (sum(cpus.values()) or 1)
            for by, column in (("function", "0x2020 [app]" if row == "near" else "0x3030 [app]"), ("region", "")):
                key = row, "?" if row.startswith("<dropped") else column
                wanted[by][key] = wanted[by].get(key, 0) + 10 * n
    total = sum(of_rows.values())
    for by, cells in wanted.items():
        cells = {key: value for key, value in cells.items() if value}
        rows = table("vars", "--by", by, database)
        found = {(row["variable"], row[by]): float(row["value"]) for row in rows}
        expect(found.keys() == cells.keys() and all(abs(found[key] - cells[key]) < 1e-6 for key in cells), f"vars --by {by}: {found}, not {cells}")
        expect(abs(sum(float(row["share"]) for row in rows) - 100) < 1e-3, f"vars --by {by}: the shares of {rows}")
        found = {}
        for row in table("types", "--by", by, database):
            found[row[by]] = found.get(row[by], 0) + (float(row["value"]) if not row["field"] else 0)
        expect(abs(sum(found.values()) - total) < 1e-6, f"types --by {by}: {found}, not {total} in all")
        text = run("hpcquery", "vars", "--by", by, database, columns=140)
        expect(re.search(r"^100\.0 %  all ", text, re.M) or by in ("function", "region"), f"vars --by {by}: {text}")
        expect("not known" in text or by not in ("function", "region"), f"vars --by {by}: {text}")
    data = json.loads(run("hpcquery", "export", "json", database))
    expect(sum(drop[3] for drop in data["drops"]) == sum(taken[2] for taken in TAKEN.values()), f"drops: {data['drops']}")
    del data["drops"]  # as of an older version
    (scratch / "dropped-before").mkdir()
    for name in database.iterdir():
        if name.name != "locus.db":
            (shutil.copytree if name.is_dir() else shutil.copy)(name, scratch / "dropped-before" / name.name)
    m.write_database(scratch / "dropped-before", data)
    for by in ("thread", "cpu"):
        rows = [row for row in table("vars", "--by", by, scratch / "dropped-before") if row["variable"].startswith("<dropped")]
        expect({row[by] for row in rows} == {"?"} and sum(float(row["value"]) for row in rows) == 110, f"an older version, by {by}: {rows}")


def check_cpus_text(scratch):
    """The table for people; what cannot be shown is said in one sentence."""
    database = scratch / "places-1"
    lines = run("hpcquery", "cpus", database).split("\n")
    wanted = ["  share    CPU  core  package  node  threads  variables", " 25.6 %      0     0        0     0        1  near 100 %",
              "  7.1 %      1     1        0     0        1  both 100 %", " 42.9 %      3     3        1     1        2  near 90 %, far 10 %"]
    expect(lines[1] == "samples   156 of EADDR (usec) at data, by CPU of the threads" and [lines[3], *lines[4:7]] == wanted, f"cpus: {lines}")
    text = run("hpcquery", "cpus", "--by", "node", "--variable", "far", database)
    expect("  0.0 %      0        0  -\n" in text and "100.0 %      1        1  far 100 %\n" in text and "only those at far" in text, text)
    text = run("hpcquery", "cpus", "--top", "2", database)
    expect([line.split()[2] for line in text.split("\n")[4:6]] == ["0", "3"] and " 4 more (--top 0" in text, f"cpus --top 2: {text}")
    expect(" 007f0200     2     2        1     1 " in run("hpcquery", "cpus", scratch / "places-2"), "the hosts of CPUs")
    for columns in (60, 80, 140):
        text = run("hpcquery", "cpus", scratch / "places-2", columns=columns)
        expect(max(map(len, text.split("\n"))) <= columns, f"a line is too long for {columns}: {text}")
    for arguments, status in ((("cpus", "--by", "thread"), 2), (("cpus", "--variable", "nothing"), 1), (("vars", "--variable", "near"), 2),
                              (("cpus", "-M", "FAULTS"), 1), (("cpus", "--html"), 2)):
        said = run("hpcquery", *arguments, database, status=status)
        expect(status == 2 or said.count("\n") == 1, f"{arguments}: {said}")
    for path in (scratch / "places-1-measurement").glob("topology*"):
        path.unlink()
    run("hpcprof", "-q", "-o", scratch / "no-topology", scratch / "places-1-measurement")
    cpus = {row["cpu"] for row in table("cpus", scratch / "no-topology")}
    expect(cpus == {"0", "1", "3", "4", "6", "7"}, f"CPUs without topology: {cpus}")
    for arguments in (("cpus", "--by", "core"), ("cpus", "--by", "node"), ("vars", "--by", "core"), ("vars", "--by", "node")):
        said = run("hpcquery", *arguments, scratch / "no-topology", status=1)
        expect("NUMA nodes" in said and said.count("\n") == 1, f"{arguments}: {said}")


def check_blocks(scratch):
    """Blocks of one site: --min leaves out the same paths of leaks in all forms, and rows of a region; paths are in CSV
    and JSON."""
    profile = m.Profile("app", METRICS)
    for i, size in enumerate((60000, 30000, 10000)):
        path = [("/nowhere/app", 0x1010), ("/nowhere/app", 0x4000 + 16 * i), ("/nowhere/libc.so", 0x5000)]
        profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 50 + i}, m.heap(path, size=size))
    profile.write(scratch / "blocks-measurement")
    run("hpcprof", "-q", "-o", scratch / "blocks", scratch / "blocks-measurement")
    database = scratch / "blocks"
    for least, n in ((0, 3), (10, 3), (10.1, 2), (31, 1), (61, 0)):
        rows, data = table("leaks", "--min", least, database), as_json("leaks", "--min", least, database)["paths"]
        expect([row["live_bytes"] for row in rows] == [str(row["live_bytes"]) for row in data] == ["60000", "30000", "10000"][:n],
               f"leaks --min {least}: {rows} {data}")
        text = run("hpcquery", "leaks", "--min", least, database)
        expect((f"{3 - n} more paths" in text) == (n < 3), f"leaks --min {least}: {text}")
    rows, data = table("vars", "--paths", database), as_json("vars", "--paths", database)["variables"]
    said = sorted((row["path"], row["allocated_bytes"]) for row in table("leaks", database))
    blocks = [row for row in rows if row["class"] == "heap"]
    expect(sorted((row["path"], row["size_bytes"]) for row in blocks) == said and len(said) == 3 and " < " in said[0][0], f"{rows}")
    for row, item in zip(rows, data):
        expect([frame["function"] for frame in item["path"]] == [part.split(" (")[0] for part in row["path"].split(" < ") if part], f"{item}")
    expect("path" not in table("vars", database)[0] and "path" not in as_json("vars", database)["variables"][0], "paths unasked for")
    rows = table("vars", "--by", "region", database)
    for least in (0, 33, 34, 100):
        wanted = [row for row in rows if float(row["share"]) >= least]
        data = as_json("vars", "--by", "region", "--min", least, database)["regions"][0]["variables"]
        expect(table("vars", "--by", "region", "--min", least, database) == wanted and len(data) == len(wanted), f"region {least}")
        n_left = len(rows) - len(wanted)
        text = run("hpcquery", "vars", "--by", "region", "--min", least, database)
        expect((f" {n_left} more" in text) == (n_left > 0), f"regions --min {least}: {text}")


def check_unknown_tables(scratch):
    """Of tables with unknown names nothing is read; they must lie within the file. Here they are put behind a database
    that has none, whose last variable has no walks and whose modules have no builds."""
    profile = m.Profile("app", METRICS)
    profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 100},
                   m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x4000, "static", "only", 4096))
    profile.write(scratch / "one-measurement")
    run("hpcprof", "-q", "-o", scratch / "one", scratch / "one-measurement")
    content, reports = (scratch / "one/locus.db").read_bytes(), (("vars",), ("advice", "--min", "0"), ("export", "json"))
    expect(content[8] == 7 and content[-11:-8] == b"\0\0\0" and len(table("vars", scratch / "one")) == 1, f"one variable: {content}")
    known = [run("hpcquery", *report, scratch / "one") for report in reports]
    (scratch / "one/locus.db").write_bytes(content[:-9] + b"\1\6later\3abc" + content[-8:])
    expect([run("hpcquery", *report, scratch / "one") for report in reports] == known, "an unknown table gives other reports")
    run("hpcquery", "table", scratch / "one")
    for end in (b"\1\6later\4abc", b"\1\6later", b"\2\6later\3abc", b"\0abc"):
        (scratch / "one/locus.db").write_bytes(content[:-9] + end + content[-8:])
        said = run("hpcquery", "vars", scratch / "one", status=1)
        expect(said.count("\n") == 1 and "locus.db: offset" in said, f"tables that end as {end}: {said}")


def check_profiler(scratch):
    """The profiler's own work is a row, so that the rows add up to all samples; what it calls is in it. It is a column by
    function, and does not hide the largest function."""
    profile = m.Profile("app", METRICS)
    start = [("/nowhere/app", 0x1010)]
    for path, count in (((("/nowhere/app", 0x2020),), 25), ((("/nowhere/app", 0x3030),), 20), (((profile.runtime, 0x5000),), 35),
                        (((profile.runtime, 0x6000),), 20)):
        profile.sample(start + list(path), {0: count}, m.reason("DATACENTRIC_No_Compute"))
    profile.write(scratch / "profiler-measurement")
    run("hpcprof", "-q", "-o", scratch / "profiler", scratch / "profiler-measurement")
    for report in ("functions", "lines"):
        rows = table(report, scratch / "profiler")
        found = [(float(row["own_share"]), float(row["inclusive_share"])) for row in rows if row["function"] == "<profiler>"]
        expect(found == [(55, 55)] and sum(float(row["own_share"]) for row in rows) == 100, f"{report}: {rows}")


def check_profiler_by(scratch):
    for report in ("tree", "datatree"):
        sums = {}
        for row in table(report, "--by", "function", scratch / "profiler"):
            sums[row["function"]] = max(sums.get(row["function"], 0), float(row["share"]))
        expect(sums == {"0x2020 [app]": 25, "0x3030 [app]": 20, "<profiler>": 55}, f"{report} --by function: {sums}")
        text = run("hpcquery", report, "--by", "function", scratch / "profiler")
        expect(re.search(r"^ 100.0 % .* 25.0 %  0x2020 \[app\] ", text, re.M) and "no function" not in text, f"{report} --by function: {text}")
    rows = table("vars", "--by", "function", scratch / "profiler")
    expect("" not in {row["function"] for row in rows} and "<profiler>" in {row["function"] for row in rows}, f"vars --by function: {rows}")


def check_programs(scratch, database):
    """Columns of several programs have their names above, and what is about one of them says which."""
    directory, start = scratch / "programs-measurement", [("/nowhere/make", 0x1010)]
    for pid, (exe, count) in enumerate((("make", 5), ("cc1", 80), ("as", 15)), 100):
        profile = m.Profile(exe, METRICS, pid=pid)
        profile.sample([(f"/nowhere/{exe}", 0x1010)], {0: count}, m.heap([(f"/nowhere/{exe}", 0x2020)], n_blocks=1, size=2 << 20))
        profile.sample([(f"/nowhere/{exe}", 0x1010)], {}, m.heap([(f"/nowhere/{exe}", 0x3030)], n_blocks=1, size=3 << 20))
        profile.write(directory)
    run("hpcprof", "-q", "-o", scratch / "programs", directory)
    wanted = {"100": "make", "101": "cc1", "102": "as"}
    for by, of in (("process", wanted), ("thread", {f"{pid}.0": exe for pid, exe in wanted.items()}), ("rank", {"0": ""})):
        for report in ("vars", "functions", "tree"):
            rows = table(report, "--by", by, scratch / "programs")
            expect({row[by]: row["program"] for row in rows} == of, f"{report} --by {by}: {rows}")
            for columns in (100 if report == "tree" else 60, 200):
                text = run("hpcquery", report, "--by", by, scratch / "programs", columns=columns)
                found = by != "rank" and all(exe in text for exe in wanted.values() if exe != "as")
                expect(found == (by != "rank" and (columns > 60 or "cc1" in text)) and max(map(len, text.split("\n"))) <= columns,
                       f"{report} --by {by} in {columns} columns: {text}")
        data = as_json("vars", "--by", by, scratch / "programs")
        expect(dict(zip(data["columns"], data["programs"])) == of, f"vars --by {by} as JSON: {data}")
    for report in ("functions", "lines", "advice", "vars"):
        text = run("hpcquery", report, scratch / "programs", columns=200)
        expect(re.search("^program   .*make, cc1, as", text, re.M), f"{report}: {text}")
        text = run("hpcquery", report, database)
        expect(re.search("^program   app(:.*)?$", text, re.M) and "programs" not in text, f"{report} of one program: {text}")
    for pid in range(11):
        profile = m.Profile(f"step{pid:02}", METRICS, pid=100 + pid)
        profile.sample([("/nowhere/step", 0x1010)], {0: 10}, m.reason("DATACENTRIC_No_Compute"))
        profile.write(scratch / "steps-measurement")
    run("hpcprof", "-q", "-o", scratch / "steps", scratch / "steps-measurement")
    names = ", ".join(f"step{pid:02}" for pid in range(8))
    for report, before in (("functions", "; 11 programs: "), ("vars", ": 11 processes (")):
        text = run("hpcquery", report, scratch / "steps", columns=200)
        expect(f"{before}{names} and 3 more" in text, f"{report} of many programs: {text}")
    text = run("hpcquery", "vars", "--by", "process", scratch / "programs")
    expect(re.search("^ +make +cc1 +as\n  share  variable +100 +101 +102 ", text, re.M), f"vars --by process: {text}")
    rows = table("advice", "--min", "0", scratch / "programs")
    leaks = {row["program"]: row for row in rows if row["rule"] == "leak"}
    expect(set(leaks) == set(wanted.values()), f"advice: {rows}")
    text = run("hpcquery", "advice", "--top", "0", scratch / "programs")
    expect(re.search("^ 3.0 MiB .* in cc1\n +free it", text, re.M) and " 0.0 %" not in text, f"advice: {text}")
    for pid, exe in ((100, "sh"), (101, "cut"), (101, "sh"), (102, "sh"), (102, "uniq")):  # the shell's children call exec
        profile = m.Profile(exe, METRICS, pid=pid)
        profile.sample([(f"/nowhere/{exe}", 0x1010)], {0: 10}, m.heap([(f"/nowhere/{exe}", 0x2020)], n_blocks=1, size=2 << 20))
        profile.write(scratch / "pipe-measurement")
    run("hpcprof", "-q", "-o", scratch / "pipe", scratch / "pipe-measurement")
    found = {row["process"]: row["program"] for row in table("vars", "--by", "process", scratch / "pipe")}
    expect(found == {"100": "sh", "101": "cut", "102": "uniq"}, f"programs after exec: {found}")


def check_annotate_by(program, database):
    """Lines of a source and of a function, split: what annotate says of them, and lines --by of all functions together."""
    for by in ("thread", "process", "rank"):
        known = {}
        for row in table("lines", "--by", by, database):
            place = row["file"], row["line"], row[by]
            known[place] = known.get(place, 0) + float(row["value"])
        for subject in ("app.c", "leaf"):
            rows = table("annotate", subject, "--by", by, database)
            whole = {(row["file"], row["line"]): (float(row["own"]), row["source"]) for row in table("annotate", subject, database)}
            found = {}
            for row in rows:
                own, source = whole[row["file"], row["line"]]
                found[row["file"], row["line"]] = found.get((row["file"], row["line"]), 0) + float(row["value"])
                expect(row["source"] == source and known[row["file"], row["line"], row[by]] == float(row["value"]), f"annotate {subject}: {row}")
            expect(found == {place: own for place, (own, _) in whole.items() if own} and rows, f"annotate {subject} --by {by}: {found}, not {whole}")
            data = as_json("annotate", subject, "--by", by, database)
            cells = [(row["file"], str(row["line"]), cell[by], cell["value"]) for row in data["rows"] for cell in row["cells"]]
            expect(cells == [(row["file"], row["line"], row[by], float(row["value"])) for row in rows], f"annotate {subject} as JSON: {data}")
    for columns in (60, 100, 200):
        text = run("hpcquery", "annotate", "app.c", "--by", "rank", database, columns=columns)
        expect(max(map(len, text.split("\n"))) <= columns and f" {program.places['leaf_grid'][1]}  " in text, f"annotate --by rank: {text}")


def check_twins(database, program, scratch):
    """Rows of one name can be told apart: by file and function, by module."""
    folder = program.folder
    for report, name in (("functions", "helper"), ("lines", "util.c:4")):
        for columns in (60, 100, 300):
            text = run("hpcquery", report, "--by", "rank", database, columns=columns)
            lines = [line.strip() for line in text.split("\n")]
            found = [i for i, line in enumerate(lines) if f"  {name} " in line]
            below = " ".join(lines[found[0] + 1:]).replace(" ", "")
            expect(len(found) == 2 and all(f"{folder}/{at}/util.c" in below for at in "ab"), f"{report} --by rank: {text}")
        expect(f"{folder}/app.c" not in text, f"{report} --by rank: an own line for what has one name: {text}")
    text = run("hpcquery", "functions", database)
    expect(f"\n{'':18}{folder}/a/util.c\n" in text and f"\n{'':18}{folder}/b/util.c\n" in text and "/app.c\n" not in text, f"functions: {text}")
    directory, modules = scratch / "twins-measurement", ("/nowhere/app", "/nowhere/libtwin.so")
    profile = m.Profile("app", METRICS)
    for i, module in enumerate(modules):
        profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 60 + i},
                       m.by_address("DATACENTRIC_Static", module, 0x4000, "static", "twin", 4096))
    profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x3020)], {0: 50},
                   m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x8000, "static", "single", 4096))
    profile.write(directory)
    run("hpcprof", "-q", "-o", scratch / "twins", directory)
    for caller, size in ((0x1110, 4096), (0x1210, 3 << 20)):  # one site, blocks of two sizes
        profile.sample([("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)], {0: 20},
                       m.heap([("/nowhere/app", caller), ("/nowhere/libtwin.so", 0x5001)], n_blocks=2, size=size))
    profile.write(scratch / "sizes-measurement")
    run("hpcprof", "-q", "-o", scratch / "sizes", scratch / "sizes-measurement")
    text = run("hpcquery", "vars", "--by", "thread", scratch / "sizes")
    expect(re.search("^ +0x5000 .*, 2 blocks, 8.0 KiB$", text, re.M) and re.search("^ +0x5000 .*, 2 blocks, 6.0 MiB$", text, re.M), f"twins of one site: {text}")
    for by in ("thread", "function"):
        text = run("hpcquery", "vars", "--by", by, scratch / "twins")
        expect(all(f"{name}\n" in text for name in ("app", "libtwin.so")), f"vars --by {by}: {text}")
    text = run("hpcquery", "types", scratch / "twins", columns=200)
    expect("twin from libtwin.so, twin from app, single\n" in text, f"types: {text}")
    rows = table("types", scratch / "twins")
    expect([row["variables"] for row in rows if not row["field"]] == ["twin from libtwin.so; twin from app; single"], f"types: {rows}")


def check_one_source(program, scratch):
    """A function that two modules have from one file: two rows that name their modules, one name above its source. Notes name
    a module once, however many files and paths it has."""
    directory, libraries, addresses = scratch / "one-source-measurement", [], []
    for name in ("libone.so", "libother.so"):
        libraries.append(str(program.folder / name))
        subprocess.run([*os.environ.get("CC", "gcc").split(), "-g", "-O0", "-shared", "-fPIC", "-o", libraries[-1], str(program.folder / "a/util.c")],
                       check=True)
        names = subprocess.run(["nm", libraries[-1]], capture_output=True, text=True, check=True).stdout
        addresses.append(int(re.search(r"(\w+) \w mark_usehelper", names).group(1), 16))
    profile = m.Profile("app", METRICS)
    linked = program.folder / "linked"
    linked.symlink_to(program.folder)
    bare = program.folder / "libbare.so"
    (program.folder / "bare.c").write_text("int bare(int i)\n{\n    return i * 3;\n}\n", encoding="utf-8")
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-shared", "-fPIC", "-o", str(bare), str(program.folder / "bare.c")], check=True)
    for i, path in enumerate((*libraries, "/nowhere/a/libgone.so", "/nowhere/b/libgone.so", "/nowhere/libalone.so", bare, linked / "libbare.so")):
        profile.sample([("/nowhere/app", 0x1010), (str(path), addresses[min(i, 1)])], {0: 60 - i}, m.reason("DATACENTRIC_No_Compute"))
    profile.write(directory)
    database = scratch / "one-source"
    run("hpcprof", "-q", "-o", database, directory)
    lines = run("hpcquery", "functions", database, columns=120).split("\n")
    for library in libraries:
        expect(f"{'':18}in {library}" in lines and "helper" in lines[lines.index(f"{'':18}in {library}") - 1], f"functions: {lines}")
    text = run("hpcquery", "annotate", "helper", database)
    expect(re.search(r"^function +helper$", text, re.M), f"annotate helper: {text}")
    words = " ".join(run("hpcquery", "vars", database, columns=300).split())
    expect("Not readable here, so functions are shown by address: app, libgone.so (2 files), libalone.so." in words, f"notes: {words}")
    expect("compile with -g for lines and inlining): libbare.so." in words, f"notes: {words}")


ASSEMBLY = """    .text
    .globl hidden_one, hidden_two
    .hidden hidden_one, hidden_two
    .type hidden_one, @function
hidden_one:
    .skip 32, 0x90
    .size hidden_one, .-hidden_one
    .type hidden_two, @function
hidden_two:
    .fill 16, 2, 0xfeeb
    .size hidden_two, .-hidden_two
    .section .note.GNU-stack,"",@progbits
"""


def check_assembly(program, scratch):
    """A stripped library: what has a range in the unwind tables is a function, all other code is one row; in each report and form."""
    folder, compiler = program.folder, os.environ.get("CC", "gcc").split()
    (folder / "hidden.s").write_text(ASSEMBLY, encoding="utf-8")
    library = folder / "libhidden.so"
    subprocess.run([*compiler, "-g0", "-O0", "-shared", "-fPIC", "-o", str(library), str(folder / "hidden.s"), str(folder / "a/util.c")], check=True)
    names = {line.split()[2]: int(line.split()[0], 16) for line in
             subprocess.run(["nm", str(library)], capture_output=True, text=True, check=True).stdout.split("\n") if len(line.split()) == 3}
    subprocess.run([*compiler, "-s", "-g0", "-O0", "-shared", "-fPIC", "-o", str(library), str(folder / "hidden.s"), str(folder / "a/util.c")], check=True)
    profile, path = m.Profile("app", METRICS), [("/nowhere/app", 0x1010)]
    bare, ranged = "code without symbols [libhidden.so]", f"func_0x{names['helper']:x} [libhidden.so]"
    for place, n in (((names["hidden_one"]), 10), (names["hidden_one"] + 8, 20), (names["hidden_two"] + 4, 30), (names["helper"], 5),
                     (names["helper"] + 4, 7)):
        profile.sample([*path, (str(library), place)], {0: n}, m.reason("DATACENTRIC_No_Compute"))
    for offset in (8, 16):
        profile.sample([*path, ("/nowhere/app", 0x2020)], {0: 3}, m.heap([*path, (str(library), names["hidden_two"] + offset)], n_blocks=1, size=4096))
    profile.write(scratch / "assembly-measurement")
    database = scratch / "assembly"
    run("hpcprof", "-q", "-o", database, scratch / "assembly-measurement")
    found = {row["function"]: float(row["own"]) for row in table("functions", database) if row["module"] == str(library)}
    expect(found == {bare: 60, ranged: 12}, f"functions: {found}")
    found = {row["name"]: float(row["inclusive"]) for row in table("tree", database) if row["kind"] == "function" and row["module"] == str(library)}
    expect(found == {bare: 60, ranged: 12}, f"tree: {found}")
    for form in ("folded", "callgrind", "dot", "speedscope"):
        text = run("hpcquery", "export", form, database)
        expect(bare in text and ranged in text and not re.search(r"0x[0-9a-f]+ \[libhidden.so\]", text.replace("func_0x", "")), f"{form}: {text}")
    for step in ("hotpath", "callers 2", 'filter "depth >= 0"'):
        text = run("hpcquery", *step.replace('"', "").split(" ", 1), database)
        expect(bare in text and "unknown file" not in text, f"{step}: {text}")
    rows = {row["variable"] for row in table("vars", database) if row["class"] == "heap"}
    expect(len(rows) == 2 and all(re.fullmatch(r"0x[0-9a-f]+ \[libhidden.so\]", name) for name in rows), f"blocks of two sites: {rows}")


def check_widths(database):
    """Tables are as wide as the terminal and use its room; what has no data beside it has the room of that."""
    for columns in (60, 80, 100, 200):
        for arguments in (("functions",), ("lines",), ("annotate", "app.c")):
            text = run("hpcquery", *arguments, database, columns=columns)
            expect(max(map(len, text.split("\n"))) <= columns, f"{arguments}: a line is too long for {columns}: {text}")
    own = [line.index("function") - line.index("own") for columns in (60, 200)
           for line in [run("hpcquery", "functions", database, columns=columns).split("\n")[3]]]
    data = [run("hpcquery", "functions", database, columns=columns).split("\n")[3].index("on data") for columns in (60, 200)]
    expect(own[0] == own[1] and data[1] > 2 * data[0] - 20, f"functions: columns {data}")


def check_long_names(scratch):
    """A name that fills its column ends before the next one; a module is named once in a row; programs have no directory."""
    directory, long = scratch / "long-measurement", "a_name_that_is_longer_than_its_column"
    profile = m.Profile("app", METRICS)
    for i, name in enumerate((long, "other")):
        profile.sample([("/nowhere/app", 0x1010), ("/nowhere/lib/libmodule.so", 0x2020)], {0: 60 - i},
                       m.by_address("DATACENTRIC_Static", "/nowhere/app", (i + 1) << 14, "static", name, 4096, [[0, 0, 60 - i]]))
    profile.topology = "topology.xml"
    profile.write(directory)
    (directory / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")
    run("hpcprof", "-q", "-o", scratch / "long", directory)
    text = run("hpcquery", "vars", "--by", "function", scratch / "long")
    rest = next(line for line in text.split("\n") if "a_name" in line).partition("a_name")[2]
    expect(" " in rest.strip(), f"vars --by function: name and origin have nothing between them: {text}")
    text = run("hpcquery", "vars", "--by", "node", "--top", "1", scratch / "long")
    expect(" 1 more (--top 0 shows all)\n" in text, f"vars --by node does not say what it leaves out: {text}")
    for report in ("functions", "lines"):
        text = run("hpcquery", report, scratch / "long")
        expect("libmodule.so" in text and "[libmodule" not in text, f"{report}: a module twice in a row: {text}")
    for arguments in (("vars",), ("functions",), ("lines",), ("vars", "--by", "thread"), ("types",), ("advice",)):
        head = run("hpcquery", *arguments, scratch / "long").split("\n")[0]
        expect(re.fullmatch("program   app(: .*)?", head), f"{arguments}: {head}")


def check_least(database):
    """--min leaves out the same rows of variables in all forms."""
    rows = table("vars", database)
    for least in (0, 5, 20, 100):
        wanted = [row["variable"] for row in rows if float(row["share"]) >= least]
        found = [row["variable"] for row in table("vars", "--min", least, database)]
        data = as_json("vars", "--min", least, database)["variables"]
        text = run("hpcquery", "vars", "--min", least, database)
        expect(found == wanted == [row["variable"] for row in data], f"vars --min {least}: {found}, {data}, not {wanted}")
        expect(all((f" {row['variable']} " in text.split("\n\n")[1]) == (row["variable"] in wanted) for row in rows), f"{least}: {text}")
        n_left = len(rows) - len(wanted)
        expect(n_left == 0 or f"{n_left} more" in text, f"vars --min {least}: {text}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name).resolve()
        program, database = Program(scratch), scratch / "database"
        measure(program, scratch / "measurement")
        run("hpcprof", "-q", "-o", database, scratch / "measurement")
        check_code(program, database)
        check_annotate(program, database)
        check_annotate_refusals(program, database)
        check_without_sources(program, database, scratch)
        check_by(program, database)
        check_nodes(scratch)
        check_cpus(scratch)
        check_dropped(scratch)
        check_cpus_text(scratch)
        check_profiler(scratch)
        check_profiler_by(scratch)
        check_programs(scratch, database)
        check_annotate_by(program, database)
        check_trees(program, database)
        check_without(database)
        check_lambdas(scratch)
        check_least(database)
        check_widths(database)
        check_long_names(scratch)
        check_twins(database, program, scratch)
        check_one_source(program, scratch)
        check_assembly(program, scratch)
        check_unknown_tables(scratch)
        check_blocks(scratch)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
