#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""A program that runs, in the ordinary views: hpcviewer --live --tui shows newer numbers while the cursor, the filter and what is open
stay; keys hold it and control the sampling; the end is told, and the last numbers are those of the whole measurement. hpcrun --copy
makes a measurement of what runs, for which its companion does nothing."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import terminal  # noqa: E402

failures = []
PATIENCE_S = 120


def expect(condition, sentence):
    if not condition:
        print("FAIL:", sentence)
        failures.append(sentence)


def run(*words, status=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    expect(status is None or done.returncode == status, f"{words}: status {done.returncode}, not {status}: {done.stderr}")
    return done


class Program:
    """live.c, which touches red alone, under hpcrun until its input ends."""

    def __init__(self, place, name, *options, command=None):
        self.directory = place / f"{name}.m"
        self.process = subprocess.Popen([BUILD / "hpcrun", "-e", "EADDR@f500", *options, "-o", self.directory, *(command or (place / "live", "3600", "2"))],
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid = str(self.process.pid)
        wait_for(lambda: (self.status() or {}).get("address_samples", 0) > 100, "the program has no samples")

    def status(self):
        found = run(BUILD / "hpcrun", "--status", "--json", self.pid, status=None).stdout
        return (json.loads(found)["processes"] if found else [None])[0]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


def wait_for(holds, sentence):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.2)
    expect(False, sentence)
    return False


def samples(database, name):
    rows = json.loads(run(BUILD / "hpcquery", "vars", "--json", "--top", "0", database).stdout)["variables"]
    return sum(row["samples"] for row in rows if row["variable"] == name)


def screen_samples(screen):
    """Those of the chosen variable, as its detail has them; -1: it says nothing of them."""
    found = re.search(r"samples +([\d.]+)( k)?", "\n".join(screen.lines()))
    return float(found[1]) * (1000 if found[2] else 1) if found else -1


def seen(screen, holds, sentence):
    def looks():
        screen.settle()
        return holds(screen.lines())
    if not wait_for(looks, sentence):
        print("\n".join(screen.lines()))


def chosen(lines):
    return next((line for line in lines if line.startswith(">")), "")


def check_copied_line(place, directory):
    """What y copies of a measurement, which has no database, makes one and prints the same."""
    done = subprocess.run([BUILD / "hpcviewer", "--plain", directory], input="2\nfred\ny\nq\n", capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    copied = [line.removeprefix("copied: ") for line in done.stdout.splitlines() if line.startswith("copied: ")]
    expect(copied and "DB" not in copied[0], f"of a measurement y copies {copied}: {done.stderr}")
    text = subprocess.run(copied[0], shell=True, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=place,
                          env={**os.environ, "PATH": f"{BUILD.resolve()}:{os.environ['PATH']}"})
    expect(text.stdout.count("red") > 0 and "green" not in text.stdout, f"what is copied prints {text.stdout}, {text.stderr}")


def check_copy(place):
    """Two copies, one after the other: the second has more; the files of the measurement itself stay as they are."""
    program = Program(place, "copied")
    before = {path.name: path.stat().st_mtime_ns for path in program.directory.glob("*.hpcrun")}
    counts = []
    for name in ("first", "second"):
        run(BUILD / "hpcrun", "--copy", place / name, program.pid)
        run(BUILD / "hpcprof", "-q", "-o", place / f"{name}-db", place / name)
        counts.append(samples(place / f"{name}-db", "red"))
        head = run(BUILD / "hpcquery", "vars", place / f"{name}-db").stdout
        cpu_s = re.search(r"([\d.]+) s of CPU time", head)
        expect(cpu_s and float(cpu_s[1]) >= 0.95 * counts[-1] / 500, f"{counts[-1]} samples, 500 a second, and: {head.splitlines()[0]}")
        n = program.status()["address_samples"]
        wait_for(lambda: program.status()["address_samples"] > n + 100, "no more samples come")
    run(BUILD / "hpcrun", "--copy", place / "first", program.pid, status=1)  # it would be counted twice
    said = run(BUILD / "hpcrun", "--copy", program.directory / "inside", program.pid, status=1).stderr
    expect("is being measured into" in said and not (program.directory / "inside").exists(), f"a copy inside of what is copied: {said}")
    text = run(BUILD / "hpcquery", "vars", place / "second-db").stdout
    expect(0 < counts[0] < counts[1], f"copies have {counts} samples")
    expect("\npartial " in text and str(program.directory) in text and "may still run" in text, f"the copy does not say that it is one: {text}")
    after = {path.name: path.stat().st_mtime_ns for path in program.directory.glob("*.hpcrun")}
    print(f"copies have {counts} samples; the companion wrote {len(before)} and {len(after)} files")
    expect(program.end() == 7, "copied: the program ends in another way")
    check_copied_line(place, program.directory)
    whole = place / "whole-db"
    run(BUILD / "hpcprof", "-q", "-o", whole, program.directory)
    expect(samples(whole, "red") >= counts[1], "the whole has less than a copy")
    run(BUILD / "hpcrun", "--copy", place / "third", program.pid, status=1)
    run(BUILD / "hpcrun", "--copy", place / "third", "1", "2", status=1)


def opened(place, program, *words):
    screen = terminal.Terminal([BUILD / "hpcviewer", "--live", "--tui", *words, program.pid], 120, 30, env={"TMPDIR": str(place / "tmp")}, cwd=place)
    expect(screen.wait("q quit", PATIENCE_S), f"no screen comes: {screen.lines()[:4]}")
    return screen


def check_views(place):
    program = Program(place, "viewed")
    screen = opened(place, program)
    screen.press("2", "f", "e", "Enter")
    screen.press("Home")
    expect("red" in chosen(screen.lines()), f"red is not the first variable: {screen.lines()[:6]}")
    expect("live " in screen.lines()[0] and "10 s" in screen.lines()[2], f"it does not say that it is live: {screen.lines()[:3]}")
    first = screen_samples(screen)
    seen(screen, lambda lines: screen_samples(screen) > first and "red" in chosen(lines) and "filter e" in lines[-1],
         "no newer numbers come, or the cursor or the filter goes")
    seen(screen, lambda lines: re.search(r"^> +[\d.]+ % .* [\d.]+ % .*main", chosen(lines)), "no share of the last seconds is shown")
    screen.press("p")
    expect("held at" in screen.lines()[0], f"p does not hold it: {screen.lines()[0]}")
    held = screen_samples(screen)
    n = program.status()["address_samples"]
    wait_for(lambda: program.status()["address_samples"] > n + 1000, "the program does not go on")
    screen.settle()
    expect(screen_samples(screen) == held, f"held, {held} samples became {screen_samples(screen)}")
    screen.press("p")
    seen(screen, lambda lines: screen_samples(screen) > held and "live " in lines[0], "p does not go on with it")
    # control
    screen.press("P")
    wait_for(lambda: program.status()["paused"], "P does not pause the sampling")
    seen(screen, lambda lines: "sampling paused" in lines[0], "the pause is not told")
    screen.press("P")
    wait_for(lambda: not program.status()["paused"], "P does not resume the sampling")
    screen.press("K", *"solve", "Enter")
    wait_for(lambda: program.status().get("phase") == "solve", f"K begins no phase: {program.status()}")
    seen(screen, lambda lines: "phase solve" in lines[0], "the phase is not told")
    screen.press("y")
    expect(screen.screen.copied == [f"hpcprof -q -o live-database {program.directory} && hpcquery vars --top=0 live-database | grep -iF -- e"], f"y copies {screen.screen.copied}")
    done = subprocess.run(["sh", "-c", screen.screen.copied[-1]], cwd=place, env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and "red" in done.stdout, f"what y copies says {done.stderr}")
    screen.press("W")
    seen(screen, lambda lines: "saved" in lines[-1], "W does not save")
    screen.press("?")
    expect(any("no samples are taken" in line for line in screen.lines()), "the keys of control are not listed")
    screen.press("Tab", "2", "Home")
    expect(program.end() == 7, "viewed: the program ends in another way")
    seen(screen, lambda lines: "has ended after" in lines[0], "the end is not told")
    run(BUILD / "hpcprof", "-q", "-o", place / "viewed-db", program.directory)
    whole = samples(place / "viewed-db", "red")
    seen(screen, lambda lines: abs(screen_samples(screen) - whole) <= max(0.06 * whole / 100, 50), f"the last numbers are not those of the whole: {whole} samples")
    screen.write("q")
    expect(screen.end() == 0 and screen.is_restored() and not screen.screen.unknown, "it does not end well")
    screen.close()
    expect(not list((place / "tmp").iterdir()), f"files are left: {list((place / 'tmp').iterdir())}")


def check_tree(place):
    """A node that was closed stays so in newer sessions, and one that was opened as well."""
    program = Program(place, "tree")
    screen = opened(place, program)
    screen.press("4", "Down", "Left")

    def is_closed(lines):
        return "+ <program root>" in chosen(lines)

    expect(is_closed(screen.lines()), f"the node is not closed: {screen.lines()[2:8]}")
    title = screen.lines()[0]
    n = program.status()["address_samples"]
    wait_for(lambda: program.status()["address_samples"] > n + 3000, "no more samples come")
    screen.settle()
    expect(is_closed(screen.lines()) and screen.lines()[0] != title, f"it does not stay closed: {screen.lines()[:8]}")
    screen.press("Right")
    rows = [line[:60] for line in screen.lines()[3:12]]
    n = program.status()["address_samples"]
    wait_for(lambda: program.status()["address_samples"] > n + 3000, "no more samples come")
    screen.settle()
    expect([line[28:60] for line in screen.lines()[3:6]] == [row[28:60] for row in rows[:3]], f"it does not stay open: {screen.lines()[:8]}")
    screen.write("q")
    screen.end()
    screen.close()
    program.end()


def check_plain(place):
    program = Program(place, "plain")
    done = subprocess.run([BUILD / "hpcviewer", "--live", "--tui", "--plain", program.pid], input="2\nq\n", capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, env={**os.environ, "TMPDIR": str(place / "tmp")})
    expect(done.returncode == 0 and "  live 0:" in done.stdout and "red" in done.stdout and "\x1b" not in done.stdout, f"--plain: {done.returncode} {done.stderr} {done.stdout[:2000]}")
    program.end()
    for words, status in (((program.pid,), 1), (("--once", program.pid), 2), (("1", "2"), 1)):
        run(BUILD / "hpcviewer", "--live", "--tui", *words, status=status)


def wait_for_files(directory, n):
    wait_for(lambda: len(list(directory.glob("live-*-000-*.objects"))) >= n, f"{directory} has no {n} profiles")


def check_below(place):
    """A shell and what it starts, one after the other: the whole tree is shown, and of programs that have ended what they have saved."""
    (place / "short.sh").write_text(f"until test -e {place}/go; do sleep 0.1; done\nfor i in 1 2 3; do (sleep 0.6) | {place}/live 3600 1 >{place}/out; done\n{place}/live 3600 1\n", encoding="utf-8")
    shell = subprocess.Popen([BUILD / "hpcrun", "-e", "EADDR@f500", "-o", place / "below.m", "sh", place / "short.sh"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: run(BUILD / "hpcrun", "--status", shell.pid, status=None).returncode == 0, "the shell is not measured")
    look = subprocess.Popen([BUILD / "hpcviewer", "--live", "--json", str(shell.pid)], stdout=subprocess.PIPE, text=True)
    seen_ended, text = set(), look.stdout.readline()
    (place / "go").touch()
    end = time.monotonic() + PATIENCE_S
    n_after = 0
    while len(seen_ended) < 3 and n_after < 3 and time.monotonic() < end:
        line = look.stdout.readline()
        text += line
        if line != "]}\n" and not line.endswith("]}\n"):
            continue
        try:
            processes = json.loads(text)["processes"]
        except ValueError:
            continue
        text = ""
        n_after += len(list((place / "below.m").glob("live-*-000-*.objects"))) >= 3
        seen_ended |= {each["pid"] for each in processes if each["ended"] and each["program"] == "live" and each["address_samples"]}
    look.kill()
    look.wait()
    print(f"of 3 short programs {len(seen_ended)} were seen")
    expect(seen_ended, "no short program was seen")
    wait_for_files(place / "below.m", 3)
    processes = json.loads(run(BUILD / "hpcviewer", "--live", "--json", "--once", shell.pid).stdout)["processes"]
    programs = [each["program"] for each in processes if not each["ended"]]
    expect(sorted(programs) == ["live", "sh"], f"below the shell there is {programs}")
    run(BUILD / "hpcrun", "--copy", place / "below", place / "below.m")
    run(BUILD / "hpcprof", "-q", "-o", place / "below-db", place / "below")
    rows = json.loads(run(BUILD / "hpcquery", "vars", "--by", "process", "--json", "--top", "0", place / "below-db").stdout)
    red = next(row for row in rows["rows"] if row["variable"] == "red")
    n = sum(1 for cell in red["cells"] if cell["value"])
    expect(n >= 4, f"red was touched by {n} processes of 4: {red}")
    shell.stdin.close()
    shell.wait(PATIENCE_S)


def check_table(place):
    """The table on a terminal: q ends it, and the terminal is as before; so does Ctrl-C."""
    program = Program(place, "table")
    for key in ("q", "\x03"):
        screen = terminal.Terminal([BUILD / "hpcviewer", "--live", program.pid], 80, 24, env={"TMPDIR": str(place / "tmp"), "DISPLAY": "", "WAYLAND_DISPLAY": ""}, cwd=place)
        expect(screen.wait("q ends", PATIENCE_S) and any("red" in line for line in screen.lines()), f"no table comes: {screen.lines()}")
        titles = [re.sub(" {2,}", ",", line.strip()) for line in screen.lines() if line.startswith("  share ")]
        titles = [title.replace("share,lately,samples,", "") for title in titles]
        expect(titles[:2] == ["variable,class,comes from", "function"] and {"cause", "share,memory in use"} <= {*titles}, f"24 lines have tables of {titles}")
        screen.write(key)
        status = screen.end()
        expect(status == 0, f"{key!r} ends it with {status}")
        expect(screen.is_restored(), f"{key!r}: the terminal is not as before")
        screen.close()
    shell = subprocess.Popen([BUILD / "hpcrun", "-e", "EADDR@f500", "-o", place / "shell.m", "sh", "-c", f"{place}/live 3600 1; :"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    asked = (BUILD / "hpcrun", "--status", "--json", place / "shell.m")
    wait_for(lambda: '"variable": "red"' in run(*asked, status=None).stdout, "the program of a shell has no samples")
    screen = terminal.Terminal([BUILD / "hpcviewer", "--live", str(place / "shell.m")], 80, 24, env={"TMPDIR": str(place / "tmp"), "DISPLAY": "", "WAYLAND_DISPLAY": ""}, cwd=place)
    seen(screen, lambda lines: any("work" in line and "live.c" in line for line in lines), "the program that a shell started is not told beside the shell")
    screen.write("q")
    screen.end()
    screen.close()
    shell.stdin.close()
    shell.wait(PATIENCE_S)
    for words, wanted in ((("--tui",), 0), (("--no-browser",), 0), (("--plain",), -signal.SIGINT), (("--tui", "--plain"), 0)):
        screen = terminal.Terminal([BUILD / "hpcviewer", "--live", *words, program.pid], 80, 24, env={"TMPDIR": str(place / "tmp")}, cwd=place)
        expect(screen.wait({"--tui": "q ends" if "--plain" in words else "q quit", "--no-browser": "http", "--plain": "red"}[words[0]], PATIENCE_S), f"{words}: nothing comes: {screen.lines()}")
        screen.write("\x03")
        status = screen.end()
        expect(status == wanted, f"{words}: Ctrl-C ends it with {status}, not {wanted}")
        screen.close()
    piped = subprocess.Popen([BUILD / "hpcviewer", "--live", program.pid], stdout=subprocess.PIPE, text=True)
    text = "".join(piped.stdout.readline() for _ in range(40))
    piped.terminate()
    piped.communicate()
    expect("\x1b" not in text and "dropped " in text and "red" in text, f"a pipe gets {text!r}")
    text = " ".join(run(BUILD / "hpcviewer", "--help").stdout.split())
    expect("by q, by Ctrl-C or another signal" in text, "the help says something else")
    program.end()


def check_nodes(place):
    """Programs of two hosts, of which this one sees no process: what they save is shown together, by host."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-n", "-u", "true"], capture_output=True, check=False).returncode:
        print("SKIP part: hosts of our own need unshare")
        return
    programs, directories = [], []
    for host in ("left", "right"):
        directories.append(place / f"{host}.m")
        words = 'hostname "$1"; shift; exec "$@"'
        programs.append(subprocess.Popen(["unshare", "-n", "-u", "sh", "-c", words, "sh", host, BUILD / "hpcrun", "-e", "EADDR@f500", "-ck", "CHECKPOINT_SECONDS=1", "-o",
                                          directories[-1], place / "live", "3600", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for directory in directories:
        wait_for_files(directory, 1)
    done = run(BUILD / "hpcviewer", "--live", "--once", *directories, status=1)
    expect("of other hosts hpcviewer --live --tui shows" in done.stderr, f"it does not say how: {done.stderr}")
    screen = terminal.Terminal([BUILD / "hpcviewer", "--live", "--tui", *directories], 120, 30, env={"TMPDIR": str(place / "tmp")}, cwd=place)
    expect(screen.wait("q quit", PATIENCE_S), f"no screen comes: {screen.lines()[:4]}")
    screen.press("2", "Home")
    expect("red" in chosen(screen.lines()), f"red is not the first variable: {screen.lines()[:6]}")
    seen(screen, lambda lines: "2 by their files" in lines[0], "it does not say that there are two")
    first = screen_samples(screen)
    seen(screen, lambda lines: screen_samples(screen) > first, "nothing newer comes")
    for program in programs:
        program.stdin.close()
        program.wait(PATIENCE_S)
    seen(screen, lambda lines: "has ended after" in lines[0], "the end is not told")
    run(BUILD / "hpcprof", "-q", "-o", place / "nodes-db", *directories)
    whole = samples(place / "nodes-db", "red")
    seen(screen, lambda lines: abs(screen_samples(screen) - whole) <= max(0.06 * whole / 100, 50), f"the last numbers are not those of both: {whole}")
    screen.write("q")
    screen.end()
    screen.close()
    rows = json.loads(run(BUILD / "hpcquery", "cpus", "--json", place / "nodes-db").stdout)["rows"]
    expect(len({row["host"] for row in rows}) == 2, f"there are not two hosts: {rows}")


def flat(screen):
    """The text beside the list."""
    return " ".join(" ".join(line[74:] for line in screen.lines()).split())


def companion_of(program):
    return next(int(path.name.rsplit("-", 1)[1]) for path in program.directory.glob(".writing-*"))


def check_killed(place):
    """The companion is killed: the program runs on. Views keep their numbers and say why, the table goes on, and what the program
    leaves has all of it."""
    program = Program(place, "killed", "-ck", "CHECKPOINT_SECONDS=1")
    screen = opened(place, program)
    screen.press("2", "Home")
    table = subprocess.Popen([BUILD / "hpcviewer", "--live", "--plain", program.pid], stdout=open(place / "table.txt", "wb"))
    wait_for(lambda: "has ended" in (place / "table.txt").read_text(encoding="utf-8") or "red" in (place / "table.txt").read_text(encoding="utf-8"), "no table comes")
    wait_for(lambda: list(program.directory.glob("*.hpcrun")), "no checkpoint comes")
    os.kill(companion_of(program), signal.SIGKILL)
    seen(screen, lambda lines: "no newer numbers (?)" in lines[0], "the loss is not told")
    before = screen_samples(screen)
    expect("ended" not in screen.lines()[0] and before > 0, f"it says that the program has ended: {screen.lines()[0]}")
    for words in ((program.pid,), (program.directory,)):
        text = run(BUILD / "hpcrun", "--status", *words, status=1).stderr
        expect("its companion process has ended" in text or "the companion process of" in text, f"--status {words}: {text}")
        expect("runs on, and nothing is lost" in text and "--collect" in text, f"--status {words} does not say what to do: {text}")
    expect("runs on without its companion" in run(BUILD / "hpcrun", "--collect", program.directory).stdout, "--collect does not say that it runs on")
    expect("records, which runs on without its companion" in run(BUILD / "hpcprof", "-o", place / "killed-db", program.directory, status=None).stderr, "the report does not say what it lacks")
    screen.press("?")
    expect("nothing is lost" in flat(screen) and "--collect" in flat(screen), f"? does not say what to do: {screen.lines()}")
    screen.press("Tab", "P")
    expect("its companion process has ended" in screen.lines()[-1], f"P says {screen.lines()[-1]}")
    n_lines = len((place / "table.txt").read_text(encoding="utf-8").splitlines())
    wait_for(lambda: len((place / "table.txt").read_text(encoding="utf-8").splitlines()) > n_lines + 40, "the table does not go on")
    text = (place / "table.txt").read_text(encoding="utf-8")
    expect("companion has ended; the program runs on" in text and "\nhas ended" not in text, f"the table says {text[-1500:]}")
    counts = [int(n) for n in re.findall(r"^EADDR +(\d+) samples", text, re.M)]
    expect(counts == sorted(counts) and counts[-1] > counts[len(counts) // 2], f"the table's numbers are {counts}")
    expect(program.end() == 7, "killed: the program ends in another way")
    seen(screen, lambda lines: "has ended after" in lines[0], "the end is not told")
    time.sleep(3)
    screen.settle()
    expect(screen_samples(screen) >= before, f"{before} samples became {screen_samples(screen)}")
    screen.press("?")
    expect("makes files of all that it recorded" in flat(screen), f"? does not say what is left: {screen.lines()}")
    screen.write("q")
    expect(screen.end() == 0, "it does not end well")
    screen.close()
    table.wait(PATIENCE_S)
    run(BUILD / "hpcrun", "--collect", program.directory)
    run(BUILD / "hpcprof", "-q", "-o", place / "killed-db", program.directory)
    whole = samples(place / "killed-db", "red")
    expect(whole >= max(before, counts[-1] / 2), f"{whole} samples are left of {before} that were shown, and {counts[-1]} in the table")


def check_stopped(place):
    """The companion is stopped for a while: nothing is said to have ended, and nobody waits for it each time."""
    program = Program(place, "stopped")
    screen = opened(place, program)
    screen.press("2", "Home")
    companion = companion_of(program)
    os.kill(companion, signal.SIGSTOP)
    try:
        seen(screen, lambda lines: "no newer numbers (?)" in lines[0], "it is not told")
        begin = time.monotonic()
        for _ in range(20):
            screen.press("Down")
        took = time.monotonic() - begin
        expect(took < 15, f"20 keys take {took:.1f} s")
        screen.press("?")
        expect("does not answer" in flat(screen) and "nothing is lost" in flat(screen), f"? does not say why: {screen.lines()}")
        text = run(BUILD / "hpcrun", "--status", program.directory, status=1).stderr
        expect(f"the companion process {companion} is stopped (kill -CONT {companion}" in text, f"--status DIR: {text}")
        text = run(BUILD / "hpcrun", "--status", program.pid, status=1).stderr
        expect("its companion process does not answer" in text, f"--status PID: {text}")
        screen.press("Tab", "Home")
        before = screen_samples(screen)
    finally:
        os.kill(companion, signal.SIGCONT)
    seen(screen, lambda lines: "no newer" not in lines[0] and screen_samples(screen) > before, "it does not go on")
    screen.write("q")
    screen.end()
    screen.close()
    expect(program.end() == 7, "stopped: the program ends in another way")


def check_clock(place):
    """The clock of the title is that of what is shown, also of programs that are known by their files."""
    program = Program(place, "clock", "-ck", "CHECKPOINT_SECONDS=1")

    def clock(screen):
        found = re.search(r"(?:live|held at|has ended after) (\d+):(\d+)(?:, (\d+):(\d+) ago)?", screen.lines()[0])
        return [int(a) * 60 + int(b) if a else 0 for a, b in ((found[1], found[2]), (found[3], found[4]))] if found else [-1, -1]

    def elapsed():
        return program.status()["elapsed_s"]

    time.sleep(4)
    screen = opened(place, program)
    screen.settle()
    low = elapsed()
    at, ago = clock(screen)
    expect(low - 8 <= at + ago <= elapsed() + 1 and at > 0, f"after {low:.1f} s the title says {screen.lines()[0]}")
    screen.press("p")
    held = clock(screen)[0]
    time.sleep(7)
    screen.settle()
    at, ago = clock(screen)
    expect(at == held and ago >= 6, f"held at {held}, after 7 s the title says {screen.lines()[0]}")
    screen.press("p")
    seen(screen, lambda lines: clock(screen)[0] > held + 5, "the clock does not go on")
    end = elapsed()
    program.end()
    seen(screen, lambda lines: "has ended after" in lines[0], "the end is not told")
    expect(abs(clock(screen)[0] - end) <= 4, f"it ended after {end:.1f} s, the title says {screen.lines()[0]}")
    screen.write("q")
    screen.end()
    screen.close()


TWINS_C = """
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
static double use(volatile double *data)
{
    double sum = 0;
    for (int i = 0; i < 200000; i++)
        sum += data[i];
    return sum;
}
__attribute__((noinline)) static double first(void)
{
    static volatile double *twin;
    twin = twin ? twin : calloc(200000, sizeof *twin);
    return use(twin);
}
__attribute__((noinline)) static double second(void)
{
    static volatile double *twin;
    twin = twin ? twin : calloc(200000, sizeof *twin);
    return use(twin);
}
int main(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int has_both = 0;
    double sum = 0;
    char c;
    for (;;) {
        for (int i = 0; i < 100; i++)
            sum += has_both && i % 10 ? second() : first();
        if (poll(&input, 1, 0) == 0)
            continue;
        if (read(0, &c, 1) != 1)
            return sum > 1 ? 8 : 7;
        has_both = 1;
    }
}
"""


def check_twins(place):
    """What is chosen stays so when a second variable of its name comes, which costs more, and when the program has ended."""
    (place / "twins.c").write_text(TWINS_C, encoding="utf-8")
    run("gcc", "-g", "-O1", "-o", place / "twins", place / "twins.c")
    program = Program(place, "twins", command=(place / "twins",))
    screen = opened(place, program)
    screen.press("2", "Home")
    expect("twin" in chosen(screen.lines()) and "first" in chosen(screen.lines()), f"the first variable is {chosen(screen.lines())}")
    program.process.stdin.write(b"x")
    program.process.stdin.flush()

    def has_both(lines):
        rows = [line for line in lines if "twin" in line[:50] and "heap" in line]
        return len(rows) == 2 and "second" in rows[0]

    seen(screen, has_both, "the second variable does not come to the top")
    expect("first" in chosen(screen.lines()) and "twin" in chosen(screen.lines()), f"another one is chosen: {chosen(screen.lines())}")
    screen.press("3")
    expect("first" in "\n".join(screen.lines()[2:8]), f"view 3 is about another one: {screen.lines()[:9]}")
    expect(program.end() == 7, "twins: the program ends in another way")
    seen(screen, lambda lines: "has ended after" in lines[0], "the end is not told")
    time.sleep(2)
    screen.press("2")
    expect("first" in chosen(screen.lines()) and "twin" in chosen(screen.lines()), f"at the end another one is chosen: {chosen(screen.lines())}")
    screen.write("q")
    screen.end()
    screen.close()


def check_samples(place):
    """A log of samples without records of the scheduler: the time line says when a thread had samples."""
    program = Program(place, "samples", "-t")
    screen = opened(place, program)
    screen.press("7")
    seen(screen, lambda lines: sum("++++" in line for line in lines if "live:" in line) >= 2, "no samples are shown")
    expect("?" not in "".join(line[28:72] for line in screen.lines()[3:-1]) and "+ samples, so it ran" in flat(screen), f"the time line is {screen.lines()}")
    screen.write("q")
    screen.end()
    screen.close()
    program.end()


def check_status(place):
    """hpcrun --status, the table and the views say the same of a program that is held still."""
    program = Program(place, "status", command=(place / "live", "0.4", "2"))
    wait_for(lambda: sum(row["samples"] > 50 for row in program.status()["variables"]) >= 3, "not all of three variables have samples")
    run(BUILD / "hpcrun", "--control", program.pid, "pause")
    counts = [-1]
    wait_for(lambda: counts.append(program.status()["address_samples"]) or counts[-1] == counts[-2], "the sampling does not stand still")
    status = program.status()
    table = json.loads(run(BUILD / "hpcviewer", "--live", "--once", "--json", program.pid).stdout)["processes"][0]
    for key in ("address_samples", "value", "variables", "functions", "causes", "memory", "events", "blocks", "block_bytes", "dropped"):
        stripped = [json.dumps(each[key], sort_keys=True) for each in (status, table)]
        stripped = [re.sub(r'"(per_second|per_second_now|\w+_lately)": [-0-9.e+]+', "", each) for each in stripped]
        expect(stripped[0] == stripped[1], f"{key}: --status says {stripped[0][:400]}, --live {stripped[1][:400]}")
    screen = opened(place, program)
    screen.press("2", "Home")
    shown = {}
    for _ in range(12):
        found = re.search(r"samples +([\d.]+(?: k)?)", flat(screen))
        name = chosen(screen.lines())[21:43].split()
        if found and name:
            shown[name[0]] = found[1]
        screen.press("Down")
    rows = [row for row in status["variables"] if row["class"] in ("heap", "static")]
    expect(len(rows) >= 3, f"--status has {rows}")
    for row in rows:
        n = row["samples"]
        wanted = f"{n}" if n < 1000 else f"{n / 1000:.1f} k"
        expect(shown.get(row["variable"]) == wanted, f"{row['variable']}: --status has {n} samples, the view {shown}")
    expect("sampling paused" in screen.lines()[0], f"the pause is not told: {screen.lines()[0]}")
    screen.write("q")
    screen.end()
    screen.close()
    program.end()


def check_words(place):
    """A word that means nothing is refused, whatever the others mean."""
    program = Program(place, "words")
    (place / "nothing").mkdir(exist_ok=True)
    for word, status, says in (("999999999", 1, "there is no process 999999999"), (place / "nothing", 1, "is being measured into"), ("nowhere", 2, "neither a process id nor")):
        for command in (("hpcrun", "--copy", place / "words-copy"), ("hpcviewer", "--live", "--once"), ("hpcviewer", "--live", "--tui", "--plain")):
            done = run(BUILD / command[0], *command[1:], program.pid, word, status=None)
            expect(done.returncode in (1, status) and says in done.stderr and done.stderr.count("\n") == 1, f"{command} {word}: status {done.returncode}: {done.stderr}")
            expect(not (place / "words-copy").exists() and not done.stdout, f"{command} {word} goes on: {done.stdout[:200]}")
    program.end()


def check_waits(place):
    """What waits has the name of the function that does, as in a database."""
    program = Program(place, "waits", "-e", "BLOCKTIME", command=(place / "live", "0.02", "1"))
    wait_for(lambda: any(row["samples"] > 20 for row in program.status()["waiting"]), "no wait is seen")
    live = max(program.status()["waiting"], key=lambda row: row["value"])["function"]
    program.end()
    run(BUILD / "hpcprof", "-q", "-o", place / "waits-db", program.directory)
    rows = json.loads(run(BUILD / "hpcquery", "functions", "--json", "--metric", "BLOCKTIME (usec)", place / "waits-db").stdout)["functions"]
    whole = max(rows, key=lambda row: row["own"])["function"]
    expect(live == whole and "poll" in live, f"what waits is {live}, in a database {whole}")


def check_python(place):
    """A running Python program's blocks have the names of its functions and lines, not the numbers that stand for them."""
    if not (3, 9) <= sys.version_info[:2] <= (3, 13):
        print(f"SKIP (part): Python {sys.version_info[0]}.{sys.version_info[1]} is not read")
        return
    (place / "lists.py").write_text("""import sys, threading
def make_list():
    return [i * 1.5 for i in range(200000)]
threading.Thread(target=sys.stdin.read, daemon=True).start()
while threading.active_count() > 1:
    sum(make_list())
""")
    measured = subprocess.Popen([BUILD / "hpcrun", "-o", place / "lists.m", sys.executable, place / "lists.py"], stdin=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    said = lambda: run(BUILD / "hpcrun", "--status", place / "lists.m", status=None).stdout
    wait_for(lambda: "make_list" in said() and "(lists.py:3)" in said(), "no block is named by the line of Python that makes it")
    expect("[python]" not in said(), f"numbers stand for names: {said()}")
    rows = json.loads(run(BUILD / "hpcrun", "--status", "--json", place / "lists.m").stdout)["processes"][0]["functions"]
    of_python = sum(row["samples"] for row in rows if row["function"].split(".")[-1] in ("make_list", "<listcomp>", "<module>"))
    expect(rows and of_python > 0.8 * sum(row["samples"] for row in rows), f"the functions of a program of Python are {rows}")
    measured.stdin.close()
    expect(measured.wait(PATIENCE_S) == 0, "the program of Python failed")


CHECKS = {"waits": check_waits, "python": check_python, "killed": check_killed, "stopped": check_stopped, "clock": check_clock, "twins": check_twins, "samples": check_samples, "status": check_status, "words": check_words, "copy": check_copy, "views": check_views, "tree": check_tree, "plain": check_plain, "below": check_below, "table": check_table, "nodes": check_nodes}


def main():
    with tempfile.TemporaryDirectory(prefix="locus-live-view-") as name:
        place = pathlib.Path(name)
        (place / "tmp").mkdir()
        run("gcc", "-g", "-O1", "-pthread", "-o", place / "live", SOURCE / "tests" / "e2e" / "live.c")
        for key, check in CHECKS.items():
            if key in (sys.argv[1:] or CHECKS):
                check(place)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
