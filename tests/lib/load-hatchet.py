#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""load-hatchet.py DB...: loads databases with Hatchet, tries its operations on each, and prints what it found as one line
of JSON for each, or {"unread": REASON} where its version has no reader for the form. Run by the interpreter that can import hatchet.
--probe: only says whether it can."""
import json
import pathlib
import re
import sys


def problem_of(condition, sentence):
    return [] if condition else [sentence]


def label(row):
    """Functions by name, loops by file and line; what else there is has no label."""
    if row["type"] in ("loop", "L"):
        return re.sub(r"^Loop@(?:.*/)?", "loop@", row["name"])
    if row["type"] in ("function", "PF", "Pr"):
        return re.sub(r"^\d+:", "", row["name"])  # the line of the call, in the XML form
    return None


def walk(roots, rows):
    """(path of labels, whether its last one is the node's, row) of every node, parents first."""
    stack = [(root, ()) for root in reversed(roots)]
    while stack:
        node, path = stack.pop()
        name = label(rows[node])
        path += (name,) if name is not None else ()
        yield path, name is not None, rows[node]
        stack += [(child, path) for child in reversed(node.children)]


def look(gf):
    problems = []
    names = gf.dataframe.index.names
    whole = gf.dataframe[gf.exc_metrics + gf.inc_metrics].groupby(level="node").sum()
    texts = gf.dataframe[["name", "type"]].groupby(level="node").first()
    sums = {node: {**whole.loc[node].to_dict(), **texts.loc[node].to_dict(), "is_statement": not node.children}
            for node in texts.index}
    paths = {}
    for path, is_labelled, row in walk(gf.graph.roots, sums):
        values = paths.setdefault(path, [0, 0])
        values[0] += row["time (inc)"] if is_labelled else 0
        values[1] += row["time"] if row["is_statement"] else 0
    problems += problem_of(gf.default_metric == "time", f"the default metric is {gf.default_metric}")
    problems += problem_of({"rank", "thread"} >= set(names) - {"node"} and "rank" in names, f"index {names}")
    for text in (gf.tree(expand_name=True), gf.tree(metric_column="time (inc)", expand_name=True)):  # else of 39 letters
        problems += problem_of(all(root.frame.get("name") in text for root in gf.graph.roots), "tree() lacks a root")
    causes = {re.sub(r" \((?:inc|I)\)$", "", column): sum(float(sums[root][column]) for root in gf.graph.roots)
              for column in gf.inc_metrics if re.search(r" (memory|execution|unverified)\b", column)}
    gf.drop_index_levels()
    rows = gf.dataframe
    problems += problem_of(len(rows) == len(sums), f"{len(rows)} rows of {len(sums)} nodes after drop_index_levels")
    kept = gf.filter(lambda row: row["time (inc)"] > 0, squash=False, num_procs=1)
    wanted = int((rows["time (inc)"] > 0).sum())
    problems += problem_of(len(kept.dataframe) == wanted, f"filter keeps {len(kept.dataframe)} rows, not {wanted}")
    squashed = gf.filter(lambda row: row["time (inc)"] > 0, num_procs=1)
    lines = [line for line in squashed.tree().splitlines() if re.search(r"\d\.\d{3} ", line)]
    problems += problem_of(len(squashed.graph) == len(list(squashed.graph.traverse())) and
                           len(lines) >= len(squashed.graph.roots), "a squashed tree cannot be printed")
    name = max(rows.index, key=lambda node: rows.loc[node, "time (inc)"]).frame["name"]
    found = gf.filter([{"name": re.escape(name)}, "*"], squash=False, num_procs=1).dataframe
    below = set()
    for node in rows.index:
        if rows.loc[node, "name"] == name:
            below |= set(node.traverse())
    problems += problem_of(set(found.index) == below, f"query below {name}: {len(found)} nodes, not {len(below)}")
    return {"problems": problems, "n_nodes": len(sums), "n_rows": len(whole), "paths": [[*p] for p in paths.items()],
            "causes": causes,
            "roots": {root.frame["name"]: sums[root]["time (inc)"] for root in gf.graph.roots}}


def load(hatchet, directory):
    """What look finds. A version that looks for the older form's file, which is not there, does not know the newer one."""
    try:
        gf = hatchet.GraphFrame.from_hpctoolkit(directory)
    except FileNotFoundError as error:
        older = pathlib.Path(directory) / "experiment.xml"
        if pathlib.Path(error.filename) != older or not (older.parent / "meta.db").exists():
            raise
        return {"unread": f"Hatchet {hatchet.__version__} has no reader for databases of version 4"}
    return look(gf)


def main():
    try:
        import hatchet  # pylint: disable=import-outside-toplevel
    except ImportError as reason:
        print(f"{sys.executable} cannot import hatchet: {reason}")
        return 77
    for directory in sys.argv[1:]:
        if directory != "--probe":
            print(json.dumps(load(hatchet, directory)), flush=True)
    return 0


sys.exit(main())
