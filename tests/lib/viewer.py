# SPDX-License-Identifier: BSD-3-Clause
"""The viewer in Chromium: what tests of it have in common. A page is opened, asked for its state, and driven by what a person could
do; `step` does one such thing. `Numbers` compares what is seen with what hpcquery has of it."""
import csv
import decimal
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.parse

import browser

READY = "document.body.dataset.ready === '1' || document.querySelector('.failed') !== null"

# What a person could do, as functions of a random number: they return what was done. In the page, so that a step takes no
# round trip for each event.
STEPS = r"""
globalThis.locusTurned = new Set(); // names on canvases that would change the direction of what follows
for (const fill of globalThis.locusSteps ? [] : [CanvasRenderingContext2D.prototype.fillText])
    CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
        if (/[\u202a-\u202e]/.test(text))
            globalThis.locusTurned.add(text);
        return fill.call(this, text, ...where);
    };
globalThis.locusSteps = (() => {
    const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0 && !element.closest("dialog:not([open])");
    const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
    const pick = (list, r) => list[Math.floor(r * list.length)];
    const point = (element, rx, ry) => {
        const box = element.getBoundingClientRect();
        return {bubbles: true, cancelable: true, clientX: box.left + rx * box.width, clientY: box.top + ry * box.height};
    };
    const click = (element, more = {}, rx = .5, ry = .5) => {
        if (!element)
            return "nothing";
        element.focus?.();
        const at = {...point(element, rx, ry), ...more};
        for (const name of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"])
            element.dispatchEvent(name.startsWith("pointer") ? new PointerEvent(name, {...at, pointerId: 1}) : new MouseEvent(name, at));
        return `${element.tagName} ${(element.textContent || "").slice(0, 30)}`;
    };
    const press = (key) => {
        const to = document.activeElement || document.body;
        to.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
        return key;
    };
    const keys = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Enter", " ", "Home", "End", "PageDown", "Escape", "u", "l", "n", "p", "1", "2", "3", "4", "5", "6", "7", "8", "9", "?", "d"];
    return (r1, r2, r3) => {
        const open = document.querySelector("dialog[open]");
        if (open && r1 < .7)
            return "close " + (open.close(), "dialog");
        const kind = Math.floor(r1 * 12);
        if (kind < 2)
            return "tab " + click(pick(all("[role=tab]"), r2));
        if (kind < 4)
            return "row " + click(pick(all(".grid-row"), r2), r3 < .2 ? {ctrlKey: true} : {});
        if (kind < 6)
            return "link " + click(pick(all("button"), r2));
        if (kind < 8)
            return "canvas " + click(pick(all("canvas"), r3), {}, r2, (r3 * 7) % 1);
        if (kind < 10)
            return "key " + press(pick(keys, r2));
        if (kind === 10) {
            const select = pick(all("select"), r2);
            if (!select || !select.options.length)
                return "no select";
            select.selectedIndex = Math.floor(r3 * select.options.length);
            select.dispatchEvent(new Event("change", {bubbles: true}));
            return "select " + select.value;
        }
        const search = document.getElementById("search");
        search.value = pick(["", "a", "main", "zzz", "omp"], r2);
        search.dispatchEvent(new Event("input", {bubbles: true}));
        return "search " + search.value;
    };
})();
"""
# Two frames later everything that was asked for is drawn, but for answers that are still to come.
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
STATES = """(() => [decodeURIComponent(location.hash.slice(1)), [...document.querySelectorAll('.panel')].filter((each) => !each.hidden)
    .map((each) => [each.id, decodeURIComponent(each.dataset.state || '')])])()"""


class Viewer:
    """A page of the viewer in a browser of its own."""

    def __init__(self, profile, width=1400, height=900):
        self.browser = browser.Browser(profile)
        self.browser.size(width, height)
        self.n_dice = 0  # for how many steps the page has numbers

    def open(self, address, fragment=""):
        """Opens a page and waits until it can be used; false when it says that it cannot."""
        self.browser.open("about:blank")  # an address that differs in its fragment alone would not be opened anew
        self.wait("location.href === 'about:blank'")
        self.browser.open(address + ("#" + fragment if fragment else ""))
        self.wait("location.href !== 'about:blank' && (" + READY + ")")
        self.browser.value(STEPS + "0")
        self.n_dice = 0
        return self.browser.value("document.querySelector('.failed') === null")

    def wait(self, expression, seconds=60):
        """Until an expression is true; false if that did not come: a test says what it then finds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.browser.value(expression):
                    return True
            except browser.Failure as failure:  # the page is being left
                if "navigated" not in str(failure):
                    raise
            time.sleep(0.02)
        return False

    def value(self, expression):
        return self.browser.value(expression)

    def settle(self):
        self.browser.value(SETTLED)

    def step(self, rng):
        """Does one thing; returns what. The browser keeps each text that it was told to run: it is the same one each time."""
        if not self.n_dice:
            self.n_dice = 100
            self.browser.value(f"globalThis.locusDice = {[rng.random() for _ in range(3 * self.n_dice)]}; 0")
        self.n_dice -= 1
        return self.browser.value("locusSteps(locusDice.pop(), locusDice.pop(), locusDice.pop())")

    def troubles(self):
        """What was said in the console, but for what is the steps' fault: a click that nobody made opens no dialog of files."""
        return [text for text in self.browser.troubles if not text.startswith("File chooser dialog")]

    def states(self):
        """The fragment, and [[panel, its state], ...] of those that are open."""
        return self.browser.value(STATES)

    def are_states_one(self, seconds=20):
        """Whether all open views come to the state of the address."""
        deadline = time.monotonic() + seconds
        while True:
            address, panels = self.states()
            if all(state == address or not address for _, state in panels):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)

    def close(self):
        self.browser.close()


def axe(scratch):
    """The text of axe-core from npm, None without npm or its registry."""
    if not shutil.which("npm"):
        return None
    result = subprocess.run(["npm", "install", "--prefix", str(scratch), "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"], capture_output=True, check=False,
                            timeout=300)
    path = pathlib.Path(scratch) / "node_modules" / "axe-core" / "axe.min.js"
    return path.read_text(encoding="utf-8") if result.returncode == 0 and path.exists() else None


def violations(viewer, text):
    """What axe-core finds in the page: ["rule: where", ...]."""
    viewer.value(text + ";0")
    found = viewer.value("axe.run(document, {resultTypes: ['violations']}).then((all) => JSON.stringify(all.violations.map((each) => "
                         "[each.id, each.nodes.slice(0, 3).map((node) => node.html.slice(0, 120) + ' ' + (node.failureSummary || '').slice(0, 160))])))")
    return [f"{name}: {nodes}" for name, nodes in json.loads(found)]


def opened(profile):
    """A Viewer. Without a browser the test that asks for it is skipped."""
    try:
        return Viewer(profile)
    except browser.Failure as failure:
        print("SKIP:", failure)
        sys.exit(77)


# --- numbers -----------------------------------------------------------------------------------------------------------------

# What open views show: cells of tables as texts, and what stands beside canvases for those who do not see them.
SHOWN = r"""(() => {
    const text = (each) => (each ? each.innerText : ""), all = (top, selector) => [...top.querySelectorAll(selector)], found = {};
    const seen = (each) => each.checkVisibility() && !each.closest("[hidden]");
    const grid = (top) => ({titles: all(top, ".grid-head > div").map((each) => text(each).replace(/ ?[\u25be\u25b4]$/, "")),
        rows: all(top, ".grid-row:not(.group)").map((row) => [...row.children].map((cell) => text(cell).trim())), bars: all(top, ".grid-row:not(.group)").map((row) => row.querySelector(".meter")?.ariaLabel || "")});
    for (const panel of document.querySelectorAll(".panel:not([hidden])")) {
        const name = panel.id.slice(6), body = panel.lastElementChild;
        if (body.hidden)
            continue;
        if (name === "advice")
            found.advice = all(body, ".card").map((card) => ({figure: text(card.querySelector(".figure")), gains: all(card, ".facts strong").map(text), words: text(card), bar: card.querySelector(".meter")?.ariaLabel || ""}));
        else if (name === "items")
            found.items = {title: text(body.querySelector("h2")), facts: all(body, "dt").map((each) => [text(each), text(each.nextElementSibling)]),
                tables: all(body, "section").map((each) => ({title: text(each.querySelector("h3")), words: all(each, "p, div > span.dim").map(text), rows: all(each, "tr:has(td)").map((row) => [...row.children].map((cell) => text(cell).trim())),
                    heat: all(each, ".heat-row").map((row) => [text(row.firstChild), all(row, "i").map((cell) => Number(cell.ariaLabel))])}))};
        else if (name === "matrix" && seen(body.querySelector(".heat-map")))
            found.matrix = {columns: all(body, "thead th").slice(1).map((each) => each.textContent), rows: all(body, "tr:has(td)").map((row) => [row.firstChild.firstChild.textContent, row.firstChild.lastChild.textContent, all(row, "td").map((cell) => cell.textContent)])};
        else if (name === "treemap")
            found.treemap = all(body, "ul.unseen li").map((each) => [each.querySelector("bdi")?.textContent || "", each.lastChild.textContent]);
        else if (name === "trust")
            found.trust = {facts: all(body, "dd").map(text), tables: all(body, "table").map((each) => [text(each.querySelector("caption")), all(each, "tr:has(td)").map((row) => [...row.children].map(text))])};
        else if (name === "tree")
            found.tree = {boxes: seen(body.querySelector(".icicle")) ? all(body, ".icicle [role=treeitem]").map((each) => [Number(each.ariaLevel), each.textContent]) : [],
                calls: all(body, ".call").filter(seen).map((each) => each.getAttribute("aria-description")), info: text(body.querySelector(".graph-info"))};
        else if (name === "annotate")
            found.annotate = {file: text(body.querySelector("select option:checked")), path: body.querySelector("select")?.value || "", source: seen(body.querySelector("[data-kind=source]")) ? grid(body.querySelector("[data-kind=source]")) : null,
                machine: seen(body.querySelector(".machine .grid")) ? grid(body.querySelector(".machine .grid")) : null};
        else if (["vars", "diff", "metrics"].includes(name) && seen(body.querySelector(".grid")))
            found[name] = {...grid(body), words: text(body.querySelector("p"))};
    }
    return found;
})()"""
ROOTS = re.compile(r"^(<(program root|thread root|memory access call-path|datacentric)>|main thread)$")
RUNTIME = re.compile(r"(^|/)lib(gomp|omp|iomp5)\b")
FUNCTIONS = ("function", "inlined", "inlined function")
LINES = ("line", "statement", "call", "instruction")
NUMBER = r"-?[\d.]+(?: [kMGT%])?"
CAUSES = (("waiting for memory", "memory_share"), ("execution", "execution_share"), ("not verified", "unverified_share"), ("first touches", "first_touch_share"))
SMALL = 1e-4  # of all: a page has less as "N small" alone
STEPS_OF_TRAIL = {"focus": 'query MATCH ("*")->(f)->("*") WHERE f.name = {}', "merge": "filter name != {}", "drop": "query NOT {{MATCH (f)->(\"*\") WHERE f.name = {}}}"}


def rounded(value, digits):
    """As the script rounds: by all digits of the binary number, halves away from zero."""
    return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_HALF_UP)


def percent(value):
    return "-" if value is None else f"{rounded(value, 1)} %".replace("-0.0", "0.0")


def short(value):
    """A number in few digits."""
    if value is None:
        return "-"
    for least, by, unit in ((1e12, 1e12, " T"), (1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= least:
            return plain(value / by, 3) + unit
    return plain(value, 4)


def plain(value, digits):
    """So many digits that count, without zeros behind the point."""
    exact = decimal.Decimal(value)
    text = f"{rounded(exact, digits - 1 - exact.adjusted()) if exact else exact:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_of(text):
    """The number of a text of percent() or short()."""
    value, _, unit = text.partition(" ")
    return float(value) * {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(unit, 1)


def bytes_of(value):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value is not None and value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return "-" if value is None else f"{rounded(value, 1) if units[0] != 'B' else plain(value, 15)} {units[0]}"


def is_shown(text, value, form=percent):
    """Whether a text is a number in a form; sums may differ in their last bits."""
    return any(text == form(None if value is None else value * by) for by in (1, 1 + 1e-9, 1 - 1e-9))


def printed(text):
    """As the page prints a name: what cannot be seen by its number, bytes that are no text as a mark."""
    if isinstance(text, dict):
        text = bytes.fromhex(text["bytes"]).decode(errors="surrogateescape")
    return re.sub("[\u202a-\u202e]", lambda each: f"\\u{ord(each[0]):04x}", re.sub("[\udc80-\udcff]", "?", text or ""))


def base(path):
    return printed(path).rpartition("/")[2]


def parts_of(row):
    """The parts of a variable's time as the bar beside it says them."""
    parts = [(name, row.get(key) or 0) for name, key in CAUSES]
    parts.append(("other", max((row["share"] or 0) - sum(value for _, value in parts), 0)))
    return ", ".join(f"{name} {percent(value)}" for name, value in parts if value >= .05)


class State:
    """The state of an address, by the names that views use."""

    def __init__(self, fragment):
        pairs = urllib.parse.parse_qsl(fragment, keep_blank_values=True)
        self.one, self.trail, self.derive = dict(pairs), [value for key, value in pairs if key == "trail"], [value for key, value in pairs if key == "derive"]
        self.one.update(part.split(":", 1) for part in self.one.get("layout", "").split(",") if ":" in part)

    def __getitem__(self, key):
        return self.one.get(key, "")


class Numbers:
    """What hpcquery has for states of a page, and what of the open views is another number."""

    def __init__(self, program, database, other=None):
        self.program, self.database, self.other, self.kept, self.counts = program, database, other, {}, {}

    def run(self, *words):
        key = tuple(map(str, words))
        if key not in self.kept:
            result = subprocess.run([str(self.program), *key], capture_output=True, check=False, text=True, encoding="utf-8", errors="surrogateescape", env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "4000"})
            self.kept[key] = result.stdout if result.returncode in (0, 3) else None
        return self.kept[key]

    def ask(self, state, report, *words, is_split=True, metric=None):
        """A report as JSON, about the metric and the threads that are chosen; None where it cannot be had."""
        metric = state["metric"] if metric is None else metric
        options = [*([f"--metric={metric}"] if metric else []), *(["--profiles=" + state["profiles"]] if state["profiles"] and is_split else [])]
        key = ("json", report, *words, *options)
        if key not in self.kept:
            text = self.run(report, "--json", *options, *words, self.database)
            self.kept[key] = json.loads(text) if text else None
        return self.kept[key]

    def rows(self, state, report, *words, **more):
        answer = self.ask(state, report, *words, **more)
        return next((value for value in (answer or {}).values() if isinstance(value, list) and (not value or isinstance(value[0], dict))), [])

    def variables(self, state):
        return self.rows(state, "vars", "--fields")

    def check(self, view, name, ok, *about):
        self.counts[view] = self.counts.get(view, 0) + 1
        if not ok:
            self.wrong.append(f"{view}: {name}: {about}")

    def compare(self, page, seconds=5):
        """What differs, in words, and stays so: a server's answers may still be to come."""
        deadline = time.monotonic() + seconds
        while (wrong := self.differences(page)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return wrong

    def differences(self, page):
        """What differs now."""
        state, self.wrong = State(page.value("location.hash.slice(1)")), []
        for view, shown in page.value(SHOWN).items():
            getattr(self, "check_" + view, lambda *_: None)(state, shown)
        return self.wrong

    # --- views of data ---

    def check_advice(self, state, cards):
        advice = self.rows(state, "advice", is_split=False)
        if state["metric"] and len(cards) == 1 and cards[0]["words"].startswith("This page does not hold that."):
            return  # a page in a file has that of one metric
        self.check("advice", "cards", len(cards) == max(len(advice), 1), len(cards), len(advice))
        variables = self.variables(state)
        for row, card in zip(advice, cards):
            gains = [] if row.get("gain_at_most") is None else [f"Gains at most {percent(row['gain_at_most'])}"]
            self.check("advice", row["variable"], is_shown(card["figure"], row["share"]) and card["gains"] == gains and printed(row["variable"]) in card["words"], row, card)
            same = [each for each in variables if each["variable"] == row["variable"] and each["alloc_site"] == row["alloc_site"] and (each["share"] or 0) > 0]
            self.check("advice", f"bar of {row['variable']}", not same or card["bar"] in [parts_of(each) for each in same], card, same)

    def check_vars(self, state, shown):
        rows = {}
        for row in self.variables(state):
            unknown = row.get("memory_share") is None and (row.get("memory_high") or 0) >= .05
            cells = {"share": percent(None if row["class"] == "kernel" else row["share"]), "variable": printed(row["variable"]), "class": row["class"],
                     "memory": "unknown" if unknown else percent(row.get("memory_share")), "samples": short(row.get("samples")), "size": bytes_of(row.get("size_bytes")), "blocks": short(row.get("n_blocks")),
                     "execution": percent(row.get("execution_share")), "unverified": percent(row.get("unverified_share")), "touches": percent(row.get("first_touch_share")), "": ""}
            rows.setdefault(cells["variable"], []).append((cells, parts_of(row)))
        for cells, bar in zip(shown["rows"], shown["bars"]):
            mine = dict(zip(shown["titles"], cells))
            mine.pop("comes from", None)
            found = rows.get(mine["variable"], [])
            self.check("vars", mine["variable"], any(all(want[key] == value for key, value in mine.items()) and parts == bar for want, parts in found), mine, bar, found)

    def check_items(self, state, shown):
        facts = dict(shown["facts"])
        same = [row for row in self.variables(state) if printed(row["variable"]) == shown["title"] and printed(row["alloc_site"]) == facts.get("comes from", "")]
        row = next((each for each in same if percent(each["share"]) == facts["share"] and facts["samples"] in (short(each.get("samples")), "-" if state["profiles"] else "")), None)  # a page has no samples by thread
        self.check("items", shown["title"], row is not None, facts, same)
        if not row:
            return
        self.check("items", "time", facts["time"] == parts_of(row), facts, row)
        if row.get("n_blocks") and "size" in facts:
            self.check("items", "size", facts.get("size", "").startswith(f"{bytes_of(row['size_bytes'])} in {short(row['n_blocks'])} block"), facts, row)
        about = (row["variable"], row["alloc_site"])
        for table in shown["tables"]:
            self.check_part(state, row, about, table)

    def check_part(self, state, row, about, table):
        """One table of what is known of a variable."""
        title, cells = table["title"], table["rows"]

        def mine(report, *words):
            return [each for each in self.rows(state, report, *words) if (each["variable"], each.get("alloc_site", about[1])) == about]
        if title == "Used by":
            want = [percent(100 * each["value"] / row["value"]) for each in row["lines"]]
            self.check("items", title, [each[0] for each in cells] == want[:12], cells, want)
        elif title == "Fields":
            want = {(percent(100 * each["share"] / row["share"]), printed(each["field"])) for each in row["fields"]}
            self.check("items", title, {(each[0], each[1]) for each in cells} <= want, cells, want)
        elif title == "Threads":
            want = {(percent(cell["share_of_row"]), f"thread {cell['thread']}") for each in mine("vars", "--by=thread") for cell in each["cells"]}
            self.check("items", title, {tuple(each[:2]) for each in cells} <= want, cells, want)
        elif title == "Pages touched first by":
            want = {(percent(each["faults_share"]), f"thread {each['thread']}") for of in mine("first-touch") for each in of["touchers"] or []}
            self.check("items", title, {tuple(each[:2]) for each in cells} <= want, cells, want)
        elif title == "Where threads use it":
            for of in [each for each in mine("patterns") if each.get("loads") is not None]:
                self.check("items", title, f"{short(of['loads'])} loads, {short(of['stores'])} stores." in " ".join(table["words"]), table["words"], of["loads"], of["stores"])
                bins = [[f"thread {each['thread']}", each["bins"]] for each in of["threads"] or [] if each.get("bins")]
                self.check("items", "offsets by threads", not table["heat"] or [[name, [max(each[i:i + -(-len(each) // 64)]) for i in range(0, len(each), -(-len(each) // 64))]] for name, each in bins] == table["heat"], bins, table["heat"])
        elif title.startswith("Cache lines"):
            want = [[str(each["offset"]), each["sharing"], str(each["samples"])] for each in mine("sharing")]
            self.check("items", title, [[text.replace(",", "") for text in each[:3]] for each in cells] == want[:8], cells, want)
        elif title.startswith("Allocated on") or title == "Access paths":
            nodes = self.tree(state, "data", [])
            own = [node for node in nodes if node["kind"] == "variable" and node["label"] == about[0]]
            allowed = self.access_parts(own) if title == "Access paths" else {percent(100 * node["value"] / sum(each["value"] for each in own)) for node in own}
            self.check("items", title, not own or {each for each in table["words"] if each} <= allowed, table["words"], sorted(allowed)[:20])

    @staticmethod
    def access_parts(own):
        parts, whole = set(), sum(node["value"] for node in own)
        left = list(own)
        while left:
            node = left.pop()
            left += node["below"]
            parts.add(percent(100 * node["value"] / whole) if whole and not node["below"] else "")
        return parts

    def check_matrix(self, state, shown):
        kind, by, scale = state["rows"] or "vars", state["by"] or "thread", "share" if state["scale"] else "share_of_row"
        if kind in ("numa", "pages") or by in ("region", "phase"):
            return  # what these split is no table of cells
        answer = self.ask(state, kind, f"--by={by}")
        self.check("matrix", "rows", answer is not None, state.one)
        known, rows, busy = {}, (answer or {}).get("rows", []), {}
        for row in sorted(rows, key=lambda row: -row["share"])[:50]:  # idle helpers are in no mean
            for cell in row["cells"]:
                busy[cell.get(by)] = busy.get(cell.get(by), 0) + cell["share"]
        n_busy = sum(share >= max(busy.values()) / 100 for share in busy.values())
        for row in rows:
            name = printed(row.get("variable") or row.get("function"))
            name = f"{base(row['file'])}:{row['line']} {name}" if kind == "lines" and row.get("line") else name
            cells = {str(cell.get(by) if cell.get(by) is not None else "?"): percent(cell[scale]) for cell in row["cells"]}
            ratio = "" if row.get("max_over_mean") is None else f" \u00d7{rounded(row['max_over_mean'] * n_busy / len(answer['columns']), 2)}"
            known.setdefault(name, []).append((percent(row["share"]) + ratio, cells))
        for name, note, cells in shown["rows"]:
            found = {column: cell for column, cell in zip(shown["columns"], cells) if cell}
            self.check("matrix", name, any(each[0] == note and {key: each[1].get(key) for key in found} == found for each in known.get(name, [])), note, found, known.get(name))

    def check_treemap(self, state, tiles):
        key = state["map"] or "class"
        known = set()
        for row in self.variables(state):
            counts = (row.get("node_samples") or []) if key == "node" else []
            families = [(f"node {i}", n / sum(counts)) for i, n in enumerate(counts) if n] or [("not known" if key == "node" else printed(row.get(key)) or "not known", 1)]
            known |= {(printed(row["variable"]), f" {percent((row['share'] or 0) * part)}, {family}") for family, part in families}
        for name, words in tiles:
            self.check("treemap", name, (name, words) in known or not name, words)

    def check_diff(self, state, shown):
        if not self.other or not shown["titles"]:
            return
        kind, sides = {"functions": "function", "lines": "line"}.get(state["rows"], "variable"), [self.other, self.database]
        sides = sides[::-1] if "swap" in state["only"].split(";") else sides
        metric = state["metric"] or self.ask(state, "vars")["metric"]
        text = self.run("diff", "--json", "--by", kind, "--threshold", "0", "--metric", metric, *sides)
        known = {}
        for row in (json.loads(text) if text else {}).get("differences", []):
            name = f"{base(row['file'])}:{row['line']}" if kind == "line" and row.get("line") else printed(row["name"])
            known.setdefault(name, []).append(row)
        for cells in shown["rows"]:
            mine = dict(zip(shown["titles"], cells))
            if mine["name"].startswith("<"):
                continue  # no variable
            found = known.get(mine["name"], [])
            number = mine["of all"].replace("\u2212", "-").replace("+", "").split(" ")[0]
            self.check("diff", mine["name"], any(abs(float(number) - row["percent"]) <= .0501 and is_shown(mine["before"], row["before"], short) and is_shown(mine["after"], row["after"], short) for row in found), mine, found)

    def check_trust(self, state, shown):
        words = " ".join((self.run("vars", "--verbose", "--top=0", self.database) or "").split())
        for fact in shown["facts"]:
            self.check("trust", "facts", all(number in words for number in re.findall(r"\d[\d.]*(?: %)?", fact)), fact)
        for caption, rows in shown["tables"]:
            metric = caption.partition("samples of ")[2]
            fates = (self.ask(State(""), "vars", metric=metric) or {}).get("fates")
            if fates:
                total = sum(fates.values())
                want = {(fate, str(n), percent(100 * n / total)) for fate, n in fates.items()}
                self.check("trust", metric, {tuple(text.replace(",", "") if i == 1 else text for i, text in enumerate(row[:3])) for row in rows} == want, rows, want)

    # --- views of code ---

    def tree(self, state, kind, trail):
        """Nodes of a tree in pre-order: what each is called, costs, and has below it."""
        metric = state["metric"] or self.ask(state, "functions", is_split=False)["metric"]
        steps = [word for step in trail for word in (*STEPS_OF_TRAIL[step.partition(" ")[0]].format(json.dumps(step.partition(" ")[2])).split(" ", 1), ":")]
        key = ("tree", kind, metric, state["profiles"], *trail)
        if key in self.kept:
            return self.kept[key]
        if kind == "data":  # exports have some variables by other names
            answer = self.ask(state, "datatree", "--min=0") or {"nodes": []}
            rows = [(row, row["parent"], row["inclusive"]) for row in answer["nodes"]]
        else:
            text = self.run(*(["choose", state["profiles"], ":"] if state["profiles"] else []), *steps, "csv", *([] if trail else ["--tree", kind]), self.database)
            rows = [({**row, "id": row["node"]}, row["parents"].split(" ")[0], float(row.get(f"{metric} (inc)") or row.get(metric) or 0)) for row in csv.DictReader(io.StringIO(text or ""))]
        self.kept[key], by_id = [], {}
        for row, above, value in rows:
            place, parent = f"{base(row['file'])}:{row['line']}", by_id.get(above)
            label = "loop " + place if row["kind"] == "loop" else place if row["kind"] in LINES and row["line"] else row["name"]
            node = {"kind": row["kind"], "label": printed(label), "key": (row["name"], row["module"]), "module": printed(row["module"]), "value": value, "parent": parent, "below": []}
            by_id[row["id"]] = node
            self.kept[key].append(node)
            if parent:
                parent["below"].append(node)
        return self.kept[key]

    def paths(self, state, kind, words):
        """What the graph draws: {names from a root: [(value, of itself)]} of each node, without those that are folded; and the total."""
        key = ("paths", kind, state["metric"], state["profiles"], *words, *state.trail)
        if key in self.kept:
            return self.kept[key]
        steps = [step for step in state.trail if not step.startswith("hide ")]
        nodes = self.tree(state, kind, steps)
        total = sum(node["value"] for node in nodes if not node["parent"])
        for node in reversed(nodes):
            below = [each for each in node["below"] if each["value"] >= SMALL * total]
            node["ours"] = bool(RUNTIME.search(node["module"])) if node["kind"] in FUNCTIONS else bool(ROOTS.match(node["label"])) and node["kind"] not in ("loop", "line", "variable")
            node["leads"] = any(each["leads"] or (not each["ours"] and each["kind"] not in ("loop", *LINES)) for each in below)
        drawn = []
        for node in nodes:
            above = node["parent"]
            is_line = node["kind"] in LINES
            node["within"] = above and (above["within"] or (above["ours"] and above["kind"] in FUNCTIONS and not above["leads"]))
            melts = (node["kind"] == "loop" and "loops" not in words) or (is_line and ("lines" not in words or node["below"])) or \
                ("runtime" not in words and node["ours"] and (node["kind"] not in FUNCTIONS or node["leads"] or node["within"]))
            node["up"] = above and (above["up"] if above["melts"] else above)
            node["melts"], node["own"] = melts, node["value"]
            if not melts:
                drawn.append(node)
        for node in drawn:
            if node["up"]:
                node["up"]["own"] -= node["value"]
        self.kept[key] = [(node, node["up"], node["value"], node["own"]) for node in drawn], total
        return self.kept[key]

    def check_tree(self, state, shown):
        words = state["graph"].split(";")
        mode = words[0] or "top-down"
        is_other = any(step.startswith("collapse ") for step in state.trail) or (mode == "data" and state.trail)
        if is_other or state["percent"] == "selection":
            return  # the one has a test of its own, the other is no number of a report
        drawn, total = self.paths(state, "data" if mode == "data" else "code", words[1:])
        if shown["calls"]:
            self.check_calls_of(state, shown["calls"], drawn, total)
        boxes = shown["boxes"]
        if not drawn or not boxes or boxes[0][0] != 1 or boxes[0][1] == "nothing":
            return
        known, has_small = self.grown(mode, drawn, words), any(node["value"] < SMALL * total for node, *_ in drawn)
        path = []
        for level, text in boxes:
            found = re.match(rf"(.*?), ({NUMBER})(?:, ({NUMBER}) itself)?(?:, [^,]*)?$", text, re.S)
            above = path[:level - 1]
            path = [*above, found[1] if found else text]
            if not found or re.match(r"\d+ small", found[1]):
                continue
            values = known.get(tuple(path), [])
            form = short if state["percent"] == "absolute" else percent

            def is_same(value, own, parent):  # of what it costs itself a page has what is small as boxes of their own
                whole = (parent or value) if state["percent"] == "parent" else total
                scale, scale_of_own = (1, 1) if form is short else (100 / (whole or 1), 100 / ((value if state["percent"] == "parent" else total) or 1))
                least = max(own - 50 * SMALL * total, 0) if has_small else own
                if mode in ("bottom-up", "sandwich") and value < 2 * SMALL * total:
                    own = value  # who called it is not followed
                is_own = least <= 1e-9 * total if found[3] is None else least * scale_of_own * .994 - .051 <= number_of(found[3]) <= own * scale_of_own * 1.006 + .051
                is_less = has_small and mode in ("bottom-up", "sandwich") and value - 50 * SMALL * total <= number_of(found[2]) / scale <= value * 1.006
                return (is_less or is_shown(found[2], value * scale, form)) and is_own
            self.check("tree", mode, any(is_same(*each) for each in values), path, text, values[:4], total)

    @staticmethod
    def grown(mode, drawn, words):
        """{names from the root: [(value, of itself, that of the one above)]} as a mode draws them; "sandwich" has those above and below a function."""
        known, sums = {}, {}
        chains = {}
        for node, up, value, own in drawn:
            chains[id(node)] = [*chains.get(id(up), []), node]
        if mode == "top-down":
            for node, up, value, own in drawn:
                known.setdefault(tuple(each["label"] for each in chains[id(node)]), []).append((value, own, up and up["value"]))
            return known

        def add(path, value):
            sums[path] = sums.get(path, 0) + value
        for node, up, value, own in drawn:
            chain = [(each["label"], each["key"] if each["kind"] in FUNCTIONS else each["label"]) for each in chains[id(node)]]
            if mode in ("left-heavy", "data"):
                add(tuple(chain), value)
            elif mode == "bottom-up" and own > 1e-9 * value:
                for n in range(1, len(chain) + 1):
                    add(tuple(chain[::-1][:n]), own)
            elif mode == "sandwich":
                for i, middle in enumerate(chain):
                    if middle not in chain[:i]:
                        add(("below", *chain[i:]), value)
                if chain[-1] not in chain[:-1]:
                    for n in range(2, len(chain) + 1):
                        add(("above", *chain[::-1][:n]), value)
        below = {}
        for path, value in sums.items():
            below[path[:-1]] = below.get(path[:-1], 0) + value
        for path, value in sums.items():
            names = tuple(each[0] for each in path if each not in ("below", "above"))
            parent = sums.get(path[:-1], sums.get(("below", path[1]) if path[0] == "above" else None))
            known.setdefault(names, []).append((value, max(value - below.get(path, 0), 0), parent))
        return known

    def check_calls_of(self, state, boxes, drawn, total):
        """The graph of calls: what functions cost, each once on a path, and themselves."""
        if state["cycles"]:
            return
        value, own = {}, {}
        for node, up, all_of, itself in drawn:
            key = (node["label"], node["key"])
            own[key] = own.get(key, 0) + itself
            at = up
            while at and (at["label"], at["key"]) != key:
                at = at["up"]
            value[key] = value.get(key, 0) + (0 if at else all_of)
        slack = 5000 * SMALL if any(node["value"] < SMALL * total for node, *_ in drawn) else 0
        for text in boxes:
            name, all_of, itself = re.match(rf"(.*), ({NUMBER}), ({NUMBER}) itself", text).groups()
            known = [(percent(100 * value[key] / total), 100 * own[key] / total) for key in value if key[0] == name]
            is_known = any(each == all_of and part - slack - .051 <= number_of(itself) <= part + .051 for each, part in known)
            self.check("tree", "calls", is_known or re.match(r"\d+ small", name), text, known)

    def check_annotate(self, state, shown):
        lines = self.rows(state, "lines")
        if shown["source"]:
            self.check_source(lines, shown)
        if shown["machine"]:
            self.check_machine(state, lines, shown["machine"])

    def check_source(self, lines, shown):
        mine = [row for row in lines if printed(row["file"]) == shown["path"]]
        known, total = {}, sum(row["own_share"] or 0 for row in mine if row["line"])
        self.check("annotate", "file", is_shown(shown["file"].split("  ")[0].strip(), total) or shown["file"].startswith(percent(total)), shown["file"], total)
        for row in mine:
            own, inclusive, data = known.get(row["line"] or 0, (0, 0, {}))
            for each in row.get("data") or []:
                data[printed(each["variable"])] = data.get(printed(each["variable"]), 0) + (row["own_share"] or 0) * each["value"] / (row["own"] or 1)
            known[row["line"] or 0] = (own + (row["own_share"] or 0), inclusive + (row["inclusive_share"] or 0), data)
        for cells in shown["source"]["rows"]:
            mine = dict(zip(shown["source"]["titles"], cells))
            own, inclusive, data = known.get(int(mine["line"] or 0), (0, 0, {}))
            want = percent(own) if own > 0 else "", "\u2192 " + percent(inclusive) if inclusive > own * 1.000001 else ""
            self.check("annotate", f"line {mine['line']}", (mine["share"], mine["with calls"]) == want or not mine["line"], mine, want)
            pairs = re.findall(r"(\S.*?) ([\d.]+ %)(?=\s|$)", re.sub(r"[\d.]+ % of it ", "", mine.get("data, of the share", "").replace("\n", " ")))
            self.check("annotate", f"data of line {mine['line']}", all(is_shown(part, 100 * data.get(name, data.get(name.rpartition(" from ")[0], 0)) / (own or 1)) for name, part in pairs), pairs, data, own)

    def check_machine(self, state, lines, shown):
        item = state["active"]
        row = next((each for each in lines if f"line:{printed(each['file'])}:{each['line']}" == item), None)
        names = [row["function"]] if row else [item[9:]] if item.startswith("function:") else [each["function"] for each in self.rows(state, "functions")[:12]]
        known = {(each["address"].replace("0x", ""), " ".join(each["instruction"].split())): each for name in names for each in self.rows(state, "annotate", "--instructions", name)}
        for cells in shown["rows"]:
            mine = dict(zip(shown["titles"], cells))
            each = known.get((mine["address"], mine["instruction"].split(" \u2192")[0].strip()), {})
            self.check("machine code", mine["address"], bool(each) and mine.get("share", "") == (percent(each["own_share"]) if (each.get("own_share") or 0) > 0 else ""), mine, each)

    def check_metrics(self, state, shown):
        """Numbers of two metrics by their names in the head."""
        names = [title for title in shown["titles"] if title and title not in ("name", "place", "comes from", "right / left")]
        kind = state["rows"] if state["rows"] in ("vars", "functions", "lines") else "vars" if state["active"].startswith("variable:") and self.variables(state) else "functions"
        key = "value" if kind == "vars" else "inclusive" if "inclusive" in state["only"].split(";") else "own"
        named = "variable" if kind == "vars" else "function"
        for column, metric in enumerate(names):
            rows = self.rows(state, kind, metric=metric) if metric not in state.derive else []
            total, sums, known = (self.ask(state, kind, metric=metric) or {}).get("total_value" if kind == "vars" else "total"), {}, {}
            family = {"vars": "class", "functions": "file", "lines": "function"}[kind]
            for row in rows:
                sums[printed(row[family])] = sums.get(printed(row[family]), 0) + (row[key] or 0)
            for row in rows:
                share = row["share"] if kind == "vars" else row[f"{key}_share"]
                part = {"absolute": short(row[key]), "parent": percent(100 * row[key] / sums[printed(row[family])] if sums[printed(row[family])] else None)}.get(state["percent"], percent(share if row[key] is not None else None))
                site = printed(row.get("alloc_site")) if kind == "vars" else base(row["file"]) + (f":{row['line']}" if row.get("line") else "")
                known.setdefault((printed(row[named]), site), set()).add(part)
            for cells in shown["rows"] if rows and state["percent"] != "selection" else []:
                mine = dict(zip(shown["titles"], cells))
                found = known.get((mine["name"], mine.get("place", mine.get("comes from"))), {"-"})
                self.check("metrics", mine["name"], mine[metric] in found, metric, mine, sorted(found), column, total)


def play(page, numbers, rng, steps, choices=()):
    """Random actions; in words, what is then not in one state or is another number than hpcquery has, up to the first. choices: conditions on
    threads, each of which holds for a part of the actions."""
    done = []
    for i in range(steps):
        if choices and i % 12 == 0:
            condition = rng.choice(["", *choices])
            page.value(f"location.hash = {json.dumps('view=' + rng.choice(['vars', 'items', 'matrix', 'treemap']) + '&profiles=' + urllib.parse.quote(condition) + '&layout=code:' + rng.choice(['tree', 'annotate', 'metrics']))}; 0")
            done = [f"only {condition}"]
        else:
            done.append(page.step(rng))
        page.settle()
        wrong = [] if page.are_states_one() else [f"states are {page.states()}"]
        page.settle()
        wrong += numbers.compare(page) + [str(each) for each in page.troubles()]
        if wrong:
            return [f"after {done[-12:]}: {page.value('location.hash')}: {each}" for each in wrong]
    return []
