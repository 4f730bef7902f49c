# SPDX-License-Identifier: BSD-3-Clause
"""Making files of perf for tests, of either byte order, as files or as piped: written from the description of the
format and of perf_event_open(2), independently of the C code."""
import array
import struct

import tracedat

# bits of sample_type, in the order in which their fields stand in a sample
IP, TID, TIME, ADDR, CALLCHAIN, ID, CPU, PERIOD, RAW = 1, 2, 4, 8, 32, 64, 128, 256, 1024
DATA_SRC, IDENTIFIER, WEIGHT_STRUCT = 1 << 15, 1 << 16, 1 << 24
MMAP, LOST, COMM, EXIT, THROTTLE, FORK, SAMPLE, MMAP2, FINISHED_ROUND = 1, 2, 3, 4, 5, 7, 9, 10, 68
HEADER_ATTR, HEADER_FEATURE = 64, 80
HOSTNAME, VERSION, ARCH, COMMAND, EVENT_DESC = 3, 5, 6, 11, 12
CONTEXT_USER, CONTEXT_KERNEL = 2 ** 64 - 512, 2 ** 64 - 128
USER, KERNEL = 2, 1  # misc: where the sample was taken
FLAG_MMAP, FLAG_PRECISE, FLAG_MMAP_DATA, FLAG_SAMPLE_ID_ALL = 8, 15, 17, 18


class File:
    """events: list of (name, sample_type, fixed period or 0). Records are kept with their times and written in the
    order of their making."""

    def __init__(self, order, events, identity=True):
        self.order, self.events, self.identity = order, events, identity
        self.records, self.features = [], {}

    def pack(self, layout, *values):
        return struct.pack(self.order + layout, *values)

    def text(self, text):
        raw = text.encode() + b"\0"
        return raw + bytes(-len(raw) % 8)

    def record(self, kind, misc, body):
        self.records.append(self.pack("IHH", kind, misc, len(body) + 8) + body)

    def trailer(self, event, pid, tid, time, cpu):
        """The fields that end every record that is no sample."""
        kind = self.events[event][1]
        out = self.pack("II", pid, tid) if kind & TID else b""
        out += self.pack("Q", time) if kind & TIME else b""
        out += self.pack("Q", 1000 + event) if kind & ID else b""
        out += self.pack("II", cpu, 0) if kind & CPU else b""
        return out + (self.pack("Q", 1000 + event) if kind & IDENTIFIER else b"")

    def mmap(self, time, pid, start, length, offset, path, protection=5):
        body = self.pack("IIQQQ", pid, pid, start, length, offset) + bytes(24) + self.pack("II", protection, 2)
        self.record(MMAP2, USER, body + self.text(path) + self.trailer(0, pid, pid, time, 0))

    def comm(self, time, pid, tid, name, is_exec=False):
        self.record(COMM, 0x2000 if is_exec else 0, self.pack("II", pid, tid) + self.text(name) +
                    self.trailer(0, pid, tid, time, 0))

    def fork(self, time, pid, tid, parent_pid, parent_tid):
        self.record(FORK, 0, self.pack("IIIIQ", pid, parent_pid, tid, parent_tid, time) +
                    self.trailer(0, pid, tid, time, 0))

    def lost(self, time, event, pid, tid, count):
        self.record(LOST, 0, self.pack("QQ", 1000 + event, count) + self.trailer(event, pid, tid, time, 0))

    def throttle(self, time, event, pid, tid):
        self.record(THROTTLE, 0, self.pack("QQQ", time, 1000 + event, 1000 + event) +
                    self.trailer(event, pid, tid, time, 0))

    def finished_round(self):
        self.record(FINISHED_ROUND, 0, b"")

    def sample(self, event, time, pid, tid, ip, addr=0, cpu=0, period=1, chain=(), weight=(0, 0, 0), data_src=0,
               raw=b""):
        kind = self.events[event][1]
        out = self.pack("Q", 1000 + event) if kind & IDENTIFIER else b""
        out += self.pack("Q", ip) if kind & IP else b""
        out += self.pack("II", pid, tid) if kind & TID else b""
        out += self.pack("Q", time) if kind & TIME else b""
        out += self.pack("Q", addr) if kind & ADDR else b""
        out += self.pack("Q", 1000 + event) if kind & ID else b""
        out += self.pack("II", cpu, 0) if kind & CPU else b""
        out += self.pack("Q", period) if kind & PERIOD else b""
        if kind & CALLCHAIN:
            out += self.pack("Q", len(chain)) + b"".join(self.pack("Q", word) for word in chain)
        if kind & RAW:
            area = raw + bytes(-(len(raw) + 4) % 8)
            out += self.pack("I", len(area)) + area
        if kind & WEIGHT_STRUCT:  # one word whose parts keep their places in the number
            out += self.pack("Q", weight[0] | weight[1] << 32 | weight[2] << 48)
        out += self.pack("Q", data_src) if kind & DATA_SRC else b""
        self.record(SAMPLE, USER, out)

    def attr(self, event):
        _, sample_type, period = self.events[event]
        bits = [FLAG_MMAP, FLAG_MMAP_DATA, FLAG_SAMPLE_ID_ALL] if event == 0 else [FLAG_SAMPLE_ID_ALL]
        bits += [] if period else [10]  # frequency
        flags = sum(1 << bit for bit in bits)
        precise = 2  # of two bits
        if self.order == ">":  # big-endian compilers hand out bit fields from the top
            flags = sum(1 << 63 - bit for bit in bits) | precise << 63 - FLAG_PRECISE - 1
        else:
            flags |= precise << FLAG_PRECISE
        out = self.pack("IIQQQQQ", 4, 128, 0x1cd + event, period or 4000, sample_type, 4, flags)
        return out + bytes(128 - len(out))

    def feature_bytes(self):
        def string(text):
            raw = self.text(text)
            return self.pack("I", len(raw)) + raw
        descriptions = self.pack("II", len(self.events), 128)
        for i, (name, _, _) in enumerate(self.events):
            descriptions += self.attr(i) + self.pack("I", 1) + string(name) + self.pack("Q", 1000 + i)
        return {HOSTNAME: string("node17"), VERSION: string("6.9"), ARCH: string("ppc64"),
                COMMAND: self.pack("I", 2) + string("perf") + string("record"), EVENT_DESC: descriptions}

    def bytes(self):
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        n = len(self.events)
        ids_at, attrs_at = 104, 104 + 8 * n
        data_at = attrs_at + 144 * n
        data = b"".join(self.records)
        features = self.feature_bytes()
        table, blobs, at = b"", b"", data_at + len(data) + 16 * len(features)
        for feature in sorted(features):
            table += self.pack("QQ", at, len(features[feature]))
            blobs += features[feature]
            at += len(features[feature])
        head = magic + self.pack("QQ", 104, 144) + self.pack("QQQQQQ", attrs_at, 144 * n, data_at, len(data), 0, 0)
        head += self.pack("QQQQ", sum(1 << f for f in features), 0, 0, 0)
        ids = b"".join(self.pack("Q", 1000 + i) for i in range(n))
        attrs = b"".join(self.attr(i) + self.pack("QQ", ids_at + 8 * i, 8) for i in range(n))
        return head + ids + attrs + data + table + blobs

    def piped(self):
        out = (b"PERFILE2" if self.order == "<" else b"2ELIFREP") + self.pack("Q", 16)
        for i in range(len(self.events)):
            body = self.attr(i) + self.pack("Q", 1000 + i)
            out += self.pack("IHH", HEADER_ATTR, 0, len(body) + 8) + body
        for feature, blob in sorted(self.feature_bytes().items()):
            out += self.pack("IHHQ", HEADER_FEATURE, 0, len(blob) + 16, feature) + blob
        return out + b"".join(self.records)


# --- scheduler events ---

SWITCH, SWITCH_CPU_WIDE, THREAD_MAP, TRACING_DATA, NRCPUS = 14, 15, 73, 1, 7
OUT, PREEMPT = 0x2000, 0x4000
SAMPLE_TYPE = IP | TID | TIME | CPU | PERIOD | RAW | IDENTIFIER
KEYS = list(tracedat.EVENTS)


def tracing_data(recording):
    """What trace-cmd's files begin with, in the version that perf writes."""
    pack = recording.pack
    out = tracedat.MAGIC + b"0.6\0" + bytes([recording.order == ">", recording.long_bytes]) + pack("I", recording.page)
    page = recording.header_page()
    out += b"header_page\0" + pack("Q", len(page)) + page
    out += b"header_event\0" + pack("Q", len(tracedat.HEADER_EVENT)) + tracedat.HEADER_EVENT + pack("I", 0)
    systems = sorted({system for system, _ in recording.formats})
    out += pack("I", len(systems))
    for system in systems:
        texts = [text for own, text in recording.formats if own == system]
        out += system.encode() + b"\0" + pack("I", len(texts)) + b"".join(pack("Q", len(t)) + t for t in texts)
    return out + pack("IIQ", 0, 0, 0)


class Sched(File):
    """Scheduler events: the tracepoints of a made recording of trace-cmd (tracedat.Recording), or the kernel's records of
    switches. kind: "tracepoints", "wide", "own". n_cpus as the header says it."""

    def __init__(self, order, kind, n_cpus, recording=None):
        names = [f"{system}:{name}" for system, name in KEYS] if kind == "tracepoints" else ["dummy:u"]
        sample_type = SAMPLE_TYPE if kind == "tracepoints" else SAMPLE_TYPE & ~RAW
        super().__init__(order, [(name, sample_type, 1) for name in names])
        self.kind, self.n_cpus, self.recording = kind, n_cpus, recording
        if kind != "own":
            self.record(THREAD_MAP, 0, self.pack("QQ", 1, 2 ** 64 - 1) + bytes(16))

    def attr(self, event):
        out = bytearray(super().attr(event))
        if self.kind == "tracepoints":
            out[0:4] = self.pack("I", 2)
            out[8:16] = self.pack("Q", tracedat.IDS[KEYS[event]])
        return bytes(out)

    def feature_bytes(self):
        out = super().feature_bytes()
        out[NRCPUS] = self.pack("II", self.n_cpus, self.n_cpus)
        if self.recording:
            out[TRACING_DATA] = tracing_data(self.recording)
        return out

    def tracepoint(self, key, time, task, cpu, raw):
        self.sample(KEYS.index(key), time, task, task, 0, cpu=cpu, raw=raw)

    def wide(self, time, cpu, task, is_out, other, preempted=False):
        self.record(SWITCH_CPU_WIDE, (OUT if is_out else 0) | (PREEMPT if preempted else 0),
                    self.pack("II", other, other) + self.trailer(0, task, task, time, cpu))

    def own(self, time, cpu, task, is_out, preempted=False):
        self.record(SWITCH, (OUT if is_out else 0) | (PREEMPT if preempted else 0), self.trailer(0, task, task, time, cpu))


def write_tiled(path, n_events):
    """About so many switches and wakings of four CPUs, as perf writes them: rounds, in each of which the ring of each CPU
    lies as a whole, and ends a little later than the one before."""
    order, n_cpus, period = "<", 4, 400
    recording = tracedat.Recording(n_cpus)
    block = min(5000, max(40, n_events // n_cpus // 40 * 40))
    recording.tasks = {task: f"task{task}" for task in range(1, 201)}
    rounds, times = array.array("Q"), []
    for cpu in range(n_cpus):
        recording.events[cpu] = []
        for i in range(block):
            time, task, other = 1000 + (i + cpu * block // 8) * period + cpu * 97, i % 200 + 1, (i + 1) % 200 + 1
            if i % 2:
                recording.waking(cpu, time, task, other, (cpu + 1) % n_cpus)
            else:
                recording.switch(cpu, time, task, other)
    made = Sched(order, "tracepoints", n_cpus, recording)
    head, made.records = made.records, []
    for cpu in range(n_cpus):
        for i, (time, raw, _) in enumerate(recording.events[cpu]):
            made.tracepoint(("sched", "sched_waking" if i % 2 else "sched_switch"), time, i % 200 + 1, cpu, raw)
            times.append(len(rounds) + 4)  # behind header, id, ip and thread
            rounds.frombytes(made.records.pop())
    made.finished_round()
    rounds.frombytes(made.records.pop())
    whole = [*head]
    for _ in range(max(1, n_events // n_cpus // block)):
        whole.append(rounds.tobytes())
        for at in times:
            rounds[at] += block * period
    made.records = whole
    path.write_bytes(made.bytes())
