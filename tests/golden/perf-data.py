# SPDX-License-Identifier: BSD-3-Clause
"""Files of perf made by our own generator, of either byte order, as files and piped: hpcproftt prints what was put in,
hpcprof gives exactly the sums per variable and metric, and damaged files give one error."""
import csv
import io
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import perfdata as p  # noqa: E402
import toolchain  # noqa: E402

LOADS = p.IDENTIFIER | p.IP | p.TID | p.TIME | p.ADDR | p.CPU | p.CALLCHAIN | p.WEIGHT_STRUCT | p.DATA_SRC
STORES = p.IDENTIFIER | p.IP | p.TID | p.TIME | p.ADDR | p.CPU | p.PERIOD | p.DATA_SRC
EVENTS = [("mem-loads", LOADS, 1000), ("mem-stores", STORES, 0), ("silent", STORES, 7)]


def source(op, number, snoop=1, remote=0, hops=0, lock=1, dtlb=2, level=2):
    """A data source from its fields; the newer ones where there are two."""
    return (op | level << 5 | snoop << 19 | lock << 24 | dtlb << 26 | number << 33 | remote << 37 | hops << 43)


LOAD, STORE = 2, 4
# What the hardware says, and which metrics that must be (by the table in the documentation of the metrics).
ACCESSES = {
    source(LOAD, 1): ["MEM-Load", "MEM-Load-L1hit"],
    source(LOAD, 2): ["MEM-Load", "MEM-Load-L2hit"],
    source(LOAD, 3, snoop=2): ["MEM-Load", "MEM-LLC-hit"],
    source(LOAD, 3, snoop=16): ["MEM-Load", "MEM-hitm-local"],
    source(LOAD, 12): ["MEM-Load", "MEM-Load-FBhit"],
    source(LOAD, 13, snoop=2): ["MEM-Load", "DRAM-miss-to-lcl", "MEM-Load Exclusive"],
    source(LOAD, 13, snoop=2, remote=1): ["MEM-Load", "DRAM-miss-to-rmt", "MEM-Load Exclusive"],
    source(LOAD, 1, lock=2): ["MEM-Load", "MEM-Load-L1hit", "MEM-Locked"],
    source(STORE, 1): ["MEM-Store", "MEM-Store-L1hit"],
    source(STORE, 1, level=4): ["MEM-Store", "MEM-Store-L1miss"],
}
PROGRAM = """
#define P 4096
char alpha[64 * P] __attribute__((aligned(P))) = {1};
char beta[32 * P] __attribute__((aligned(P)));
int main(void) { return alpha[0] + beta[0] == 9; }
"""
# Away from where programs of any architecture lie.
STACK, HEAP, FILE = 0x7ffffff00000, 0x40000000, 0x48000000
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(tool, *arguments):
    return subprocess.run([str(BUILD / tool), *map(str, arguments)], capture_output=True, text=True, check=False,
                          errors="replace", env={**os.environ, "LC_ALL": "C"})


def build(scratch):
    """A program at fixed addresses: path, addresses of its symbols, its executable segment."""
    program = scratch / "program"
    (scratch / "program.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([*toolchain.COMPILER, "-no-pie", "-g", "-o", program, scratch / "program.c"], check=True)
    nm = subprocess.run([toolchain.utility("nm"), program], capture_output=True, text=True, check=True).stdout
    symbols = {name: int(address, 16) for address, name in re.findall(r"^([0-9a-f]+) \w (\w+)$", nm, re.M)}
    headers = subprocess.run([toolchain.utility("readelf"), "-lW", program], capture_output=True, text=True, check=True).stdout
    segment = re.search(r"LOAD\s+0x([0-9a-f]+) 0x([0-9a-f]+) \S+ 0x([0-9a-f]+) \S+ R E", headers)
    return program, symbols, tuple(int(part, 16) for part in segment.groups())


def fill(file, program, symbols, segment, rng):
    """Samples with known content. Returns (event, variable, data source, period, weight) of each. Records of later
    times stand before earlier ones, as those of other CPUs do."""
    offset, vaddr, length = segment
    page = vaddr & ~4095
    places = {"alpha": symbols["alpha"], "beta": symbols["beta"], "stack of thread 0": STACK + 0x8000,
              "<heap without allocation log>": HEAP, "/nowhere/input.bin": FILE, "<null>": 0x10, "<no block>": 0x5000000}
    samples = []
    main = symbols["main"] + 4
    late = []
    for i in range(900):
        event, time = rng.randrange(2), 2000 + 10 * i
        variable = rng.choice(list(places))
        data_src = rng.choice([s for s in ACCESSES if s & 31 == (LOAD, STORE)[event]])
        period = 1000 if event == 0 else rng.randrange(1, 500)
        weight = (rng.randrange(1, 800), 3, 5) if event == 0 else (0, 0, 0)
        address = places[variable] + (0 if variable.startswith("<n") else 8 * rng.randrange(1000))
        late.append((event, time, address, data_src, period, weight))
        samples.append((event, variable, data_src, period, weight[0]))
    half = late[:450], late[450:]
    put_samples(file, half[1][:200], main)
    file.finished_round()
    file.comm(1000, 100, 100, "program", is_exec=True)
    file.mmap(1001, 100, page, (length + vaddr - page + 4095) & ~4095, offset & ~4095, str(program))
    file.mmap(1002, 100, STACK, 0x21000, STACK, "[stack]", protection=3)
    file.mmap(1003, 100, HEAP, 0x21000, 0, "//anon", protection=3)
    file.mmap(1004, 100, FILE, 0x10000, 0, "/nowhere/input.bin", protection=1)
    file.fork(1005, 100, 101, 100, 100)
    put_samples(file, half[0], main)
    file.lost(2500, 0, 100, 100, 17)
    file.throttle(2600, 1, 100, 101)
    put_samples(file, half[1][200:], main)
    return samples


def put_samples(file, samples, ip):
    for event, time, address, data_src, period, weight in samples:
        file.sample(event, time, 100, 100 + time // 10 % 2, ip, addr=address, cpu=time // 10 % 4, period=period,
                    chain=(p.CONTEXT_USER, ip, ip + 4), weight=weight, data_src=data_src)


def check_dump(name, path, samples):
    result = run("hpcproftt", "--json", path)
    expect(result.returncode == 0, f"{name}: hpcproftt: {result.stderr}")
    data = json.loads(result.stdout)
    expect(data["byte_order"] == ("big" if "big" in name else "little") and data["hostname"] == "node17",
           f"{name}: the header is another one")
    expect([e["name"] for e in data["events"]] == [e[0] for e in EVENTS] and
           all(e["precise_ip"] == 2 for e in data["events"]), f"{name}: the events are others")
    found = [r for r in data["records"] if r["type"] == "SAMPLE"]
    times = [r["time"] for r in data["records"] if r["type"] in ("SAMPLE", "MMAP2", "FORK", "LOST")]
    expect(times == sorted(times), f"{name}: the records are not in order of time")
    ours = [([e[0] for e in EVENTS].index(r["event"]), int(r["data_src"]), r["period"], r.get("weight", 0))
            for r in found]
    expect(ours == [(e, d, n, w) for e, _, d, n, w in samples], f"{name}: the samples are others")
    expect(all(r["weight2"] == 3 and r["weight3"] == 5 for r in found if "weight" in r), f"{name}: weights")
    expect(data["lost"] == 17 and data["throttles"] == 1, f"{name}: lost {data['lost']}")


def rows(database, metric):
    result = run("hpcquery", "vars", "--csv", "--top", "0", "-M", metric, database)
    expect(result.returncode == 0, f"{metric}: {result.stderr}")
    return {r["variable"]: float(r["value"]) for r in csv.DictReader(io.StringIO(result.stdout)) if float(r["value"])}


def expected(samples, chosen):
    sums = {}
    for sample in samples:
        value = chosen(sample)
        if value:
            sums[sample[1]] = sums.get(sample[1], 0) + value
    return sums


def check_database(name, path, samples, scratch):
    database = scratch / f"{name}.db"
    result = run("hpcprof", "-v", "-o", database, path)
    expect(result.returncode == 0 and "no allocation log" in result.stdout, f"{name}: hpcprof: {result.stderr}")
    cases = {"mem-loads": lambda s: s[3] if s[0] == 0 else 0, "mem-stores": lambda s: s[3] if s[0] == 1 else 0,
             "LATENCY (cycles)": lambda s: 1000 * s[4]}
    for metric in sorted({m for metrics in ACCESSES.values() for m in metrics}):
        cases[metric] = lambda s, m=metric: s[3] if m in ACCESSES[s[2]] else 0
    for metric, chosen in cases.items():
        ours, truth = rows(database, metric), expected(samples, chosen)
        expect(ours == truth, f"{name}: {metric}: {ours}, not {truth}")
    text = run("hpcquery", "vars", database).stdout
    expect("17 not-delivered" in text, f"{name}: the lost samples are missing: {text[:900]}")


def one_error(name, path, must_fail):
    result = run("hpcproftt", path)
    lines = result.stderr.splitlines()
    expect(result.returncode in (0, 1), f"{name}: hpcproftt ended with {result.returncode}")
    if must_fail or result.returncode:
        expect(result.returncode == 1 and len(lines) == 1 and path.name in lines[0] and "offset" in lines[0],
               f"{name}: not one error with file and offset: {lines[:3]}")


def check_damage(name, blob, scratch, rng, must_fail):
    path = scratch / "damaged.data"
    for n_bytes in [9, 17, 100, 110] + [rng.randrange(16, len(blob) - 1) for _ in range(60)]:
        path.write_bytes(blob[:n_bytes])
        one_error(f"{name}, first {n_bytes} bytes", path, must_fail)
    for _ in range(60):
        at = rng.randrange(8, len(blob))
        path.write_bytes(blob[:at] + bytes([rng.randrange(256)]) + blob[at + 1:])
        one_error(f"{name}, byte {at} changed", path, False)


def check_unfinished(blob, scratch):
    """perf was killed: the header says that there are no records, and a record is cut."""
    path = scratch / "killed.data"
    path.write_bytes(blob[:48] + bytes(8) + blob[56:20000])
    result = run("hpcproftt", path)
    expect(result.returncode == 0 and "unfinished file" in result.stdout, f"an unfinished file: {result.stderr}")
    result = run("hpcprof", "-v", "-o", scratch / "killed.db", path)
    expect(result.returncode == 0 and "did not end properly" in result.stdout, f"an unfinished file: {result.stdout}")


def ibs(is_load, is_store, address, dc_miss=0, source=0, latency=0):
    """The registers of an op as the kernel puts them into a sample: little-endian, of a Zen 4."""
    data3 = is_load | is_store << 1 | dc_miss << 7 | dc_miss << 20 | (address > 0) << 17 | latency << 32
    return struct.pack("<I8Q", 1 << 11, 0, 0x401000, 0, source & 7 | source >> 3 << 6, data3, address, 0, 0)


def check_ibs(scratch, program, symbols, segment):
    """Samples without a data source, whose registers hold the same."""
    file = p.File("<", [("ibs_op//", p.IP | p.TID | p.TIME | p.PERIOD | p.RAW, 100)])
    offset, vaddr, length = segment
    file.comm(1, 100, 100, "program", is_exec=True)
    file.mmap(2, 100, vaddr & ~4095, (length + 8191) & ~4095, offset & ~4095, str(program))
    ops = [(30, ibs(1, 0, symbols["alpha"])), (20, ibs(1, 0, symbols["beta"], dc_miss=1, source=3, latency=400)),
           (10, ibs(0, 1, symbols["beta"])), (40, ibs(0, 0, 0))]
    for count, raw in ops:
        for _ in range(count):
            file.sample(0, 10, 100, 100, symbols["main"], period=100, raw=raw)
    path = scratch / "ibs.data"
    path.write_bytes(file.bytes())
    result = run("hpcprof", "-q", "-o", scratch / "ibs.db", path)
    expect(result.returncode == 0, f"ibs: {result.stderr}")
    for metric, truth in {"ibs_op//": {"alpha": 3000, "beta": 3000, "<compute>": 4000},
                          "MEM-Load": {"alpha": 3000, "beta": 2000}, "MEM-Load-L1hit": {"alpha": 3000},
                          "DRAM-miss-to-lcl": {"beta": 2000}, "MEM-Store": {"beta": 1000},
                          "LATENCY (cycles)": {"beta": 20 * 400 * 100}}.items():
        ours = rows(scratch / "ibs.db", metric)
        expect(ours == truth, f"ibs: {metric}: {ours}, not {truth}")


def main():
    with tempfile.TemporaryDirectory(prefix="locus-perf-data-") as name:
        scratch = pathlib.Path(name)
        program, symbols, segment = build(scratch)
        for order in ("little", "big"):
            file = p.File("<" if order == "little" else ">", EVENTS)
            samples = fill(file, program, symbols, segment, random.Random(7))
            for kind, blob in (("file", file.bytes()), ("pipe", file.piped())):
                case = f"{order}-{kind}"
                path = scratch / f"{case}.data"
                path.write_bytes(blob)
                check_dump(case, path, samples)
                check_database(case, path, samples, scratch)
                if order == "little" or kind == "file":
                    check_damage(case, blob, scratch, random.Random(11), kind == "file")
        check_ibs(scratch, program, symbols, segment)
        check_unfinished(file.bytes(), scratch)
    for failure in failures[:20]:
        print(f"FAIL: {failure}")
    sys.exit(1 if failures else 0)


main()
