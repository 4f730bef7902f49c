#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Corpora of the fuzzers as text, an input in hexadecimal digits a line.

corpus.py unpack FILE DIRECTORY             writes each line of FILE as a file into DIRECTORY
corpus.py pack DIRECTORY MAX_BYTES NUMBER   prints up to NUMBER of DIRECTORY's files that are not longer than MAX_BYTES,
                                            spread over their sizes; those named seed-* come first
"""
import hashlib
import pathlib
import sys


def unpack(file, directory):
    with open(file, encoding="ascii") as lines:
        for number, line in enumerate(lines):
            pathlib.Path(directory, f"kept-{number}").write_bytes(bytes.fromhex(line))


def pack(directory, max_bytes, n_wanted):
    seeds, others = [], []
    for path in sorted(pathlib.Path(directory).iterdir()):
        data = path.read_bytes()
        if 0 < len(data) <= max_bytes:
            (seeds if path.name.startswith("seed-") else others).append(data)
    others.sort(key=lambda data: (len(data), hashlib.sha256(data).digest()))
    n_others = max(0, n_wanted - len(seeds))
    step = max(1, len(others) // n_others) if n_others else len(others) + 1
    for data in seeds + others[::step][:n_others]:
        print(data.hex())


if __name__ == "__main__":
    if sys.argv[1] == "unpack":
        unpack(sys.argv[2], sys.argv[3])
    else:
        pack(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
