#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Records what this machine's kernel and hardware write into the ring of an event while a program runs, as a file for
`hpcrun -e REPLAY:FILE` (doc/replay.md). The event is one that `hpcrun --print-plan` makes here.

usage: record-ring.py [--hpcrun HPCRUN] [--ring-bytes N] EVENT FILE COMMAND...
Records the first thread of COMMAND. src: perf_event_open(2), include/uapi/linux/perf_event.h."""
import argparse
import ctypes
import mmap
import os
import platform
import struct
import subprocess
import sys
import time

SYSCALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319}
RING_ONLY, BATCH, AUX, SILENT, KERNEL, ADDRESS = 64, 256, 512, 1024, 2048, 8
DECODES = {0: "none", 1: "data-src", 2: "ibs"}
SPE_VARIANTS = {0: "spe", 1: "spe-neoverse", 2: "spe-ampere"}
RECORD_SAMPLE = 9
WRITE, SIGNAL, IN_AUX = 1, 2, 3
HEAD, TAIL, AUX_HEAD, AUX_TAIL, AUX_OFFSET, AUX_SIZE = 1024, 1032, 1056, 1064, 1072, 1080
# Fields of struct perf_event_attr: name, form, offset; the bits of its word of flags, in order, with their widths.
FIELDS = (("type", "I", 0), ("config", "Q", 8), ("sample_period", "Q", 16), ("sample_type", "Q", 24),
          ("read_format", "Q", 32), ("wakeup_events", "I", 48), ("bp_type", "I", 52), ("config1", "Q", 56),
          ("config2", "Q", 64), ("branch_sample_type", "Q", 72), ("sample_regs_user", "Q", 80),
          ("sample_stack_user", "I", 88), ("clockid", "i", 92), ("sample_regs_intr", "Q", 96),
          ("aux_watermark", "I", 104), ("sample_max_stack", "H", 108), ("aux_sample_size", "I", 112))
ATTR_BYTES = 120
BITS = (("disabled", 1), ("inherit", 1), ("pinned", 1), ("exclusive", 1), ("exclude_user", 1), ("exclude_kernel", 1),
        ("exclude_hv", 1), ("exclude_idle", 1), ("mmap", 1), ("comm", 1), ("freq", 1), ("inherit_stat", 1),
        ("enable_on_exec", 1), ("task", 1), ("watermark", 1), ("precise_ip", 2), ("mmap_data", 1),
        ("sample_id_all", 1), ("exclude_host", 1), ("exclude_guest", 1), ("exclude_callchain_kernel", 1),
        ("exclude_callchain_user", 1), ("mmap2", 1), ("comm_exec", 1), ("use_clockid", 1), ("context_switch", 1))


def plan_of(hpcrun, event):
    """The events of a plan, each a dictionary of text."""
    done = subprocess.run([hpcrun, "--print-plan", "-e", event], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    events = []
    for line in done.stdout.splitlines():
        if line.startswith("[event"):
            events.append({})
        elif events and "=" in line:
            key, value = line.split("=", 1)
            events[-1][key] = value.split(" #")[0]
    return events


def number(event, key):
    return int(event.get(key, "0"), 0)


def attr_of(event, is_leader):
    """The bytes of struct perf_event_attr: enabled by exec, a ring that the reader empties."""
    values = {key: number(event, key) for key, _ in BITS}
    values.update(disabled=int(is_leader is None or is_leader), enable_on_exec=1)
    attr, word, shift = bytearray(ATTR_BYTES), 0, 0
    for key, width in BITS:
        place = shift if sys.byteorder == "little" else 64 - shift - width
        word |= values[key] << place
        shift += width
    struct.pack_into("=I", attr, 4, ATTR_BYTES)
    struct.pack_into("=Q", attr, 40, word)
    for key, form, offset in FIELDS:
        struct.pack_into("=" + form, attr, offset, number(event, key))
    return bytes(attr)


def open_event(attr, pid, group):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(ctypes.c_long(SYSCALLS[platform.machine()]), attr, pid, -1, group, ctypes.c_ulong(0))
    if fd < 0:
        sys.exit(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return fd


class Recorder:
    """The ring (and AUX area) of an event, and the pieces taken from it."""

    def __init__(self, fd, event, ring_bytes):
        page = mmap.PAGESIZE
        self.mode = "aux" if number(event, "flags") & AUX else "batch"
        if not number(event, "flags") & (AUX | BATCH | RING_ONLY):
            self.mode = "signal"
        self.ring_bytes, self.aux_bytes, self.pieces = ring_bytes, number(event, "aux_bytes"), []
        self.ring = mmap.mmap(fd, page + ring_bytes)
        self.aux = None
        if self.mode == "aux":
            struct.pack_into("=QQ", self.ring, AUX_OFFSET, page + ring_bytes, self.aux_bytes)
            self.aux = mmap.mmap(fd, self.aux_bytes, offset=page + ring_bytes)

    def word(self, offset):
        return struct.unpack_from("=Q", self.ring, offset)[0]

    def piece(self, kind, data):
        self.pieces.append(struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8))

    @staticmethod
    def span(area, first, position, end):
        size = len(area) - first
        return bytes(area[first + i % size] for i in range(position, end))

    def drain(self):
        head, tail = self.word(HEAD), self.word(TAIL)
        if self.aux:
            aux_head, aux_tail = self.word(AUX_HEAD), self.word(AUX_TAIL)
            if aux_head > aux_tail:
                self.piece(IN_AUX, self.span(self.aux, 0, aux_tail, aux_head))
                struct.pack_into("=Q", self.ring, AUX_TAIL, aux_head)
        while tail < head:
            start = self.span(self.ring, mmap.PAGESIZE, tail, tail + 8)
            kind, _, size = struct.unpack("=IHH", start)
            if size < 8:
                sys.exit("a record of the kernel has no length")
            is_last = tail + size >= head
            is_signal = kind == RECORD_SAMPLE if self.mode == "signal" else is_last
            self.piece(SIGNAL if is_signal else WRITE, self.span(self.ring, mmap.PAGESIZE, tail, tail + size))
            tail += size
        struct.pack_into("=Q", self.ring, TAIL, tail)

    def write(self, path, event):
        flags, decode = number(event, "flags"), number(event, "decode")
        name = DECODES.get(decode & 255) or SPE_VARIANTS[decode >> 8]
        lines = [("name", event["metric"]), ("order", sys.byteorder), ("mode", self.mode), ("decode", name),
                 ("address", "yes" if flags & ADDRESS else "no"), ("kernel", "yes" if flags & KERNEL else "no"),
                 ("ring_bytes", self.ring_bytes), ("aux_bytes", self.aux_bytes),
                 ("period", number(event, "sample_period")), ("freq", number(event, "freq")),
                 ("sample_id_all", number(event, "sample_id_all"))]
        lines += [(key, event[key]) for key in ("type", "config", "config1", "config2", "sample_type", "read_format",
                                                "branch_sample_type", "sample_regs_user", "sample_regs_intr")]
        head = ("LOCUS-RING 1\n" + "".join(f"{key} {value}\n" for key, value in lines) + "\n").encode()
        with open(path, "wb") as file:
            file.write(head + b"\0" * (-len(head) % 8) + b"".join(self.pieces))


def start(command):
    """The command in a child that waits for a byte; (pid, pipe)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writer)
        os.read(reader, 1)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127)
    os.close(reader)
    return pid, writer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hpcrun", default="hpcrun")
    parser.add_argument("--ring-bytes", type=int, default=1 << 19)
    parser.add_argument("event")
    parser.add_argument("file")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if not arguments.command:
        parser.error("a command is expected")
    events = plan_of(arguments.hpcrun, arguments.event)
    index = next(i for i, event in enumerate(events) if not number(event, "flags") & SILENT)
    pid, go = start(arguments.command)
    leader, group = number(events[index], "leader"), -1
    if leader:
        group = open_event(attr_of(events[leader - 1], True), pid, -1)
    fd = open_event(attr_of(events[index], False if leader else None), pid, group)
    recorder = Recorder(fd, events[index], arguments.ring_bytes)
    os.write(go, b"x")
    status = (0, 0)
    while not status[0]:
        status = os.waitpid(pid, os.WNOHANG)
        recorder.drain()
        time.sleep(0.001)
    recorder.drain()
    recorder.write(arguments.file, events[index])
    print(f"{len(recorder.pieces)} pieces in {arguments.file}", file=sys.stderr)
    return os.waitstatus_to_exitcode(status[1])


if __name__ == "__main__":
    sys.exit(main())
