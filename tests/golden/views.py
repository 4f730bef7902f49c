#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What each view of the viewer owes to viewers before it (rows v1 to v11 of tests/meta/statements.tsv), in Chromium: what stands for
things of each kind in each view; groups and columns of choice; callers, callees and the graph of calls with its cycles, two metrics,
parts of parents, steps and comparisons with the numbers of hpcquery; files of other tools; and, after each of random actions, all numbers
of open views, with and without a choice of threads. LOCUS_VIEWER_STEPS: how many actions (60; in full tests 500)."""
import csv
import io
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import viewer  # noqa: E402

PARITY = """# callgrind format
version: 1
creator: by hand
cmd: parity
positions: line
events: Ir Dr

fl=parity.c
fn=main
10 100 10
cfn=is_even
calls=3 20
11 600 60
fn=is_even
20 200 20
cfn=is_odd
calls=5 30
21 400 40
fn=is_odd
30 300 30
cfn=is_even
calls=4 20
31 200 20
cfn=leaf
calls=2 40
32 100 10
fn=leaf
40 100 10
"""


def node(name, own, *below):
    """A node of a literal of Hatchet: what it costs itself is at a line of it, as in our databases."""
    line = {"frame": {"name": "line 1", "type": "line", "line": 1}, "metrics": {"time": own, "time (inc)": own}}
    whole = own + sum(each["metrics"]["time (inc)"] for each in below)
    return {"frame": {"name": name, "type": "function"}, "metrics": {"time": 0.0, "time (inc)": whole}, "children": [line, *below]}


LITERAL = [node("main", 5.0, node("a", 10.0, node("b", 20.0, node("a", 5.0)), node("c", 7.0)), node("c", 3.0, node("b", 4.0, node("d", 11.0))))]
# Kinds of things, and the views that have nothing of them; of all others something can be shown. No recording of what ran when here.
GREY = {"variable": [], "function": [], "line": [], "file": [], "module": [], "type": [], "field": [], "site": [], "thread": ["items", "annotate"]}
NEVER = ["timeline"]
ROWS = "[...document.querySelectorAll('%s .grid-row')].map((row) => [...row.children].map((cell) => cell.innerText))"
BOXES = "[...document.querySelectorAll('.icicle [role=treeitem]')].map((each) => [Number(each.ariaLevel), each.textContent, each.id])"
METRICS = [("EADDR (usec)", m.INT, 1000)]
STEPS = int(os.environ.get("LOCUS_VIEWER_STEPS", "500" if os.environ.get("LOCUS_TEST_FULL") else "60"))
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def hpcquery(*words, most=0):
    result = subprocess.run([BUILD / "hpcquery", *map(str, words)], capture_output=True, check=False, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    expect(result.returncode <= most, f"hpcquery {words}: {result.stderr[:500]}")
    return result.stdout


def asked(*words):
    return json.loads(hpcquery(*words))


def escaped(text):
    return "".join(chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-._~:/@!$'()*,;?") else f"%{byte:02X}" for byte in text.encode())


def show(page, **state):
    """Goes to a state, and waits until all open views have it."""
    text = "&".join(f"{key}={escaped(each)}" for key, value in state.items() for each in (value if isinstance(value, list) else [value]))
    page.value(f"location.hash = {json.dumps(text)}; 0")
    page.settle()
    page.are_states_one()
    page.settle()


def percent(value):
    return f"{value:.1f} %"


def number(text):
    return float(text.split(" %")[0].replace("−", "-"))


def check_stand_ins(page, database):
    """Of each kind of things, in each view: shown, or grey with the reason, and the thing stays chosen."""
    for kind, grey in GREY.items():
        item = next(row["item"] for row in asked("items", "--json", kind, database)["items"] if row["item"])
        show(page, active=item)
        tabs = page.value("[...document.querySelectorAll('[role=tab]')].map((each) => [each.id.slice(4), each.ariaDisabled === 'true', each.title])")
        found = [name for name, is_grey, _ in tabs if is_grey]
        expect(sorted(found) == sorted(grey + NEVER), f"{item}: grey are {found}, not {grey + NEVER}")
        expect(all(title.strip() for _, is_grey, title in tabs if is_grey), f"{item}: no reason in {tabs}")
        for view, _, _ in tabs:
            page.value(f"document.getElementById('tab-{view}').click()")
            page.settle()
            page.are_states_one()
            expect(f"active={escaped(item)}" in page.value("location.hash"), f"{item}: {view} lost it")
            expect(page.value(f"document.getElementById('panel-{view}').innerText.trim() !== '' || document.querySelector('#panel-{view} canvas') !== null"), f"{item}: {view} is empty")


def check_groups(page, database):
    """Groups of the list have the sums of what is in them, in their order; folded they hide it. Columns are those that are chosen."""
    rows = asked("vars", "--json", database)["variables"]
    sums = {}
    for row in rows:
        sums[row["class"]] = sums.get(row["class"], 0) + (row["share"] or 0)
    show(page, layout="list:variable,group:class,columns:samples")
    found = page.value(ROWS % ".list")
    groups = [(cells[1].split()[1], cells[0]) for cells in found if cells[1][:1] in "▸▾"]
    want = [(name, percent(value)) for name, value in sorted(sums.items(), key=lambda each: -each[1])]
    expect(groups and groups == want[:len(groups)], f"groups are {groups}, not {want}")
    expect([cells[2] for cells in found if cells[1] == rows[0]["variable"]] == [f"{rows[0]['samples']:.0f}"], f"the column of samples is {found[:4]}")
    page.value("document.querySelector('.list .grid-row.group').click()")
    page.settle()
    after = page.value(ROWS % ".list")
    expect(after[0][1].startswith("▸") and after[1][1][:1] in "▸▾", f"folded is {after[:3]}")


def check_callers(page, database):
    """Callers and callees of ten functions: what each costs in all, and that callers together cost that again."""
    rows = [row for row in asked("functions", "--json", database)["functions"] if not row["function"].startswith("<")]
    names = [row["function"] for row in rows]
    unique = [row for row in rows if names.count(row["function"]) == 1][:10]
    expect(len(unique) >= 5, f"only {len(unique)} functions")
    for row in unique:
        show(page, active="function:" + row["function"], layout="graph:sandwich;runtime")
        boxes = page.value(BOXES)
        title = boxes[0][1] if boxes else ""
        expect(title.startswith(f"{row['function']}, {percent(row['inclusive_share'])}"), f"in the middle of {row['function']} is {title}, which costs {row['inclusive_share']}")
        page.value("document.querySelector('.icicle').focus(); 0")
        page.browser.press("ArrowUp")
        page.settle()
        callers = [text for level, text, _ in page.value(BOXES) if level == 2 and text != title]
        total = sum(number(text.split(", ")[1]) for text in callers)
        expect(not callers or len(callers) >= 20 or total <= row["inclusive_share"] + .1 * len(callers) + .1, f"callers of {row['function']} cost {total}: {callers}")


def check_calls(page, path):
    """The graph of calls has the functions and the costs of hpcquery callgraph, and one box for those that call each other."""
    for cycles in ("", "1"):
        rows = list(csv.DictReader(io.StringIO(hpcquery("callgraph", *(["collapsed"] if cycles else []), ":", "csv", path))))
        total = sum(float(row["Ir"]) for row in rows)
        want = {row["name"]: (percent(100 * float(row["Ir"]) / total)) for row in rows}
        show(page, layout="list:function,graph:calls", cycles=cycles)
        boxes = page.value("[...document.querySelectorAll('.call')].map((each) => each.getAttribute('aria-description'))")
        found = {}
        for text in boxes:
            name, *_ = text.replace(": ", ", ").split(", ")
            found[name] = text.split(" itself")[0].split(", ")[-1]
        expect(found == want, f"boxes with cycles {bool(cycles)}: {boxes}, not {want}")
    expect("<cycle 1>" in found and "is_even" in boxes[[text.startswith("<cycle") for text in boxes].index(True)], f"no cycle in {boxes}")


def check_metrics(page, database):
    """Two metrics side by side are those of two reports; absolute, and as parts of parents, of which each has a hundred percent."""
    first, second = asked("vars", "--json", database), asked("vars", "--json", "--metric", "FAULTS", database)
    faults = {row["variable"]: row["value"] for row in second["variables"]}
    show(page, layout="code:metrics,rows:vars", metric2="FAULTS", percent="absolute")
    found = page.value(ROWS % "#panel-metrics")
    expect(len(found) > 3, f"rows of metrics are {found}")
    by_name = {row["variable"]: row for row in first["variables"]}
    for cells in found:
        name = cells[-2]
        if [row["variable"] for row in first["variables"]].count(name) != 1 or name.startswith("<"):
            continue
        for text, value in ((cells[0], by_name[name]["value"]), (cells[2], faults.get(name))):
            shown = float(text.replace(" k", "e3").replace(" M", "e6").replace(" G", "e9")) if text != "-" else 0
            expect(abs(shown - (value or 0)) <= .005 * abs(value or 0), f"{name} has {text}, not {value}")
    show(page, layout="code:metrics,rows:vars", metric2="FAULTS", percent="parent")
    sums, classes = {}, {row["variable"]: row["class"] for row in first["variables"]}
    for cells in page.value(ROWS % "#panel-metrics"):
        if cells[0] != "-":
            sums[classes[cells[-2]]] = sums.get(classes[cells[-2]], 0) + number(cells[0])
    expect(sums and all(abs(each - 100) < 1 for each in sums.values()), f"parts of classes add up to {sums}")


def check_derived(page, database):
    """A formula is a column with the values of hpcquery --derive."""
    formula = "wait = 'EADDR memory (usec)' / 'EADDR (usec)'"
    rows = {row["function"]: row["derived"]["wait"] for row in asked("functions", "--json", "--derive", formula, database)["functions"]}
    show(page, layout="code:metrics,rows:functions", derive=[formula])
    page.wait("document.querySelector('#panel-metrics .grid-head').innerText.includes('wait')", 10)
    titles = page.value("[...document.querySelectorAll('#panel-metrics .grid-head > div')].map((each) => each.innerText)")
    found = page.value(ROWS % "#panel-metrics")
    expect("wait" in titles and len(found) > 3, f"columns are {titles}")
    for cells in found if "wait" in titles else []:
        value = rows[cells[-2]]
        shown = cells[titles.index("wait")]
        expect((shown == "-") == (value is None) and (value is None or abs(float(shown) - value) <= .0006 * abs(value) + 1e-9), f"wait of {cells[-2]} is {shown}, not {value}")


def check_percent(page):
    """As parts of the caller: what a box costs itself and what is below it are all of it."""
    show(page, percent="parent", layout="graph:top-down;runtime;lines;loops")
    page.value("document.querySelector('.icicle').focus(); 0")
    page.browser.press("Home")
    for _ in range(4):
        page.settle()
        at, depth = page.value("(() => { const at = document.getElementById(document.querySelector('.icicle').getAttribute('aria-activedescendant')); return [at.textContent, Number(at.ariaLevel)]; })()")
        boxes = page.value(BOXES)
        place = [text for _, text, _ in boxes].index(at) + 1
        below = []
        while place < len(boxes) and boxes[place][0] > depth:
            below.append(boxes[place][1])
            place += 1
        itself = number(at.split(", ")[2]) if " itself" in at else 0
        if 0 < len(below) < 20:
            total = itself + sum(number(text.split(", ")[1]) for text in below)
            expect(abs(total - 100) < .06 * (len(below) + 2), f"{at}: {total} with {below}")
        page.browser.press("ArrowDown")


def check_trail(page, path):
    """The commands that the page prints for steps give the numbers that it shows, and the total."""
    for trail in (["merge a"], ["drop b"], ["focus b"], ["collapse a"], ["merge c", "focus b"]):
        show(page, layout="graph:calls", trail=trail, min="0.1")
        found = dict(text.split(", ")[:2] for text in page.value("[...document.querySelectorAll('.call')].map((each) => each.getAttribute('aria-description'))"))
        page.value("[...document.querySelectorAll('header button')].find((each) => each.textContent === 'Command').click()")
        words = shlex.split(page.value("document.querySelector('dialog textarea').value").splitlines()[-1])
        page.value("document.querySelector('dialog').close()")
        sums, total = {}, 0
        for row in csv.DictReader(io.StringIO(hpcquery(*words[1:words.index("callgraph")], "csv", path))):
            sums[row["name"]] = sums.get(row["name"], 0) + float(row["time (inc)"])
            total += float(row["time (inc)"]) if row["name"] == "main" else 0
        want = {name: percent(100 * value / total) for name, value in sums.items() if not name.startswith("line")}
        for each in (want, found) if trail not in (["merge a"], ["collapse a"]) else ():
            each.pop("a", None)  # it calls itself: what it costs is not the sum of its nodes
        expect(total and found == want, f"{trail}: {found}, hpcquery has {want}")


def check_graph_steps(page, path):
    """The same of a graph of functions with costs of their own: what a step leaves, and of how much, is what its command leaves, with
    what they call and without, in circles, too."""
    for trail in ([], ["merge is_even"], ["merge leaf"], ["merge main"], ["collapse is_even"], ["collapse is_odd"], ["drop is_even"], ["focus leaf"], ["merge is_even", "merge leaf"]):
        show(page, layout="list:function,graph:calls", trail=trail, min="0.1")
        boxes = [text.split(", ") for text in page.value("[...document.querySelectorAll('.call')].map((each) => each.getAttribute('aria-description'))")]
        found = {name: (all_of, own.split(" itself")[0]) for name, all_of, own in (each[:3] for each in boxes)}
        page.value("[...document.querySelectorAll('header button')].find((each) => each.textContent === 'Command').click()")
        words = shlex.split(page.value("document.querySelector('dialog textarea').value").splitlines()[-1])
        page.value("document.querySelector('dialog').close()")
        rows = list(csv.DictReader(io.StringIO(hpcquery(*words[1:words.index("callgraph") + 1], ":", "csv", path))))
        total = sum(float(row["Ir"]) for row in rows)
        want = {row["name"]: (percent(100 * float(row["Ir (inc)"]) / total), percent(100 * float(row["Ir"]) / total)) for row in rows}
        expect(total and found == want, f"{trail}: {found}, hpcquery has {want}")


def boxes_of(page, **state):
    show(page, **state)
    return page.value(BOXES)


def measured(scratch, name, factors):
    """A database of a measurement made here, in which variables cost some of what they would."""
    for thread in range(2):
        profile = m.Profile("program", METRICS, thread=thread)
        for i, factor in enumerate(factors):
            variable = m.by_address("DATACENTRIC_Static", "/opt/program", 0x404040 + 64 * i, "static", f"variable_{i}", 64, [[thread, 0, 100 * factor]])
            profile.sample([("/opt/program", 0x1000 + 16 * i)], {0: 100 * factor}, variable)
        profile.write(scratch / f"{name}.measured")
    subprocess.run([BUILD / "hpcprof", "-o", scratch / name, scratch / f"{name}.measured"], check=True, capture_output=True)


def check_compare(page, before, database, file):
    """Differences from another page are those of hpcquery diff."""
    show(page, view="diff", min="0")
    page.browser.call("DOM.enable")
    root = page.browser.call("DOM.getDocument")["root"]["nodeId"]
    field = page.browser.call("DOM.querySelector", nodeId=root, selector="#panel-diff input[type=file]")["nodeId"]
    page.browser.call("DOM.setFileInputFiles", nodeId=field, files=[str(file)])
    page.wait("document.querySelectorAll('#panel-diff .grid-row').length > 0", 10)
    page.settle()
    found = {cells[3]: cells[1] for cells in page.value(ROWS % "#panel-diff")}
    answer = json.loads(hpcquery("diff", "--json", "--by", "variable", "--threshold", "0", before, database, most=3))  # 3: there are differences
    rows = next(value for value in answer.values() if isinstance(value, list))
    expect(len(found) > 2, f"rows of the comparison are {found}")
    named = [row["variable"] if "variable" in row else row["name"] for row in rows]
    for row, name in zip(rows, named):
        if name in found and named.count(name) == 1:
            change = row.get("change_percent", row.get("percent"))
            expect(change is None or abs(number(found[name]) - change) < .06, f"{name} changed by {found[name]}, not {row}")


def check_foreign(page, path):
    """A file of callgrind: its functions with their own costs; what is about data is grey and says why."""
    costs = {row["name"]: float(row["Ir"]) for row in csv.DictReader(io.StringIO(hpcquery("csv", path))) if row["kind"] == "function"}
    expect(page.value("document.querySelector('.list select').value") == "function", "the list does not begin with functions where there are no variables")
    expect(not page.value("document.querySelector('#panel-advice .legend').checkVisibility()"), "bars are explained where none are")
    show(page, layout="list:function")
    found = {cells[2]: cells[1] for cells in page.value(ROWS % ".list")}
    expect(found == {name: percent(100 * cost / sum(costs.values())) for name, cost in costs.items()}, f"functions are {found}, not {costs}")
    if shutil.which("callgrind_annotate"):
        text = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", path], capture_output=True, check=True, text=True, cwd=path.parent).stdout
        others = {name: part for part, name in re.findall(r"^ *[\d,]+ \( ?([\d.]+)%\).*[ :](\w+)(?: \[.*\])?$", text, re.M)}
        expect(others.keys() == found.keys() and all(abs(number(found[name]) - float(part)) < .051 for name, part in others.items()), f"callgrind_annotate has {others}, not {found}: {text}")
    else:
        print("the functions of callgrind's file are not compared with callgrind_annotate's: it is not installed")
    grey = page.value("[...document.querySelectorAll('[role=tab]')].filter((each) => each.ariaDisabled === 'true').map((each) => [each.id.slice(4), each.title])")
    expect({"vars", "items", "matrix", "treemap"} <= {name for name, _ in grey} and all(title for _, title in grey), f"grey are {grey}")


# Processes and threads as conditions, and those of them [(rank, thread), ...]. Numbers of a thread are in no sum of others.
CHOICES = [("rank = 1", [(1, 0), (1, 1)]), ("thread = 0", [(0, 0), (1, 0)]), ("(rank = 0 and thread = 1)", [(0, 1)]), ("rank = 0 or (rank = 1 and thread = 1)", [(0, 0), (0, 1), (1, 1)])]


def samples_of(rank, thread, variable):
    return 100 + 2 ** (variable + 4) * (1 + rank) + 7 * thread * variable * variable


def ranked(scratch):
    """A database of two ranks with two threads each, of which each has a part of its own in each variable and function."""
    for rank in range(2):
        for thread in range(2):
            profile = m.Profile("program", METRICS, rank=rank, thread=thread, pid=100 + rank)
            for i in range(4):
                n = samples_of(rank, thread, i)
                variable = m.by_address("DATACENTRIC_Static", "/opt/program", 0x404040 + 64 * i, "static", f"variable_{i}", 64, [[thread, 0, n]])
                profile.sample([("/opt/program", 0x1000), ("/opt/program", 0x1100 + 16 * i)], {0: n}, variable)
            profile.write(scratch / "ranks.measured")
    subprocess.run([BUILD / "hpcprof", "-o", scratch / "ranks", scratch / "ranks.measured"], check=True, capture_output=True)


def check_choice(page, database, is_served):
    """With a choice of threads every number of every view is hpcquery's for it, and that of the samples that were written; what is known of
    all threads together is grey, with the reason. The choice is a step that can be taken back."""
    for condition, threads in CHOICES:
        want = {f"variable_{i}": sum(samples_of(*thread, i) for thread in threads) for i in range(4)}
        total = sum(want.values())
        shares = {name: percent(100 * n / total) for name, n in want.items()}
        rows = asked("vars", "--json", "--profiles", condition, database)["variables"]
        expect({row["variable"]: row["value"] for row in rows} == {name: 1000 * n for name, n in want.items()}, f"hpcquery has of {condition} {rows}, not {want}")
        functions = {row["function"]: (row["own_share"], row["inclusive_share"]) for row in asked("functions", "--json", "--profiles", condition, database)["functions"]}
        show(page, view="vars", profiles=condition, layout="code:metrics,rows:vars", percent="absolute")
        found = {cells[1]: cells[0] for cells in page.value(ROWS % ".list")}
        expect(found == shares, f"{condition}: the list has {found}, not {shares}")
        found = page.value("[...document.querySelectorAll('#panel-vars .grid-row')].map((row) => row.innerText)")
        expect(len(found) == 4 and all(any(name in text and share in text for text in found) for name, share in shares.items()), f"{condition}: variables are {found}, not {shares}")
        found = {cells[-2]: float(cells[0].replace(" k", "e3").replace(" M", "e6")) for cells in page.value(ROWS % "#panel-metrics")}
        expect(found.keys() == want.keys() and all(abs(found[name] - 1000 * n) <= 5 * n for name, n in want.items()), f"{condition}: metrics are {found}, not {want}")
        show(page, view="vars", profiles=condition, layout="list:function,code:metrics,rows:functions")
        found = {cells[-2]: cells[0] for cells in page.value(ROWS % "#panel-metrics")}
        expect(found == {name: percent(own) for name, (own, _) in functions.items() if own or is_served}, f"{condition}: functions are {found}, not {functions}")
        check_cells(page, database, condition, threads)
        grey = page.value("[...document.querySelectorAll('[role=tab]')].filter((each) => each.ariaDisabled === 'true').map((each) => [each.id.slice(4), each.title])")
        expect({"advice", "trust", "diff"} <= {name for name, _ in grey} and all(title for _, title in grey), f"{condition}: grey are {grey}")
        check_chosen_graph(page, database, condition, functions, is_served)
    page.value("document.querySelector('header .step button').click()")
    page.settle()
    page.are_states_one()
    expect("profiles" not in page.value("location.hash") and page.value("document.querySelector('header .step') === null"), "the choice of threads cannot be taken back")
    page.value("document.querySelectorAll('header button')[0]; [...document.querySelectorAll('header button')].find((each) => each.textContent.startsWith('Threads')).click()")
    page.value("(() => { const box = document.querySelector('.thread-list input'); box.click(); [...document.querySelectorAll('dialog button')].find((each) => each.textContent === 'Apply').click(); })()")
    page.settle()
    page.are_states_one()
    expect("profiles=" + escaped("rank = 1") in page.value("location.hash"), f"without the first rank: {page.value('location.hash')}")


def check_cells(page, database, condition, threads):
    """The matrix has the threads that are chosen, and what each has."""
    show(page, view="matrix", profiles=condition)
    page.value("document.querySelector('.heat-view').focus(); 0")
    names = [f"{rank}.{thread}" for rank, thread in threads]
    answer = asked("vars", "--json", "--by", "thread", "--profiles", condition, database)
    expect(answer["columns"] == names, f"{condition}: columns are {answer['columns']}, not {names}")
    found = page.value("[...document.querySelectorAll('#panel-matrix [role=gridcell], #panel-matrix [role=row]')].map((each) => each.textContent).join('\\n')")
    words = page.value("document.querySelector('#panel-matrix').innerText")
    expect(all(f"thread {name}" not in found + words for name in ("0.0", "0.1", "1.0", "1.1") if name not in names), f"{condition}: other threads in {found}")


def check_chosen_graph(page, database, condition, functions, is_served):
    """Boxes have the shares of the threads that are chosen, and the command that the page prints for them has the same."""
    show(page, layout="list:function,graph:top-down;runtime", profiles=condition)
    words = page.value("document.getElementById('panel-tree').innerText")
    if not is_served:
        expect(f"hpcquery choose '{condition}' : tree" in words and "hpcviewer DB" in words, f"{condition}: no reason for the graph in {words}")
        return
    page.value("document.querySelector('.icicle').focus(); 0")
    for key in ("Home", "ArrowDown", "ArrowDown"):
        page.browser.press(key)
    page.settle()
    found = {text.split(", ")[0]: text.split(", ")[1] for _, text, _ in page.value(BOXES)}
    want = {name: percent(inclusive) for name, (_, inclusive) in functions.items()}
    expect(want.items() <= found.items(), f"{condition}: boxes are {found}, not {want}")
    page.value("[...document.querySelectorAll('header button')].find((each) => each.textContent === 'Command').click()")
    line = shlex.split(page.value("document.querySelector('dialog textarea').value").splitlines()[-1])
    page.value("document.querySelector('dialog').close()")
    rows = list(csv.DictReader(io.StringIO(hpcquery(*line[1:line.index("tree", 3)], "csv", "--tree", "code", database))))
    costs = {row["name"]: float(row["time (inc)"] or 0) for row in rows if row["kind"] == "function"}
    whole = max(costs.values())
    expect({name: percent(100 * cost / whole) for name, cost in costs.items()} == want, f"{line} has {costs}, not {want}")


def check_ranges(page, database):
    """Of a large table a server is asked for the first rows, by which the page begins; all come then, and nothing else stays."""
    expect(page.wait("document.querySelector('.list .grid').ariaRowCount === '151'", 20), f"the list has {page.value('document.querySelector(`.list`).innerText')[-40:]}")
    page.settle()
    tops = page.value("performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/ask')).length")
    expect(tops >= 5, f"{tops} questions")
    show(page, layout="code:metrics,rows:vars", active="variable:variable_0")
    expect(page.value("document.getElementById('panel-metrics').querySelector('.grid').ariaRowCount") == "151", "the metrics lack variables")
    for each in viewer.Numbers(BUILD / "hpcquery", database).compare(page):
        expect(False, f"wide: {each}")


def check_late(page, database):
    """A source that comes when another one was asked for meanwhile, and came, does not take its place."""
    lines = asked("items", "--json", "line", database)["items"]
    late, early = (next(row for row in lines if row["file"].endswith(name)) for name in ("mesh.c", "solver.c"))
    page.value("globalThis.locusLate = [fetch, 0]; globalThis.fetch = (to, about) => !/\"source\".*mesh.c/.test(String(about?.body)) ? (0, locusLate[0])(to, about)\n"
               "    : new Promise((then) => setTimeout(() => { locusLate[1]++; then((0, locusLate[0])(to, about)); }, 1500)); 0")
    page.value(f"location.hash = 'layout=code:annotate&active={escaped(late['item'])}'; 0")
    time.sleep(.3)
    show(page, layout="code:annotate", active=early["item"])
    expect(page.wait("locusLate[1] === 1", 10), "no source came late")
    page.settle()
    time.sleep(.3)
    for each in viewer.Numbers(BUILD / "hpcquery", database).compare(page, 0):
        expect(False, f"late: {each}")
    page.value("globalThis.fetch = locusLate[0]; 0")


def check_any(page, numbers, steps, choices=()):
    """Whatever is done, each number of each open view is hpcquery's for what is chosen."""
    failures.extend(viewer.play(page, numbers, random.Random(steps), steps, choices))
    expect(sum(numbers.counts.values()) > 3 * steps, f"after {steps} actions only {numbers.counts} numbers were compared")
    print(f"{numbers.database.name}: {steps} actions; numbers compared: {numbers.counts}")


def main():
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = pathlib.Path(scratch_name)
        page = viewer.opened(scratch / "profile")
        data = json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8"))
        m.write_database(scratch / "database", data)
        ranked(scratch)
        measured(scratch, "before", (5, 3, 2, 1, 1))
        measured(scratch, "after", (2, 6, 2, 1, 3))
        measured(scratch, "wide", range(1, 151))
        (scratch / "calls.json").write_text(json.dumps(LITERAL), encoding="utf-8")
        (scratch / "callgrind.out").write_text(PARITY, encoding="utf-8")
        for made in ("database", "ranks", "before", "after", "calls.json", "callgrind.out"):
            subprocess.run([BUILD / "hpcviewer", "-o", scratch / f"{made}.html", scratch / made], check=True, stdout=subprocess.DEVNULL)
        page.open(f"file://{scratch}/database.html")
        check_stand_ins(page, scratch / "database")
        check_groups(page, scratch / "database")
        check_callers(page, scratch / "database")
        check_percent(page)
        expect(not page.browser.troubles, f"on the console: {page.browser.troubles[:3]}")
        page.open(f"file://{scratch}/ranks.html")
        check_choice(page, scratch / "ranks", False)
        check_any(page, viewer.Numbers(BUILD / "hpcquery", scratch / "ranks"), STEPS, [condition for condition, _ in CHOICES])
        page.open(f"file://{scratch}/after.html")
        check_compare(page, scratch / "before", scratch / "after", scratch / "before.html")
        check_any(page, viewer.Numbers(BUILD / "hpcquery", scratch / "after", scratch / "before"), STEPS)
        page.open(f"file://{scratch}/calls.json.html")
        check_trail(page, scratch / "calls.json")
        page.open(f"file://{scratch}/callgrind.out.html")
        check_foreign(page, scratch / "callgrind.out")
        check_calls(page, scratch / "callgrind.out")
        check_graph_steps(page, scratch / "callgrind.out")
        expect(not page.browser.troubles, f"on the console: {page.browser.troubles[:3]}")
        with subprocess.Popen([BUILD / "hpcviewer", "--no-browser", scratch / "database"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as served:
            page.open(next(line for line in served.stdout if line.startswith("http:")).strip())
            check_late(page, scratch / "database")
            check_metrics(page, scratch / "database")
            check_derived(page, scratch / "database")
            expect(not page.browser.troubles, f"on the console: {page.browser.troubles[:3]}")
            served.terminate()
        with subprocess.Popen([BUILD / "hpcviewer", "--no-browser", scratch / "wide"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as served:
            page.open(next(line for line in served.stdout if line.startswith("http:")).strip())
            check_ranges(page, scratch / "wide")
            expect(not page.browser.troubles, f"on the console: {page.browser.troubles[:3]}")
            served.terminate()
        with subprocess.Popen([BUILD / "hpcviewer", "--no-browser", scratch / "ranks"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as served:
            page.open(next(line for line in served.stdout if line.startswith("http:")).strip())
            check_choice(page, scratch / "ranks", True)
            check_any(page, viewer.Numbers(BUILD / "hpcquery", scratch / "ranks"), STEPS, [condition for condition, _ in CHOICES])
            expect(not page.browser.troubles, f"on the console: {page.browser.troubles[:3]}")
            served.terminate()
        page.close()
    for failure in failures[:25]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
