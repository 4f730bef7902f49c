#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares a measurement of a replay, and the report of its database, with what tests/golden/make-replay.py says that
they must hold. usage: check-replay.py MEASUREMENT EXPECTED VARS_CSV HPCPROFTT"""
import csv
import json
import pathlib
import subprocess
import sys

CLASSES = {"unknown": "?", "none": "-"}
SIZES = {100000: "heap_one", 3000000: "heap_two", 1 << 20: "mapped"}
REPORT_NAMES = {"?": "<no block>", "-": "<compute>"}


def variable_name(row):
    if row["kind"] in CLASSES:
        return CLASSES[row["kind"]]
    return row["name"] or SIZES.get(row["bytes"], "another")


def found_variables(objects, metrics):
    """Name of each variable with its samples, its cycles and its counts by metric."""
    found = {}
    for row in objects["variables"]:
        samples = {metrics[number]: count for number, count in row["samples"]}
        n_samples = samples.pop(objects["events"][0]["metric"], 0)
        if not n_samples:
            continue
        name = variable_name(row)
        latency = sum(cycles for _, _, cycles, *_ in row["latencies"])
        found[name] = {"samples": n_samples, "latency": latency,
                       "metrics": {k: v for k, v in samples.items() if "(cycles)" not in k}}
    return found


def differences(what, expected, found):
    keys = set(expected) | set(found)
    return [f"{what}: {key}: {found.get(key)} instead of {expected.get(key)}" for key in sorted(keys)
            if expected.get(key) != found.get(key)]


def report_differences(path, event, expected):
    """The same counts in the report: samples of the event, and of each metric."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = {row["variable"]: row for row in csv.DictReader(file)}
    wrong = differences("report", {REPORT_NAMES.get(name, name): True for name in expected},
                        {name: True for name, row in rows.items() if int(row[f"samples:{event}"])})
    for name, variable in expected.items():
        row = rows.get(REPORT_NAMES.get(name, name), {})
        counts = {event: variable["samples"], **variable["metrics"]}
        wrong += differences(f"report: {name}", counts, {key: int(row.get(f"samples:{key}") or 0) for key in counts})
    return wrong


def main():
    measurement, expected_path, report, hpcproftt = sys.argv[1:]
    expected = json.loads(pathlib.Path(expected_path).read_text(encoding="utf-8"))
    profiles = list(pathlib.Path(measurement).glob("*.hpcrun"))
    assert len(profiles) == 1, profiles
    profile = json.loads(subprocess.run([hpcproftt, "--json", profiles[0]], check=True, capture_output=True).stdout)
    metrics = [metric["name"] for metric in profile["epochs"][0]["metrics"]]
    objects = json.loads(profiles[0].with_suffix(".objects").read_text(encoding="utf-8"))
    event = objects["events"][0]
    fates = dict(event["fates"], taken=event["taken"])
    wrong = differences("fates", expected["fates"], fates)
    found = found_variables(objects, metrics)
    wrong += differences("variables", expected["variables"], found)
    for name in ("n_throttles", "n_no_metric"):
        wrong += differences("counters", {name: expected[name]}, {name: event[name]})
    wrong += report_differences(report, event["metric"], expected["variables"])
    for sentence in wrong:
        print(sentence)
    if not wrong:
        print(f"{event['taken']} samples, {len(found)} variables, {len(metrics)} metrics")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
