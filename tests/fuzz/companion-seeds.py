#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first inputs of companion-fuzz.c and, into STATUS_DIRECTORY, answers for status-fuzz.c:
companion-seeds.py DIRECTORY [STATUS_DIRECTORY]"""
import pathlib
import struct
import sys

HELLO, WELCOME, REFUSED, END, WRITTEN, MODULE, FORK, STATUS = range(1, 9)
SAY, SCRIBBLE, POST, WAIT, FINISH, DIE, HANG_UP, FAIL = range(8)
RAW, DESCRIPTOR = 0x80, 0x40
TABLE, DATA = 0x80, 0xC0
N_CHUNKS = struct.pack("<II", 1000, 3)  # in the header's word 5, behind the limit
PATH = 9728 + 8  # reference of the second 64 bytes of the first chunk in an arena of 4 MiB


def step(kind, a=0, b=0, data=b""):
    return struct.pack("<BBHH", kind, a, b, len(data)) + data


def message(pid=11, rank=-1, exit_code=0, size=0, text=b""):
    return struct.pack("<IiiQQ", pid, rank, exit_code, size, 0) + text


def say(client, kind, **fields):
    return step(SAY, client, kind, message(**fields))


HELLOS = say(0, HELLO) + say(1, HELLO, rank=3, size=1 << 20)
THREADS = struct.pack("<IHHII", 4096, 1, 0, 0, 0)  # a chunk of them in the table
SAMPLES = (HELLOS + step(SCRIBBLE, 0, 5, N_CHUNKS) + step(SCRIBBLE, TABLE, 0, THREADS)
           + step(SCRIBBLE, DATA, 0, b"\1" * 4096))
SEEDS = {
    "life": HELLOS + step(WAIT, 0, 100) + say(0, END, exit_code=2, rank=1) + say(1, STATUS) + step(FINISH) + step(DIE),
    "exec": say(0, HELLO) * 4 + step(WAIT, 0, 100) + step(DIE) * 4,
    "fork": say(0, HELLO) + say(1, FORK, pid=12) + say(2, FORK, text=b"1\0") + step(DIE, 1) + step(FINISH, 0, 9),
    "modules": HELLOS + say(2, MODULE, text=b"/bin/true\0") + say(0, MODULE, text=b"true\0") + step(FINISH, 1) * 3,
    "versions": step(SAY, 0, HELLO | 0x100, message()) + step(SAY, RAW, 0, b"LOC1") + step(SAY, RAW, 0, b"x" * 5000),
    "descriptors": step(SAY, DESCRIPTOR, HELLO, message()) + step(SAY, DESCRIPTOR | 1, 77, message()),
    "guest": say(3, HELLO) + say(3, STATUS) + HELLOS + say(3, STATUS, exit_code=1),
    "hang-up": say(0, END) + HELLOS + say(0, END) + step(HANG_UP) + step(DIE) + step(HANG_UP, 1) + step(WAIT, 0, 9),
    "samples": SAMPLES + step(WAIT, 0, 1000) + step(FINISH, 1) + say(1, END) + step(FINISH, 1),
    "requests": say(0, HELLO) + step(SCRIBBLE, DATA, 0, struct.pack("<IIQQQQQ", 1, PATH, 0, 0, 0, 5, 0))
    + step(SCRIBBLE, DATA, 8, struct.pack("<I", 9) + b"/bin/true\0") + step(WAIT, 0, 9)
    + b"".join(step(POST, 0, i, struct.pack("<IIII", 2, i % 3, i // 3 * 70000, 7)) for i in range(6)),
    "header": say(0, HELLO) + step(SCRIBBLE, 0, 2, b"\xff" * 40) + step(WAIT, 0, 1000) + say(1, FORK) + step(DIE),
    "no-forks": SAMPLES + step(FAIL, 1) + step(WAIT, 0, 99) + say(1, END) + step(FAIL, 0) + step(DIE),
    "full": SAMPLES + say(1, END) + step(FINISH, 1, 3 << 8) + step(FINISH, 1, 3 << 8) + step(DIE),
}
ARENA = 65536  # bytes of the arena that status-fuzz.c hands out
ANSWERS = {
    "none": step(0, 0, 0, message(pid=0)),
    "one": step(1, 0, 0, message(size=ARENA, text=b"/measurements")) + step(0, 0, 0, message(pid=0)),
    "two": b"".join(step(1, 0, 0, message(pid=pid, size=ARENA)) for pid in (4, 9, 9)),
    "size": step(1, 0, 0, message(size=1 << 40)) + step(2, 0, 0, message(pid=12, size=ARENA)) + step(3, 0, 1, b"short"),
    "size-0": step(0, 0, 0, message(size=ARENA)) + step(1, 0, 0, message(pid=13)) + step(1, 0, 0, message(pid=3)),
}


def main():
    for name, data in SEEDS.items():
        pathlib.Path(sys.argv[1], f"seed-{name}").write_bytes(data)
    for name, data in ANSWERS.items() if len(sys.argv) > 2 else ():
        pathlib.Path(sys.argv[2], f"seed-answer-{name}").write_bytes(b"\1" + data)


if __name__ == "__main__":
    main()
