#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the measurement directories that hpcrun has written: every profile has its side file and its process a log,
every sample taken has exactly one fate, thread by thread and event by event, and as many samples, processes and threads
are there as the test expects. Prints what is wrong and exits with 1, or one line with the sums."""
import argparse
import collections
import json
import pathlib
import re
import sys
import time

NEVER_SAMPLES = {"not-delivered", "in-kernel", "own-fault"}
NAME = re.compile(r"^(.+)-(\d{6})-(\d{3,})-([0-9a-f]+)-(\d+)-(\d+)\.hpcrun$")


class Measurement:
    """What one directory holds, and what is wrong with it."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.wrong, self.states, self.processes = [], collections.Counter(), collections.defaultdict(int)
        self.sums, self.n_taken = collections.Counter(), 0
        for path in sorted(self.directory.glob("*.hpcrun")):
            self.check_profile(path)
        self.wrong += [f"{name} was left behind" for name in self.left_behind()]

    def left_behind(self):
        """What remains of the companion's work; its last act, which nobody waits for, may take a moment."""
        for _ in range(50):
            names = [path.name for path in self.directory.iterdir()
                     if path.name.endswith((".tmp", ".part")) or path.name.startswith(".") and path.name != ".runs"]
            if not names:
                break
            time.sleep(0.1)
        return names

    def check_profile(self, path):
        name = NAME.match(path.name)
        if not name:
            self.wrong.append(f"{path.name} is no name of a profile")
            return
        self.processes[name.group(5), name.group(6)] += 1
        side_path = path.with_suffix(".objects")
        if not side_path.exists():
            self.wrong.append(f"{path.name} has no side file")
            return
        if not list(self.directory.glob(f"{name.group(1)}-*-{name.group(5)}-{name.group(6)}.log")):
            self.wrong.append(f"{path.name} has no log")
        side = json.loads(side_path.read_text(encoding="utf-8"))
        self.states[side["state"]] += 1
        for event in side["events"]:
            self.check_event(path.name, event)

    def check_event(self, profile, event):
        fates = {name: n for name, n in event["fates"].items() if name not in NEVER_SAMPLES}
        if event["taken"] != sum(fates.values()):
            self.wrong.append(f"{profile}: {event['name']}: {event['taken']} taken, but {sum(fates.values())} have a "
                              f"fate: {event['fates']}")
        self.n_taken += event["taken"]
        self.sums.update(event["fates"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--processes", type=int, help="that many sets of files")
    parser.add_argument("--threads", type=int, help="that many profiles")
    parser.add_argument("--state", help="every set is in this state", default="complete")
    parser.add_argument("--min-taken", type=int, default=1, help="at least so many samples in each directory")
    arguments = parser.parse_args()
    return max([check(directory, arguments) for directory in arguments.directories])


def check(directory, arguments):
    found = Measurement(directory)
    n_profiles = sum(found.processes.values())
    if arguments.processes is not None and len(found.processes) != arguments.processes:
        found.wrong.append(f"{len(found.processes)} processes instead of {arguments.processes}")
    if arguments.threads is not None and n_profiles != arguments.threads:
        found.wrong.append(f"{n_profiles} profiles instead of {arguments.threads}")
    if set(found.states) - set(arguments.state.split(",")):
        found.wrong.append(f"states are {dict(found.states)} instead of {arguments.state}")
    if found.n_taken < arguments.min_taken:
        found.wrong.append(f"{found.n_taken} samples instead of {arguments.min_taken} or more")
    for sentence in found.wrong:
        print(f"{directory}: {sentence}")
    if not found.wrong:
        print(f"{len(found.processes)} processes, {n_profiles} threads, {found.n_taken} samples: {dict(found.sums)}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
