# SPDX-License-Identifier: BSD-3-Clause
"""Things that can be looked at (hpcquery items): on a program whose answers are known, what stands for a variable, line,
function, thread as another kind, and why nothing does; on the databases of other tests, every thing is found again by its
name, only once, and costs what the reports say. States of a viewer print what their command lines print."""
import csv
import io
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import urllib.parse

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "golden"))
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import answers  # noqa: E402
import reports  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

KINDS = ("variable", "field", "type", "site", "function", "loop", "line", "instruction", "file", "module", "region", "node",
         "thread", "process", "rank", "cpu", "numa-node", "event")
AT_LENGTH = bool(os.environ.get("LOCUS_TEST_FULL"))
SEVERAL = 12 if AT_LENGTH else 4  # of a kind are looked at in each database
N_STATES = 25 if AT_LENGTH else 8  # in each database


def ask(database, thing, *words):
    return json.loads(run("hpcquery", "items", thing, *words, "--json", database).stdout)["items"]


def stand_ins(database, thing):
    """{kind: name, or why there is none} of a thing."""
    return {row["kind"]: row["item"].partition(":")[2] if row["item"] else f"none: {row['missing']}" for row in ask(database, thing)}


def check_known(database, program):
    """What stands for what, by the samples that reports.py puts at marks."""
    app, line = str(program.folder / "app.c"), {mark: f"{file}:{number}" for mark, (file, number) in program.places.items()}
    wanted = {
        "variable:grid": {"line": line["leaf_grid"], "function": "leaf", "file": app, "module": str(program.path),
                          "loop": "none: what uses it most is in no loop that is known", "instruction":
                          "none: the database has no instructions (hpcprof --instructions)"},
        "variable:<compute>": {"line": line["solve_own"], "type": "none: the type of its elements is not known"},
        f"line:{line['solve_own']}": {"function": "solve", "variable": "table", "file": app},
        f"line:{line['touch']}": {"function": "touch", "variable": "grid"},
        f"line:{line['main_use']}": {"function": "main", "variable": "none: it used no variable"},
        "function:leaf": {"line": line["leaf_grid"], "variable": "grid"},
        "function:use": {"line": line["usecall"], "variable": "none: it used no variable", "loop": "none: it has no loops that are known"},
        f"file:{program.folder}/a/util.c": {"function": f"helper@{program.folder}/a/util.c", "line": line["usehelper"], "variable": "table"},
        "rank:1": {"process": "101", "thread": "1.0"},
        "thread:2.3": {"process": "102", "rank": "2"},
    }
    for thing, kinds in wanted.items():
        found = stand_ins(database, thing)
        for kind, name in kinds.items():
            expect(found.get(kind) == name, f"{thing} as {kind}: {found.get(kind)}, not {name}")
    for thing, kind in (("rank:1", "variable"), ("variable:grid", "thread"), ("event:" + reports.METRIC, "line")):
        expect(kind not in stand_ins(database, thing), f"{thing} has a row for {kind}")
    names = {name for name in (row["item"] for row in ask(database, "function")) if name.startswith("function:helper")}
    expect(len(names) == 2, f"two functions helper: {names}")
    for name, mark in ((name, "use_more" if "/b/" in name or "@" not in name else "use") for name in names):
        expect(stand_ins(database, name).get("line") == line[mark + "helper"], f"{name}: {stand_ins(database, name)}")
    expect(stand_ins(database, f"line:app.c:{program.places['solve_own'][1]}").get("function") == "solve", "a file without directories")


def check_kinds(database):
    """The kinds of item.c are those of this test and of the manual."""
    said = run("hpcquery", "items", "nothing", database, status=None).stderr.partition("there are: ")[2]
    kinds = tuple(re.findall(r"'([\w-]+)'", said))
    expect(kinds == KINDS, f"item.c has the kinds {kinds}: give KINDS of items.py the same, in this order")
    manual = re.sub(r"\s+", "", run("hpcquery", "items", "--help").stdout)
    listed = re.sub(r"\s+", "", f"({', '.join(kinds[:-1])} or {kinds[-1]})") if kinds else "no kinds"
    expect(listed in manual, f"the manual in report-items.c lists other kinds than item.c, which has {kinds}")


LOOPS_C = """
static volatile double words[1 << 16];
static void one(void)
{
    static volatile double twin[1 << 14];
    for (int i = 0; i < (1 << 14); i++)
        twin[i] += 1;
}
static void other(void)
{
    static volatile double twin[1 << 14];
    for (int i = 0; i < (1 << 14); i++)
        twin[i] += 1;
}
static void nest(int depth)
{
    for (int i = 0; i < (1 << 16); i++)
        words[i] += 1;
    one();
    other();
    for (int turn = 0; depth && turn < 2; turn++) {
        nest(depth - 1);
    }
}
int main(void)
{
    for (int turn = 0; turn < 15; turn++)
        nest(7);
    return 0;
}
"""


def check_loops(scratch):
    """A loop that calls its own function counts once, and the node that stands for one is the largest."""
    program, database = scratch / "nest", scratch / "nest-database"
    program.with_suffix(".c").write_text(LOOPS_C, encoding="ascii")
    subprocess.run([*os.environ.get("CC", "gcc").split(), "-g", "-O1", "-o", program, program.with_suffix(".c")], check=True)
    if run("hpcrun", "-e", "EADDR", "-o", scratch / "nest-m", program, status=None).returncode:
        print("SKIP of loops: nothing can be measured here")
        return
    run("hpcprof", "-q", "-o", database, scratch / "nest-m")
    twins = [row["item"] for row in ask(database, "variable") if row["item"].startswith("variable:twin from ")]
    expect(len(twins) == 2, f"variables of one name: {twins}")
    for twin in twins:
        state = urllib.parse.urlencode({"view": "patterns", "active": twin}, quote_via=urllib.parse.quote)
        done = run("hpcquery", "--at", state, "--json", database, status=None)
        expect("no variable is called" not in done.stderr, f"{twin}: {done.stderr}")
    rows = ask(database, "loop")
    expect(rows and all(row["share"] < 100.001 for row in rows), f"loops: {rows}")
    nodes = json.loads(run("hpcquery", "tree", "--json", database).stdout)["nodes"]
    for row in rows[:4]:
        most = max((node["inclusive_share"] if "inclusive_share" in node else node["percent"] for node in nodes
                    if node["kind"] == "loop" and node["line"] == row["line"]), default=0)
        node = next(other for other in ask(database, row["item"]) if other["kind"] == "node")
        expect(abs(node["share"] - most) < 0.01, f"{row['item']}: {node}, not {most}")


def check_refusals(database):
    for thing, words in (("nothing:x", "'nothing' is no kind of thing"), ("variable:gird", "the database has no variable 'gird'; did you mean 'grid'?"),
                         ("line:util.c:4", "the database has no line 'util.c:4'"), ("", "'' is no kind of thing"),
                         ("line:", "the database has no line ''"), ("node:01", "the database has no node '01'; did you mean '1"), ("node:+1", "the database has no node '+1'"),
                         ("node:1x", "the database has no node '1x'"), (f"node:{len(ask(database, 'node'))}", "; did you mean '"),
                         ("node:" + 30 * "9", "the database has no node '9999"), ("node:", "the database has no node ''; there are: '0', '1', '2'")):
        for form in ((), ("--csv",), ("--json",)):
            done = run("hpcquery", "items", thing, *form, database, status=None)
            expect(done.returncode == 1 and not done.stdout and words in done.stderr and done.stderr.count("\n") == 1,
                   f"items '{thing}': status {done.returncode}: {done.stdout}{done.stderr}")


def shares(database, report, key, name):
    """{name: percent} by a report."""
    rows = list(csv.DictReader(io.StringIO(run("hpcquery", report, "--csv", database).stdout)))
    sums = {}
    for row in rows:
        sums[name(row)] = sums.get(name(row), 0) + float(row[key] or 0)
    return sums


def full_name(row, one):
    """The name that tells a thing from others that may be called the same; one: what stands for it."""
    known = {other["kind"]: (other["item"] or "").partition(":")[2] for other in one}
    if row["item"].startswith(("variable:", "field:")) and known.get("site") and " from " not in row["item"]:
        return f"{row['item']} from {known['site']}"
    if row["item"].startswith("function:") and known.get("module") and known.get("file") and "@" not in row["item"]:
        return f"{row['item']}@{known['module']}@{known['file']}"
    return row["item"]


def check_any(database):
    """Of any database: names are unique, each is found, stands for itself, and its share is that of the report. Returns
    how many things were looked at."""
    n = 0
    for kind in KINDS:
        rows = ask(database, kind)
        names = [row["item"] for row in rows]
        expect(len(set(names)) == len(names), f"{database.name}: {kind}: a name twice: {names}")
        expect(all((row["share"] or 0) < 100.001 for row in rows), f"{database.name}: {kind}: more than there is: {rows[:3]}")
        if kind in ("variable", "field", "type", "site", "loop", "file", "module"):
            values = [row["share"] or 0 for row in rows]
            expect(values == sorted(values, reverse=True), f"{database.name}: {kind}: not the largest first: {values}")
        for row in [row for row in rows if kind == "variable" and " from " in row["item"]][:3]:
            done = run("hpcquery", "patterns", "--variable", row["item"].partition(":")[2], database, status=None)
            expect("no variable is called" not in done.stderr, f"{database.name}: {row['item']}: {done.stderr}")
        for row in rows[:SEVERAL]:
            one = ask(database, row["item"])
            expect(one[0] == {**row, "kind": kind, "missing": None}, f"{database.name}: {row['item']}: {one[0]}, not {row}")
            expect(all((other["item"] is None) != (other["missing"] is None) for other in one), f"{database.name}: {row['item']}: {one}")
            if full_name(row, one) != row["item"]:
                expect(ask(database, full_name(row, one))[0] == one[0], f"{database.name}: {full_name(row, one)} is not {row['item']}")
            n += 1
    for kind, report, key, name in (("line", "lines", "own_share", lambda row: f"line:{row['file']}:{row['line']}"),
                                    ("variable", "vars", "share", lambda row: "variable:" + row["variable"])):
        by_report = {k: v for k, v in shares(database, report, key, name).items() if not k.endswith(":") and "<kernel>" not in k}
        by_item = {row["item"]: row["share"] for row in ask(database, kind)}
        for item, share in by_item.items():
            expect(item not in by_report or abs((share or 0) - by_report[item]) < 0.01, f"{database.name}: {item}: {share}, not {by_report.get(item)}")
        lost = [item for item in by_report if item not in by_item and not any(other.startswith(item + " from ") for other in by_item)]
        expect(not lost or kind == "variable", f"{database.name}: {kind} lacks {lost[:5]}")
    return n


VIEWS = tuple(answers.OPTIONS)


def check_states(rng, database):
    """Random states: what --at prints is what its command line prints, and what a view cannot show has a reason. Returns how
    many were answered."""
    things = [row["item"] for kind in ("variable", "function", "line", "file", "thread", "type") for row in ask(database, kind)[:4]]
    n = 0
    for _ in range(N_STATES):
        pairs = {"view": rng.choice(VIEWS), "active": rng.choice(things), "by": rng.choice(("", "thread", "rank", "cpu", "function")),
                 "top": rng.choice(("", "1", "3")), "min": rng.choice(("", "2.5")), "paths": rng.choice(("", "1")),
                 "filter": rng.choice(("", "a & b = 100 %")), "selected": rng.choice(things), "order": rng.choice(("", "time"))}
        state = "#" + urllib.parse.urlencode({key: value for key, value in pairs.items() if value}, quote_via=rng.choice((urllib.parse.quote, urllib.parse.quote_plus)))
        line, at = (run("hpcquery", "--at", state, *options, database, status=None) for options in (("--command",), ("--json",)))
        what = f"{database.name}: {state}"
        if line.returncode:
            expect(line.returncode == 1 and pairs["view"] in ("annotate", "cpus", "patterns", "sharing", "alignment") and
                   (line.stderr.startswith(f"hpcquery: {pairs['view']} cannot show {pairs['active']}: ")), f"{what}: {line.stderr}")
            expect((at.returncode, at.stderr) == (1, line.stderr), f"{what}: {at.stderr}, not {line.stderr}")
            continue
        words = shlex.split(line.stdout)
        same = run(*words[:-1], "--json", words[-1], status=None)
        expect(words[0] == "hpcquery" and (same.returncode, same.stdout, same.stderr) == (at.returncode, at.stdout, at.stderr), f"{what}: {words} prints something else")
        n += same.returncode == 0
    return n


def check_state_refusals(database):
    for state, status, words in (("viw=vars", 2, "a state has no 'viw'; did you mean 'view'"), ("view=var", 1, "there is no view 'var'; did you mean 'vars'"),
                                 ("active=variable:gird&view=patterns", 1, "no variable 'gird'"), ("view=annotate", 1, "annotate shows one thing, and none is active"),
                                 ("view=vars&top=x", 2, "a state: 'top' takes a number of rows"), ("active=foo:x", 1, "'foo' is no kind"),
                                 ("active=variable:gird", 1, "no variable 'gird'"), ("by=nothing", 2, "'by' takes thread"),
                                 ("view=tree&trail=flat%20-o/tmp/x", 1, "trail"), ("view=cpus&profiles=thread%20=%201", 1, "cpus is about all profiles"), ("view=vars&filter=%e", 2, "two hexadecimal digits"),
                                 ("view=annotate&active=thread:0.0", 1, "annotate cannot show thread:0.0: a thread has no f")):
        done = run("hpcquery", "--at", state, database, status=None)
        expect(done.returncode == status and not done.stdout and words in done.stderr and done.stderr.count("\n") == 1,
               f"{state}: status {done.returncode}: {done.stdout[:200]}{done.stderr}")
    for arguments in (("--at", "", "vars", database), ("--at", ""), ("--command", database), ("--at", "", database, database),
                      ("--at", "", "--command", "--json", database)):
        expect(run("hpcquery", *arguments, status=None).returncode == 2, f"{arguments} is taken")
    wanted = run("hpcquery", "functions", "--csv", "--top", "2", database).stdout
    expect(run("hpcquery", "--at", "view=functions&top=1", "--csv", "--top", "2", database).stdout == wanted, "an option does not stand over the state")


def main():
    n = n_states = 0
    rng = random.Random(31)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name).resolve()
        found = answers.databases(scratch)
        database = scratch / "code"
        program = reports.Program(scratch)
        check_known(database, program)
        check_kinds(database)
        check_refusals(database)
        for other in found:
            n += check_any(other)
            n_states += check_states(rng, other)
        check_state_refusals(database)
        check_loops(scratch)
    for failure in failures[:20]:
        print(f"FAIL: {failure[:1500]}")
    print(f"{len(found)} databases, {n} things, {n_states} states")
    return 1 if failures or n < 300 or n_states < N_STATES * len(found) // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
