# SPDX-License-Identifier: BSD-3-Clause
"""Frames and their operations once more, as plainly as can be: lists and dicts, no thought of speed, nothing taken from the C
code but what its headers say. frame-ops.py compares the two."""
import math
import re

PLAIN, EXCLUSIVE, INCLUSIVE = range(3)
WITHIN = ("loop", "line", "call", "instruction")


def plus(a, b):
    return b if a is None else a if b is None else a + b


def number_graph(n, edges):
    """(old number of each new node, children by new number, roots): pre-order from what has no parent, then from the rest."""
    kids, has_parent, new, old, roots = [[] for _ in range(n)], set(), {}, [], []
    for parent, child in edges:
        has_parent.add(child)
        if child not in kids[parent]:
            kids[parent].append(child)

    def visit(node):
        new[node] = len(old)
        old.append(node)
        for child in kids[node]:
            if child not in new:
                visit(child)
    for start in [i for i in range(n) if i not in has_parent] + list(range(n)):
        if start not in new:
            roots.append(len(old))
            visit(start)
    return old, [[new[k] for k in kids[i]] for i in old], roots


class Cells:
    """Stored values: for each node {profile: value}."""
    def __init__(self, rows):
        self.rows = rows

    def total(self, node):
        return sum(self.rows[node].values()) if self.rows[node] else None

    def change(self, _change):
        return None


class Formula:
    """An expression (a tuple) over columns; env: frame-level attributes of nodes."""
    def __init__(self, tree, columns, frame, n_profiles, sums, counts_absent=False):
        self.tree, self.columns, self.frame, self.n_profiles, self.sums = tree, columns, frame, n_profiles, sums
        self.counts_absent = counts_absent
        n = len(frame.nodes)
        names = set(direct_columns(tree))
        self.rows = []
        for node in range(n):
            used = set().union(*(columns[c].rows[node] for c in names)) if names else range(n_profiles)
            used = range(n_profiles) if used and counts_absent else used
            row = {p: self.evaluate(node, p) for p in sorted(used)}
            self.rows.append({p: v for p, v in row.items() if v is not None})

    def evaluate(self, node, profile):
        return evaluate(self.tree, self, node, profile)

    def total(self, node):
        return self.evaluate(node, None)


def direct_columns(tree):
    """Columns that a profile's value needs, but for those over which a function goes through all profiles."""
    if tree[0] == "column":
        return [tree[1]]
    if tree[0] in ("over", "profiles"):
        return []
    if tree[0] == "children":
        return [tree]
    return [c for part in tree[1:] if isinstance(part, tuple) for c in direct_columns(part)]


def has_columns(tree):
    """Whether a sum with it takes what is missing as 0."""
    if tree[0] in ("column", "children", "profiles"):
        return True
    if tree[0] == "over":
        return tree[1] not in ("any", "all")
    return any(has_columns(part) for part in tree[1:] if isinstance(part, tuple))


class Inner:
    """The column that a function over children or profiles works on. counts_absent: profiles without a value have cost 0."""
    def __init__(self, formula, tree, counts_absent=False):
        if tree[0] == "column":
            self.rows, self.total = formula.columns[tree[1]].rows, formula.columns[tree[1]].total
            self.sums = formula.sums[tree[1]]
        else:
            made = Formula(tree, formula.columns, formula.frame, formula.n_profiles, formula.sums, counts_absent)
            self.rows, self.total, self.sums = made.rows, made.total, PLAIN


class ChildSums:
    def __init__(self, formula, tree):
        inner, kids = Inner(formula, tree), formula.frame.kids
        self.rows = []
        for below in kids:
            row = {}
            for k in below:
                for p, v in inner.rows[k].items():
                    row[p] = row.get(p, 0) + v
            self.rows.append(row)
        self.totals = [None] * len(kids)
        for node, below in enumerate(kids):
            for k in below:
                self.totals[node] = plus(self.totals[node], inner.total(k))

    def total(self, node):
        return self.totals[node]


class Columns(dict):
    """Columns by name; sums over children are made when they are asked for."""
    def __init__(self, columns, formula=None):
        super().__init__(columns)
        self.formula = formula

    def __missing__(self, key):
        self[key] = ChildSums(self.formula, key[1])
        return self[key]


def over(name, values, sums=PLAIN, n_profiles=0):
    """One value of several; of what adds up, profiles without one count as 0 where there is any."""
    if not values:
        return None
    if sums != PLAIN and name != "count":
        values = values + [0.0] * (n_profiles - len(values))
    if name == "mean":
        return sum(values) / len(values)
    if name == "std":
        mean = sum(values) / len(values)
        return math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    if name == "percentile":
        values, place = sorted(values), (len(values) - 1) / 2
        low = int(place)
        return values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])
    return {"sum": sum, "min": min, "lowest": min, "all": min, "max": max, "highest": max, "any": max, "count": len}[name](values)


def evaluate(tree, formula, node, profile):
    kind = tree[0]
    if kind == "number":
        return tree[1]
    if kind in ("column", "children"):
        column = formula.columns[tree[1] if kind == "column" else tree]
        is_cost = kind == "column" and formula.sums[tree[1]] != PLAIN
        absent = 0.0 if formula.counts_absent and is_cost else None
        return column.total(node) if profile is None else column.rows[node].get(profile, absent)
    if kind == "over":
        inner = Inner(formula, tree[2], tree[1] == "all")
        return inner.total(node) if tree[1] == "sum" else \
            over(tree[1], list(inner.rows[node].values()), inner.sums, formula.n_profiles)
    if kind == "profiles":
        return float(sum(v != 0 for v in Inner(formula, tree[1]).rows[node].values()))
    if kind == "depth":
        return formula.frame.depths()[node]
    if kind == "leaf":
        return float(not formula.frame.kids[node])
    if kind == "bytes":
        return formula.frame.attributes["bytes"][node]
    if kind == "line":
        return formula.frame.nodes[node][3] or None
    if kind == "search":
        return float(re.search(tree[2], formula.frame.nodes[node][tree[1]]) is not None)
    if kind == "same":
        return float(formula.frame.nodes[node][tree[1]] == tree[2])
    values = [evaluate(part, formula, node, profile) for part in tree[1:]]
    if kind == "missing":
        return float(values[0] is None)
    if kind == "else":
        return values[1] if values[0] is None else values[0]
    if kind in ("add", "subtract", "multiply", "divide"):
        return combine(kind, *values)
    if kind == "and" and 0 in values:
        return 0.0
    if kind == "or" and 1 in values:
        return 1.0
    if kind in "+-/" and all(map(has_columns, tree[1:])):
        return combine({"+": "add", "-": "subtract", "/": "divide"}[kind], *values)
    if None in values or (kind == "/" and values[1] == 0):
        return None
    a, b = values[0], values[-1]
    return float({"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b, "neg": lambda: -a,
                  "min": lambda: min(a, b), "max": lambda: max(a, b), "abs": lambda: abs(a), "<": lambda: a < b,
                  "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b, "=": lambda: a == b, "!=": lambda: a != b,
                  "not": lambda: a == 0, "and": lambda: 1, "or": lambda: 0}[kind]())


def with_identity(kind, name, file, line, module=""):
    """A node of a spec. What is in a shared library is not what is in another one; paths, versions and programs may differ."""
    library = re.fullmatch(r"(?:.*/)?([^/]*?)\.so(?:\..*)?", module)
    return (kind, name, file, line, (kind, name, file, library.group(1))) if library else (kind, name, file, line)


class Frame:
    """nodes: (kind, name, file, line[, identity]); kids, roots, attributes {name: values}, profiles [(rank, thread, name)];
    columns [(name, sums, values)]."""
    def __init__(self, nodes, kids, roots, attributes, profiles, columns=()):
        self.nodes, self.kids, self.roots = nodes, kids, roots
        self.attributes, self.profiles, self.columns = attributes, profiles, list(columns)
        self.n = len(nodes)
        self.parents = [[p for p in range(self.n) if i in kids[p]] for i in range(self.n)]
        self.is_tree = all(len(p) <= 1 for p in self.parents) and all(not self.parents[r] for r in roots)

    @staticmethod
    def read(spec):
        old, kids, roots = number_graph(len(spec["nodes"]), [tuple(e) for e in spec["edges"]])
        columns = []
        for name, sums, values in spec["columns"]:
            rows = [{} for _ in old]
            for node, profile, value in values:
                if value is not None:
                    row = rows[old.index(node)]
                    row[profile] = row.get(profile, 0) + value
            columns.append((name, sums, Cells(rows)))
        attributes = {k: [v[o] for o in old] for k, v in spec["attributes"].items()}
        return Frame([with_identity(*spec["nodes"][o]) for o in old], kids, roots, attributes,
                     [tuple(p) for p in spec["profiles"]], columns)

    def identity(self, node):
        if len(self.nodes[node]) > 4:
            return self.nodes[node][4]
        kind, name, file, line = self.nodes[node]
        return (kind, name, file) + ((line,) if kind in WITHIN else ())

    def depths(self):
        depths, queue = {r: 0 for r in self.roots}, list(self.roots)
        for node in queue:
            for k in self.kids[node]:
                if k not in depths:
                    depths[k] = depths[node] + 1
                    queue.append(k)
        return [float(depths[i]) for i in range(self.n)]

    def reach(self, starts):
        seen = list(starts)
        for node in seen:
            seen += [k for k in self.kids[node] if k not in seen]
        return seen

    def column(self, name):
        return next((c for c in self.columns if c[0] == name), None)

    def pair(self, column):
        """The column of the frame with the same costs summed the other way; what only a formula has left is in no pair."""
        if not any(c[2] is column[2] for c in self.columns):
            return None
        stem = column[0].removesuffix(" (inc)").removesuffix(" (exc)")
        return next((c for c in self.columns if PLAIN not in (c[1], column[1]) and c[1] != column[1] and
                     c[0].removesuffix(" (inc)").removesuffix(" (exc)") == stem), None)

    def with_columns(self, columns):
        return Frame(self.nodes, self.kids, self.roots, self.attributes, self.profiles, columns)

    def formula(self, tree, columns=None, profiles=None, sums=None):
        known = Columns({c[0]: c[2] for c in self.columns} if columns is None else columns)
        sums = {c[0]: c[1] for c in self.columns} if sums is None else sums
        made = Formula.__new__(Formula)
        known.formula = made
        made.columns, made.frame, made.tree, made.sums = known, self, tree, sums
        made.n_profiles = len(self.profiles if profiles is None else profiles)
        made.__init__(tree, known, self, made.n_profiles, sums)
        return made


def add_rows(rows):
    total = {}
    for row in rows:
        for profile, value in row.items():
            total[profile] = total.get(profile, 0) + value
    return dict(sorted(total.items()))


def grouped(values, groups):
    return Cells([add_rows(values.rows[m] for m in members) for members in groups])


def sole(values, groups):
    rows = []
    for members in groups:
        row = {}
        for m in members:
            for p, v in values.rows[m].items():
                row.setdefault(p, []).append(v)
        rows.append({p: v[0] for p, v in sorted(row.items()) if len(v) == 1})
    return Cells(rows)


def summed(values, frame):
    return Cells([add_rows(values.rows[k] for k in frame.reach([i])) for i in range(frame.n)])


def taken_apart(values, frame):
    return Cells([add_rows([values.rows[i]] + [{p: -v for p, v in values.rows[k].items()} for k in frame.kids[i]])
                  for i in range(frame.n)])


def graph_outside(frame, members):
    """Of the members of a group in a graph, those without parts that are below others of them; and whether there are several functions, or
    one and parts of others, so that costs with callees are found anew."""
    outer = [i for i in members if frame.nodes[i][0] not in WITHIN or not any(p in members for p in frame.parents[i])]
    n_functions = sum(frame.nodes[i][0] not in WITHIN for i in outer)
    return outer, n_functions > 1 or 0 < n_functions < len(outer)


def regroup(frame, group_of, to, kind):
    """Columns of `frame` for the nodes of `to`. kind: anew, same, flat."""
    groups = [[i for i in range(frame.n) if group_of[i] == g] for g in range(to.n)]
    above = [set() for _ in range(frame.n)]
    for i in range(frame.n if frame.is_tree else 0):
        for p in frame.parents[i]:
            above[i] = above[p] | {group_of[p]}
    outer = [[i for i in members if g not in above[i]] for g, members in enumerate(groups)]
    outside = [graph_outside(frame, members) for members in groups]

    def change(column):
        name, sums, values = column
        if sums == PLAIN and isinstance(values, (Formula, Appended)):
            used = {n: change(next(c for c in values.sources if c[0] == n)) for n in values.names}
            return remake(to, values, used)
        if sums == EXCLUSIVE:
            return grouped(values, groups)
        if sums == PLAIN:
            return sole(values, groups)
        own = frame.pair(column)
        if frame.is_tree and kind != "anew":
            return grouped(values, outer if kind == "flat" else groups)
        if kind == "flat":
            anew = Cells([add_rows(own[2].rows[k] for k in frame.reach(g)) for g in groups]) if own else sole(values, groups)
            return Cells([anew.rows[g] if is_anew else add_rows(values.rows[k] for k in members) for g, (members, is_anew) in enumerate(outside)])
        if own and kind != "anew":
            return Cells([add_rows(own[2].rows[k] for k in frame.reach(g)) for g in groups])
        return summed(grouped(own[2], groups), to) if own else grouped(values, groups)
    to.columns = [(c[0], c[1], change(c)) for c in frame.columns]
    return to


def remake(frame, old, used, profiles=None, now=lambda sums: sums):
    """now: what becomes of the sums of a formula's columns."""
    sources = [(n, now(s), used[n]) for n, s, _ in old.sources if n in used]
    if isinstance(old, Appended):
        return Appended(sources)
    made = frame.formula(old.tree, used, profiles, {n: s for n, s, _ in sources})
    made.sources, made.names = sources, old.names
    return made


def derive(frame, name, tree):
    made = frame.formula(tree)
    made.sources, made.names = frame.columns, names_in(tree)
    return frame.with_columns([c for c in frame.columns if c[0] != name] + [(name, PLAIN, made)])


def names_in(tree):
    if tree[0] == "column":
        return {tree[1]}
    return set().union(set(), *(names_in(part) for part in tree[1:] if isinstance(part, tuple)))


def merge(n, edges, ids, roots):
    """Numbers of nodes that are one: siblings of the same identity, then their children."""
    above = list(range(n + 1))
    edges = edges + [(n, r) for r in roots]

    def find(i):
        return i if above[i] == i else find(above[i])
    changed = True
    while changed:
        changed, known = False, {}
        for parent, child in edges:
            other = find(known.setdefault((find(parent), ids[child]), child))
            if other != find(child):
                above[max(other, find(child))] = min(other, find(child))
                changed = True
    firsts = sorted({find(i) for i in range(n)})
    return [firsts.index(find(i)) for i in range(n)]


def shape(frames, classes, edges):
    """A frame of classes without columns, and the new number of each node."""
    old, kids, roots = number_graph(max(classes, default=-1) + 1, [(classes[a], classes[b]) for a, b in edges])
    group_of = [old.index(c) for c in classes]
    whole = [(f, i) for f in frames for i in range(f.n)]
    first = [whole[group_of.index(g)] for g in range(len(old))]
    attributes = {}
    for name in [k for f in frames for k in f.attributes]:
        is_text = any(isinstance(v, str) for f in frames for v in f.attributes.get(name, ()))
        attributes[name] = [f.attributes[name][i] if name in f.attributes else "" if is_text else None for f, i in first]
    return Frame([f.nodes[i] for f, i in first], kids, roots, attributes, frames[0].profiles), group_of


def squash(frame, keep):
    kept = [i for i in range(frame.n) if keep[i]]
    edges = []
    for i in kept:
        seen = set()

        def walk(node):
            for k in frame.kids[node]:
                if k in seen:
                    continue
                seen.add(k)
                if keep[k]:
                    edges.append((kept.index(i), kept.index(k)))
                else:
                    walk(k)
        walk(i)
    if not kept:
        return None
    old, _, roots = number_graph(len(kept), edges)
    classes = merge(len(kept), edges, [frame.identity(i) for i in kept], [old[r] for r in roots])
    part = Frame([frame.nodes[i] for i in kept], [[] for _ in kept], [], {k: [v[i] for i in kept] for k, v in frame.attributes.items()},
                 frame.profiles)
    to, group_of = shape([part], classes, edges)
    return regroup(frame, [group_of[kept.index(i)] if keep[i] else None for i in range(frame.n)], to, "anew")


def owners(frame):
    owner = []
    for i in range(frame.n):
        parents = [p for p in frame.parents[i] if p < i]
        owner.append(owner[parents[0]] if frame.nodes[i][0] in WITHIN and parents else i)
    return owner


def by_keys(keys):
    order = list(dict.fromkeys(keys))
    return [order.index(k) for k in keys], [keys.index(k) for k in order]


def flat(frame):
    owner = owners(frame)
    group_of, first = by_keys([frame.identity(o) for o in owner])
    first = [owner[i] for i in first]
    to = Frame([frame.nodes[i] for i in first], [[] for _ in first], list(range(len(first))),
               {k: [v[i] for i in first] for k, v in frame.attributes.items()}, frame.profiles)
    return regroup(frame, group_of, to, "flat")


def group_by_name(frame, how="sum"):
    group_of, first = by_keys([n[1] for n in frame.nodes])
    nodes = []
    for g, i in enumerate(first):
        members = [frame.nodes[k] for k in range(frame.n) if group_of[k] == g]
        same = [members[0][a] if len({m[a] for m in members}) == 1 else None for a in range(4)]
        nodes.append((same[0] or "group", members[0][1], same[2] or "", same[3] or 0, members[0][1]))
    to = Frame(nodes, [[] for _ in first], list(range(len(first))), {k: [v[i] for i in first] for k, v in frame.attributes.items()},
               frame.profiles)
    made = regroup(frame, group_of, to, "flat")
    return made if how == "sum" else made.with_columns([(c[0], c[1], pool(c, group_of, len(first), how)) for c in frame.columns])


def pool(column, group_of, n, how):
    """What is made of the values of all members of each group, by profile."""
    members = [{} for _ in range(n)]
    for group, row in zip(group_of, column[2].rows):
        for profile, value in row.items():
            members[group].setdefault(profile, []).append(value)
    return Cells([{p: over("percentile" if how == "p50" else how, v, column[1], len(v)) for p, v in sorted(row.items())} for row in members])


def hierarchy(frame, levels):
    owner, paths, firsts = owners(frame), {}, []

    def key(node, level):
        kind, _, file, line = frame.nodes[node][:4]
        if level == "function":
            return None if frame.nodes[owner[node]][0] in WITHIN else frame.identity(owner[node])
        if level == "line":
            return f"{file}:{line}" if kind in ("line", "call", "instruction") and line else None
        return (file if level == "file" else frame.attributes[level][node]) or None
    group_of = [[None] * frame.n for _ in levels]
    for node in range(frame.n):
        path = ()
        for i, level in enumerate(levels):
            if key(node, level) is None:
                continue
            path += ((i, key(node, level)),)
            if path not in paths:
                paths[path] = len(firsts)
                firsts.append(owner[node] if level == "function" else node)
            group_of[i][node] = paths[path]
    if not paths:
        return None
    old, kids, roots = number_graph(len(firsts), [(paths[p[:-1]], paths[p]) for p in paths if len(p) > 1])
    group_of = [[None if g is None else old.index(g) for g in of] for of in group_of]
    nodes = []
    for path in [list(paths)[o] for o in old]:
        (i, name), first = path[-1], frame.nodes[firsts[paths[path]]]
        nodes.append({"function": first, "line": ("line", name, first[2], first[3], name),
                      "file": ("group", name, name, 0, name)}.get(levels[i], ("group", name, "", 0, name)))
    to = Frame(nodes, kids, roots, {k: [v[firsts[o]] for o in old] for k, v in frame.attributes.items()}, frame.profiles)
    members = [[i for of in group_of for i in range(frame.n) if of[i] == g] for g in range(to.n)]
    above = [set() for _ in range(frame.n)]
    for i in range(frame.n if frame.is_tree else 0):
        for p in frame.parents[i]:
            above[i] = above[p] | {(k, of[p]) for k, of in enumerate(group_of)}
    outer = [[i for k, of in enumerate(group_of) for i in range(frame.n) if of[i] == g and (k, g) not in above[i]]
             for g in range(to.n)]
    now = {EXCLUSIVE: INCLUSIVE}

    def change(column):
        name, sums, values = column
        if sums == PLAIN and isinstance(values, (Formula, Appended)):
            return remake(to, values, {n: change(next(c for c in values.sources if c[0] == n)) for n in values.names},
                          now=lambda s: now.get(s, PLAIN))
        own = frame.pair(column)
        if sums == EXCLUSIVE:
            return grouped(values, members)
        if sums == INCLUSIVE and frame.is_tree:
            return grouped(values, outer)
        if sums == INCLUSIVE and own:
            return Cells([add_rows(own[2].rows[k] for k in frame.reach(g)) for g in members])
        return sole(values, members)
    to.columns = [(c[0], now.get(c[1], PLAIN), change(c)) for c in frame.columns]
    return to


def callgraph(frame, collapsed):
    owner = owners(frame)
    group_of, first = by_keys([frame.identity(o) for o in owner])
    first = [owner[i] for i in first]
    edges = [(group_of[i], group_of[k]) for i in range(frame.n) for k in frame.kids[i] if frame.nodes[k][0] not in WITHIN]

    def build(group_of, first, edges, tags):
        old, kids, roots = number_graph(len(first), edges)
        to = Frame([frame.nodes[first[o]] for o in old], kids, roots,
                   {k: [v[first[o]] for o in old] for k, v in frame.attributes.items()}, frame.profiles)
        return to, [old.index(g) for g in group_of], [first[o] for o in old], \
            [(old.index(a), old.index(b)) for a, b in edges], [tags[o] for o in old]
    to, group_of, first, edges, _ = build(group_of, first, edges, [0] * len(first))
    reach = [set(to.reach([i])) for i in range(to.n)]
    circles = {}
    cycle = [0] * to.n
    for i in range(to.n):
        members = frozenset(k for k in reach[i] if i in reach[k])
        if len(members) > 1:
            cycle[i] = circles.setdefault(members, len(circles) + 1)
    if not collapsed:
        to.attributes["cycle"] = [float(c) if c else None for c in cycle]
        return regroup(frame, group_of, to, "flat")
    keys, firsts = by_keys([("c", c) if c else i for i, c in enumerate(cycle)])
    edges = [(keys[a], keys[b]) for a, b in edges if keys[a] != keys[b] or not cycle[a]]
    to, group_of, _, _, tags = build([keys[g] for g in group_of], [first[i] for i in firsts], edges, [cycle[i] for i in firsts])
    to.nodes = [("group", f"<cycle {t}>", "", 0, f"<cycle {t}>") if t else n for n, t in zip(to.nodes, tags)]
    return regroup(frame, group_of, to, "flat")


def bottom_up(frame, depth):
    owner, chains, firsts, end, edges = owners(frame), {}, [], [], []
    for i in range(frame.n):
        if owner[i] != i:
            end.append(end[owner[i]])
            continue
        at, node, level = (), i, 0
        while node is not None and (not depth or level < depth):
            parent, at = at, at + (frame.identity(node),)
            if at not in chains:
                chains[at] = len(firsts)
                firsts.append(node)
                if parent:
                    edges.append((chains[parent], chains[at]))
            before = [p for p in frame.parents[node] if p < node]
            node, level = (owner[before[0]] if before else None), level + 1
        end.append(chains[at])
    old, kids, roots = number_graph(len(firsts), edges)
    to = Frame([frame.nodes[firsts[o]] for o in old], kids, roots,
               {k: [v[firsts[o]] for o in old] for k, v in frame.attributes.items()}, frame.profiles)
    groups = [[i for i in range(frame.n) if old.index(end[i]) == g] for g in range(to.n)]

    def change(column):
        if column[1] == PLAIN and isinstance(column[2], (Formula, Appended)):
            return remake(to, column[2], {n: change(next(c for c in column[2].sources if c[0] == n)) for n in column[2].names},
                          now=lambda s: s and INCLUSIVE)
        return summed(grouped(column[2], groups), to) if column[1] == EXCLUSIVE else Cells([{} for _ in range(to.n)])
    to.columns = [(c[0], c[1] and INCLUSIVE, change(c)) for c in frame.columns
                  if c[1] == EXCLUSIVE or (c[1] == PLAIN and isinstance(c[2], (Formula, Appended)))]
    return to


def told_apart(frame):
    """The identities of a frame's nodes; of siblings in a tree that are alike, with how many came before."""
    ids = [(frame.identity(i), 0) for i in range(frame.n)]
    for siblings in [frame.roots, *frame.kids] if frame.is_tree else ():
        for at, node in enumerate(siblings):
            ids[node] = (ids[node][0], sum(ids[other][0] == ids[node][0] for other in siblings[:at]))
    return ids


def unify(frames):
    edges, ids, roots, at = [], [], [], 0
    for f in frames:
        edges += [(at + i, at + k) for i in range(f.n) for k in f.kids[i]]
        ids += told_apart(f)
        roots += [at + r for r in f.roots]
        at += f.n
    to, group_of = shape(frames, merge(at, edges, ids, roots), edges)
    results, at = [], 0
    for f in frames:
        one = Frame(to.nodes, to.kids, to.roots, to.attributes, f.profiles)
        results.append(regroup(f, group_of[at:at + f.n], one, "same"))
        at += f.n
    return results, [[g for g in group_of[sum(f.n for f in frames[:i]):][:f.n]] for i, f in enumerate(frames)]


def union(frames):
    sides, _ = unify(frames)
    profiles, columns = [p for f in frames for p in f.profiles], []
    for name in dict.fromkeys(c[0] for s in sides for c in s.columns):
        parts, at = [], 0
        for i, s in enumerate(sides):
            if s.column(name):
                to = range(at, at + len(s.profiles))
                parts.append((f"part {i}", s.column(name)[1], moved(s.column(name), to, sides[0], profiles)))
            at += len(s.profiles)
        columns.append((name, parts[0][1] if len({p[1] for p in parts}) == 1 else PLAIN, Appended(parts)))
    made = sides[0].with_columns(columns)
    made.profiles = profiles
    return made


def match_profiles(a, b):
    keys = [[p[:2] for p in f.profiles] for f in (a, b)]
    known = all(len(set(k)) == len(k) and all(max(p) >= 0 for p in k) for k in keys)
    profiles, to = list(a.profiles), []
    for i, p in enumerate(b.profiles):
        found = keys[0].index(p[:2]) if known and p[:2] in keys[0] else i if not known and i < len(keys[0]) else None
        if found is None:
            found = len(profiles)
            profiles.append(p)
        to.append(found)
    return profiles, to


def moved(column, to, frame, profiles):
    """A column whose profile p is profile to[p] of others."""
    if column[1] == PLAIN and isinstance(column[2], (Formula, Appended)):
        return remake(frame, column[2], {n: moved(next(c for c in column[2].sources if c[0] == n), to, frame, profiles)
                                         for n in column[2].names}, profiles)
    made = Cells([dict(sorted((to[p], v) for p, v in row.items())) for row in column[2].rows])
    made.total = column[2].total
    return made


class Appended(Cells):
    """The parts of a union, by the number of the frame."""
    def __init__(self, parts):
        super().__init__([add_rows(rows) for rows in zip(*(p[2].rows for p in parts))])
        self.sources, self.names = parts, [p[0] for p in parts]

    def total(self, node):
        found = None
        for part in self.sources:
            found = plus(found, part[2].total(node))
        return found


def combine(operation, a, b):
    if operation in ("add", "subtract"):
        b = -b if b is not None and operation == "subtract" else b
        return plus(a, b)
    if operation == "divide":
        return None if not b else (a or 0.0) / b
    if a is None or b is None:
        return None
    return a * b if operation == "multiply" else a / b


def arithmetic(a, b, operation):
    (left, right), members = unify([a, b])
    profiles, to = match_profiles(a, b)
    columns = []
    for name in dict.fromkeys(c[0] for c in left.columns + right.columns):
        x, y = left.column(name), right.column(name)
        if operation in ("multiply", "divide") and not (x and y):
            continue
        empty = Cells([{} for _ in left.nodes])
        sides = [("a", x[1] if x else PLAIN, moved(x, range(len(a.profiles)), left, profiles) if x else empty),
                 ("b", y[1] if y else PLAIN, moved(y, to, left, profiles) if y else empty)]
        sums = (x or y)[1] if operation in ("add", "subtract") and (x or y)[1] == (y or x)[1] else PLAIN
        tree = (operation, ("column", "a"), ("column", "b"))
        values = left.formula(tree, {n: v for n, _, v in sides}, profiles, {n: s for n, s, _ in sides})
        values.sources, values.names = sides, {"a", "b"}
        columns.append((name, sums, values))
    made = left.with_columns(columns)
    made.profiles = profiles
    made.attributes = dict(made.attributes, missing=[
        2.0 if i not in members[0] else 1.0 if i not in members[1] else None for i in range(made.n)])
    return made


def aggregate(frame, by, how):
    keys = [{"rank": p[0], "thread": p[1], "all": 0}[by] for p in frame.profiles]
    order = sorted(set(keys))
    to = [order.index(k) for k in keys]

    def change(column):
        if how == "sum" and column[1] == PLAIN and isinstance(column[2], (Formula, Appended)):
            used = {n: change(next(c for c in column[2].sources if c[0] == n)) for n in column[2].names}
            return remake(frame, column[2], used, order)
        rows = []
        for row in column[2].rows:
            made = {t: [v for p, v in row.items() if to[p] == t] for t in range(len(order))}
            rows.append({t: over("percentile" if how == "p50" else how, v, column[1], to.count(t)) for t, v in made.items() if v})
        return Cells(rows)
    made = frame.with_columns([(c[0], c[1], change(c)) for c in frame.columns])
    made.profiles = [(k if by == "rank" else -1, k if by == "thread" else -1, by if by == "all" or k < 0 else f"{by} {k}") for k in order]
    return made


def imbalance(frame, name, most):
    column, n = frame.column(name), len(frame.profiles)
    rows = {how: [{0: over(how, list(r.values()), column[1], n)} if r else {} for r in column[2].rows] for how in ("mean", "max")}
    made = frame.with_columns([(f"{name} {how}", PLAIN, Cells(rows[how])) for how in ("mean", "max")])
    made.profiles = [(-1, -1, "all")]
    made = derive(made, f"{name} imbalance", ("/", ("column", f"{name} max"), ("column", f"{name} mean")))
    texts = []
    for row, mean in zip(column[2].rows, rows["mean"]):
        above = [(v, p) for p, v in row.items() if v > mean[0]]
        texts.append(", ".join(f"{frame.profiles[p][2]}: {v:.6g}" for v, p in sorted(above, key=lambda a: (-a[0], a[1]))[:most]))
    made.attributes = dict(made.attributes, outliers=texts)
    return made


def choose(frame, wanted):
    kept = [i for i, p in enumerate(frame.profiles) if wanted(i, p)]
    if not kept:
        return None
    made = frame.with_columns([])
    made.profiles = [frame.profiles[i] for i in kept]

    def change(column):
        if column[1] == PLAIN and isinstance(column[2], (Formula, Appended)):
            return remake(made, column[2], {n: change(next(c for c in column[2].sources if c[0] == n)) for n in column[2].names})
        return Cells([{kept.index(p): v for p, v in row.items() if p in kept} for row in column[2].rows])
    made.columns = [(c[0], c[1], change(c)) for c in frame.columns]
    return made


def section(frame, wanted, name):
    made = choose(frame, wanted)
    if made and len(made.profiles) > 1:
        made = aggregate(made, "all", "sum")
        made.profiles = [(-1, -1, name)]
    return made


def compute_pairs(frame, sums, suffix, compute):
    """All columns, those with these sums computed from the other ones, and formulas from these."""
    columns, new = [], {}
    for column in frame.columns:
        pair = frame.pair(column)
        if PLAIN != column[1] != sums:
            name, stem = column[0] + suffix, column[0].removesuffix(" (inc)")
            if sums == EXCLUSIVE and stem not in ("", column[0]):
                name = stem if not frame.column(stem) else stem + suffix
            new[id(column)] = (pair[0] if pair else name, sums, compute(column[2], frame))

    def change(column):
        if column[1] == PLAIN and isinstance(column[2], (Formula, Appended)):
            return remake(frame, column[2], {n: change(next(c for c in column[2].sources if c[0] == n)) for n in column[2].names})
        pair = next((p for c in frame.columns if c[2] is column[2] for p in [frame.pair(c)] if c[1] == sums and p), None)
        return new[id(pair)][2] if pair else column[2]
    for column in frame.columns:
        pair = frame.pair(column)
        is_computed = pair and id(pair) in new and frame.pair(pair) is column
        columns.append(new[id(pair)] if is_computed else (column[0], column[1], change(column)))
        if id(column) in new and not pair:
            columns.append(new[id(column)])
    return frame.with_columns(columns)


def sum_up(frame):
    return compute_pairs(frame, INCLUSIVE, " (inc)", summed)


def take_apart(frame):
    return compute_pairs(frame, EXCLUSIVE, " (exc)", taken_apart) if frame.is_tree else None


def hot_path(frame, name, share):
    values = frame.column(name)[2]

    def largest(nodes):
        known = [(values.total(i), -k, i) for k, i in enumerate(nodes) if values.total(i) is not None]
        return max(known)[2] if known else None
    path, node, goes_on = [], largest(frame.roots), True
    while node is not None and node not in path:
        path.append(node)
        child = largest(frame.kids[node]) if goes_on else None
        goes_on = child is not None and values.total(child) >= share * values.total(node)
        node = child
    return path


def find(frame, pattern):
    """The nodes on paths that match [(quantifier, predicate of a node)]: by walking pairs of node and place in the pattern."""
    states = []
    for quantifier, fits in pattern:
        one, star = [(False, fits)], [(True, fits)]
        states += {".": one, "*": star, "+": one + star}[quantifier] if isinstance(quantifier, str) else one * quantifier
    n = len(states)

    def after(at):
        """Places that may come next when `at` is the first one left."""
        found = []
        while at < n:
            found.append(at)
            if not states[at][0]:
                break
            at += 1
        return found

    def follow(at):
        return ([at] if states[at][0] else []) + after(at + 1)
    begin = [(i, s) for i in range(frame.n) for s in after(0) if states[s][1](i)]
    steps = {}
    for i, s in begin:
        if (i, s) not in steps:
            open_pairs = [(i, s)]
            while open_pairs:
                i, s = open_pairs.pop()
                if (i, s) not in steps:
                    steps[i, s] = [(k, t) for k in frame.kids[i] for t in follow(s) if states[t][1](k)]
                    open_pairs += steps[i, s]
    good = {(i, s) for i, s in steps if all(star for star, _ in states[s + 1:])}
    while True:
        more = {pair for pair in steps if pair not in good and any(k in good for k in steps[pair])}
        if not more:
            return sorted({i for i, _ in good})
        good |= more


def paths(frame, pattern, most, is_longest):
    """The paths themselves, each node at most once on a path: all walks, one after the other."""
    states, found = [], []
    for quantifier, fits in pattern:
        one, star = [(False, fits)], [(True, fits)]
        states += {".": one, "*": star, "+": one + star}[quantifier] if isinstance(quantifier, str) else one * quantifier

    def after(at):
        while at < len(states):
            yield at
            if not states[at][0]:
                return
            at += 1

    def walk(path, places):
        """Adds the paths that begin with this one; whether there are any."""
        node, at = path[-1], len(found)
        places = {s for s in places if states[s][1](node)}
        if not places:
            return False
        is_end = any(all(star for star, _ in states[s + 1:]) for s in places)
        if is_end:
            found.append(list(path))
        following = {t for s in places for t in ([s] if states[s][0] else []) + list(after(s + 1))}
        longer = [walk(path + [k], following) for k in frame.kids[node] if k not in path]
        if is_end and any(longer) and is_longest:
            del found[at]
        return is_end or any(longer)
    for node in range(frame.n):
        walk([node], set(after(0)))
    return found[:most]
