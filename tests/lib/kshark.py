# SPDX-License-Identifier: BSD-3-Clause
"""What libkshark finds in a trace: rows(path, scratch) builds kshark-list.c there and runs it."""
import collections
import os
import pathlib
import subprocess

Row = collections.namedtuple("Row", "cpu time tid id name task info")
SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "lib" / "kshark-list.c"
HEADERS = pathlib.Path("/usr/include/kernelshark")


def build(scratch):
    """The program and None, or None and why there is none."""
    program = pathlib.Path(scratch) / "kshark-list"
    if program.exists():
        return program, None
    if not HEADERS.exists():
        return None, "libkshark is not installed (libkshark-dev, libjson-c-dev)"
    built = subprocess.run([os.environ.get("CC", "gcc"), "-O1", "-o", str(program), str(SOURCE),
                            f"-I{HEADERS}", "-lkshark"], capture_output=True, text=True, check=False)
    return (program, None) if built.returncode == 0 else (None, f"libkshark: {built.stderr.strip()[:300]}")


def rows(path, scratch):
    """The rows of the trace and None, or None and why it cannot be asked."""
    program, why = build(scratch)
    if program is None:
        return None, why
    listed = subprocess.run([str(program), str(path)], capture_output=True, text=True, check=True)
    result = []
    for line in listed.stdout.splitlines():
        cpu, time, tid, event, name, task, info = line.split("\t", 6)
        result.append(Row(int(cpu), int(time), int(tid), int(event), name, task, info))
    return result, None
