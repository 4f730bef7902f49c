#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the logs of samples (.events) of measurement directories with a reader of its own, made from doc/FORMAT.md, against
the files beside them: every sample that has a fate in the side file came to the log, records and those left out add up,
the records of each variable are those that the side file counts (where none was left out), and the trace has the same
samples. Prints what is wrong and exits with 1, or one line with the sums."""
import argparse
import collections
import json
import pathlib
import struct
import sys

NOT_LOGGED = {"not-delivered", "in-kernel", "own-fault"}  # and all that begin with dropped-
NONE = 0xffffffff
NO_OFFSET = (1 << 48) - 1


class Log:
    """One file, read whole."""

    def __init__(self, path):
        data = path.read_bytes()
        assert data[:24] == b"LOCUS-events______01.00b", data[:24]
        self.wall, self.wall_at_end, self.stride, self.n_samples, self.n_lost = struct.unpack_from(">qqQQQ", data, 24)
        n_events, n_accesses, n_records = struct.unpack_from(">IIQ", data, 64)
        at, self.events = 80, []
        for _ in range(n_events):
            metric, length = struct.unpack_from(">II", data, at)
            self.events.append((metric, data[at + 8:at + 8 + length].decode()))
            at += 8 + length
        self.accesses = [struct.unpack_from(">IIIBBH", data, at + 16 * i) for i in range(n_accesses)]
        at += 16 * n_accesses
        assert len(data) == at + 24 * n_records, f"{len(data)} bytes, {at + 24 * n_records} expected"
        self.records = []
        for i in range(n_records):
            time, access, latency, place = struct.unpack_from(">QIIQ", data, at + 24 * i)
            self.records.append((time, access, latency, place >> 16, place & 0xffff))


def check_trace(path, log, wrong):
    trace = path.with_suffix(".hpctrace")
    if not log.records:
        if trace.exists():
            wrong.append(f"{trace.name} is there though the log is empty")
        return
    data = trace.read_bytes()
    width, form = (16, ">QII") if data[31] & 1 else (12, ">QI")
    found = [struct.unpack_from(form, data, at) for at in range(32, len(data), width)]
    expected = [(time + log.wall, log.accesses[access][0], log.events[log.accesses[access][3]][0])[:width // 4 - 1]
                for time, access, *_ in log.records]
    if found != expected:
        wrong.append(f"{trace.name} does not have the samples of the log")


def check_log(path, slack, wrong, sums):
    log = Log(path)
    side = json.loads(path.with_suffix(".objects").read_text(encoding="utf-8"))
    n_fates = sum(n for event in side["events"] for name, n in event["fates"].items()
                  if name not in NOT_LOGGED and not name.startswith("dropped-"))
    n_thinned = log.n_samples - log.n_lost - len(log.records)
    if abs(log.n_samples - n_fates) > slack:
        wrong.append(f"{path.name}: {log.n_samples} samples came to the log, {n_fates} have a fate")
    if n_thinned < 0 or log.stride & log.stride - 1 or (log.stride == 1 and n_thinned > slack):
        wrong.append(f"{path.name}: {n_thinned} samples were left out with stride {log.stride}")
    expected = (log.n_samples - log.n_lost) / log.stride
    if log.stride > 1 and not log.n_lost and abs(len(log.records) - expected) > 1 + slack:
        wrong.append(f"{path.name}: {len(log.records)} records of {log.n_samples} samples with stride {log.stride}")
    if [record[0] for record in log.records] != sorted(record[0] for record in log.records):
        wrong.append(f"{path.name}: the records are not in the order of time")
    check_trace(path, log, wrong)
    found = collections.Counter((log.accesses[record[1]][1], log.events[log.accesses[record[1]][3]][0])
                                for record in log.records if log.accesses[record[1]][1])
    counted = {(row["node"], metric): n for row in side["variables"] for metric, n in row["samples"]}
    for key in found:
        if key not in counted or found[key] > counted[key] + slack:
            wrong.append(f"{path.name}: {found[key]} records of variable and metric {key}, not {counted.get(key)}")
    if log.stride == 1 and not log.n_lost and sum(found.values()) + slack < sum(
            n for key, n in counted.items() if key[1] in {metric for metric, _ in log.events}):
        wrong.append(f"{path.name}: {dict(found)} instead of {counted}")
    wrong += [f"{path.name}: times of the thread are {side['start_ns']} to {side['end_ns']}, {time + log.wall} is not"
              for time, *_ in log.records[:1] + log.records[-1:]
              if not int(side["start_ns"]) - 10**6 <= time + log.wall or
              (side["state"] == "complete" and time + log.wall > int(side["end_ns"]) + 10**6)]
    sums.update(logs=1, samples=log.n_samples, records=len(log.records), thinned=n_thinned, lost=log.n_lost,
                offsets=sum(record[3] != NO_OFFSET for record in log.records), stride=log.stride)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+", type=pathlib.Path)
    parser.add_argument("--slack", type=int, default=0, help="a killed thread may lack so many samples in one of the files")
    arguments = parser.parse_args()
    wrong, sums = [], collections.Counter()
    for directory in arguments.directories:
        for path in sorted(directory.glob("*.events")):
            check_log(path, arguments.slack, wrong, sums)
    for sentence in wrong:
        print(sentence)
    if not wrong:
        print(", ".join(f"{n} {name}" for name, n in sums.items()))
    return 1 if wrong or not sums else 0


sys.exit(main())
