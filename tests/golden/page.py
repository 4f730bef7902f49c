#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page for browsers. As a file: small but for its data, refers to nothing outside, its policy lets only its own script
run, and no name can end the data. Its rows, tree and lines are those of `hpcquery vars`, `tree` and `lines`. In Chromium,
where it is there: what to change is on the first screen; no load, no message on the console; sorting, search, details, flame
graphs, sources and the keyboard; nothing wider than the window at 80 to 200 %, and in a narrow one; and every query that it
offers, asked by the library, gives what was chosen.
Pages of LOCUS_PAGE_CONTEXTS contexts, as a broad tree and as one call path, work as well. `hpcrun --report=FILE.html` writes one."""
import base64
import csv
import hashlib
import html.parser
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
import browser  # noqa: E402
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import toolchain  # noqa: E402

DATABASES = {"minicg": bundle.golden("report") / "minicg.json", "hardware": bundle.golden("hardware") / "locus.json"}
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;'\"</td>"
NAMES = [HOSTILE, "</script><!--", "a \"b\" 'c' \\ \\\" \\\\", "two\nlines\tand a tab", "abc\u202ecba \u05d0\u05d1\u05d2",
         "bytes \udcff\udcfe", "x" * 10000, "} AND {MATCH (\"*\")} OR p.\"name\"", "wide " + "word " * 100, "@data@ @js@"]
FIXED_BYTES_MAX = 300 << 10
VOID = {"meta", "br", "img", "link", "input", "hr"}
CONTEXTS = os.environ.get("LOCUS_PAGE_CONTEXTS", "4000")
METRICS = [("EADDR (usec)", m.INT, 1000)]
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *arguments, status=0):
    result = subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, check=False, text=True,
                            encoding="utf-8", errors="replace", env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "4000"})
    expect(result.returncode == status, f"{tool} {arguments}: status {result.returncode}: {result.stderr[:1000]}")
    return result.stdout


# --- the file ------------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Elements with their attributes, whether the tags nest, and what stands in scripts and the style."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.is_nested, self.held = [], [], True, {}
        self.feed(text)
        self.close()
        self.data = json.loads(self.held["data"])
        self.texts = self.data["texts"]

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.is_nested = self.is_nested and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            key = self.elements[-1][1].get("id", "script")
            self.held[key] = self.held.get(key, "") + data
        if self.open[-1:] == ["style"]:
            self.held["style"] = data


def check_file(name, text, page):
    fixed = text.replace(page.held["data"], "")
    expect(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"), f"{name}: {text[:200]}")
    expect(len(fixed.encode()) <= FIXED_BYTES_MAX, f"{name}: {len(fixed)} bytes without data")
    expect(page.is_nested and not page.open, f"{name}: the tags do not nest: {page.open}")
    expect("<" not in page.held["data"], f"{name}: a < in the data")
    tags = [tag for tag, _ in page.elements]
    expect(tags.count("script") == 2 and tags.count("style") == 1, f"{name}: {tags}")
    expect(not set(tags) & {"img", "link", "iframe", "object", "form", "base"}, f"{name}: {set(tags)}")
    outside = [key for _, attributes in page.elements for key in attributes if key in ("src", "href", "action", "style") or key[:2] == "on"]
    expect(not outside, f"{name}: attributes {outside}")
    expect(not re.search(r"https?:|url\(|@import|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", fixed),
           f"{name}: the page names something outside, or makes elements of texts")
    policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv") == "Content-Security-Policy")
    for part, directive in (("script", "script-src"), ("style", "style-src")):
        digest = base64.b64encode(hashlib.sha256(page.held[part].encode()).digest()).decode()
        expect(f"{directive} 'sha256-{digest}';" in policy, f"{name}: the policy is {policy}, and the {part} has {digest}")
    expect(policy.startswith("default-src 'none';") and "unsafe" not in policy, f"{name}: the policy is {policy}")


def shown(text):
    """A name as the page has it: what is not UTF-8 as '?'."""
    if isinstance(text, dict):
        text = bytes.fromhex(text["bytes"]).decode(errors="surrogateescape")
    return re.sub("[\udc80-\udcff]", "?", text or "")


def check_rows(name, page, database):
    rows = json.loads(run("hpcquery", "vars", "--json", "--top", "0", database))["variables"]
    rows = [row for row in rows if row["class"] != "kernel"]
    have = [(page.texts[row["name"]], round(row["share"], 4)) for row in page.data["rows"]]
    few = page.data["few"]
    want = [(shown(row["variable"]), round(row["samples" if few else "share"], 4)) for row in rows]
    expect(sorted(have) == sorted(want), f"{name}: rows {sorted(set(have) - set(want))[:3]}, not {sorted(set(want) - set(have))[:3]}")
    words = [(page.texts[label], page.texts[text]) for label, text in page.data["head"] + page.data["foot"]]
    everything = "".join("".join(text.split()) for _, text in words)
    text = run("hpcquery", "vars", "-v", "--top", "0", database)
    lines = text.split("\n\n")[0].splitlines() + [row for row in text.splitlines() if row.startswith(("<", "note ", "fates "))]
    for line in lines:
        said = line[10:] if not line.startswith("<") else line.split(">: ")[1]
        expect("".join(said.split()) in everything, f"{name}: the page lacks: {said[:500]}")


def check_choice(name, database):
    """What --top and --min leave out of JSON is not in the page either, and the order is the same."""
    whole = len(Page(run("hpcquery", "vars", "--html", database)).data["rows"])
    for options in (("--top", "3"), ("--min", "5"), ("--top", "2", "--min", "5"), ("--top", "3", "--order", "time")):
        page = Page(run("hpcquery", "vars", "--html", *options, database))
        have = [page.texts[row["name"]] for row in page.data["rows"]]
        want = [shown(row["variable"]) for row in json.loads(run("hpcquery", "vars", "--json", *options, database))["variables"]
                if row["class"] != "kernel"]
        expect(0 < len(have) < whole and have == want, f"{name} {options}: rows {have}, not {want}")
        expect(page.data["more"] == whole - len(have), f"{name} {options}: {page.data['more']} more of {whole}")


def ids_of(page):
    """{number in the page: number of the context}"""
    return page.data["tree"]["id"]


def check_tree(name, page, database):
    tree = page.data["tree"]
    nodes = [node for report in ("tree", "datatree") for node in json.loads(run("hpcquery", report, "--json", database))["nodes"]]
    want = {node["id"]: (shown(node["name"]), node["inclusive"]) for node in nodes
            if node["kind"] not in ("line", "loop")}
    have = {tree["id"][i]: (page.texts[tree["name"][i]], tree["value"][i]) for i, kind in enumerate(tree["kind"]) if kind in "fivg" and i}
    expect(have.keys() == want.keys(), f"{name}: {len(have)} functions in the tree, not {len(want)}")
    kinds = {node["id"]: node["kind"] for node in nodes}
    for i, ident in enumerate(tree["id"]):
        kind = tree["words"][tree["kind"][i]]
        expect(kinds.get(ident, kind) == kind, f"{name}: node {ident} is a {kind} in the page, and a {kinds.get(ident)} in the report")
        place = f"{page.texts[tree['file'][i]].rpartition('/')[2]}:{tree['line'][i]}"
        if kind in ("line", "loop"):
            expect(page.texts[tree["name"][i]] == ("Loop@" if kind == "loop" else "") + place,
                   f"{name}: node {ident} at {place} is called {page.texts[tree['name'][i]]}")
    for ident in have.keys() & want.keys():
        (text, value), (text_wanted, value_wanted) = have[ident], want[ident]
        expect(text == text_wanted and abs(value - value_wanted) <= 1e-8 * value_wanted, f"{name}: node {ident} is {have[ident]}, not {want[ident]}")
    lines = {(shown(row["file"]), int(row["line"] or 0)): 0.0 for row in lines_of(database)}
    for row in lines_of(database):
        lines[shown(row["file"]), int(row["line"] or 0)] += float(row["own"])
    for file in page.data["files"]:
        for line, _, value, _, _ in file["lines"]:
            key = page.texts[file["file"]], line
            lines[key] = lines.get(key, 0) - value
    off = {key: value for key, value in lines.items() if abs(value) > 1e-3}
    expect(not off, f"{name}: lines that differ: {list(off.items())[:5]}")


def check_advice(name, page, database):
    """The page begins with what `hpcquery advice` says."""
    wanted = json.loads(run("hpcquery", "advice", "--json", "--top", "4", database))["advice"]
    expect(page.data["advice"]["advice"] == wanted, f"{name}: advice {page.data['advice']}, not {wanted}")


def lines_of(database):
    return list(csv.DictReader(io.StringIO(run("hpcquery", "lines", "--csv", "--top", "0", database))))


# --- databases -----------------------------------------------------------------------------------------------------------


def make_hostile(data):
    """Every text that a program can choose."""
    for key in ("program", "command", "plan"):
        data[key] = "/tmp/" + HOSTILE
    data["strings"] = [text + HOSTILE if i and not text.startswith(("<", "/")) else text for i, text in enumerate(data["strings"])]
    data["notes"].append("A note on " + HOSTILE)
    for process in data["processes"]:
        process["exe"] = HOSTILE


PROGRAM = """static volatile double sum;
static double table[64]; /* </script> "quoted" */

__attribute__((noinline)) double inner(int n)
{
\tfor (int i = 0; i < n; i++)
\t\tsum += table[i % 64];
\treturn sum;
}

__attribute__((noinline)) double outer(int n)
{
\tdouble a = inner(n);
\tdouble b = inner(n + 1);
\treturn a + b;
}

int main(void)
{
\treturn outer(3) > inner(5);
}
"""


def compile_program(scratch):
    """The program, and {function: its offset}."""
    source = scratch / "src dir" / "program.c"
    source.parent.mkdir()
    source.write_text(PROGRAM, encoding="utf-8")
    program = scratch / "program"
    subprocess.run([*toolchain.COMPILER, "-g", "-O1", "-o", str(program), str(source)], check=True)
    symbols = subprocess.run([toolchain.utility("nm"), str(program)], capture_output=True, check=True, text=True).stdout
    return source, program, {words[2]: int(words[0], 16) for words in map(str.split, symbols.splitlines()) if len(words) == 3}


def make_database(scratch):
    """A database of a measurement made here: functions with lines, and variables with every odd name."""
    source, program, at = compile_program(scratch)
    path, module = scratch / "made", str(program)
    for thread in range(3):
        profile = m.Profile("program", METRICS, thread=thread)
        profile.topology = "topology.xml"
        profile.events = [{"metric": "EADDR (usec)", "name": "EADDR", "scale": 1000.0, "taken": 400, "overflows": 0,
                           "fates": {"named": 390, "dropped-stopped": 10}}]
        for i, name in enumerate(NAMES):
            variable = m.by_address("DATACENTRIC_Static", module, 0x404040 + 64 * i, "static", name, 64, [[thread, 0, 3 + i]])
            for step in (4, 12, 20):
                code = [(module, at["main"] + 6), (module, at["outer"] + 6), (module, at["inner"] + step)]
                profile.sample(code if i % 3 else code[:1] + code[2:], {0: 3 + i}, variable)
        for step in (8, 16):
            block = m.heap([(module, at["main"] + 9), (module, at["outer"] + step)], size=1 << 16, cpus=[[thread, 0, 5]])
            profile.sample([(module, at["main"] + 6), (module, at["inner"] + 8)], {0: 20 * (thread + 1)}, block)
        profile.write(path)
    (path / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")
    database = scratch / "made-database"
    run("hpcprof", "-o", database, path)
    return database, source


def make_large(scratch, name, *options):
    subprocess.run([sys.executable, str(SOURCE / "tests/bench/many-contexts.py"), CONTEXTS, str(scratch / name), *options], check=True)
    return scratch / name


# --- in the browser ------------------------------------------------------------------------------------------------------


def settle(page):
    """Until what was asked for has been drawn."""
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def focus_of(page):
    return page.value("(document.activeElement.id || document.activeElement.textContent).slice(0, 60)")


def check_quiet(name, page):
    outside = [address for address in page.loads if not address.startswith("file://")]
    expect(not outside and len(page.loads) == 1, f"{name}: the page loads {page.loads}")
    expect(not page.troubles, f"{name}: on the console: {page.troubles[:3]}")
    expect("taken" not in page.value("document.title").split(), f"{name}: a script has run")


def check_layout(name, page):
    """No view is wider than the window, and every control that has the focus shows it."""
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        dark = page.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"
        expect(dark == (scheme == "dark"), f"{name}: {scheme} is not {scheme}")
    for width, zoom in ((1280, .8), (1280, 1), (1280, 2), (420, 1)):
        page.size(width, 900, zoom)
        for tab in range(4):
            page.value(f"openTab(tabs[{tab}])")
            settle(page)
            wide = page.value("document.documentElement.scrollWidth - innerWidth")
            expect(wide <= 0, f"{name}: at {100 * zoom:.0f} % of {width} pixels view {tab} is {wide} pixels too wide")
    page.size(1280, 900)
    page.value("byId('theme').click()")
    expect(page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", f"{name}: the switch does nothing")
    page.value("byId('theme').click()")
    page.value("openTab(tabs[0])")


def check_table(page):
    titles = "[...document.querySelectorAll('#table tbody tr')].map((row) => rows[row.dataset.row].title)"
    button = "[...document.querySelectorAll('#table th button')].find((each) => each.textContent.startsWith('variable'))"
    page.value(f"{button}.focus()")
    page.press("Enter")
    names = page.value(titles)
    expect(names == sorted(names) and len(names) > 3, f"sorted by name: {[name[:20] for name in names]}")
    expect(page.value("document.activeElement.parentNode.getAttribute('aria-sort')") == "ascending", "sorting by key loses the focus")
    page.press("Enter")
    expect(page.value(titles) == names[::-1], "sorted the other way round by name")
    page.press("/")
    page.type("WIDE")
    found = page.value(titles)
    expect(found == [name for name in names[::-1] if "wide" in name], f"searched: {found}")
    page.value("byId('search').value = ''; byId('search').dispatchEvent(new Event('input'))")
    expect(page.value(titles) == names[::-1], "the search does not end")


def check_keys(page):
    page.open(page.value("location.href"))
    order = []
    while len(order) < 40 and "in-table" not in order:
        page.press("Tab")
        outlined = page.value("getComputedStyle(document.activeElement).outlineStyle")
        expect(outlined != "none", f"{focus_of(page)} does not show that it has the focus")
        order.append("in-table" if page.value("!!document.activeElement.closest('tbody')") else focus_of(page))
    expect(order[:3] == ["theme", "tab-rows", "search"] and order[-1] == "in-table", f"the order of Tab is {order}")
    page.press("ArrowDown", "ArrowDown", "ArrowUp", "Enter")
    second = page.value("document.querySelectorAll('#table tbody tr')[1].dataset.row")
    expect(page.value("String(chosenRow && chosenRow.number)") == second and focus_of(page) == "detail", f"Enter: {focus_of(page)}")
    title = page.value("document.querySelector('#detail h2').textContent === printable(chosenRow.title)")
    expect(title, "the details are another row's")
    page.press("Escape")
    expect(page.value("byId('detail').hidden && document.activeElement.dataset.row") == second, f"Escape: {focus_of(page)}")
    page.value("byId('tab-rows').focus()")
    page.press("ArrowRight")
    expect(focus_of(page) == "tab-flame" and not page.value("byId('flame').hidden"), "ArrowRight does not open the next view")
    page.value("byId('boxes').focus()")
    page.press("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft")
    depth = page.value("levelOf(flame.chosen)")
    expect(depth == 2, f"two steps down are {depth}")
    page.press("Enter")
    width = page.value("parseFloat(document.querySelector('.box.at').style.width)")
    expect(width == 100 and page.value("flame.zoomed === flame.chosen"), f"Enter: a zoomed box of {width} %")
    page.press("Escape")
    expect(page.value("levelOf(flame.zoomed)") == 1, "Escape does not zoom out")


def check_first_screen(page):
    """What to change, and why, is on the first screen; from there lead the name to the details, and the place to the line."""
    first = "document.querySelector('#advice li')"
    below = page.value(f"{first}.getBoundingClientRect().bottom - innerHeight")
    name = page.value("data.advice.advice[0].variable")
    expect(below < 0 and page.value(f"{first}.textContent").startswith(name), f"the advice on {name} is {below} pixels below the first screen")
    page.value(f"{first}.querySelector('button').focus()")
    page.press("Enter")
    expect(page.value("chosenRow && chosenRow.title") == name, "the name of the advice does not lead to its details")
    page.press("Escape")
    page.value("openTab(tabs[2])")
    line = page.value("""(() => {
        const row = byId('code').querySelector(`.row[data-line="${costly[0].line}"]`).getBoundingClientRect();
        const box = byId('code').getBoundingClientRect();
        return [row.top - box.top, box.bottom - row.bottom];
    })()""")
    expect(min(line) >= 0, f"the costliest line is not in view: {line}")


def share_of(tree, names, word):
    """Part of the code tree below functions that have a word in their names."""
    value, behind = 0, -1
    end = tree["depth"].index(0, 1)
    ends = [next((k for k in range(i + 1, len(tree["depth"])) if tree["depth"][k] <= depth), len(tree["depth"]))
            for i, depth in enumerate(tree["depth"][:end])]
    for i in range(end):
        if i >= behind and tree["kind"][i] in "fivg" and word in names[tree["name"][i]].lower():
            value += tree["value"][i]
            behind = ends[i]
    return value / tree["value"][0]


def check_flame(page, data):
    page.value("openTab(tabs[1]); byId('search').value = 'INNER'; byId('search').dispatchEvent(new Event('input'))")
    settle(page)
    hits = page.value("document.querySelectorAll('.box.hit').length")
    said = page.value("byId('chosen').textContent")
    want = f"{100 * share_of(data['tree'], data['texts'], 'inner'):.1f} %"
    expect(hits >= 2 and f"is in {want}" in said, f"search in the flame graph: {hits} boxes, {said}, not {want}")
    page.value("byId('search').value = ''; byId('search').dispatchEvent(new Event('input'))")
    widths = page.value("""(() => {
        const sums = {};
        for (const box of document.querySelectorAll('.box'))
            sums[box.style.top] = (sums[box.style.top] || 0) + parseFloat(box.style.width);
        return Object.values(sums);
    })()""")
    expect(widths[0] == 100 and max(widths) <= 100.001, f"the levels have the widths {widths}")
    page.value("showBoxOf(rows.find((row) => row.nodes.length).nodes[0])")
    expect(page.value("rowOfNode.get(flame.zoomed.nodes[0]) === rows.find((row) => row.nodes.length)"), "a row leads to another box")


def check_sources(page, source):
    page.value("openTab(tabs[2])")
    page.value("openFile(data.files.findIndex((file) => texts[file.file].endsWith('program.c')))")
    text = page.value("[...document.querySelectorAll('#code .text')].map((line) => line.textContent + '\\n').join('')")
    expect(text == PROGRAM, f"the source is shown as {text[:300]}")
    page.value("byId('next-line').focus()")
    page.press("Enter")
    line = page.value("Number(document.activeElement.dataset.line)")
    costs = {}
    for row in lines_of(source):
        if row["file"].endswith("program.c"):
            costs[int(row["line"])] = costs.get(int(row["line"]), 0) + float(row["own"])
    expect(costs.get(line) == max(costs.values()), f"the costliest line is {line} in {costs}")


BOXES = """(() => {
    const found = [];
    for (const isData of [false, true])
        for (const withLines of [false, true])
            for (const open = [rootBox(isData)]; open.length && found.length < 400; ) {
                const box = open.shift();
                if (!box)
                    continue;
                open.push(...boxesBelow(box, withLines));
                const nodes = new Set();
                for (const node of box.nodes) {
                    for (let i = node; i >= 0; i = parentOf[i])
                        nodes.add(i);
                    for (let i = node; i < endOf[node]; i++)
                        nodes.add(i);
                }
                found.push([queryOfBox(box, withLines), [...nodes].map((i) => tree.id[i])]);
            }
    for (const row of rows) {
        const nodes = new Set();
        for (const node of row.nodes)
            for (let i = node; i < endOf[node]; i++)
                nodes.add(i);
        if (row.nodes.length)
            found.push([queryOfRow(row), [...nodes].map((i) => tree.id[i])]);
    }
    return found;
})()"""


def check_queries(page, database):
    """What the page writes as queries, asked of the database by the library."""
    if not (BUILD / "tests/golden/list-frame").exists():
        print("SKIP (part): tests/golden/list-frame has not been built")
        return
    questions = page.value(BOXES)
    here = set(page.value("tree.id"))
    expect(len(questions) > 40, f"{len(questions)} queries")
    for query, want in questions:
        found = {int(word) for word in run("tests/golden/list-frame", "--query", query, database).split()} & here
        expect(found == set(want), f"{query[:500]}: finds {sorted(found)[:9]}, not {sorted(want)[:9]}")
    page.value("openTab(tabs[0]); chooseRow(rows.find((row) => row.nodes.length)); document.querySelector('#detail button').focus()")
    page.press("Enter")
    query = page.value("queryOfRow(chosenRow)")
    expect(page.value("byId('query-text').value") == query and focus_of(page) == "query-text", "the query is not shown")
    expect(page.value("byId('query-state').textContent") == "copied", "the query is not copied")
    page.press("Escape")
    expect(page.value("byId('query').hidden && document.activeElement.textContent") == "Copy query", "the query does not close")


def check_large(page, name):
    """The deepest box can be reached, and all of the tree is there."""
    page.value("""(() => {
        openTab(tabs[1]);
        let box = flame.root;
        for (let next; (next = boxesBelow(box, flame.withLines)[0]); box = next);
        zoomTo(box);
    })()""")
    settle(page)
    level, drawn = page.value("levelOf(flame.chosen)"), page.value("document.querySelectorAll('.box').length")
    expect(page.value("!!document.querySelector('.box.at')") and level > 3, f"{name}: the box of level {level} is not drawn")
    expect(0 < drawn < 20000, f"{name}: {drawn} boxes")
    page.value("byId('boxes').focus()")
    page.press("Escape")
    expect(page.value("levelOf(flame.zoomed)") == level - 1, f"{name}: Escape does not zoom out")
    page.value("showBoxOf(rows[0].nodes[0]); showRow(rows[0])")
    expect(page.value("document.querySelectorAll('#detail li').length") > 2, f"{name}: no paths in the details")


def check_browser(cases, made, source_database, scratch):
    try:
        page = browser.Browser(scratch / "browser")
    except browser.Failure as failure:
        print(f"SKIP (part): {failure}")
        return
    for name, file in cases.items():
        page.size(1280, 900)
        page.open(file.as_uri())
        heading = page.value("document.querySelector('h1').textContent")
        expect(page.value("printable(texts[data.title])") in heading and "spend its time" in heading, f"{name}: the heading is {heading}")
        rows = page.value("document.querySelectorAll('#table tbody tr').length")
        expect(rows == min(100, page.value("rows.length")) and rows > 0, f"{name}: {rows} rows")
        page.value("for (const row of rows.slice(0, 200)) chooseRow(row)")
        if name.startswith("large"):
            check_large(page, name)
        else:
            check_layout(name, page)
        if name == "minicg":
            check_first_screen(page)
        check_quiet(name, page)
    page.open(cases["made"].as_uri())
    check_table(page)
    check_keys(page)
    check_flame(page, made.data)
    check_sources(page, source_database)
    check_queries(page, source_database)
    check_quiet("after all", page)
    page.close()


# --- all -----------------------------------------------------------------------------------------------------------------


def check_run(scratch):
    if not (BUILD / ".libs/libhpcrun.so").exists():
        print("SKIP (part): libhpcrun.so has not been built")
        return
    target = scratch / "<script>x"
    target.mkdir()
    shutil.copy(shutil.which("sleep"), target / "sleep")
    file = scratch / "report.html"
    subprocess.run([str(BUILD / "hpcrun"), "-o", str(scratch / "m"), f"--report={file}", str(target / "sleep"), "0"],
                   capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
                   env={**os.environ, "XDG_CACHE_HOME": str(scratch / "cache")})
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if not text:
        print("SKIP (part): nothing can be measured here")
        return
    page = Page(text)
    check_file("--report=FILE.html", text, page)
    expect(any("<script>x" in each for each in page.texts), "the path of the program is not in the page")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        cases = {}
        for case, path in [*DATABASES.items(), ("hostile", DATABASES["minicg"])]:
            data = json.loads(path.read_text(encoding="utf-8"))
            if case == "hostile":
                make_hostile(data)
            m.write_database(scratch / case, data)
            cases[case] = scratch / case
        cases["large tree"] = make_large(scratch, "large tree")
        cases["large chain"] = make_large(scratch, "large chain", "chain")
        cases["made"], source = make_database(scratch)
        files = {}
        for case, database in cases.items():
            text = run("hpcquery", "vars", "--html", database)
            expect(text == run("hpcquery", "export", "html", database), f"{case}: vars --html and export html differ")
            page = Page(text)
            check_file(case, text, page)
            check_rows(case, page, database)
            check_tree(case, page, database)
            check_advice(case, page, database)
            if case in DATABASES:
                check_choice(case, database)
            files[case] = scratch / f"{case}.html"
            files[case].write_text(text, encoding="utf-8")
        names = {page.texts[row["name"]] for row in page.data["rows"]}
        expect(names >= {shown(each) for each in NAMES}, f"names that are not there: {[each[:40] for each in NAMES if shown(each) not in names]}")
        held = [text for file in page.data["files"] if page.texts[file["file"]] == str(source) for _, text in file["text"]]
        expect(held == [PROGRAM], f"the source in the page is {held}")
        check_browser(files, page, cases["made"], scratch)
        check_run(scratch)
        refused = subprocess.run([str(BUILD / "hpcquery"), "tree", "--html", str(cases["minicg"])], capture_output=True,
                                 check=False, text=True)
        expect(refused.returncode == 2 and "--html" in refused.stderr, f"tree --html: {refused.returncode} {refused.stderr}")
        run("hpcquery", "export", "html", "--csv", cases["minicg"], status=2)
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
