#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hatchet-ops.py MODULE NODES [PROFILES-DATABASE]: what operations on frames cost, in seconds of CPU time, a line each: name, tab, seconds.
MODULE is locus or hatchet: both are asked by the same statements, of the same literal of NODES nodes, and of a database of HPCToolkit
where one is given. Every operation ends with the values of what it makes, so that nothing is put off; the best of some runs counts."""
import gc
import io
import contextlib
import importlib
import random
import sys
import time
import warnings

import numpy

warnings.simplefilter("ignore")
with contextlib.redirect_stdout(io.StringIO()):  # Hatchet speaks of notebooks
    ht = importlib.import_module(sys.argv[1])
OURS = ht.__name__ == "locus"


def literal_of(n, seed=1, has_modules=False):
    """A call tree of n nodes: 2000 functions, up to 40 deep. has_modules: with a text beside the numbers, which Hatchet can group by, and
    which some of its operations do not take."""
    rng, path, roots = random.Random(seed), [], []
    for i in range(n):
        depth = min(rng.randrange(len(path) + 1), 39) if i else 0
        depth = max(depth, 1) if i else 0
        node = {"frame": {"name": f"function_{rng.randrange(2000)}", "type": "function"},
                "metrics": {"time (inc)": 0.0, "time": float(rng.randrange(1, 100))}, "children": []}
        if has_modules:
            node["metrics"]["module"] = f"lib{rng.randrange(40)}.so"
        del path[depth:]
        (path[-1]["children"] if path else roots).append(node)
        path.append(node)

    def add_up(node):
        node["metrics"]["time (inc)"] = node["metrics"]["time"] + sum(add_up(child) for child in node["children"])
        if not node["children"]:
            del node["children"]
        return node["metrics"]["time (inc)"]
    for root in roots:
        add_up(root)
    return roots


def inclusive_alone(nodes):
    """The same literal without what its nodes cost themselves, which can be found."""
    made = []
    for node in nodes:
        node = {**node, "metrics": {"time (inc)": node["metrics"]["time (inc)"]}}
        if "children" in node:
            node["children"] = inclusive_alone(node["children"])
        made.append(node)
    return made


def looked_at(made):
    """The values of a frame, computed."""
    if OURS and isinstance(made, ht.Frame):
        for name in made.columns:
            made.values(name)
    return made


def timed(name, run, fresh=lambda: (), look=looked_at):
    """Prints how long a run takes on what fresh makes, which is not counted, and to look at what comes of it."""
    best, spent, n = float("inf"), 0.0, 0
    while n < 2 or (spent < 0.3 and n < 200):
        given = fresh()
        gc.collect() if n == 0 else None
        begin = time.process_time()
        look(run(*given))
        took = time.process_time() - begin
        best, spent, n = min(best, took), spent + took, n + 1
        if took > 20:
            break
    print(f"{name}\t{best:.9f}", flush=True)


def attempt(name, run, fresh=lambda: (), look=looked_at):
    try:
        timed(name, run, fresh, look)
    except Exception as error:  # pylint: disable=broad-except
        print(f"{sys.argv[1]}: {name}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)


def main():
    sys.setrecursionlimit(10000)
    tree = literal_of(int(sys.argv[2]))
    attempt("from_literal", lambda: ht.GraphFrame.from_literal(tree))
    made, other = looked_at(ht.GraphFrame.from_literal(tree)), literal_of(int(sys.argv[2]), 2)

    def one():
        return (looked_at(made.deepcopy()),)

    def two():
        return one() + one()
    attempt("from_literal, dataframe", lambda: ht.GraphFrame.from_literal(tree).dataframe["time"].sum())
    attempt("from_literal, traverse", lambda: sum(len(node.frame["name"]) for node in ht.GraphFrame.from_literal(tree).graph.traverse()))
    for how in ("copy", "deepcopy"):  # the values of a copy are those that have been looked at
        attempt(how, lambda gf, how=how: getattr(gf, how)(), one, lambda made: made)
    attempt("dataframe", lambda gf: (gf.dataframe, gf.dataframe["time"].sum()), one)
    attempt("traverse", lambda gf: sum(len(node.frame["name"]) for node in gf.graph.traverse()), one)
    attempt("graph ==", lambda a, b: a.graph == b.graph, two)
    attempt("tree", lambda gf: gf.tree(), one)
    attempt("to_dot", lambda gf: gf.to_dot(), one)
    attempt("to_flamegraph", lambda gf: gf.to_flamegraph(), one)
    attempt("to_literal", lambda gf: gf.to_literal(), one)
    attempt("filter function", lambda gf: gf.filter(lambda row: row["time"] > 50, num_procs=1), one)
    attempt("filter, no squash", lambda gf: gf.filter(lambda row: row["time"] > 50, squash=False, num_procs=1), one)
    attempt("squash", lambda gf: gf.squash(), lambda: (one()[0].filter(lambda row: row["time"] > 50, squash=False, num_procs=1),))
    attempt("filter query", lambda gf: gf.filter([{"name": "function_.*[02468]"}, "*"]), one)
    attempt("query text", lambda gf: gf.filter('MATCH (".", p)->("*") WHERE p."time" > 50'), one)
    attempt("query function", lambda gf: gf.filter(
        [(".", lambda row: row["time"] > 50), "*"] if OURS else ht.QueryMatcher().match(".", lambda row: row["time"] > 50).rel("*")), one)
    with_modules = literal_of(int(sys.argv[2]), has_modules=True)
    for how in (numpy.sum, numpy.max):
        attempt(f"groupby_aggregate {how.__name__}", lambda gf, how=how: gf.groupby_aggregate(["module"], {"time": how, "time (inc)": how}),
                lambda: (looked_at(ht.GraphFrame.from_literal(with_modules)),))
    attempt("unify", lambda a, b: a.unify(b), two)
    attempt("add", lambda a, b: a + b, two)
    attempt("add, of another shape", lambda a, b: a + b, lambda: (one()[0], looked_at(ht.GraphFrame.from_literal(other))))
    attempt("sub", lambda a, b: a - b, two)
    attempt("mul", lambda a, b: a * b, two)
    attempt("div", lambda a, b: a / b, two)
    attempt("update_inclusive_columns", lambda gf: gf.update_inclusive_columns(), one)
    attempt("generate_exclusive_columns, all there", lambda gf: gf.generate_exclusive_columns(["time (inc)"]), one)
    bare = inclusive_alone(tree)
    attempt("generate_exclusive_columns", lambda gf: gf.generate_exclusive_columns(), lambda: (ht.GraphFrame.from_literal(bare),))
    attempt("subtree_sum", lambda gf: gf.subtree_sum(["time"], ["below"]), one)
    attempt("subtree_sum max", lambda gf: gf.subtree_sum(["time"], ["below"], function=numpy.max), one)
    attempt("show_metric_columns", lambda gf: gf.show_metric_columns(), one)
    attempt("drop_index_levels", lambda gf: gf.drop_index_levels(), one)
    if len(sys.argv) > 3:
        database(sys.argv[3])


def database(path):
    opened = getattr(ht.GraphFrame, "from_hpctoolkit_latest", ht.GraphFrame.from_hpctoolkit)
    attempt("database: open", lambda: opened(path))
    made = opened(path)

    def one():
        return (looked_at(made.deepcopy()),)
    attempt("database: to_pandas, dataframe", lambda gf: gf.to_pandas(by_profile=True) if OURS else gf.dataframe.reset_index(), one)
    attempt("database: drop_index_levels", lambda gf: gf.drop_index_levels(numpy.mean), one)
    attempt("database: drop_index_levels max", lambda gf: gf.drop_index_levels(numpy.max), one)


if __name__ == "__main__":
    main()
