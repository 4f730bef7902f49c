#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""Measurement directories in which something is not what it should be. A pipe, a device or a directory in the place of any
file, and damaged files of each kind: the tools end by themselves, by an exit status of their own and never by a signal,
and what a side file costs is a note. A signal ends hpcprof whatever it waits for, and nothing half-made stays."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

build, source = pathlib.Path(os.environ["LOCUS_BUILDDIR"]), pathlib.Path(os.environ["LOCUS_SRCDIR"])
N_DAMAGED = int(sys.argv[1]) if len(sys.argv) > 1 else 25 if os.environ.get("LOCUS_TEST_FULL") else 8
HANG_S = 60  # far above what any of these takes; only a tool that waits for ever reaches it
PROGRAM = """#include <stdlib.h>
static double table[4096];
int main(void)
{
    size_t n = 1 << 18;
    double *block = malloc(n * sizeof *block), sum = 0;
    for (int k = 0; k < 120; k++)
        for (size_t i = 0; i < n; i++)
            sum += block[i * 7919 % n] += table[i % 4096] += 1;
    return sum < 0;
}
"""
problems = []


def expect(condition, what):
    if not condition:
        problems.append(what)
        print("FAIL:", what)


def run(*command, **more):
    """Exit status (negative: a signal), and both outputs in one."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, timeout=HANG_S,
                              stdin=subprocess.DEVNULL, **more)
    except subprocess.TimeoutExpired:
        return "hangs", ""
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def measure(scratch):
    (scratch / "program.c").write_text(PROGRAM)
    subprocess.run([os.environ.get("CC", "cc").split()[0], "-g", "-O1", "-o", "program", "program.c"], cwd=scratch, check=True)
    status, said = run(build / "hpcrun", "-t", "-e", "CPUTIME", "-o", "good", "./program", cwd=scratch)
    if status != 0:
        print(f"SKIP: nothing can be measured here: {said}")
        sys.exit(77)
    expect(run(build / "hpcprof", "-v", "-o", "good-db", "good", cwd=scratch)[0] == 0, "the good measurement")


def replacements(path):
    """What else can lie in the place of a file."""
    yield "a pipe", lambda: os.mkfifo(path)
    yield "a directory", lambda: path.mkdir()
    yield "a link to a device", lambda: path.symlink_to("/dev/zero")
    yield "a link to a terminal", lambda: path.symlink_to("/dev/tty")


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_all_ways(scratch, directory, what, may_fail):
    """All tools that read the directory."""
    remove(scratch / "db")
    status, said = run(build / "hpcprof", "-v", "-o", "db", directory, cwd=scratch)
    expect(status == 0 or (may_fail and status == 1), f"hpcprof, {what}: {status} {said}")
    expect(not list(scratch.glob("db.*")), f"hpcprof, {what}: something half-made is left")
    status, said = run(build / "hpcstruct", directory, cwd=scratch)
    expect(status in (0, 1), f"hpcstruct, {what}: {status} {said}")
    return said


def check_strange_files(scratch):
    names = sorted(entry.name for entry in (scratch / "good").iterdir()) + [".writing-00000001-77", ".claimed-x.log",
                                                                            "index-00000001", "companion-1.txt"]
    for name in names:
        for kind, make in replacements(scratch / "bad" / name):
            shutil.rmtree(scratch / "bad", ignore_errors=True)
            shutil.copytree(scratch / "good", scratch / "bad")
            remove(scratch / "bad" / name)
            make()
            read_all_ways(scratch, "bad", f"{kind} in the place of {name}", name.endswith(".hpcrun"))
            status, said = run(build / "hpcproftt", scratch / "bad" / name)
            expect(status == 1, f"hpcproftt {name}, {kind}: {status} {said}")
            if kind == "a pipe":
                status, said = run(build / "hpcrun", "--collect", "bad", cwd=scratch)
                expect(status in (0, 1), f"hpcrun --collect, {kind} {name}: {status} {said}")


def check_strange_database(scratch):
    for name in sorted(entry.name for entry in (scratch / "good-db").iterdir() if entry.is_file()):
        for kind, make in replacements(scratch / "bad-db" / name):
            shutil.rmtree(scratch / "bad-db", ignore_errors=True)
            shutil.copytree(scratch / "good-db", scratch / "bad-db")
            (scratch / "bad-db" / name).unlink()
            make()
            for command in (["hpcquery", "vars", "bad-db"], ["hpcproftt", f"bad-db/{name}"],
                            ["hpcprof", "-q", "-x", "-o", "bad-db", "good"]):
                status, said = run(build / command[0], *command[1:], cwd=scratch)
                expect(status in (0, 1), f"{' '.join(command)}, {kind} in the place of {name}: {status} {said}")


def check_left_behind(scratch):
    """A detour of a companion that has died, with pipes in it."""
    place = scratch / "place"
    for name in ("target", "setup", "1", "1/arena", "1/x-000000-000-00000001-1-0.hpcrun", "x-000000-000-00000001-1-0.log",
                 ".claimed-x-000000-000-00000001-1-0.log"):
        shutil.rmtree(place, ignore_errors=True)
        detour = place / "locus-detour-abcdef"
        (detour / "1").mkdir(parents=True)
        (detour / "target").write_text(f"{(scratch / 'good').resolve()}\n")
        for file in ("setup", "1/arena", "x-000000-000-00000001-1-0.log"):
            (detour / file).write_text("nothing")
        remove(detour / name)
        os.mkfifo(detour / name)
        status, said = run(build / "hpcrun", "--local", place, "--collect", "good", cwd=scratch)
        expect(status in (0, 1), f"hpcrun --collect, a pipe as {name} of what was left: {status} {said}")
    for path in (scratch / "good").glob("x-000000-*"):
        path.unlink()


def damaged(original, rng, n):
    """n variants: cut off, bits flipped, a piece twice or missing, digits and names changed."""
    for i in range(n):
        data = bytearray(original)
        kind = i % 5
        if kind == 0:
            del data[rng.randrange(len(data)):]
        elif kind == 1:
            for _ in range(rng.choice((1, 1, 8, 64))):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 2:
            at, length = rng.randrange(len(data)), rng.randrange(1, 200)
            data[at:at] = data[at:at + length] * rng.choice((1, 3))
        elif kind == 3:
            at = rng.randrange(len(data))
            del data[at:at + rng.randrange(1, 200)]
        else:
            places = [k for k, byte in enumerate(data) if chr(byte).isdigit()] or [0]
            for _ in range(rng.choice((1, 4, 30))):
                data[rng.choice(places)] = rng.choice(b"0123456789-xf")
        yield bytes(data)


# What hwloc 2.9 was seen to crash on, or to take for as long as it likes.
def hostile_topologies(text):
    yield text.replace("<object type=\"PU\"", "<object type=\"PU\" cpuset=\"0xffffffff,0xffffffff\"", 1)
    yield text.replace("type=\"Machine\"", "type=\"PU\"", 1)
    yield text.replace("type=\"NUMANode\"", "type=\"Misc\"")
    yield text.replace("type=\"Package\"", "type=\"NUMANode\"")
    yield text.replace("nodeset=", "cpuset=")
    yield text.replace("cpuset=", "nosuch=")
    yield "<topology version=\"2.0\">" + "<object type=\"Group\">" * 200000
    yield text.replace("os_index=\"0\"", "os_index=\"4294967295\"")
    yield text.replace("0x", "0xffffffff,0x0000000")


def check_damaged(scratch):
    rng = random.Random(4)
    for path in sorted((scratch / "good").iterdir()):
        variants = list(damaged(path.read_bytes(), rng, N_DAMAGED))
        if path.suffix == ".xml":
            variants += list(damaged(path.read_bytes(), rng, 2 * N_DAMAGED))
            variants += [text.encode() for text in hostile_topologies(path.read_text())]
        for i, data in enumerate(variants):
            shutil.rmtree(scratch / "bad", ignore_errors=True)
            shutil.copytree(scratch / "good", scratch / "bad")
            (scratch / "bad" / path.name).write_bytes(data)
            remove(scratch / "db")
            status, said = run(build / "hpcprof", "-v", "-o", "db", "bad", cwd=scratch)
            is_fit = status == 0 or (path.suffix in (".hpcrun", ".log") and status == 1)
            expect(is_fit, f"hpcprof, damaged {path.name} ({i}): {status} {said}")


def check_damaged_program(scratch):
    """The program itself, under the path that the profile names."""
    rng = random.Random(5)
    program = scratch / "program"
    original = program.read_bytes()
    for i, data in enumerate(damaged(original, rng, N_DAMAGED)):
        program.write_bytes(data)
        remove(scratch / "db")
        status, said = run(build / "hpcprof", "-v", "-o", "db", "good", cwd=scratch)
        expect(status == 0, f"hpcprof, damaged program ({i}): {status} {said}")
        status, said = run(build / "hpcstruct", "-o", "structure", program, cwd=scratch)
        expect(status in (0, 1), f"hpcstruct, damaged program ({i}): {status} {said}")
    program.write_bytes(original)


def check_signal(scratch):
    """hpcprof waits for a measurement that another host says it writes; a signal ends that at once."""
    shutil.rmtree(scratch / "bad", ignore_errors=True)
    shutil.copytree(scratch / "good", scratch / "bad")
    (scratch / "bad" / ".writing-12345678-77").write_text("writing 77\n")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = subprocess.Popen([build / "hpcprof", "-q", "-o", "db", "bad"], cwd=scratch, stderr=subprocess.PIPE)
        try:
            process.wait(1)
            expect(False, f"hpcprof did not wait for the other host: {process.stderr.read()}")
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        try:
            expect(process.wait(20) == -number, f"hpcprof ended otherwise than by {number}: {process.returncode}")
        except subprocess.TimeoutExpired:
            expect(False, f"{number.name} does not end hpcprof")
            process.kill()
            process.wait()
        process.stderr.close()
    expect(not list(scratch.glob("db*.new*")), "something half-made is left")


def main():
    with tempfile.TemporaryDirectory(prefix="locus-test.") as name:
        scratch = pathlib.Path(name)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        measure(scratch)
        for check in (check_strange_files, check_strange_database, check_left_behind, check_signal, check_damaged,
                      check_damaged_program):
            check(scratch)
            print(check.__name__, "problems so far:", len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
