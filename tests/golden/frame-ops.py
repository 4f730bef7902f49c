# SPDX-License-Identifier: BSD-3-Clause
"""The same operations on the same random frames, trees and graphs with missing values among them, by the library and by the
model in frame-model.py, chained as they come: every node, edge, attribute and value must be the same. A few hundred cases;
LOCUS_FRAME_CASES says how many else (tests/e2e/at-length.sh), LOCUS_FRAME_SEED where they begin."""
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "golden"
spec = importlib.util.spec_from_file_location("model", HERE / "frame-model.py")
model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(model)
PROGRAM = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "tests" / "golden" / "run-frame-ops"
KINDS = ("function", "function", "function", "inlined", "loop", "line", "other", "variable")
MODULES = ("", "/opt/app", "/opt/app.old", "/lib/libm.so.6", "/usr/lib/libm.so.6.1", "/lib/libc.so.6")  # a program may have another name
NAMES = ("main", "solve", "f", "g", "MPI_Send", "MPI_Recv", "a b", "it's")


def make_frame(rng, columns=None):
    n, n_profiles = rng.randint(1, 12), rng.randint(1, 4)
    nodes = []
    for _ in range(n):
        kind = rng.choice(KINDS)
        nodes.append([kind, rng.choice(NAMES[:rng.choice((3, 8))]), rng.choice(("", "a.c", "b.c")), rng.choice((0, 1, 1, 7))])
        if nodes[-1][2] and kind not in model.WITHIN:
            nodes[-1].append(rng.choice(MODULES))
    edges = [[rng.randrange(i), i] for i in range(1, n) if rng.random() < 0.9]
    if rng.random() < 0.4:
        edges += [[rng.randrange(n), rng.randrange(n)] for _ in range(rng.randint(1, 5))]
    if rng.random() < 0.3:
        rng.shuffle(edges)
    profiles = [[i // 2, i % 2, f"p{i}"] for i in range(n_profiles)]
    if rng.random() < 0.2:
        profiles = [[-1, -1, f"p{i}"] for i in range(n_profiles)]
    elif rng.random() < 0.3:
        rng.shuffle(profiles)

    def value():
        return None if rng.random() < 0.1 else rng.randint(-8 if rng.random() < 0.1 else 0, 40) / 4
    made = []
    for name, sums in columns or (("time", 1), ("time (inc)", 2), ("loads", 1), ("mean lat", 0), ("own (inc)", 2))[:rng.randint(1, 5)]:
        made.append([name, sums, [[i, p, value()] for i in range(n) for p in range(n_profiles) if rng.random() < 0.6]])
    attributes = {"bytes": [rng.choice((None, 8, 64)) for _ in range(n)], "class": [rng.choice(("heap", "static")) for _ in range(n)]}
    return {"profiles": profiles, "nodes": nodes, "edges": edges, "columns": made, "attributes": attributes}


def quote(name):
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def number(rng, columns, depth, rich=True):
    """(text, tree) of a number."""
    kind = rng.choice(("column", "column", "number", "attribute") + (("binary",) * 4 + ("unary", "function", "children", "over",
                                                                                        "profiles")) * (depth > 0))
    if kind == "column" or (kind in ("children", "over", "profiles") and not rich):
        name = rng.choice(columns)
        return (name if name.isalpha() and rng.random() < 0.5 else quote(name)), ("column", name)
    if kind == "number":
        value = rng.choice((0, 1, 2, 0.5, 4))
        return repr(value), ("number", float(value))
    if kind == "attribute":
        name = rng.choice(("depth", "leaf", "bytes", "line"))
        return name, (name,)
    if kind == "profiles":
        a = condition(rng, columns, 0)
        return f"profiles({a[0]})", ("profiles", a[1])
    a = number(rng, columns, depth - 1, rich)
    if kind == "children":
        return f"children({a[0]})", ("children", a[1])
    if kind == "unary":
        return f"-({a[0]})", ("neg", a[1])
    if kind == "over":
        name = rng.choice(("sum", "mean", "lowest", "highest", "std", "count", "percentile"))
        return f"{name}({a[0]}{', 50' if name == 'percentile' else ''})", ("over", name, a[1])
    b = number(rng, columns, depth - 1, rich)
    if kind == "function":
        name = rng.choice(("min", "max", "else", "abs"))
        return (f"abs({a[0]})", ("abs", a[1])) if name == "abs" else (f"{name}({a[0]}, {b[0]})", (name, a[1], b[1]))
    sign = rng.choice("+-*/")
    return f"({a[0]}) {sign} ({b[0]})", (sign, a[1], b[1])


def condition(rng, columns, depth):
    kind = rng.choice(("compare", "compare", "compare", "search", "same", "missing") + ("and", "or", "not", "any") * (depth > 0))
    if kind == "search":
        field, pattern = rng.choice(((1, "^MPI_"), (1, "[fg]"), (2, "a"), (0, "^(loop|line)$")))
        return f'{("kind", "name", "file")[field]} =~ "{pattern}"', ("search", field, pattern)
    if kind == "same":
        name = rng.choice(NAMES)
        return f'name = "{name}"', ("same", 1, name)
    if kind in ("and", "or"):
        a, b = condition(rng, columns, depth - 1), condition(rng, columns, depth - 1)
        return f"({a[0]}) {kind} ({b[0]})", (kind, a[1], b[1])
    if kind == "not":
        a = condition(rng, columns, depth - 1)
        return f"not ({a[0]})", ("not", a[1])
    if kind == "any":
        name, a = rng.choice(("any", "all")), condition(rng, columns, 0)
        return f"{name}({a[0]})", ("over", name, a[1])
    a, b = number(rng, columns, depth), number(rng, columns, 0)
    if kind == "missing":
        return f"({a[0]}) is missing", ("missing", a[1])
    sign = rng.choice(("<", "<=", ">", ">=", "=", "!="))
    return f"{a[0]} {sign} {b[0]}", (sign, a[1], b[1])


def truths(frame, tree):
    formula = frame.formula(tree)
    return [formula.total(i) == 1 for i in range(frame.n)]


def pattern(rng, frame):
    """(text, [(quantifier, predicate)]) in one of the two forms."""
    objects, text, where, made = [], [], [], []
    times = frame.columns[0]
    for i in range(rng.randint(1, 4)):
        quantifier, parts, tests = rng.choice((".", "*", "+", "*", 2, 1, 33)), {}, []
        if rng.random() < 0.7:
            bound, sign = rng.choice((0, 2, 5)), rng.choice(("<", "<=", ">", ">=", "==", "!="))
            parts[times[0]] = f"{sign} {bound}"
            where.append(f'p{i}."{times[0]}" {sign} {bound}')
            tests.append(("<=" if sign == "<=" else sign.replace("==", "="), ("column", times[0]), ("number", bound)))
        if rng.random() < 0.4:
            name = rng.choice(("MPI_Send", "main", "f"))
            parts["name"] = name
            where.append(f'p{i}.name = "{name}"')
            tests.append(("same", 1, name))
        objects.append([quantifier, parts] if parts else quantifier)
        text.append(f'({json.dumps(quantifier)}, p{i})')
        known = [truths(frame, t) for t in tests]
        made.append((quantifier, lambda node, known=known: all(k[node] for k in known)))
    if rng.random() < 0.5:
        return json.dumps(objects), made
    return "MATCH " + "->".join(text) + (" WHERE " + " AND ".join(where) if where else ""), made


def add_step(rng, case, frames):
    """One more operation: its step, and what the model makes of it. None: the operation is refused."""
    at = rng.randrange(len(frames))
    frame = frames[at]
    columns = [c[0] for c in frame.columns]
    operation = rng.choice(("filter", "filter", "query", "derive", "inclusive", "exclusive", "choose", "section", "aggregate", "group",
                            "hierarchy", "hierarchy", "flat", "callers", "callgraph", "imbalance", "union", "add", "subtract",
                            "multiply", "divide"))
    texts, operands = [], [at]
    if not columns and operation in ("filter", "query", "derive", "imbalance"):
        return True
    if operation == "filter":
        text, tree = condition(rng, columns, 2)
        texts, made = [text], model.squash(frame, truths(frame, tree))
    elif operation == "query":
        text, elements = pattern(rng, frame)
        found = model.find(frame, elements)
        texts, made = [text], model.squash(frame, [i in found for i in range(frame.n)])
    elif operation == "derive":
        text, tree = number(rng, columns, 2, rich=False)
        texts, made = ["d" + str(len(frames)), text], model.derive(frame, "d" + str(len(frames)), tree)
    elif operation == "inclusive":
        made = model.sum_up(frame)
    elif operation == "exclusive":
        made = model.take_apart(frame)
    elif operation in ("choose", "section"):
        text, wanted = rng.choice((("rank < 1", lambda i, p: 0 <= p[0] < 1), ("profile != 1", lambda i, p: i != 1),
                                   ("thread = 1 or rank = 1", lambda i, p: p[1] == 1 or p[0] == 1),
                                   ('name =~ "[02]"', lambda i, p: "0" in p[2] or "2" in p[2])))
        texts, made = [text], model.choose(frame, wanted) if operation == "choose" else model.section(frame, wanted, text)
    elif operation == "aggregate":
        texts = [rng.choice(("rank", "thread", "all")), rng.choice(("sum", "mean", "min", "max", "std", "count", "p50"))]
        made = model.aggregate(frame, *texts)
    elif operation == "group":
        how = rng.choice(("sum", "sum", "mean", "min", "max", "std", "count", "p50"))
        texts, made = ["name"] + [how] * (how != "sum" or rng.random() < 0.2), model.group_by_name(frame, how)
    elif operation == "hierarchy":
        levels = rng.choice((["file", "function", "line"], ["function", "line"], ["class"], ["class", "file"], ["class", "function"]))
        texts, made = [" ".join(levels)], model.hierarchy(frame, levels)
    elif operation == "flat":
        made = model.flat(frame)
    elif operation == "callers":
        depth = rng.choice((0, 1, 2, 3))
        texts, made = [str(depth)], model.bottom_up(frame, depth)
    elif operation == "callgraph":
        texts = rng.choice(([], ["collapsed"]))
        made = model.callgraph(frame, bool(texts))
    elif operation == "imbalance":
        most = rng.choice((0, 1, 3))
        texts = [rng.choice(columns)] + ([] if most == 3 else [str(most)])
        made = model.imbalance(frame, texts[0], most)
    else:
        operands = [at, rng.randrange(len(frames))]
        pair = [frames[i] for i in operands]
        made = model.union(pair) if operation == "union" else model.arithmetic(*pair, operation)
    case["steps"].append([operation, operands, texts])
    if made is None:
        return False
    frames.append(made)
    return True


def add_question(rng, case, frames):
    """A last step that answers with something else than a frame."""
    frame = frames[-1]
    column = next((c for c in frame.columns), None)
    if rng.random() < 0.3 and column:
        text, elements = pattern(rng, frame)
        case["steps"].append(["find", [len(frames) - 1], [text]])
        return model.find(frame, elements)
    if rng.random() < 0.3 and column and (frame.is_tree or frame.n <= 8):
        text, elements = pattern(rng, frame)
        most, longest = rng.choice((1, 5, 1000)), frame.is_tree and rng.random() < 0.5
        case["steps"].append(["paths", [len(frames) - 1], [text, str(most), "longest" if longest else "all"]])
        return model.paths(frame, elements, most, longest)
    if rng.random() < 0.4 and frame.n:
        nodes = rng.sample(range(frame.n), rng.randint(1, frame.n))
        case["steps"].append(["select", [len(frames) - 1], [rng.choice(("path", "node")), " ".join(map(str, nodes))]])
        return sorted(nodes)
    if rng.random() < 0.3 and column:
        case["steps"].append(["hot", [len(frames) - 1], [column[0], "0.5"]])
        return model.hot_path(frame, column[0], 0.5)
    return show(frame)


def show(frame):
    return {"nodes": [list(n[:4]) for n in frame.nodes], "children": frame.kids, "roots": frame.roots,
            "profiles": [list(p) for p in frame.profiles],
            "attributes": frame.attributes,
            "columns": [[name, sums, [[[p, v] for p, v in row.items()] for row in values.rows],
                         [values.total(i) for i in range(frame.n)],
                         [model.over("max", list(r.values()), sums, len(frame.profiles)) for r in values.rows]]
                        for name, sums, values in frame.columns]}


def differ(a, b, where=""):
    """The first difference between what the model and the program say; None."""
    if isinstance(a, (list, tuple)) and isinstance(b, list):
        if len(a) != len(b):
            return f"{where}: {a} is not {b}"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := differ(x, y, f"{where}[{i}]"))), None)
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return f"{where}: {sorted(a)} is not {sorted(b)}"
        return next((d for k in a if (d := differ(a[k], b[k], f"{where}.{k}"))), None)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return None if a == b or abs(a - b) <= 1e-12 * max(abs(a), abs(b), 1) else f"{where}: {a} is not {b}"
    return None if a == b else f"{where}: {a} is not {b}"


def make_case(seed):
    rng = random.Random(seed)
    specs = [make_frame(rng) for _ in range(rng.choice((1, 2)))]
    if len(specs) == 2 and rng.random() < 0.5:  # something in common
        specs[1] = make_frame(rng, [c[:2] for c in specs[0]["columns"]])
    case = {"frames": specs, "steps": [], "sums_first": rng.random() < 0.5}
    frames = [model.Frame.read(s) for s in specs]
    for _ in range(rng.randint(1, 3)):
        if not add_step(rng, case, frames):
            return case, None
        if frames[-1].n > 60:
            break
    if not case["steps"] or rng.random() < 0.7:
        return case, show(frames[-1])
    return case, add_question(rng, case, frames)


def main():
    n_cases, first = int(os.environ.get("LOCUS_FRAME_CASES", "400")), int(os.environ.get("LOCUS_FRAME_SEED", "1"))
    cases = [make_case(seed) for seed in range(first, first + n_cases)]
    text = "".join(json.dumps(case) + "\n" for case, _ in cases)
    done = subprocess.run([PROGRAM], input=text, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    n_wrong = n_refused = 0
    for i, (case, expected) in enumerate(cases):
        answer = answers[i] if i < len(answers) else {"error": "no answer: " + done.stderr[-2000:]}
        n_refused += expected is None
        wrong = differ(expected, answer) if expected is not None else None if "error" in answer else "nothing was refused"
        if isinstance(answer, dict) and "error" in answer and expected is not None:
            wrong = answer["error"]
        if wrong:
            n_wrong += 1
            print(f"FAIL: seed {first + i}: {json.dumps(case['steps'])}: {wrong}")
            if n_wrong >= 10:
                break
    print(f"{len(cases)} cases, {n_refused} of them refused, {n_wrong} wrong")
    sys.exit(1 if n_wrong or done.returncode else 0)


main()
