#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hpcviewer on a terminal: screens of every view at two sizes, after a resize, without colours and in the locale C, against
terminal.txt; lines for screen readers; names that hold escape sequences; signals, and what they leave of the terminal; and that
after each of many random actions the numbers in the list are those of the hpcquery line that is copied there.
LOCUS_TERMINAL_STEPS: how many (60). --write makes terminal.txt anew."""
import http.client
import json
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import terminal  # noqa: E402
import tracedat  # noqa: E402

GOLDEN = SOURCE / "tests" / "golden" / "terminal.txt"
HEAD = "# SPDX-License-Identifier: BSD-3-Clause\n# Screens of hpcviewer --tui, which terminal.py --write makes: == NAME, and its lines.\n"
VIEWS = ["Answer", "Variables", "Variable", "Tree", "Source", "Matrix", "Time line", "Compare", "Trust"]
STEPS = int(os.environ.get("LOCUS_TERMINAL_STEPS", "60"))
SIZES = [(80, 24), (120, 40)]
APP, LIBRARY = "/nowhere/app", "/nowhere/libmore.so"
HOSTILE = "\x1b]0;taken\x07\x1b[2J\x9b31m\u202e\u200b\u6f22\u5b57e\u0301\r\n"
failures, screens = [], {}


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


# --- inputs -------------------------------------------------------------------------------------------------------------


def measured(directory, more):
    """Variables of four threads of two ranks on call paths; more: what one of them costs more."""
    start = [(APP, 0x1010)]
    for k in range(4):
        profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000), ("FAULTS", m.INT, 1)], rank=k // 2, thread=k % 2, pid=100 + k // 2)
        for i in range(4):
            count = 50 + 70 * i + 30 * k + (more if i == 1 else 0)
            variable = m.by_address("DATACENTRIC_Static", APP, 0x404040 + 0x1000 * i, "static", f"grid_{i}", 4096 << i, [[k, 0, count]])
            for path in ([(APP, 0x2020), (APP, 0x5000 + 16 * i)], [(LIBRARY, 0x3030 + 16 * i)]):
                profile.sample(start + path, {0: count, 1: k % 2}, variable)
        profile.sample(start + [(APP, 0x2030)], {0: 110 + k}, m.heap(start + [(APP, 0x3333)], size=1 << 16, cpus=[[k, 0, 110 + k]]))
        profile.write(directory)


def run(tool, *arguments, cwd=None, statuses=(0,)):
    result = subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, check=False, text=True, cwd=cwd, env={**os.environ, "COLUMNS": "4000"})
    expect(result.returncode in statuses, f"{tool} {arguments}: status {result.returncode}: {result.stderr[:500]}")
    return result.stdout


def recording(path):
    dice, out = random.Random(7), tracedat.Recording(2)
    out.tasks, out.clock = {100 + i: f"task {i}" for i in range(3)}, "local [mono]\0"
    running, t = [0] * 2, 5_000_000
    for _ in range(400):
        t += dice.choice([1000, 40_000, 900_000])
        cpu, task = dice.randrange(2), 100 + dice.randrange(3)
        if task not in running and dice.random() < 0.3:
            out.waking(cpu, t, running[cpu], task, dice.randrange(2))
        elif task not in running:
            task = 0 if dice.random() < 0.3 else task
            if task != running[cpu]:
                out.switch(cpu, t, running[cpu], task, prev_state=dice.choice([0, 1]))
                running[cpu] = task
    path.write_bytes(out.version_6())


def with_sources(database, text):
    """A copy of each file that the database names."""
    for name in {row["file"] for row in json.loads(run("hpcquery", "lines", "--json", database))["lines"] if row["line"]}:
        copy = database / "src" / name.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("".join(f"\tx[{i}] = {text}; /* line {i} of {pathlib.PurePath(name).name} */\n" for i in range(1, 301)), encoding="utf-8")


def make_inputs(scratch):
    data = json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8"))
    m.write_database(scratch / "minicg", data)
    with_sources(scratch / "minicg", "y[k] + 1")
    data["strings"] = [text + HOSTILE if i and not text.startswith(("<", "/")) else text for i, text in enumerate(data["strings"])]
    data["command"] = data["program"] = "/tmp/" + HOSTILE
    data["notes"].append("A note on " + HOSTILE)
    m.write_database(scratch / "hostile", data)
    with_sources(scratch / "hostile", "\x1b[31m\x1b]0;taken\x07\u6f22")
    for name, more in (("before", 0), ("after", 200)):
        (scratch / name).mkdir()
        measured(scratch / name, more)
        run("hpcprof", "-o", scratch / f"{name}-db", scratch / name)
    recording(scratch / "trace.dat")


def opened(scratch, *words, size=(80, 24), env=None, option="--tui"):
    screen = terminal.Terminal([BUILD / "hpcviewer", option, *words], *size, env=env, cwd=scratch)
    expect(screen.wait("q quit") or size[0] < 80, f"{words} at {size}: no screen comes: {screen.lines()[:4]}")
    return screen


def quit_it(name, screen):
    screen.write("q")
    status = screen.end()
    expect(status == 0, f"{name}: ends with {status}")
    expect(screen.is_restored(), f"{name}: the terminal is not as it was")
    expect(not screen.screen.unknown, f"{name}: sends {screen.screen.unknown[:3]}")
    screen.close()


# --- screens ------------------------------------------------------------------------------------------------------------


def keep(name, screen):
    screens[name] = screen.lines()


def check_views(scratch):
    """Every view, on the input that has something to show there."""
    for size in SIZES:
        name = "{}x{}".format(*size)
        screen = opened(scratch, "minicg", size=size)
        for number in (1, 2, 3, 4, 5, 9):
            screen.press(str(number))
            keep(f"{VIEWS[number - 1]} {name}", screen)
        screen.press("4", "t")
        keep(f"Tree from below {name}", screen)
        screen.press("t")
        keep(f"Tree of data {name}", screen)
        screen.press("?")
        keep(f"Keys {name}", screen)
        quit_it(name, screen)
        screen = opened(scratch, "before-db", "after-db", size=size)
        for number in (6, 8):
            screen.press(str(number))
            keep(f"{VIEWS[number - 1]} {name}", screen)
        quit_it(name, screen)
        screen = opened(scratch, "trace.dat", size=size)
        keep(f"Time line {name}", screen)
        screen.press("Right", "Right", "+", "Down")
        keep(f"Time line, nearer {name}", screen)
        quit_it(name, screen)


def check_sizes(scratch):
    screen = opened(scratch, "minicg")
    screen.press("2", "Down", "Down")
    before = screen.lines()
    screen.resize(120, 40)
    screen.settle()
    keep("Variables after a resize", screen)
    screen.resize(60, 20)
    screen.settle()
    keep("Too small", screen)
    screen.press("Down", "Up")
    screen.resize(80, 24)
    screen.settle()
    expect(screen.lines() == before, "the screen is another one after resizes")
    screen.resize(1, 1)
    screen.settle()
    screen.resize(80, 24)
    screen.settle()
    expect(screen.lines() == before, "the screen is another one after the smallest size")
    screen.size(65535, 65535)  # more than ncurses counts; what it draws there is of no interest
    os.kill(screen.process.pid, signal.SIGWINCH)
    screen.settle()
    screen.resize(80, 24)
    screen.settle()
    expect(screen.lines() == before, "the screen is another one after the largest size")
    quit_it("resizes", screen)


def check_looks(scratch):
    """Colours only where there are some and they are wanted; in the locale C only ASCII."""
    plain = None
    for name, env, has_colors in (("xterm", {}, True), ("xterm-256color", {"TERM": "xterm-256color"}, True), ("NO_COLOR", {"NO_COLOR": "1"}, False), ("vt100", {"TERM": "vt100"}, False)):
        screen = opened(scratch, "minicg", env=env)
        screen.press("2")
        expect(screen.screen.colors_used == has_colors, f"{name}: colours are {'not ' * has_colors}used")
        expect(any("reverse" in each for each in screen.screen.attributes[3]), f"{name}: the row under the cursor is like others")
        expect(plain in (None, screen.lines()), f"{name}: the screen differs")
        plain = screen.lines()
        quit_it(name, screen)
    screen = opened(scratch, "minicg", env={"LC_ALL": "C"})
    for number in (2, 4, 6):
        screen.press(str(number))
        keep(f"{VIEWS[number - 1]}, locale C", screen)
    expect(screen.bytes.isascii(), "in the locale C there are characters beyond ASCII")
    quit_it("C", screen)


def check_keys(scratch):
    """Search, filter, sorting, Back and Forward, copying."""
    screen = opened(scratch, "minicg")
    screen.press("2", "/", "rhs", "Enter")
    expect(any(line.startswith(">*") and "state->rhs" in line for line in screen.lines()), f"a search does not find: {screen.lines()[2:8]}")
    screen.press("Enter")
    expect("[3Variable]" in screen.lines()[1] and "state->rhs" in screen.lines()[0], "Enter does not open the variable")
    screen.press("Back")
    expect("[2Variables]" in screen.lines()[1] and any(line.startswith(">") and "state->rhs" in line for line in screen.lines()), "Back does not go back")
    screen.press("AltRight")
    expect("[3Variable]" in screen.lines()[1], "Forward does not go forward")
    screen.press("Back", "f", "neighb", "Enter")
    rows = [line for line in screen.lines()[3:14] if line.strip()]
    expect(len(rows) == 1 and "mesh->neighbour" in rows[0], f"a filter keeps {rows}")
    screen.press("y")
    expect(screen.screen.copied == ["hpcquery vars --top=0 minicg | grep -iF -- neighb"], f"y copies {screen.screen.copied}")
    printed = subprocess.run(screen.screen.copied[0], shell=True, capture_output=True, text=True, check=True, cwd=scratch,
                             env={**os.environ, "PATH": f"{BUILD.resolve()}:{os.environ['PATH']}"}).stdout
    expect(printed.count("\n") == 1 and "mesh->neighbour" in printed, f"what is copied prints {printed}")
    screen.press("Enter")
    expect("mesh->neighbour" in screen.lines()[0], f"behind a filter Enter opens what was chosen before: {screen.lines()[0]}")
    screen.press("Back", "f", *(["Back"] * 6), "Enter", "/", "rhs", "Enter", "/")
    expect(screen.lines()[-1] == "search:", f"a new search begins with {screen.lines()[-1]!r}")
    screen.press("neighb", "Enter")
    expect(any(line.startswith(">*") and "mesh->neighbour" in line for line in screen.lines()), f"a second search does not find: {screen.lines()[2:12]}")
    n_all = sum(1 for line in screen.lines()[3:15] if line.strip())
    screen.press("f", "zz", "\x15", "neighb", "Enter")
    expect(sum(1 for line in screen.lines()[3:15] if line.strip()) == 1, "Ctrl-U does not take away what was typed")
    screen.press("Esc")
    rows = [line for line in screen.lines()[3:15] if line.strip()]
    expect(len(rows) == n_all and any(line.startswith(">*") and "mesh->neighbour" in line for line in rows), f"Escape keeps a filter, or loses what is chosen: {n_all}, {screen.lines()}")
    screen.write("q")
    screen.end()
    expect("hpcquery vars --top=0 minicg | grep -iF -- neighb" in "\n".join(screen.lines()), "what was copied is not printed at the end")
    screen.close()


def check_foot(scratch):
    """The last line always says how one gets out, whatever else stands there."""
    screen = opened(scratch, "minicg")
    for keys in (("2", "/", "s", "Enter"), ("f", "state", "Enter"), ("/", "x" * 90, "Enter", "Down"), ("f", "y" * 90, "Enter", "Up")):
        screen.press(*keys)
        expect(screen.lines()[-1].endswith("? keys  q quit") or screen.lines()[-1].endswith("y copy  q quit") or screen.lines()[-1].endswith("s sort  q quit"),
               f"after {keys} the last line is {screen.lines()[-1]!r}")
    quit_it("foot", screen)


def check_browser(scratch):
    screen = opened(scratch, "minicg")
    screen.press("2", "Down", "o")
    text = "".join(screen.lines())
    expect(re.search(r"http://127\.0\.0\.1:\d+/#token=[0-9a-f]+&view=vars&active=", text), f"o says {screen.lines()[14:]}")
    found = re.search(r"127\.0\.0\.1:(\d+)/#token=([0-9a-f]+)", text)
    if found:
        asked_of = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=20)
        asked_of.request("POST", "/open", body=found[2])
        secret = asked_of.getresponse().read().decode()
        asked_of.request("POST", "/ask", body='{"report": "vars"}', headers={"Authorization": "Bearer " + secret})
        expect(b"state->p" in asked_of.getresponse().read(), "the session is not served beside the screen")
        asked_of.close()
    expect("ssh -L" in text, "o does not say how it is reached from elsewhere")
    quit_it("browser", screen)


# --- hostile names -------------------------------------------------------------------------------------------------------


def check_hostile(scratch):
    for size, env in ((SIZES[0], {}), (SIZES[1], {}), (SIZES[1], {"LC_ALL": "C"})):
        screen = opened(scratch, "hostile", size=size, env=env)
        for number in range(1, 10):
            screen.press(str(number), "Down", "Enter", "y")
            if size[0] >= 100:
                bars = {x for row in screen.screen.cells[3:30] for x, c in enumerate(row) if c in "\u2502|" and x == 72}
                expect(bars == {72} and all(row[72] in "\u2502|" for row in screen.screen.cells[3:30]), f"hostile names move columns in view {number}")
        expect(b"]0;" not in screen.bytes.replace(b"\\x1b]0;", b""), "an escape sequence of a name gets to the terminal")
        expect("\u202e" not in screen.bytes.decode(errors="replace") and b"\x9b" not in re.sub(rb"[\xc2-\xf4][\x80-\xbf]+", b"", screen.bytes), "control characters of a name get to the terminal")
        quit_it("hostile", screen)
    text = plain(scratch, "hostile", "\n".join(f"{n}\nj\nc" for n in range(1, 10)))
    expect(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text), "plain lines have control characters")


# --- lines ---------------------------------------------------------------------------------------------------------------


def plain(scratch, database, keys, env=None, option="--plain"):
    result = subprocess.run([BUILD / "hpcviewer", option, database], input=keys + "\nq\n", capture_output=True, check=False, text=True, cwd=scratch,
                            env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "100", **(env or {})})
    expect(result.returncode == 0 and not result.stderr, f"--plain: status {result.returncode}, {result.stderr[:300]}")
    return result.stdout


def check_plain(scratch):
    text = plain(scratch, "minicg", "2\nj\n4\n6")
    expect(text.isascii() and "\x1b" not in text, "plain lines are not plain")
    screens["Plain"] = text.rstrip("\n").split("\n")
    expect(plain(scratch, "minicg", "2\nj\n4\n6", {"TERM": "dumb"}, "--tui") == text, "--tui on a dumb terminal prints other lines than --plain")
    result = subprocess.run([BUILD / "hpcviewer", "--tui", "minicg"], stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True, cwd=scratch, env={**os.environ, "TERM": "xterm"})
    expect(result.returncode == 1 and "no terminal" in result.stderr, f"--tui without a terminal: {result.returncode}, {result.stderr[:200]}")


# --- signals -------------------------------------------------------------------------------------------------------------


def check_signals(scratch):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT):
        screen = opened(scratch, "minicg")
        os.kill(screen.process.pid, number)
        expect(screen.end() is not None, f"{number.name}: it goes on")
        expect(screen.is_restored(), f"{number.name}: the terminal is not as it was")
        screen.close()
    screen = opened(scratch, "minicg")
    screen.write("\x03")
    expect(screen.end() == 0 and screen.is_restored(), "Ctrl-C does not end it well")
    screen.close()
    screen = opened(scratch, "minicg")
    os.close(screen.master)
    os.close(screen.follower)
    deadline = time.monotonic() + 20
    while screen.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    expect(screen.process.poll() is not None, "it goes on without its terminal")
    screen.process.kill()


def check_stop(scratch):
    """Ctrl-Z, and a signal from elsewhere: the shell has the terminal meanwhile, and the screen comes back."""
    for name in ("key", "signal"):
        screen = terminal.Terminal(["bash", "-c", 'set -m; "$0" --tui minicg; echo STOPPED; stty -a; echo READY; read -r line; fg; echo OVER', BUILD / "hpcviewer"], cwd=scratch)
        expect(screen.wait("q quit"), f"stop by {name}: no screen")
        before = screen.lines()
        if name == "key":
            screen.write("\x1a")
        else:
            children = pathlib.Path(f"/proc/{screen.process.pid}/task/{screen.process.pid}/children").read_text(encoding="utf-8").split()
            os.kill(int(children[0]), signal.SIGTSTP)
        expect(screen.wait("READY"), f"stop by {name}: it does not stop: {screen.lines()[:3]}")
        expect(not screen.screen.is_alternate and " icanon" in "".join(screen.lines()).replace("-icanon", ""), f"stop by {name}: the terminal is still the screen's")
        screen.write("\r")
        expect(screen.wait("q quit"), f"stop by {name}: it does not come back")
        screen.settle()
        expect(screen.lines() == before, f"stop by {name}: another screen comes back: {screen.lines()[:5]}")
        screen.write("q")
        expect(screen.wait("OVER"), f"stop by {name}: it does not end")
        screen.close()


# --- numbers -------------------------------------------------------------------------------------------------------------

asked = {}


def answer(scratch, command):
    """What a command line prints as JSON."""
    if command not in asked:
        words = shlex.split(command)
        asked[command] = json.loads(run(words[0], *words[1:], "--json", cwd=scratch, statuses=(0, 3)))
    return asked[command]


def question(scratch, database, request):
    return json.loads(run("tests/lib/ask-packed", "--json", database, json.dumps(request), cwd=scratch))


def percents(value, total=None):
    """All numbers below a value as they may be shown, with their part of a total."""
    if isinstance(value, dict):
        return set().union(*[percents(each, total) for each in value.values()], set())
    if isinstance(value, list):
        return set().union(*[percents(each, total) for each in value], set())
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return set()
    return {f"{value:.1f}"} | ({f"{100 * value / total:.1f}"} if total else set())


def known(scratch, view, command, database):
    """The percentages that may stand in the list of a view."""
    metric = next((word[9:] for word in shlex.split(command.replace("--metric ", "--metric=")) if word.startswith("--metric=")), "")
    more = " " + shlex.quote("--metric=" + metric) if metric else ""
    if view == "Variable":
        found = set()
        vars_ = answer(scratch, f"hpcquery vars --fields{more} {database}")
        for row in vars_["variables"]:
            found |= percents(row.get("lines") or [], row["value"]) | percents(row.get("fields") or [], row["share"])
        nodes = question(scratch, database, {"report": "nodes", "tree": "data", **({"metric": metric} if metric else {})})
        values = [row["value"] for row in vars_["variables"] if row["value"]]
        found |= {f"{100 * node['value'] / value:.1f}" for node in nodes["nodes"] for value in values}
        if (scratch / database / "profile.db").exists():
            found |= percents(answer(scratch, f"hpcquery vars --by=thread{more} {database}"))
        return found
    if view == "Source":
        sums = {}
        for row in answer(scratch, f"hpcquery lines{more} {database}")["lines"]:
            key = (row["file"], row["line"])
            sums[key] = sums.get(key, 0) + row["own_share"]
        return {f"{each:.1f}" for each in sums.values()}
    if view == "Trust":
        fates = question(scratch, database, {"report": "trust"})["fates"]
        sums = {}
        for row in fates:
            sums[row["event"]] = sums.get(row["event"], 0) + int(row["samples"])
        return {f"{100 * int(row['samples']) / sums[row['event']]:.1f}" for row in fates}
    got = answer(scratch, command)
    if view == "Tree" and "nodes" not in got and isinstance(got, dict):
        return percents(got)
    return percents(got, got.get("total") if view == "Tree" else None)


def list_lines(screen):
    width, height = screen.screen.width, screen.screen.height
    room = height - 4
    rows, columns = (room, width * 3 // 5) if width >= 100 else (room * 3 // 5, width)
    return ["".join(row[:columns]) for row in screen.screen.cells[3:3 + rows]]


def check_numbers(scratch, name, words, database, steps, seed):
    dice = random.Random(seed)
    keys = ["Down", "Down", "Up", "Enter", "Left", "Right", "Home", "End", "PageDown", "PageUp", "s", "S", "t", "v", "b", "m", "u", "Back", "AltRight", "Tab", "Esc", "?", "n", "+", "-", "0",
            *"1234568"]
    screen, n = opened(scratch, *words, size=SIZES[1]), 0
    for step in range(steps):
        if dice.random() < 0.1:
            size = dice.choice([(80, 24), (100, 30), (120, 40), (140, 50)])
            screen.resize(*size)
            done = f"resize {size}"
        elif dice.random() < 0.15:
            done = dice.choice(["fgrid\r", "f\r", "/s\r", "fstate\r", "/main\r"])
            screen.write(done)
        else:
            done = dice.choice(keys)
            screen.press(done)
        screen.screen.copied.clear()
        screen.press("y")
        view = re.search(r"\[\d([A-Z][a-z ]+)\]", screen.lines()[1])
        expect(view and screen.process.poll() is None, f"{name}: after {done}: {screen.lines()[:3]}")
        if not view or failures:
            break
        if not screen.screen.copied:
            continue
        shown = {number for line in list_lines(screen) for number in re.findall(r"(?<![\w.])(\d+\.\d) %", line)}
        if view[1] == "Answer" or not shown:
            shown = {number for line in list_lines(screen) for number in re.findall(r"^[> ][* ] *(\d+\.\d) %", line)}
        if not shown:
            continue
        command = screen.screen.copied[0].split(" | grep ")[0]  # the list may be a part of what is compared
        frames = (scratch / database / "profile.db").exists()
        if not frames and (" callers " in command or "--by=" in command or " diff " in command):
            shown = set() if " callers " in command else shown
        left = shown - known(scratch, view[1], command, database) if shown else set()
        n += len(shown)
        expect(not left, f"{name}: step {step}, {done}: {view[1]} shows {left}, which are not of {command}")
    quit_it(name, screen)
    return n


def check_differences(scratch):
    """Differences by variable leave out nothing, not what is no variable either: they add up to the change of the total."""
    for name, counts in (("idle", (100, 300)), ("busy", (130, 700))):
        profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)])
        profile.sample([(APP, 0x1010), (APP, 0x2020)], {0: counts[0]}, m.by_address("DATACENTRIC_Static", APP, 0x404040, "static", "grid", 4096, [[0, 0, counts[0]]]))
        profile.sample([(APP, 0x1010), (APP, 0x2040)], {0: counts[1]}, m.reason("DATACENTRIC_No_Compute"))
        (scratch / name).mkdir()
        profile.write(scratch / name)
        run("hpcprof", "-o", scratch / f"{name}-db", scratch / name)
    done = subprocess.run([BUILD / "hpcquery", "diff", "--by", "variable", "--threshold", "0", "--top", "0", "--json", "idle-db", "busy-db"],
                          capture_output=True, text=True, check=False, cwd=scratch)
    expect(done.returncode == 3, f"diff: {done.stderr}")
    answer = json.loads(done.stdout)
    change, whole = sum(row["change"] for row in answer["differences"]), answer["total_after"] - answer["total_before"]
    expect(abs(change - whole) <= 1e-6 * answer["total_after"], f"differences are {change} in all, not {whole}: {answer}")
    compute = [row for row in answer["differences"] if row["name"] == "<compute>"]
    expect(len(compute) == 1 and abs(compute[0]["change"] - 0.4) < 1e-9, f"<compute> has become {compute}: {answer}")


def cpu_ms(screen):
    """What the program on a terminal has computed for."""
    tasks = pathlib.Path(f"/proc/{screen.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e6


def check_cost(scratch):
    """On a database of many scopes no key takes longer than a part of what the beginning took: nothing lists them all anew."""
    data = json.loads((bundle.golden("report") / "minicg.json").read_text(encoding="utf-8"))
    function = next(row for row in data["scopes"] if row[1] == 1 and row[2] == 0)
    data["scopes"] += 300_000 * [[0, *function[1:]]]
    m.write_database(scratch / "many", data)
    if not pathlib.Path("/proc/self/schedstat").exists():
        print("SKIP of costs: the kernel does not count them")
        return
    screen = opened(scratch, "many")
    begin = cpu_ms(screen)
    for key in ("4", "Down", "Down", "Down", "Down", "Down", "5", "Enter", "2", "Enter", "5"):
        before = cpu_ms(screen)
        screen.press(key)
        took = cpu_ms(screen) - before
        expect(took < begin / 2, f"{key}: {took:.1f} ms of 300000 scopes, which took {begin:.1f} ms to open")
    quit_it("many", screen)


# --- all -----------------------------------------------------------------------------------------------------------------


def text_of_screens():
    return HEAD + "".join(f"\n== {name}\n" + "".join(f"|{line}\n" for line in lines) for name, lines in screens.items())


def compare(written):
    wanted, at = {}, None
    for line in written.split("\n"):
        if line.startswith("== "):
            at = wanted.setdefault(line[3:], [])
        elif line.startswith("|") and at is not None:
            at.append(line[1:])
    expect(list(wanted) == list(screens), f"there are other screens: {set(wanted) ^ set(screens)}")
    for name, lines in screens.items():
        for i, line in enumerate(lines):
            other = wanted.get(name, [])
            if i >= len(other) or other[i] != line:
                expect(False, f"{name}, line {i + 1}:\n  {line}\nand not\n  {other[i] if i < len(other) else 'nothing'}")
                break


def main():
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = pathlib.Path(scratch_name)
        make_inputs(scratch)
        probe = subprocess.run([BUILD / "hpcviewer", "--tui", "minicg"], stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True, cwd=scratch, env={**os.environ, "TERM": "xterm"})
        if "libncurses-dev" in probe.stderr:
            print("SKIP: hpcviewer was built without ncursesw")
            sys.exit(77)
        for check in (check_views, check_sizes, check_looks, check_plain):
            check(scratch)
        if "--write" in sys.argv:
            GOLDEN.write_text(text_of_screens(), encoding="utf-8")
        else:
            compare(GOLDEN.read_text(encoding="utf-8"))
        for check in (check_differences, check_keys, check_foot, check_browser, check_hostile, check_signals, check_stop, check_cost):
            check(scratch)
        n = check_numbers(scratch, "minicg", ["minicg"], "minicg", STEPS // 2, 3)
        n += check_numbers(scratch, "compared", ["before-db", "after-db"], "after-db", STEPS - STEPS // 2, 5)
        print(f"{n} numbers compared")
    for failure in failures[:20]:
        print("FAIL:", failure[:1500])
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
