# SPDX-License-Identifier: BSD-3-Clause
"""Reports about a window of a large recording say the same whether all of it is read, or, with the index that its levels are
kept with, a part. A recording that is damaged elsewhere shows that no more is read."""
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import tracedat  # noqa: E402

N_EVENTS, N_WINDOWS = 220_000, int(os.environ.get("LOCUS_N_WINDOWS", "12"))
REPORTS = ("tasks", "cpus", "latencies", "runs", "migrations", "samples", "variables", "paths", "events", "timeline")
SAMPLE = ("locus", "sample")
tracedat.EVENTS[SAMPLE] = ((("char", "variable[16]", 16, 0), ("char", "place[16]", 16, 0), ("u32", "path_node", 4, 0)),
                           '"variable=%s", REC->variable')
tracedat.IDS[SAMPLE] = 400
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def write_lively(path, seed):
    """Tasks that run in one place at a time, change their names, sleep long or short, are moved, or lose records; a CPU
    that is silent at first; another one never."""
    dice, out, n_cpus = random.Random(seed), tracedat.Recording(6), 6
    out.tasks = {100 + i: f"task {i}" for i in range(40)}
    running, t, lost = [0] * n_cpus, 5_000_000, [None] * n_cpus
    for i in range(N_EVENTS):
        t += dice.choice([0, 0, 1, 3, 1000, 40_000, 300_000])
        cpu = dice.randrange(3 if i < N_EVENTS // 2 else 5)
        task = 100 + (dice.randrange(15) if dice.random() < 0.995 else dice.randrange(40))
        if dice.random() < 0.0005:
            out.tasks[task] = f"name {i}"
        if dice.random() < 0.0003:
            lost[cpu] = dice.choice([0, 7])
        more = {"lost": lost[cpu]}
        if task in running and dice.random() < 0.998:
            if dice.random() < 0.5:
                out.add(cpu, t, running[cpu], ("test", "mark"), value=t, **more)
            else:
                out.add(cpu, t, running[cpu], SAMPLE, variable=f"v{task % 7}", place="f", path_node=task % 5, **more)
        elif dice.random() < 0.4:
            out.waking(cpu, t, running[cpu], task, dice.randrange(n_cpus), **more)
        else:
            task = 0 if dice.random() < 0.3 else task
            if task == running[cpu]:
                continue
            out.switch(cpu, t, running[cpu], task, prev_state=dice.choice([0, 1, 1, 2, 16]), **more)
            running[cpu] = task
        lost[cpu] = None
    path.write_bytes(out.version_6() if seed % 2 else out.version_7())


def keep(path):
    """Makes its levels, with the index."""
    done = subprocess.run([BUILD / "tests" / "lib" / "ask-packed", "--json", path, '{"report": "streams"}'], capture_output=True, check=False)
    expect(done.returncode == 0, f"{path.name}: {done.stderr}")
    expect(path.with_name(path.name + ".locus-time").exists(), f"{path.name}: nothing is kept")


def report(path, name, window, form):
    words = [BUILD / "hpcquery", "sched", name, "--from", window[0], "--to", window[1], *form, path]
    done = subprocess.run(words, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def windows(path, dice):
    """As people write them: seconds, nanoseconds, from the beginning on; short and long, within, beside and behind."""
    done = subprocess.run([BUILD / "hpcquery", "sched", "events", "--csv", "--top", "1", path], capture_output=True, text=True, check=False)
    begin = int(done.stdout.splitlines()[1].split(",")[1])
    length = int(subprocess.run([BUILD / "tests" / "lib" / "ask-packed", "--json", path, '{"report": "streams"}'], capture_output=True,
                                text=True, check=False).stdout.split('"length_ns": ')[1].split(",")[0])
    for i in range(N_WINDOWS):
        part = length >> dice.randrange(2 if i % 4 == 0 else 6, 24)
        first = dice.randrange(-part, length + part // 2)
        last = first + part
        kind = i % 3
        if kind == 0 or first < 0:
            yield f"{(begin + first) / 1e9:.6f}", f"{(begin + last) / 1e9:.6f}"
        elif kind == 1:
            yield f"{begin + first}ns", f"{begin + last}ns"
        else:
            yield f"+{first / 1e9:.9f}", f"+{last / 1e9:.9f}"


def check_windows(path, seed):
    dice = random.Random(seed)
    kept, aside = path.with_name(path.name + ".locus-time"), path.with_name("aside")
    asked = []
    for window in windows(path, dice):
        names = REPORTS if os.environ.get("LOCUS_N_WINDOWS") else dice.sample(REPORTS, 3)
        asked += [(name, window, dice.choice(((), ("--csv",), ("--json",), ("--cpu", "1-2") if name != "variables" and name != "paths" else ())))
                  for name in names]
    parts = [report(path, *words) for words in asked]
    kept.rename(aside)
    for words, part in zip(asked, parts):
        whole = report(path, *words)
        expect(part == whole, f"{path.name}: {words}: {part} instead of {whole}"[:1500])
    aside.rename(kept)
    return asked


def check_damaged(path):
    """The last pages are no pages any more, which the file's time does not tell."""
    raw, info = bytearray(path.read_bytes()), path.stat()
    before = report(path, "events", ("+0.001", "+0.0015"), ())
    expect(before[0] == 0 and before[1].count(b"\n") > 4, f"a window at the beginning: {before}")
    at = len(raw) - 4096
    struct.pack_into("<Q", raw, at + 8, 0x7fffff)
    path.write_bytes(raw)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    expect(report(path, "events", ("+0.001", "+0.0015"), ()) == before, "what lies elsewhere was read")
    whole = report(path, "events", ("+0", "+0.0005"), ("--filter", "sched/sched_switch:prev_pid>0"))
    expect(whole[0] != 0 and b"page" in whole[2], f"the recording is not damaged: {whole}")
    path.write_bytes(raw)  # now later
    stale = report(path, "events", ("+0.001", "+0.0015"), ())
    expect(stale[0] != 0 and b"page" in stale[2], f"an index of another file was used: {stale[:1]}, {stale[2]}")


def check_index(path):
    """An index that is damaged is not used."""
    kept = path.with_name(path.name + ".locus-time")
    raw = bytearray(kept.read_bytes())
    before = report(path, "tasks", ("+0.001", "+0.0015"), ("--json",))
    dice = random.Random(5)
    for at in [len(raw) - 8, len(raw) - 5000] + [dice.randrange(200) for _ in range(10)]:
        raw[at] ^= 0x55
        kept.write_bytes(raw)
        after = report(path, "tasks", ("+0.001", "+0.0015"), ("--json",))
        expect(after == before, f"damaged at {at}: {after}"[:300])
        raw[at] ^= 0x55
    kept.write_bytes(raw)


def main():
    with tempfile.TemporaryDirectory(prefix="sched-part.") as scratch_name:
        scratch = pathlib.Path(scratch_name)
        os.environ["XDG_CACHE_HOME"] = str(scratch)
        first, second, tiled = scratch / "first.dat", scratch / "second.dat", scratch / "tiled.dat"
        write_lively(first, 1)
        write_lively(second, 2)
        tracedat.write_tiled(tiled, 240_000)
        for i, path in enumerate((first, second, tiled)):
            keep(path)
            check_windows(path, i)
        check_index(first)
        check_damaged(tiled)
    for sentence in failures[:20]:
        print("FAIL:", sentence)
    sys.exit(bool(failures))


main()
