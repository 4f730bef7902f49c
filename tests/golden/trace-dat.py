# SPDX-License-Identifier: BSD-3-Clause
"""Streams of trace.dat: rows, order and twins of made files, and of the real ones where they are, are those that an
independent reader finds."""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests/lib"))
import tracedat  # noqa: E402
LIST = BUILD / "tests/golden/list-stream"
DATA = pathlib.Path(os.environ.get("LOCUS_SHARED_DATA", SOURCE.parent / "shared" / "data")) / "kernelshark"
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def listed(path, *options):
    """The rows that the C code finds: (time, cpu, task, name)."""
    done = subprocess.run([LIST, *options, path], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    rows = []
    for line in done.stdout.split("\n"):
        parts = line.split("; ")
        if len(parts) >= 6 and parts[0] == "0":
            rows.append((int(parts[1]), int(parts[3].split()[1]), int(parts[2].rsplit("-", 1)[1]), parts[5]))
    return rows


def small():
    made = tracedat.Recording(2)
    made.tasks = {7: "seven", 8: "eight"}
    made.clock = "local [mono]"
    made.options = [(5, b"Linux somewhere 6.1.0 x86_64\0")]
    made.switch(0, 1000, 0, 7)
    made.waking(0, 1100, 7, 8, 0)
    made.switch(1, 1100, 0, 8)
    made.migrate(0, 1200, 7, 8, 1, 0)
    made.switch(1, 300_000_000_000, 8, 0, lost=3)
    return made


def check(path, reader):
    found = listed(path)
    expect(found == [event.row() for event in reader.events], f"{path}: rows {found}")
    found = listed(path, "--couplebreak")
    wanted = [event.row() for event in tracedat.couplebreak(reader.events, reader.n_cpus())]
    expect(found == wanted, f"{path}: with twins: {found} not {wanted}")


def main():
    probe = subprocess.run([LIST, os.devnull], capture_output=True, text=True, check=False)
    expect("not a regular file" in probe.stderr, f"a device is read: {probe.stderr}")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for kind, raw in (("6", small().version_6()), ("7", small().version_7())):
            path = scratch / f"small-{kind}.dat"
            path.write_bytes(raw)
            first = listed(path)
            if isinstance(first, str) and "libtraceevent" in first:
                print("SKIP: built without libtraceevent")
                return 77
            check(path, tracedat.Reader(raw))
    real = sorted(DATA.glob("*.dat"))
    for path in real:
        check(path, tracedat.Reader(path.read_bytes()))
    if not real:
        print(f"SKIP (part): no recordings in {DATA} (set LOCUS_SHARED_DATA)")
    for failure in failures[:20]:
        print("FAIL:", failure[:2000])
    return 1 if failures else 0


sys.exit(main())
