#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the golden measurement files, each with the text that hpcproftt has to print for it.

This is a second implementation of the formats, made from their description (doc/FORMAT.md names the fields) and sharing
nothing with the C code: what both agree on is likely to be right. Usage: make-hpcrun.py DIRECTORY; one folder per case
with `input.<suffix>` and `expected.txt` (without the title lines, which hold the path). tests/golden/formats.txt is that
directory, packed by `tests/lib/bundle.py`."""
import pathlib
import struct
import sys

INT, REAL, ADDRESS = 1, 2, 3
HAS_TYPE = {"02.00": False, "02.10": True, "03.00": False, "03.10": True, "04.00": False}
HEADER = [("program-name", "demo"), ("program-path", "/opt/demo/bin/demo"), ("env-path", "/usr/bin:/bin"),
          ("job-id", ""), ("mpi-rank", "3"), ("thread-id", "1"), ("host-id", "7f0101"), ("process-id", "1234"),
          ("trace-min-time", "1594000000123456000"), ("trace-max-time", "1594000000987654000")]


def be(value, n_bytes):
    return (value & (1 << 8 * n_bytes) - 1).to_bytes(n_bytes, "big")


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return be(len(raw), 4) + raw


def real(value):
    return struct.pack(">d", value)


def show(text):
    return text if isinstance(text, bytes) else text.encode()


class Metric:
    def __init__(self, name, value_format, period=1, frequency=0, multiplexed=0, mean=0.0, n_samples=0, shown=1,
                 percent=1, description=None, formula="", text_format="", partner=0, move=0):
        self.name, self.value_format, self.period = name, value_format, period
        self.frequency, self.multiplexed, self.mean, self.n_samples = frequency, multiplexed, mean, n_samples
        self.shown, self.percent, self.partner, self.move = shown, percent, partner, move
        self.description = name if description is None else description
        self.formula, self.format = formula, text_format

    def flags(self):
        return bytes([1, 0, self.value_format, self.move]) + struct.pack("<H", self.partner) + \
            bytes([self.shown, self.percent]) + bytes(8)

    def binary(self, short):
        tail = be(self.frequency, 2) + be(self.multiplexed, 2) + real(self.mean) + be(self.n_samples, 8)
        return string(self.name) + string(self.description) + self.flags() + be(self.period, 8) + \
            string(self.formula) + string(self.format) + (b"" if short else tail)

    def text(self, short):
        line = f"  [(nm: {self.name}) (desc: {self.description}) ((ty: 1) (val-ty: 0) (val-fmt: {self.value_format}) " \
               f"(partner: {self.partner}) (show: {self.shown}) (showPercent: {self.percent})) " \
               f"(period: {self.period}) (formula: {self.formula}) (format: {self.format})"
        if self.move:
            line += f" (move-to-proc: {self.move})"
        if not short:
            line += f"\n    (frequency: {self.frequency}) (multiplexed: {self.multiplexed}) " \
                    f"(period-mean: {self.mean:f}) (num-samples: {self.n_samples})"
        return (line + "]\n").encode()

    def word(self, value):
        return real(value) if self.value_format == REAL else be(value, 8)

    def word_text(self, value):
        if self.value_format == REAL:
            return next(t for t in (f"{value:.{n}g}" for n in range(6, 18)) if float(t) == value)
        return hex(value) if self.value_format == ADDRESS else str(value)


class Node:
    def __init__(self, ident, parent, module, ip, values=(), kind=0, flags=0):
        self.id, self.parent, self.module, self.ip = ident, parent, module, ip
        self.values, self.kind, self.flags = values, kind, flags

    def binary(self, version, metrics):
        head = be(self.kind, 4) if HAS_TYPE[version] else b""
        head += be(self.id, 4) + be(self.parent, 4) + be(self.module, 2) + be(self.ip, 8)
        if version == "04.00":
            return head + be(self.flags, 1)
        return head + b"".join(m.word(v) for m, v in zip(metrics, self.values))

    def text(self, version, metrics):
        kind = f" (type: {self.kind})" if HAS_TYPE[version] else ""
        flags = f"(flags: {self.flags:#x}) " if version == "04.00" else ""
        values = "  ".join(m.word_text(v) for m, v in zip(metrics, self.values))
        return (f"  [node: (id: {self.id}) (id-parent: {self.parent}){kind} (lm-id: {self.module}) "
                f"(lm-ip: {self.ip:#x}) {flags}\n  (metrics: {values})\n  ]\n").encode()


class Epoch:
    def __init__(self, metrics, modules, nodes, flags=0, granularity=1, callsite=0,
                 pairs=(("TODO:epoch-name", "TODO:epoch-value"),)):
        self.metrics, self.modules, self.nodes = metrics, modules, nodes
        self.flags, self.granularity, self.callsite, self.pairs = flags, granularity, callsite, pairs

    def load_map(self):
        return be(len(self.modules), 4) + b"".join(be(i, 2) + string(p) + be(f, 8) for i, p, f in self.modules)

    def metric_table(self, short=False):
        return be(len(self.metrics), 4) + b"".join(m.binary(short) for m in self.metrics)

    def tree(self, version):
        return be(len(self.nodes), 8) + b"".join(n.binary(version, self.metrics) for n in self.nodes)

    def binary(self, version, short):
        head = b"EPOCH___" + be(self.flags, 8) + be(self.granularity, 8) + be(self.callsite, 4)
        return head + pairs_binary(self.pairs) + self.metric_table(short) + self.load_map() + self.tree(version)

    def head_text(self):
        text = f"EPOCH___\n[epoch-hdr:\n  (flags: {self.flags:#x})\n  (measurement-granularity: {self.granularity})\n"
        if self.callsite:
            text += f"  (ra-to-callsite: {self.callsite})\n"
        return text.encode() + pairs_text(self.pairs) + b"]\n"

    def tables_text(self, short=False):
        text = b"[metric-tbl: (num-entries: %d)\n" % len(self.metrics)
        text += b"".join(m.text(short) for m in self.metrics) + b"]\n"
        text += b"[loadmap: (num-entries: %d)\n" % len(self.modules)
        for ident, path, flags in self.modules:
            text += b"  [(id: %d) (nm: %s) (flg: %#x)]\n" % (ident, show(path), flags)
        return text + b"]\n"

    def tree_text(self, version):
        text = b"[cct: (num-nodes: %d)\n" % len(self.nodes)
        return text + b"".join(n.text(version, self.metrics) for n in self.nodes) + b"]\n"


def pairs_binary(pairs):
    return be(len(pairs), 4) + b"".join(string(n) + string(v) for n, v in pairs)


def pairs_text(pairs):
    return b"".join(b"  [nv-pair: '%s', '%s']\n" % (show(n), show(v)) for n, v in pairs)


def header_text(version, short=False, pairs=None):
    text = b"HPCRUN-profile____\n[hdr:\n  (version: %s)\n  (endian: b)\n" % version.encode()
    if short:
        text += b"  (metric entries: short)\n"
    return text + pairs_text(HEADER if pairs is None else pairs) + b"]\n"


def dense(version, epochs, short=False, pairs=None):
    binary = b"HPCRUN-profile____" + version.encode() + b"b" + pairs_binary(HEADER if pairs is None else pairs)
    text = header_text(version, short, pairs)
    for epoch in epochs:
        binary += epoch.binary(version, short)
        text += epoch.head_text() + epoch.tables_text(short) + epoch.tree_text(version)
    return "hpcrun", binary, text + b"\n[end: (num-epochs: %d)]\n" % len(epochs)


def sparse_values(epoch, ids):
    values, index = b"", b""
    n_values = n_rows = 0
    for node in epoch.nodes:
        present = [(k, v) for k, v in enumerate(node.values) if v]
        if present:
            index += be(node.id, 4) + be(n_values, 8)
            n_rows += 1
        for k, value in present:
            values += epoch.metrics[k].word(value) + be(k, 2)
        n_values += len(present)
    index += be(0x656E6421, 4) + be(n_values, 8)
    tuple_ = be(len(ids), 2) + b"".join(be(k, 2) + be(p, 8) + be(l, 8) for k, p, l in ids)
    return tuple_ + be(n_values, 8) + be(n_rows, 4) + values + index


def sparse(epoch, kinds, ids):
    """Version 04.00: sections at multiples of 1024, found through the footer."""
    sections = [b"HPCRUN-profile____04.00b" + pairs_binary(HEADER), epoch.load_map(), epoch.tree("04.00"),
                epoch.metric_table(), be(len(kinds), 2) + b"".join(be(n, 2) + string(s) for n, s in kinds),
                sparse_values(epoch, ids)]
    binary, footer = b"", b""
    for section in sections:
        binary += bytes(-len(binary) % 1024)
        footer += be(len(binary), 8) + be(len(binary) + len(section), 8)
        binary += section
    binary += bytes(-len(binary) % 1024)
    footer += be(len(binary), 8) + b"HPCRUNsm"
    names = ["", ", logical local", ", logical global", ", logical only"]
    text = header_text("04.00") + epoch.tables_text()
    text += b"[id-tuple-dict: (num-entries: %d)\n" % len(kinds)
    text += b"".join(b"  [(kind: %d) (nm: %s)]\n" % (n, s.encode()) for n, s in kinds) + b"]\n"
    text += b"[id-tuple: (num-entries: %d)\n" % len(ids)
    for kind, physical, logical in ids:
        text += b"  [(kind: %d%s) (physical: %#x) (logical: %d)]\n" % (
            kind & 0x3fff, names[kind >> 14].encode(), physical, logical)
    text += b"]\n" + epoch.tree_text("04.00") + b"\n[end: (num-epochs: 1)]\n"
    return "hpcrun", binary + footer, text


def trace(version, flags, records):
    binary = b"HPCRUN-trace______" + version.encode() + b"b" + (be(flags, 8) if version == "01.01" else b"")
    text = f"HPCRUN-trace______\n[hdr:\n  (version: {version})\n  (endian: b)\n"
    if version == "01.01":
        text += f"  (flags: {flags:#x})\n"
    text += f"]\n[trace: (num-records: {len(records)})\n"
    for time, node, metric in records:
        binary += be(time, 8) + be(node, 4) + (be(metric, 4) if flags & 1 else b"")
        text += f"  [(time: {time}) (node: {node})" + (f" (metric: {metric})" if flags & 1 else "") + "]\n"
    return "hpctrace", binary, (text + "]\n").encode()


def events():
    """A log of samples: three kinds of access of two events, every fourth sample of 21, one of which was lost."""
    wall = 1594000000123456789
    sources = [(1, "EADDR@1000"), (0xffffffff, "FAULTS")]
    accesses = [(13, 22, 0, 0, 0, 0), (27, 46, 0x4801, 0, 1, 1), (27, 0, 0, 1, 2, 0)]
    classes = ["memory", "dependent", "compute"]
    records = [(1000000001, 0, 0, 8192, 3), (1000004001, 1, 312, 16, 65535), (1000004001, 2, 0, (1 << 48) - 1, 0),
               ((1 << 53) + 1, 0, (1 << 32) - 1, (1 << 48) - 2, 1), ((1 << 63) + 5, 0, 0, 0, 3)]
    binary = b"LOCUS-events______01.00b" + be(wall, 8) + be(wall + 12, 8) + be(4, 8) + be(21, 8) + be(1, 8)
    binary += be(len(sources), 4) + be(len(accesses), 4) + be(len(records), 8)
    binary += b"".join(be(metric, 4) + string(name) for metric, name in sources)
    binary += b"".join(struct.pack(">IIIBBH", *access) for access in accesses)
    text = f"LOCUS-events______\n[hdr:\n  (version: 01.00)\n  (endian: b)\n  (wall-clock: {wall})\n" \
           f"  (wall-clock-at-end: {wall + 12})\n  (samples: 21)\n  (stride: 4)\n  (thinned: 15)\n  (lost: 1)\n]\n" \
           "[event 0: EADDR@1000 (metric: 1)]\n[event 1: FAULTS]\n" \
           f"[log: (num-records: {len(records)})\n"
    for time, at, latency, offset, cpu in records:
        binary += struct.pack(">QII", time, at, latency) + be(offset, 6) + be(cpu, 2)
        node, variable, metrics, event, kind, inexact = accesses[at]
        text += f"  [(time: {time}) (cpu: {cpu}) (event: {event}) (node: {node}) (variable: {variable})" \
                f" (class: {classes[kind]})"
        text += f" (offset: {offset}{', inexact' if inexact else ''})" if offset < (1 << 48) - 1 else ""
        text += f" (metrics: {metrics:#x})" if metrics else ""
        text += (f" (latency: {latency})" if latency else "") + "]\n"
    return "events", binary, (text + "]\n").encode()


def metric_db(rows):
    n_metrics = len(rows[0])
    binary = b"HPCPROF-metricdb__00.10b" + be(len(rows), 4) + be(n_metrics, 4)
    binary += b"".join(real(v) for row in rows for v in row)
    text = f"HPCPROF-metricdb__\n[hdr:\n  (version: 00.10)\n  (endian: b)\n  (num-nodes: {len(rows)})\n" \
           f"  (num-metrics: {n_metrics})\n]\n[metrics:\n"
    column = Metric("x", REAL)
    for number, row in enumerate(rows, 1):
        text += f"  [(node: {number}) (metrics: {'  '.join(column.word_text(v) for v in row)})]\n"
    return "metric-db", binary, (text + "]\n").encode()


def log():
    text = "[1234, N]: node1: FAULTS uses a ring of one page\n" \
           "MEMORY: segment size: 4.0 meg, num segments: 3, total allocation: 12.0 meg, reclaims: 0\n" \
           "MEMORY: total freeable: 0.5 meg, total non-freeable: 1.5 meg, malloc failures: 0\n" \
           "UNWIND ANOMALIES: total: 120 errant: 1, total-frames: 2400, total-libunwind-fails: 0\n" \
           "ACC SUMMARY:\n         accelerator trace records: 0 (processed: 0, dropped: 0)\n" \
           "         accelerator samples: 0 (recorded: 0, dropped: 0)\n" \
           "EVENT SUMMARY: taken: 120, overflows: 125, named: 100, compute: 15, dropped-reentered: 5, " \
           "not-delivered: 5, name: EADDR@1000\n" \
           "SAMPLE ANOMALIES: blocks: 5 (async: 5, dlopen: 0), errors: 0 (segv: 0, soft: 0)\n" \
           "SUMMARY: samples: 120 (recorded: 115, blocked: 5, errant: 0, trolled: 1, yielded: 0),\n" \
           "         frames: 2400 (trolled: 1)\n         intervals: 20 (suspicious: 0)\n"
    return "log", text.encode(), text.encode()


def side_file():
    """The JSON beside a profile, laid out as our writer does."""
    text = '{"format": "locus-objects", "version": 1, "state": "complete", "host": "node1", "exe": "/opt/demo", ' \
           '"pid": 1234, "tid": 1235, "thread_id": 1, "rank": 3,\n' \
           '"start_ns": "1594000000123456789", "end_ns": "1594000001123456789", "cpu_time_ns": 900000000,\n' \
           '"plan": "EADDR: no hardware addresses here", "topology": "node1.xml",\n' \
           '"skid": {"after":0.98,"n":500},\n' \
           '"n_frames": 2400, "unwind_stops": [118, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],\n' \
           '"placeholders": [{"ip": 4097, "name": "DATACENTRIC"}, {"ip": 8193, "name": "DATACENTRIC_Dynamic"}],\n' \
           '"events": [\n{"metric": "EADDR (usec)", "name": "EADDR@1000", "scale": 0.1, "taken": 120, ' \
           '"overflows": 125, "fates": {"named": 100, "compute": 15, "dropped-reentered": 5, "not-delivered": 5}}],\n' \
           '"variables": [\n{"node": 22, "kind": "heap", "name": null, "n_blocks": 3, "bytes": 24576, ' \
           '"n_blocks_freed": 1, "bytes_freed": 8192, "max_block_bytes": "9007199254740993", ' \
           '"classes": [60, 10, 0, 0, 0, 0, 0, 0], "n_inexact": 4, "cpus": [[0, 1, 30], [13, 1, 40]], ' \
           '"stack_offsets": []},\n{"node": 46, "kind": "stack", "name": {"bytes": "636166e9"}, "n_blocks": 0, ' \
           '"bytes": 0, "n_blocks_freed": 0, "bytes_freed": 0, "max_block_bytes": 0, ' \
           '"classes": [5, 0, 0, 0, 0, 0, 0, 0], "n_inexact": 0, "cpus": [], ' \
           '"stack_offsets": [[-16, 2], [4096, 3]]}]}\n'
    return "objects", text.encode(), text.encode()


def side_file_2():
    """Version 2: what the hardware reported of each access. Two events, one of them shared its counter."""
    text = '{"format": "locus-objects", "version": 2, "state": "killed", "host": "node1", "exe": "/opt/demo", ' \
           '"pid": 1234, "tid": 1234, "thread_id": 0, "rank": 0,\n' \
           '"start_ns": "1594000000123456789", "end_ns": "1594000001123456789", "cpu_time_ns": 900000000,\n' \
           '"plan": "mem-loads", "topology": null,\n' \
           '"skid": null,\n' \
           '"n_frames": 0, "unwind_stops": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],\n' \
           '"placeholders": [],\n' \
           '"events": [\n{"metric": "mem-loads", "name": "mem-loads", "scale": 10007.0, "taken": 60, "overflows": 61, ' \
           '"fates": {"named": 57, "unknown-data": 3, "not-delivered": 1}, "enabled_ns": 3000000000, ' \
           '"running_ns": "9007199254740993", "n_throttles": 2, "n_no_metric": 3, "n_truncated": 4, "n_collisions": 5, "has_data_source": 1},\n' \
           '{"metric": "FAULTS", "name": "FAULTS", "scale": 1.0, "taken": 0, "overflows": 0, "fates": {}, ' \
           '"enabled_ns": 0, "running_ns": 0, "n_throttles": 0, "n_no_metric": 0, "n_truncated": 0, "n_collisions": 0, "has_data_source": 0}],\n' \
           '"variables": [\n{"node": 22, "kind": "static", "name": "grid", "n_blocks": 1, "bytes": 24576, ' \
           '"n_blocks_freed": 0, "bytes_freed": 0, "max_block_bytes": 24576, ' \
           '"classes": [0, 0, 0, 0, 0, 0, 57, 0], "n_inexact": 0, "cpus": [], "stack_offsets": [], ' \
           '"samples": [[0, 57], [3, "18446744073709551615"]], ' \
           '"latencies": [[0, 57, 4321, 5, 2500, [[1, 50], [63, 7]]], [1, 0, 0, 0, 0, []]]},\n' \
           '{"node": 24, "kind": "none", "name": null, "n_blocks": 0, "bytes": 0, ' \
           '"n_blocks_freed": 0, "bytes_freed": 0, "max_block_bytes": 0, ' \
           '"classes": [0, 0, 0, 0, 0, 0, 0, 0], "n_inexact": 0, "cpus": [], "stack_offsets": [], ' \
           '"samples": [], "latencies": []}]}\n'
    return "objects", text.encode(), text.encode()


def side_file_4():
    """Version 4: where in its variables the samples lie. An instruction with two places, one with none."""
    _, text, _ = side_file_2()
    marks = '"n_blocks_marked": 0, "bytes_marked": 0, '
    text = text.decode().replace('"version": 2', '"version": 4')
    text = text.replace('],\n"placeholders"', '], "min_bytes": 1024, "sample_bytes": 0, "mark_ns": 0,\n"placeholders"')
    text = text.replace('[1, 0, 0, 0, 0, []]]}', '[1, 0, 0, 0, 0, []]], ' + marks +
                        '"accesses": [[0, 1, 4198912, 55, [0, 30, 8, 25]], [1, 65535, "18446744073709551615", 2, []]]}')
    text = text.replace('"samples": [], "latencies": []}', '"samples": [], "latencies": [], ' + marks + '"accesses": []}')
    return "objects", text.encode(), text.encode()


MODULES = [(1, "/opt/demo/bin/demo", 0), (2, "/usr/lib/locus/libhpcrun.so", 0), (3, "/lib/libc.so.6", 0),
           (4, b"/data/caf\xe9/libplug\xff.so", 1), (5, "/data/\u03bc-kernels/libmu.so", 0xfedcba9876543210)]
METRICS = [Metric("Size (byte)", INT, shown=0), Metric("EADDR (usec)", REAL, period=1000, mean=997.25, n_samples=17),
           Metric("MEM-Load I/O Address", ADDRESS, description="address of the last \"I/O\" load", frequency=1,
                  multiplexed=1, partner=7, formula="$0 / 2", text_format="%5.1f", n_samples=(1 << 64) - 1)]


def data_centric_tree(typed=True):
    """Every kind of node: both roots, plain and sampled frames, allocation, the four placeholders, memory accesses,
    a static variable, unknown attributes, ids kept for traces (odd) and extreme values."""
    ident, none = 0x7f112233, (0, 0.0, 0)
    nodes = [Node(12, 0, 0, 0, none), Node(-14, 12, 0, 1, none), Node(28, 12, 1, 0x401230, none),
             Node(30, 28, 1, 0x401250, (0, 12.5, 0), 1), Node(-31, 30, 3, 0x83010, (8192, 0.0, 0), 3),
             Node(-33, 28, 4, 0x77, (0, 0.1, 0xffffffffffffffff), 1),
             Node(-36, 28, 5, 0xfffffffffffffffe, (0, -0.0, 1), 1),
             Node(16, 12, 2, 0x1001, none, 16), Node(18, 16, 2, 0x2001, none), Node(20, 18, 1, 0x401200, none),
             Node(22, 20, 3, 0x83000, (8192, 0.0, 0), 2), Node(24, 22, 2, 0x3001, none, 32),
             Node(-26, 24, 1, 0x401300, (0, 100.5, 0x55aa), 32), Node(34, 16, 2, 0x4001, none),
             Node(38, 34, 1, 0x601041, (1 << 63, 0.0, 0), 4), Node(-40, 38, 1, 0x401308, (0, 1e300, 3), 32),
             Node(42, 16, 2, 0x5001, none, 8), Node(-44, 42, 65534, 0x7fffdeadbeef, (0, 1 / 3, 9), 32),
             Node(ident, 12, 65486, 0, none), Node(-(ident + 2), ident, 1, 0x401000, (1, 2.0, 3), 1)]
    if not typed:
        for node in nodes:
            node.kind = 0
    return nodes


def cases():
    yield "profile-03.10", dense("03.10", [Epoch(METRICS, MODULES, data_centric_tree())])
    yield "profile-02.10", dense("02.10", [Epoch(METRICS, MODULES, data_centric_tree(), callsite=1)])
    yield "profile-03.00", dense("03.00", [Epoch(METRICS, MODULES, data_centric_tree(False), granularity=16)])
    yield "profile-02.00", dense("02.00", [Epoch(METRICS, MODULES, data_centric_tree(False))])
    old = [Metric("CPUTIME (usec)", INT, period=5000), Metric("WALLCLOCK", REAL)]
    nodes = [Node(12, 0, 0, 0, (0, 0.0)), Node(-14, 12, 1, 0x4005bb, (17, 0.25))]
    yield "profile-02.00-before-2017", dense("02.00", [Epoch(old, MODULES[:1], nodes, callsite=1)], short=True)
    second = Epoch(METRICS[:1], MODULES[:2], [Node(50, 0, 0, 0, (5,), 16)], granularity=2,
                   pairs=[("is-virtual-metrics", "0"), ("", "")])
    empty = Epoch([], [], [], pairs=[])
    bare = Epoch([], MODULES[:1], [Node(12, 0, 0, 0)])
    yield "profile-03.10-epochs", dense("03.10", [Epoch(METRICS, MODULES, data_centric_tree()), second, empty])
    yield "profile-03.10-empty", dense("03.10", [bare], pairs=[])
    kinds = list(enumerate(["SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE"]))
    ids = [(0x4001, 0x11ac0300, 0), (0xc002, 5, 5), (0x8003, 7, 1), (7, 2, 3)]
    metrics = [METRICS[0], METRICS[1], Metric("cycles", INT, period=1 << 40, move=1, shown=4), METRICS[2]]
    nodes = [Node(40, 0, 0, int.from_bytes(b"^Primary", "big"), (0, 0.0, 0, 0), flags=1),
             Node(66, 40, 0, int.from_bytes(b"| Main  ", "big"), (0, 0.0, 0, 0), flags=1),
             Node(19, 66, 1, 0x1234, (1, 2.5, 3, 4), flags=1), Node(68, 66, 2, 0x99, (0, 0.0, 77, 0)),
             Node(70, 66, 3, 0x100, (0, 0.5, 0, 1 << 63), flags=1), Node(7, 40, 0, 1, (0, 0.0, 0, 0))]
    yield "profile-04.00", sparse(Epoch(metrics, MODULES, nodes), kinds, ids)
    yield "trace-01.00", trace("01.00", 0, [(1594000000123456, 29, 0), (1594000000124456, 41, 0)])
    yield "trace-01.01", trace("01.01", 0, [(1594000000123456789, 31, 0), ((1 << 64) - 1, 0xffffffff, 0)])
    records = [(1594000000123456789, 31, 4), (1594000000123456799, 33, 0x7fffffff)]
    yield "trace-01.01-datacentric", trace("01.01", 1, records)
    yield "events", events()
    yield "trace-01.01-empty", trace("01.01", 2, [])
    yield "metric-db", metric_db([(0.0, 1.5), (1e-300, -2.0), (1 / 3, 123456789012345.0)])
    yield "log", log()
    yield "objects", side_file()
    yield "objects-2", side_file_2()
    yield "objects-4", side_file_4()


def main():
    root = pathlib.Path(sys.argv[1])
    for name, (suffix, binary, text) in cases():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"input.{suffix}").write_bytes(binary)
        (folder / "expected.txt").write_bytes(text)


main()
