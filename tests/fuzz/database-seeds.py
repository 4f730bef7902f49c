#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first inputs of database-fuzz.c and extend-fuzz.c:
database-seeds.py MEASUREMENT... DATABASE... DIRECTORY EXTEND_DIRECTORY

For the first, the smallest profiles of each measurement with their side files and logs, and each database's locus.db;
for the second, each database with each of these profiles. Files that they name are made to be missing: looking at the
debug information of libraries again and again would take nearly all of the time, and has fuzzers of its own."""
import pathlib
import re
import struct
import sys


def read(path):
    """The file with the first letter of each absolute path in capitals, "" when there is none."""
    data = path.read_bytes() if path.exists() else b""
    return re.sub(rb"(?<![\w.\]>/-])/[a-z](?=[\w.-]*/)", lambda found: found.group().upper(), data)


def part(path):
    data = read(path)
    return struct.pack("<H", len(data)) + data if len(data) < 65536 else struct.pack("<H", 0)


def parts(directory, *names):
    return b"".join(part(directory / name) for name in names)


def main():
    *sources, directory, extend_directory = map(pathlib.Path, sys.argv[1:])
    profiles, databases = [], []
    for source in sources:
        if (source / "locus.db").exists():
            databases.append(source)
        profiles += sorted(source.glob("*.hpcrun"), key=lambda path: path.stat().st_size)[:4]
    for number, profile in enumerate(profiles):
        measurement = parts(profile.parent, *(profile.stem + suffix for suffix in (".hpcrun", ".objects", ".log")))
        (directory / f"seed-measurement-{number}").write_bytes(b"\0" + measurement)
        for other, database in enumerate(databases):
            files = parts(database, "locus.db", "profile.db", "trace.db")
            (extend_directory / f"seed-{number}-{other}").write_bytes(files + measurement)
    for number, database in enumerate(databases):
        (directory / f"seed-database-{number}").write_bytes(b"\1" + read(database / "locus.db"))


if __name__ == "__main__":
    main()
