#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The modules of the viewer, without a browser. Their types hold (tsc), no name is there twice, since the build makes one script of
them; packed answers, made here by their description, are decoded; a state is its text, and the text a state; rows are sorted as
Python sorts them; steps of a trail give the numbers of their hpcquery chains."""
import csv
import io
import json
import math
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.parse

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
WEB = SOURCE / "src" / "face" / "web"
ABSENT, PLACE = 0xffffffff, 0xfffffffe
TYPES_OF_TSC = ["--checkJs", "--noEmit", "--allowJs", "--strict", "--noUnusedLocals", "--target", "es2022", "--lib", "es2022,dom,dom.iterable"]
PLAIN = "-._~:/@!$'()*,;?"  # what stands for itself in a state, beside letters and digits
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def check_names():
    """One script: a name at the top of two modules would be declared twice."""
    where = {}
    for path in sorted(WEB.glob("*.js")):
        for name in re.findall(r"^(?:export )?(?:async )?(?:const|let|function\*?|class) (\w+)", path.read_text(encoding="utf-8"), re.M):
            where.setdefault(name, []).append(path.name)
    for name, files in where.items():
        expect(len(files) == 1, f"{name} is declared in {' and '.join(files)}")
    listed = set(re.findall(r"\w[\w-]*\.\w+", re.sub(r"^#.*$", "", (WEB / "Makefile.am").read_text(encoding="utf-8"), flags=re.M)))
    for path in WEB.iterdir():
        expect(path.suffix not in (".js", ".css", ".html") or path.name in listed, f"{path.name} is not in Makefile.am")


def check_types():
    if not shutil.which("tsc"):
        print("types of the modules are not checked: no tsc (node-typescript)")
        return
    result = subprocess.run(["tsc", *TYPES_OF_TSC, *map(str, [WEB / "types.d.ts", *sorted(WEB.glob("*.js"))])], capture_output=True, check=False, text=True)
    expect(result.returncode == 0, f"tsc: {result.stdout[:2000]}{result.stderr[:500]}")


# --- packed answers, by their description -----------------------------------------------------------------------------------


def planes(values, form):
    whole = [struct.pack("<" + form, value) for value in values]
    return b"".join(bytes(each[i] for each in whole) for i in range(len(whole[0]) if whole else 0))


def zigzag(values):
    made, before = [], 0
    for value in values:
        step = (value - before) & ABSENT
        step = step - (1 << 32) if step & 0x80000000 else step
        made.append(((step << 1) ^ (step >> 31)) & ABSENT)
        before = value
    return made


def pack(columns, n):
    """columns: [(about, values)], values as they are to come out; returns the bytes."""
    texts, data, header = [], b"", []

    def number_of(text):
        if text is None:
            return ABSENT
        if text not in texts:
            texts.append(text)
        return texts.index(text)

    for about, values in columns:
        kind = about["type"]
        words = values
        if kind in ("text", "json"):
            words = [number_of(None if value is None else json.dumps(value) if kind == "json" else value) for value in values]
            if about["key"] == "item":  # as pack_texts does: a place has no text of its own
                places = [f"line:{file}:{line}" for file, line in zip(*(dict((each["key"], of) for each, of in columns)[key] for key in ("file", "line")))]
                words = [PLACE if value == places[i] and i % 3 else words[i] for i, value in enumerate(values)]
        elif kind == "scaled":
            words = [ABSENT if value is None else round(value / about["scale"]) for value in values]
        elif kind == "u32":
            words = [ABSENT if value is None else value for value in values]
        if kind == "f64":
            piece = planes([math.nan if value is None else value for value in values], "d")
        elif kind == "u8":
            piece = bytes(255 if value is None else value for value in values)
        elif kind == "same":
            piece = b""
        else:
            piece = planes(zigzag(words) if about.get("delta") else words, "I")
        data += piece + b"\0" * (-len(piece) % 8)
        header.append(about)
    ends = b"".join(text.encode() + b"\0" for text in texts)
    about = json.dumps({"program": "p", "metric": None, "name": "rows", "rows": n, "more": 3, "columns": header, "texts": len(texts),
                        "text_bytes": len(ends)}).encode()
    about += b" " * (-len(about) % 8)
    return b"LOC1" + struct.pack("<I", len(about)) + about + data + ends


def make_answer(rng, n):
    numbers = [None if rng.random() < .2 else rng.uniform(-1e9, 1e9) for _ in range(n)]
    counts = [None if rng.random() < .2 else rng.randrange(1 << 31) for _ in range(n)]
    rising = sorted(rng.randrange(1 << 32 - 2) for _ in range(n))
    words = [None if rng.random() < .1 else rng.choice(["", "a", "\u00e4\u20ac\U0001f600", "<b>", "x" * 300]) for _ in range(n)]
    files, lines = [rng.choice(["/a.c", "/b/\u00e4.c"]) for _ in range(n)], [rng.randrange(1, 5) for _ in range(n)]
    items = [rng.choice([None, "function:f", "line:/a.c:1", f"line:{file}:{line}", f"line:{file}:{line}"]) for file, line in zip(files, lines)]
    nested = [None if rng.random() < .1 else [{"variable": "a", "value": i}] for i in range(n)]
    return [({"key": "f", "kind": "number", "type": "f64"}, numbers), ({"key": "u", "kind": "count", "type": "u32"}, counts),
            ({"key": "d", "kind": "count", "type": "u32", "delta": True}, rising), ({"key": "t", "kind": "text", "type": "text"}, words),
            ({"key": "td", "kind": "text", "type": "text", "delta": True}, words), ({"key": "file", "kind": "text", "type": "text"}, files), ({"key": "line", "kind": "count", "type": "u32"}, lines),
            ({"key": "item", "kind": "text", "type": "text"}, items), ({"key": "j", "kind": "table", "type": "json"}, nested),
            ({"key": "b", "kind": "flag", "type": "u8"}, [rng.choice([0, 1, None]) for _ in range(n)]),
            ({"key": "s", "kind": "number", "type": "scaled", "scale": 1000.5}, [None if rng.random() < .2 else 1000.5 * rng.randrange(1000) for _ in range(n)]),
            ({"key": "same", "kind": "number", "type": "same", "value": 2.5}, [2.5] * n), ({"key": "word", "kind": "text", "type": "same", "value": "w"}, ["w"] * n),
            ({"key": "none", "kind": "text", "type": "same", "value": None}, [None] * n)]


DECODE = """
import {decode} from "./packed.js";
import {readFileSync} from "node:fs";
const bytes = readFileSync(0), answer = decode(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const out = {n: answer.n, more: answer.more, name: answer.name, columns: {}};
for (const [key, column] of answer.columns)
    out.columns[key] = Array.from({length: answer.n}, (_, i) => {
        if (column.kind === "table")
            return column.json(i);
        if (column.isText || column.kind === "text")
            return column.text(i);
        return Number.isNaN(column.number(i)) ? null : column.number(i);
    });
const item = answer.columns.get("item"), ids = item.words();
out.items = Array.from(ids, (id) => (id === 0xffffffff ? null : answer.texts[id]));
out.isOneId = new Set(ids).size === new Set(out.items).size;
console.log(JSON.stringify(out));
"""

SORT = """
import {orderOf} from "./grid.js";
import {readFileSync} from "node:fs";
const lists = JSON.parse(readFileSync(0)).map((list) => list.map((value) => (value === null ? NaN : Number(value))));
console.log(JSON.stringify(lists.map((list) => [[...orderOf(list, list.length, true)], [...orderOf(list, list.length, false)]])));
"""

STATES = """
import {stateOf, textOf, START} from "./state.js";
import {readFileSync} from "node:fs";
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map((text) => [textOf(stateOf(text)), stateOf(textOf(stateOf(text))), stateOf(text), Object.isFrozen(stateOf(text))])));
"""


STEPS = """
import {decode} from "./packed.js";
import {treeOf, stepped, stepWords, leftHeavy, bottomUp} from "./shape.js";
import {readFileSync} from "node:fs";
const bytes = readFileSync("nodes.packed"), nodes = decode(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), whole = treeOf(nodes, false);
const sums = (tree, values) => {
    const all = {};
    for (let i = 0; i < tree.n; i++)
        all[nodes.text("name", tree.of[i])] = (all[nodes.text("name", tree.of[i])] || 0) + values[i];
    return all;
};
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map((trail) => {
    const tree = trail.reduce(stepped, whole), heavy = leftHeavy(tree), up = bottomUp(tree);
    const roots = up.value.map((value, i) => (up.depth[i] ? 0 : value));
    return {words: trail.flatMap(stepWords), total: tree.total, sums: sums(tree, tree.value), own: sums(tree, tree.self), heavy: sums(heavy, heavy.self), up: sums(up, roots)};
})));
"""


def node(scratch, script, data):
    result = subprocess.run(["node", "--input-type=module", "-e", script], cwd=scratch, input=data, capture_output=True, check=False)
    if result.returncode:
        failures.append(f"node: {result.stderr.decode()[:1500]}")
        return None
    return json.loads(result.stdout)


def check_decoding(scratch, rng):
    for n in (0, 1, 7, 8, 300):
        columns = make_answer(rng, n)
        made = node(scratch, DECODE, pack(columns, n))
        if not made:
            return
        expect((made["n"], made["more"], made["name"]) == (n, 3, "rows"), f"the head of {n} rows is {made['n'], made['more'], made['name']}")
        for about, values in columns:
            have = made["columns"][about["key"]]
            expect(have == values, f"{n} rows of {about}: {have[:4]}, not {values[:4]}")
        expect(made["items"] == made["columns"]["item"] and made["isOneId"], f"{n} rows: the numbers of items are those of {made['items'][:6]}")


def check_sorting(scratch, rng):
    special = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, 1e300, 1e300 * (1 + 1e-15), 5e-324, None]
    lists = [[], [1.0], [3.0] * 5] + [[rng.choice([rng.uniform(-9, 9), rng.choice(special)]) for _ in range(rng.randrange(2, 400))] for _ in range(20)]
    sent = [[value if value is None or math.isfinite(value) else str(value).replace("inf", "Infinity") for value in each] for each in lists]
    made = node(scratch, SORT, json.dumps(sent).encode())
    for each, (falling, rising) in zip(lists, made or []):
        for order, sign in ((falling, -1), (rising, 1)):
            # -0 and 0 differ in their bits: either may come first
            have = [math.inf if each[i] is None else sign * each[i] for i in order]
            want = sorted(math.inf if value is None else sign * value for value in each)
            known = [i for i in order if each[i] is not None]
            expect(have == want and order[len(known):] == [i for i, value in enumerate(each) if value is None], f"{each[:6]} sorted is {have[:6]}, not {want[:6]}")
            ties = [(a, b) for a, b in zip(known, known[1:]) if each[a] == each[b] and each[a] != 0 and a > b]
            expect(not ties, f"equal rows changed places: {ties[:3]}")


def escaped(text):
    return "".join(chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in PLAIN) else f"%{byte:02X}" for byte in text.encode())


def check_states(scratch, rng):
    values = ["variable:a", "line:/src/cg.c:52", "function:f<int, char>(x&&)", "x=1&y#%", "\u00e4 \u20ac", "EADDR (usec)", "+", "a+b"]
    texts = [""]
    for _ in range(200):
        pairs = [f"{key}={escaped(rng.choice(values))}" for key in ("view", "active") if rng.random() < .7]
        pairs += [f"selected={escaped(rng.choice(values))}" for _ in range(rng.randrange(3))]
        pairs += [f"{key}={escaped(rng.choice(values))}" for key in ("metric", "metric2", "by", "min") if rng.random() < .3]
        pairs += [f"trail={escaped(rng.choice(values))}" for _ in range(rng.randrange(3))]
        pairs += ["filter=" + escaped(rng.choice(values))] if rng.random() < .3 else []
        pairs += ["layout=code:annotate,split:30"] if rng.random() < .3 else []
        texts.append("&".join(pairs))
    made = node(scratch, STATES, json.dumps(texts).encode())
    for text, (again, twice, once, is_frozen) in zip(texts, made or []):
        want = text if "view=" in text else "view=advice" + ("&" if text else "") + text  # the page's own first view is said
        expect(again == want, f"{text} became {again}")
        expect(once == twice and is_frozen, f"the state of {text} is not that of its own text")
        expect(re.fullmatch(r"[\w\-.~:/@!$'()*,;?%=&]*", again), f"{again} has what an address must not have")


def make_calls(rng, depth):
    """A node of a literal: functions that call each other and themselves, with lines that cost something."""
    below = [make_calls(rng, depth - 1) for _ in range(rng.randrange(1, 4))] if depth else []
    for _ in range(rng.randrange(2) if depth else 1):
        cost, line = float(rng.randrange(1, 50)), rng.randrange(1, 9)
        below.append({"frame": {"name": f"line {line}", "type": "line", "line": line}, "metrics": {"time": cost, "time (inc)": cost}})
    name = rng.choice(["a", "b", "c", 'operator"" it\'s<\\>'])
    return {"frame": {"name": name, "type": "function"}, "metrics": {"time": 0.0, "time (inc)": sum(each["metrics"]["time (inc)"] for each in below)}, "children": below}


def check_steps(scratch, rng):
    """Each step of a trail gives the numbers of the hpcquery chain that the page prints for it."""
    build = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
    for _ in range(3):
        literal = scratch / "calls.json"
        literal.write_text(json.dumps([make_calls(rng, 6)]), encoding="utf-8")
        asked = subprocess.run([build / "tests" / "lib" / "ask-packed", literal, '{"report":"nodes"}'], capture_output=True, check=False)
        expect(asked.returncode == 0, f"nodes of a literal: {asked.stderr.decode()}")
        (scratch / "nodes.packed").write_bytes(asked.stdout)
        names = ["a", "b", "c", 'operator"" it\'s<\\>']
        trails = [[]] + [[f"{word} {rng.choice(names)}" for word in rng.sample(["focus", "merge", "drop", "collapse"], rng.randrange(1, 4))] for _ in range(12)]
        for trail, have in zip(trails, node(scratch, STEPS, json.dumps(trails).encode()) or []):
            words = [word for step in have["words"] for word in (*step, ":")]
            made = subprocess.run([build / "hpcquery", *words, "csv", literal], capture_output=True, check=False, text=True)
            want = {}
            for row in csv.DictReader(io.StringIO(made.stdout)):
                want[row["name"]] = want.get(row["name"], 0) + float(row["time (inc)"])
            expect(made.returncode == 0 or not have["total"], f"{trail}: {made.stderr}")
            expect(have["sums"] == want, f"{trail}: {have['sums']}, but hpcquery has {want}")
            own = {name: value for name, value in have["own"].items() if value}
            for way in ("heavy", "up"):
                expect({name: value for name, value in have[way].items() if value} == own, f"{trail}, {way}: {have[way]}, not {own}")


def main():
    rng = random.Random(7)
    check_names()
    check_types()
    if not shutil.which("node"):
        print("SKIP: no node" if not failures else "\n".join(failures))
        sys.exit(1 if failures else 77)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for path in WEB.glob("*.js"):
            shutil.copy(path, scratch)
        (scratch / "package.json").write_text('{"type": "module"}', encoding="utf-8")
        check_decoding(scratch, rng)
        check_sorting(scratch, rng)
        check_states(scratch, rng)
        check_steps(scratch, rng)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
