#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""The functions of Python on the path of every sample are those that the interpreter's own tracing says were running, with the
lines on which each called the next: generators, coroutines, recursion, exceptions, callbacks from C, code that is made anew at the
same addresses, threads; and in interpreters within the interpreter the functions have the time that they took. And an evaluation that begins finds addresses of nothing on its stack. With each interpreter that this
machine has. Between two events of the tracing the truth is one of the two.
usage: python-oracle.py [SECONDS [INTERPRETER...]]"""
import bisect
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", SOURCE / "build"))
PROGRAM = SOURCE / "tests/e2e/programs/python-oracle.py"
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
UNFIT_MAX = 0.05  # of the samples that have no Python although the thread runs some
EVENT = "CPUTIME@500us"


NESTED = """import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
TIMED = '''
import time
def NAME():
    total = 0
    for i in range(6000000):
        total += i % 7
begin = time.thread_time()
NAME()
print("NAME", time.thread_time() - begin, flush=True)
'''
def nested(name):
    interpreters.run_string(interpreters.create(), TIMED.replace("NAME", name))
nested("inner")
exec(TIMED.replace("NAME", "beside"))
thread = threading.Thread(target=nested, args=("on_a_thread",))
thread.start()
thread.join()
"""
NESTED_OFF = 5  # points

# Calls a function again and again over a stack that is full of the address of words that are no addresses.
FILL = """#include <stdint.h>
static uintptr_t nothing[1024];
__attribute__((noinline)) static void fill(void)
{
    volatile uintptr_t below[1024];
    for (int i = 0; i < 1024; i++)
        below[i] = (uintptr_t)&nothing[512];
}
void call(void (*function)(void), long n)
{
    for (int i = 0; i < 1024; i++)
        nothing[i] = (uintptr_t)0x5a5a << 48;
    while (n-- > 0) {
        fill();
        function();
    }
}
"""
BEGIN = """import ctypes, sys, time
call, n_calls = ctypes.CDLL(sys.argv[1]).call, 0
def count():
    global n_calls
    n_calls += 1
function, end, n = ctypes.CFUNCTYPE(None)(count), time.process_time() + float(sys.argv[2]), 0
while time.process_time() < end:
    call(function, ctypes.c_long(1000))
    n += 1
print(n_calls == 1000 * n)
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        sys.exit(f"FAIL: {command}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def interpreters():
    """One of each version: Debian's, and those that pyenv has made."""
    found = {}
    for path in [pathlib.Path("/usr/bin/python3"), *sorted((pathlib.Path.home() / ".pyenv/versions").glob("3.*/bin/python3"))]:
        if path.exists():
            version = run(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
            if version in VERSIONS:
                found.setdefault((version, path == pathlib.Path("/usr/bin/python3")), path)
    return list(found.values())


def dump(path):
    return json.loads(run(BUILD / "hpcproftt", "--json", path))


class Profile:
    """The paths of one thread's samples."""

    def __init__(self, trace):
        profile = dump(trace.with_suffix(".hpcrun"))
        epoch = profile["epochs"][0]
        modules = {module["id"]: module["path"] for module in epoch["modules"]}
        sides = dump(trace.with_suffix(".objects"))
        names = {int(row["start"]) + 1: row["name"] for row in sides.get("regions", [])}
        self.nodes = {abs(node["id"]): (abs(node["parent"]), modules.get(node["module"]), int(node["ip"])) for node in epoch["nodes"]}
        self.texts, self.thread = names, sides["tid"]
        self.samples = [(int(t), node) for t, node in dump(trace)["records"]]
        self.known = {}

    def path(self, node):
        """[(function, first line, line)], outermost first."""
        if node not in self.known:
            found, at = [], node
            while at in self.nodes:
                at, module, ip = self.nodes[at]
                if module and "libhpcrun" in module:  # the mark above which the thread's creator stands
                    break
                if module == "[python]":
                    function, _, line, first = self.texts[ip].split("\n")
                    found.append((function, int(first), int(line)))
            self.known[node] = found[::-1]
        return self.known[node]


def states(log):
    """Of each event, the functions that run after it: [(function, first line, line of its caller, lines of it)]."""
    stack = [(function, first, line, None) for function, first, line in reversed(log["base"] or [])]
    codes = {int(i): code for i, code in log["codes"].items()}
    yield list(stack)
    for _, code, line in log["events"]:
        if code:
            function, first, lines = codes[code]
            stack.append((function, first, line, lines))
        elif len(stack) > len(log["base"] or []):
            stack.pop()
        yield list(stack)


def fits(path, stack, n_base):
    """Whether a path is what the oracle says. Functions: all; lines: where a caller called, and any line of the innermost."""
    if len(path) < len(stack) or [frame[:2] for frame in path[:len(stack)]] != [frame[:2] for frame in stack]:
        return False
    above = path[len(stack):]
    # the tracing itself; a call that only makes a generator is not traced
    if len(above) == 1 and above[0][0].endswith("oracle") or above and above[-1][1] == above[-1][2] and len(above) == 1:
        path = path[:len(stack)]
    if len(path) != len(stack):
        return False
    for i in range(n_base, len(stack)):
        is_last = i + 1 == len(stack)
        if path[i][2] not in (stack[i][3] or [path[i][2]]) if is_last else path[i][2] != stack[i + 1][2]:
            return False
    return True


def compare(profile, log, counts, wrong):
    times = [event[0] for event in log["events"]]
    all_states = list(states(log))
    n_base = len(log["base"] or [])
    for t, node in profile.samples:
        if not times or t < times[0] or t > times[-1]:
            continue
        counts["samples"] += 1
        path = profile.path(node)
        if not path:
            counts["unfit"] += 1
            continue
        at = bisect.bisect_right(times, t)
        near = all_states[max(at - 1, 0):at + 2]
        if not any(fits(path, stack, n_base) for stack in near):
            counts["wrong"] += 1
            wrong.append((t - times[at - 1], times[at] - t if at < len(times) else 0, path, [s for s in near]))


def check(python, seconds, scratch):
    """A sentence about what is wrong, or None."""
    measurement, truth = scratch / "m", scratch / "truth"
    run("rm", "-rf", measurement)
    run(BUILD / "hpcrun", "-t", "-e", EVENT, "-o", measurement, python, PROGRAM, seconds, truth)
    logs = json.loads(truth.read_text(encoding="utf-8"))
    counts, wrong, by_thread = collections.Counter(), [], {log["thread"]: log for log in logs}
    for path in measurement.glob("*.hpctrace"):
        profile = Profile(path)
        if profile.thread in by_thread:
            compare(profile, by_thread[profile.thread], counts, wrong)
    version = run(python, "-V").strip()
    print(f"{version}: {counts['samples']} samples, {counts['wrong']} wrong, {counts['unfit']} without Python", flush=True)
    for late, early, path, near in wrong[:3]:
        print(f"  {late} ns after and {early} ns before an event: {path[-6:]}, not one of {[[frame[:3] for frame in stack[-6:]] for stack in near]}")
    if counts["samples"] < 100 * seconds / 3:
        return f"{version}: only {counts['samples']} samples"
    if counts["wrong"]:
        return f"{version}: {counts['wrong']} wrong paths"
    if counts["unfit"] > UNFIT_MAX * counts["samples"]:
        return f"{version}: {counts['unfit']} samples without Python"
    return None


def check_nested(python, scratch):
    """A sentence about what is wrong with the functions of interpreters within the interpreter, or None."""
    (scratch / "nested.py").write_text(NESTED, encoding="utf-8")
    run("rm", "-rf", scratch / "n", scratch / "n-db")
    said = run(BUILD / "hpcrun", "-e", EVENT, "-o", scratch / "n", python, scratch / "nested.py").splitlines()
    seconds = {name: float(number) for name, number in map(str.split, said)}
    run(BUILD / "hpcprof", "-q", "-o", scratch / "n-db", scratch / "n")
    rows = json.loads(run(BUILD / "hpcquery", "functions", "--json", scratch / "n-db"))["functions"]
    of = {row["function"]: row["inclusive"] / 1e6 for row in rows}
    whole = sum(seconds.values())
    print(f"  nested: {', '.join(f'{name} {of.get(name, 0):.2f} s of {seconds[name]:.2f}' for name in seconds)}", flush=True)
    if len(seconds) != 3 or any(abs(of.get(name, 0) - seconds[name]) * 100 > NESTED_OFF * whole for name in seconds):
        return f"{python}: of {seconds} s in interpreters within the interpreter there are {[row['function'] for row in rows][:6]}"
    return None


def check_begin(python, scratch):
    """A sentence if a program ends otherwise where samples come before an evaluation has filled its record."""
    library, program = scratch / "fill.so", scratch / "begin.py"
    program.write_text(BEGIN, encoding="utf-8")
    if subprocess.run([python, "-c", "import ctypes"], check=False, capture_output=True).returncode:
        print(f"SKIP (part): {python} has no ctypes")
        return None
    if not library.exists():
        library.with_suffix(".c").write_text(FILL, encoding="ascii")
        subprocess.run([os.environ.get("CC", "gcc").split()[-1], "-O2", "-shared", "-fPIC", library.with_suffix(".c"), "-o", library], check=True)
    said = subprocess.run([BUILD / "hpcrun", "-e", "CPUTIME@200us", "-o", scratch / "b", python, program, library, "1.5"],
                          check=False, capture_output=True, text=True)
    return None if (said.returncode, said.stdout) == (0, "True\n") else \
        f"{python}: over a stack of addresses of nothing: status {said.returncode}, {said.stdout}{said.stderr[-300:]}"


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3 if os.environ.get("LOCUS_TEST_FULL") else 1.5
    pythons = [pathlib.Path(path) for path in sys.argv[2:]] or interpreters()
    if not (BUILD / "hpcrun").exists() or not pythons:
        print("SKIP: hpcrun has not been built, or no interpreter that it knows is installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="locus-test.") as scratch:
        place = pathlib.Path(scratch)
        sentences = [told for python in pythons for told in (check(python, seconds, place), check_nested(python, place),
                                                              check_begin(python, place))]
        wrong = [sentence for sentence in sentences if sentence]
    print("\n".join(f"FAIL: {sentence}" for sentence in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
