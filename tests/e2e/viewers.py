#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""What the exports say in the programs that people open them with: of threads of C++ and of the demo, which are measured here,
and of databases of HPCToolkit where ../shared/data is.

callgrind_annotate: no message; the totals, and of each function its own cost and the one with what it calls, are those of
`hpcquery functions`; of the data form each variable's are those of `hpcquery vars`. `go tool pprof`: -top is `functions`,
-tags has each variable with its cost, -list the lines, -tree and -raw read the whole. KCachegrind, whose window is read as a
screen reader would, says nothing else than these totals and shares. Graphviz draws every node."""
import collections
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
PROGRAMS = SOURCE / "tests" / "e2e" / "programs"
SHARED = SOURCE.parent / "shared" / "data" / "hpctoolkit"
PLACES = {"line", "loop", "call", "instruction"}
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), capture_output=True, check=False, text=True, encoding="utf-8", errors="replace",
                            stdin=subprocess.DEVNULL, timeout=600, **options)
    expect(result.returncode == 0 and not result.stderr, f"{' '.join(map(str, command))}: {result.returncode}: {result.stderr[:1000]}")
    return result.stdout


def hpcquery(*words):
    return run(BUILD / "hpcquery", *words)


def table(*words):
    return list(csv.DictReader(io.StringIO(hpcquery(*words, "--csv", "--top", "0"))))


def added(pairs):
    sums = collections.Counter()
    for key, value in pairs:
        sums[key] += value
    return +sums


def compare(what, found, wanted, least):
    """Values by name are the same, within least, the least that the tool prints."""
    for key in {*found, *wanted}:
        if abs(found.get(key, 0) - wanted.get(key, 0)) > least + 1e-6 * wanted.get(key, 0):
            failures.append(f"{what}: {key}: {found.get(key)}, not {wanted.get(key)}")


def compare_data(what, case, found, scale):
    """The same for variables. What a frame's locals have of it is told by counts of samples, in the whole by the report and by
    statements in the exports: where samples differ in weight, which they do when sampling was slowed down, that may differ a little."""
    wanted = {name: scale * cost for name, cost in case.data.items()}
    alone = wanted.keys() - case.frames.keys()
    compare(what, {name: found.get(name, 0) for name in alone}, {name: wanted[name] for name in alone}, .5)
    sums = [added((case.frames[name], values.get(name, 0)) for name in case.frames) for values in (found, wanted)]
    compare(f"{what}, by frame", *sums, .5 * max(1, len(case.frames)))
    for name, frame in case.frames.items():
        compare(what, {name: found.get(name, 0)}, {name: wanted[name]}, .5 + .02 * sums[1][frame])


class Case:
    """A database of ours, and what our own reports say of it: times in microseconds."""

    def __init__(self, name, path, scratch):
        self.name, self.path, self.scratch = name, path, scratch
        variables = json.loads(hpcquery("vars", "--json", "--top", "0", path))
        rows = table("functions", path)
        self.metric, self.total = variables["metric"], variables["total_value"]
        # samples that were lost, as on a busy machine, are in no place of the code, so in no export
        self.total -= sum(row["value"] for row in variables["variables"] if row["class"] == "dropped")
        self.is_time = "(usec)" in self.metric
        self.own = added((row["function"], float(row["own"])) for row in rows)
        self.all = added((row["function"], float(row["inclusive"])) for row in rows)
        variables = [row for row in variables["variables"] if not row["variable"].startswith("<")]
        self.data = added((row["variable"], row["value"]) for row in variables)
        self.frames = {row["variable"]: row.get("function") for row in variables if row["class"] == "stack"}

    def export(self, form):
        path = self.scratch / f"{self.name}.{form}"
        hpcquery("export", form, "-M", self.metric, "-o", path, self.path)
        return path


class Foreign(Case):
    """A database of HPCToolkit, summed up here from the tree that it is; its time is in seconds."""

    def __init__(self, name, path, scratch):  # pylint: disable=super-init-not-called
        self.name, self.path, self.scratch, self.metric, self.data, self.frames = name, path, scratch, "time", {}, {}
        own, inclusive, roots = collections.Counter(), collections.Counter(), json.loads(hpcquery("export", "literal", path))
        left = [(root, ()) for root in roots]
        while left:
            node, above = left.pop()
            names = above if node["frame"]["type"] in PLACES else (*above, node["frame"]["name"])
            cost = node["metrics"].get("time", 0)
            own[names[-1] if names else ""] += cost
            for name in set(names):
                inclusive[name] += cost
            left += [(child, names) for child in node["children"]]
        self.is_time = any(cost % 1 for cost in own.values())  # whole numbers have no unit
        scale = 1e6 if self.is_time else 1
        self.own, self.all = (added((name, scale * cost) for name, cost in each.items()) for each in (own, inclusive))
        self.total = sum(self.own.values())


# --- callgrind_annotate ---


def annotated(path, *options):
    """The total, and {function: its cost}, as callgrind_annotate has them of a file with one event."""
    total, found = None, collections.Counter()
    command = ["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", *options, path]
    for line in run(*command, cwd=path.parent).splitlines():  # it takes its directory off the names of callers alone
        cost = re.match(r" *([\d,]+) +(?:(PROGRAM TOTALS)|([^:]*):(.*) \[\S*\])$", line)
        if cost and cost[2]:
            total = int(cost[1].replace(",", ""))
        elif cost:
            found[cost[4]] += int(cost[1].replace(",", ""))
    return total, found


def check_annotate(case):
    """Costs are whole nanoseconds where the metric is a time in microseconds."""
    scale = 1000 if case.is_time else 1
    path = case.export("callgrind")
    total, own = annotated(path)
    expect(total == round(scale * case.total), f"{case.name}: callgrind_annotate: a total of {total}, not {scale * case.total}")
    compare(f"{case.name}: callgrind_annotate", +own, added((name, scale * cost) for name, cost in case.own.items()), .5)
    _, inclusive = annotated(path, "--inclusive=yes")
    compare(f"{case.name}: callgrind_annotate, inclusive", {name: inclusive[name] for name in case.all},
            {name: scale * cost for name, cost in case.all.items()}, .5)
    if case.data:
        total, own = annotated(case.export("callgrind-data"))
        expect(total == round(scale * case.total), f"{case.name}: callgrind_annotate of data: {total}, not {scale * case.total}")
        compare_data(f"{case.name}: callgrind_annotate of data", case, own, scale)


# --- go tool pprof ---

UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "ns": 1e-3, "": 1, "mins": 6e7, "hrs": 3.6e9}


def number(text):
    found = re.fullmatch(r"(-?\d[\d.]*)([a-z]*)", text)
    return float(found[1]) * UNITS[found[2]] if found else 0


def pprof(case, path, *options):
    home = case.scratch / "home"
    home.mkdir(exist_ok=True)
    return run("go", "tool", "pprof", "-unit=us", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0",
               f"-sample_index={case.metric}", *options, path, env={**os.environ, "HOME": str(home), "PPROF_TMPDIR": str(home)})


def check_top(case, path):
    own, inclusive = collections.Counter(), {}
    text = pprof(case, path, "-top")
    for line in text.splitlines():
        found = re.match(r" *(\S+) +\S+% +\S+% +(\S+) +\S+% +(.*?)(?: \(inline\))?$", line)
        if found:
            own[found[3]], inclusive[found[3]] = number(found[1]), number(found[2])
    compare(f"{case.name}: pprof -top", own, case.own, .5)
    compare(f"{case.name}: pprof -top, cumulative", {name: inclusive.get(name, 0) for name in case.all}, case.all, .5)
    expect(f"Type: {case.metric}\n" in text, f"{case.name}: pprof: {text[:200]}")


def check_tags(case, path):
    """Every variable is a label."""
    found, key = {}, None
    for line in pprof(case, path, "-tags").splitlines():
        head, row = re.match(r" *(\w+): Total ", line), re.match(r" *(\S+) \( *[\d.e-]+%\): (.*)$", line)
        key = head[1] if head else key
        if row:
            found[key, row[2]] = number(row[1])
    compare_data(f"{case.name}: pprof -tags", case, {name: found.get(("variable", name), 0) for name in case.data}, 1)


def check_lines(case, path, function):
    """The costs of the lines of a function, beside its source."""
    rows = [row for row in table("lines", case.path) if row["function"] == function]
    found = {}
    for line in pprof(case, path, f"-list=^{re.escape(function)}$").splitlines():
        cells = re.match(r" *(\S+) +(\S+) +(\d+):(.*)$", line)
        if cells and number(cells[1]):
            found[int(cells[3])] = number(cells[1])
            expect(cells[4].strip(), f"{case.name}: pprof -list: no source in {line}")
    compare(f"{case.name}: pprof -list {function}", found, added((int(row["line"] or 0), float(row["own"])) for row in rows), .5)


def check_pprof(case):
    path = case.export("pprof")
    check_top(case, path)
    check_tags(case, path)
    tree, raw = pprof(case, path, "-tree"), pprof(case, path, "-raw")
    expect(all(name in tree for name in case.own), f"{case.name}: pprof -tree lacks functions")
    samples = re.search(r"^Samples:\n(.*?)^Locations$", raw, re.M | re.S)
    costs = [int(cost) for cost in re.findall(r"^ +(\d+): ", samples[1] if samples else "", re.M)]
    total = case.total * (1000 if "/nanoseconds" in raw else 1)
    expect(abs(sum(costs) - total) < len(costs), f"{case.name}: pprof -raw: {sum(costs)}, not {total}")


LINED = """#include <stdlib.h>
volatile double sum;
__attribute__((noinline)) static void add(double *a, long n)
{
#line 10 "first.y"
    for (long i = 0; i < n; i++) sum += a[i] * 1.5;
#line 20 "second.y"
    for (long i = 0; i < n; i++) sum += a[i] / 1.5;
#line 10 "lined.c"
}
int main(void)
{
    double *a = calloc(1 << 20, 8);
    for (int k = 0; k < 60; k++) add(a, 1 << 20);
    return sum > 1;
}
"""


def check_line_files(scratch):
    """Lines of a function that #line puts into other files stand in these: pprof looks them up in the function's file."""
    (scratch / "lined.c").write_text(LINED, encoding="utf-8")
    case = measured("lined", scratch, ["gcc"], [scratch / "lined.c"])
    places = re.findall(r"^ *(\S+) .*\badd \S*?([^/\s]+:\d+)(?: \(inline\))?$", pprof(case, case.export("pprof"), "-top", "-lines"), re.M)
    own = added((place, number(cost)) for cost, place in places)
    expect(min(own["first.y:10"], own["second.y:20"]) > 0.2 * case.total and set(own) <= {"first.y:10", "second.y:20"},
           f"lines of other files in pprof: {own} of {case.total}")


def measure(scratch, name, *arguments):
    subprocess.run([str(BUILD / "hpcrun"), "-o", str(scratch / f"{name}.m"), str(scratch / name), *arguments], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "XDG_CACHE_HOME": str(scratch / "cache"), "OMP_NUM_THREADS": "2"})


# --- KCachegrind ---

DEBIAN_PYTHON = "/usr/bin/python3"  # which has Debian's dbus


def can_see_windows():
    has_tools = shutil.which("kcachegrind") and shutil.which("xvfb-run") and shutil.which("dbus-run-session") and \
        pathlib.Path("/usr/libexec/at-spi-bus-launcher").exists() and pathlib.Path(DEBIAN_PYTHON).exists()
    return has_tools and subprocess.run([DEBIAN_PYTHON, "-c", "import dbus"], capture_output=True, check=False).returncode == 0


def seen(name, path, settings=""):
    """[(depth, role, text)] of KCachegrind's windows. It takes files for parts whose names begin with this one."""
    home = path.with_name(f"{path.name}.home")
    (home / ".config").mkdir(parents=True)
    (home / "run").mkdir(mode=0o700)
    (home / ".config" / "kcachegrindrc").write_text("[TipOfDay]\nRunOnStart=false\n" + settings, encoding="utf-8")
    alone = shutil.copy(path, home / "profile")
    result = subprocess.run(["xvfb-run", "-a", "dbus-run-session", "--", DEBIAN_PYTHON, str(SOURCE / "tests/lib/read-window.py"),
                             r"Total .* Cost: \d", "kcachegrind", alone], capture_output=True, check=False, text=True, encoding="utf-8",
                            stdin=subprocess.DEVNULL, timeout=300,
                            env={**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "LC_ALL": "C.UTF-8"})
    lines = (result.stdout + result.stderr).splitlines()  # xvfb-run makes one of both
    if sum(line.startswith("[") for line in lines) <= 1:
        print("KCachegrind shows no window:", *lines[-20:], sep="\n    ")
    # XIO: a program of the session that outlives the display
    words = [line for line in lines if re.search(r"error|warning|line \d", line, re.I) and not re.search("dbus|accessib|^XIO:", line)]
    expect(not [line for line in words if line[0] != "["], f"{name}: KCachegrind: {words}")
    return [json.loads(line) for line in lines if line.startswith("[")]


def check_window(case, path, own, inclusive):
    parts = seen(case.name, path)
    total = next((text for _, role, text in parts if role == "label" and "Total " in text), "no total")
    wanted = round(case.total * (1000 if case.is_time else 1))
    expect(total.endswith(f"Cost: {wanted:,}".replace(",", " ")), f"{path.name}: KCachegrind: {total}, not {wanted}")
    windows = [text for depth, _, text in parts if depth == 2]
    expect(len(windows) == 1 and str(path.parent) in windows[0], f"{path.name}: KCachegrind's windows are {windows}")
    first = next((i for i, part in enumerate(parts) if part[1:] == ["column header", "Incl."]), len(parts))
    cells = [text for depth, role, text in parts[first:] if depth == parts[first][0] and role == "tree item"]
    rows = list(zip(*[iter(cells)] * 5))
    expect(len(rows) >= min(5, len(own)), f"{path.name}: KCachegrind shows {rows}")
    for part, alone, _, name, _ in rows:
        if name in own and own[name] > 0:
            expect(abs(float(alone) - 100 * own[name] / case.total) < .011, f"{path.name}: KCachegrind: {name} has {alone} % itself")
        if name in inclusive:
            expect(abs(float(part) - 100 * inclusive[name] / case.total) < .011, f"{path.name}: KCachegrind: {name} has {part} %")


def check_kcachegrind(case):
    if case.data:  # the others would say nothing new
        check_window(case, case.export("callgrind"), case.own, case.all)
        check_window(case, case.export("callgrind-data"), case.data, case.data)


CALLS = """volatile double sink;
__attribute__((noinline)) double leaf(long n) { double s = 0; for (long i = 0; i < n; i++) s += i; sink = s; return s; }
__attribute__((noinline)) double other(long n) { double s = 1; for (long i = 0; i < n; i++) s += 3 * i; sink = s; return s; }
__attribute__((noinline)) double middle(long n) { sink = leaf(n) + other(n) + leaf(n); return sink; }
int main(void) { sink = middle(300000000); return 0; }
"""


def check_machine_code(scratch):
    """The source and the machine code of a function that does nothing but call, of an export with instructions."""
    source, program, profile = scratch / "calls.c", scratch / "calls", scratch / "calls.profile"
    source.write_text(CALLS, encoding="utf-8")
    run("gcc", "-O1", "-g", "-o", program, source)
    measure(scratch, "calls")
    run(BUILD / "hpcprof", "-q", "--instructions", "-o", scratch / "calls.d", scratch / "calls.m")
    run(BUILD / "hpcquery", "export", "callgrind", "-o", profile, scratch / "calls.d")
    state = "ActiveBottom=InstrView\nActiveTop=SourceView\nActiveItemName=middle\nActiveItemType=Function\n"
    parts = seen("calls", profile, "".join(f"[MainView-TabView-1{of}]\n{state}" for of in ("", "-calls.d")))
    texts = [text.strip() for _, role, text in parts if role == "tree item"]
    calls = {name: sum(bool(re.match(rf"\d+ calls? to '{name}'", text)) for text in texts) for name in ("leaf", "other")}
    # in the source two calls of leaf are one row; in the machine code each has its own
    expect(calls == {"leaf": 3, "other": 2}, f"calls in KCachegrind: {calls} in {texts}")
    code = {re.sub(r"^ +", "", line).split(":")[0].upper() for line in run("objdump", "-d", program).splitlines() if re.search(r"\tcall .*<(leaf|other)>", line)}
    expect(len(code) == 3 and code <= set(texts), f"KCachegrind shows {texts}, the calls are at {code}")
    wrong = [text for _, _, text in parts if re.search("no instruction info|no source|inconsisten|not found|error", text, re.I)]
    expect(not wrong, f"KCachegrind says {wrong}")


# --- Graphviz ---


def check_dot(case):
    path = case.export("dot")
    n_nodes = len(re.findall(r"^n\d+ \[", path.read_text(encoding="utf-8"), re.M))
    n_drawn = run("dot", "-Tsvg", path).count('class="node"')
    expect(n_drawn == n_nodes > 0, f"{case.name}: dot draws {n_drawn} of {n_nodes} nodes")


# --- all of them ---


def measured(name, scratch, compiler, sources, *arguments):
    """A database of a program that is compiled and measured here."""
    run(*compiler, "-O2", "-g", "-o", scratch / name, *sources, "-lm")
    measure(scratch, name, *arguments)
    run(BUILD / "hpcprof", "-q", "-o", scratch / f"{name}.d", scratch / f"{name}.m")
    return Case(name, scratch / f"{name}.d", scratch)


def cases(scratch):
    yield measured("threads", scratch, ["g++", "-pthread"], [PROGRAMS / "exports.cc"], "0.5")
    yield measured("minicg", scratch, ["gcc", "-fopenmp"], sorted((PROGRAMS / "minicg").glob("*.c")), "--side", "96", "--steps", "2")
    for name in ("hatchet/hatchet_cpi_v4_database", "hatchet/hpctoolkit-cpi-database"):
        if (SHARED / name).exists():
            yield Foreign(name.rsplit("/", 1)[1], SHARED / name, scratch)
        else:
            print(f"SKIP (part): no {SHARED / name}")


def main():
    tools = {"callgrind_annotate": check_annotate, "go": check_pprof, "dot": check_dot, "kcachegrind": check_kcachegrind}
    for tool in list(tools):
        if not shutil.which(tool) or (tool == "kcachegrind" and not can_see_windows()):
            print(f"SKIP (part): no {tool}" + (", or no way to read its window" if tool == "kcachegrind" else ""))
            del tools[tool]
    with tempfile.TemporaryDirectory() as name:
        for case in cases(pathlib.Path(name)):
            expect(case.total > 0 and len(case.own) > 1, f"{case.name}: {case.own}")
            for check in tools.values():
                check(case)
            if case.name == "threads" and "kcachegrind" in tools and shutil.which("objdump"):
                check_machine_code(case.scratch)
            if case.name == "threads" and "go" in tools:
                check_line_files(case.scratch)
                check_lines(case, case.export("pprof"), max(case.own, key=case.own.get))
    for failure in failures[:30]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
