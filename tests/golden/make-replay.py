#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes rings as the kernel and the hardware write them, for `hpcrun -e REPLAY:FILE` (doc/replay.md), and what a
measurement must find in them. Written from perf_event_open(2), include/uapi/linux/perf_event.h, AMD's description of
IBS and Arm's of SPE, without any of our own readers.

usage: make-replay.py KIND ADDRESSES RING EXPECTED [--samples N] [--seed N]
KIND: pebs, batch, ibs, power, spe or hostile. ADDRESSES: what tests/e2e/programs/replay.c prints."""
import argparse
import collections
import json
import random
import struct

IP, TID, TIME, ADDR, CPU, PERIOD = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 7, 1 << 8
RAW, WEIGHT, DATA_SRC, WEIGHT_STRUCT = 1 << 10, 1 << 14, 1 << 15, 1 << 24
RECORD_LOST, RECORD_COMM, RECORD_THROTTLE, RECORD_UNTHROTTLE, RECORD_SAMPLE, RECORD_AUX = 2, 3, 5, 6, 9, 11
RECORD_ITRACE_START, RECORD_LOST_SAMPLES = 12, 13
MISC_USER, MISC_EXACT_IP = 2, 1 << 14
AUX_TRUNCATED, AUX_COLLISION = 1, 8
WRITE, SIGNAL, AUX = 1, 2, 3
AREA_MIN = 4096

# union perf_mem_data_src: op, lvl, snoop, lock, tlb, lvl_num, remote, hops; and the metrics that it must give.
LOAD, STORE, HIT, MISS = 2, 4, 2, 4
NOT_TOLD = 1
SOURCES = (
    ((LOAD, HIT | 0x08, 2, 1, 0xa, 1, 0, 0), ("MEM-Load", "MEM-Load-L1hit")),
    ((LOAD, HIT | 0x20, 2, 1, 0xa, 2, 0, 0), ("MEM-Load", "MEM-Load-L2hit")),
    ((LOAD, HIT | 0x40, 2, 1, 0xa, 3, 0, 0), ("MEM-Load", "MEM-LLC-hit")),
    ((LOAD, HIT | 0x40, 0x10, 1, 0xa, 3, 0, 0), ("MEM-Load", "MEM-hitm-local")),
    ((LOAD, HIT | 0x10, 2, 1, 0xa, 0xc, 0, 0), ("MEM-Load", "MEM-Load-FBhit")),
    ((LOAD, HIT | 0x80, 8, 1, 0xa, 0xd, 0, 0), ("MEM-Load", "DRAM-miss-to-lcl", "MEM-Load Exclusive")),
    ((LOAD, HIT | 0x100, 4, 1, 0xa, 0xd, 1, 0), ("MEM-Load", "DRAM-miss-to-rmt", "MEM-Load MESI State Shared")),
    ((LOAD, HIT | 0x400, 0x10, 1, 0xa, 0xb, 1, 0), ("MEM-Load", "MEM-hitm-rmt")),
    ((LOAD, HIT | 0x08, 2, 2, 0xa, 1, 0, 0), ("MEM-Load", "MEM-Load-L1hit", "MEM-Locked")),
    ((STORE, HIT | 0x08, 1, 1, 0xa, 1, 0, 0), ("MEM-Store", "MEM-Store-L1hit")),
)
# IBS op_data2.data_source of processors before Zen 4 and what a load that missed L1 and L2 counts as.
IBS_SOURCES = {3: ("MEM-Load", "DRAM-miss-to-lcl", "MEM-Load Exclusive"), 7: ("MEM-Load", "MEM-Load I/O Address")}


def data_src(op, lvl, snoop, lock, tlb, num, remote, hops):
    """The word, by the shifts of the header."""
    return (op | lvl << 5 | snoop << 19 | lock << 24 | tlb << 26 | num << 33 | remote << 37 | hops << 43)


class Expected:
    """What a measurement must count."""

    def __init__(self):
        self.taken = self.n_throttles = self.n_no_metric = 0
        self.n_truncated = self.n_collisions = 0
        self.fates = collections.Counter()
        self.variables = {}

    def count(self, variable, metrics, latency):
        fate = {"?": "unknown-data", "-": "no-access", "!": "address-lost"}.get(variable, "named")
        self.taken += 1
        self.fates[fate] += 1
        latency = 0 if variable == "-" else latency
        row = self.variables.setdefault(variable, {"samples": 0, "latency": 0, "metrics": collections.Counter()})
        row["samples"] += 1
        row["latency"] += latency
        row["metrics"].update(metrics)
        if not metrics and variable != "-":
            self.n_no_metric += 1

    def bad(self):
        self.taken += 1
        self.fates["dropped-bad-record"] += 1

    def text(self):
        self.fates["taken"] = self.taken
        return json.dumps(vars(self), indent=1, sort_keys=True)


class Ring:
    """The pieces of a file, and where the accesses of its samples may fall."""

    def __init__(self, addresses, order, generator):
        self.order, self.random, self.pieces = order, generator, []
        self.expected = Expected()
        self.ranges = [a for a in addresses if a[0] != "code"]
        self.code = [(address, size) for name, address, size in addresses if name == "code"]

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def record(self, kind, body, misc=MISC_USER):
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def piece(self, kind, data):
        self.pieces.append(struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8))

    def place(self):
        """A variable ('?': none there) and an address in it."""
        if self.random.random() < 0.05:
            return "?", 0x123456780000 + self.random.randrange(1 << 16)
        name, start, size = self.random.choice(self.ranges)
        return name, start + self.random.randrange(size)

    def pc(self):
        start, size = self.random.choice(self.code)
        return start + self.random.randrange(size)

    def write(self, path, lines):
        text = "".join(f"{key} {value}\n" for key, value in lines)
        head = ("LOCUS-RING 1\n" + text + "\n").encode()
        with open(path, "wb") as file:
            file.write(head + b"\0" * (-len(head) % 8) + b"".join(self.pieces))


def memory_sample(ring, sample_type, latency_bits):
    """A sample of a processor that reports a data source, counted."""
    variable, address = ring.place()
    fields, metrics = ring.random.choice(SOURCES)
    word, latency = data_src(*fields), ring.random.randrange(1, 1 << latency_bits)
    if ring.random.random() < 0.02:
        word, metrics = 0, ()
    ring.expected.count(variable, metrics, latency)
    body = ring.pack("Q", ring.pc()) + ring.pack("II", 7, 7) + ring.pack("QQ", 12345, address)
    body += ring.pack("II", 1, 0) + ring.pack("Q", 1000)
    if sample_type & WEIGHT_STRUCT:
        parts = (latency, 3, 4) if ring.order == "<" else (4, 3, latency)
        body += ring.pack("IHH" if ring.order == "<" else "HHI", *parts)
    else:
        body += ring.pack("Q", latency)
    return ring.record(RECORD_SAMPLE, body + ring.pack("Q", word), MISC_USER | MISC_EXACT_IP)


def other_record(ring):
    """A record that is no sample, counted."""
    kind = ring.random.choice((RECORD_LOST, RECORD_LOST_SAMPLES, RECORD_THROTTLE, RECORD_UNTHROTTLE, RECORD_COMM,
                               RECORD_ITRACE_START))
    if kind == RECORD_LOST:
        n_lost = ring.random.randrange(1, 100)
        ring.expected.fates["not-delivered"] += n_lost
        return ring.record(kind, ring.pack("QQ", 77, n_lost))
    if kind == RECORD_LOST_SAMPLES:
        n_lost = ring.random.randrange(1, 100)
        ring.expected.fates["not-delivered"] += n_lost
        return ring.record(kind, ring.pack("Q", n_lost))
    if kind in (RECORD_THROTTLE, RECORD_UNTHROTTLE):
        ring.expected.n_throttles += kind == RECORD_THROTTLE
        return ring.record(kind, ring.pack("QQQ", 1, 2, 3))
    if kind == RECORD_COMM:
        return ring.record(kind, ring.pack("II", 7, 7) + b"a-name\0\0" * ring.random.randrange(1, 4))
    return ring.record(kind, ring.pack("II", 7, 7))


MEMORY_TYPE = IP | TID | TIME | ADDR | CPU | PERIOD | DATA_SRC


def make_signal(ring, n_samples, name, weight, latency_bits):
    """One signal for each sample; now and then other records in between."""
    sample_type = MEMORY_TYPE | weight
    for _ in range(n_samples):
        if ring.random.random() < 0.02:
            ring.piece(WRITE, other_record(ring))
        ring.piece(SIGNAL, memory_sample(ring, sample_type, latency_bits))
    return [("name", name), ("mode", "signal"), ("decode", "data-src"), ("ring_bytes", 4096),
            ("sample_type", hex(sample_type))]


def make_pebs(ring, n_samples):
    return make_signal(ring, n_samples, "PEBS", WEIGHT_STRUCT, 12)


def make_power(ring, n_samples):
    return make_signal(ring, n_samples, "MARKED", WEIGHT, 20)


def make_batch(ring, n_samples, hostile=False):
    """Many records a signal, the ring small enough to wrap all the time."""
    sample_type = MEMORY_TYPE | WEIGHT_STRUCT
    pending = 0
    for _ in range(n_samples):
        if ring.random.random() < 0.05:
            ring.piece(WRITE, other_record(ring))
        if hostile and ring.random.random() < 0.03:
            add_garbage(ring)
            pending = 0
        record = memory_sample(ring, sample_type, 10)
        pending += len(record)
        ring.piece(SIGNAL if pending > 3000 else WRITE, record)
        pending = 0 if pending > 3000 else pending
    return [("name", "LARGE"), ("mode", "batch"), ("decode", "data-src"), ("ring_bytes", 8192),
            ("sample_type", hex(sample_type))]


def add_garbage(ring):
    """Something that no kernel writes. The reader gives up at a length that cannot be, up to where the kernel is: so
    each such piece is alone between two signals, and counts as one sample that makes no sense."""
    what = ring.random.randrange(5)
    ring.piece(SIGNAL, ring.record(RECORD_COMM, ring.pack("II", 7, 7)))
    if what == 0:  # shorter than its own header
        bad = ring.pack("IHH", RECORD_SAMPLE, MISC_USER, ring.random.randrange(8)) + bytes(16)
    elif what == 1:  # longer than what has been written
        bad = ring.pack("IHH", RECORD_SAMPLE, MISC_USER, 65528) + bytes(ring.random.randrange(8) * 8)
    elif what == 2:  # no multiple of 8
        bad = ring.pack("IHH", RECORD_SAMPLE, MISC_USER, 41) + bytes(64)
    elif what == 3:  # a sample that ends before its fields do
        bad = ring.record(RECORD_SAMPLE, bytes(8 * ring.random.randrange(8)))
    else:  # noise, the length of which is impossible
        bad = ring.random.randbytes(6) + b"\xff\xff" + ring.random.randbytes(80)
    ring.expected.bad()
    ring.piece(SIGNAL, bad)


def make_ibs(ring, n_samples):
    """IBS op samples whose registers stand in PERF_SAMPLE_RAW, as kernels before 6.2 gave them."""
    for _ in range(n_samples):
        variable, address = ring.place()
        what, latency, pc = ring.random.randrange(4), ring.random.randrange(1, 4000), ring.pc()
        source = ring.random.choice(sorted(IBS_SOURCES))
        valid, load, store, l1_miss, l2_miss = 1 << 17, 1, 2, 1 << 7, 1 << 20
        if what == 0:
            data3, variable, address, metrics, latency = 0, "-", 0, (), 0
        elif what == 1:
            data3, metrics, latency = load | valid, ("MEM-Load", "MEM-Load-L1hit"), 0
        elif what == 2:
            data3, metrics = load | valid | l1_miss | l2_miss | latency << 32, IBS_SOURCES[source]
        else:
            data3, metrics, latency = store | valid, ("MEM-Store", "MEM-Store-L1hit"), 0
        ring.expected.count(variable, metrics, latency)
        regs = ring.pack("QQQQQQQ", 0, pc, 0, source, data3, address, 0)
        raw = ring.pack("I", 0xff) + regs
        body = ring.pack("Q", pc) + ring.pack("II", 7, 7) + ring.pack("Q", 99) + ring.pack("II", 0, 0)
        body += ring.pack("Q", 1000) + ring.pack("I", len(raw)) + raw
        body += b"\0" * (-len(body) % 8)
        ring.piece(SIGNAL, ring.record(RECORD_SAMPLE, body, MISC_USER | MISC_EXACT_IP))
    return [("name", "IBS"), ("mode", "signal"), ("decode", "ibs"), ("ring_bytes", 4096),
            ("sample_type", hex(IP | TID | TIME | CPU | PERIOD | RAW))]


def spe_record(ring):
    """One record of Neoverse's packets, padded to 64 bytes, counted."""
    variable, address = ring.place()
    latency, is_load = ring.random.randrange(1, 3000), ring.random.random() < 0.7
    packets = b"\xb0" + struct.pack("<Q", ring.pc())
    if ring.random.random() < 0.2:  # another operation: no access
        ring.expected.count("-", (), latency)
        packets += b"\x48\x00" + b"\x98" + struct.pack("<H", latency)
    else:
        source, metrics = ((0x0, ("MEM-Load", "MEM-Load-L1hit")), (0x8, ("MEM-Load", "MEM-Load-L2hit")))[
            ring.random.randrange(2)]
        events = 2 | 4 | (8 if source else 0)  # retired, asked the L1 cache, missed it
        packets += b"\x49" + (b"\0" if is_load else b"\1") + b"\xb2" + struct.pack("<Q", address)
        packets += b"\x98" + struct.pack("<H", latency)
        if is_load:
            packets += b"\x43" + bytes([source])
        else:
            metrics, events = ("MEM-Store", "MEM-Store-L1hit"), 2 | 4
        packets += b"\x52" + struct.pack("<H", events)
        ring.expected.count(variable, metrics, latency)
    packets += b"\x01"
    return packets + b"\0" * (-len(packets) % 64)


def make_spe(ring, n_samples):
    """Pieces of the AUX area, each announced by a record in the ring."""
    offset, left = 0, n_samples
    while left:
        n = min(left, ring.random.randrange(1, 60))
        left -= n
        data = b"".join(spe_record(ring) for _ in range(n))
        flags = ring.random.choice((0, 0, 0, AUX_TRUNCATED, AUX_COLLISION))
        ring.expected.n_truncated += flags == AUX_TRUNCATED
        ring.expected.n_collisions += flags == AUX_COLLISION
        ring.piece(AUX, data)
        ring.piece(SIGNAL, ring.record(RECORD_AUX, ring.pack("QQQ", offset, len(data), flags)))
        offset += len(data)
    return [("name", "SPE"), ("mode", "aux"), ("decode", "spe-neoverse"), ("ring_bytes", 4096), ("aux_bytes", 8192),
            ("sample_type", hex(IP | TID | TIME))]


def read_addresses(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, address, size = line.split()
            rows.append((name, int(address, 0), int(size, 0)))
    return rows


KINDS = {"pebs": ("<", make_pebs), "batch": ("<", make_batch), "ibs": ("<", make_ibs), "power": (">", make_power),
         "spe": ("<", make_spe), "hostile": ("<", lambda ring, n: make_batch(ring, n, True))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("addresses")
    parser.add_argument("ring")
    parser.add_argument("expected")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    order, make = KINDS[arguments.kind]
    ring = Ring(read_addresses(arguments.addresses), order, random.Random(arguments.seed))
    lines = make(ring, arguments.samples)
    common = [("order", "little" if order == "<" else "big"), ("address", "yes"), ("period", 1000)]
    ring.write(arguments.ring, lines + common)
    with open(arguments.expected, "w", encoding="utf-8") as file:
        file.write(ring.expected.text())


if __name__ == "__main__":
    main()
