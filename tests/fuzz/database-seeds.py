#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first inputs of database-fuzz.c: database-seeds.py MEASUREMENT... DATABASE... DIRECTORY. The smallest
profiles of each measurement with their side files and logs, and each database's locus.json."""
import pathlib
import struct
import sys


def part(path):
    data = path.read_bytes() if path.exists() else b""
    return struct.pack("<H", len(data)) + data if len(data) < 65536 else struct.pack("<H", 0)


def main():
    *sources, directory = map(pathlib.Path, sys.argv[1:])
    for number, source in enumerate(sources):
        if (source / "locus.json").exists():
            (directory / f"seed-database-{number}").write_bytes(b"\1" + (source / "locus.json").read_bytes())
        profiles = sorted(source.glob("*.hpcrun"), key=lambda path: path.stat().st_size)
        for index, profile in enumerate(profiles[:4]):
            parts = [part(profile.with_suffix(suffix)) for suffix in (".hpcrun", ".objects", ".log")]
            (directory / f"seed-measurement-{number}-{index}").write_bytes(b"\0" + b"".join(parts))


if __name__ == "__main__":
    main()
