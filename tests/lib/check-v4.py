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

SCOPES = [["lex_aware", 0, 255], ["function", 3, 0], ["execution", 2, 255]]
LEXICAL, FUNCTION, EXECUTION = range(3)  # the id of a metric's scope, modulo their number
NOTES = ("FORMATS.md", "metrics/METRICS.yaml.ex", "metrics/default.yaml")
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
    expect(meta["scopes"] == SCOPES, f"scopes {meta['scopes']}")
    ids = [i for m in meta["metrics"] for _, i in m["instances"]]
    expect(ids == list(range(len(ids))), f"ids of metrics {ids}")
    for metric in meta["metrics"]:
        expect([scope for scope, _ in metric["instances"]] == [1, 2, 3], f"{metric['name']}: scopes")
        expect(metric["summaries"] == [[scope, "$$", 0, i] for scope, i in metric["instances"]],
               f"{metric['name']} is not summed up: {metric['summaries']}")
    expect(not time or "CPUTIME (sec)" in [m["name"] for m in meta["metrics"]], "there is no CPUTIME (sec)")
    check_yaml([m["name"] for m in meta["metrics"]], yaml)


def check_yaml(names, yaml):
    """What HPCToolkit's own databases say of each metric, and no more: its sum, inclusive, and exclusive for viewers that
    know lex_aware and for those that do not."""
    quoted = ['"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in names]
    expected = "version: 0\ninputs:" + ("" if names else " []") + "\n"
    for i, name in enumerate(quoted):
        for scope, _, _ in reversed(SCOPES):
            expected += f"  - &m{i}-{scope}\n    metric: {name}\n    scope: {scope}\n    formula: $$\n    combine: sum\n"
    expected += "roots:" + ("" if names else " []") + "\n"
    for i, name in enumerate(quoted):
        expected += f"  - name: {name}\n    description: {name}\n    variants:\n      Sum:\n        render: [number, percent]\n" \
            f"        formula:\n          inclusive:\n            standard: *m{i}-execution\n" \
            f"          exclusive:\n            custom: *m{i}-lex_aware\n            standard: *m{i}-function\n"
    for wanted, found in zip(expected.splitlines(), yaml.replace("percent, hidden]", "percent]").splitlines()):
        expect(wanted == found, f"default.yaml: '{found}', not '{wanted}'")
    expect(expected.count("\n") == yaml.count("\n"), f"default.yaml has {yaml.count(chr(10))} lines")
    hidden = re.findall(r'(?m)^  - name: "(.*)"\n.*\n.*\n.*\n        render: .*hidden', yaml)
    expect(all(name.startswith("Size") for name in hidden), f"default.yaml hides {hidden}")


def check_sources(meta, directory):
    """What is copied is there, and nothing else."""
    copies = {path for flags, path in meta["files"] if flags & 1}
    found = {str(p.relative_to(directory)) for p in (directory / "src").rglob("*") if not p.is_dir() or p.is_symlink()}
    expect(copies == found, f"files in src: {found}, in meta.db {copies}")
    expect(not any(flags & ~1 for flags, _ in meta["files"]), "flags of files")


def check_tree(meta, n_blocks):
    parents = {e[0]: None for e in meta["entries"]}
    expect(meta["entries"] and meta["entries"][0][1] == 1, "the first entry point is not that of the main thread")
    instructions, lines = set(), set()
    for identity, parent, flags, relation, lexical, _, function, file, _, module, _ in meta["contexts"]:
        expect(identity not in parents and parent in parents and 0 < identity < n_blocks, f"context {identity}")
        parents[identity] = parent
        is_function, is_line = (lexical, flags, bool(function)), (lexical, flags, bool(file))
        expect(parent in lines if lexical == 3 else parent not in instructions, f"context {identity} in {parent}")
        (lines if lexical == 2 else instructions if lexical == 3 else set()).add(identity)
        expect((flags, relation, bool(module)) == (4, 0, True) if lexical == 3 else is_function == (0, 1, True) if relation
               else is_line in ((1, 2, True), (2, 2, True)),
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
    loops = {row[0] for row in meta["contexts"] if row[4] == 1}
    for (p, c, m), value in by_profile.items():
        expect(value != 0 or m % len(SCOPES) == LEXICAL, "zeros are written")
    lexical = {(p, c, m + FUNCTION) for p, c, m in by_profile if m % len(SCOPES) == LEXICAL}
    wanted = {(p, c, m) for p, c, m in by_profile if m % len(SCOPES) == FUNCTION and c in loops}
    expect(lexical == wanted, "threads have lex_aware values elsewhere than at loops, or not at all loops")
    columns = collections.defaultdict(list)
    for (_, c, m), value in by_profile.items():
        columns[c, m].append(value)
    summary = {(c, m): v for c, m, v in profiles[0]["values"]}
    whole = {key: sum(values) for key, values in columns.items()}
    for (c, m), value in list(whole.items()):
        if m % len(SCOPES) == FUNCTION and c not in loops:
            whole[c, m - FUNCTION] = value
    expect(summary.keys() == whole.keys(), "the summary has other values than the profiles")
    for key in summary.keys() & whole.keys():
        expect(abs(summary[key] - whole[key]) <= 1e-9 * abs(whole[key]), f"{key} is {summary[key]}, not {whole[key]}")
    return whole


def check_sums(meta, parents, whole):
    """Inclusive values add up over children, exclusive ones over the loops and lines within a function, which say so; in
    lex_aware a loop leaves out the loops in it."""
    spreads, loops = {row[0]: row[5] for row in meta["contexts"]}, {row[0] for row in meta["contexts"] if row[4] == 1}
    n_ids, inner = len(SCOPES), set(parents.values())
    below, own, direct = (collections.defaultdict(float) for _ in range(3))
    for (c, m), value in whole.items():
        if m % n_ids == EXECUTION and parents.get(c) is not None:
            below[parents[c], m] += value
        elif m % n_ids == FUNCTION and spreads.get(c):
            own[parents[c], m] += value
    for c in [row[0] for row in reversed(meta["contexts"])]:
        for m in range(FUNCTION, n_ids * len(meta["metrics"]), n_ids):
            direct[c, m] += 0 if c in inner else whole.get((c, m), 0)
            if spreads[c] and c not in loops:
                direct[parents[c], m] += direct[c, m]
    for c in parents:
        for m in range(n_ids * len(meta["metrics"])):
            value, function = whole.get((c, m), 0), m // n_ids * n_ids + FUNCTION
            if m % n_ids == LEXICAL:
                wanted = direct[c, function] if c in loops else whole.get((c, function), 0)
            else:
                wanted = below[c, m] if m % n_ids == EXECUTION else own[c, m]
                wanted = wanted if c in inner else whole.get((c, function), 0)  # a leaf has its own
            close = abs(value - wanted) <= 1e-9 * max(abs(value), abs(whole.get((c, m // n_ids * n_ids + EXECUTION), 0)))
            expect(close, f"context {c} metric {m}: {value}, not {wanted}")
    main = meta["entries"][0][0]
    for m in {m for _, m in whole}:
        expect(whole.get((0, m)) == whole.get((main, m)), f"metric {m}: the whole is not the main thread's")


def check_traces(traces, parents, n_profiles):
    numbers = [row["profile"] for row in traces["traces"]]
    expect(numbers == list(range(1, n_profiles)), f"traces of profiles {numbers}: readers expect one for each")
    times = [time for row in traces["traces"] for time, _ in row["records"]]
    expect(times and (min(times), max(times)) == (traces["min_time_ns"], traces["max_time_ns"]), "times of all traces")
    for number, events in ((row["profile"], row["records"]) for row in traces["traces"]):
        expect([t for t, _ in events] == sorted(t for t, _ in events), f"trace of profile {number}: order")
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
    expect(not time or (0, EXECUTION) in whole, "CPUTIME (sec) has no values")
    for name in NOTES:
        expect((directory / name).is_file() and (directory / name).stat().st_size > 100, f"there is no {name}")
    for text in problems:
        print(text)
    return 1 if problems else 0


sys.exit(main())
