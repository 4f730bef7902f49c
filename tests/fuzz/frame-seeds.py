#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""frame-seeds.py DIRECTORY: the inputs of tests/golden/readers.py as frame-fuzz.c takes them."""
import pathlib
import struct
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
import bundle  # noqa: E402
import v4  # noqa: E402

PARTS = {1: ("meta.db", "profile.db", "cct.db"), 2: ("experiment.xml", "1.app-000000-000-a8c0-100-0.metric-db")}


def main():
    target = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        inputs = bundle.unpack(TESTS / "golden" / "readers.txt", pathlib.Path(name) / "readers") / "inputs"
        v4.write_small(inputs / "small-v4")
        for path in inputs.iterdir():
            kind, data = 0, []
            if path.is_dir():
                kind = 1 if (path / "meta.db").exists() else 2
                data = [(path / part).read_bytes() for part in PARTS[kind]]
            else:
                data = [path.read_bytes()]
            packed = b"".join(struct.pack("<I", len(part)) + part for part in data[:-1]) + data[-1]
            (target / f"seed-{path.name}").write_bytes(bytes([kind]) + packed)


main()
