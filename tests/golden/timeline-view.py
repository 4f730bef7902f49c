#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The view of the time line in Chromium, on recordings of known content: blocks of the topology are as high as their rows and have
the mean of their colours; boxes lie where hpcquery sched runs has them, in random windows; each key does its work; the address holds
what is seen, so that a link shows the same; axe-core finds nothing, wide and narrow, light and dark; a page in a file shows the
same without a server, and a page without recordings does not carry the view's script. LOCUS_VIEWER_STEPS: how many random actions
(200)."""
import csv
import json
import os
import pathlib
import random
import re
import select
import subprocess
import sys
import tempfile
import time

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import tracedat  # noqa: E402
import viewer  # noqa: E402

H, S, LOW_H, LOW_S = 34, 20, 12, 2
N_WINDOWS, SECONDS = 12, 60
STEPS = int(os.environ.get("LOCUS_VIEWER_STEPS", "200"))
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def recording(path, seed, n_events=2500, n_cpus=4, n_tasks=9):
    """Switches and wakings by chance, of tasks that run in one place at a time."""
    dice, out = random.Random(seed), tracedat.Recording(n_cpus)
    out.tasks, out.clock = {100 + i: f"task {i}" for i in range(n_tasks)}, "local [mono]\0"
    running, t = [0] * n_cpus, 5_000_000
    for _ in range(n_events):
        t += dice.choice([1, 3, 1000, 40_000, 900_000])
        cpu, task = dice.randrange(n_cpus), 100 + dice.randrange(n_tasks)
        if task in running:
            out.add(cpu, t, running[cpu], ("test", "mark"), value=t)
        elif dice.random() < 0.4:
            out.waking(cpu, t, running[cpu], task, dice.randrange(n_cpus))
        else:
            task = 0 if dice.random() < 0.3 else task
            if task != running[cpu]:
                out.switch(cpu, t, running[cpu], task, prev_state=dice.choice([0, 1, 2]))
                running[cpu] = task
    path.write_bytes(out.version_6())
    return path


class Served:
    """hpcviewer at work on recordings; addresses as they are asked for."""

    def __init__(self, *recordings):
        self.process = subprocess.Popen([BUILD / "hpcviewer", "--no-browser", *recordings], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.rest = b""

    def address(self):
        deadline = time.monotonic() + SECONDS
        while True:
            for line in self.rest.split(b"\n")[:-1]:
                if line.startswith(b"http:"):
                    self.rest = self.rest.partition(line + b"\n")[2]
                    return line.decode().strip()
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise SystemExit(f"FAIL: hpcviewer printed no address: {self.rest}")
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                raise SystemExit(f"FAIL: hpcviewer has ended: {self.rest}")
            self.rest += more

    def close(self):
        self.process.terminate()
        self.process.wait(SECONDS)


def show(page, words=""):
    """Goes to a part of the time line and waits until its picture is there."""
    page.value(f"location.hash = 'view=timeline&layout=split:80' + ({json.dumps(words)} ? ',time:' + encodeURIComponent({json.dumps(words)}) : '')")
    drawn(page)


def drawn(page):
    page.settle()
    page.are_states_one()
    ready = page.wait("timeParts !== null && timeParts.rows.width > 0 && !isLoading && pictureKey === JSON.stringify(pictureRequests(timeParts.rows))", 20)
    expect(ready, f"no picture comes: {page.value('location.hash')} {page.value('document.body.innerText')[:300]}")
    page.settle()


def words(page):
    return page.value("timeWords()")


# --- rows and blocks ------------------------------------------------------------------------------------------------------------


def tops_of(page, selector):
    return page.value(f"""[...document.querySelectorAll({json.dumps(selector)})].map((each) => {{
        const box = each.getBoundingClientRect(); return [each.dataset.rows || each.dataset.row, box.top, box.height]; }})""")


def check_rows(page):
    for compact, high, gap in ((False, H, S), (True, LOW_H, LOW_S)):
        show(page, "sort=number" + (";off=compact" if compact else ""))
        rows = tops_of(page, ".time-name")
        expect(len(rows) > 4 and all(abs(height - high) < 0.01 for _, _, height in rows), f"rows are not {high} high: {rows}")
        steps = {round(after[1] - before[1], 2) for before, after in zip(rows, rows[1:])}
        expect(steps == {high + gap}, f"rows are {steps} apart")
        cut = page.value("[...document.querySelectorAll('.time-label')].filter((each) => each.scrollHeight > each.clientHeight).length")
        expect(cut == 0, f"{cut} names are cut below")
    numbers = [int(row) for row, _, _ in rows]
    expect(numbers[:4] == [0, 1, 2, 3] and numbers == sorted(numbers), f"rows stand as {numbers}")
    show(page)
    ran = page.value("rowsShown(streamsNow()).slice(4).map((row) => streamsNow().number('run_ns', row))")
    expect(len(ran) > 4 and ran == sorted(ran, reverse=True), f"tasks that ran for {ran} ns stand below each other")
    last, first = page.value("""(() => { const streams = streamsNow(), of = streams.columns.get('own').numbers, row = rowsShown(streams).at(-1), before = of[row];
        of[row] = 1; const first = rowsShown(streams)[4]; of[row] = before; return [row, first]; })()""")
    expect(last == first, f"a task of the program is not the first of tasks, but {first}")


SEATS = [(0, 0, 0, 0), (0, 1, 1, 4), (0, 0, 0, 2), (0, 1, 2, 1)]  # stream, node, core, CPU in the core's order; by number


def mean(colours):
    return [sum(each[i] for each in colours) // len(colours) for i in range(3)]


def check_blocks(page):
    """CPUs 0 and 2 share a core of node 0; 1 and 3 have cores 1 and 2 of node 1."""
    seats = [{"stream": stream, "node": node, "core": core, "pu": pu, "number": number, "package": 0} for number, (stream, node, core, pu) in enumerate(SEATS)]
    page.value(f"streamsNow().head.topology = {json.dumps(seats)}; seatsKept.delete(streamsNow()); tell(new Set(['data'])); 0")
    colours = [[int(text[at:at + 2], 16) for at in (1, 3, 5)] for text in page.value("[0, 1, 2, 3].map((row) => streamsNow().text('colour', row))")]
    cores = {"C 0": mean([colours[0], colours[2]]), "C 1": colours[1], "C 2": colours[3]}
    wanted = {"C 0": ("0.2", cores["C 0"], "Core 0 in NUMA Node 0"), "C 1": ("1", cores["C 1"], "Core 1 in NUMA Node 1"), "C 2": ("3", cores["C 2"], "Core 2 in NUMA Node 1"),
              "NN 0": ("0.2", cores["C 0"], "NUMA Node 0"), "NN 1": ("1.3", mean([cores["C 1"], cores["C 2"]]), "NUMA Node 1"), "M": ("0.2.1.3", colours[0], "Machine")}
    for off, high, gap in (("", H, S), ("off=compact", LOW_H, LOW_S)):
        show(page, off)
        names = {int(row): top for row, top, _ in tops_of(page, ".time-name")}
        order = sorted((top, row) for row, top in names.items())
        expect([row for _, row in order][:4] == [0, 2, 1, 3], f"CPUs stand as {order[:6]}")
        blocks = page.value("""[...document.querySelectorAll(".time-block")].map((each) => { const box = each.getBoundingClientRect(), style = getComputedStyle(each);
            return [each.textContent, each.dataset.rows, box.top, box.height, style.backgroundColor, style.color, each.title, style.borderTopWidth + style.borderTopColor]; })""")
        expect({each[0] for each in blocks} == set(wanted) and len(blocks) == len(wanted), f"blocks: {blocks}")
        for label, rows, top, height, ground, ink, title, border in blocks:
            numbers = [int(row) for row in rows.split(".")]
            expect((rows, title) == (wanted[label][0], wanted[label][2]), f"{label} has the rows {rows}, {title}")
            expect(abs(height - (len(numbers) * high + (len(numbers) - 1) * gap)) < 0.01 and abs(top - names[numbers[0]]) < 1, f"{label} is {height} high at {top}, its rows {names}")
            colour = wanted[label][1]
            expect(ground == "rgb({}, {}, {})".format(*colour), f"{label} is {ground}, not {colour}")
            is_bright = 299 * colour[0] + 587 * colour[1] + 114 * colour[2] > 128000
            expect(ink == ("rgb(0, 0, 0)" if is_bright else "rgb(255, 255, 255)") and border == "1pxrgb(0, 0, 0)", f"{label}: {ink} on {ground}, {border}")
    nodes = [{"stream": 0, "node": 0, "memory_bytes": 4 << 30, "kind": "DRAM", "near": "2", "distances": "10.21.17"}, {"stream": 0, "node": 1, "memory_bytes": 8 << 30, "kind": "", "near": "", "distances": "21.10.28"},
             {"stream": 0, "node": 2, "memory_bytes": 1 << 30, "kind": "HBM", "near": "", "distances": "17.28.10"}]
    page.value(f"streamsNow().head.nodes = {json.dumps(nodes)}; 0")
    said = {label: title for label, title in page.value("[...document.querySelectorAll('.time-block')].map((each) => { each.dispatchEvent(new Event('pointerenter')); return [each.textContent, each.title]; })")}
    expect(said["NN 0"].endswith(", DRAM 4.0 GiB, also near: NUMA Node 2 HBM 1.0 GiB, 21 to NUMA Node 1, 17 to NUMA Node 2") and said["NN 1"].endswith(", 8.0 GiB, 21 to NUMA Node 0, 28 to NUMA Node 2") and
           said["M"].endswith(", 13.0 GiB") and said["C 1"].startswith("Core 1 in NUMA Node 1, busy") and "GiB" not in said["C 1"], f"what blocks say of memory: {said}")
    show(page, "hide=2")
    blocks = {label: (rows, height) for label, rows, height in page.value("[...document.querySelectorAll('.time-block')].map((each) => [each.textContent, each.dataset.rows, each.offsetHeight])")}
    expect(blocks.get("C 0") == ("0", H) and blocks.get("M") == ("0.1.3", 3 * H + 2 * S), f"without CPU 2: {blocks}")
    show(page, "show=tasks")
    expect(page.value("timeParts.rows.tree.hidden"), "tasks alone have a tree")
    show(page)
    page.value("document.querySelector('.time-tree').dispatchEvent(new WheelEvent('wheel', {deltaY: 300, bubbles: true, cancelable: true}))")
    expect(page.value("timeParts.rows.view.scrollTop") == 0, "a wheel on the tree scrolls")
    page.value("timeParts.rows.view.scrollTop = 60")
    page.settle()
    names = {row: top for row, top, _ in tops_of(page, ".time-name")}
    block = [top for rows, top, _ in tops_of(page, ".time-block") if rows == "1"]
    expect(block and abs(block[0] - names["1"]) < 1, f"scrolled, C 1 is at {block}, its row at {names.get('1')}")
    narrow = page.value("(() => { const tree = document.querySelector('.time-tree'); tree.style.width = '40px'; const found = [tree.scrollWidth > tree.clientWidth, getComputedStyle(tree).overflowX]; tree.style.width = ''; return found; })()")
    expect(narrow == [True, "auto"], f"a tree of 40 pixels does not scroll: {narrow}")
    r, g, b = page.value("getComputedStyle(document.querySelector('.time-toggle')).backgroundColor.match(/[0-9]+/g).map(Number)")
    sides = page.value("['.time-toggle', '.time-tree', '.time-name'].map((each) => document.querySelector(each).getBoundingClientRect().left)")
    expect(g > r and g > b and page.value("document.querySelector('.time-toggle').textContent") == "<" and sides == sorted(sides), f"the button is rgb({r}, {g}, {b}), and stands at {sides}")
    page.value("document.querySelector('.time-toggle').click()")
    drawn(page)
    expect(page.value("timeParts.rows.tree.hidden") and page.value("document.querySelector('.time-toggle').textContent") == ">", "the button does not hide the tree")
    expect([row for row, _, _ in tops_of(page, ".time-name")][:4] == ["0", "1", "2", "3"], "without the tree CPUs are not by number")
    page.value("streamsNow().head.topology = []; seatsKept.delete(streamsNow()); tell(new Set(['data'])); 0")
    show(page)
    expect(page.value("document.querySelector('.time-toggle').hidden"), "without a tree there is its button")


def check_nested(page):
    """Nodes that are nested in packages: these have blocks of their own, with the mean of their nodes' colours; elsewhere they have none."""
    seats = [{"stream": 0, "node": node, "core": cpu, "pu": cpu, "number": cpu, "package": package} for cpu, (package, node) in enumerate(((0, 0), (0, 1), (1, 2), (1, 2)))]
    page.value(f"streamsNow().head.topology = {json.dumps(seats)}; seatsKept.delete(streamsNow()); tell(new Set(['data'])); 0")
    show(page)
    blocks = {label: (rows, title, box, ground) for label, rows, title, box, ground in page.value("""[...document.querySelectorAll(".time-block")].map((each) => [each.textContent, each.dataset.rows, each.title, each.offsetHeight, getComputedStyle(each).backgroundColor])""")}
    colours = [[int(text[at:at + 2], 16) for at in (1, 3, 5)] for text in page.value("[0, 1, 2, 3].map((row) => streamsNow().text('colour', row))")]
    expect({label for label in blocks if label[0] in "MPN"} == {"M", "P 0", "P 1", "NN 0", "NN 1", "NN 2"}, f"blocks of packages: {blocks}")
    expect(blocks["P 0"] == ("0.1", "Package 0", 2 * H + S, "rgb({}, {}, {})".format(*mean(colours[:2]))), f"a package: {blocks['P 0']}")
    left = page.value("['M', 'P 0', 'NN 0', 'C 0'].map((label) => [...document.querySelectorAll('.time-block')].find((each) => each.textContent === label).getBoundingClientRect().left)")
    expect(left == sorted(left) and len(set(left)) == 4, f"columns of the tree begin at {left}")
    page.value("streamsNow().head.topology = []; seatsKept.delete(streamsNow()); tell(new Set(['data'])); 0")


def check_dialog(page, path, scratch, axe):
    """Topologies are given, refused, cleared and taken back in the dialog; what is refused leaves what was there, and Close changes nothing."""
    small, good, other, bad = scratch / "small.xml", scratch / "good.xml", scratch / "turned.xml", scratch / "bad.xml"
    for file, nodes in ((small, [[0, 1], [2]]), (good, [[0, 3], [1, 2]]), (other, [[0, 2], [1, 3]])):
        file.write_text(tracedat.topology_of(nodes))
    bad.write_text("<topology>")

    def cpus():
        return page.value("rowsShown(streamsNow()).filter((row) => streamsNow().text('kind', row) === 'cpu').map((row) => streamsNow().number('number', row))")

    def button(label, begins=False):
        test = f"each.textContent.startsWith({json.dumps(label)})" if begins else f"each.textContent === {json.dumps(label)}"
        page.value(f"[...document.querySelectorAll('{'.body-timeline' if begins else '#offer'} button')].find((each) => {test}).click()")

    def state():
        return page.value("(() => { const [file, view, said] = ['input[type=text]', 'select', 'strong'].map((each) => document.querySelector('#offer ' + each)), [r, g] = getComputedStyle(said).color.match(/[0-9]+/g).map(Number); "
                          "return [file.value, view.value, said.textContent, g > r ? 'green' : 'red']; })()")

    def give(file, said=None):
        """Types a path, applies it; what is said then, None: the dialog closes."""
        page.value(f"(() => {{ const input = document.querySelector('#offer input[type=text]'); input.value = {json.dumps(str(file))}; input.dispatchEvent(new Event('input')); }})()")
        button("Apply")
        if said is None:
            expect(page.wait("!document.getElementById('offer').open", 20), f"{file} is refused: {page.value('document.querySelector(`#offer .failed`).textContent')}")
        else:
            expect(page.wait(f"document.querySelector('#offer .failed').textContent.includes({json.dumps(said)})", 20), f"{file}: {page.value('document.querySelector(`#offer .failed`).textContent')}")
        drawn(page)

    show(page)
    button("Recordings", True)
    expect(state() == ["", "none", "NOT LOADED", "red"], f"the dialog begins with {state()}")
    for found in viewer.violations(page, axe) if axe else []:
        expect(False, f"the dialog: {found[:700]}")
    give(good)
    expect(cpus() == [0, 3, 1, 2] and page.value("document.querySelectorAll('.time-block').length") > 4, f"CPUs stand as {cpus()}")
    button("Recordings", True)
    expect(state() == [str(good), "given", "LOADED", "green"], f"with a topology the dialog says {state()}")
    for file, said in ((scratch / "none.xml", "none.xml"), (bad, "is not a topology"), (small, "3 CPUs")):
        give(file, said)
        expect(cpus() == [0, 3, 1, 2], f"{file.name}, which is refused, leaves {cpus()}")
    button("Load...")
    expect(state()[0] == f"{scratch}/" and page.value("document.activeElement.ariaLabel || document.activeElement.getAttribute('aria-label')") == "topology file", f"Load... begins with {state()}")
    button("Clear")
    expect(state()[::2] == ["", "NOT LOADED"] and state()[3] == "red", f"after Clear {state()}")
    button("Close")
    expect(cpus() == [0, 3, 1, 2], "Close has changed what is shown")
    button("Recordings", True)
    expect(state() == [str(good), "given", "LOADED", "green"], f"after Close the dialog says {state()}")
    give(other)
    expect(cpus() == [0, 2, 1, 3], f"another topology: {cpus()}")
    page.value("document.querySelector('.time-toggle').click()")
    drawn(page)
    expect(page.value("timeParts.rows.tree.hidden"), "the button does not hide the tree")
    button("Recordings", True)
    give(good)
    expect(not page.value("timeParts.rows.tree.hidden") and cpus() == [0, 3, 1, 2], "a topology that is applied does not show the hidden tree")
    button("Recordings", True)
    page.value("document.querySelector('#offer select').value = 'none'")
    button("Apply")
    page.wait("!document.getElementById('offer').open", 20)
    drawn(page)
    expect(cpus() == [0, 1, 2, 3] and page.value("timeParts.rows.tree.hidden") and page.value("document.querySelector('.time-toggle').hidden"), f"by number: {cpus()}")
    button("Recordings", True)
    expect(state() == [str(good), "none", "LOADED", "green"], f"by number the dialog says {state()}")
    button("Clear")
    give("")
    expect(cpus() == [0, 1, 2, 3] and page.value("streamsNow().head.streams[0].given_topology") is None, f"without a path: {cpus()}")


def check_two(page, path, scratch):
    """The tree of one of two recordings: its CPUs alone move, the blocks are beside its rows alone, and its tasks and the other one's
    rows have nothing there."""
    topology = scratch / "four.xml"
    topology.write_text(tracedat.topology_of([[0, 3], [1, 2]]))
    served = Served("--topology", topology, path, "--offset", "0", recording(scratch / "other.dat", 8, 500))
    try:
        expect(page.open(served.address()), f"two recordings: {page.value('document.body.innerText')[:300]}")
        show(page)
        rows = page.value("rowsShown(streamsNow()).map((row) => [streamsNow().number('stream', row), streamsNow().text('kind', row), streamsNow().number('number', row), row])")
        cpus = [number for stream, kind, number, _ in rows if (stream, kind) == (0, "cpu")], [number for stream, kind, number, _ in rows if (stream, kind) == (1, "cpu")]
        expect(cpus == ([0, 3, 1, 2], [0, 1, 2, 3]), f"CPUs of the one with a tree, and of the one without: {cpus}")
        expect([stream for stream, *_ in rows] == sorted(stream for stream, *_ in rows), "streams are not one below the other")
        own = {row for stream, kind, _, row in rows if (stream, kind) == (0, "cpu")}
        blocks = tops_of(page, ".time-block")
        beside = {int(row) for of, _, _ in blocks for row in of.split(".")}
        expect(beside == own, f"blocks are beside {beside}, not {own}")
        expect(sum(height for of, _, height in blocks if "." not in of) == 4 * H, f"blocks of cores: {blocks}")
    finally:
        served.close()


def check_guest(page):
    """A recording of a machine with two nodes, with its topology as lstopo wrote it: rows by node and core, each block as high as its rows."""
    data = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark" / "guest-4cpu-2node.dat"
    if not data.exists():
        print(f"SKIP (part): there is no {data}")
        return
    topo = [row for row in json.loads(subprocess.run([BUILD / "hpcquery", "topo", "--json", "--topology", data.with_suffix(".xml"), data], capture_output=True, text=True, check=True).stdout)["rows"] if row["level"] == "cpu"]
    served = Served("--topology", data.with_suffix(".xml"), data)
    try:
        expect(page.open(served.address()), f"the guest: {page.value('document.body.innerText')[:300]}")
        show(page)
        names = {row: (top, height) for row, top, height in tops_of(page, ".time-name")}
        cpus = page.value("rowsShown(streamsNow()).filter((row) => streamsNow().text('kind', row) === 'cpu').map((row) => streamsNow().text('name', row))")
        expect(cpus == [row["name"] for row in topo], f"CPUs stand as {cpus}, not {[row['name'] for row in topo]}")
        blocks = tops_of(page, ".time-block")
        expect(len(blocks) >= 7, f"the guest has {len(blocks)} blocks")
        for rows, top, height in blocks:
            first, last = rows.split(".")[0], rows.split(".")[-1]
            expect(abs(top - names[first][0]) < 1 and abs(top + height - names[last][0] - names[last][1]) < 1, f"a block of rows {rows} is at {top}, {height} high")
    finally:
        served.close()


def check_many(page, scratch):
    """Of very many rows those in sight alone are there."""
    out = tracedat.Recording(1)
    out.tasks, n = {}, 100_000
    for i in range(n):
        out.switch(0, 1000 * i + 1000, i, i + 1)
    (scratch / "many.dat").write_bytes(out.version_6())
    served = Served(scratch / "many.dat")
    try:
        expect(page.open(served.address()), f"many rows: {page.value('document.body.innerText')[:300]}")
        show(page)
        for part in (0, 0.5, 1):
            page.value(f"timeParts.rows.view.scrollTop = {part} * timeParts.rows.view.scrollHeight")
            drawn(page)
            count, known = page.value("[document.querySelectorAll('.time-name').length, rowsShown(streamsNow()).length]")
            expect(known > n and 3 < count < 100, f"of {known} rows {count} are there")
    finally:
        served.close()


def check_opening(page, scratch):
    """While a large recording is read the page says how far that is, and can end it; else it shows it then."""
    path = scratch / "large.dat"
    kept = path.with_name("large.dat.locus-time")
    begun = "document.querySelector('#opening') !== null || document.body.dataset.ready === '1'"
    bar = "Number(document.querySelector('#opening progress')?.getAttribute('value') ?? NaN)"
    for n_events in (8_000_000, 32_000_000):  # until reading takes long here
        tracedat.write_tiled(path, n_events)
        kept.unlink(missing_ok=True)
        served = Served(path)
        for address in ("about:blank", served.address()):
            page.browser.open(address)
        page.wait(begun)
        if page.value("document.querySelector('#opening') !== null"):
            break
        served.close()
    words = page.value("document.querySelector('#opening')?.textContent || ''")
    expect(re.match(r"large\.dat: (reading|writing what was read), \d+ %Cancel$", words), f"told while it is read: {words!r}")
    expect(page.value(bar + " >= 0") and page.value("document.title").endswith("% large.dat"), f"{page.value(bar)} of the bar, {page.value('document.title')}")
    expect(page.wait("document.body.dataset.ready === '1' && !document.querySelector('#opening') && state.view === 'timeline'"), "it is not shown when it has been read")
    served.close()
    for n_events in (0, 0, 32_000_000, 64_000_000):  # until it is not read before Cancel comes
        if n_events:
            tracedat.write_tiled(path, n_events)
        kept.unlink(missing_ok=True)
        served = Served(path)
        for address in ("about:blank", served.address()):
            page.browser.open(address)
        page.wait(begun)
        page.value("[...document.querySelectorAll('#opening button')].find((each) => each.textContent === 'Cancel')?.click()")
        expect(page.wait("document.querySelector('.failed') !== null || document.body.dataset.ready === '1'"), f"neither ended nor shown: {page.value('document.body.innerText')[:300]}")
        said = page.value("[...document.querySelectorAll('.failed')].map((each) => each.textContent).join('; ')")
        if said:
            break
        expect(page.wait("document.body.dataset.ready === '1' && !document.querySelector('#opening') && state.view === 'timeline'"), "read before Cancel came, it is not shown")
        served.close()
    if not said:
        raise SystemExit("FAIL: Cancel always comes too late")
    status, left = served.process.wait(SECONDS), {each.name for each in path.parent.glob("large.dat*")}  # what it makes has a name when it is whole
    expect(said == "The reading was ended, and hpcviewer with it." and status == 130 and left <= {path.name, kept.name}, f"Cancel: {said}, {status}, left {left}")
    path.unlink()


# --- boxes -----------------------------------------------------------------------------------------------------------------------


def drawn_runs(page, row):
    """[from, to, key, run] of what is drawn of a row, in nanoseconds."""
    return page.value(f"""(() => {{ const of = timeParts.rows.pictures.find((each) => each.rows.has({row})), made = []; if (!of) return [];
        const each = (of.to - of.from) / of.width; const [begin, end] = of.rows.get({row});
        for (let i = begin; i < end; i++) if (of.run[i]) made.push([of.from + of.x[i] * each, of.from + (of.x[i] + of.n[i]) * each, of.keys[of.key[i]]?.name, of.run[i]]);
        return made; }})()""")


def since(t, begin, unknown):
    """What began before the recording or ends behind it has no time."""
    return unknown if t is None else t - begin


def check_boxes(page, runs, begin, dice):
    length = page.value("lengthNow()")
    for _ in range(N_WINDOWS):
        middle, span = dice.randrange(length), int(length / 10 ** dice.uniform(0, 4))
        show(page, f"from={max(0, middle - span // 2)};to={min(length, max(0, middle - span // 2) + span)}")
        at = page.value("[timeParts.rows.span.from, timeParts.rows.span.to, timeParts.rows.room]")
        pixel = (at[1] - at[0]) / at[2]
        for cpu in range(4):
            boxes = drawn_runs(page, cpu)
            own = [(since(run["from_ns"], begin, 0), since(run["to_ns"], begin, length), f"{run['comm']}:{run['tid']}") for run in runs if run["cpu"] == cpu]
            for start, end, name in own:  # what is two pixels wide has one that is all its own
                if start >= at[0] and end <= at[1] and end - start > 2.1 * pixel:
                    expect(any(key == name and low < end and high > start for low, high, key, _ in boxes), f"CPU {cpu}: {name} {start} to {end} is not drawn in {at}")
            for low, high, key, share in boxes:
                if share == 255:
                    expect(any(start <= low + pixel / 2 and end >= high - pixel / 2 for start, end, _ in own) or any(name == key for _, _, name in own),
                           f"CPU {cpu}: a box of {key} from {low} to {high}, and no run")
                expect(any(start <= high and end >= low for start, end, _ in own), f"CPU {cpu}: a box from {low} to {high}, and no run at all")


def check_ink(page):
    """A run of known place has its colour on the canvas, in the lower half of its row; markers have theirs on the layer."""
    show(page)
    page.value("timeParts.rows.view.scrollTop = 0")
    page.settle()
    found = page.value("""(() => { const rows = timeParts.rows, of = rows.pictures.find((each) => each.rows.has(0)), [begin, end] = of.rows.get(0);
        let best = begin; for (let i = begin; i < end; i++) if (of.run[i] === 255 && of.n[i] > of.n[best]) best = i;
        const dots = rows.canvas.width / rows.room, x = Math.floor((of.x[best] + of.n[best] - 1.5) * dots), y = Math.floor((rowTop(0) + 34 - 3) * dots);
        return [[...rows.canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3), of.keys[of.key[best]].colour, of.n[best]]; })()""")
    expect("rgb({}, {}, {})".format(*found[0]) == found[1], f"the box is {found}")


def check_hollow(page):
    """On rows of tasks what waits is a hollow box, green since it was woken and red while another task has the CPU; each event has a
    tick as high as the row."""
    show(page)
    found = page.value("""(async () => {
        const seen = [], hex = {8: [31, 138, 59], 16: [208, 49, 45]};
        for (const [flag, wanted] of Object.entries(hex)) {
            let best = null;
            for (const of of timeParts.rows.pictures) for (const [row, [begin, end]] of of.rows) if (streamsNow().text("kind", row) === "task")
                for (let i = begin; i < end; i++)
                    if ((of.flags[i] & 24) === Number(flag) && of.wait[i] === 255 && (!best || of.n[i] > best[1])) best = [row, of.n[i], of.x[i] * (of.to - of.from) / of.width + of.from, (of.to - of.from) / of.width];
            seen.push(best && [flag, wanted, best[0], Math.round(best[2]), Math.round(best[2] + best[1] * best[3])]);
        }
        return seen; })()""")
    for each in found:
        expect(each is not None, f"nothing waits: {found}")
        if not each:
            continue
        flag, wanted, row, start, end = each
        show(page, f"from={start - (end - start) // 2};to={end + (end - start) // 2};pin={row};show=tasks")
        counts = page.value(f"""(() => {{ const rows = timeParts.rows, dots = rows.canvas.width / rows.room, place = rows.rows.indexOf({row}), data = rows.canvas.getContext("2d"), wanted = {wanted};
            const high = Math.round(34 * dots), image = data.getImageData(0, Math.round((rowTop(place) - rows.top) * dots), rows.canvas.width, high).data; let upper = 0, lower = 0;
            for (let i = 0; i < image.length; i += 4) if (wanted.every((each, k) => Math.abs(image[i + k] - each) < 12)) (i / 4 / rows.canvas.width < high / 2 - 1 ? upper++ : lower++, 0);
            return [upper, lower]; }})()""")
        expect(counts[1] > 40 and counts[0] < counts[1] / 4, f"what waits in row {row} (flag {flag}) has {counts} pixels of {wanted} above and below the middle")
    show(page, "sort=number")
    page.value("timeParts.rows.view.scrollTop = 0")
    page.settle()
    ticks = page.value("""(() => { const rows = timeParts.rows, of = rows.pictures.find((each) => each.rows.has(0)), [begin, end] = of.rows.get(0), dots = rows.canvas.width / rows.room, brush = rows.canvas.getContext("2d");
        const paper = [...brush.getImageData(2, Math.round((rowTop(0) + 34 + 8) * dots), 1, 1).data].join(); let n = 0, dark = 0;
        for (let i = begin; i < end; i++) if (of.events[i] && of.x[i] < of.width - 1) { n++; dark += [...brush.getImageData(Math.floor((rows.xOf(of.from) + (of.x[i] + 0.5) * (of.to - of.from) / of.width * rows.room / (rows.span.to - rows.span.from)) * dots), Math.round((rowTop(0) + 3) * dots), 1, 1).data].join() !== paper; }
        return [n, dark]; })()""")
    expect(ticks[0] > 50 and ticks[1] == ticks[0], f"of {ticks[0]} places with events {ticks[1]} have ticks in the upper half")


# --- list and panels -------------------------------------------------------------------------------------------------------------


def micro(ns):
    """Seconds with six digits, rounded as trace-cmd does."""
    us = (ns + 500) // 1000
    return f"{us // 1000000}.{us % 1000000:06d}"


def check_list(page, path, begin):
    """The list is hpcquery's, row by row; a choice there moves the marker in the rows, and one in the rows the mark of the list."""
    events = json.loads(subprocess.run([BUILD / "hpcquery", "sched", "events", "--top", "0", "--json", path], capture_output=True, text=True, check=True).stdout)["rows"]
    length = page.value("lengthNow()")
    show(page, f"from={length // 3};to={length // 2}")
    inside = [each for each in events if length // 3 <= each["time_ns"] - begin <= length // 2]
    expect(page.wait(f"timeParts.list.total === {len(inside)} && document.querySelector('.time-list .grid-row') !== null", 20), f"the list has {page.value('timeParts.list.total')} events, not {len(inside)}")
    for scroll in (0, 22 * (len(inside) // 2), 22 * len(inside)):
        page.value(f"timeParts.list.grid.element.scrollTop = {scroll}")
        page.settle()
        page.wait("[...document.querySelectorAll('.time-list .grid-row')].every((each) => !each.textContent.includes('\u2026'))", 20)
        rows = page.value("[...document.querySelectorAll('.time-list .grid-row')].map((each) => [Number(each.dataset.row), ...[...each.children].map((cell) => cell.textContent)])")
        for place, index, cpu, when, _, pid, _, event, *_ in rows:
            own = inside[place]
            expect((int(cpu), int(pid), when, event) == (own["cpu"], own["tid"], micro(own["time_ns"]), own["event"]), f"event {place} ({index}) is {cpu} {pid} {when} {event}, not {own}")
    page.value("timeParts.list.grid.element.scrollTop = 0")
    page.settle()
    page.value("document.querySelectorAll('.time-list .grid-row')[5].click()")
    drawn(page)
    chosen = words(page)
    expect(chosen["at"] == inside[5]["time_ns"] - begin == chosen["a"] and chosen["row"] == inside[5]["cpu"], f"the sixth event {inside[5]} chooses {chosen}")
    far = inside[len(inside) // 2]
    page.value(f"chooseTime({far['cpu']}, {far['time_ns'] - begin})")
    drawn(page)
    expect(page.wait("document.querySelector('.time-list .grid-row.active') !== null", 20), "the list marks nothing")
    page.wait(f"timeParts.list.timeOfMarked() === {far['time_ns'] - begin}", 20)
    expect(page.value("timeParts.list.timeOfMarked()") == far["time_ns"] - begin, f"the list marks {page.value('timeParts.list.marked')}")
    page.value("(() => { const word = document.querySelector('.time-list input[type=search]'); word.value = 'test/mark'; })()")
    page.value("timeParts.list.find(1)")
    drawn(page)
    page.wait(f"timeWords().at > {far['time_ns'] - begin}", 20)
    later = [each["time_ns"] - begin for each in inside if each["event"] == "test/mark" and each["time_ns"] > far["time_ns"]]
    expect(later and words(page)["at"] == later[0], f"the next test/mark is at {words(page)['at']}, not {later[:1]}")
    earlier = [each for each in inside if each["event"] == "sched/sched_waking" and each["time_ns"] < later[0] + begin]
    for text, step, wanted in (("SCHED_waking", -1, earlier[-1]), (micro(far["time_ns"]), 1, far), (f"#{far['index']}", 1, far)):
        page.value(f"timeParts.list.word.value = {json.dumps(text)}; timeParts.list.marked = timeParts.list.marked < 0 || {step} < 0 ? timeParts.list.marked : -1; timeParts.list.find({step})")
        drawn(page)
        expect(page.wait(f"timeWords().at === {wanted['time_ns'] - begin}", 20), f"{text} is found at {words(page)['at']}, not {wanted}")
    page.value("timeParts.list.word.value = 'zzz'; timeParts.list.find(1)")
    expect(page.wait("timeParts.list.note.textContent === 'nothing behind this has \"zzz\"'", 20), f"of zzz is said {page.value('timeParts.list.note.textContent')}")


def check_panel(page, runs, begin):
    """The panel says of a stay what sched runs says, and of the window the sums of its boxes."""
    run = max((each for each in runs if each["from_ns"] and each["to_ns"] and each["latency_ns"] is not None), key=lambda each: each["running_ns"])
    row, at = run["cpu"], (run["from_ns"] + run["to_ns"]) // 2 - begin
    show(page, f"row={row};at={at}")
    page.wait(f"document.querySelector('.time-stay dd')?.textContent === 'running' && document.querySelector('.time-stay').innerText.includes({json.dumps(run['name'])})", 20)
    facts = page.value("Object.fromEntries([...document.querySelectorAll('.time-stay dt')].map((each) => [each.textContent, each.nextElementSibling.textContent]))")
    expect(facts["task"] == run["name"] and facts["state"] == "running" and facts["from"] == f"{run['from_ns'] // 10**9}.{run['from_ns'] % 10**9:09d}" and facts["then"] == run["then"], f"{facts} is not {run}")
    seats = [{"stream": 0, "number": run["cpu"], "node": 3}]
    nodes = page.value(f"[[], {json.dumps(seats)}, [{{stream: 0, number: -1}}]].map((topology) => nodeText({{head: {{topology}}, number: () => 0}}, 0, {run['cpu']}))")
    expect(facts["node"] == nodes[0] and "takes a topology" in nodes[0] and nodes[1:] == ["NUMA node 3", "not in the topology"], f"nodes {facts['node']}, {nodes}")
    before = next((each for each in runs if each["cpu"] == run["cpu"] and each["to_ns"] == run["from_ns"]), None)
    wanted = before and (("displaced", before["name"]) if before["then"] == "preempted" else ("before it", f"{before['name']}, then {before['then']}"))
    expect(not wanted or facts.get(wanted[0]) == wanted[1], f"{facts} came behind {before}")
    page.value("location.hash = location.hash.replace('layout=split:80,', 'layout=')")
    drawn(page)
    seen = page.value("""[".time-stay dd", ".time-list .grid-head > :nth-child(8)"].map((each) => { const box = document.querySelector(each).getBoundingClientRect(), panel = document.getElementById("panel-timeline").getBoundingClientRect();
        return [box.top >= panel.top && box.bottom <= panel.bottom, box.right <= panel.right && box.width > 100]; })""")
    expect(seen[0] == [True, True] and seen[1][1], f"what is said of a choice, and the info of events, are out of sight: {seen}")
    sums = {}
    for each in runs:
        sums[each["name"]] = sums.get(each["name"], 0) + (each["running_ns"] or 0)
    heaviest = max(sums, key=sums.get)
    page.wait(f"document.querySelector('.time-window table td')?.textContent === {json.dumps(heaviest)}", 20)
    names = page.value("[...document.querySelectorAll('.time-window table')[0].querySelectorAll('tbody:not(.head) tr')].map((each) => each.children[0].textContent)")
    expect(names and names[0] == heaviest, f"the window has {names}, runs {sums}")
    page.value("[...document.querySelectorAll('.time-stay button')].find((each) => each.closest('dd').previousElementSibling.textContent === 'from').click()")
    drawn(page)
    expect(words(page)["at"] == run["from_ns"] - begin, f"a jump to the begin of the stay goes to {words(page)}")


def check_strip(page):
    """The strip above is as high as the CPUs are busy, in a page in a file too, whose picture has the tasks as well."""
    busy = page.value("(() => { const streams = streamsNow(); return [0, 1, 2, 3].reduce((sum, row) => sum + streams.number('run_ns', row), 0) / 4 / lengthNow(); })()")
    drawn_busy = page.value("stripShares(wholePicture, 800).reduce((sum, each) => sum + each, 0) / 800")
    expect(abs(drawn_busy - busy) < 0.02, f"the strip has CPUs busy for {drawn_busy}, not {busy}")


def check_command(page, path):
    show(page, "from=1000000;to=2000000")
    seen, wanted = page.value("commands()[0]"), [page.value(f"clockText(streamsNow(), {t})") for t in (1000000, 2000000)]
    expect(seen == f"hpcquery sched runs --from={wanted[0]} --to={wanted[1]} {path}", f"the command is {seen}")
    done = subprocess.run([BUILD / "hpcquery", *seen.split()[1:]], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{seen}: {done.stderr}")


def check_first_view(page):
    """A recording whose samples are the scheduler's events has nothing to show but its time line."""
    for names, functions, alone in ((["<not data-centric>"], 1, True), ([], 0, True), (["a", "<not data-centric>"], 1, False)):
        found = page.value(f"isTimeAlone({{vars: {{n: {len(names)}, text: (key, i) => {json.dumps(names)}[i]}}, functions: {{n: {functions}}}}}, streamsNow())")
        expect(not page.value("document.querySelector('.list').checkVisibility()"), "the list of nothing is shown")
        expect(found == alone, f"with {names} and {functions} functions the time line is {'' if found else 'not '}all there is")


def check_legend(page):
    """Rows of CPUs and of tasks have different colours where nobody chose: each has its part, and marks are explained."""
    show(page)
    said = page.value("document.querySelector('.time-legend').textContent")
    expect("On CPUs:" in said and "On tasks:" in said and "task 1:101" in said.split("On tasks:")[0] and "CPU 1" in said.split("On tasks:")[-1] and "not known" in said, f"the legend says: {said}")


# --- what people do --------------------------------------------------------------------------------------------------------------


def press(page, key, code=""):
    page.value(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: {json.dumps(key)}, code: {json.dumps(code)}, bubbles: true, cancelable: true}}))")
    drawn(page)
    return words(page)


def check_keys(page):
    length = page.value("lengthNow()")
    first, last = length // 4, length // 2
    show(page, f"from={first};to={last};row=1;at={(first + last) // 2}")
    page.value("timeParts.rows.view.focus()")
    span = last - first
    for keys, back, grows in ((("w", "KeyW"), ("s", "KeyS"), 0.5), (("+", ""), ("-", ""), 0.5)):
        near = press(page, *keys)
        expect(abs((near["to"] - near["from"]) - grows * span) < 4, f"{keys} shows {near}")
        again = press(page, *back)
        expect(abs(again["from"] - first) < 4 and abs(again["to"] - last) < 4, f"{back} shows {again}")
    before, at = words(page), first + span // 4
    page.value(f"wantTime({{at: {at}}}); timeParts.rows.zoom(0.5); timeParts.rows.zoom(0.5)")  # within one frame
    drawn(page)
    near = words(page)
    expect(abs((near["to"] - near["from"]) - span / 4) < 4 and abs(4 * (at - near["from"]) - (near["to"] - near["from"])) < 16, f"two zooms at {at} show {near}")
    page.value(f"wantTime({{from: {before['from']}, to: {before['to']}, at: {before['at']}}})")
    drawn(page)
    for key, code, part in (("d", "KeyD", 0.25), ("a", "KeyA", -0.25), ("ArrowRight", "", 0.1), ("ArrowLeft", "", -0.1)):
        before = words(page)
        now = press(page, key, code)
        expect(abs(now["from"] - before["from"] - part * span) < 4 and abs(now["to"] - now["from"] - span) < 4, f"{key} goes to {now}")
    expect(press(page, "ArrowDown")["row"] == 2 and press(page, "ArrowUp")["row"] == 1, "the arrows do not go from row to row")
    before = words(page)["at"]
    press(page, "n")
    page.wait(f"timeWords().at > {before}", 20)
    after = words(page)
    expect(after["at"] > before and after["a"] == after["at"], f"n: {before}, then {after}")
    press(page, "p")
    page.wait(f"timeWords().at < {after['at']}", 20)
    expect(words(page)["at"] < after["at"], f"p: {words(page)}")
    marked = press(page, "m")
    expect(marked["on"] == "b" and press(page, "m")["on"] == "a", f"m: {marked}")
    page.value(f"wantTime({{a: {first + span // 4}, b: {first + span // 2}, on: 'a'}})")
    drawn(page)
    expect(f"({span // 2 - span // 4} ns)" in page.value("document.querySelector('.time-delta').textContent"), f"the delta is {page.value('document.querySelector(`.time-delta`).textContent')}")
    framed = press(page, "f")
    expect(framed["from"] < first + span // 4 and first + span // 2 < framed["to"] < last, f"f shows {framed}")
    expect(abs(press(page, "Backspace")["to"] - last) < 4, f"Backspace shows {words(page)}")
    expect(press(page, "t")["off"] == "tree" and press(page, "t")["off"] == "", "t does not switch the topology")
    expect(press(page, "l")["off"] == "list" and page.value("document.querySelector('.time-list').hidden") and press(page, "l")["off"] == "", "l does not switch the list")
    expect(press(page, "x")["hide"] == [1] and "1" not in [row for row, _, _ in tops_of(page, ".time-name")], f"x hides {words(page)['hide']}")
    page.value("[...document.querySelectorAll('.body-timeline button')].find((each) => each.textContent === 'hidden (1)').click()")
    drawn(page)
    expect(words(page)["hide"] == [], "hidden (1) does not bring the row back")
    page.value("timeParts.rows.view.focus()")
    press(page, "/")
    expect(page.value("document.activeElement.type") == "text", "/ does not go to the search of rows")
    page.value("document.activeElement.value = 'task 3'; document.activeElement.dispatchEvent(new Event('input', {bubbles: true}))")
    drawn(page)
    names = page.value("[...document.querySelectorAll('.time-name')].map((each) => each.title)")
    expect(names == ["task 3:103"], f"rows with 'task 3': {names}")
    for find, wanted in (("k 3, 105,1-2", ["CPU 1", "CPU 2", "task 3:103", "task 5:105"]), ("zzz", [])):
        page.value(f"wantTime({{find: {json.dumps(find)}, sort: 'number'}})")
        drawn(page)
        names = page.value("[...document.querySelectorAll('.time-name')].map((each) => each.title)")
        expect(names == wanted and page.value("timeParts.words.textContent === NO_ROW") == (not wanted), f"rows with {find}: {names}")
    page.value("wantTime({find: '', sort: ''})")
    drawn(page)
    page.value("timeParts.rows.view.focus()")
    whole = press(page, "0")
    expect(whole["from"] is None and whole["to"] is None, f"0 shows {whole}")


def check_pointer(page):
    """Drag zooms to what it covers, with Shift it measures; Ctrl and wheel zoom at the pointer; a click chooses, and moves the marker."""
    show(page)
    left, top, width = page.value("(() => { const box = timeParts.rows.layer.getBoundingClientRect(); return [box.left, box.top, box.width]; })()")
    length, y = page.value("lengthNow()"), top + 30

    def mouse(kind, part, **more):
        page.browser.call("Input.dispatchMouseEvent", type=kind, x=left + part * width, y=y, **more)

    def drag(start, end, modifiers=0):
        mouse("mousePressed", start, button="left", clickCount=1, modifiers=modifiers)
        for part in (start + (end - start) / 2, end):
            mouse("mouseMoved", part, button="left", modifiers=modifiers)
        mouse("mouseReleased", end, button="left", clickCount=1, modifiers=modifiers)
        drawn(page)
        return words(page)

    one = 2.5 * length / width
    mouse("mouseMoved", 0.5)
    page.wait("timeParts.words.textContent.includes(' s, CPU 0: ')", 20)
    said = page.value("timeParts.words.textContent")
    expect(said.startswith(page.value("clockText(streamsNow(), timeParts.rows.pointer)") + " s, CPU 0: "), f"under the pointer is {said}")
    zoomed = drag(0.25, 0.5)
    expect(abs(zoomed["from"] - length / 4) < one and abs(zoomed["to"] - length / 2) < one, f"a drag over the second quarter shows {zoomed}")
    mouse("mouseWheel", 0.5, deltaX=0, deltaY=-120, modifiers=2)
    drawn(page)
    nearer = words(page)
    expect(nearer["to"] - nearer["from"] < 0.75 * (zoomed["to"] - zoomed["from"]) and abs(nearer["to"] + nearer["from"] - zoomed["to"] - zoomed["from"]) < 2 * one, f"a wheel shows {nearer}")
    measured = drag(0.2, 0.6, 8)
    span = nearer["to"] - nearer["from"]
    expect(abs(measured["a"] - nearer["from"] - 0.2 * span) < one and abs(measured["b"] - nearer["from"] - 0.6 * span) < one, f"Shift and drag: {measured}")
    mouse("mousePressed", 0.5, button="left", clickCount=1)
    mouse("mouseReleased", 0.5, button="left", clickCount=1)
    drawn(page)
    chosen = words(page)
    expect(chosen["row"] == 0 and abs(chosen["at"] - nearer["from"] - span / 2) < one and chosen["a"] == chosen["at"], f"a click chooses {chosen}")


def check_state(page):
    """The address has it all: opened anew it shows the same rows, window, markers and colours, and Back the ones before."""
    length = page.value("lengthNow()")
    show(page)
    text = f"from={length // 3};to={length // 2};a={length // 3 + 10};b={length // 3 + 5000};on=b;by=cpu;hide=1;pin=5;sort=run;row=0;at={length // 3 + 10};off=compact"
    show(page, text)
    seen = page.value("[location.hash, JSON.stringify(timeWords()), [...document.querySelectorAll('.time-name')].map((each) => each.title), document.querySelector('.time-delta').textContent]")
    page.value("new Promise((done) => { addEventListener('popstate', () => done(1), {once: true}); history.back(); })")
    drawn(page)
    expect(page.value("state.time") == "", f"Back shows {page.value('state.time')}")
    page.value("new Promise((done) => { addEventListener('popstate', () => done(1), {once: true}); history.forward(); })")
    drawn(page)
    page.value("document.body.dataset.ready = ''; setTimeout(() => location.reload(), 0)")
    page.wait("document.body?.dataset.ready === '1'", 20)
    drawn(page)
    again = page.value("[location.hash, JSON.stringify(timeWords()), [...document.querySelectorAll('.time-name')].map((each) => each.title), document.querySelector('.time-delta').textContent]")
    expect(seen == again, f"a link shows {again}, not {seen}")
    expect(seen[2][0] == "task 1:101" and "CPU 1" not in seen[2], f"pinned and hidden rows: {seen[2]}")


def check_recordings(page):
    """Couplebreak on and off in the dialog: twins come and go, and all else stays."""
    show(page, f"from={page.value('lengthNow()') // 3};to={page.value('lengthNow()') // 2};row=4;pin=5")
    before = words(page), page.value("[...document.querySelectorAll('.time-name')].map((each) => each.title)")
    ink = "timeParts.rows.canvas.toDataURL()"
    never = page.value(ink)

    def switch(is_on):
        page.value("[...document.querySelectorAll('.body-timeline button')].find((each) => each.textContent.startsWith('Recordings')).click()")
        expect(page.value("document.getElementById('offer').open && document.getElementById('offer').textContent.includes('trace.dat')"), "no dialog")
        page.value(f"(() => {{ const box = document.querySelector('#offer input[type=checkbox]'); if (box.checked !== {str(is_on).lower()}) box.click(); }})()")
        page.value("[...document.querySelectorAll('#offer button')].find((each) => each.textContent === 'Apply').click()")
        expect(page.wait(f"!document.getElementById('offer').open && streamsNow() && streamsNow().head.streams[0].couplebreak === {str(is_on).lower()}", 20), f"couplebreak {is_on}: {page.value('document.getElementById(`offer`).textContent')}")
        drawn(page)
        page.wait("timeParts.list.total > 0 && timeParts.list.key !== 'none'", 20)
        if is_on:
            page.wait("timeParts.list.total > 0 && timeParts.list.pieces.get(0)", 20)
            joined = page.value("(() => { for (let i = 0; i < Math.min(timeParts.list.total, 200); i++) if (timeParts.list.originOf(i)) return timeParts.list.originOf(i); return null; })()")
            jumped = page.value("""(() => { const list = timeParts.list, choose = list.choose; let i = 0; while (!list.originOf(i)) i++;
                list.choose = () => {}; list.onChoose(i, new KeyboardEvent("keydown", {key: "Enter"})); list.choose = choose; return [i, list.marked, list.grid.at]; })()""") if joined else None
            expect(jumped and jumped[1] == jumped[2] == jumped[0] - 1, f"Enter at a twin does not go to its origin: {jumped}")
            expect(joined and joined["at"] == joined["to"] and joined["row"] != joined["toRow"], f"no twin of the list leads to its origin: {joined}")
        return sum(page.value("[...timeParts.rows.pictures.flatMap((each) => [...each.flags])].map((each) => (each & TWIN ? 1 : 0))"))

    expect(switch(True) > 0 and page.value(ink) != never, "couplebreak shows no twin")
    expect(words(page) == before[0], f"couplebreak goes to {words(page)}")
    expect(switch(False) == 0 and (words(page), page.value("[...document.querySelectorAll('.time-name')].map((each) => each.title)")) == before, "without couplebreak not all is as before")
    expect(page.value(ink) == never, "off is not drawn as never on")


def check_session(page, path, begin):
    """A session that the page saves: hpcquery finds the window in it, and hpcviewer opens the same view."""
    length = page.value("lengthNow()")
    text = f"from={length // 3};to={length // 2};a={length // 3 + 10};b={length // 3 + 5000};on=b;by=cpu;hide=1;pin=5;events=sched/sched_waking"
    show(page, text)
    seen = page.value("[JSON.stringify(timeWords()), rowsShown(streamsNow()).map((row) => streamsNow().text('name', row))]")
    saved = page.value("""(async () => { const blobs = [], make = URL.createObjectURL; URL.createObjectURL = (blob) => { blobs.push(blob); return make.call(URL, blob); };
        [...document.querySelectorAll('button')].find((each) => each.textContent === 'Session').click();
        while (!blobs.length) await new Promise((done) => setTimeout(done, 20));
        URL.createObjectURL = make; return blobs[0].text(); })()""")
    file = path.with_name("saved.session")
    file.write_text(saved)
    rows = json.loads(subprocess.run([BUILD / "hpcquery", "sched", "events", "--session", file, "--top", "0", "--json"], capture_output=True, text=True, check=False).stdout or '{"rows": []}')["rows"]
    times = [row["time_ns"] - begin for row in rows]
    expect(rows and {row["event"] for row in rows} == {"sched/sched_waking"} and length // 3 <= times[0] and times[-1] <= length // 2, f"events of the session: {len(rows)}, {times[:1]} to {times[-1:]}")
    served = Served("--session", file)
    try:
        expect(page.open(served.address()), "the session does not open")
        page.wait("state.view === 'timeline' && streamsNow() && timeWords().by === 'cpu'", 20)
        drawn(page)
        again = page.value("[JSON.stringify(timeWords()), rowsShown(streamsNow()).map((row) => streamsNow().text('name', row))]")
        expect(again == seen, f"a session shows {again}, not {seen}")
    finally:
        served.close()


def check_saved(page, path, begin):
    """What is saved: the events of the window as hpcquery has them, and a picture that is not blank; busy shares on hover."""
    length = page.value("lengthNow()")
    show(page, f"from={length // 3};to={length // 2}")
    page.wait(f"timeParts.list.span.from === {length // 3} && timeParts.list.total > 0", 20)
    found = list(csv.DictReader(page.value("timeParts.list.csv()").splitlines()))
    wanted = json.loads(subprocess.run([BUILD / "hpcquery", "sched", "events", "--top", "0", "--json", "--from", f"{begin + length // 3}ns", "--to", f"{begin + length // 2}ns", path],
                                       capture_output=True, text=True, check=True).stdout)["rows"]
    expect([(int(row["index"]), row["event"], row["info"]) for row in found] == [(row["index"], row["event"], row["info"]) for row in wanted], f"CSV has {len(found)} events, not {len(wanted)}")
    saved = page.value("""(async () => { const blobs = [], make = URL.createObjectURL; URL.createObjectURL = (blob) => { blobs.push(blob); return make.call(URL, blob); };
        [...document.querySelectorAll('button')].find((each) => each.textContent === 'trace.dat').click();
        while (!blobs.length) await new Promise((done) => setTimeout(done, 20));
        URL.createObjectURL = make; return [...new Uint8Array(await blobs[0].arrayBuffer())]; })()""")
    with tempfile.NamedTemporaryFile(suffix=".dat") as file:
        subprocess.run([BUILD / "hpcquery", "sched", "trace-dat", "-o", file.name, "--from", f"{begin + length // 3}ns", "--to", f"{begin + length // 2}ns", path], check=True)
        expect(bytes(saved) == pathlib.Path(file.name).read_bytes(), f"the page saves {len(saved)} bytes, not those of hpcquery sched trace-dat")
    shades = page.value("(() => { const canvas = pictureOfRows(), data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; return new Set(new Uint32Array(data.buffer)).size; })()")
    expect(shades > 20, f"the picture has {shades} colours")
    rows = page.value("timeParts.rows.rows.slice(0, 4)")
    shares = [page.value(f"timeParts.rows.busyShare([{row}])") for row in rows]
    cpus = json.loads(subprocess.run([BUILD / "hpcquery", "sched", "cpus", "--json", "--from", f"{begin + length // 3}ns", "--to", f"{begin + length // 2}ns", path], capture_output=True, text=True, check=True).stdout)["rows"]
    for share, row in zip(shares, cpus, strict=False):
        busy = row.get("busy_ns", row.get("run_ns"))
        expect(busy is None or abs(share - busy / (length // 2 - length // 3)) < 0.02, f"a CPU is busy for {share}, not {busy} of {length // 2 - length // 3}")
    show(page)


def check_filters(page):
    """What chooses tasks and types of the list."""
    show(page)
    page.wait("timeParts.list.total > 0", 20)
    whole = page.value("timeParts.list.total")
    show(page, "events=sched/sched_waking;tasks=task 3")
    expect(page.wait(f"timeParts.list.total > 0 && timeParts.list.total < {whole} && timeParts.list.pieces.get(0)", 20), "the list is not filtered")
    kinds = page.value("(() => { const answer = timeParts.list.pieces.get(0); return [...new Set(Array.from({length: answer.n}, (_, i) => answer.text('event', i) + ' ' + answer.text('comm', i)))]; })()")
    expect(kinds == ["sched/sched_waking task 3"], f"the filtered list has {kinds}")
    expect(page.value("[...document.querySelectorAll('.time-filter')].map((each) => each.value)") == ["task 3", "", "sched/sched_waking"], "the filters are not seen")
    show(page)


def check_looks(page, axe):
    for scheme in ("light", "dark"):
        page.browser.scheme(scheme)
        for width in (1400, 390):
            page.browser.size(width, 900)
            show(page, "row=1;at=9000;a=100;b=70000")
            for found in viewer.violations(page, axe) if axe else []:
                expect(False, f"{scheme}, {width}: {found[:700]}")
            wide = page.value("document.documentElement.scrollWidth - innerWidth")
            expect(wide <= 0, f"at {width} pixels the time line is {wide} pixels too wide")
    page.browser.scheme("light")
    page.browser.size(1400, 900)


def check_steps(page, dice, n):
    """Random actions: the view and the address agree after each, and nothing is said on the console but what a recording cannot answer."""
    show(page)
    page.value(viewer.STEPS + "0")
    page.browser.troubles.clear()
    done = []
    for _ in range(n):
        if page.value("state.view !== 'timeline'"):
            show(page)
        done.append(page.step(dice))
        page.settle()
        expect(page.are_states_one(), f"after {done[-4:]}: {page.states()}")
    loud = [each for each in page.browser.troubles if "Failed to load resource" not in each]
    expect(not loud, f"after {done[-6:]}: {loud[:2]}")
    page.browser.scheme("light")


# --- files -----------------------------------------------------------------------------------------------------------------------


def check_file(page, path, scratch):
    file = scratch / "time.html"
    done = subprocess.run([BUILD / "hpcviewer", "-o", file, path], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"hpcviewer -o: {done.stderr}")
    if done.returncode:
        return
    page.open(f"file://{file}")
    show(page)
    names = page.value("[...document.querySelectorAll('.time-name')].map((each) => each.title)")
    expect(names[:2] == ["CPU 0", "CPU 1"], f"rows of the file: {names}")
    check_ink_of_file = page.value("timeParts.rows.pictures.length > 0 && timeParts.rows.pictures[0].rows.size > 3")
    expect(check_ink_of_file, "the file has no picture")
    check_strip(page)
    show(page, "row=0;at=9000")
    said = page.value("document.querySelector('.time-stay').textContent")
    expect(f"hpcviewer {path}" in said, f"a choice in the file says: {said}")
    outside = [address for address in page.browser.loads if not address.startswith(("file://", "about:", "data:", "blob:"))]
    expect(not outside and not page.browser.troubles, f"the file loads {outside}, says {page.browser.troubles[:3]}")


def check_without(page, scratch):
    """A database without recordings: no script of the time line, and its tab says why."""
    database, file = scratch / "database", scratch / "plain.html"
    m.write_database(database, json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8")))
    subprocess.run([BUILD / "hpcviewer", "-o", file, database], capture_output=True, check=True)
    text = file.read_text(encoding="utf-8")
    expect('id="time-code"' not in text and "time-view" not in text, "a page without recordings carries the time line")
    page.open(f"file://{file}", "view=timeline")
    page.settle()
    expect("hpcrun" in page.value("document.getElementById('panel-timeline').innerText"), "the tab does not say how to record")


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch_name:
        scratch = pathlib.Path(scratch_name)
        page = viewer.opened(scratch / "profile")
        axe = viewer.axe(scratch / "npm")
        if not axe:
            print("axe-core is not to be had from npm: it is not asked")
        path = recording(scratch / "trace.dat", 7)
        runs = json.loads(subprocess.run([BUILD / "hpcquery", "sched", "runs", "--top", "0", "--json", path], capture_output=True, text=True, check=True).stdout)["rows"]
        served = Served(path)
        try:
            expect(page.open(served.address()), f"it does not open: {page.value('document.body.innerText')[:300]}")
            page.wait("state.view === 'timeline'", 20)
            expect(page.value("state.view") == "timeline", "a recording alone does not open its time line")
            show(page)
            begin = int(page.value("String(streamsNow().head.from)").replace(".", ""))
            for check in (check_rows, check_strip, check_first_view, check_legend, check_blocks, check_nested, check_ink, check_hollow, check_keys, check_pointer):
                check(page)
            check_boxes(page, runs, begin, random.Random(3))
            check_command(page, path)
            check_list(page, path, begin)
            check_panel(page, runs, begin)
            check_recordings(page)
            check_dialog(page, path, scratch, axe)
            check_filters(page)
            check_saved(page, path, begin)
            check_looks(page, axe)
            check_state(page)
            check_steps(page, random.Random(5), STEPS)
            check_session(page, path, begin)
        finally:
            served.close()
        check_two(page, path, scratch)
        check_guest(page)
        check_many(page, scratch)
        check_opening(page, scratch)
        check_file(page, path, scratch)
        check_without(page, scratch)
        page.close()
    for failure in failures[:25]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


main()
