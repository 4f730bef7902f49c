#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What Hatchet's own tests of queries and of frames ask, asked of the package locus: hatchet-cases.txt has graphs, expressions and
Hatchet's results. Ours are the same, or differ by a decision, which doc/from-hatchet.md lists: its table of them is made by this
test (`hatchet-cases.py --write`). With LOCUS_HATCHET_PYTHON, an interpreter that can import Hatchet, the facts are compared with what
it says; `hatchet-cases.py --facts` prints that, under such an interpreter."""
import math
import operator
import os
import pathlib
import re
import subprocess
import sys

PYTHON = "/usr/bin/python3"
SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
DATA = SOURCE.parent / "shared" / "data" / "hpctoolkit" / "hatchet" / "hpctoolkit-cpi-database"
CASES = SOURCE / "tests" / "golden" / "hatchet-cases.txt"
GUIDE = SOURCE / "doc" / "from-hatchet.md"
HEAD = "| asked | Hatchet | here | why |\n|---|---|---|---|\n"


class Case:
    """An expression about a graph; theirs, ours: what comes of it; word: why they differ, "" where they do not."""

    def __init__(self, line):
        self.test, self.graph, self.expression = line.split(" ", 3)[1:]
        self.theirs = self.ours = None
        self.word = ""

    def __str__(self):
        return f"{self.test}: {self.graph}: {self.expression}"


def read():
    """Graphs {name: lines}, cases, and decisions {word: sentences of the table}."""
    graphs, cases, decisions, lines = {}, [], {}, None
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line.startswith("graph "):
            lines = graphs.setdefault(line[6:], [])
        elif line.startswith("case "):
            cases.append(Case(line))
        elif line.startswith("-> "):
            cases[-1].theirs = cases[-1].ours = line[3:]
        elif line.startswith("here "):
            _, cases[-1].word, cases[-1].ours = line.split(" ", 2)
        elif line.startswith("differs "):
            word, row = line[8:].split(" ", 1)
            decisions[word] = row
        elif line and not line.startswith("#"):
            lines.append(line)
    return graphs, cases, decisions


def literal(lines):
    """The lines of a graph as a literal."""
    roots, above, shared = [], [], {}
    for number, line in enumerate(lines):
        name, own, whole, *rest = line.split()
        metrics = {key: float(text) for key, text in (("time (inc)", whole), ("time", own)) if text != "-"}
        found = {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": []}
        for word in rest:
            if word[0] in "=&":
                metrics["_hatchet_nid"] = shared.setdefault(word[1:], number)
            else:
                metrics["module"] = word
        depth = len(line) - len(line.lstrip())
        (above[depth - 1]["children"] if depth else roots).append(found)
        above[depth:] = [found]
    if shared:
        for number, found in enumerate(every(roots)):
            found["metrics"].setdefault("_hatchet_nid", number)
    return roots


def every(nodes):
    """The nodes of a literal, in its order."""
    for node in nodes:
        yield node
        yield from every(node["children"])


def paths(lines):
    """The numbers of the nodes of a graph by the names on the way to them."""
    above, found = [], {}
    for number, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        above[depth:] = [line.split()[0]]
        found.setdefault(tuple(above), number)
    return found


def name_of(node):
    """What a node is called: its name, or the place of a line."""
    return node.frame.get("name") or f"{node.frame.get('file').rpartition('/')[2]}:{node.frame.get('line')}"


class Asked:
    """What expressions may name; of: what tells the two packages apart."""

    def __init__(self, package, graphs):
        import numpy
        import pandas
        self.graphs, self.package = graphs, package
        self.known = {"np": numpy, "pd": pandas, "math": math, "operator": operator, "of": self.of,
                      "unit": 1e6 if package.__name__ == "hatchet" else 1}
        for name in ("GraphFrame", "Query", "QueryMatcher", "ObjectQuery", "StringQuery", "CypherQuery", "parse_cypher_query", "AndQuery",
                     "OrQuery", "XorQuery", "IntersectionQuery", "UnionQuery", "SymDifferenceQuery"):
            self.known[name] = getattr(package, name, None) or getattr(package.query, name)
        self.known.update((name, getattr(package, long, None) or getattr(package.query, long)) for name, long in (
            ("And", "ConjunctionQuery"), ("Or", "DisjunctionQuery"), ("Xor", "ExclusiveDisjunctionQuery"), ("Not", "NegationQuery")))
        self.known.update((name, getattr(self, name)) for name in (
            "find", "found", "names", "cost", "edges", "sums", "put", "kept", "updated", "summed", "united", "dropped", "exclusive"))

    def of(self, name):
        """The frame of a graph."""
        if name.startswith("cpi"):
            frame = self.package.GraphFrame.from_hpctoolkit(str(DATA))
            return self.dropped(frame) if name == "cpi-dropped" else frame
        lines = self.graphs[{"mock-line": "mock", "modules0": "small1"}.get(name, name)]
        made = literal(lines)
        if name == "mock-line":
            for node in every(made):
                node["metrics"]["line"] = node["metrics"].pop("time")
        if name == "modules0":
            made[0]["metrics"]["module"] = "main"
        return self.package.GraphFrame.from_literal(made)

    def ask(self, case):
        """What comes of an expression, as a text."""
        self.lines = self.graphs.get(case.graph)
        try:
            return said(eval(case.expression, {**self.known, "gf": self.of(case.graph)}))
        except Exception as error:
            if "--trace" in sys.argv:
                print(f"{case}: {type(error).__name__}: {error}", file=sys.stderr)
            return "error"

    def table(self, frame, column):
        """A column by node."""
        return frame.dataframe[column]

    def find(self, frame, query):
        """The numbers of the nodes that a query finds."""
        number = paths(self.lines)
        return sorted({number[tuple(n.frame["name"] for n in node.path())] for node in self.nodes(frame, query)})

    def found(self, frame, query):
        """Their names, where a graph is not in the text."""
        return sorted(name_of(node) for node in self.nodes(frame, query))

    def names_of(self, frame):
        return [name_of(node) for node in frame.graph.traverse()]

    def names(self, frame):
        """The names of a frame's nodes."""
        return sorted(self.names_of(frame))

    def cost(self, frame, column):
        """What each node costs."""
        values = self.table(frame, column)
        return sorted(f"{node.frame['name']} {float(values.loc[node]):g}" for node in frame.graph.traverse())

    def edges(self, frame):
        """Who calls whom."""
        return sorted({node.frame["name"] + child.frame["name"] if len(node.frame["name"]) == 1 else
                       f"{node.frame['name']}>{child.frame['name']}" for node in frame.graph.traverse() for child in node.children})

    def sums(self, frame):
        """The sums of both columns."""
        return [float(frame.dataframe[name].sum()) for name in ("time", "time (inc)")]

    def put(self, frame, column, first, *others):
        """The frame with a column that is one number, or another one where it is not the first root."""
        frame.dataframe[column] = others[0] if others else first
        frame.dataframe.loc[frame.graph.roots[0], column] = first
        if column not in frame.exc_metrics and self.package.__name__ == "hatchet":
            frame.exc_metrics.append(column)
        return frame

    def kept(self, frame, letters, squash=True):
        """The nodes of some names."""
        return frame.filter(lambda row: row["node"].frame["name"] in letters, squash=squash)

    def updated(self, frame):
        """The frame with inclusive columns made anew."""
        frame.update_inclusive_columns()
        return frame

    def summed(self, frame, *operands):
        """The frame after subtree_sum."""
        frame.subtree_sum(*operands)
        return frame

    def dropped(self, frame):
        """The frame after drop_index_levels."""
        frame.drop_index_levels()
        return frame

    def exclusive(self, frame):
        """The frame with exclusive columns made of the inclusive ones."""
        frame.generate_exclusive_columns()
        return frame


class Theirs(Asked):
    def __init__(self, graphs):
        import warnings
        warnings.simplefilter("ignore")
        import hatchet
        super().__init__(hatchet, graphs)
        from hatchet.query import QueryEngine, parse_string_dialect
        from hatchet.query import ObjectQuery
        self.engine, self.parse, self.listed = QueryEngine, parse_string_dialect, ObjectQuery

    def nodes(self, frame, query):
        mode = "all" if isinstance(frame.dataframe.index, self.known["pd"].MultiIndex) else "off"
        if isinstance(query, str):
            query = self.parse(query, multi_index_mode=mode)
        elif isinstance(query, list):
            query = self.listed(query, multi_index_mode=mode)
        elif hasattr(query, "apply"):
            return query.apply(frame)
        return self.engine().apply(query, frame.graph, frame.dataframe)

    def united(self, frame, other):
        frame.unify(other)
        return frame, other

    def of(self, name):
        made = super().of(name)
        if name == "modules0":
            made.dataframe["module"] = [module if isinstance(module, str) else None for module in made.dataframe["module"]]
        return made


class Ours(Asked):
    def __init__(self, graphs):
        sys.path.insert(0, str(SOURCE / "python"))
        import locus
        super().__init__(locus, graphs)
        self.locus = locus

    def nodes(self, frame, query):
        return [self.locus.Node(n, frame) for n in frame.find(query)]

    def united(self, frame, other):
        return frame.unify(other)


def said(value):
    """A value as one line, the same in both packages."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(said, value))})"
    return str(bool(value)) if type(value).__name__ == "bool_" else str(value)


def ask_all(asked, cases):
    """{case: result}, without those whose database is not there."""
    return {case: asked.ask(case) for case in cases if DATA.is_dir() or "cpi" not in case.graph + case.expression}


def check_guide(cases, decisions):
    """The table of doc/from-hatchet.md has each decision that a case differs by."""
    used = {case.word for case in cases} - {""}
    yield from (f"a case differs by '{word}', which nothing says" for word in sorted(used - set(decisions)))
    yield from (f"no case differs by '{word}'" for word in sorted(set(decisions) - used))
    table = HEAD + "".join(f"| {row} |\n" for row in decisions.values())
    text = GUIDE.read_text(encoding="utf-8")
    made = re.sub(r"(?<=<!-- made by tests/golden/hatchet-cases.py -->\n\n).*?(?=\n\n)", lambda _: table.rstrip("\n"), text, flags=re.S)
    if "--write" in sys.argv:
        GUIDE.write_text(made, encoding="utf-8")
    elif made != text or table.rstrip("\n") not in text:
        yield f"{GUIDE.name}: the table of what differs is another one; hatchet-cases.py --write"


def check_facts(cases):
    """A Hatchet that is there says what the text says that it does."""
    python = os.environ.get("LOCUS_HATCHET_PYTHON")
    if not python:
        return
    done = subprocess.run([python, __file__, "--facts"], capture_output=True, check=False, text=True)
    if done.returncode:
        yield f"{python}: {done.stderr[-500:]}"
    found = dict(line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    for case in cases:
        if found.get(str(case), case.theirs) != case.theirs:
            yield f"{case}: Hatchet says {found[str(case)]}, and the text {case.theirs}"
    print(f"Hatchet was asked {len(found)} of {len(cases)} cases")


def main():
    graphs, cases, decisions = read()
    if "--facts" in sys.argv:
        for case, result in ask_all(Theirs(graphs), cases).items():
            print(case, result, sep="\t")
        return
    if os.environ.get("LOCUS_SANITIZER"):
        print("SKIP: a program without the sanitizer cannot load a library that has it")
        sys.exit(77)
    failures = list(check_guide(cases, decisions))
    if subprocess.run([PYTHON, "-c", "import numpy, pandas"], capture_output=True, check=False).returncode:
        print(f"SKIP: {PYTHON} has no pandas (python3-pandas)")
        sys.exit(77)
    if "--here" not in sys.argv:
        around = {**os.environ, "LOCUS_LIBRARY": str(pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / ".libs" / "liblocus.so")}
        failures += check_facts(cases)
        done = subprocess.run([PYTHON, __file__, "--here", *sys.argv[1:]], check=False, env=around)
        for sentence in failures:
            print("FAIL:", sentence)
        sys.exit(1 if failures or done.returncode else 0)
    found = ask_all(Ours(graphs), cases)
    wrong = [f"{case}\n    Hatchet: {case.theirs}\n    expected here: {case.ours}\n    here: {result}"
             for case, result in found.items() if result != case.ours]
    for sentence in wrong:
        print("FAIL:", sentence)
    for kind, ours in (("queries", True), ("frames", False)):
        of = [case for case in found if ("find(" in case.expression or "found(" in case.expression) == ours]
        print(f"{kind}: {sum(c.ours == c.theirs for c in of)} of {len(of)} as in Hatchet, {sum(c.ours != c.theirs for c in of)} decided otherwise")
    if len(found) < len(cases):
        print(f"SKIP: {len(cases) - len(found)} cases: ../shared/data/hpctoolkit/hatchet is not there")
    sys.exit(1 if wrong else 0)


main()
