#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Corpora of the fuzzers as text, in corpora.txt: behind the line [NAME] an input in hexadecimal digits a line.

corpus.py unpack NAME DIRECTORY               writes each input of NAME as a file into DIRECTORY, if there are any
corpus.py pack NAME DIRECTORY MAX_BYTES NUMBER   makes up to NUMBER of DIRECTORY's files that are not longer than
                                              MAX_BYTES, spread over their sizes, the corpus of NAME; those named
                                              seed-* come first
"""
import hashlib
import pathlib
import sys

CORPORA = pathlib.Path(__file__).with_name("corpora.txt")


def read():
    """The comment at the head, and {name: lines of digits}."""
    head, found, lines = [], {}, None
    for line in CORPORA.read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            lines = found.setdefault(line[1:-1], [])
        else:
            (head if lines is None else lines).append(line)
    return head, found


def unpack(name, directory):
    for number, line in enumerate(read()[1].get(name, [])):
        pathlib.Path(directory, f"kept-{number}").write_bytes(bytes.fromhex(line))


def choose(directory, max_bytes, n_wanted):
    seeds, others = [], []
    for path in sorted(pathlib.Path(directory).iterdir()):
        data = path.read_bytes()
        if 0 < len(data) <= max_bytes:
            (seeds if path.name.startswith("seed-") else others).append(data)
    others.sort(key=lambda data: (len(data), hashlib.sha256(data).digest()))
    n_others = max(0, n_wanted - len(seeds))
    step = max(1, len(others) // n_others) if n_others else len(others) + 1
    return [data.hex() for data in seeds + others[::step][:n_others]]


def pack(name, directory, max_bytes, n_wanted):
    head, found = read()
    found[name] = choose(directory, max_bytes, n_wanted)
    lines = head + [line for key in sorted(found) for line in (f"[{key}]", *found[key])]
    CORPORA.write_text("".join(line + "\n" for line in lines), encoding="ascii")


if __name__ == "__main__":
    if sys.argv[1] == "unpack":
        unpack(sys.argv[2], sys.argv[3])
    else:
        pack(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
