#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fields by access path: random measurements of static variables, whose instructions touch known offsets in them, some of them at
the end of several call paths. What the database counts, what frames show below each field, and types by thread, region and function,
against sums that are made here from the same samples. Without debug information a field is an offset."""
import collections
import csv
import io
import json
import math
import os
import pathlib
import random
import re
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

METRICS = [("EADDR (usec)", m.INT, 1000), ("FAULTS", m.INT, 1), ("OTHER", m.INT, 1)]
N_EVENTS = 2  # OTHER is of no event
COUNTERS = ("enabled_ns", "running_ns", "n_throttles", "n_no_metric", "n_truncated", "n_collisions", "has_data_source")
APP = "/nowhere/app"
START = [(APP, 0x1010)]
N_SEEDS = 20


class Case:
    """samples[thread]: {(variable, path, metric): raw value}; offsets[thread]: {(variable, instruction, event): {offset: samples}}.
    A path ends with its instruction."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.n_threads = rng.randint(1, 3)
        self.samples = [collections.Counter() for _ in range(self.n_threads)]
        self.offsets = [collections.defaultdict(collections.Counter) for _ in range(self.n_threads)]
        for v in range(rng.randint(1, 5)):
            instructions = [0x10000 * (v + 1) + 0x100 * i for i in range(rng.randint(1, 6))]
            for instruction in instructions:
                paths = [tuple(START + [(APP, 0x2000 + 0x10 * rng.randint(0, 3)) for _ in range(rng.randint(0, 2))] + [(APP, instruction)])
                         for _ in range(rng.choice((1, 1, 1, 2, 3)))]
                for thread in range(self.n_threads):
                    self.touch(rng, thread, f"v{v}", paths, instruction)

    def touch(self, rng, thread, variable, paths, instruction):
        for metric in range(len(METRICS)):
            for path in paths if rng.random() < 0.7 else []:
                self.samples[thread][variable, path, metric] += rng.randint(1, 50)
            if metric < N_EVENTS and rng.random() < 0.8:
                for _ in range(rng.randint(1, 4)):
                    self.offsets[thread][variable, instruction, metric][8 * rng.randint(0, 5)] += rng.randint(1, 30)

    def write(self, directory):
        for thread in range(self.n_threads):
            profile = m.Profile("app", METRICS, thread=thread)
            profile.side_version = 2
            profile.events = [{"metric": name, "name": name, "scale": period, "taken": 10**6, "overflows": 0, "fates": {"named": 10**6},
                               **{key: 0 for key in COUNTERS}}
                              for name, _, period in METRICS[:N_EVENTS]]
            for (name, path, metric), value in self.samples[thread].items():
                profile.sample(list(path), {metric: value}, m.by_address("DATACENTRIC_Static", APP, self.address(name), "static", name, 4096))
            path = profile.write(directory).with_suffix(".objects")
            side = json.loads(path.read_text(encoding="utf-8"))
            side.update({"version": 4, "min_bytes": 0, "sample_bytes": 0, "mark_ns": 0})
            for row in side["variables"]:
                row.update({"n_blocks_marked": 0, "bytes_marked": 0, "accesses": [
                    [metric, profile.module(APP), instruction, sum(offsets.values()), [x for o in sorted(offsets.items()) for x in o]]
                    for (name, instruction, metric), offsets in self.offsets[thread].items() if name == row["name"]]})
            path.write_text(json.dumps(side), encoding="utf-8")

    @staticmethod
    def address(name):
        return 0x4000000 + 0x100000 * int(name[1:])

    def sums(self):
        """Over all threads: values by (variable, path, metric), offsets by (variable, instruction, event)."""
        values, offsets = collections.Counter(), collections.defaultdict(collections.Counter)
        for thread in range(self.n_threads):
            values.update(self.samples[thread])
            seen = {name for name, _, _ in self.samples[thread]}  # a side file has rows of variables with samples alone
            for key, counts in self.offsets[thread].items():
                if key[0] in seen:
                    offsets[key].update(counts)
        return values, offsets


def shares(offsets, variable, instruction, metric):
    """The fractions of a metric's values that fall on the fields there: as its own event's samples, else as the first one's; None where
    nothing is known."""
    known = [e for e in range(N_EVENTS) if sum(offsets.get((variable, instruction, e), {}).values())]
    if not known:
        return {None: 1}
    counts = offsets[variable, instruction, metric if metric in known else known[0]]
    return {offset: n / sum(counts.values()) for offset, n in counts.items() if n}


def wanted_values(case):
    """{(variable, offset, instruction, metric): value}"""
    values, offsets = case.sums()
    wanted = collections.Counter()
    for (variable, path, metric), value in values.items():
        for offset, share in shares(offsets, variable, path[-1][1], metric).items():
            wanted[variable, offset, path[-1][1], metric] += value * METRICS[metric][2] * share
    return wanted


def is_near(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def compare(what, found, wanted):
    wrong = [(key, found.get(key, 0), wanted.get(key, 0)) for key in sorted(found.keys() | wanted.keys(), key=str)
             if not is_near(found.get(key, 0), wanted.get(key, 0))]
    expect(not wrong, f"{what}: {len(wrong)} of {len(wanted)} differ (key, found, wanted): {wrong[:4]}")


def offset_of(name):
    found = re.fullmatch(r"<offset \+(\d+)>", name)
    return int(found.group(1)) if found else None


def check_database(seed, case, database):
    """The counts of each scope are those of its instruction: {(variable, event, offset): samples}, for each path to it."""
    data = json.loads(run("hpcquery", "export", "json", database).stdout)
    values, offsets = case.sums()
    texts, variables = data["strings"], data["variables"]
    found, paths = collections.Counter(), collections.defaultdict(set)
    for variable, scope, field, samples in data["field_counts"]:
        of = variables[variable]["fields"][field]
        found[texts[variables[variable]["name"]], scope, of[0], offset_of(texts[of[2]])] += samples
    for variable, path, _ in values:
        paths[variable, path[-1][1]].add(path)
    wanted = collections.Counter()
    for (variable, instruction, event), counts in offsets.items():
        for offset, n in counts.items():
            if paths[variable, instruction]:
                wanted[variable, event, offset, n] += len(paths[variable, instruction])
    again = collections.Counter((variable, event, offset, n) for (variable, _, event, offset), n in found.items())
    expect(again == wanted, f"seed {seed}: counts of fields: {again - wanted} too many, {wanted - again} missing")
    return data


def listed(*arguments):
    """Nodes of a frame: (attributes, {column: value}, parent, kind, name)."""
    nodes = {}
    for line in run("tests/golden/list-frame", *arguments).stdout.splitlines():
        head = re.match(r"(\d+) +(\w+) '(.*?)'", line)
        if not head:
            continue
        number, kind, name = head.groups()
        before, *values = line.split(" | ")
        parent = re.search(r" \^(\d+)", before)
        field, variable = (re.search(rf" {key}=((?:<offset \+\d+>|[^ ])+)", before) for key in ("field", "variable"))
        nodes[int(number)] = (field and field.group(1), variable and variable.group(1),
                              {v.rsplit(" ", 1)[0]: float(v.rsplit(" ", 1)[1]) for v in values}, parent and int(parent.group(1)), kind, name)
    return nodes


def check_frame(seed, case, database):
    """Own values by variable, field and instruction; inclusive ones of the fields; all that they do not have stays with the variable."""
    nodes, plain = listed("--fields", database), listed(database)
    columns = {0: "time", 1: "FAULTS", 2: "OTHER"}
    found, of_field, wanted = collections.Counter(), collections.Counter(), wanted_values(case)
    for number, (field, variable, values, parent, kind, name) in nodes.items():
        if not variable:
            continue
        offset = offset_of(field) if field else None
        for metric, column in columns.items():
            scale = 1e6 if column == "time" else 1
            if values.get(column):
                at = number
                while not re.match(r"0x[0-9a-f]+ ", nodes[at][5]):
                    at = nodes[at][3]
                found[variable, offset, int(nodes[at][5].split()[0], 16), metric] += scale * values[column]
            if kind == "field" and values.get(column + " (inc)"):
                of_field[variable, offset, metric] += scale * values[column + " (inc)"]
    compare(f"seed {seed}: frame", found, wanted)
    sums = collections.Counter()
    for (variable, offset, _, metric), value in wanted.items():
        if offset is not None:
            sums[variable, offset, metric] += value
    compare(f"seed {seed}: fields", of_field, sums)
    for column in (c + s for c in columns.values() for s in ("", " (inc)", " (function)")):
        with_fields, without = (sum(n[2].get(column, 0) for n in frame.values() if n[4] == "variable" or n[5] == "<datacentric>")
                                for frame in (nodes, plain))
        expect(is_near(with_fields, without), f"seed {seed}: {column} of variables is {with_fields} with fields, {without} without")


def check_types(seed, case, database):
    """Types by thread and by function, with their fields, of each metric that has samples and an event."""
    values, offsets = case.sums()
    for metric in range(N_EVENTS):
        if not any(n for (_, _, of), n in values.items() if of == metric) or not any(event == metric for _, _, event in offsets):
            continue
        wanted = {"thread": collections.Counter(), "function": collections.Counter()}
        for thread, samples in enumerate(case.samples):
            for (variable, path, of), value in samples.items():
                counts = offsets.get((variable, path[-1][1], metric), {})
                for offset, n in counts.items() if of == metric else ():
                    part = value * METRICS[metric][2] * n / sum(counts.values())
                    wanted["thread"][offset, str(thread)] += part
                    wanted["function"][offset, f"0x{path[-1][1]:x} [app]"] += part
        for by, sums in wanted.items():
            what, options = f"seed {seed}: types --by {by}", ("types", "--by", by, "-M", METRICS[metric][0])
            rows = list(csv.DictReader(io.StringIO(run("hpcquery", *options, "--csv", database).stdout)))
            compare(what, {(offset_of(row["field"]), row[by]): float(row["value"]) for row in rows if row["field"]}, sums)
            data = json.loads(run("hpcquery", *options, "--json", database).stdout)
            compare(what + " as JSON", {(offset_of(field["field"]), cell[by]): cell["value"] for row in data["rows"]
                                        for field in row["fields"] for cell in field["cells"]}, sums)


def main():
    n_values = 0
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else N_SEEDS):
            case, folder = Case(seed), pathlib.Path(scratch) / str(seed)
            folder.mkdir()
            case.write(folder / "m")
            run("hpcprof", "-q", "-o", folder / "db", folder / "m")
            check_database(seed, case, folder / "db")
            check_frame(seed, case, folder / "db")
            check_types(seed, case, folder / "db")
            n_values += len(wanted_values(case))
    for failure in failures[:20]:
        print(f"FAIL: {failure}")
    print(f"{n_values} values of fields")
    return 1 if failures or n_values < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
