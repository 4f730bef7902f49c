#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""open-page.py PROFILE FILE...: how soon Chromium shows a page of the viewer, and can be used, and how long it takes to show what a
click, an order, a search and another tab change; each beside its goal. Prints why not where there is no Chromium."""
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import browser  # noqa: E402
import viewer  # noqa: E402

OPENINGS, TURNS = 5, 20
GOALS = {"first paint": 200, "can be used": 1000}
GOAL_OF_ACTIONS = 50
# The time of the first picture by the browser's own clock, which it tells some frames later.
PAINTED = """(async () => {
    let found;
    while (!(found = performance.getEntriesByName("first-contentful-paint")[0]))
        await new Promise((done) => setTimeout(done, 10));
    return found.startTime;
})()"""
READY = """(async () => {
    while (document.body.dataset.ready !== "1" && !document.querySelector(".failed"))
        await new Promise((done) => requestAnimationFrame(done));
    return performance.now();
})()"""
# From an event to the end of the frame that shows what it changed. Frames come each 17 ms: what needs none of that takes as long.
ACTIONS = """(async (turns) => {
    const tabs = [...document.querySelectorAll("[role=tab]")].filter((each) => each.ariaDisabled !== "true");
    const search = document.getElementById("search");
    const actions = {
        click: (i) => { const rows = document.querySelectorAll(".list .grid-row"); rows[i % rows.length]?.click(); },
        sort: (i) => { const titles = document.querySelectorAll(".list .grid-head button"); titles[i % titles.length]?.click(); },
        search: (i) => { search.value = "table_".slice(0, i % 7); search.dispatchEvent(new Event("input", {bubbles: true})); },
        tab: (i) => tabs[i % tabs.length].click(),
    };
    const times = {};
    for (const [name, action] of Object.entries(actions))
        for (let i = 0; i < turns; i++) {
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
            const start = performance.now();
            action(i);
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
            (times[name] = times[name] || []).push(performance.now() - start);
        }
    return JSON.stringify(times);
})"""


def say(what, time, goal):
    print(f"  {what}: {time:.0f} ms (goal {goal})")


def main():
    try:
        driven = viewer.Viewer(pathlib.Path(sys.argv[1]), 1280, 900)
    except browser.Failure as failure:
        print(f"SKIP: {failure}")
        return
    page = driven.browser
    for file in map(pathlib.Path, sys.argv[2:]):
        times = {what: [] for what in GOALS}
        for _ in range(OPENINGS):
            page.open("about:blank")
            page.open(file.resolve().as_uri())
            times["can be used"].append(page.value(READY))
            times["first paint"].append(page.value(PAINTED))
        print(f"{file.name}: {file.stat().st_size / 1e6:.3f} MB; medians of {OPENINGS}, then the 95th percentile of {TURNS}")
        for what, goal in GOALS.items():
            say(what, statistics.median(times[what]), goal)
        for what, each in json.loads(page.value(f"{ACTIONS}({TURNS})")).items():
            say(what, sorted(each)[len(each) * 95 // 100 - 1], GOAL_OF_ACTIONS)
        if page.troubles:
            sys.exit(f"{file}: {page.troubles}")
    driven.close()


main()
