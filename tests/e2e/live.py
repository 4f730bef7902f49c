#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""Looking at a program while it is measured, and controlling it: each second's top variable, snapshots, pauses, rates and
phases, whose numbers stay exact, what other users may, and viewers, companions and programs that are killed at random.

usage: live.py [--kills N] [--seconds N] [--loops N] [--seed N]"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
failures = []


def expect(condition, sentence):
    if not condition:
        print("FAIL:", sentence)
        failures.append(sentence)


def run(*words, status=0, wait_s=120):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=wait_s, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    expect(status is None or done.returncode == status, f"{words}: status {done.returncode}, not {status}: {done.stderr}")
    return done


class Program:
    """live.c under hpcrun, until its input ends."""

    def __init__(self, place, name, seconds, n_threads=1, options=("-e", "EADDR@f500")):
        self.directory = place / f"{name}.m"
        self.process = subprocess.Popen([BUILD / "hpcrun", *options, "-o", self.directory, place / "live", str(seconds),
                                         str(n_threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.pid = self.process.pid

    def status(self, *words):
        found = run(BUILD / "hpcrun", "--status", "--json", *words, self.pid, status=None).stdout
        return (json.loads(found)["processes"] if found else [None])[0]

    def wait_for(self, samples, wait_s=60):
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            status = self.status()
            if status and status["address_samples"] >= samples:
                return status
        raise RuntimeError(f"fewer than {samples} samples after {wait_s} s")

    def control(self, *words, status=0):
        return run(BUILD / "hpcrun", "--control", self.pid, *words, status=status)

    def end(self):
        """(phases as told, with their times; exit status)"""
        self.process.stdin.close()
        told = [line.split() for line in self.process.stdout]
        return [(name, float(at)) for name, at in told], self.process.wait(60)


def top_of_phase(told, begin, end):
    """The variables that were touched most of the time from begin to end."""
    spent = {}
    for (name, at), (_, until) in zip(told, told[1:]):
        spent[name] = spent.get(name, 0) + max(0, min(until, end) - max(at, begin))
    most = max(spent.values())
    return {name for name, time_s in spent.items() if time_s > most - 0.25 * (end - begin)}


def database(directory, name):
    run(BUILD / "hpcprof", "-q", "-o", name, directory)
    return json.loads(run(BUILD / "hpcquery", "vars", "--json", "--top", "0", name).stdout)


def check_seconds(place, n_seconds):
    """Each second's top variable, by hpcviewer: the sums of two looks that follow each other."""
    program = Program(place, "seconds", 4.3)
    program.wait_for(20)
    viewer = subprocess.Popen([BUILD / "hpcviewer", "--live", "--json", str(program.pid)], stdout=subprocess.PIPE, text=True)
    seen, text = [], ""
    while len(seen) < n_seconds + 1:
        line = viewer.stdout.readline()
        if not line:
            break
        text += line
        try:
            answer = json.loads(text)
        except ValueError:
            continue
        text = ""
        seen.append((time.monotonic(), {each["variable"]: each["samples"] for each in answer["processes"][0]["variables"]}))
    viewer.kill()
    viewer.wait()
    told, status = program.end()
    expect(status == 7, f"seconds: the program ends with {status}")
    right = n = 0
    for (begin, before), (end, after) in zip(seen, seen[1:]):
        change = {name: after[name] - before.get(name, 0) for name in after}
        if not change or max(change.values()) < 8: # a busy machine: the program hardly ran
            continue
        n += 1
        right += max(change, key=change.get) in top_of_phase(told, begin, end)
    print(f"top variable of each second: right in {right} of {n}")
    expect(n >= n_seconds // 2 and right >= 0.95 * n, f"the top variable is right in {right} of {n} seconds")


def values(answer):
    return {row["variable"]: row["samples"] for row in answer["variables"]}


def check_snapshots(place):
    """Two snapshots in pauses differ by what ran between, which was in a phase."""
    program = Program(place, "snapshots", 3600)  # red only
    program.wait_for(100)
    program.control("pause")
    time.sleep(1)
    first = database(program.directory, place / "first")
    text = run(BUILD / "hpcquery", "vars", place / "first").stdout
    expect("\npartial " in text, f"the first snapshot does not say that it is partial: {text}")
    program.control("mark", "second half")
    program.control("resume")
    program.wait_for(first["variables"][0]["samples"] + 200)
    program.control("pause")
    time.sleep(1)
    before = program.status()
    time.sleep(2)
    after = program.status()
    expect(after["paused"] and after["paused_s"] > 2, f"it is not paused: {after}")
    expect(after["address_samples"] == before["address_samples"], "samples were taken in a pause")
    program.control("snapshot")
    second = database(program.directory, place / "second")
    red = [values(answer).get("red", 0) for answer in (first, second)]
    expect(0 < red[0] < red[1], f"snapshots of {red} samples")
    phases = json.loads(run(BUILD / "hpcquery", "vars", "--by", "phase", "--json", place / "second").stdout)["phases"]
    by_name = {phase["phase"]: phase["samples"] for phase in phases}
    between = sum(row["samples"] for row in second["variables"]) - sum(row["samples"] for row in first["variables"])
    expect(abs(by_name.get("second half", 0) - between) <= 2,
           f"{between} samples between two snapshots, {by_name} by phase")
    text = run(BUILD / "hpcquery", "vars", place / "second").stdout
    expect("paused from outside for" in text, f"the head does not tell of the pause: {text}")
    expect("\npartial " in text and "\nphases " in text, f"the head does not say that it is partial, or has no phases: {text}")
    program.control("rate", "x", status=2)
    program.control("dance", status=2)
    _, status = program.end()
    expect(status == 7, f"snapshots: the program ends with {status}")
    whole = values(database(program.directory, place / "whole"))
    expect(whole.get("red", 0) >= red[1], f"{whole} after snapshots of {red}")


def check_weights(place, seconds):
    """Of a program that touches red and green alternately, as long, both have half, however the rate was changed while it
    touched one, and what was paused is missing alone."""
    program = Program(place, "weights", 0.05)
    program.wait_for(50)
    end = time.monotonic() + seconds
    rates = random.Random(1)
    while time.monotonic() < end:
        program.control("rate", rates.choice([60, 125, 250, 500]))
        time.sleep(rates.random())
        program.control("pause")
        time.sleep(rates.random() / 2)
        program.control("resume")
        time.sleep(rates.random())
    _, status = program.end()
    expect(status == 7, f"weights: the program ends with {status}")
    answer = database(program.directory, place / "weights")
    found = values(answer)
    all_three = sum(found.get(name, 0) for name in ("red", "green", "blue"))
    shares = {name: found.get(name, 0) / all_three for name in ("red", "green", "blue")}
    print("shares under changing rates:", {name: f"{share:.3f}" for name, share in shares.items()}, f"of {all_three:.0f} samples")
    expect(all(abs(share - 1 / 3) < 0.1 for share in shares.values()), f"the shares are {shares} of {all_three}")
    return answer


def check_rate(place):
    """Who lowered the rate is told, also where it was raised again."""
    program = Program(place, "rate", 3600)
    program.wait_for(50)
    program.control("rate", "60")
    time.sleep(4)
    program.control("rate", "500")
    time.sleep(1)
    program.end()
    run(BUILD / "hpcprof", "-q", "-o", place / "rate", program.directory)
    text = " ".join(run(BUILD / "hpcquery", "vars", place / "rate").stdout.split())
    expect("which its owner lowered from outside (hpcrun --control)" in text, f"the rate is explained as {re.search('rate .{200}', text)}")
    expect("as often as planned for a while" in text, f"no note says that it was for a while: {text}")


def check_time(place):
    """A quarter of the rate, and the samples stand for the same time."""
    program = Program(place, "time", 3600)
    program.wait_for(20)
    program.control("rate", "125")
    time.sleep(8)
    program.end()
    told = database(program.directory, place / "time")["cpu_time"]
    part = told["sampled_s"] / (told["user_s"] + told["system_s"])
    print(f"with a quarter of the rate samples stand for {part:.1%} of the CPU time")
    expect(0.7 <= part <= 1.25, f"samples stand for {part:.1%} of the time") # few samples on a busy machine


FORKER = r"""
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
static volatile double cells[1 << 16];
__attribute__((noinline)) static void work(const char *until)
{
    while (access(until, F_OK) != 0)
        for (int i = 0; i < 1 << 16; i++)
            cells[i] += i;
}
__attribute__((noinline)) static void child_work(const char *until)
{
    while (access(until, F_OK) != 0)
        for (int i = 0; i < 1 << 16; i++)
            cells[i] += 2 * i;
}
int main(int argc, char **argv)
{
    (void)argc;
    work(argv[1]);
    if (fork() == 0) {
        child_work(argv[2]);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"""


def check_forks(place):
    """A child begins in the phase of its parent, whatever other phases there were before."""
    (place / "forker.c").write_text(FORKER, encoding="utf-8")
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-O1", "-g", "-o", place / "forker", place / "forker.c"], check=True)
    directory, flags = place / "forks.m", [place / "go-on", place / "end"]
    process = subprocess.Popen([BUILD / "hpcrun", "-e", "EADDR@f500", "-o", directory, place / "forker", *flags],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(pid, samples):
        for _ in range(600):
            found = run(BUILD / "hpcrun", "--status", "--json", pid, status=None).stdout
            if found and sum(each["address_samples"] for each in json.loads(found)["processes"] if each["pid"] == pid) >= samples:
                return
            time.sleep(0.1)
        raise RuntimeError(f"process {pid} has fewer than {samples} samples")

    wait_for(process.pid, 20)
    for phase in ("ALPHA", "BETA"):
        run(BUILD / "hpcrun", "--control", process.pid, "mark", phase)
        before = json.loads(run(BUILD / "hpcrun", "--status", "--json", process.pid).stdout)["processes"][0]["address_samples"]
        wait_for(process.pid, before + 20)
    flags[0].touch()
    child = 0
    while not child:
        found = subprocess.run(["pgrep", "-P", str(process.pid), "-x", "forker"], capture_output=True, text=True, check=False).stdout.split()
        child = int(found[0]) if found else 0
    wait_for(child, 50)
    flags[1].touch()
    process.wait(60)
    run(BUILD / "hpcprof", "-q", "-o", place / "forks", directory)
    answer = json.loads(run(BUILD / "hpcquery", "functions", "--by", "phase", "--json", "--top", "0", place / "forks").stdout)
    found = {}
    for name in ("work", "child_work"):
        for row in answer["rows"]:
            if row["function"] == name:
                found[name] = {cell["phase"] for cell in row["cells"] if cell["value"]}
    print("phases of parent and child:", found)
    expect(answer["columns"] == ["", "ALPHA", "BETA"], f"the phases are {answer['columns']}")
    expect(found.get("child_work") == {"BETA"}, f"the child is in {found}")


def check_paused_end(place):
    """A program that ends in a pause: how long that was is told."""
    program = Program(place, "paused-end", 3600)
    program.wait_for(20)
    program.control("pause")
    time.sleep(3)
    program.end()
    run(BUILD / "hpcprof", "-q", "-o", place / "paused-end", program.directory)
    text = " ".join(run(BUILD / "hpcquery", "vars", place / "paused-end").stdout.split())
    told = re.search(r"paused from outside for ([0-9.]+) s, and still was at the end", text)
    expect(told and 2.5 <= float(told.group(1)) <= 60, f"the pause at the end is told as {told and told.group(0)}: {text[:400]}")


def check_unsaved(place):
    """What could not be saved is not said to be."""
    program = Program(place, "unsaved", 3600)
    program.wait_for(20)
    moved = place / "elsewhere"
    program.directory.rename(moved)
    place.joinpath("unsaved.m").write_text("in the way", encoding="utf-8")
    answer = program.control("snapshot", status=None)
    saved = list(moved.glob("*.hpcrun"))
    expect((answer.returncode == 0) == bool(saved), f"status {answer.returncode} with {len(saved)} profiles: {answer.stdout}{answer.stderr}")
    print("a snapshot without its directory:", answer.returncode, answer.stderr.strip()[:100])
    place.joinpath("unsaved.m").unlink()
    moved.rename(program.directory)
    program.control("snapshot")
    expect(list(program.directory.glob("*.hpcrun")), "the next snapshot is not there")
    program.end()
    database(program.directory, place / "unsaved")


def check_cost(place):
    """The CPU time of the companion while somebody looks, for 64 threads."""
    program = Program(place, "cost", 1, 64)
    program.wait_for(100)
    found = [int(p.name.rsplit("-", 1)[1]) for p in program.directory.glob(".writing-*")]
    if not found:
        print("SKIP part: no companion is noted")
        program.end()
        return
    def used():
        return sum(map(int, pathlib.Path(f"/proc/{found[0]}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()[11:13]))
    time.sleep(2)
    figures = []
    for viewer in (None, [BUILD / "hpcviewer", "--live", "--plain", str(program.pid)]):
        process = subprocess.Popen(viewer, stdout=subprocess.DEVNULL) if viewer else None
        before, begin = used(), time.monotonic()
        time.sleep(12)
        figures.append((used() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - begin))
        if process:
            process.kill()
            process.wait()
    print(f"companion of 64 threads: {figures[0]:.2%} of one CPU alone, {figures[1]:.2%} while somebody looks")
    expect(figures[1] - figures[0] <= 0.01, f"looking costs the companion {figures}")
    program.end()


def check_users(place):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("SKIP part: other users need root and setpriv")
        return
    program = Program(place, "users", 1)
    program.wait_for(10)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, BUILD / "hpcrun", "-V"], capture_output=True, check=False).returncode == 0:
        for command in ("pause", "snapshot", "mark x"):
            refused = run(*nobody, BUILD / "hpcrun", "--control", program.pid, *command.split(), status=1)
            expect("belongs to another user" in refused.stderr, f"another user: {refused.stderr}")
        expect(not program.status()["paused"], "another user has paused it")
    else:
        print("SKIP part: other users cannot run the build")
    program.end()


KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# How somebody looks: a table, the views as lines, and the views as a page.
VIEWERS = {"table": ("--plain",), "lines": ("--tui", "--plain"), "page": ("--no-browser",)}


class Kill:
    """One viewer, companion or program that gets a signal at a random moment: while it begins, runs or ends."""

    def __init__(self, place, number, chance):
        self.place, self.number, self.chance = place, number, chance
        self.victim, self.signal = chance.choice(["viewer", "companion", "program"]), chance.choice(KILLS)
        self.phase, self.look = chance.choice(["begins", "runs", "ends"]), chance.choice(list(VIEWERS))
        self.temporary = place / "tmp"
        self.said, self.seen = place / f"kill{number}.said", 0

    def words(self):
        return f"kill {self.number} ({self.victim}, {self.signal.name}, when it {self.phase}, {self.look})"

    def expect(self, condition, sentence):
        expect(condition, f"{self.words()}: {sentence}")

    def begin_viewer(self):
        with open(self.said, "wb") as said:
            return subprocess.Popen([BUILD / "hpcviewer", "--live", *VIEWERS[self.look], str(self.program.pid)], stdin=subprocess.PIPE,
                                    stdout=said, stderr=said, env={**os.environ, "LC_ALL": "C", "TMPDIR": str(self.temporary)})

    def companion(self):
        found = [int(path.name.rsplit("-", 1)[1]) for path in self.program.directory.glob(".writing-*")]
        return found[0] if found else None

    def strike(self):
        target = {"viewer": self.viewer.pid, "program": self.program.pid, "companion": self.companion()}[self.victim]
        if target:
            try:
                os.kill(target, self.signal)
            except ProcessLookupError: # it had ended
                pass

    def look_once(self):
        """What is recorded for certain now."""
        status = self.program.status()
        self.seen = status["address_samples"] if status else 0

    def end_program(self):
        """The program is told to end; its status."""
        process = self.program.process
        try:
            process.stdin.close()
        except OSError:
            pass
        for _ in process.stdout:
            pass
        return process.wait(120)

    def end_viewer(self):
        """It ends by itself when the program has ended, or where its views stay, when it is told to."""
        if self.look == "lines" and self.viewer.poll() is None:
            try:
                self.viewer.stdin.write(b"q\n")
                self.viewer.stdin.close()
            except OSError:
                pass
        elif self.look == "page" and self.viewer.poll() is None:
            self.viewer.terminate()
        try:
            return self.viewer.wait(120)
        except subprocess.TimeoutExpired:
            self.expect(False, "the viewer hangs")
            self.viewer.kill()
            return self.viewer.wait()

    def check_ends(self):
        status = self.end_program()
        if self.victim != "program":
            self.expect(status == 7, f"the program ends with {status}")
        else: # where it had ended before, with its own status
            self.expect(status == -self.signal or self.phase == "ends" and status == 7, f"the program ends with {status}")
        status = self.end_viewer()
        said = self.said.read_text(encoding="utf-8", errors="replace")
        # where it was told to end, or had nothing to show yet, it says so
        wanted = {0, 1, 128 + signal.SIGTERM} | ({-self.signal, 128 + self.signal} if self.victim == "viewer" else set())
        self.expect(status in wanted, f"the viewer ends with {status}: {said[-500:]}")
        self.expect(status != 1 or "hpcviewer: " in said, f"the viewer fails without a word: {said[-500:]}")
        self.expect("Assert" not in said and "Sanitizer" not in said, said[-500:])
        left = [path.name for path in self.temporary.iterdir()]
        if self.victim == "viewer" and self.signal == signal.SIGKILL and left:
            subprocess.run([BUILD / "hpcviewer", "--live", "--tui", "--plain", "1"], capture_output=True, timeout=120, check=False,
                           env={**os.environ, "TMPDIR": str(self.temporary)}) # the next one clears up behind it
            left = [path.name for path in self.temporary.iterdir()]
        self.expect(not left, f"files are left: {left}")

    def check_data(self):
        if self.victim == "companion":
            run(BUILD / "hpcrun", "--collect", self.program.directory, status=None)
        done = run(BUILD / "hpcprof", "-q", "-o", self.place / f"kill{self.number}", self.program.directory, status=None)
        if done.returncode:
            self.expect(not self.seen, f"{self.seen} samples were seen, and hpcprof says {done.stderr}")
            return
        text = run(BUILD / "hpcquery", "vars", "--json", "--top", "0", self.place / f"kill{self.number}").stdout
        n = sum(row["samples"] for row in json.loads(text)["variables"])
        self.expect(n >= self.seen, f"{n} samples, {self.seen} were seen before")

    def run(self):
        self.program = Program(self.place, f"kill{self.number}", 0.2)
        if self.phase == "begins":
            time.sleep(self.chance.random() * 0.2)
            self.viewer = self.begin_viewer()
            time.sleep(self.chance.random() * 0.3)
        else:
            self.program.wait_for(5)
            self.viewer = self.begin_viewer()
            time.sleep(self.chance.random() * 4)
        if self.phase == "ends":
            self.look_once()
            self.program.process.stdin.close()
            time.sleep(self.chance.random() * 0.2)
        elif self.phase == "runs":
            self.look_once()
        self.strike()
        if self.phase != "ends":
            time.sleep(0.3)
        self.check_ends()
        self.check_data()
        shutil.rmtree(self.program.directory, ignore_errors=True)
        shutil.rmtree(self.place / f"kill{self.number}", ignore_errors=True)


def check_kills(place, n_kills, chance):
    """Whoever is killed, nobody hangs, and what was recorded is there."""
    (place / "tmp").mkdir(exist_ok=True)
    counts = {}
    for i in range(n_kills):
        kill = Kill(place, i, random.Random(chance.random()))
        before = len(failures)
        kill.run()
        key = f"{kill.victim} by {kill.signal.name}"
        n, bad = counts.get(key, (0, 0))
        counts[key] = n + 1, bad + (len(failures) > before)
    print(f"{n_kills} times somebody was killed:", ", ".join(f"{key} {n}" + (f" ({bad} wrong)" if bad else "") for key, (n, bad) in sorted(counts.items())))


def main():
    parser = argparse.ArgumentParser()
    full = os.environ.get("LOCUS_TEST_FULL")
    parser.add_argument("--kills", type=int, default=200 if full else 20)
    parser.add_argument("--seconds", type=int, default=60 if full else 25)
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    print("seed", arguments.seed)
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(arguments.loops)]
    with tempfile.TemporaryDirectory(prefix="locus-live-") as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        subprocess.run([os.environ.get("CC", "cc").split()[-1], "-O1", "-g", "-pthread", "-o", place / "live", SOURCE / "tests/e2e/live.c"],
                       check=True)
        checks = {"seconds": lambda: check_seconds(place, arguments.seconds), "snapshots": lambda: check_snapshots(place),
                  "weights": lambda: check_weights(place, 15), "rate": lambda: check_rate(place), "time": lambda: check_time(place), "cost": lambda: check_cost(place), "forks": lambda: check_forks(place), "unsaved": lambda: check_unsaved(place), "paused-end": lambda: check_paused_end(place),
                  "users": lambda: check_users(place), "kills": lambda: check_kills(place, arguments.kills, random.Random(arguments.seed))}
        try:
            for key, check in checks.items():
                if not arguments.only or key in arguments.only.split(","):
                    check()
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
    sys.exit(bool(failures))


main()
