#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""For the benchmarks: runs commands in turn, several times, and gives medians of what they took. On a machine that others
use, too, CPU time says more than the clock; both are ratios to the first command of the same round."""
import os
import pathlib
import resource
import statistics
import subprocess
import time


class Group:
    """A control group of its own, where one can be made: memory of all processes of a run, files in memory included."""
    FOLDERS = (("/sys/fs/cgroup", "memory.peak"), ("/sys/fs/cgroup/memory", "memory.max_usage_in_bytes"))

    def __init__(self):
        self.folder = self.peak = None
        for folder, peak in self.FOLDERS:
            path = pathlib.Path(folder) / f"locus-bench-{os.getpid()}-{time.monotonic_ns()}"
            try:
                path.mkdir()
            except OSError:
                continue
            if (path / peak).exists():
                self.folder, self.peak = path, path / peak
                return
            path.rmdir()

    def join(self):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def close(self):
        """The peak in bytes, None where it is not known; waits for the last process to leave."""
        if not self.folder:
            return None
        for _ in range(600):
            if not (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
                break
            time.sleep(0.1)
        peak = int(self.peak.read_text(encoding="ascii"))
        try:
            self.folder.rmdir()
        except OSError:
            pass
        return peak


class Run:
    """One run of a command: seconds of the clock and of CPU time (of the processes that were waited for), peak memory,
    output."""

    def __init__(self, words, environment=None, directory=None):
        group = Group()
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([str(word) for word in words], env=environment, cwd=directory, preexec_fn=group.join,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.wall_s = time.monotonic() - start
        self.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.out, self.err, self.status = done.stdout, done.stderr, done.returncode
        self.peak_bytes = group.close()


def median(values):
    return statistics.median(values)


def in_turn(commands, n_rounds, take):
    """commands: {name: words}; take(Run): a number. Returns {name: ([numbers], median ratio to the first)}."""
    values = {name: [] for name in commands}
    for _ in range(n_rounds):
        for name, make in commands.items():
            run = Run(make() if callable(make) else make)
            if run.status:
                raise SystemExit(f"{name} ended with {run.status}: {run.err[-500:]}")
            values[name].append(take(run))
    first = next(iter(values.values()))
    return {name: (row, median([a / b for a, b in zip(row, first)])) for name, row in values.items()}
