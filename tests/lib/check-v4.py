#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-v4.py [--time] DB: checks the version 4 form of a database against the rules that readers rely on, with nothing
but the standard library. --time: CPUTIME (sec) must have values. Prints every broken rule; status 1."""
import collections
import pathlib
import re
import struct
import sys

import v4

STATISTICS = {("$$", 0): ("sum", sum), ("$$", 1): ("min", min), ("$$", 2): ("max", max), ("1", 0): ("count", len),
              ("($$^2)", 0): ("squares", lambda values: sum(v * v for v in values))}
problems = []


def expect(condition, text):
    if not condition and len(problems) < 50:
        problems.append(text)


def check_frame(path):
    """Sections lie in the file without overlap, aligned; texts are whole texts of their section."""
    data = path.read_bytes()
    n = {"meta.db": 8, "profile.db": 2, "cct.db": 1, "trace.db": 1}[path.name]
    spans = sorted(struct.unpack_from("<QQ", data, 16 + 16 * i)[::-1] for i in range(n))
    for (offset, size), following in zip(spans, spans[1:] + [(len(data) - 8, 0)]):
        expect(offset % 8 == 0 and offset + size <= following[0], f"{path.name}: section at {offset} overlaps")
    expect(len(data) % 8 == 0, f"{path.name}: {len(data)} bytes are not a multiple of 8")
    if path.name == "meta.db":
        size, offset = struct.unpack_from("<QQ", data, 16 + 16 * 4)
        texts = set(data[offset:offset + size].split(b"\0"))
        meta = v4.read(path)
        used = [f[0] for f in meta["functions"]] + [p[1] for p in meta["modules"] + meta["files"]] + \
            [e[2] for e in meta["entries"]]
        expect(all(u is not None and u.encode() in texts for u in used), "a text is not in the section of texts")


def check_meta(meta, yaml, time):
    texts = [meta["title"], meta["description"], *meta["kinds"], *(m["name"] for m in meta["metrics"])]
    expect(all(t.isascii() for t in texts), f"titles and names of metrics are not ASCII: {texts}")
    expect([s[0] for s in meta["scopes"]] == ["function", "execution"], f"scopes {meta['scopes']}")
    ids = [i for m in meta["metrics"] for _, i in m["instances"]]
    statistics = [s[3] for m in meta["metrics"] for s in m["summaries"]]
    expect(len(statistics) == len(set(statistics)), "two statistics have the same id")
    expect(ids == sorted(set(ids)), f"ids of metrics {ids}")
    expect(not time or "CPUTIME (sec)" in [m["name"] for m in meta["metrics"]], "there is no CPUTIME (sec)")
    for i, metric in enumerate(meta["metrics"]):
        name = re.escape(metric["name"].replace("\\", "\\\\").replace('"', '\\"'))
        expect(len(re.findall(f'(?m)^  - name: "{name}"$', yaml)) == 1, f"default.yaml has no root {metric['name']}")
        for kind, scope in (("inclusive", "execution"), ("exclusive", "function")):
            expect(re.search(rf"(?m)^ +{kind}:\n +standard: \*m{i}-sum-{scope}$", yaml), f"{metric['name']}: no {kind}")
            for (formula, combine), (statistic, _) in STATISTICS.items():
                quoted = re.escape("'1'" if formula == "1" else formula)
                expect(re.search(rf'(?m)^  - &m{i}-{statistic}-{scope}\n    metric: "{name}"\n    scope: {scope}\n'
                                 rf"    formula: {quoted}\n    combine: {('sum', 'min', 'max')[combine]}$", yaml),
                       f"{metric['name']}: no input {statistic} in {scope}")
    used, named = (set(re.findall(rf"{sign}(m\d+-[\w-]+)", yaml)) for sign in ("\\*", "&"))
    expect(used == named, f"default.yaml: inputs {used ^ named} are used or named only")


def check_sources(meta, directory):
    """What is copied is there, and nothing else."""
    copies = {path for flags, path in meta["files"] if flags & 1}
    found = {str(p.relative_to(directory)) for p in (directory / "src").rglob("*") if not p.is_dir() or p.is_symlink()}
    expect(copies == found, f"files in src: {found}, in meta.db {copies}")
    expect(not any(flags & ~1 for flags, _ in meta["files"]), "flags of files")


def check_tree(meta, n_blocks):
    parents = {e[0]: None for e in meta["entries"]}
    expect(meta["entries"] and meta["entries"][0][1] == 1, "the first entry point is not that of the main thread")
    for identity, parent, flags, relation, lexical, _, function, file, _, _, _ in meta["contexts"]:
        expect(identity not in parents and parent in parents and 0 < identity < n_blocks, f"context {identity}")
        parents[identity] = parent
        is_function, is_line = (lexical, flags, bool(function)), (lexical, flags, bool(file))
        expect(is_function == (0, 1, True) if relation else is_line in ((1, 2, True), (2, 2, True)),
               f"context {identity}: flags {flags}, lexical {lexical}, relation {relation}")
    depth = {}
    for identity, parent in parents.items():
        depth[identity] = 1 + depth.get(parent, 0)
    expect(max(depth.values()) < 900, f"the tree is {max(depth.values())} deep")
    return parents


def check_profiles(meta, profiles, blocks):
    expect(profiles[0]["flags"] == 1 and not profiles[0]["ids"], "the first profile is not the summary")
    kinds = {tuple(meta["kinds"][i[0]] for i in p["ids"]) for p in profiles[1:]}
    expect(kinds == {("NODE", "RANK", "THREAD")}, f"identifiers are {kinds}")
    names = [tuple(i[2] for i in p["ids"]) for p in profiles[1:]]
    expect(len(set(names)) == len(names), "two profiles have the same identifiers")
    by_profile = {(p, c, m): v for p, profile in enumerate(profiles) if p for c, m, v in profile["values"]}
    by_context = {(p, c, m): v for c, cells in enumerate(blocks) for p, m, v in cells}
    expect(by_profile == by_context, "profile.db and cct.db hold different values")
    expect(0 not in by_profile.values(), "zeros are written")
    columns = collections.defaultdict(list)
    for (_, c, m), value in by_profile.items():
        columns[c, m].append(value)
    summary = {(c, m): v for c, m, v in profiles[0]["values"]}
    wanted = {}
    for metric in meta["metrics"]:
        ids = dict(metric["instances"])
        expect([(s, *STATISTICS[f, k]) for s, f, k, _ in metric["summaries"]] ==
               [(s, *row) for s in ids for row in STATISTICS.values()], f"statistics of {metric['name']}")
        for scope, formula, combine, identity in metric["summaries"]:
            function = STATISTICS[formula, combine][1]
            wanted.update({(c, identity): function(values) for (c, m), values in columns.items() if m == ids[scope]})
    expect(summary.keys() == wanted.keys(), "the summary has other values than statistics of the profiles")
    for key in summary.keys() & wanted.keys():
        expect(abs(summary[key] - wanted[key]) <= 1e-9 * abs(wanted[key]), f"{key} is {summary[key]}, not {wanted[key]}")
    return {key: sum(values) for key, values in columns.items()}


def check_sums(meta, parents, whole):
    """Inclusive values add up over children, exclusive ones over the loops and lines within a function, which say so."""
    spreads = {row[0]: row[5] for row in meta["contexts"]}
    below, own = collections.defaultdict(float), collections.defaultdict(float)
    for (c, m), value in whole.items():
        if m % 2 and parents.get(c) is not None:
            below[parents[c], m] += value
        elif m % 2 == 0 and spreads.get(c):
            own[parents[c], m] += value
    inner = set(parents.values())
    for (c, m), value in whole.items():
        if c == 0 or c not in parents:
            continue
        wanted = below[c, m] if m % 2 else own[c, m]
        close = abs(value - wanted) <= 1e-9 * abs(value)
        expect(c not in inner or close, f"context {c} metric {m}: {value}, not {wanted}")
        expect(c in inner or m % 2 or value == whole.get((c, m + 1)), f"context {c}: a leaf with more than its own")
    main = meta["entries"][0][0]
    for m in {m for _, m in whole}:
        expect(whole.get((0, m)) == whole.get((main, m)), f"metric {m}: the whole is not the main thread's")


def check_traces(traces, parents, n_profiles):
    numbers = [row["profile"] for row in traces["traces"]]
    expect(numbers == sorted(set(numbers)) and 0 not in numbers and max(numbers, default=0) < n_profiles,
           f"traces of profiles {numbers}")
    times = [time for row in traces["traces"] for time, _ in row["records"]]
    expect(times and (min(times), max(times)) == (traces["min_time_ns"], traces["max_time_ns"]), "times of all traces")
    for number, events in ((row["profile"], row["records"]) for row in traces["traces"]):
        expect(events and [t for t, _ in events] == sorted(t for t, _ in events), f"trace of profile {number}: order")
        expect(all(c == 0 or c in parents for _, c in events), f"trace of profile {number}: contexts")


def main():
    time, directory = "--time" in sys.argv, pathlib.Path(sys.argv[-1])
    for name in ("meta.db", "profile.db", "cct.db", "trace.db"):
        if name != "trace.db" or (directory / name).exists():
            check_frame(directory / name)
    meta = v4.read(directory / "meta.db")
    profiles = v4.read(directory / "profile.db")["profiles"]
    blocks = v4.read(directory / "cct.db")["contexts"]
    check_meta(meta, (directory / "metrics" / "default.yaml").read_text(encoding="ascii"), time)
    check_sources(meta, directory)
    parents = check_tree(meta, len(blocks))
    whole = check_profiles(meta, profiles, blocks)
    check_sums(meta, parents, whole)
    if (directory / "trace.db").exists():
        check_traces(v4.read(directory / "trace.db"), parents, len(profiles))
    expect(not time or (0, 1) in whole, "CPUTIME (sec) has no values")
    for text in problems:
        print(text)
    return 1 if problems else 0


sys.exit(main())
