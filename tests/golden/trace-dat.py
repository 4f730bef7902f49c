# SPDX-License-Identifier: BSD-3-Clause
"""Streams of trace.dat: rows, order and twins of made files, and of the real ones where they are, are those that an
independent reader finds; every line and number is libkshark's, and every text trace-cmd's, where these are installed. With
--long: random recordings, a thousand with ./dev test --full, and damaged ones."""
import os
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests/lib"))
import tracedat  # noqa: E402
LIST = BUILD / "tests/golden/list-stream"
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark"
FILTERS = (["--show-event", "sched/sched_switch"], ["--hide-event", "sched/sched_switch"], ["--show-task", "8"],
           ["--hide-task", "8"], ["--show-cpu", "1"], ["--hide-cpu", "1"],
           ["--show-cpu", "1", "--hide-event", "sched/sched_switch"], ["--filter", "sched/sched_switch:next_pid == 7"])
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", check=False)


def rows_of(text):
    """(time, cpu, task, name) of each line of an event."""
    rows = []
    for line in text.split("\n"):
        parts = line.split("; ")
        if len(parts) >= 6 and parts[0] == "0":
            rows.append((int(parts[1]), int(parts[3].split()[1]), int(parts[2].rsplit("-", 1)[1]), parts[5]))
    return rows


def small(order="<", long_bytes=8, lost=3, options=(), clock="local [mono]"):
    made = tracedat.Recording(2, order, long_bytes)
    made.tasks = {7: "seven", 8: "eight", 12: "twelve", 14: "woken", 15: "moved"}
    made.clock = clock
    made.options = [(5, b"Linux somewhere 6.1.0 x86_64\0"), *options]
    made.switch(0, 1000, 0, 7, flags=1, preempt=2)
    made.waking(0, 1100, 7, 8, 0, flags=0x1c)
    made.switch(1, 1100, 0, 8)
    made.migrate(0, 1200, 7, 8, 1, 0)
    made.add(0, 1300, 9, ("test", "mark"), value=5, small=40000)
    made.switch(1, 300_000_000_000, 8, 0, lost=lost)
    made.switch(1, 300_000_000_100, 0, 12, lost=0)
    made.waking(1, 300_000_000_300, 7, 14, 0)
    made.migrate(1, 300_000_000_350, 7, 15, 0, 1)
    made.switch(1, 300_000_000_400, 14, 15)
    made.add(1, 300_000_000_500, 14, ("test", "mark"))
    for task in (12, 14, 15):  # named by the events alone
        del made.tasks[task]
    return made


def check(path, reader):
    off, on = run(LIST, path), run(LIST, "--couplebreak", path)
    expect(rows_of(off.stdout) == [event.row() for event in reader.events], f"{path}: rows {off.stdout} {off.stderr}")
    wanted = [event.row() for event in tracedat.couplebreak(reader.events, reader.n_cpus())]
    expect(rows_of(on.stdout) == wanted, f"{path}: with twins {on.stdout} {on.stderr}, not {wanted}")
    n_types = len({event.id for event in tracedat.couplebreak(reader.events, reader.n_cpus()) if event.id <= -10000})
    expect(f"couplebreak on: {n_types} types" in on.stdout, f"{path}: not {n_types} types of twins")
    without = [line for line in on.stdout.split("\n") if line[:3] == "0; " and "[target]" not in line]
    expect(without == [line for line in off.stdout.split("\n") if line[:3] == "0; "],
           f"{path}: other lines change with couplebreak")


# --- libkshark and trace-cmd ------------------------------------------------------------------------------------------


def build_kshark(scratch):
    """The program that lists by libkshark, or None."""
    flags = run("pkg-config", "--cflags", "--libs", "libkshark")
    program = scratch / "list-kshark"
    folders = [f"-I/usr/include/{name}" for name in ("kernelshark", "traceevent", "trace-cmd", "tracefs", "json-c")]
    made = run(os.environ.get("CC", "cc").split()[0], "-w", "-D_GNU_SOURCE", *folders, "-o", program,
               SOURCE / "tests/golden/list-kshark.c", *flags.stdout.split())
    return program if made.returncode == 0 and flags.returncode == 0 else None


def plain_field(line):
    """A field as both lists have it: its name, and its number when it is one."""
    head, _, value = line.partition(" = ")
    return head.split()[-1], value if re.fullmatch(r"-?\d+", value) else None


def check_kshark(program, path, *options):
    theirs, ours = run(program, *options, path), run(LIST, *options, path)
    theirs = theirs.stdout.split("\n")[1:-1]
    ours = [line for line in ours.stdout.split("\n") if line[:3] in ("0; ", "   ") or line[:2] == "  "]
    expect(len(theirs) > 5 and len(theirs) == len(ours), f"{path} {options}: {len(ours)} lines, not {len(theirs)}")
    for mine, other in zip(ours, theirs):
        if mine.startswith("  "):
            mine, other = plain_field(mine), plain_field(other)
            mine = mine if other[1] else (mine[0], None)
        expect(mine == other, f"{path} {options}: {mine}, libkshark: {other}")


def check_trace_cmd(path):
    """Time (microseconds), CPU, task and text of trace-cmd report."""
    def key(seconds, cpu, task, info):
        return seconds, cpu, task, info.strip()
    theirs = []
    for line in run("trace-cmd", "report", path).stdout.split("\n"):
        found = re.match(r"\s*.*-(\d+)\s+\[(\d+)\]\s+(\d+\.\d+):\s+\w+:\s*(.*)", line)
        if found:
            theirs.append(key(found[3], int(found[2]), int(found[1]), found[4]))
    ours = []
    for line in run(LIST, path).stdout.split("\n"):
        parts = line.split("; ", 6)
        if parts[0] == "0" and parts[5] != "missed_events":
            micros = (int(parts[1]) + 500) // 1000
            ours.append(key(f"{micros // 1000000}.{micros % 1000000:06}", int(parts[3].split()[1]),
                            int(parts[2].rsplit("-", 1)[1]), parts[6].rsplit("; ", 1)[0]))
    expect(theirs and ours == theirs, f"{path}: trace-cmd report differs: {[p for p in zip(ours, theirs) if p[0] != p[1]][:3]}")


def check_peers(scratch, paths):
    program = build_kshark(scratch)
    if program:
        for path in paths:
            check_kshark(program, path)
        for options in (["--fields"], *FILTERS):
            check_kshark(program, paths[0], *options)
    else:
        print("SKIP (part): nothing can be built with libkshark (libkshark-dev, libtracefs-dev, libtracecmd-dev, libjson-c-dev)")
    if shutil.which("trace-cmd"):
        for path in paths:
            check_trace_cmd(path)
        run("trace-cmd", "convert", "-i", paths[0], "-o", scratch / "squeezed.dat", "--compression", "zstd")
        first, second = run(LIST, paths[0]), run(LIST, scratch / "squeezed.dat")
        expect(rows_of(first.stdout) == rows_of(second.stdout), f"compressed by trace-cmd: {second.stderr}")
    else:
        print("SKIP (part): trace-cmd is not installed")


# --- random and damaged recordings ------------------------------------------------------------------------------------


def random_recording(rng):
    n_cpus = rng.randint(1, 5)
    made = tracedat.Recording(n_cpus, page=256)
    made.tasks = {task: f"t{task}" for task in range(1, 6)}
    for cpu in range(n_cpus):
        time = rng.randint(0, 50)
        for _ in range(rng.randint(0, 25)):
            time += rng.choice((0, 0, 1, 5, 40, 1 << 27))
            lost = rng.choice((0, 1, 77)) if rng.random() < 0.04 else None
            task, other, target = rng.randint(0, 6), rng.randint(0, 6), rng.randint(-1, n_cpus)
            kind = rng.random()
            if kind < 0.4:
                made.switch(cpu, time, task, other, lost=lost)
            elif kind < 0.8:
                made.waking(cpu, time, task, other, target, lost=lost)
            elif kind < 0.9:
                made.migrate(cpu, time, task, other, cpu, target, lost=lost)
            else:
                made.add(cpu, time, task, ("test", "mark"), lost=lost, value=time)
    return made


def check_levels(scratch, paths, least):
    """Levels that are made while a recording is read are those that are made of its events, byte by byte; what cannot be
    read so, is not."""
    done = run(LIST, "--levels", scratch / "levels", *paths)
    expect(done.returncode == 0, f"levels: {done.stderr[:300]}")
    answers = dict(zip(done.stdout.split("\n")[::2], done.stdout.split("\n")[1::2])) if len(paths) > 1 else {paths[0]: done.stdout.strip()}
    for path, answer in answers.items():
        expect(answer == "the same" or "has no events of a type" in answer or "come in no order" in answer or "has no levels" in answer,
               f"levels of {path}: {answer}")
    n_same = sum(answer == "the same" for answer in answers.values())
    expect(n_same >= least, f"levels of {n_same} of {len(paths)} recordings are made while they are read")


def check_random(scratch, n):
    rng = random.Random(4711)
    made = {}
    for i in range(n):
        recording = random_recording(rng)
        raw = recording.version_6() if i % 2 else recording.version_7()
        path = scratch / f"random-{i}.dat"
        path.write_bytes(raw)
        made[str(path)] = tracedat.Reader(raw)
    for options in ([], ["--couplebreak"]):
        done = run(LIST, *options, *made)
        expect(done.returncode == 0, f"random recordings: {done.stderr[:300]}")
        for part in done.stdout.split("== ")[1:]:
            path = part.split("\n", 1)[0]
            events = made[path].events
            wanted = tracedat.couplebreak(events, made[path].n_cpus()) if options else events
            expect(rows_of(part) == [event.row() for event in wanted], f"{path} {options}: {part[:1500]}")
    check_levels(scratch, [*made], 0.5 * n)  # of these that have events of each type that they describe


def check_damaged(scratch, raw, n):
    """Whatever happens to a file, it is read, or refused by one sentence that names it."""
    rng = random.Random(42)
    path = scratch / "damaged.dat"
    n_refused = 0
    for i in range(n):
        if i % 3 == 0:
            damaged = raw[:rng.randrange(len(raw))]
        else:
            damaged = bytearray(raw)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(damaged)) if i % 3 == 1 else rng.randrange(min(len(damaged), 4096))
                damaged[at] = rng.choice((0, 0xff, 0x80, rng.randrange(256)))
        path.write_bytes(damaged)
        done = run(LIST, "--couplebreak", path)
        n_refused += done.returncode == 1
        one = done.stderr.count("\n") == 1 and str(path) in done.stderr
        expect(done.returncode == 0 and not done.stderr or done.returncode == 1 and one,
               f"damaged {i}: {done.returncode} {done.stderr[:300]}")
        expect("truncated" in done.stderr or "not a recording" in done.stderr or i % 3, f"truncated {i}: {done.stderr}")
    expect(n_refused > n // 4, f"only {n_refused} of {n} damaged files are refused")


def check_linear(scratch):
    """Where the tasks that are woken never come, a search for each would go through all that follows: a million events would take
    minutes of CPU time."""
    path = scratch / "unanswered.dat"
    tracedat.write_tiled(path, 1_000_000)
    done = subprocess.run([LIST, "--quiet", "--couplebreak", path], capture_output=True, text=True, check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
    expect(done.returncode == 0, f"a million events with twins: {done.returncode} {done.stderr}")


def hostile():
    """Formats that make a library work hard."""
    for text in (b"name: x\nID: 300\nformat:\n\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: " +
                 b"(" * 200000, b"name: x\nID: 300\nformat:\n\tfield:char a[4];\toffset:4000000000;\tsize:-1;\n\nprint fmt: "
                 b'"%s%s%s%n%s", REC->a, REC->a', b"name:", b"\xff" * 3000):
        made = small()
        made.formats = [("sched", text)]
        yield made.version_6()


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        made = {"6": small().version_6(), "7": small().version_7(), "words": small(long_bytes=4).version_6(),
                "date": small(options=[(1, b"0x123456\0"), (7, b"-1000\0")]).version_7(),
                "counts": small(options=[(14, struct.pack("<IIQ", 3, 1, 500))]).version_7()}
        for kind, raw in made.items():
            path = scratch / f"small-{kind}.dat"
            path.write_bytes(raw)
            first = run(LIST, path)
            if "without libtraceevent" in first.stderr or "install libtraceevent-dev" in first.stderr:
                print("SKIP: built without libtraceevent")
                return 77
            if kind not in ("date", "counts"):
                check(path, tracedat.Reader(raw))
        paths = [scratch / f"small-{kind}.dat" for kind in made]
        if "--long" in sys.argv:
            check_random(scratch, 1000 if os.environ.get("LOCUS_TEST_FULL") else 250)
            for kind in ("6", "7"):
                check_damaged(scratch, made[kind], 150 if os.environ.get("LOCUS_TEST_FULL") else 50)
            for i, raw in enumerate(hostile()):
                path = scratch / f"hostile-{i}.dat"
                path.write_bytes(raw)
                done = run(LIST, path)
                expect(done.returncode == 0 or done.returncode == 1 and done.stderr.count("\n") == 1,
                       f"hostile formats {i}: {done.returncode} {done.stderr[:300]}")
        else:
            wanted = rows_of(run(LIST, paths[0]).stdout)
            for kind, raw in (("big-endian", small(">").version_6()), ("squeezed", small().version_7("zlib"))):
                path = scratch / f"{kind}.dat"
                path.write_bytes(raw)
                done = run(LIST, path)
                expect(rows_of(done.stdout) == wanted, f"{kind}: {done.stdout} {done.stderr}")
            check_linear(scratch)
            real = sorted(DATA.glob("*.dat"))
            check_levels(scratch, [*paths, scratch / "big-endian.dat", scratch / "squeezed.dat", *real], len(paths) + 2)
            for path in real:
                check(path, tracedat.Reader(path.read_bytes()))
            if not real:
                print(f"SKIP (part): no recordings in {DATA} (set LOCUS_SHARED_DATA)")
            check_peers(scratch, paths + real)
    for failure in failures[:20]:
        print("FAIL:", failure[:2000])
    return 1 if failures else 0


sys.exit(main())
