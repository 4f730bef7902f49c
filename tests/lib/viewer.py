# SPDX-License-Identifier: BSD-3-Clause
"""The viewer in Chromium: what tests of it have in common. A page is opened, asked for its state, and driven by what a person could
do; `random_step` does one such thing, chosen by a number."""
import json
import pathlib
import shutil
import subprocess
import sys
import time

import browser

READY = "document.body.dataset.ready === '1' || document.querySelector('.failed') !== null"

# What a person could do, as functions of a random number: they return what was done. In the page, so that a step takes no
# round trip for each event.
STEPS = r"""
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
