#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-database.py [--time] DB: checks a database in the XML form against the rules that readers rely on, with nothing
but the standard library. --time: there must be a CPUTIME pair with values. Prints every broken rule; status 1."""
import glob
import os
import re
import statistics
import struct
import sys
import xml.etree.ElementTree as ET

NAME = re.compile(r"-(\d+)-(\d+)-(\w+)-(\d+)-\d\.metric-db$")
SUMMARY = re.compile(r"^(.*?)(:Sum|:Mean|:StdDev|:CoefVar|:Min|:Max|\.\[\d+,\d+\])( \([IE]\))$")
NEEDED = {"PF": "inlf", "Pr": "inlf", "L": "ilf", "S": "il", "C": "il"}
HEADER = 32
problems = []


def wrong(text):
    if len(problems) < 50:
        problems.append(text)


def close(a, b, scale):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b), scale, 1e-300)


def table(root, name, row):
    found = root.find(f".//{name}")
    if found is None:
        wrong(f"experiment.xml has no {name}")
        return {}
    rows = {r.get("i"): r.get("n") for r in found.iter(row)}
    if None in rows or None in rows.values():
        wrong(f"a {row} has no i or no n")
    if len(rows) != len(list(found.iter(row))):
        wrong(f"two {row} have the same i")
    return rows


class Tree:
    """Elements in document order, with what their attributes must refer to checked."""

    def __init__(self, root):
        self.files = table(root, "FileTable", "File")
        self.procedures = table(root, "ProcedureTable", "Procedure")
        self.modules = table(root, "LoadModuleTable", "LoadModule")
        self.metrics = [(int(m.get("i")), m.get("n")) for m in root.iter("MetricDB")]
        self.summaries = {m.get("i"): m.get("n") for m in root.iter("Metric")}
        self.nodes, self.parents, self.sums, self.traced = [], [], {}, {}
        self.traces = root.find(".//TraceDB")
        data = root.find(".//SecCallPathProfileData")
        if data is None:
            wrong("there is no SecCallPathProfileData")
            return
        for child in data:
            if child.tag not in ("PF", "M"):
                wrong(f"root element {child.tag}: only PF become roots")
        self.sums[1] = {m.get("n"): float(m.get("v")) for m in data.findall("M")}
        self.roots = [c for c in data if c.tag == "PF"]
        stack = [(c, None) for c in reversed(self.roots)]
        while stack:
            element, parent = stack.pop()
            self.add(element, parent)
            children = [c for c in element if c.tag != "M"]
            stack += [(c, element) for c in reversed(children)]

    def add(self, element, parent):
        needed = NEEDED.get(element.tag)
        if needed is None:
            wrong(f"element {element.tag} below a root")
            return
        for key in needed + ("" if element.tag not in ("PF", "Pr") else ""):
            if element.get(key) is None:
                wrong(f"{element.tag} i={element.get('i')} has no {key}")
        if element.tag in ("PF", "Pr"):
            for key, known in (("lm", self.modules), ("n", self.procedures), ("f", self.files)):
                if element.get(key) not in known:
                    wrong(f"{element.tag} i={element.get('i')}: {key}={element.get(key)} is in no table")
        int(element.get("l") or 0)
        number = int(element.get("i") or 0)
        if number != len(self.nodes) + 2:
            wrong(f"{element.tag} i={number} is number {len(self.nodes) + 2} in the document: ids are not dense")
        self.nodes.append(element)
        self.parents.append(0 if parent is None else int(parent.get("i")))
        if element.tag == "PF" and parent is not None and parent.tag != "C":
            wrong(f"PF i={number} lies in a {parent.tag}: readers put the line of that before its name")
        if element.get("it") is not None:
            self.traced[element.get("it")] = element.tag
        self.sums[number] = {m.get("n"): float(m.get("v")) for m in element.findall("M")}
        seen_other = False
        for child in element:
            if child.tag in ("C", "Pr", "PF", "L"):
                seen_other = True
            if child.tag == "S" and seen_other:
                wrong(f"statement i={child.get('i')} comes after a call: readers give it the callee's file")


def read_metric_file(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:18] != b"HPCPROF-metricdb__" or data[18:23] != b"00.10" or data[23:24] != b"b":
        wrong(f"{path}: wrong header")
        return 0, 0, []
    n_nodes, n_metrics = struct.unpack(">ii", data[24:32])
    if len(data) != HEADER + 8 * n_nodes * n_metrics:
        wrong(f"{path}: {len(data)} bytes for {n_nodes} nodes and {n_metrics} metrics")
        return n_nodes, n_metrics, []
    return n_nodes, n_metrics, struct.unpack(f">{n_nodes * n_metrics}d", data[HEADER:])


def check_rectangle(paths):
    grid = {}
    for path in paths:
        match = NAME.search(path)
        if not match:
            wrong(f"{path}: the name has another form than -RANK-THREAD-HOST-PID-G.metric-db")
            continue
        key = int(match.group(1)), int(match.group(2))
        if key in grid:
            wrong(f"{path}: rank {key[0]}, thread {key[1]} occurs twice")
        grid[key] = path
    ranks = {r for r, _ in grid}
    threads = {t for _, t in grid}
    zero = [p for p in paths if "-000-" in os.path.basename(p)]
    if len(zero) != len(ranks):
        wrong(f"{len(zero)} files match *-000-*, but there are {len(ranks)} ranks")
    if ranks != set(range(len(ranks))) or threads != set(range(len(threads))):
        wrong("ranks and threads are not numbered 0, 1, 2, ...")
    if len(grid) != len(ranks) * len(threads):
        wrong(f"{len(grid)} files for {len(ranks)} ranks of {len(threads)} threads: not a rectangle")
    if threads and max(threads) >= 500:
        wrong("thread numbers from 500 on are taken for GPU streams")


def check_metrics(metrics, n_metrics, need_time):
    if [i for i, _ in metrics] != list(range(len(metrics))):
        wrong("MetricDB ids are not 0, 1, 2, ...")
    if len(metrics) != n_metrics:
        wrong(f"{len(metrics)} MetricDB rows, but {n_metrics} columns in the files")
    names = [n for _, n in metrics]
    if len(set(names)) != len(names):
        wrong("two metrics have the same name")
    for name in names:
        partner = name[:-3] + ("(E)" if name.endswith("(I)") else "(I)")
        if partner not in names:
            wrong(f"metric {name} has no partner {partner}")
    if need_time and not {"CPUTIME (usec) (E)", "CPUTIME (usec) (I)"} <= set(names) and \
            not {"CPUTIME (sec) (E)", "CPUTIME (sec) (I)"} <= set(names):
        wrong("there is no CPUTIME pair")


def check_values(tree, path, n_metrics, values, totals):
    n = len(tree.nodes) + 1
    if len(values) != n * n_metrics:
        wrong(f"{path}: {len(values)} values, {n} nodes of {n_metrics} metrics are in experiment.xml")
        return
    names = [name for _, name in tree.metrics]
    for column, name in enumerate(names):
        cost = [values[row * n_metrics + column] for row in range(n)]
        scale = max(map(abs, cost), default=0)
        below = [0.0] * n
        for index, parent in enumerate(tree.parents):
            row, tag = index + 1, tree.nodes[index].tag
            if name.endswith("(I)"):
                below[parent - 1 if parent else 0] += cost[row]
            elif tag in ("S", "L") or (tag == "Pr" and tree.procedures.get(tree.nodes[index].get("n")) == ""):
                below[parent - 1] += cost[row]  # a part of the function, loop or place around it
        for index, node in enumerate(tree.nodes):
            row = index + 1
            if name.endswith("(I)") and node.tag != "S" and not close(cost[row], below[row], scale):
                wrong(f"{path}: {name} of {node.tag} i={row + 1} is {cost[row]}, its children have {below[row]}")
            if name.endswith("(E)") and node.tag in ("PF", "Pr", "L") and not close(cost[row], below[row], scale):
                wrong(f"{path}: {name} of {node.tag} i={row + 1} is {cost[row]}, its parts have {below[row]}")
            if name.endswith("(E)") and node.tag == "C" and cost[row] != 0:
                wrong(f"{path}: {name} of call site i={row + 1} is {cost[row]}")
        for row in range(n):
            totals[column][row] += cost[row]


def spread_of(values):
    mean, deviation = statistics.fmean(values), statistics.pstdev(values)
    return {":Sum": sum(values), ":Mean": mean, ":StdDev": deviation, ":CoefVar": deviation / mean if mean else 0,
            ":Min": min(values), ":Max": max(values)}


def check_summary(tree, n_metrics, matrices):
    """The metrics of experiment.xml are sums, statistics or the values of the metric files, as their names say."""
    columns = {name: i for i, (_, name) in enumerate(tree.metrics)}
    threads = {}
    for key in sorted(tree.summaries, key=int):
        match = SUMMARY.match(tree.summaries[key])
        column = columns.get(match and match.group(1) + match.group(3))
        if column is None:
            wrong(f"summary metric {tree.summaries[key]} is of no column")
            continue
        part = match.group(2)
        if part[0] == ".":  # [rank,thread]: in the order of the files, of which each process has as many here
            part = threads.setdefault(part, len(threads))
        for row in range(len(tree.nodes) + 1):
            values = [matrix[row * n_metrics + column] for matrix in matrices]
            wanted = spread_of(values)[part] if isinstance(part, str) else values[part]
            value = tree.sums.get(row + 1, {}).get(key, 0.0)
            if not close(value, wanted, max(map(abs, values)) * 1e-4):
                wrong(f"{tree.summaries[key]} of i={row + 1} is {value}, not {wanted}")
    if len(tree.summaries) not in (n_metrics, 6 * n_metrics, len(matrices) * n_metrics):
        wrong(f"{len(tree.summaries)} summary metrics for {n_metrics} columns")


def check_roots(tree, totals):
    by_root = {}
    for column, (_, name) in enumerate(tree.metrics):
        own = [totals[column][i + 1] for i, node in enumerate(tree.nodes) if node.tag == "S"]
        roots = [totals[column][i + 1] for i, parent in enumerate(tree.parents) if parent == 0]
        by_root[name] = sum(roots) if name.endswith("(I)") else sum(own)
    for name, value in by_root.items():
        if name.endswith("(I)") and not close(value, by_root.get(name[:-3] + "(E)", value), value):
            wrong(f"{name} of all roots is {value}, exclusive {by_root[name[:-3] + '(E)']}")


def check_traces(tree, paths):
    """Events are in order and name statements; experiment.xml knows the first and the last time."""
    times, used = [], set()
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        if data[:32] != b"HPCRUN-trace______01.01b" + bytes(8) or (len(data) - 32) % 12:
            wrong(f"{path}: not the header of a trace, or part of a record")
        events = list(struct.iter_unpack(">QI", data[32:32 + (len(data) - 32) // 12 * 12]))
        if not events or events != sorted(events, key=lambda event: event[0]):
            wrong(f"{path}: {len(events)} events out of order")
        times += [time for time, _ in events]
        used |= {str(node) for _, node in events if node}
        if not glob.glob(os.path.join(os.path.dirname(path), "1." + os.path.basename(path)[:-8] + "metric-db")):
            wrong(f"{path}: there is no metric-db file of this thread")
    if used != tree.traced.keys() or set(tree.traced.values()) - {"S"}:
        wrong(f"traces name {sorted(used ^ tree.traced.keys())[:5]}, elements with 'it' are {set(tree.traced.values())}")
    if (tree.traces is not None) != bool(times):
        wrong("experiment.xml says that there are traces, or there are some of which it says nothing")
    elif times and (int(tree.traces.get("db-min-time")), int(tree.traces.get("db-max-time"))) != (min(times), max(times)):
        wrong(f"the times of traces are {min(times)} to {max(times)}")


def main():
    need_time = "--time" in sys.argv
    directory = sys.argv[-1]
    tree = Tree(ET.parse(os.path.join(directory, "experiment.xml")).getroot())
    paths = sorted(glob.glob(os.path.join(directory, "*.metric-db")))
    if not paths:
        wrong("there is no metric-db file")
    check_rectangle(paths)
    totals, width, matrices = None, 0, []
    for path in paths:
        n_nodes, n_metrics, values = read_metric_file(path)
        if totals is None:
            width = n_metrics
            check_metrics(tree.metrics, n_metrics, need_time)
            totals = [[0.0] * n_nodes for _ in range(n_metrics)]
        if n_nodes != len(tree.nodes) + 1 or n_metrics != width:
            wrong(f"{path}: {n_nodes} nodes of {n_metrics} metrics, experiment.xml has {len(tree.nodes) + 1}")
            continue
        check_values(tree, path, n_metrics, values, totals)
        matrices.append(values)
    if matrices and totals is not None:
        check_summary(tree, width, matrices)
        check_roots(tree, totals)
    check_traces(tree, sorted(glob.glob(os.path.join(directory, "*.hpctrace"))))
    for problem in problems:
        print(f"{directory}: {problem}")
    sys.exit(1 if problems else 0)


main()
