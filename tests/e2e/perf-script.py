# SPDX-License-Identifier: BSD-3-Clause
"""Files that perf records here, read by hpcproftt and by perf itself: every field of every sample is the same.

Each case records something else (addresses of page faults, breakpoints, registers, call chains, threads, two events,
compressed, piped); then one run of perf script for each field gives a column, which is held against ours."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import perfdata as p  # noqa: E402

BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
TOOL = BUILD / "hpcproftt"
X86_REGISTERS = ("AX BX CX DX SI DI BP SP IP FLAGS CS SS DS ES FS GS R8 R9 R10 R11 R12 R13 R14 R15").split()
failures = []


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, stdin=subprocess.DEVNULL, check=False,
                          **options)


def script(path, fields, *more):
    result = run("perf", "script", "--ns", "--no-inline", "-i", path, "-F", fields, *more)
    if result.returncode:
        raise RuntimeError(f"perf script -F {fields}: {result.stderr.decode()}")
    return result.stdout.decode(errors="surrogateescape")


def lines(path, fields, *more):
    return [line.split() for line in script(path, fields, *more).splitlines() if line.strip()]


def compare(name, what, ours, theirs):
    if ours != theirs:
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        failures.append(f"{name}: {what}: {len(ours)} and {len(theirs)} values, sample {at} differs: "
                        f"{ours[at:at + 1]} and {theirs[at:at + 1]}")


def check_head(name, path, samples):
    """pid/tid, time, period and event; a breakpoint's name has colons of its own."""
    pattern = re.compile(r"\s*(\d+)/(\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(.*?):\s*$")
    theirs = [pattern.match(line).groups() for line in script(path, "pid,tid,time,event,period", "-G").splitlines()]
    theirs = [(int(p), int(t), int(s + ns), int(n), event) for p, t, s, ns, n, event in theirs]
    ours = [(s["pid"], s["tid"], s["time"], s["period"], s["event"]) for s in samples]
    compare(name, "pid, tid, time, period, event", ours, theirs)


def check_number(name, path, samples, field, key):
    theirs = [int(words[0], 16) for words in lines(path, field, "-G")]
    compare(name, field, [s[key] for s in samples], theirs)


def check_chains(name, path, samples):
    """From the raw dump: perf script shows the frames of libraries relative to their mapping."""
    theirs, n_left = [], 0
    for line in run("perf", "script", "-D", "-i", path).stdout.decode(errors="surrogateescape").splitlines():
        begin, entry = re.match(r"\.\.\. FP chain: nr:(\d+)", line), re.match(r"\.\.\.\.\. +\d+: ([0-9a-f]{16})$", line)
        if begin:
            theirs.append([])
            n_left = int(begin.group(1))
        elif entry and n_left:
            theirs[-1].append(int(entry.group(1), 16))
            n_left -= 1
    ours = [s["callchain"] for s in samples]
    compare(name, "call chain", ours, theirs)
    if max(map(len, ours)) < 4:
        failures.append(f"{name}: no call chain is longer than three")


def check_registers(name, path, samples, field, key):
    if platform.machine() != "x86_64":
        return
    theirs = [{n: int(v, 16) for n, v in (word.split(":") for word in words) if n != "ABI"}
              for words in lines(path, field, "-G")]
    ours = []
    for sample in samples:
        bits = [i for i in range(64) if sample[key + "_mask"] >> i & 1]
        ours.append({X86_REGISTERS[bit]: int(value) for bit, value in zip(bits, sample[key])})
    compare(name, field, ours, theirs)


def dump(path):
    result = run(TOOL, "--json", path)
    if result.returncode:
        raise RuntimeError(result.stderr.decode())

    def numbers(pairs):  # beyond 2^53 they are strings of digits
        def number(value):
            if isinstance(value, list):
                return [number(v) for v in value]
            return int(value) if isinstance(value, str) and re.fullmatch(r"\d{16,20}", value) else value
        return {key: number(value) for key, value in pairs}
    return json.loads(result.stdout, object_pairs_hook=numbers)


def check_totals(name, path, data, samples):
    """Records of perf's own statistics, in another form of its output."""
    stats = run("perf", "report", "--stats", "-i", path).stdout.decode()
    count = re.search(r"SAMPLE events:\s+(\d+)", stats)
    if count and int(count.group(1)) != len(samples):
        failures.append(f"{name}: perf counts {count.group(1)} samples, we {len(samples)}")
    for kind in ("MMAP2", "COMM", "FORK", "EXIT"):
        found = re.search(rf"\b{kind} events:\s+(\d+)", stats)
        ours = sum(r["type"] == kind for r in data["records"])
        if found and int(found.group(1)) != ours:
            failures.append(f"{name}: perf counts {found.group(1)} {kind} records, we {ours}")


def check(name, path, fields):
    data = dump(path)
    samples = [r for r in data["records"] if r["type"] == "SAMPLE"]
    if not samples:
        failures.append(f"{name}: no sample was recorded")
        return
    check_head(name, path, samples)
    check_totals(name, path, data, samples)
    for field, key in (("addr", "addr"), ("phys_addr", "phys_addr")):
        if field in fields:
            check_number(name, path, samples, field, key)
    if "ip" in fields:
        check_number(name, path, samples, "ip", "ip")
    if "cpu" in fields:
        compare(name, "cpu", [s["cpu"] for s in samples], [int(w[0].strip("[]")) for w in lines(path, "cpu", "-G")])
    if "data_src" in fields:
        check_number(name, path, samples, "data_src", "data_src")
    if "weight" in fields:
        compare(name, "weight", [s["weight"] for s in samples], [int(w[0]) for w in lines(path, "weight", "-G")])
    if "chain" in fields:
        check_chains(name, path, samples)
    for field, key in (("iregs", "regs_intr"), ("uregs", "regs_user")):
        if field in fields:
            check_registers(name, path, samples, field, key)


def record(name, scratch, program, options):
    path = scratch / f"{name}.data"
    command = ["perf", "record", "-q", "-B", "-N", "-o", "-" if name.startswith("pipe") else path, *options, "--",
               program, scratch / "pages"]
    if name.startswith("pipe"):
        with path.open("wb") as out:
            result = subprocess.run([str(c) for c in command], stdout=out, stderr=subprocess.PIPE, check=False)
    else:
        result = run(*command)
    return path if result.returncode == 0 else skipped(name, result.stderr.decode())


def skipped(name, reason):
    print(f"SKIP {name}: {' '.join(reason.split())[:200]}")
    return None


def generate(scratch, order):
    """A file of a machine of that byte order, which only hardware events make: latencies and data sources."""
    kind = p.IDENTIFIER | p.IP | p.TID | p.TIME | p.ADDR | p.CPU | p.DATA_SRC
    file = p.File(order, [("mem-loads", kind | p.CALLCHAIN | p.WEIGHT_STRUCT, 1000), ("mem-stores", kind | p.PERIOD, 0)])
    file.comm(1000, 100, 100, "app", is_exec=True)
    file.mmap(1001, 100, 0x400000, 0x10000, 0, "/nowhere/app")
    for i in range(300):
        file.sample(i % 2, 2000 + 17 * i, 100, 100 + i % 3, 0x400100 + i, addr=0x7f0000000000 + 64 * i, cpu=i % 4,
                    period=10 + i, chain=(p.CONTEXT_USER, *range(0x400100, 0x400103 + i % 9)), weight=(7 * i, 2, 3),
                    data_src=2 | 2 << 5 | 1 << 33 | (i % 30) << 38)
    path = scratch / ("big-endian.data" if order == ">" else "little-endian.data")
    path.write_bytes(file.bytes())
    return path


def check_generated(scratch):
    for order in "<>":
        path = generate(scratch, order)
        check(path.stem, path, ["ip", "addr", "cpu", "data_src"])
        ours = [s.get("weight", 0) for s in dump(path)["records"] if s["type"] == "SAMPLE"]
        compare(path.stem, "weight", ours, [int(w[0]) for w in lines(path, "weight", "-G")])


def main():
    if not shutil.which("perf"):
        skip("perf is not installed (linux-perf)")
    with tempfile.TemporaryDirectory(prefix="locus-perf-") as name:
        scratch = pathlib.Path(name)
        program = scratch / "touch-pages"
        subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-fno-omit-frame-pointer", "-no-pie", "-pthread", "-o",
                        program, SOURCE / "tests/e2e/programs/touch-pages.c"], check=True)
        (scratch / "pages").write_bytes(bytes(100 * 4096))
        symbols = run("nm", program).stdout.decode()
        counter = re.search(r"([0-9a-f]+) \w counter$", symbols, re.M).group(1)
        cases = {
            "faults": ("-e page-faults -c 1 -d", "ip addr data_src"),
            "breakpoint": (f"-e mem:0x{counter}:w -c 1 -d", "ip addr"),
            "registers": ("-e cpu-clock -c 500000 --intr-regs=ax,bx,sp,ip,r8,r15 --user-regs=sp,ip,di", "ip iregs uregs"),
            "chains": ("-e page-faults -c 3 -d --call-graph fp", "addr chain"),
            "dwarf": ("-e page-faults -c 20 -d --call-graph dwarf,1024", "ip addr uregs"),
            "two": ("-e page-faults -e cpu-clock -d -T --sample-cpu -F 2000", "ip addr cpu"),
            "weights": ("-e cpu-clock -c 700000 -d -W --phys-data", "ip addr weight data_src"),
            "compressed": ("-e page-faults/period=100/,cpu-clock/period=600000/ -d -z", "ip addr"),
            "pipe": ("-e page-faults/period=50/,task-clock/period=600000/ -d", "ip addr"),
            "pipe-chains": ("-e cpu-clock -g -c 900000", "chain"),
        }
        trial = run(BUILD / "hpcrun", "--doctor=breakpoints")
        if trial.returncode:
            print(f"SKIP (part): {(trial.stdout + trial.stderr).decode().strip()}")
            del cases["breakpoint"]
        n_checked = 0
        for case, (options, fields) in cases.items():
            path = record(case, scratch, program, options.split())
            if path:
                n_checked += 1
                check(case, path, fields.split())
        check_generated(scratch)
        if not n_checked:
            skip("perf records nothing here")
    for failure in failures:
        print(f"FAIL: {failure}")
    print(f"{n_checked} of {len(cases)} recordings compared with perf script")
    sys.exit(1 if failures else 0)


main()
