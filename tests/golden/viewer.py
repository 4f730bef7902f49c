#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The viewer's page in Chromium, on databases of known content: nothing is loaded and nothing said on the console; after each of
many random actions the open views show the state of the address, and the list and the table of variables the numbers that hpcquery has
for it; Back, Forward, a reload and a link show the same; what does not apply is greyed, with the reason; the numbers of all tables are
those of hpcquery; axe-core finds nothing in any view, light or dark; no view is wider than the window; the keyboard reaches everything.
LOCUS_VIEWER_STEPS: how many random actions (150; in full tests 500)."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import viewer  # noqa: E402

DATABASES = {"minicg": bundle.golden("report") / "minicg.json", "hardware": bundle.golden("hardware") / "locus.json"}
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&amp;'\"</td>\u202e"
PICTURE = SOURCE / "doc" / "viewer.png"
STEPS = int(os.environ.get("LOCUS_VIEWER_STEPS", "500" if os.environ.get("LOCUS_TEST_FULL") else "150"))
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *arguments, status=0):
    result = subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, check=False, text=True, encoding="utf-8",
                            errors="replace", env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "4000"})
    expect(result.returncode == status, f"{tool} {arguments}: status {result.returncode}: {result.stderr[:1000]}")
    return result.stdout


def make_hostile(data):
    """Every text that a program can choose."""
    for key in ("program", "command", "plan"):
        data[key] = "/tmp/" + HOSTILE
    data["strings"] = [text + HOSTILE if i and not text.startswith(("<", "/")) else text for i, text in enumerate(data["strings"])]
    data["notes"].append("A note on " + HOSTILE)
    for process in data["processes"]:
        process["exe"] = HOSTILE


def check_quiet(name, page):
    outside = [address for address in page.browser.loads if not address.startswith(("file://", "about:", "data:", "blob:"))]
    expect(not outside, f"{name}: the page loads {outside}")
    expect(not page.troubles(), f"{name}: on the console: {page.troubles()[:3]}")
    expect("taken" not in page.value("document.title").split(), f"{name}: a script has run")
    turned = page.value("[...new Set([...(globalThis.locusTurned || []), ...[...document.querySelectorAll('#app *')].filter((each) => each.firstChild?.nodeType === 3 && /\\u202e/.test(each.textContent)).map((each) => each.textContent)])]")
    expect(not turned, f"{name}: text runs the other way: {turned[:3]}")


def views(page):
    return page.value("[...document.querySelectorAll('[role=tab]')].map((tab) => [tab.id.slice(4), tab.parentElement.getAttribute('aria-label')])")


def show(page, name):
    page.value(f"document.getElementById('tab-{name}').click()")
    page.settle()
    page.are_states_one()


def panel(page, name):
    """The text of a view, or of why it shows nothing."""
    return page.value(f"document.getElementById('panel-{name}').innerText")


# --- state -------------------------------------------------------------------------------------------------------------------


def rows_of(database, kind, metric, kept={}):  # noqa: B006 (it keeps what was asked)
    """What the list may show of things of a kind: (name, numbers before it)."""
    if (database, kind, metric) not in kept:
        report = {"variable": "vars", "function": "functions", "line": "lines"}.get(kind, "items")
        answer = json.loads(run("hpcquery", report, "--json", *(["--fields"] if report == "vars" else []), *([f"--metric={metric}"] if metric else []),
                                *([kind] if report == "items" else []), database))
        made = set()
        for row in answer["variables" if report == "vars" else report]:
            numbers = [row.get("share")] if report in ("vars", "items") else [row["inclusive_share"], row["own_share"]]
            if row.get("class") == "kernel":
                numbers = [None]
            item = row["variable"] if kind == "variable" else row["function"] if kind == "function" or not row.get("line") and kind == "line" else \
                f"{row['file']}:{row['line']}" if kind == "line" else (row["item"] or "").partition(":")[2]
            title = shown(item)
            title = title.rpartition("/")[2] if kind in ("line", "file", "module") else title
            made.add((title, *("-" if each is None else f"{each:.1f} %" for each in numbers)))
        kept[database, kind, metric] = made
    return kept[database, kind, metric]


def check_shown(name, page, database, numbers, done):
    """Each number of the list and of the open views is the one that hpcquery has for what is chosen now."""
    state = dict(urllib.parse.parse_qsl(page.value("location.hash.slice(1)")))
    layout = dict(part.split(":", 1) for part in state.get("layout", "").split(",") if ":" in part)
    kind, metric = layout.get("list", "variable"), state.get("metric", "")
    page.settle()
    seen = "[...document.querySelectorAll('%s .grid-row:not(.group)')].filter((row) => row.checkVisibility()).map((row) => [...row.children].map((cell) => cell.innerText))"
    n = 2 if kind in ("function", "line") else 1
    found = {(cells[n], *cells[:n]) for cells in page.value(seen % ".list")}
    strange = found - rows_of(database, kind, metric) if found else set()
    expect(not strange, f"{name}: after {done[-4:]}: {state}: the list has {sorted(strange)[:3]}")
    for each in numbers.compare(page):
        expect(False, f"{name}: after {done[-4:]}: {state}: {each}")


def check_steps(name, page, address, rng, steps, database):
    """Random actions: views and address agree after each, numbers are those of hpcquery, and nothing is said on the console."""
    page.open(address)
    done, numbers = [], viewer.Numbers(BUILD / "hpcquery", database)
    for _ in range(steps):
        done.append(page.step(rng))
        page.settle()
        agrees = page.are_states_one()
        expect(agrees, f"{name}: after {done[-4:]}: {page.states()}")
        check_shown(name, page, database, numbers, done)
        if page.troubles() or not agrees:
            expect(False, f"{name}: after {done[-4:]}: {page.troubles()[:2]}")
            return
    expect(sum(numbers.counts.values()) > steps // 10, f"{name}: after {steps} actions only {numbers.counts} were compared")
    print(f"{name}: {steps} actions; numbers compared: {numbers.counts}")
    check_quiet(name, page)


def check_history(name, page, address):
    """Five choices and five times Back; a reload and a link show the same."""
    page.open(address)
    items = page.value("[...document.querySelectorAll('.list .grid-row')].slice(0, 5).length")
    seen = []  # a row of several of one name is one thing: it is chosen once
    for i in range(items):
        page.value(f"document.querySelectorAll('.list .grid-row')[{i}].click()")
        page.settle()
        page.are_states_one()
        seen += [page.states()[0]] if not seen or page.states()[0] != seen[-1] else []
    expect(len(seen) > 1 or items < 2, f"{name}: the addresses of {items} choices are {seen}")
    if len(seen) < 2:
        return
    for want in reversed(seen[:-1]):
        page.value("new Promise((done) => { addEventListener('popstate', () => done(1), {once: true}); history.back(); })")
        page.settle()
        expect(page.are_states_one() and page.states()[0] == want, f"{name}: Back shows {page.states()[0]}, not {want}")
    page.value("new Promise((done) => { addEventListener('popstate', () => done(1), {once: true}); history.forward(); })")
    page.settle()
    page.are_states_one()
    expect(page.states()[0] == seen[1], f"{name}: Forward shows {page.states()[0]}, not {seen[1]}")
    title, texts = page.value("document.getElementById('active').innerText"), page.value("document.getElementById('panel-advice').innerText")
    page.open(address, page.value("location.hash.slice(1)"))
    page.are_states_one()
    expect(page.value("document.getElementById('active').innerText") == title and page.value("document.getElementById('panel-advice').innerText") == texts,
           f"{name}: a link does not show the same")


def check_merging(name, page, address):
    """Twenty wishes of one moment are one update; holding Down in the list changes classes only: no box of the graph is made."""
    page.open(address)
    page.value("globalThis.locusChanges = 0; new MutationObserver((all) => { locusChanges += all.filter((each) => each.type === 'childList').length; })"
               ".observe(document.getElementById('panel-tree'), {childList: true, subtree: true}); 0")
    page.value("document.querySelector('.list .grid').focus()")
    for _ in range(20):
        page.value("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true, cancelable: true}))")
    page.settle()
    expect(page.value("locusChanges") == 0, f"{name}: moving in the list made {page.value('changes')} changes in the graph")
    page.value("""globalThis.locusUpdates = {}; new MutationObserver((all) => { for (const {target} of all) locusUpdates[target.id] = (locusUpdates[target.id] || 0) + 1; })
        .observe(document.getElementById('stacks'), {attributeFilter: ['data-state'], subtree: true}); 0""")
    steps = page.value("""(() => { const before = history.length;
        for (const row of [...document.querySelectorAll('.list .grid-row')].slice(1, 21)) row.click(); return before; })()""")
    page.settle()
    updates = page.value("locusUpdates")
    expect(len(updates) == 2 and set(updates.values()) == {1}, f"{name}: clicks of one moment are so many updates: {updates}")
    expect(page.value("history.length") - steps <= 1, f"{name}: clicks of one moment are {page.value('history.length') - steps} steps for Back")
    page.value("""(async () => { const border = document.querySelector(".border");  // browsers do not take so many addresses
        for (let i = 0; i < 250; i++) {
            border.dispatchEvent(new KeyboardEvent("keydown", {key: i % 2 ? "ArrowUp" : "ArrowDown", bubbles: true, cancelable: true}));
            await new Promise((done) => requestAnimationFrame(done));
        } border.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true, cancelable: true})); return 0; })()""")
    expect(page.wait("location.hash.includes('split:55')", 10) and not page.browser.troubles, f"{name}: of 251 changes the address has {page.states()[0]}; {page.browser.troubles[:2]}")


def check_can_show(name, page, address, database):
    """What stands for a thing, view by view: a variable's line, a line's variable; what has none greys the tab and says why."""
    lines = [row for row in json.loads(run("hpcquery", "lines", "--json", database))["lines"] if row["line"]]
    items = {row["kind"]: row["item"] for row in json.loads(run("hpcquery", "items", "--json", f"line:{lines[0]['file']}:{lines[0]['line']}", database))["items"]
             if row["item"]} if lines else {}
    for item in items.values():
        page.open(address, f"active={browser_text(item)}")
        page.settle()
        page.are_states_one()
        for view, _ in views(page):
            show(page, view)
            is_grey = page.value(f"document.getElementById('tab-{view}').getAttribute('aria-disabled') === 'true'")
            text = panel(page, view)
            expect(bool(text.strip()), f"{name}: {view} of {item} is empty")
            expect(not is_grey or page.value(f"document.getElementById('tab-{view}').title").strip(), f"{name}: {view} of {item} is grey without a reason")
            expect(page.value("location.hash").count("active=") == 1, f"{name}: {view} lost the thing")
    check_quiet(name, page)
    if not lines:  # nothing was compiled with -g
        title = page.value("document.getElementById('tab-annotate').title")
        expect("-g" in title and page.value("document.getElementById('tab-annotate').ariaDisabled") == "true", f"{name}: without lines Source says {title}")


def browser_text(text):
    return "".join(chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-._~:/@!$'()*,;?") else f"%{byte:02X}" for byte in text.encode())


# --- numbers -----------------------------------------------------------------------------------------------------------------


def check_numbers(name, page, address, database):
    """The first rows of the tables, and all lists, as hpcquery prints them."""
    rows = json.loads(run("hpcquery", "vars", "--json", "--fields", database))["variables"]
    page.open(address, "view=vars")
    page.are_states_one()
    have = page.value("[...document.querySelectorAll('#panel-vars .grid-row')].map((row) => [...row.children].map((cell) => cell.innerText))")
    expect(0 < len(have) <= len(rows), f"{name}: {len(have)} rows of {len(rows)} variables")
    for row, cells in zip(rows, have):
        want = f"{row['share']:.1f} %" if row["share"] is not None and row["class"] != "kernel" else "-"
        expect(cells[0] == want, f"{name}: the share of {row['variable'][:40]} is {cells[0]}, not {want}")
        expect(cells[2].startswith(shown(row["variable"])[:20]), f"{name}: {cells[2][:60]} is not {row['variable'][:60]}")
    for kind, report, key in (("function", "functions", "inclusive_share"), ("line", "lines", "inclusive_share"), ("type", "items", "share")):
        answer = json.loads(run("hpcquery", report, "--json", *(["type"] if report == "items" else []), database))
        want = [("-" if row[key] is None else f"{row[key]:.1f} %") for row in answer[report]]
        page.open(address, f"layout=list:{kind}")
        page.wait(f"document.querySelector('.list .grid').getAttribute('aria-rowcount') === '{len(want) + 1}'", 10)
        shares = page.value("[...document.querySelectorAll('.list .grid-row')].map((row) => row.firstChild.innerText)")
        expect(shares == want[:len(shares)] and (shares or not want), f"{name}: shares of {kind}s are {shares[:5]}, not {want[:5]}")
    advice = json.loads(run("hpcquery", "advice", "--json", database))["advice"]
    page.open(address)
    page.are_states_one()
    text = " ".join(panel(page, "advice").split())
    for each in advice:
        expect(f"{each['share']:.1f} %" in text and shown(each["variable"]) in text, f"{name}: the answer lacks {each['variable']}")
        if each.get("gain_at_most") is not None:
            expect(f"{each['gain_at_most']:.1f} %" in text, f"{name}: the answer lacks the gain of {each['variable']}: {each['gain_at_most']}")


shown = viewer.printed


def check_commands(name, page, address, database):
    """The commands that the page offers run, and every view of the page that is a report is one for --at."""
    page.open(address)
    for view, _ in views(page):
        show(page, view)
        page.value("[...document.querySelectorAll('header button')].find((each) => each.textContent === 'Command').click()")
        commands = page.value("document.querySelector('dialog textarea').value").splitlines()
        page.value("document.querySelector('dialog').close()")
        for command in commands:
            expect(command.startswith("hpcquery "), f"{name}: {view} offers {command}")
            result = subprocess.run(["bash", "-c", 'PATH="$0:$PATH"; cd "$1" && eval "$2"', str(BUILD), str(database.parent), command], capture_output=True, check=False, text=True)
            lacks = "meta.db: cannot be read" in result.stderr and not (database / "meta.db").exists()  # these databases have no values of threads
            expect(result.returncode == 0 or lacks, f"{name}: {command}: {result.stderr[:300]}")


# --- how it looks ------------------------------------------------------------------------------------------------------------


def check_looks(name, page, address, axe):
    for scheme in ("light", "dark"):
        page.browser.scheme(scheme)
        page.open(address, "active=" + browser_text(page.value("document.querySelector('.list .grid-row.active') ? '' : ''") or ""))
        dark = page.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"
        expect(dark == (scheme == "dark"), f"{name}: {scheme} is not {scheme}")
        page.value("document.querySelector('.list .grid-row')?.click()")
        for view, _ in views(page):
            show(page, view)
            for found in viewer.violations(page, axe) if axe else []:
                expect(False, f"{name}: {view}, {scheme}: {found[:700]}")
    page.browser.scheme("light")
    for width, zoom in ((1400, 1), (1024, 1), (1280, 2), (390, 1)):
        page.browser.size(width, 900, zoom)
        for view, _ in views(page):
            show(page, view)
            wide = page.value("document.documentElement.scrollWidth - innerWidth")
            expect(wide <= 0, f"{name}: at {100 * zoom:.0f} % of {width} pixels {view} is {wide} pixels too wide")
    page.browser.size(1400, 900)


def check_keys(name, page, address):
    """Tab goes through the page and every stop shows it; keys open views, search and help."""
    page.open(address)
    seen = []
    for _ in range(60):
        page.browser.press("Tab")
        at = page.value("(() => { const e = document.activeElement; return [e.tagName, getComputedStyle(e).outlineStyle, e.id || e.className || e.textContent.slice(0, 20)]; })()")
        if at[0] == "BODY":
            break
        seen.append(at[2])
        expect(at[1] != "none", f"{name}: {at} does not show that it has the focus")
    expect("search" in seen and any("grid" in each for each in seen) and any("tab" in each for each in seen), f"{name}: Tab goes to {seen}")
    page.value("document.activeElement.blur()")
    page.browser.press("/")
    expect(page.value("document.activeElement.id") == "search", f"{name}: / does not go to the search")
    page.browser.press("Escape")
    page.value("document.activeElement.blur()")
    page.browser.press("?")
    expect(page.value("document.querySelector('dialog').open"), f"{name}: ? shows no keys")
    page.browser.press("Escape")
    page.value("document.activeElement.blur()")
    page.browser.press("2")
    page.settle()
    expect(page.value("document.querySelectorAll('[role=tab]')[1].getAttribute('aria-selected') === 'true'"), f"{name}: 2 does not open the second view")


def grey(picture):
    """The picture in 64 x 40 shades of grey."""
    return subprocess.run(["convert", str(picture), "-resize", "64x40!", "-colorspace", "gray", "-depth", "8", "gray:-"], capture_output=True, check=True).stdout


# Titles and numbers in the table of variables of which a part alone can be seen, at its right edge.
CUT = """(() => {
    const edge = document.querySelector("#panel-vars .grid").getBoundingClientRect().right, range = document.createRange();
    return [...document.querySelectorAll("#panel-vars .grid-head button, #panel-vars .grid-row .n")].filter((each) => {
        range.selectNodeContents(each);
        const {left, right} = range.getBoundingClientRect();
        return left < edge && right > edge;
    }).map((each) => each.innerText);
})()"""


def check_picture(page, address, scratch):
    """The picture of the README is that of the page: with fonts that differ, but not with parts that do. --write makes it."""
    page.browser.size(1200, 760)
    page.open(address, "view=vars&active=variable:state-%3Ep&layout=split:42")
    page.wait("document.getElementById('panel-vars').dataset.state && document.getElementById('panel-tree').dataset.state")
    page.settle()
    cut = page.value(CUT)
    short = page.value("[...document.querySelectorAll('#panel-vars .grid-head button, #panel-vars .grid-row .n')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText)")
    expect(not cut and not short, f"the table of variables is cut at {cut}, and {short} do not fit")
    picture = scratch / "viewer.png"
    page.browser.picture(picture)
    page.browser.size(1400, 900)
    if "--write" in sys.argv:
        PICTURE.write_bytes(picture.read_bytes())
    elif not shutil.which("convert"):
        print("the picture of the README is not compared: no convert (imagemagick)")
    else:
        off = [abs(a - b) for a, b in zip(grey(picture), grey(PICTURE))]
        expect(sum(off) / len(off) < 6, f"the page differs from {PICTURE.name} by {sum(off) / len(off):.1f} shades of 256: tests/golden/viewer.py --write makes it anew")


def main():
    rng = random.Random(11)
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = pathlib.Path(scratch_name)
        viewer.opened(scratch / "profile").close()
        axe = viewer.axe(scratch / "npm")
        if not axe:
            print("axe-core is not to be had from npm: it is not asked")
        for case, path in [*DATABASES.items(), ("hostile", DATABASES["minicg"])]:
            data = json.loads(path.read_text(encoding="utf-8"))
            if case == "hostile":
                make_hostile(data)
            database = scratch / case
            m.write_database(database, data)
            file = scratch / f"{case}.html"
            run("hpcquery", "vars", "--html", "-o", file, database)
            address = f"file://{file}"
            page = viewer.Viewer(scratch / f"profile of {case}")  # with a history of its own
            expect(page.open(address), f"{case}: {page.value('document.body.innerText')[:300]}")
            if case == "minicg":
                check_picture(page, address, scratch)
            check_numbers(case, page, address, database)
            check_can_show(case, page, address, database)
            check_history(case, page, address)
            check_merging(case, page, address)
            check_commands(case, page, address, database)
            check_looks(case, page, address, axe)
            check_keys(case, page, address)
            check_steps(case, page, address, rng, STEPS if case == "minicg" else STEPS // 5, database)
            page.close()
    for failure in failures[:25]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
