#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""frame-seeds.py DIRECTORY BUILD: the inputs of tests/golden/readers.py as frame-fuzz.c takes them, what the tools in BUILD save of
them, and small databases of ours."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import v4  # noqa: E402

PARTS = {1: ("meta.db", "profile.db", "cct.db"), 2: ("experiment.xml", "1.app-000000-000-a8c0-100-0.metric-db"), 3: ("frame.db",),
         4: ("meta.db", "profile.db", "cct.db", "locus.db")}


def write_seed(target, name, kind, parts):
    packed = b"".join(struct.pack("<I", len(part)) + part for part in parts[:-1]) + parts[-1]
    (target / f"seed-{name}").write_bytes(bytes([kind]) + packed)


def save_seeds(target, build, inputs, scratch):
    """What hpcquery saves of each input, and a database with a variable of the heap and a static one."""
    for path in inputs.iterdir():
        saved = scratch / f"saved-{path.name}"
        subprocess.run([build / "hpcquery", "save", saved, path], check=False, capture_output=True)
        if saved.exists():
            write_seed(target, saved.name, 3, [(saved / "frame.db").read_bytes()])
    start = [("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)]
    profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)], thread=0)
    profile.sample(start, {0: 30}, m.heap(start, size=1 << 20))
    profile.sample(start[:1], {0: 5}, m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x404040, "static", "grid", 64))
    profile.write(scratch / "measured")
    subprocess.run([build / "hpcprof", "-q", "-o", scratch / "ours", scratch / "measured"], check=True)
    write_seed(target, "ours", 4, [(scratch / "ours" / part).read_bytes() for part in PARTS[4]])


def field_seeds(target, build, scratch):
    """Databases that say which fields the code touches, opened with these."""
    os.environ.update({"LOCUS_SRCDIR": str(TESTS.parent), "LOCUS_BUILDDIR": str(build)})
    sys.path.insert(0, str(TESTS / "golden"))
    import fields
    for seed in range(3):
        fields.Case(seed).write(scratch / f"fields-{seed}")
        database = scratch / f"fields-db-{seed}"
        subprocess.run([build / "hpcprof", "-q", "-o", database, scratch / f"fields-{seed}"], check=True)
        write_seed(target, f"fields-{seed}", 4 + len(PARTS) + 1, [(database / part).read_bytes() for part in PARTS[4]])


def main():
    target, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        inputs = bundle.unpack(TESTS / "golden" / "readers.txt", scratch / "readers") / "inputs"
        v4.write_small(inputs / "small-v4")
        for path in inputs.iterdir():
            if not path.is_dir():
                write_seed(target, path.name, 0, [path.read_bytes()])
                continue
            kind = 1 if (path / "meta.db").exists() else 2
            write_seed(target, path.name, kind, [(path / part).read_bytes() for part in PARTS[kind]])
        save_seeds(target, build, inputs, scratch)
        field_seeds(target, build, scratch)


main()
