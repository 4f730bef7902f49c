#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""open-page.py PROFILE FILE... [--served HPCVIEWER DATABASE]: how soon Chromium shows a page of the viewer, and can be used, what a
click, an order, a search, another tab, scrolling and zooming take, and what the page holds; each beside its goal. Of what is done, two
times are told: on the clock, from the event to the end of the frame that shows what it changed, and of the processor, what the page's
own thread used of it, which others on the machine change little. Beside them that of a sort of 1e5 objects by a comparator in the same
browser: what a page with objects for rows spends on one click at a title. Prints why not where there is no Chromium."""
import json
import os
import pathlib
import re
import select
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browser  # noqa: E402
import viewer  # noqa: E402

OPENINGS, TURNS = 5, 20
GOALS = {"first paint": 200, "answer readable": 300, "can be used": 1000}
GOAL_OF_ACTIONS = {"scroll": 17, "zoom": 17, "down": 8, "threads first": 100, "threads again": 10}  # one frame, and what each says; others:
GOAL_OF_CHANGES, BYTES_BESIDE, OPEN_MS = 50, 60e6, 2000
# The times of pictures by the browser's own clock, which it tells some frames later.
PAINTED = """(async () => {
    let found;
    while (!(found = performance.getEntriesByName("first-contentful-paint")[0]))
        await new Promise((done) => setTimeout(done, 10));
    const largest = await new Promise((done) => new PerformanceObserver((list) => done(list.getEntries())).observe({type: "largest-contentful-paint", buffered: true}));
    return [found.startTime, largest[0].startTime];
})()"""
READY = """(async () => {
    while (document.body.dataset.ready !== "1" && !document.querySelector(".failed"))
        await new Promise((done) => requestAnimationFrame(done));
    return performance.now();
})()"""
SORTED = """(() => {
    const rows = Array.from({length: 1e5}, (_, i) => ({name: "row " + (i * 7919) % 100003, value: (i * 104729) % 1000003}));
    rows.sort((a, b) => b.value - a.value);
    return rows[0].value;
})()"""
# Frames come each 17 ms: what needs none of that takes as long.
ACTIONS = """globalThis.locusBench = (() => {
    const tabs = [...document.querySelectorAll("[role=tab]")].filter((each) => each.ariaDisabled !== "true" && each.id !== "tab-timeline");
    const search = document.getElementById("search"), list = document.querySelector(".list .grid"), boxes = document.querySelector(".icicle");
    const actions = {
        click: (i) => { const rows = list.querySelectorAll(".grid-row"); rows[i % rows.length]?.click(); },
        sort: (i) => { const titles = list.querySelectorAll(".grid-head button"); titles[i % titles.length]?.click(); },
        search: (i) => { search.value = "table_".slice(0, i % 7); search.dispatchEvent(new Event("input", {bubbles: true})); },
        tab: (i) => tabs[i % tabs.length].click(),
        scroll: (i) => { list.scrollTop = (i % 10) * 900; },
        down: () => list.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true, cancelable: true})),
        zoom: (i) => boxes.dispatchEvent(new KeyboardEvent("keydown", {key: i % 2 ? "Escape" : "z", bubbles: true, cancelable: true})),
    };
    return async (name, i) => {
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
        const start = performance.now();
        actions[name](i);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
        const time = performance.now() - start;
        await new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done, 0)), 5));
        return time;
    };
})(); 0"""
# Another choice of threads, until the table of variables has its numbers.
CHOICE = """(async () => {
    const start = performance.now(), chosen = "%s", panel = document.getElementById("panel-vars");
    location.hash = "view=vars" + (chosen ? "&profiles=" + chosen : "") + "&layout=code:metrics";
    while (panel.dataset.state !== location.hash.slice(1) && performance.now() < start + 10000)
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    return performance.now() - start;
})()"""


def say(what, time, goal, more=""):
    print(f"  {what}: {time:.0f} ms (goal {goal}){more}")


def used(page):
    """What the page's thread used of the processor so far, in ms."""
    return 1000 * next(each["value"] for each in page.call("Performance.getMetrics")["metrics"] if each["name"] == "TaskDuration")


def held(page):
    """Bytes that are alive: of the script, of the browser for it, and of arrays."""
    for _ in range(3):
        page.call("HeapProfiler.collectGarbage")
    usage = page.call("Runtime.getHeapUsage")
    return usage["usedSize"] + usage.get("embedderHeapUsedSize", 0) + usage.get("backingStorageSize", 0)


def late(times):
    """The 95th percentile."""
    return sorted(times)[len(times) * 95 // 100 - 1]


def act(page):
    """What a person does: each thing some times, on the clock and of the processor."""
    before = used(page)
    page.value(SORTED)
    unit = used(page) - before
    page.value(ACTIONS)
    for name in ("click", "sort", "search", "tab", "scroll", "zoom", "down"):
        page.value("location.hash = 'view=vars&layout=code:tree'; new Promise((done) => setTimeout(done, 500))")
        times = []
        for i in range(TURNS):
            before = used(page)
            times.append((page.value(f"locusBench('{name}', {i})"), used(page) - before))
        clock, cpu = (late([each[way] for each in times]) for way in (0, 1))
        say(f"{name}: on the clock {clock:.0f} ms; of the processor", cpu, GOAL_OF_ACTIONS.get(name, GOAL_OF_CHANGES), f", {cpu / unit:.2f} of a sort by comparator")
    for what, chosen in (("", ""), ("threads first", "thread%20%3D%201"), ("", ""), ("threads again", "thread%20%3D%201"), ("", "")):
        before = used(page)
        clock = page.value(CHOICE % chosen)
        if what:
            say(f"{what}: of the processor, with all that follows, {used(page) - before:.0f} ms; on the clock", clock, GOAL_OF_ACTIONS[what])
    for tab in page.value("[...document.querySelectorAll('[role=tab]')].map((each) => each.id)"):
        page.value(f"document.getElementById('{tab}').click(); new Promise((done) => setTimeout(done, 200))")


def measure_file(page, file):
    times = {what: [] for what in GOALS}
    for _ in range(OPENINGS):
        page.open("about:blank")
        page.open(file.resolve().as_uri())
        times["can be used"].append(page.value(READY))
        first, largest = page.value(PAINTED)
        times["first paint"].append(first)
        times["answer readable"].append(largest)
    size = file.stat().st_size
    print(f"{file.name}: {size / 1e6:.3f} MB; medians of {OPENINGS}, then the 95th percentile of {TURNS}")
    for what, goal in GOALS.items():
        say(what, statistics.median(times[what]), goal)
    act(page)
    print(f"  memory: {held(page) / 1e6:.1f} MB (goal {(2 * size + BYTES_BESIDE) / 1e6:.1f})")


def measure_served(page, program, database):
    """The same by a server, with a database too large for a file."""
    start = time.monotonic()
    with subprocess.Popen([program, "--no-browser", database], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        text = b""
        while not (found := re.search(rb"^(http:\S+)\n", text, re.M)):
            if not select.select([process.stdout], [], [], 120)[0] or not (more := os.read(process.stdout.fileno(), 4096)):
                sys.exit(f"hpcviewer printed no address: {text}")
            text += more
        page.open("about:blank")
        page.open(found[1].decode())
        page.value(READY)
        print(f"{pathlib.Path(database).name}, served; the 95th percentile of {TURNS}")
        say("from the start of hpcviewer until it can be used", 1000 * (time.monotonic() - start), OPEN_MS)
        act(page)
        print(f"  memory: {held(page) / 1e6:.1f} MB of the page, {resident(process.pid) / 1e6:.1f} MB of hpcviewer")
        process.terminate()


def resident(pid):
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[1])


def main():
    served = sys.argv[sys.argv.index("--served") + 1:] if "--served" in sys.argv else []
    try:
        driven = viewer.Viewer(pathlib.Path(sys.argv[1]), 1280, 900)
    except browser.Failure as failure:
        print(f"SKIP: {failure}")
        return
    page = driven.browser
    page.call("Performance.enable", timeDomain="threadTicks")
    page.call("HeapProfiler.enable")
    for file in map(pathlib.Path, sys.argv[2:len(sys.argv) - len(served) - bool(served)]):
        measure_file(page, file)
        if page.troubles:
            sys.exit(f"{file}: {page.troubles}")
    if served:
        measure_served(page, *served)
    driven.close()


main()
