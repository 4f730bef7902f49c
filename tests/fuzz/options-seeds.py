#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the first inputs of options-fuzz.c: options-seeds.py SRCDIR DIRECTORY. They are command lines together with the
files of a machine that they need, from the described machines of the tests and the table of memory events."""
import pathlib
import sys
import tempfile

LINES = [
    ["-e", "datacentric", "app"], ["-e", "EADDR@f500", "-t", "-o", "dir", "--", "app", "-x"], ["-c", "f99", "app"],
    ["-e", "PEBS,ldlat=30,large@20011", "app"], ["-e", "IBS,l3missonly@64000"], ["-e", "SPE@8192", "--print-plan"],
    ["-e", "MRK"], ["-e", "FAULTS@ring", "-e", "CPUTIME", "-e", "REALTIME@5000"], ["-e", "MEMLEAK", "-mp", "1/10"],
    ["-e", "{cycles,instructions}@100000"], ["-e", "cpu/mem-loads,ldlat=30/pp"], ["-e", "mem:0x404080/8:w"],
    ["-e", "r1cd:u"], ["-e", "sched:sched_switch"], ["-e", "REPLAY:ring"], ["-L", "cpu/mem-*"], ["-L", "clock"],
    ["--doctor"], ["-ms", "1g", "-lm", "4k", "-f", "0.25"], ["-ck", "CHECKPOINT_SECONDS=5", "-ck", "SAMPLE_BYTES=1m"],
    ["-fnb", "p", "-js", "3", "-r", "-ds", "-m", "1"], ["--help"], ["--help-man"], ["--nonsense"],
]
FILES = ["opens", "proc/cpuinfo", "proc/sys/kernel/osrelease", "proc/sys/kernel/perf_event_paranoid"]
PMUS = ["cpu", "ibs_op", "arm_spe_0", "cpu_core"]


def files_of(machine):
    """The few that sources look at, short."""
    wanted = [machine / name for name in FILES]
    for pmu in PMUS:
        folder = machine / "sys/bus/event_source/devices" / pmu
        wanted += [folder / name for name in ("type", "cpus", "cpumask", "format/event", "format/umask", "format/ldlat",
                                              "format/l3missonly", "format/swfilt", "format/load_filter",
                                              "format/ts_enable", "events/mem-loads", "events/mem-stores",
                                              "caps/max_precise", "caps/min_interval")]
    for path in wanted:
        if path.is_file():
            text = path.read_text(encoding="utf-8")[:700]
            yield f"={path.relative_to(machine)}\n{text if text.endswith(chr(10)) else text + chr(10)}"


def main():
    source, directory = map(pathlib.Path, sys.argv[1:3])
    sys.path.insert(0, str(source / "tests/lib"))
    import bundle  # pylint: disable=import-outside-toplevel
    machines = sorted(path for path in (source / "tests/golden/machines").glob("*.txt") if path.stem != "situations")
    for number, line in enumerate(LINES):
        text = "".join(word + "\n" for word in line)
        (directory / f"seed-line-{number}").write_text(text, encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            machine = "".join(files_of(bundle.unpack(machines[number % len(machines)], scratch)))
        (directory / f"seed-machine-{number}").write_text(text + machine, encoding="utf-8")
    table = (source / "src/sampling/pmu-events.txt").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines(True) if line[0] not in "#\n"]
    (directory / "seed-table").write_text("-e\nPEBS\n=table\n" + "".join(rows[:6]), encoding="utf-8")


if __name__ == "__main__":
    main()
