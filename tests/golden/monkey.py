#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Somebody who does whatever comes, as fast as it goes, in the page of a database and in the time line of a recording: random
clicks, keys, choices, searches and sizes of the window, in Chromium. Nothing is said in the console, and the page does not grow: what
it holds at the end, after a collection and with the same thing shown in each view, is at most a twentieth more than after the first
third, in which each view was opened (500 steps at least: else it is not judged). What the browser compiled of the script is not
counted: that grows until all of it was used often. LOCUS_MONKEY_SECONDS: for how long, each (15; ./dev test --full: 600)."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import tracedat  # noqa: E402
import viewer  # noqa: E402

SECONDS = int(os.environ.get("LOCUS_MONKEY_SECONDS", "15"))
SIZES = [(1400, 900), (1024, 700), (720, 1000), (390, 800), (1900, 500)]
ALIVE_MOST = 1.05
WARM_STEPS = 500  # until each view was opened: before that all of them grow
failures = []


def rest(page, fragment):
    """The same for each measurement: the size of the window, what is chosen, and each view shown once, the graph in both its forms,
    and those with tables in each metric."""
    page.browser.size(*SIZES[0])
    page.value("document.querySelectorAll('dialog[open]').forEach((each) => each.close()); document.querySelectorAll('details[open]').forEach((each) => { each.open = false; }); document.activeElement.blur(); delete document.documentElement.dataset.theme; 0")
    for metric in page.value("[...document.querySelectorAll('header select option')].map((each) => each.value)"):
        for view, code in (("vars", "tree"), ("matrix", "annotate"), ("items", "metrics"), ("treemap", "tree")):  # what they keep of each metric
            page.value(f"location.hash = {json.dumps('view=' + view + '&metric=' + urllib.parse.quote(metric) + '&layout=code:' + code)}; 0")
            page.are_states_one()
    for tab in ("", "tab-tree", *page.value("[...document.querySelectorAll('[role=tab]')].map((each) => each.id)")):
        page.value(f"document.getElementById('{tab}')?.click()")
        page.settle()
        page.value(f"location.hash = '{fragment}{'' if tab else '&layout=graph:calls'}'")
        page.are_states_one()
        page.settle()


def alive_bytes(page):
    """What the page holds, but for compiled code, and how many nodes and listeners."""
    for _ in range(3):
        page.browser.call("HeapProfiler.collectGarbage")
    counts = {each["name"]: int(each["value"]) for each in page.browser.call("Performance.getMetrics")["metrics"]}
    heap = json.loads(page.browser.gather("HeapProfiler.takeHeapSnapshot", "HeapProfiler.addHeapSnapshotChunk", "chunk"))
    about, nodes = heap["snapshot"]["meta"], heap["nodes"]
    size, width, code = about["node_fields"].index("self_size"), len(about["node_fields"]), about["node_types"][0].index("code")
    held = sum(nodes[at + size] for at in range(0, len(nodes), width) if nodes[at] != code)
    return held, f"{held / 1e6:.2f} MB, {counts['Nodes']} nodes, {counts['JSEventListeners']} listeners"


def play(name, page, address, view, seed):
    """Does what a monkey does, and judges what is left."""
    dice, steps, n, warm, alive = random.Random(seed), [], 0, 0, []
    page.browser.call("Performance.enable")
    page.browser.call("HeapProfiler.enable")
    if not page.open(address, f"view={view}"):
        failures.append(f"{name}: the page says that it cannot be used")
        return
    for third in range(3):
        deadline = time.monotonic() + SECONDS / 3
        while time.monotonic() < deadline and not page.troubles():
            if dice.random() < 0.03:
                page.browser.size(*dice.choice(SIZES))
            steps = [*steps[-14:], page.step(dice)]
            n += 1
            if n % 50 == 0:
                page.settle()
        if third == 0:
            warm = n
        if third != 1:
            rest(page, f"view={view}&active=variable:state-%3Ep")
            alive.append(alive_bytes(page))
    if page.troubles():
        failures.append(f"{name}: after {n} steps {page.troubles()[:3]}; the last ones: {steps}")
    elif warm >= WARM_STEPS and alive[1][0] > ALIVE_MOST * alive[0][0]:
        failures.append(f"{name}: {n} steps, {alive[0][0]} bytes alive have become {alive[1][0]}")
    print(f"{name}: {n} steps; alive after the first {warm}: {alive[0][1]}; at the end: {alive[1][1]}, {100 * alive[1][0] / alive[0][0] - 100:+.1f} %")


def main():
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = pathlib.Path(scratch_name)
        page = viewer.opened(scratch / "profile")
        data = json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8"))
        m.write_database(scratch / "database", data)
        tracedat.write_tiled(scratch / "tiled.dat", 20_000)
        for name, made, view in (("database", scratch / "database", "vars"), ("time line", scratch / "tiled.dat", "timeline")):
            file = scratch / f"{name}.html"
            subprocess.run([BUILD / "hpcviewer", "-o", file, made], check=True, stdout=subprocess.DEVNULL)
            play(name, page, f"file://{file}", view, len(name))
        page.close()
    for failure in failures:
        print("FAIL:", failure[:3000])
    sys.exit(1 if failures else 0)


main()
