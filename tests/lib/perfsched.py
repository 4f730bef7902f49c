# SPDX-License-Identifier: BSD-3-Clause
"""Files of perf with scheduler events for tests: the tracepoints of a made recording of trace-cmd (tracedat.Recording), or
the kernel's records of switches. Written from the description of the format, independently of the C code."""
import perfdata
import tracedat

SWITCH, SWITCH_CPU_WIDE, THREAD_MAP, TRACING_DATA, NRCPUS = 14, 15, 73, 1, 7
OUT, PREEMPT = 0x2000, 0x4000
SAMPLE_TYPE = perfdata.IP | perfdata.TID | perfdata.TIME | perfdata.CPU | perfdata.PERIOD | perfdata.RAW | perfdata.IDENTIFIER
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


class File(perfdata.File):
    """kind: "tracepoints", "wide", "own". n_cpus as the header says it."""

    def __init__(self, order, kind, n_cpus, recording=None):
        names = [f"{system}:{name}" for system, name in KEYS] if kind == "tracepoints" else ["dummy:u"]
        sample_type = SAMPLE_TYPE if kind == "tracepoints" else SAMPLE_TYPE & ~perfdata.RAW
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
