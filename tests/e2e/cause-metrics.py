#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What waited for memory, was execution, or cannot be told, as metrics of a database: of each thread and context of the
data-centric tree the three are the event's value, elsewhere there are none; the shares of each variable are those of the
report; the numbers do not depend on the number of threads that made the database; and hpcquery, hpcproftt and the XML
form have them too."""
import csv
import io
import os
import pathlib
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import kernels  # noqa: E402
import v4  # noqa: E402

WHOLE = "CPUTIME (sec)"  # what readers take for time: EADDR (usec) once more
PARTS = [f"EADDR {word} (usec)" for word in ("memory", "execution", "unverified")]
EXECUTION_SCOPE = 1  # inclusive values
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def close(a, b, scale):
    return abs(a - b) <= 1e-9 * scale


def metric_ids(meta):
    """{name: (id of exclusive, id of inclusive values)}"""
    return {metric["name"]: tuple(identity for _, identity in metric["instances"][1:]) for metric in meta["metrics"]}


def data_contexts(meta):
    """Numbers of the contexts below the data-centric root, itself among them."""
    root = next(identity for identity, _, name in meta["entries"] if name == "<datacentric>")
    inside = {root}
    for context in meta["contexts"]:
        if context[1] in inside:
            inside.add(context[0])
    return root, inside


def check_profiles(meta, profiles, ids):
    """Each thread's values, inclusive and exclusive, add up to the event's."""
    root, inside = data_contexts(meta)
    for number, profile in enumerate(profiles[1:], 1):
        values = {(c, m): v for c, m, v in profile["values"]}
        whole = values.get((root, ids[WHOLE][1]), 0) * 1e6
        expect(whole > 0, f"thread {number} has no time in the data-centric tree")
        for k, kind in enumerate(("exclusive", "inclusive")):
            for context in {c for c, _ in values}:
                parts = sum(values.get((context, ids[name][k]), 0) for name in PARTS)
                wanted = values.get((context, ids[WHOLE][k]), 0) * 1e6 if context in inside else 0
                expect(close(parts, wanted, whole), f"thread {number}, context {context}: {kind} {parts}, not {wanted}")
    return root


def check_summary(profiles, ids, root):
    """The summary is the sum over the threads."""
    sums = {(c, m): v for c, m, v in profiles[0]["values"]}
    for name in PARTS:
        own = [v for profile in profiles[1:] for c, m, v in profile["values"] if (c, m) == (root, ids[name][1])]
        found = sums.get((root, ids[name][1]), 0)
        expect(close(found, sum(own), found + 1), f"{name}: {found}, not {sum(own)}")


def query(database, *options):
    """{(name, class, site): row}"""
    text = kernels.run([kernels.BUILD / "hpcquery", "vars", "--csv", "--top", "0", *options, database])
    return {(row["variable"], row["class"], row["alloc_site"]): row for row in csv.DictReader(io.StringIO(text))}


def check_report(database):
    """Columns of the report's table, and a table for each of the metrics."""
    rows = {key: row for key, row in query(database).items() if key[1] != "kernel"}
    total = sum(float(row["value"]) for row in rows.values())
    # Where a sample is dear, some stand for several periods: rows then count samples, and parts divide values by the mean.
    mean = total / sum(float(row["samples"]) for row in rows.values())
    is_even = all(abs(float(row["value"]) - mean * float(row["samples"])) < 0.01 * mean * float(row["samples"])
                  for row in rows.values() if float(row["samples"]) >= 1)
    slack = 0.1 if is_even else 2
    for name, column in zip(PARTS, ("memory_share", "execution_share", "unverified_share")):
        parts = query(database, "--metric", name)
        # A row of what waits is named by most of its samples, which may be other ones of a part than of all.
        expect(all(key in rows or key[1] == "waiting" for key in parts), f"{name}: rows {parts.keys() - rows.keys()}")
        for key, row in rows.items():
            if key[1] in ("dropped", "waiting") or not row[column]:  # in no context, or too little of it is verified
                continue
            part = parts.get(key, {"value": 0, "samples": 0})
            share = 100 * float(part["value"]) / total
            touched = float(row["first_touch_share"])  # which the metrics know nothing of
            expect(-slack < share - float(row[column]) < touched + slack, f"{key[0]}: {name} is {share:.2f} %, not {row[column]}")
            wanted = float(part["value"]) / mean
            expect(abs(float(part["samples"]) - wanted) < 1 + 0.01 * wanted, f"{key[0]}: {part['samples']} samples of {name}")


def check_same(one, other):
    for path in sorted(one.glob("*.db")):
        expect(path.read_bytes() == (other / path.name).read_bytes(), f"{path.name} depends on the number of threads")


def check_xml(directory, profiles, ids, root):
    document = ElementTree.parse(directory / "experiment.xml").getroot()
    names = {p.get("i"): p.get("n") for p in document.iter("Procedure")}
    node = next(f for f in document.iter("PF") if names[f.get("n")] == "<datacentric>")
    sums = {(c, m): v for c, m, v in profiles[0]["values"]}
    for name in PARTS:
        column = next(m.get("i") for m in document.iter("Metric") if m.get("n") == f"{name}:Sum (I)")
        found = sum(float(m.get("v")) for m in node.findall("M") if m.get("n") == column)
        wanted = sums.get((root, ids[name][1]), 0)
        expect(close(found, wanted, max(wanted, 1) * 1e3), f"XML: {name} is {found}, not {wanted}")


def main():
    kernels.check_needs()
    program = kernels.AS_BUILT / "causes"
    with tempfile.TemporaryDirectory(prefix="locus-cause-metrics.") as scratch:
        scratch = pathlib.Path(scratch)
        rows, _ = kernels.profile([program, "four_sums_threads", 1], scratch, is_delayed=False)
        if rows is None:
            kernels.skip("the loop does not run on this processor")
        database, other, xml = scratch / "database", scratch / "other", scratch / "xml"
        kernels.run([kernels.BUILD / "hpcprof", "-q", "-j", 3, "-o", other, "--xml", xml, scratch / "measurements"])
        meta, profiles = v4.read(database / "meta.db"), v4.read(database / "profile.db")["profiles"]
        ids = metric_ids(meta)
        missing = [name for name in (WHOLE, *PARTS) if name not in ids]
        if missing:
            print(f"FAIL: the database has no {', '.join(missing)}")
            sys.exit(1)
        root = check_profiles(meta, profiles, ids)
        check_summary(profiles, ids, root)
        check_report(database)
        check_same(database, other)
        check_xml(xml, profiles, ids, root)
        shown = kernels.run([kernels.BUILD / "hpcproftt", database / "meta.db"])
        expect(all(name in shown for name in PARTS), "hpcproftt does not show the metrics")
        print(f"{len(profiles) - 1} threads, {len(meta['contexts'])} contexts, "
              f"{sum(len(p['values']) for p in profiles)} values")
    for sentence in failures[:20]:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
