# SPDX-License-Identifier: BSD-3-Clause
"""The report of variables as text, at four widths: what is committed in tests/golden/report.txt for three databases. A measured
one (minicg.json), the same with what reports stumble over (long names, blocks without names, lost samples), and the one of
hardware. Nothing is wider than the terminal, no name is cut, and each row says where its variable comes from. The report in
README.md is the measured one; page.py is about pages for browsers. `report.py --record` writes the texts anew."""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402

GOLDEN = bundle.golden("report")
WIDTHS = (60, 80, 120, 180)
OWN = "deposit_sources._omp_fn.0"
LONG = "Problem<double, int>::Matrix::coefficients_of_the_interior_rows_and_of_the_boundary_rows"
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def report(database, columns, *options):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": str(columns)}
    result = subprocess.run([str(BUILD / "hpcquery"), "vars", *options, str(database)], capture_output=True, check=False,
                            text=True, env=environment, encoding="utf-8")
    expect(result.returncode == 0, f"{database} {options}: {result.stderr}")
    return result.stdout


def variable(data, name):
    return next(v for v in data["variables"] if data["strings"][v["name"]] == name)


def n_sampled(data, row):
    """A variable's samples of the first event."""
    names = [metric["name"] for metric in data["metrics"]]
    return float(row["samples"][names.index(data["events"][0]["metric"])])


def forget_tables(data):
    """Leaves out the tables that name variables by number, for a change of their list."""
    data.update(cpu_counts=[], reaches=[], touches=[])


def string(data, text):
    if text not in data["strings"]:
        data["strings"].append(text)
    return data["strings"].index(text)


def make_trouble(data):
    """Long names, a block that is known by its site alone, one without debug information, samples that were lost."""
    variable(data, "state->p")["name"] = string(data, LONG)
    variable(data, "state->rhs")["name"] = string(data, "state_build (solver.c:40)")
    bare = variable(data, "state->capacity")
    bare["name"] = string(data, "0x4ff [libfoo.so.1]")
    bare["function"] = string(data, "0x4ff [libfoo.so.1]")
    bare["file"], bare["line"] = 0, 0
    variable(data, "<compute>")["name"] = string(data, "<address lost>")
    names = [variable(data, name) for name in ("state->q", "state->z", "state->inv_diag")]
    for row, name in zip(names, ("<small block>", "<no block>", "<profiler>")):
        row.update(name=string(data, name), function=0, file=0, line=0, module=0, size_bytes=0, n_blocks=0, fields=[])
        row["class"] = 6
    event = data["events"][0]
    event["fates"].update({"dropped-arena-full": 200, "not-delivered": 300})
    event["taken"] += 200
    event["n_throttles"] = 3
    data["skid"] = data["skid"].replace('"rule":"holds"', '"rule":"fails"')
    data["n_killed"] = 2
    library = next(i for i, text in enumerate(data["strings"]) if text.endswith("/libhpcrun.so"))
    for scope in data["scopes"]:
        if scope[1] == 1 and data["strings"][scope[4]] == OWN:
            scope[6] = library
    data["notes"].append("Another build than the one that was measured: libfoo.so.1.")


def make_hidden(data):
    """What has no name for a reason: accesses by generated code, and blocks of an allocator whose calls are not seen."""
    lost = variable(data, "capacity_table")
    lost.update(function=0, file=0, line=0, module=0, size_bytes=0, n_blocks=0, fields=[])
    lost["class"] = 7
    lost["name"] = string(data, "<address lost>")
    inside = set(lost["scopes"])
    for number, scope in enumerate(data["scopes"], 1):
        if scope[0] in inside:
            inside.add(number)
            scope[6] = 0
    hidden = variable(data, "state->p")
    hidden.update(name=string(data, "<no block>"), function=0, file=0, line=0, module=0, size_bytes=0, n_blocks=0, fields=[])
    hidden["class"] = 6
    data["program"] = "/usr/bin/node"
    data["processes"][0]["exe"] = "node"
    data["command"] = None
    data["notes"].append("app has malloc from /opt/app (jemalloc), where calls are not seen: its blocks are shown as the "
                         "mappings that the allocator makes (class mmap). To see them one by one, build it with the C "
                         "library's malloc, or link the allocator as a shared library.")


def make_paths(data):
    """A row of three allocation paths: the costliest one comes last."""
    names = ("mesh->neighbour", "sources->particle_energy", "state->p")
    rows = [variable(data, name) for name in names]
    wrapper = string(data, "allocate_zeroed [libfoo.so.1]")
    for row in rows:
        row.update(name=wrapper, function=wrapper, file=0, line=0, size_bytes=1 << 20, n_blocks=1)
    rows[0]["scopes"] = sum((row["scopes"] for row in rows), [])
    data["processes"][0]["exe"] = "heat"
    variable(data, "capacity_table").update(file=0, line=0)
    data["unwind_stops"][2] = data["unwind_stops"][0] // 9
    rows[0].update(size_bytes=20000 << 16, n_blocks=20000, n_blocks_freed=19999)
    data["variables"] = [row for row in data["variables"] if row not in rows[1:]]
    forget_tables(data)


def caller_of(nodes, node):
    """The innermost function above a node of a tree."""
    while node["kind"] not in ("function", "inlined") and node["parent"] is not None:
        node = nodes[node["parent"]]
    return node


def make_advice(data):
    """What each rule of advice is about: data in the caches, execution, many small blocks with one hot field."""
    table, residual = variable(data, "capacity_table"), variable(data, "state->r")
    table["causes"] = [[0, 0.0, 0.0, 0.0, n_sampled(data, table), 0.0, n_sampled(data, table)]]
    residual["causes"] = [[0, 0.0, 0.0, 0.0, n_sampled(data, residual), 0.0, 0.0]]
    blocks = variable(data, "state->p")
    blocks.update(n_blocks=5000, size_bytes=5000 * 64, n_blocks_freed=10, size_freed_bytes=640, element_bytes=64)
    for field in blocks["fields"]:
        field[2] = string(data, "[].x")


# Blocks without a record, and how they are read: as a chain, at random, and mostly in another way.
UNCOUNTED = {"state->capacity": [(7, 0, 0.6, 0.5), (4, 0, 0.2, 0.2), (5, 0, 0.2, 0.2)],
             "sources->particle_offset": [(4, 0, 0.8, 0.8), (7, 0, 0.1, 0.1), (2, 0, 0.1, 0)],
             "state->temperature": [(2, 0, 0.6, 0.55), (4, 0, 0.4, 0.35)]}


def make_walks(data):
    """Ways through memory that wait for it, ways that say nothing, and blocks that were never used or freed."""
    # the parts of its samples that a variable has in each way, and what waited of them
    for name, walks in (("state->p", [(4, 0, 0.7, 0.64), (2, 0, 0.3, 0.26)]), ("state->rhs", [(2, 4096, 0.7, 0.7), (2, 0, 0.24, 0), (5, 0, 0.06, 0)]),
                        ("state->q", [(2, 64, 1, 0)]), ("capacity_table", [(7, 0, 0.9, 0.6), (4, 0, 0.1, 0.075)]),
                        ("state->r", [(2, 32767, 0.9, 0.82), (2, 512, 0.1, 0.08)]), ("state->z", [(4, 0, 1, 1)]),
                        ("state->inv_diag", [(4, 0, 1, 0.4)]), *UNCOUNTED.items()):
        row = variable(data, name)
        n = n_sampled(data, row)
        row["walks"] = [[0, kind, stride, part * n, waiting * n] for kind, stride, part, waiting in walks]
        waits = 0.4 if name == "state->inv_diag" else 0.9
        row["causes"] = [[0, waits * n, 0.8 * waits * n, waits * n, (1 - waits) * n, 0.0, 0.0]]
        row.update({"size_bytes": 0, "n_blocks": 0} if name in UNCOUNTED else {})
    unused = variable(data, "state->z")
    unused.update(size_freed_bytes=0, n_blocks_freed=0, samples=[0] * len(data["metrics"]), places=[0] * len(unused["places"]))
    first = unused["scopes"][0]
    end = min(scope for row in data["variables"] for scope in row["scopes"] if scope > first)
    data["values"] = [value for value in data["values"] if not first <= value[0] < end]


# Variable: its line, and for each thread where it uses that: {byte: (samples, is it written?)}.
LINES = {"state->p": (1, ({0: (40, True)}, {0: (40, True)})), "state->temperature": (1, ({0: (10, True)}, {})),
         "state->rhs": (2, ({0: (40, True)}, {8: (40, True)})),
         "capacity_table": (3, ({0: (40, True)}, {0: (20, True), 8: (20, True)})),
         "state->capacity": (4, ({0: (40, True)}, {0: (40, False)})),
         "state->z": (5, ({0: (40, True)}, {0: (40, False)})), "state->inv_diag": (5, ({8: (5, True)}, {})),
         "state->r": (6, ({0: (10, False)}, {})), "state->q": (7, ({0: (40, True)}, {8: (40, True)}))}
CORE_TO_CORE = "its cache lines may go from core to core: "
# ... what the advice is, and the meaning behind these words. "twin" has the paths of state->r and state->q.
SHARED = {"state->p": ("shared-writes", "several threads write the same bytes (hpcquery sharing)", "if it is a lock, take it less often"),
          "state->rhs": ("pad", "threads use different bytes of them (hpcquery sharing)", "pad it to 64 bytes"),
          "capacity_table": ("shared-writes", "threads use the same bytes of them, and different ones (hpcquery sharing)", "pad locks to 64 bytes"),
          "state->capacity": ("shared-writes", "threads share them, and one writes (hpcquery sharing)", "let it write less often"),
          "state->z": ("shared-writes", "threads share them, and one writes (hpcquery sharing)", "let it write less often"),
          "twin": ("pad", "threads use different bytes of them (hpcquery sharing)", "pad it to 64 bytes")}
NEIGHBOURS = {name: "threads share them, and one writes (hpcquery sharing)" for name in ("state->temperature", "state->inv_diag")}


def make_lines(data):
    """Lines that two threads share in all ways, and one variable of two allocation paths, of which one has such a line."""
    data["reaches"] = []
    names = [data["strings"][row["name"]] for row in data["variables"]]
    for name, (line, threads) in LINES.items():
        for thread, uses in enumerate(threads):
            n, slots = sum(count for count, _ in uses.values()), [0] * 16
            for byte, (count, _) in uses.items():
                slots[byte // 4] += count
            n_stores = sum(count for count, is_written in uses.values() if is_written)
            at = [sum(1 << byte for byte, (_, is_written) in uses.items() if is_written == wanted) for wanted in (False, True)]
            reach = [0, 0, 8, n, n // 2, n - n_stores, n_stores, [0, n], [64 * line, n]]
            data["reaches"] += [[names.index(name), thread, 0, 0, reach, [[line, *at, n_stores, *slots]], []]] * bool(uses)
    data["reaches"].sort()
    twin, other = variable(data, "state->q"), variable(data, "state->r")
    for row in (twin, other):
        row.update(name=string(data, "twin"), line=twin["line"])


# Variable, how it is gone through in a nest of which loops, and the part of its samples there. The nest of x.f90:9 has two.
NESTS = (("state->p", ("x.f90", 9, 11, "x.f90", 8, 1, 0, 1, 4096, 8), 0.9), ("state->q", ("x.f90", 9, 11, "x.f90", 8, 1, 1, 1, 0, 8), 0.8),
         ("state->r", ("x.f90", 29, 30, "y.inc", 7, 1, 2, 0, 0, 16), 0.9), ("state->rhs", ("x.f90", 49, 50, "x.f90", 48, 2, 1, 1, 0, 8), 1))


def make_nests(data):
    """Nests of loops in the wrong order; of one step only its least length was seen, of another nothing."""
    names = [data["strings"][row["name"]] for row in data["variables"]]
    data["nests"] = []
    for name, (file, line, end, outer, outer_line, *rest), part in NESTS:
        row = variable(data, name)
        n = n_sampled(data, row)
        row["walks"] = [[0, 2, 511 if name == "state->q" else 0, n, 0.0]]
        row["causes"] = [[0, n, n, n, 0.0, 0.0, 0.0] if name == "state->q" else [0, 0.0, 0.0, n, 0.0, n, 0.0]]
        data["nests"].append([names.index(name), 0, string(data, file), line, end, string(data, outer), outer_line, *rest, int(part * n)])
    data["nests"].sort()


# Samples of state->p where its fields are used, and where it is filled: scope, field, samples. There <compute> has some, too, at
# FILLED_COMPUTE; and FILL_FAULTS page faults of FILL_NS each.
USES, FILLS = ((882, 0, 300), (847, 0, 1393)), ((888, 1, 1400), (888, 2, 101))
FILLED_COMPUTE, FILL_FAULTS, FILL_NS = (1230, 200), 700_000, 2000
TEMPLATE = "Solver<int, double, std::mersenne_twister_engine<unsigned long, 32ul, 624ul> >::fill"


def make_filled(data):
    """A structure of which one loop uses one field. All are written once, by what touches its pages first."""
    row, number = variable(data, "state->p"), next(i for i, v in enumerate(data["variables"]) if data["strings"][v["name"]] == "state->p")
    kind, names = string(data, "double"), [string(data, f"[].{name}") for name in ("mass", "charge", "phase")]
    counts = [0, 0, 0]
    for _, field, n in USES + FILLS:
        counts[field] += n
    row["fields"] = [[0, 0, names[i], kind, 0, 24 + 8 * i, 8, n] for i, n in enumerate(counts)]
    row.update(element_bytes=64, function=string(data, TEMPLATE))
    data["field_counts"] = sorted([number, *use] for use in USES + FILLS)
    data["field_counts"] = [[number, scope, field, n] for _, scope, field, n in data["field_counts"]]
    data["scopes"][FILLED_COMPUTE[0] - 1][7] = data["scopes"][FILLS[0][0] - 1][7]
    wanted = {888: 1000 * sum(n for _, _, n in FILLS), FILLED_COMPUTE[0]: 1000 * FILLED_COMPUTE[1]}
    data["values"] = [value for value in data["values"] if value[1] != 2 or value[0] == FILLS[0][0]]
    more = sum(wanted.values()) - sum(value[2] for value in data["values"] if value[1] == 1 and value[0] in wanted)
    given = {882: more - 322_000, 1069: 322_000}  # by lines that have more: the sum stays
    for value in data["values"]:
        if value[1] == 1 and value[0] in wanted:
            value[2] = wanted[value[0]]
        elif value[1] == 1 and value[0] in given:
            value[2] -= given[value[0]]
            assert value[2] > 0, value
        elif value[:2] == [888, 2]:
            value[2] = FILL_FAULTS
    data["skid"] = data["skid"].replace("{", "{" + f'"first_touch_ns": {FILL_NS}, ', 1)


def make_library(data):
    """The same pages are touched by memset, which the C library has with lines, for state_build."""
    make_filled(data)
    library, name = string(data, "/lib/libc.so.6"), string(data, "__memset_evex")
    for number in (FILLS[0][0], FILLED_COMPUTE[0]):
        while data["scopes"][number - 1][1] != 1:
            number = data["scopes"][number - 1][0]
        data["scopes"][number - 1][4] = name
        data["scopes"][number - 1][6] = library


def check_library(database):
    """There the variable has all of them; and what is to be changed is the program's line."""
    rows = {row["variable"]: row for row in json.loads(report(database, 100, "--json"))["variables"]}
    found = [rows[name]["first_touch_share"] or 0 for name in ("state->p", "<compute>")]
    wanted = FILL_FAULTS * FILL_NS / 1e6 / sum(row["samples"] for row in rows.values()) * 100
    expect(abs(found[0] - wanted) < 0.05 * wanted and found[1] == 0, f"library: {found} % of first touches, not {wanted} and 0")
    touches = [row for row in csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "0.2"))) if row["rule"] == "page-touches"]
    expect(all("memset" not in row["place"] for row in touches), f"library: {touches}")


def make_clones(data):
    """A function is inlined in several places: its loops have the same lines at different addresses."""
    for i, scope in enumerate(data["scopes"]):
        if scope[1] == 6 and i % 2:
            scope[8] = hex(int(scope[8], 16) + 1)


def check_clones(database):
    """What is said of a loop is said of all of its copies."""
    wanted, found = (advice_of(directory, "--csv", "--min", "0.2") for directory in (database.parent / "minicg", database))
    expect(found == wanted, f"clones: {found}, not {wanted}")


def make_called(data):
    """The loop that works on capacity_table is called from that which works on state->p, and neither waits."""
    for name in ("state->p", "capacity_table"):
        n = n_sampled(data, variable(data, name))
        variable(data, name)["causes"] = [[0, 0.0, 0.0, 0.0, n, 0.0, 0.0]]
    around = data["scopes"][880]
    procedure = around
    while procedure[1] != 1:
        procedure = data["scopes"][procedure[0] - 1]
    scopes = list(variable(data, "capacity_table")["scopes"])
    inside = set(scopes)
    for number, scope in enumerate(data["scopes"], 1):
        if scope[0] not in inside:
            continue
        inside.add(number)
        if data["strings"][scope[4]] == "update_material._omp_fn.0":
            call = data["scopes"][scope[0] - 1]
            data["scopes"][call[0] - 1][4] = procedure[4]
            data["scopes"][call[0] - 1][6] = around[6]
            call[1:] = around[1:]


def check_called(database):
    """One piece of advice is about both: the loop that calls is what can be changed."""
    text = " ".join(report(database, 100).split())
    expect("state->p, capacity_table in loop solver.c:139-140:" in text and "95-97:" not in text.split("advice", 1)[1], f"called: {text}")


def check_filled(database):
    """First touches are no use of a field, and are told of what is no variable."""
    said = {row["rule"]: row["advice"] for row in csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "0.2")))
            if row["variable"] == "state->p"}
    expect(said.get("split") == "keep .mass in an array of its own: of 64 bytes fetched its loops use 8", f"filled: {said}")
    rows = {row["variable"]: row for row in json.loads(report(database, 100, "--json"))["variables"]}
    sampled = sum(row["samples"] for row in rows.values())
    touched = FILL_FAULTS * FILL_NS / 1e6 / sampled * 100
    filled = sum(n for _, _, n in FILLS)
    wanted = touched * FILLED_COMPUTE[1] / (FILLED_COMPUTE[1] + filled)
    found = rows["<compute>"]["first_touch_share"]
    expect(abs(found - wanted) < 0.05 * wanted, f"<compute> has {found} % of first touches, not {wanted} %")
    words = " ".join(report(database, 100).split())
    expect(f"{found:.0f} % of all are first touches of pages, most of state->p" in words, f"of <compute> is not told {found} %: {words}")
    expect("from Solver::fill (solver.c:44)" in " ".join(report(database, 60).split()), "the place of state->p is not a short one")
    data = json.loads((database / "text.json").read_text(encoding="utf-8"))
    data["skid"] = data["skid"].replace("first_touch_ns", "another")
    m.write_database(database, data)
    expect("are first touches of pages" not in report(database, 100), "first touches are told whose cost nobody knows")


def check_nests(database):
    """Each nest is said of each of its variables, with the same words, once behind the table, and in place of its parts."""
    rows = [row for row in csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "0.2"))) if row["rule"].startswith("loop-")]
    said = {row["variable"]: row["rule"] + ": " + row["advice"] for row in rows}
    both = ("loop-order: swap the loops of x.f90:8 and x.f90:9: state->p, state->q are gone through in steps of 4096 bytes, and the "
            "other way round of 8")
    wanted = {
        "state->p": both, "state->q": both,
        "state->r": "loop-order: let the loop of y.inc:7 be the innermost one, instead of that of x.f90:29: state->r is gone through "
                    "from row to row, and the other way round of 16",
        "state->rhs": "loop-blocks: go through the loops of x.f90:48 and x.f90:49 in blocks of a few dozen turns each: state->rhs is "
                      "gone through in steps as long as its rows, and in the other order another array would be"}
    expect(said == wanted, f"nests: {said}")
    table = {row["variable"]: float(row["share"]) for row in csv.DictReader(io.StringIO(report(database, 100, "--csv")))}
    for name, _, part in NESTS:
        gain = [float(row["gain_at_most"]) for row in rows if row["variable"] == name]
        expect(gain and abs(gain[0] - part * table[name]) < 0.2, f"nests: {name} gains {gain} of {table}")
    text = " ".join(report(database, 100).split())
    gain = sum(float(row["gain_at_most"]) for row in rows if row["variable"] in ("state->p", "state->q"))
    expect(text.count("swap the loops of x.f90:8 and x.f90:9") == 1 and f"at most {gain:.1f} % of the time, not verified" in text,
           f"nests: not {gain} % of both arrays in {text}")


def check_lines(database):
    """What is said of shared lines in the table and as advice; of two allocation paths only that with such a line."""
    def rows_of(report_name, *options):
        result = subprocess.run([str(BUILD / "hpcquery"), report_name, "--json", "--min", "0", *options, str(database)],
                                capture_output=True, check=True, text=True)
        return json.loads(result.stdout)["advice" if report_name == "advice" else "variables"]
    meanings = {row["variable"]: row["meaning"] for row in rows_of("vars") if CORE_TO_CORE in (row.get("meaning") or "")}
    said = {name: said for name, (_, said, _) in SHARED.items()} | NEIGHBOURS
    expect(meanings == {name: CORE_TO_CORE + words for name, words in said.items()}, f"shared lines: {meanings}")
    for row in rows_of("vars"):
        if row["variable"] in said and row["variable"] != "twin":
            expect(row["memory_high"] >= row["share"] - 0.01 and row["execution_share"] < 0.01, f"the interval of {row} leaves out the line")
    advice = {row["variable"]: row for row in rows_of("advice") if row["rule"] in ("pad", "shared-writes")}
    expect({name: row["rule"] for name, row in advice.items()} == {name: rule for name, (rule, _, _) in SHARED.items()}, f"{advice}")
    for name, (_, _, words) in SHARED.items() if advice.keys() == SHARED.keys() else ():
        expect(words in advice[name]["advice"] and advice[name]["evidence"].startswith("89 %" if name == "twin" else "100 %"), f"{advice[name]}")
    paths = [row for row in rows_of("vars", "--paths") if row["variable"] == "twin"]
    marked = [row for row in paths if CORE_TO_CORE in (row.get("meaning") or "")]
    data = json.loads((database / "text.json").read_text(encoding="utf-8"))
    samples = [n_sampled(data, row) for row in data["variables"] if data["strings"][row["name"]] == "twin"]
    expect(len(paths) == 2 and [row["samples"] for row in marked] == samples[1:], f"paths: {marked} of {paths}; {samples}")


# What is not verified of a variable: its samples, the inexact ones of them, how it is walked, and what the report says.
UNTOLD = {"state->p": (900, 800, 4, "no exact addresses, since the instructions overwrite a register of their own address"),
          "state->q": (900, 0, 4, "too few repeated cache lines at each instruction to judge the footprint; measure longer"),
          "state->r": (1900, 0, 4, "the samples do not show whether its lines were near when they were used"),
          "state->z": (60, 0, 4, "too few samples to judge the footprint; measure longer"),
          "state->rhs": (900, 0, 0, "how most of the instructions walk through memory is not known")}


def make_untold(data):
    """Variables of which nothing is verified, each for another reason; no place of a sample is known."""
    metric = [metric["name"] for metric in data["metrics"]].index(data["events"][0]["metric"])
    forget_tables(data)
    for name, (n, n_inexact, kind, _) in UNTOLD.items():
        rows = [row for row in data["variables"] if data["strings"][row["name"]] == name]  # one for each path
        for other in rows:
            other.update(samples=[0] * len(data["metrics"]), n_inexact=0, causes=[], walks=[])
        row = rows[0]
        row["samples"][metric] = n
        row.update(n_inexact=n_inexact, walks=[[0, kind, 0, n, 0]], causes=[[0, 0.0, 0.0, n, 0.0, n, 0.0]])


def check_untold(database):
    """The reason is the one that holds, below a variable and where patterns are asked for."""
    rows = json.loads(report(database, 100, "--json"))["variables"]
    said = {row["variable"]: row.get("meaning") for row in rows if row["variable"] in UNTOLD and row["samples"]}
    wanted = {name: f"not verified: {reason}" for name, (_, _, _, reason) in UNTOLD.items()}
    expect(said == wanted, f"not verified: {said}")
    pieces = {row["variable"]: row for row in csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "0")))}
    for name, (_, _, kind, _) in UNTOLD.items():
        wanted = ("irregular", "not verified") if kind == 4 else ("unknown", "not verified")
        if float(pieces.get(name, {"share": 0})["share"]) >= 10:
            expect((pieces[name]["rule"], pieces[name]["bound"]) == wanted, f"{name}: {pieces[name]}")
    shown = " ".join(report(database, 180).split())
    expect(re.search(r"state->p in loop solver.c:139-140: its reads jump: .* \(at most [0-9.]+ % of the time, not verified\)", shown), f"not verified: {shown}")
    expect(f"not verified: {UNTOLD['state->p'][3]} " in " ".join(report(database, 180).split()), "the reason is not in the text")
    data = json.loads((database / "text.json").read_text(encoding="utf-8"))

    def patterns(said, exact, sampled):
        for row in data["variables"]:
            row.setdefault("samples", [0] * len(data["metrics"]))
            n = int(n_sampled(data, row))
            row["n_inexact"] = 0 if exact else n
            row["samples"] = [count if sampled else 0 for count in row["samples"]]
        m.write_database(database, data)
        text = " ".join(subprocess.run([str(BUILD / "hpcquery"), "patterns", str(database)], capture_output=True, check=True, text=True).stdout.split())
        expect(text.startswith("note") and said in text and text.count(".") == 1, f"patterns, {said}: {text}")
    patterns("made by an older version", True, True)
    patterns("overwrites a register", False, True)
    patterns("No sample of this metric lies in a variable", False, False)


def make_order(data):
    """What takes most of the time waits for nothing."""
    row = variable(data, "state->p")
    row["causes"] = [[0, 0.0, 0.0, 0.0, n_sampled(data, row), 0.0, n_sampled(data, row)]]


NAMES_OF_CAUSES = ("memory", "execution", "first_touch", "threads", "kernel", "allocator", "profiler", "unverified")


def part_of(row, cause):
    """Percent of all samples that a row has of a cause."""
    if row["aside"]:
        return float(row["share"]) if row["aside"] == cause else 0
    if cause == "memory" and row["memory_share"] is None:  # where it is too little of what is unverified: what remains
        return row["share"] - sum(row[f"{other}_share"] for other in ("execution", "unverified", "first_touch"))
    return float(row[f"{cause}_share"]) if cause in ("memory", "execution", "unverified") else 0


def check_causes(database):
    """All causes add up to the CPU time, and are those of the rows; the first row has most of the largest; the others are in
    the order of what may be changed. The head names the largest first, and its numbers add up to 100."""
    data = json.loads(report(database, 100, "--json"))
    causes, rows, time = data["causes"], data["variables"], data["cpu_time"]
    of_samples = time["user_s"] / (time["user_s"] + time["system_s"])
    expect(abs(sum(causes.values()) - 100) < 1e-6 and tuple(causes) == NAMES_OF_CAUSES, f"{database.name}: causes: {causes}")
    for name, percent in causes.items():
        wanted = of_samples * sum(part_of(row, name) for row in rows) + (100 * (1 - of_samples) if name == "kernel" else 0)
        expect(abs(percent - wanted) < 1e-3, f"{database.name}: {name} is {percent}, not {wanted}")
    largest = max(causes, key=causes.get)
    parts = [part_of(row, largest) for row in rows]
    expect(parts[0] == max(parts), f"{database.name}: first is {rows[0]['variable']}, and most is {largest}")
    stakes = [row["share"] if row["variable"].startswith("<") else part_of(row, "memory") + row["unverified_share"] for row in rows[1:]]
    expect(stakes == sorted(stakes, reverse=True), f"{database.name}: order: {stakes}")
    for columns in (80, 100, 180):
        head = " ".join(report(database, columns).split("\n\n")[0].split()).split("causes ")[1]
        said = re.findall(r"(waiting for memory|execution|first touches of pages|waiting for threads|kernel|allocator|profiler|unverified)(?: (\d+) %)?", head)
        numbers = [int(number) for _, number in said if number]
        expect(said[0][0].endswith(largest) and (len(numbers) < len(said) or sum(numbers) == 100), f"{database.name}: the head: {head}")


def check_cut(database):
    """No row is left out that is larger than one that is shown; of many rows those below 1 % are left out first."""
    rows = [row for row in csv.DictReader(io.StringIO(report(database, 100, "--csv"))) if row["class"] != "kernel"]
    places = {(row["variable"], row["alloc_site"]): place for place, row in enumerate(rows)}
    shares = [float(row["share"]) for row in rows]
    for top in (1, 2, 3, 5, 8, 12, 20):
        for order in ((), ("--order", "time")):
            cut = [row for row in csv.DictReader(io.StringIO(report(database, 100, "--csv", "--top", str(top), *order))) if row["class"] != "kernel"]
            shown = [places[row["variable"], row["alloc_site"]] for row in cut]
            hidden = [share for place, share in enumerate(shares) if place not in shown]
            expect(len(shown) == len(set(shown)) == min(top, len(rows)), f"--top {top}: {shown}")
            expect(not hidden or max(hidden) <= min(shares[place] for place in shown), f"--top {top} {order} hides {max(hidden, default=0)} %: {shown}")
            expect(order or shown == sorted(shown), f"--top {top} changes the order: {shown}")
        text = report(database, 180, "--top", str(top))
        rest = re.findall(r"^ *([\d.]+) %  (\d+) more \(--top 0 shows all\)$", text, re.M)
        wanted = (len(rows) - top, sum(sorted(shares)[:len(rows) - top])) if top < len(rows) else None
        expect(not rest if not wanted else len(rest) == 1 and int(rest[0][1]) == wanted[0] and abs(float(rest[0][0]) - wanted[1]) < 0.051,
               f"--top {top}: {rest}, not {wanted}")
    text = report(database, 100)
    shown = [float(share) for share in re.findall(r"^ *([\d.]+) % +(?:[\d.]+ %|unknown|-) ", text.split("\n\n")[1], re.M)]
    expect(len([share for share in shown if share >= 1]) >= 3 and min(shown) >= 1, f"rows of a screen: {shown}")


def check_screen(name, database):
    """At 100 columns a report without options fits one screen, with what hpcrun prints, in rows that have three lines at most."""
    text = report(database, 100)
    expect(text.count("\n") <= 38, f"{name}: {text.count(chr(10))} lines, and hpcrun and hpcprof print two of a screen's 40:\n{text}")
    expect(not re.search(r"^(note .*|\w.*: .*)\u2026$", text, re.M), f"{name}: words are cut:\n{text}")
    expect("more (--top 0 shows all)" not in text or "Order: by what may wait" in text or name in ("hardware", "touched", "saturated"), f"{name}: the order is not told")
    rows = re.split(r"^ {0,2}[\d.]+ %  ", text.split("\n\n")[1] + "\n", flags=re.M)[1:]
    expect(all(row.count("\n") <= 3 for row in rows), f"{name}: a row has more than three lines:\n{text}")
    shares = sorted(float(row["share"] or 0) for row in csv.DictReader(io.StringIO(report(database, 100, "--csv"))) if row["class"] != "kernel")
    hidden = re.search(r"(\d+) more \(--top 0", text)
    largest = shares[int(hidden[1]) - 1] if hidden else 0
    expect(largest < 1 or text.count("\n") >= 33, f"{name}: {text.count(chr(10))} lines hide a row of {largest} %, for which there is room:\n{text}")
    notes = re.findall(r"not verified: [^:;]*", " ".join(text.split()))
    expect(len(notes) == len(set(notes)), f"{name}: a reason is said twice: {notes}")


def make_touched(data):
    """Loads and stores of one node, of what lies on the other; lines that other cores have just written."""
    grid = variable(data, "grid")
    grid["places"] = [sum(grid["places"][i // 2 * 2:i // 2 * 2 + 2]) if i % 2 == 0 else 0 for i in range(len(grid["places"]))]
    names = [metric["name"] for metric in data["metrics"]]
    for name, n in (("MEM-Load", 180), ("MEM-hitm-local", 26), ("MEM-hitm-rmt", 4)):
        grid["samples"][names.index(name)] = n


def check_walks(database):
    """The rules by ways through memory, each with its figures; what waits most comes first."""
    rules = check_advice(database)
    rows = list(csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "0.2"))))
    wanted = {("state->p", "irregular"), ("capacity_table", "chain"), ("state->rhs", "stride"), ("state->r", "stride")}
    expect({rule for rule in rules if rule[1] in ("irregular", "chain", "stride")} == wanted, f"walks: {rules}")
    said = {row["variable"]: row["evidence"] for row in rows if (row["variable"], row["rule"]) in wanted}
    for name, words in (("state->p", "90 % of its samples waited for memory (72-90 %), 71 % of these at irregular reads; it has 31.2 MiB, "
                         "elements of 8 bytes"), ("capacity_table", "89 % of these at reads that find"),
                        ("state->rhs", "100 % of these in steps of 4096 bytes; it has 31.2 MiB, elements of 8 bytes"),
                        ("state->r", "100 % of these in steps of at least 32767 bytes")):
        expect(words in said.get(name, ""), f"evidence for {name}: {said}")
    uncounted = {row["variable"]: (row["advice"], row["evidence"]) for row in rows if row["rule"] == "small-blocks"}
    expect(uncounted.keys() == {"state->capacity", "sources->particle_offset"}, f"blocks that are not counted: {uncounted}")
    for name, advice, evidence in (("state->capacity", "in the order in which they are read", "78 % of these at reads that find where to read next"),
                                   ("sources->particle_offset", "take the blocks from one array, so", "100 % of these at irregular reads")):
        expect(advice in uncounted.get(name, "")[0] and evidence in uncounted[name][1] and "too small to be counted" in uncounted[name][1], f"{uncounted}")
    check_gains(database, rows)
    counts = [float(row["gain_at_most"]) * (1 if row["bound"] == "verified" else 0.75) for row in rows
              if row["gain_at_most"] and row["variable"] != "<kernel>"]
    expect(rows[0]["variable"] == "state->p" and counts == sorted(counts, reverse=True), f"order: {rows}")
    leaks = [(row["variable"], row["evidence"]) for row in rows if row["rule"] == "leak"]
    expect(leaks == [("state->z", "1 block, 31.2 MiB, live at the end; no sample fell on any of the path")], f"leaks: {leaks}")
    words = " ".join(advice_of(database, "--min", "0.2", "--top", "0").split())
    expect("no sample fell on any of the path" in words and "on any of the path;" not in words, f"the text of a leak: {words}")


def check_gains(database, rows):
    """No change of the data gains more than the upper end of what waited for memory, and all of it where all of it was walked
    through in the rule's way; without what certainly waited otherwise in general."""
    table = list(csv.DictReader(io.StringIO(report(database, 100, "--csv"))))
    program = 1 - sum(float(row["share"]) for row in table if row["variable"] == "<profiler>") / 100
    bounds = {row["variable"]: (float(row["memory_low"]) / program, float(row["memory_high"]) / program) for row in table}
    n_checked = 0
    for row in rows:
        part = re.search(r"(\d+) % of these", row["evidence"])
        if row["rule"] not in ("irregular", "chain", "stride", "small-blocks"):
            continue
        low, high = bounds[row["variable"]]
        other = (1 - int(part.group(1)) / 100) * low if part else 0
        expect(abs(float(row["gain_at_most"]) - (high - other)) <= 0.006 * low + 1e-5, f"gain: {row}, of {low} to {high}")
        expect(float(row["gain_at_most"]) >= float(row["memory_share"] or 0) * (int(part.group(1)) / 100 if part else 1) - 0.006 * high, f"gain: {row}")
        n_checked += 1
    expect(n_checked > 0, "no gain was checked")


def check_touched(database):
    rules = check_advice(database)
    rows = list(csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "5"))))
    said = {row["rule"]: row["evidence"] for row in rows if row["variable"] == "grid"}
    expect({("grid", "first-touch"), ("grid", "shared-lines")} <= rules and ("grid", "interleave") not in rules, f"{rules}")
    expect(said["first-touch"] == "99 % of its latency are accesses to other NUMA nodes; threads ran on node 0: 100 %", f"{said}")
    expect("17 % of its loads (30 of 180 samples)" in said["shared-lines"], f"{said}")


def check_rules(database):
    """Each rule has a case; where too few samples are known, none applies."""
    rules = check_advice(database)
    wanted = {("capacity_table", "resident"), ("state->r", "execution"), ("state->p", "small-blocks"), ("<compute>", "compute")}
    rows = list(csv.DictReader(io.StringIO(advice_of(database, "--csv", "--min", "0.2"))))
    expect(wanted <= rules, f"rules: {rules}")
    split = [row["advice"] for row in rows if (row["variable"], row["rule"]) == ("state->p", "split")]
    expect(split == ["keep .x in an array of its own: of 64 bytes fetched its loops use 8"], f"a hot field: {rows}")
    check_gains(database, rows)
    evidence = next((row["evidence"] for row in rows if row["rule"] == "small-blocks"), "")
    data = json.loads((database / "text.json").read_text(encoding="utf-8"))
    blocks = variable(data, "state->p")
    waited = 100 * blocks["causes"][0][1] / n_sampled(data, blocks)
    expect(evidence.startswith(f"5000 blocks of 64 bytes on average; {waited:.0f} %"), f"small blocks: {evidence}")
    data["events"][0]["taken"] = 49
    m.write_database(database, data)
    expect("none: there are too few samples" in advice_of(database), "advice from 49 samples")
    data["events"][0]["taken"] = 5000
    data["variables"] = []
    forget_tables(data)
    for row in data["events"]:
        row["fates"] = {"named": row["taken"]}
    m.write_database(database, data)
    expect("state->p" not in advice_of(database, "--min", "0"), "advice about nothing")


def advice_of(database, *options):
    return subprocess.run([str(BUILD / "hpcquery"), "advice", *options, str(database)], capture_output=True, check=True, text=True).stdout


def check_paths(database):
    """Shown is the path with the most samples; the page has all of them, in this order."""
    words = " ".join(report(database, 180).split())
    expect("1 of 3 paths: state_build < main" in words, f"the path of three: {words}")
    expect(re.search(r"^program +heat: .* capacity_table static 32.0 MiB 1 heat ", words), f"the name of a program called by a link: {words}")
    for columns in WIDTHS:
        words = " ".join(report(database, columns).split())
        expect(words.count("64.0 KiB x 20000") == 2, f"a buffer that was allocated anew, in {columns} columns: {words}")
    expect("10 % of the call paths lack callers" in words and "call paths lack" not in report(database.parent / "minicg", 180),
           f"the note on short paths: {words}")
    expect(str(20000 << 16) + ",20000," in report(database, 100, "--csv"), "the CSV has not all bytes")
    asked = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", "--json", database, '{"report": "nodes", "tree": "data"}'],
                           capture_output=True, check=True, text=True)
    nodes = json.loads(asked.stdout)["nodes"]
    paths = {}
    for node in nodes:
        if node["kind"] == "variable":
            paths.setdefault(node["item"], []).append(caller_of(nodes, node)["name"])
    found = [sorted(names) for names in paths.values() if len(names) == 3]
    expect(found == [["mesh_build", "sources_build", "state_build"]], f"the paths of nodes: {paths}")


def check_hidden(database):
    """The head says what has no name, and why."""
    words = " ".join(report(database, 180).split("\n\n")[0].split())
    expect("node --jitless" in words and "has malloc from" in words, f"the head does not say what is hidden: {words}")


def make_saturated(data):
    """Latencies beyond the histogram, as POWER reports them, and operations that access nothing, as AMD samples them."""
    latencies = next(row for row in data["variables"] if data["strings"][row["name"]] == "grid")["latencies"]
    for latency, bins in latencies:
        n = sum(bins)
        latency[2] = 510000 * n
        bins[:] = [0] * (len(bins) - 1) + [n]
    for event in data["events"]:
        event["fates"]["no-access"] = event["taken"]
        event["taken"] *= 2


def check_saturated(text):
    expect(re.search(r"grid .*510k +> 115k", text), f"a percentile beyond the histogram: {text}")
    expect("50.0 % are operations without access" in " ".join(text.split()), f"operations without access: {text}")


def check_profiler(text, database):
    """All that is in its code is in one row, and the head says how much that is."""
    rows = re.findall(r"^ *([0-9.]+) %.* <profiler> ", text, re.M)
    words = " ".join(text.split())
    expect(len(rows) == 1 and f"{rows[0]} % are the profiler's own work" in words, f"the profiler has {rows}: {text}")
    table = [row for row in csv.DictReader(io.StringIO(report(database, 100, "--csv"))) if row["variable"] != "<profiler>"]
    expect(abs(sum(float(row["share"]) for row in table) + float(rows[0] if rows else 0) - 100) < 0.1, "the shares")
    kernel, wanted = kernel_of(database)
    expect([abs(float(row["value"]) - wanted) <= 1 and float(row["share"]) == 0 for row in kernel] == [True] * (wanted > 0),
           f"kernel: {kernel}, not {wanted}")


def kernel_of(database):
    """The rows of the kernel, and the time that it has: what no sample stands for, at most what it says with the error of its ticks."""
    rows = list(csv.DictReader(io.StringIO(report(database, 100, "--csv"))))
    data = json.loads((database / "text.json").read_text(encoding="utf-8"))
    cpu, said, tick = (data["user_ns"] + data["system_ns"]) / 1000, data["system_ns"] / 1000, 4000
    sampled = sum(float(row["value"]) for row in rows if row["variable"] != "<kernel>")
    sampled *= 1 + data["events"][0]["fates"].get("not-delivered", 0) / data["events"][0]["taken"]
    most = said + 2 * tick * max(1, cpu / tick * (said / cpu) * (1 - said / cpu)) ** 0.5
    least = 0.005 * cpu  # of a row
    return [row for row in rows if row["variable"] == "<kernel>"], min(cpu - sampled, most) if cpu - sampled >= least else 0


def check_ticks(database):
    """Ticks of the kernel that met the delivery of samples are not the kernel's; what was lost is not the kernel's either."""
    text = (database / "text.json").read_text(encoding="utf-8")
    before = float(kernel_of(database)[0][0]["value"])
    for moved_ns, is_rest in ((1_500_000_000, True), (-json.loads(text)["system_ns"] + 50_000_000, False)):
        other, data = database.parent / "ticks", json.loads(text)
        data["user_ns"], data["system_ns"] = data["user_ns"] - moved_ns, data["system_ns"] + moved_ns
        m.write_database(other, data)
        (row,), wanted = kernel_of(other)
        expect(abs(float(row["value"]) - wanted) <= 1 and (abs(wanted - before) <= 1) == is_rest, f"kernel: {row}, not {wanted}")


def make_locks(data):
    """The loop in which threads waited is a lock of the C library, on its way back from the kernel."""
    texts = data["strings"]
    for before, after in (("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0", "/usr/lib/libc.so.6"), ("<waiting>", "<system call>"),
                          ("func_0x1f780 [libgomp.so.1.0.0]", "___pthread_mutex_lock")):
        texts[texts.index(before)] = after
    variable(data, "<system call>")["class"] = 7


def check_locks(database):
    """Calls of the kernel by which threads wait are waiting, with the kernel's time for them; the others are the kernel's."""
    data = json.loads(report(database, 100, "--json", "--all", "--top", "0"))
    rows, causes, time = data["variables"], data["causes"], data["cpu_time"]
    share = {"kernel": 0, "threads": 0}
    for row in rows:
        share[row["aside"]] = share.get(row["aside"], 0) + row["share"]
    waiting = time["system_s"] * share["threads"] / (share["threads"] + share["kernel"])
    user, cpu = time["user_s"] / 100, time["user_s"] + time["system_s"]
    expect(share["threads"] > 1 and share["kernel"] > 1 and abs(time["system_waiting_s"] - waiting) < 1e-6, f"{share}: {time}")
    expect(abs(causes["threads"] - 100 * (user * share["threads"] + waiting) / cpu) < 1e-6 and
           abs(causes["kernel"] - 100 * (user * share["kernel"] + time["system_s"] - waiting) / cpu) < 1e-6 and
           abs(sum(causes.values()) - 100) < 1e-6, f"{share}, {time}: {causes}")
    constructs = [part["name"] for row in rows if row["aside"] == "threads" for part in row["constructs"]]
    expect("apply_operator (solver.c:132)" in constructs, f"what takes the lock: {constructs}")
    text = " ".join(report(database, 100).split())
    expect(f"{time['system_s'] - waiting:.2f} s of the CPU time, and {waiting:.2f} s for <waiting>" in text, f"the kernel: {text}")
    rows = subprocess.run([str(BUILD / "hpcquery"), "advice", "--csv", str(database)], capture_output=True, check=True, text=True).stdout
    (row,) = [row for row in csv.DictReader(io.StringIO(rows)) if row["variable"] == "<waiting>"]
    expect(float(row["gain_at_most"]) >= causes["threads"] and "apply_operator (solver.c:132)" == row["place"] and
           "hold it for less time" in row["advice"], f"advice: {row}")


def make_profiled(data):
    """The profiler has a good part of the time."""
    texts = data["strings"]
    texts[texts.index("<profiler>")] = "<other>"
    texts[texts.index("capacity_table")] = "<profiler>"
    variable(data, "<profiler>")["class"] = 6


def check_profiled(database):
    """The head warns, once; what advice gains is a part of the time without the profiler's."""
    data = json.loads(report(database, 100, "--json"))
    text, own = " ".join(report(database, 100).split()), data["causes"]["profiler"]
    expect(own > 10 and f"the profiler took {own:.0f} % of the CPU time" in text, f"no warning of {own} %: {text}")
    expect("are the profiler's own work" not in text, f"the profiler twice: {text}")
    rows = subprocess.run([str(BUILD / "hpcquery"), "advice", "--csv", str(database)], capture_output=True, check=True, text=True).stdout
    check_gains(database, list(csv.DictReader(io.StringIO(rows))))


def databases(scratch):
    minicg = json.dumps(json.loads((GOLDEN / "minicg.json").read_text(encoding="utf-8")))
    hardware = (bundle.golden("hardware") / "locus.json").read_text(encoding="utf-8")
    texts = {"minicg": minicg, "hardware": hardware}
    for name, text, change in (
            ("trouble", minicg, make_trouble), ("hidden", minicg, make_hidden), ("paths", minicg, make_paths),
            ("advice", minicg, make_advice), ("touched", hardware, make_touched), ("walks", minicg, make_walks), ("lines", minicg, make_lines),
            ("nests", minicg, make_nests), ("filled", minicg, make_filled), ("library", minicg, make_library), ("clones", minicg, make_clones), ("called", minicg, make_called),
            ("order", minicg, make_order), ("locks", minicg, make_locks), ("profiled", minicg, make_profiled), ("untold", minicg, make_untold), ("saturated", hardware, make_saturated)):
        data = json.loads(text)
        change(data)
        texts[name] = json.dumps(data)
    for name, text in texts.items():
        m.write_database(scratch / name, text)
        yield name, scratch / name


def widest(text):
    return max(len(line) for line in text.split("\n"))


def check_names(text, columns):
    """The pieces of a wrapped name, in the column of names, are the whole name."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if LONG[:9] in line), 0)
    at, end = lines[first].find(LONG[:9]), lines[first].find("  heap" if columns > 94 else " heap")
    pieces = "".join(line[at:end] for line in lines[first:first + 4])
    expect(first and LONG.replace(" ", "") in pieces.replace(" ", ""), f"{columns} columns: the name is cut:\n{text}")


def check_types(database):
    """By type and field stands what the fields of the variables add up to."""
    def table(*options):
        result = subprocess.run([str(BUILD / "hpcquery"), *options, str(database)], capture_output=True, check=True, text=True)
        return result.stdout
    types, fields, variables = {}, {}, {}
    for row in csv.DictReader(io.StringIO(table("vars", "--fields", "--csv"))):
        if row["class"] == "kernel":  # without samples
            continue
        if row["variable"].startswith("<"):  # no variable, but a row of its own
            types[row["variable"], 0] = types.get((row["variable"], 0), 0) + float(row["share"])
            variables[row["variable"], 0] = {""}
            continue
        key = row["element_type"], int(row["element_bytes"] or 0) if row["element_type"] else 0
        variables.setdefault(key, set()).add(row["variable"])
        types[key] = types.get(key, 0) + float(row["share"])
        path = row["field"][len(row["variable"]):]
        if row["typed"] == "1":
            path = re.sub(r"^(\[[^]]*\]|\([^)]*\))+", "", path)
        if row["field"]:
            place = (*key, path.strip() or "(all)", int(row["offset_bytes"]))
            fields[place] = fields.get(place, 0) + float(row["samples"])
    rows = list(csv.DictReader(io.StringIO(table("types", "--csv"))))
    found = {(r["type"], int(r["size_bytes"] or 0)): float(r["share"]) for r in rows if not r["field"]}
    expect(abs(sum(found.values()) - 100) < 1e-3, f"types add up to {sum(found.values())} %")
    expect(found.keys() == types.keys() and all(abs(found[k] - types[k]) < 1e-3 for k in types), f"types: {found}, not {types}")
    expect(all(set(r["variables"].split("; ")) == variables[r["type"], int(r["size_bytes"] or 0)] for r in rows if not r["field"]), "variables")
    sizes = iter(rows)
    found, size = {}, 0
    for row in sizes:
        size = int(row["size_bytes"] or 0) if not row["field"] else size
        if row["field"]:
            place = row["type"], size, row["field"].strip(), int(row["offset_bytes"])
            found[place] = found.get(place, 0) + float(row["samples"])
    expect(found == fields and (len(fields) > 3 or database.name == "hardware"), f"fields: {found}, not {fields}")
    data = json.loads(table("types", "--json"))["types"]
    same = [{key: row[key] for key in ("type", "size_bytes", "samples", "share")} for row in data]
    wanted = [{"type": r["type"] or None, "size_bytes": int(r["size_bytes"] or 0) or None, "samples": float(r["samples"])} for r in rows if not r["field"]]
    expect([{k: v for k, v in row.items() if k != "share"} for row in same] == wanted, f"types as JSON: {same}")
    expect(sum(len(row["fields"]) for row in data) == len(fields), "fields as JSON")
    text, top = table("types", "--top", "0"), table("types", "--top", "1", "--csv")
    for name, size in types:
        expect(re.search(rf"^ *[0-9.]+ %  {re.escape(name[:30] or 'type not known')}", text, re.M), f"{name} is not in {text}")
    first = max(types, key=types.get)
    split = {}
    for row in csv.DictReader(io.StringIO(table("types", "--by", "function", "--csv"))):
        split[row["type"], row["size_bytes"]] = split.get((row["type"], row["size_bytes"]), 0) + float(row["share"])
    whole = {(row["type"], row["size_bytes"]): float(row["share"]) for row in csv.DictReader(io.StringIO(table("types", "--csv")))
             if not row["field"] and float(row["share"]) > 0}
    expect(split.keys() == whole.keys() and all(abs(split[key] - whole[key]) < 0.001 for key in whole), f"{split}, not {whole}")
    expect({row["type"] for row in csv.DictReader(io.StringIO(top))} == {first[0]}, f"types --top 1: {top}")


# Rules that say what the table of variables does not show, or that no other rule says anything.
OTHER_RULES = ("split", "leak", "huge-pages", "page-faults", "page-touches", "system-calls", "waiting", "stream", "waits", "unknown",
               "loop-order", "loop-blocks", "lock")


def check_answers(rows, table):
    """Each large row has a piece of advice, if causes are known: the profiler's own work has none, and waiting has one for all."""
    answered = {row["variable"] for row in rows}
    for row in table:
        wanted = float(row["share"] or 0) >= 10 and "memory_share" in row and row["variable"] not in ("<profiler>", "<allocator>")
        expect(not wanted or row["variable"] in answered, f"no advice about {row['variable']}: {rows}")
    for row in rows:
        bounds = {"": ("",), "verified": ("verified", "not verified")}["verified" if row["gain_at_most"] else ""]
        expect(row["bound"] in bounds, f"bound: {row}")


def check_advice(database):
    """Advice follows from figures of the table of variables, and from all of them."""
    def csv_of(*options):
        result = subprocess.run([str(BUILD / "hpcquery"), *options, "--csv", str(database)], capture_output=True, check=True, text=True)
        return list(csv.DictReader(io.StringIO(result.stdout)))
    meanings = {(v["variable"], v["alloc_site"]): (v.get("meaning") or "").split()[:1] for v in
                json.loads(report(database, 100, "--json"))["variables"]}
    exported = json.loads(subprocess.run([str(BUILD / "hpcquery"), "export", "json", str(database)], capture_output=True, check=True,
                                         text=True).stdout)
    walks = {exported["strings"][row["name"]]: row.get("walks", []) for row in exported["variables"]}
    meant = []
    for least in (0.2, 5):
        wanted = []
        for row in csv_of("vars"):
            name, share = row["variable"], float(row["share"])
            nodes = [float(row[key] or 0) for key in sorted(row) if re.fullmatch(r"node\d+_samples", key)]
            if share < least or share <= 0:
                continue
            if name.startswith("<"):
                rule = {"<small block>": "threshold", "<compute>": "compute"}.get(name, "special")
                wanted += [(name, rule)] * (name not in ("<kernel>", "<unknown>", "<null>", "<profiler>", "<waiting>", "<allocator>"))
                continue
            meaning = meanings[name, row["alloc_site"]]
            wanted += [(name, word) for word in ("resident", "execution") if meaning == [word]]
            if float(row.get("remote_latency_percent") or 0) >= 25 and sum(nodes):
                users = sum(n >= 0.2 * sum(nodes) for n in nodes)
                wanted += [(name, "interleave")] * (users > 1) + [(name, "first-touch")] * (max(nodes) >= 0.9 * sum(nodes))
            waits = float(row.get("memory_share") or 0) > share / 2
            may_wait = row.get("memory_share") is not None and not waits and float(row["execution_share"]) <= share / 2 and \
                float(row.get("first_touch_share") or 0) <= share / 2
            n_of = 4 if waits else 3  # what waited of a way through memory, or all of it
            blocks = int(row["n_blocks"]) if row["class"] == "heap" else 0
            loads, modified = (sum(float(row.get(f"samples:MEM-{key}") or 0) for key in keys)
                               for keys in (("Load",), ("hitm-local", "hitm-rmt")))
            wanted += [(name, "shared-lines")] * (modified >= 20 and modified >= loads / 10)
            waits = waits or may_wait
            walked = [walk for walk in walks.get(name, []) if waits and int(row["size_bytes"]) >= 1 << 20]
            all_memory = sum(walk[n_of] for walk in walked)
            for rule, memory in (("stride", sum(w[n_of] for w in walked if w[1] == 2 and w[2] >= 256)),
                                 ("chain", sum(w[n_of] for w in walked if w[1] == 7)),
                                 ("irregular", sum(w[n_of] for w in walked if w[1] == 4))):
                wanted += [(name, rule)] * (memory > all_memory / 2)
            wanted += [(name, "small-blocks")] * (waits and blocks >= 1000 and 0 < int(row["size_bytes"]) < 4096 * blocks)
            if waits and row["class"] == "heap" and not blocks and not int(row["size_bytes"]):
                apart = sum(walk[n_of] for walk in walks.get(name, []) if walk[1] in (4, 7))
                wanted += [(name, "small-blocks")] * (apart > sum(walk[n_of] for walk in walks.get(name, [])) / 2)
        bare = [(sum(float(part) for part in re.findall(r":0 ([\d.]+)%", row["top_lines"])) * float(row["share"]) / 100, row["variable"])
                for row in csv_of("vars") if not row["variable"].startswith("<")]
        if sum(share for share, _ in bare) >= least:
            wanted.append((max(bare)[1], "debug-info"))
        rows = csv_of("advice", "--min", str(least))
        found = [(row["variable"], row["rule"]) for row in rows if row["rule"] not in OTHER_RULES]
        for name in (row["variable"] for row in rows if row["rule"] == "huge-pages"):
            apart = sum(w[4] for w in walks[name] if w[1] in (4, 7) or (w[1] == 2 and w[2] >= 4096))
            expect(apart > sum(w[4] for w in walks[name]) / 2, f"huge pages for {name}: {walks[name]}")
        meant = meant or found
        check_answers(rows, csv_of("vars"))
        expect(sorted(found) == sorted(wanted), f"advice from {least} %: {found}, not {wanted}")
        expect(all(row["evidence"] and float(row["share"]) >= least for row in rows if row["rule"] != "leak"), f"evidence: {rows}")
    result = subprocess.run([str(BUILD / "hpcquery"), "advice", "--json", "--min", "5", str(database)], capture_output=True, check=True,
                            text=True)
    same = [{key: row[key] or None for key in ("variable", "class", "alloc_site", "rule", "advice", "evidence")} for row in rows]
    data = json.loads(result.stdout)["advice"]
    expect([{key: row[key] for key in same[0]} for row in data] == same if same else not data, f"advice as JSON: {data}")
    text = subprocess.run([str(BUILD / "hpcquery"), "advice", "--top", "0", str(database)], capture_output=True, check=True, text=True).stdout
    words = " ".join(text.split())
    expect(all(" ".join(row["evidence"].split()) in words for row in rows) and ("none:" in words) == (not rows), f"advice as text: {text}")
    return set(meant)


def check_readme(database):
    """Its block is the report at 100 columns, with "..." for what is left out."""
    blocks = re.findall(r"^```\n(program .*?)^```$", (SOURCE / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    lines = report(database, 100).split("\n")
    expect(len(blocks) == 1, f"README.md has {len(blocks)} reports")
    for line in "".join(blocks).split("\n"):
        if line == "...":
            continue
        expect(line in lines, f"README.md shows a line that is not in the report, or not in this order: {line}")
        if line in lines:
            lines = lines[lines.index(line) + 1:]


def main():
    record = "--record" in sys.argv
    with tempfile.TemporaryDirectory() as name:
        for case, database in databases(pathlib.Path(name)):
            check_screen(case, database)
            if case in ("minicg", "hidden", "trouble", "order", "walks", "advice"):
                check_causes(database)
                check_cut(database)
            if case == "paths":
                check_paths(database)
                continue
            checks = {"advice": check_rules, "walks": check_walks, "nests": check_nests, "filled": check_filled, "library": check_library, "clones": check_clones, "called": check_called, "lines": check_lines, "untold": check_untold, "locks": check_locks, "profiled": check_profiled, "touched": check_touched}
            if case in checks:
                checks[case](database)
            if case in checks or case == "order":
                continue
            for columns in WIDTHS:
                text, path = report(database, columns), GOLDEN / f"{case}-{columns}.txt"
                if record:
                    path.write_text(text, encoding="utf-8")
                known = path.read_text(encoding="utf-8") if path.exists() else ""
                expect(text == known, f"{path.name} is not the committed one:\n{text}")
                expect(widest(text) <= columns, f"{case}: a line of {widest(text)} characters in {columns} columns")
                if case == "trouble":
                    check_names(report(database, columns, "-v", "--top", "0"), columns)
                    check_profiler(report(database, columns, "--top", "0"), database)
                if case == "hidden" and columns == 180:
                    check_hidden(database)
                if case == "saturated":
                    check_saturated(text)
            text = report(database, 120, "-v", "--top", "2")
            path = GOLDEN / f"{case}-verbose.txt"
            if record:
                path.write_text(text, encoding="utf-8")
            expect(path.exists() and text == path.read_text(encoding="utf-8"), f"{path.name} is not the committed one:\n{text}")
            if case in ("minicg", "hardware", "trouble"):
                check_types(database)
            check_advice(database)
            if case == "minicg":
                check_readme(database)
                check_ticks(database)
    if record:
        bundle.keep_golden("report")
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
