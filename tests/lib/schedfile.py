# SPDX-License-Identifier: BSD-3-Clause
"""Writes files of scheduler records (hpcrun -e sched), as doc/FORMAT.md describes them."""
import struct

NAME = "-000000-000-007f0101-4711-0.sched"  # behind the program's name


def text(value):
    return struct.pack(">I", len(value)) + value.encode()


def chunk(kind, body):
    return struct.pack(">BI", kind, len(body)) + body


def write(path, tier, n_cpus, switches=(), own=(), totals=()):
    """The path. switches: (time, CPU, thread, other or None, flags); own: (time, thread, name from then on) of the program's threads;
    totals: (time, ns on CPUs, thread, CPU)."""
    out = b"LOCUS-sched_______" + b"01.00" + b"b"
    out += chunk(1, struct.pack(">BBqQII", tier, 0, 10 ** 18, 0, n_cpus, 4711) + text(f"0-{n_cpus - 1}") + text("node7") +
                 text("0123-boot") + text("6.1.0") + text("" if tier == 1 else "perf_event_open: EACCES"))
    out += b"".join(chunk(3, struct.pack(">QIIB", time, task, 4711, 1) + text(name)) for time, task, name in own)
    events = b"".join(struct.pack(">QHBHIIB", time, cpu, 2, 9, task, 2 ** 32 - 1 if other is None else other, flags)
                      for time, cpu, task, other, flags in switches)
    out += chunk(4, struct.pack(">I", len(switches)) + events) if switches else b""
    out += b"".join(chunk(6, struct.pack(">QQQQQQIIHB", time, run, 0, 1, 2, 3, task, 4711, cpu, 1)) for time, run, task, cpu in totals)
    out += chunk(7, struct.pack(">QQQQ", len(switches), 0, 0, 0))
    path.write_bytes(out)
    return path
