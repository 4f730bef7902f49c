# SPDX-License-Identifier: BSD-3-Clause
"""What users of Hatchet know: its names for what frames do, nodes and graphs as objects, and queries in Python's own terms. Frame has
all of it (class Familiar); doc/from-hatchet.md says what differs."""
import copy
import functools
import gc
import json
import math
import numbers
import os
import pathlib
import tempfile

from locus import _abi as abi
from locus import _arrays as arrays
from locus import _library as library

_INCLUSIVE = abi.ENUMS["frame_sums"].index("FRAME_INCLUSIVE")
_FEW = 100  # nodes, of which arrays take longer than loops
_WORDS = {"mean": "mean", "average": "mean", "sum": "sum", "nansum": "sum", "nanmean": "mean", "max": "max", "amax": "max", "nanmax": "max",
          "min": "min", "amin": "min", "nanmin": "min", "std": "std", "median": "p50", "nanmedian": "p50", "count": "count",
          "count_nonzero": "count"}


class Node(int):
    """A node of a frame: its number, which the frame's methods take, with what the frame knows of it.

    >>> node = frame.graph.roots[0]
    >>> node == 0, node.name, node.frame["type"], len(node.children)
    (True, 'main', 'function', 1)
    """

    def __new__(cls, number, of):
        made = int.__new__(cls, number)
        made._of = of
        return made

    def _text(self, what):
        known = self._of._known_texts()
        return known[what][self] if known else library.text(self._of._call(f"frame_{what}", self))

    @property
    def name(self):
        """Its name."""
        return self._text("name")

    @functools.cached_property
    def frame(self):
        """What it is: a dictionary of name, type, and of file, line and module as far as they are known."""
        known = self._of._known_texts()
        if known:
            return {key: values[self] for key, values in known.items() if values[self]}
        kind = library.text(library.call("frame_kind_name", self._of._call("frame_kind", self)))
        made = {"name": self.name, "type": kind, "file": self._text("file"), "line": self._of._call("frame_line", self),
                "module": self._text("module")}
        return {key: value for key, value in made.items() if value}

    @property
    def children(self):
        """The nodes below it."""
        of = self._of
        return [Node(n, of) for n in of._children_of(self)]

    @property
    def parents(self):
        """The nodes above it: at most one in a tree."""
        return [Node(n, self._of) for n in self._of.parents(self)]

    @property
    def depth(self):
        """Steps from the nearest root."""
        return int(self._of.depths[self])

    _depth = depth
    _hatchet_nid = property(int, doc="Its number, as Hatchet calls it.")

    def path(self):
        """The nodes from a root to this one, over first parents."""
        made = [self]
        while (above := next((n for n in made[0].parents if n < made[0]), None)) is not None:
            made.insert(0, above)
        return tuple(made)

    def traverse(self, order="pre"):
        """This node and all below it, each once; order: "pre" or "post"."""
        return _traverse([self], order)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"<locus.Node {int(self)}: {self.name}>"

    def __reduce__(self):
        return int, (int(self),)


def _traverse(roots, order):
    if order not in ("pre", "post"):
        raise ValueError(f"an order is 'pre' or 'post', not {order!r:.60}")
    seen, stack = set(), [(node, False) for node in reversed(roots)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
        elif node not in seen:
            seen.add(node)
            if order == "pre":
                yield node
            else:
                stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))


class Graph:
    """The nodes of a frame and their edges. Two are equal when they have the same nodes below the same ones.

    >>> frame.graph == frame.filter("time > 0").graph, [node.name for node in frame.graph.traverse()][:2]
    (True, ['main', 'work'])
    """

    def __init__(self, of):
        self._of = of

    @property
    def roots(self):
        """The nodes without parent."""
        return [Node(n, self._of) for n in self._of.roots]

    def traverse(self, order="pre"):
        """All nodes, each once; order: "pre" or "post"."""
        if order != "pre":
            return _traverse(self.roots, order)
        return iter(self._of._all_nodes())  # nodes have their numbers in this order

    def __iter__(self):
        return self.traverse()

    def __len__(self):
        return len(self._of)

    def is_tree(self):
        """Whether every node has at most one parent."""
        return self._of.is_tree

    def _shape(self, known):
        """A number for each node that says what is at and below it, and the roots' ones; known: {what: number}, shared."""
        frame, numbers_of = self._of, [None] * len(self._of)
        order = frame._call("frame_post_order")
        for i in range(len(frame)):
            node = order[i]
            below = tuple(sorted(numbers_of[child] if numbers_of[child] is not None else -1 for child in frame._children_of(node)))
            numbers_of[node] = known.setdefault((frame._call("frame_identity", node), below), len(known))
        return len(frame), sorted(numbers_of[root] for root in frame.roots)

    def __eq__(self, other):
        if not isinstance(other, Graph):
            return NotImplemented
        if len(self) != len(other):
            return False
        if self._of._is_same_graph(other._of):
            return True
        known = {}  # siblings that are alike may stand in another order
        return self._shape(known) == other._shape(known)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"<locus.Graph: {len(self)} nodes>"


class Row:
    """A node's attributes and values as a filter function gets them: row["time"], or row.time; nan is missing. row["node"] is the
    node."""

    __slots__ = ("_columns", "_at")

    def __init__(self, columns):
        self._columns, self._at = columns, 0

    def __getitem__(self, name):
        try:
            return self._columns[name][self._at]
        except KeyError:
            raise KeyError(f"there is no column '{name}'; there are: {', '.join(self._columns)}") from None

    def __getattr__(self, name):
        if name in self._columns:
            return self._columns[name][self._at]
        raise AttributeError(name)

    def __contains__(self, name):
        return name in self._columns

    def get(self, name, default=None):
        """The cell of a column, or something else where there is no such column."""
        return self[name] if name in self._columns else default

    def keys(self):
        """The names of the columns."""
        return self._columns.keys()


class Query:
    """A query of call paths, element by element: a quantifier (".", "*", "+" or a number), and a dictionary of conditions or a function
    of a row. Queries are joined by & | ^ and turned round by ~. elements: a list of them, or a text in the language of queries.
    multi_index_mode: what a condition on numbers is about where there are several profiles: "off" the sums, "any" or "all" of the
    profiles; in a text conditions say so themselves, any(p."time" > 1). ValueError: none of these, or rel before match.

    >>> query = locus.Query().match("*").rel(".", lambda row: row["name"] == "work")
    >>> frame.find(query) == frame.find([("*", {}), {"name": "work"}])
    True
    """

    def __init__(self, elements=(), multi_index_mode="off"):
        if multi_index_mode not in ("off", "any", "all"):
            raise ValueError(f"a mode is 'off', 'any' or 'all', not {multi_index_mode!r:.60}")
        if isinstance(elements, str) and multi_index_mode != "off":
            raise ValueError(f"in a text conditions are about {multi_index_mode} of the profiles by themselves: "
                             f"{multi_index_mode}(p.\"time\" > 1)")
        self.elements, self.mode = elements if isinstance(elements, str) else list(elements), multi_index_mode

    def match(self, quantifier=".", predicate=None, **names):
        """Begins a query anew. wildcard_spec and filter_func, or wildcard, are older names of the operands. Returns the query."""
        self.elements = [_element(quantifier, predicate, names)]
        return self

    def rel(self, quantifier=".", predicate=None, **names):
        """One more element, below the others. Returns the query."""
        if not self.elements or isinstance(self.elements, str):
            raise ValueError("a query begins with match")
        self.elements.append(_element(quantifier, predicate, names))
        return self

    relation = rel

    def apply(self, frame):
        """The nodes of a frame that the query finds, as objects."""
        return [Node(number, frame) for number in frame.find(self)]

    def __and__(self, other):
        return AndQuery(self, other)

    def __or__(self, other):
        return OrQuery(self, other)

    def __xor__(self, other):
        return XorQuery(self, other)

    def __invert__(self):
        return NotQuery(self)


def _element(quantifier, predicate, names):
    """An element of a query by whatever names its operands have."""
    for name, value in names.items():
        if name in ("wildcard", "wildcard_spec"):
            quantifier = value
        elif name == "filter_func":
            predicate = value
        else:
            raise TypeError(f"an element of a query has no operand '{name}'")
    if not isinstance(quantifier, (str, int)):
        quantifier, predicate = ".", quantifier
    return quantifier if predicate is None else (quantifier, predicate)


class _Joined(Query):
    """A set that is made of the nodes of other queries."""

    word = ""

    def __init__(self, *queries):
        super().__init__()
        self.queries = queries[0] if len(queries) == 1 and isinstance(queries[0], (list, tuple)) and self.word != "not" else queries


class AndQuery(_Joined):
    """The nodes that all queries find."""

    word = "and"


class OrQuery(_Joined):
    """The nodes that any of the queries finds."""

    word = "or"


class XorQuery(_Joined):
    """The nodes that an odd number of queries find."""

    word = "xor"


class NotQuery(_Joined):
    """The nodes that a query does not find."""

    word = "not"


# What Hatchet calls them, now and in older programs.
ObjectQuery = StringQuery = CypherQuery = QueryMatcher = parse_string_dialect = parse_cypher_query = Query
ConjunctionQuery = IntersectionQuery = AndQuery
DisjunctionQuery = UnionQuery = OrQuery
ExclusiveDisjunctionQuery = SymDifferenceQuery = XorQuery
NegationQuery = NotQuery


class _Questions:
    """A query in terms of Python, as the library reads it; functions become columns of the frame."""

    def __init__(self, frame):
        self.frame, self.n, self.mode = frame, 0, "off"

    def text(self, query):
        """The text of a query."""
        if isinstance(query, Query) and isinstance(query.elements, str):
            query = query.elements
        return query if isinstance(query, str) else json.dumps(self.of(query))

    def of(self, query):
        """A query, or a joined one, as JSON has it."""
        if isinstance(query, _Joined):
            if query.word == "not":
                return {"not": self.of(query.queries[0])}
            return {query.word: [self.of(q) for q in query.queries]}
        if isinstance(query, Query):
            if isinstance(query.elements, str):
                return self.of(query.elements)
            before, self.mode = self.mode, query.mode
            made = [self.element(e) for e in query.elements]
            self.mode = before
            return made
        if isinstance(query, str):
            return json.loads(query) if query.lstrip()[:1] in ("[", "{") else query
        if isinstance(query, dict):
            return {key: self.of(value) if key == "not" else [self.of(q) for q in value] for key, value in query.items()}
        if not isinstance(query, (list, tuple)):
            raise TypeError(f"a query is a list of elements, a text, a Query or a function of a row, not {query!r:.60}")
        return [self.element(e) for e in query]

    def element(self, element):
        """A quantifier, a condition, or both."""
        if isinstance(element, (list, tuple)):
            return [self.element(part) for part in element]
        if isinstance(element, dict):
            return {str(key): self.somewhere(str(key), self.condition(value)) for key, value in element.items()}
        if callable(element):
            return self.function(element)
        return _plain(element)

    def somewhere(self, name, condition):
        """A condition on a column, about any or all profiles where the query says so."""
        if self.mode == "off" or isinstance(condition, dict) or name not in self.frame.all_columns:
            return condition
        return {self.mode: condition}

    def condition(self, value):
        """What a dictionary demands of a column."""
        if isinstance(value, dict):
            return {key: self.condition(v) for key, v in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.condition(v) for v in value]
        if isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isfinite(value):
            return f"== {float(value)}"
        return _plain(value)

    def function(self, function):
        """A condition that is true where a function of a row is."""
        name, self.n = f"function {self.n}", self.n + 1
        nodes = _numbers(_truths(self.frame, function))
        self.frame = self.frame._put(name, "plain", nodes, [0] * len(nodes), [1.0] * len(nodes))
        return {name: 1}


def _plain(value):
    """A value as json.dumps takes it; numbers of numpy are none for it."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else value


def _truths(frame, function):
    """What a function says of each node."""
    columns, n = frame._row_columns(), len(frame)
    found = arrays.truths(function, columns, lambda name: frame.values(name) if name in frame.columns else None, n)
    if found is not None:
        return found
    row, made = Row(columns), []
    for row._at in range(n):
        made.append(bool(function(row)))
    return made


def _numbers(flags):
    """The nodes whose flags are set."""
    return flags.nonzero()[0].tolist() if hasattr(flags, "nonzero") else [i for i, is_set in enumerate(flags) if is_set]


def _way(function):
    """The library's word for a function over values; None: it has none."""
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    if isinstance(function, str) and name not in _WORDS and not (name[:1] == "p" and name[1:].isdigit()):
        raise ValueError(f"'{name}' is none of {', '.join(sorted(set(_WORDS)))}, p50")
    is_known = isinstance(function, str) or (getattr(function, "__module__", "") or "").split(".")[0] in ("numpy", "builtins", "statistics")
    return _WORDS.get(name, name) if is_known and (name in _WORDS or isinstance(function, str)) else None


def _of_lists(node):
    """A literal of nested lists: a name, and lists or names of what is below."""
    name, *below = node if isinstance(node, (list, tuple)) else [node]
    made = {"frame": {"name": str(name), "type": "function"}, "metrics": {"time": 1.0}}
    return {**made, "children": [_of_lists(child) for child in below]}


class Familiar:
    """The part of Frame that users of Hatchet know."""

    # --- opened ---

    @classmethod
    def from_literal(cls, literal):
        """A frame of Hatchet's literal: a list of dictionaries (or one), their text, or a file that has it.

        >>> locus.Frame.from_literal([{"frame": {"name": "main"}, "metrics": {"time": 2.0}}]).names
        ['main']
        """
        if hasattr(literal, "read"):
            literal = literal.read()
        if isinstance(literal, dict):
            literal = [literal]
        if isinstance(literal, (list, tuple)):
            handle = library.ctypes.c_void_p()
            if library.attempt("frame_open_objects", id(literal), handle):
                return cls(handle)
            literal = json.dumps(literal, default=_plain, allow_nan=True)
        data = literal if isinstance(literal, bytes) else library.data(literal)
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "literal"
            path.write_bytes(data)
            try:
                made = cls.open(path)
                made._path = None
                return made
            except library.Error as error:
                raise library.Error(error.code, str(error).replace(str(path), "literal")) from None

    @classmethod
    def from_lists(cls, *lists):
        """A frame of nested lists: ["main", ["f", "g"], "h"] is main, which calls f and h, and f, which calls g. Each node costs 1.

        >>> list(locus.Frame.from_lists(["main", ["f", "g"], "h"]).values("time (inc)"))
        [4.0, 2.0, 1.0, 1.0]
        """
        return cls.from_literal([_of_lists(node) for node in lists]).run("inclusive")

    # --- nodes ---

    @property
    def graph(self):
        """Its nodes and edges, as objects: a Graph.

        >>> [node.name for node in frame.graph.roots]
        ['main']
        """
        return Graph(self)

    def traverse(self, order="pre"):
        """All nodes, each once, as objects; order: "pre" or "post".

        >>> [node.name for node in frame.traverse("post")][-1]
        'main'
        """
        return self.graph.traverse(order)

    def __iter__(self):
        return self.traverse()

    # --- tables ---

    @property
    def dataframe(self):
        """The table of pandas by node, and by rank and thread where these are known. It belongs to the frame: a column that is set
        there, or whose values are changed, is the frame's from then on.

        >>> frame.dataframe["twice"] = 2 * frame.dataframe["time"]
        >>> "twice" in frame.columns
        True
        """
        if self._dataframe is None:
            from locus import _pandas
            self._dataframe = _pandas.dataframe(self)
        return self._dataframe

    @dataframe.setter
    def dataframe(self, table):
        if "node" not in table.index.names:
            raise ValueError("the table of a frame has a level node, with numbers of nodes")
        self._dataframe = table

    def __getitem__(self, name):
        return self.dataframe[name]

    def __setitem__(self, name, values):
        self.dataframe[name] = values

    def __contains__(self, name):
        return name in self.columns

    @property
    def exc_metrics(self):
        """The names of the columns of the nodes alone; inc_metrics: with all below them.

        >>> frame.exc_metrics, frame.inc_metrics
        (['time'], ['time (inc)'])
        """
        return [name for name in self.columns if self.sums(name) == "exclusive"]

    @property
    def inc_metrics(self):
        """The columns of the nodes and all below them."""
        return [name for name in self.columns if self.sums(name) == "inclusive"]

    @property
    def default_metric(self):
        """The column that is meant where none is named; it can be set."""
        return self.default_column

    @default_metric.setter
    def default_metric(self, name):
        self._column(name)
        self._default = name

    def show_metric_columns(self):
        """The names of the columns that are not hidden."""
        return self.columns

    def flat_profile(self, groupby_column=None, as_index=True):
        """The table of pandas of what each name, or another attribute, costs by column, the largest first.

        >>> frame.flat_profile("name")["time"].to_dict()
        {'work': 4.0, 'main': 1.0}
        """
        key = _attribute(groupby_column or "name")
        table = self.group(key).to_pandas().sort_values(by=self.default_column, ascending=False, kind="stable")
        table = table[["name", *self.columns]].rename(columns={"name": groupby_column or "name"})
        return table.set_index(groupby_column or "name") if as_index else table

    def correlation_analysis(self, metrics=None, method="spearman"):
        """How columns correlate over the nodes, from -1 to 1: a table of pandas."""
        return self.to_pandas(metrics)[metrics or self.columns].corr(method=method)

    # --- fewer nodes ---

    def filter(self, what, squash=True, num_procs=None):
        """The nodes that a condition ("time > 1"), a function of a row (the sums of all profiles), or a query names. squash: the others
        go, and their costs; False: they stay, without values.

        >>> frame.filter(lambda row: row["time"] > 2).names == frame.filter("time > 2").names
        True
        """
        del num_procs
        if callable(what):
            return self._left(_truths(self, what), squash)
        if not isinstance(what, str) or what.lstrip().upper().startswith(("MATCH", "{", "[")):
            return self.query(what, squash)
        return self.run("filter", what) if squash else self._left(self.test(what), False)

    def _left(self, keep, squash):
        """What filter makes of flags of the nodes."""
        if not (keep.any() if hasattr(keep, "any") else any(keep)):
            raise library.Error(abi.ERR_NOT_FOUND, "no node is left")
        if squash:
            return self.squash(keep)
        made = self.mask(keep)
        made._kept = keep
        return made

    def query(self, query, squash=True):
        """The nodes on the call paths that a query names: a text, a list of elements, or a Query.

        >>> frame.query(["*", {"name": "work"}]).names
        ['main', 'work']
        """
        return self._left(self._flags_of(query), squash)

    def squash(self, keep=None):
        """The nodes with keep[node], below the nearest of them that is above; costs of the others are gone. keep None: those that
        filter(squash=False) has left, or else those that have values.

        >>> frame.filter("time > 2", squash=False).squash().names
        ['work']
        """
        if keep is None:
            keep = self._kept
        if keep is None:
            keep = [False] * len(self)
            for name in self.columns:
                values = self.values(name)
                if hasattr(values, "dtype"):
                    keep = keep | (values == values)
                else:
                    keep = [is_known or value == value for is_known, value in zip(keep, values)]
        return self._made("frame_squash", self._flags(keep))

    def drop_index_levels(self, function="mean"):
        """Makes one profile of all, in place: the mean of each node's values, or what another function makes of them. A profile without
        a value counts as 0. Returns the frame.

        >>> frame.copy().drop_index_levels(function=max).profiles[0].name
        'all'
        """
        way, made = _way(function), self.run("aggregate", "all", _way(function) or "sum")
        if way is None:
            n = max(len(self.profiles), 1)
            for name in self.columns:
                found = {}
                for node, _, value in _rows_of(self.cells(name)):
                    found.setdefault(node, []).append(value)
                below = {node: float(function(values + [0.0] * (n - len(values)))) for node, values in found.items()}
                made = made._put(name, self.sums(name), list(below), [0] * len(below), list(below.values()))
        return self._become(made)

    def groupby(self, column, function="sum", edges=False):
        """One node for each value of an attribute. function: over the values of the nodes in each profile, or a dictionary of functions
        by column; sums count inclusive costs of the outermost nodes alone. edges: with who calls whom among the groups.

        >>> frame.groupby("type", max).names
        ['function']
        """
        key, words = _attribute(column), ["edges"] if edges else []
        ways = function if isinstance(function, dict) else {name: function for name in self.columns}
        way = _only({name: _way(how) for name, how in ways.items()}, self.all_columns)
        if way is not None:
            return self.run("group", key, *words, way)
        made = self.run("group", key, *words)
        others = {name: how for name, how in ways.items() if _way(how) != "sum"}
        if others:
            group_of = {name: i for i, name in enumerate(made.names)}
            keys = [group_of[text] for text in self._keys(key)]
        for name, how in others.items():
            made = made._put(name, self.sums(name), *_grouped(self.cells(name), keys, how))
        return made

    def groupby_aggregate(self, groupby_column, agg_function="sum"):
        """groupby with edges: who calls whom among the groups.

        >>> frame.groupby_aggregate("name", {"time": max}).names
        ['main', 'work']
        """
        return self.groupby(_one(groupby_column), agg_function, edges=True)

    def _keys(self, attribute):
        """What names the group of each node."""
        if attribute in ("name", "file", "module", "kind") and attribute not in self.attributes:
            return getattr(self, attribute + "s")
        values = self.lines if attribute == "line" and attribute not in self.attributes else self.attribute(attribute)
        return [v if isinstance(v, str) else "" if v != v else f"{v:.15g}" for v in values]

    def flatten(self, groupby_column=None):
        """One node for each function, or for each value of an attribute.

        >>> frame.flatten("kind").names
        ['function']
        """
        return self.run("group", _attribute(groupby_column)) if groupby_column else self.run("flat")

    def to_callgraph(self):
        """Functions, and who calls them.

        >>> frame.to_callgraph().names
        ['main', 'work']
        """
        return self.run("callgraph")

    # --- sums ---

    def update_inclusive_columns(self):
        """Computes the inclusive column of every exclusive one anew, in place. Returns the frame.

        >>> list(frame.copy().update_inclusive_columns().values("time (inc)"))
        [5.0, 4.0]
        """
        return self._become(self.run("inclusive"))

    def calculate_inclusive_metrics(self):
        """Computes the inclusive column of every exclusive one anew, in place, as update_inclusive_columns. Returns the frame."""
        return self.update_inclusive_columns()

    def generate_exclusive_columns(self, inc_metrics=None):
        """Computes the exclusive columns that inclusive ones lack, in place; inc_metrics: of these alone. Returns the frame."""
        names = self.columns
        wanted = [name for name in ([inc_metrics] if isinstance(inc_metrics, str) else inc_metrics or names)
                  if name not in names or self._lacks_exclusive(name)]
        return self.calculate_exclusive_metrics(wanted) if wanted else self

    def _lacks_exclusive(self, name):
        at = self._column(name)
        return _INCLUSIVE == self._call("frame_column_sums", at) and self._call("frame_column_pair", at) == library.NO_COLUMN

    def calculate_exclusive_metrics(self, columns=None):
        """Computes exclusive columns from the inclusive ones, in place. Returns the frame."""
        made = self.run("exclusive")
        for name in columns or ():
            made._column(name)
        return self._become(made)

    def subtree_sum(self, columns, out_columns=None, function="sum"):
        """Sets columns (out_columns, None: the same) to the sums of others over each node and all below it, in place; function: what is
        computed instead, of the values of a node and of what came of its children. Returns the frame."""
        made, out_columns = self, columns if out_columns is None else out_columns
        if len(columns) != len(out_columns):
            raise ValueError(f"{len(out_columns)} names for {len(columns)} columns")
        for name, out in zip(columns, out_columns):
            cells = _below(self, name, function)
            made = made._put(out, "inclusive", *cells)
        return self._become(made)

    def subgraph_sum(self, columns, out_columns=None, function="sum"):
        """Sets columns to the sums of others over each node and all below it, in place, as subtree_sum: in graphs every node below
        counts once where the function is sum. Returns the frame."""
        return self.subtree_sum(columns, out_columns, function)

    # --- several frames ---

    def _arithmetic(self, word, other, function, is_turned=False):
        """An operation of two frames, or of every value and a number."""
        if isinstance(other, Familiar):
            return self.run(word, other)
        if not isinstance(other, numbers.Real):
            return NotImplemented
        made, number = self, float(other)
        for name in self.all_columns:  # hidden ones, too, as where two frames are added
            nodes, profiles, values = self.cells(name)
            made = made._put(name, self.sums(name), nodes, profiles, _each(values, number, word, function, is_turned))
        return made

    def __add__(self, other):
        return self._arithmetic("add", other, lambda a, b: a + b)

    def __radd__(self, other):
        """0 + frame is the frame, so that sum([a, b]) is a + b."""
        return self.copy() if isinstance(other, numbers.Real) and other == 0 else self.__add__(other)

    def __sub__(self, other):
        return self._arithmetic("subtract", other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._arithmetic("subtract", other, lambda a, b: a - b, True)

    def __mul__(self, other):
        return self._arithmetic("multiply", other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._arithmetic("divide", other, _quotient)

    def __rtruediv__(self, other):
        return self._arithmetic("divide", other, _quotient, True)

    def __neg__(self):
        return self * -1

    __array_ufunc__ = None  # a number of numpy leaves + - * / to us

    def add(self, other):
        """self + other."""
        return self + other

    def sub(self, other):
        """self - other.

        >>> list(frame.sub(frame).values("time"))
        [0.0, 0.0]
        """
        return self - other

    def mul(self, other):
        """self * other."""
        return self * other

    def div(self, other):
        """self / other."""
        return self / other

    def __eq__(self, other):
        return self.equal(other) if isinstance(other, Familiar) else NotImplemented

    __hash__ = object.__hash__

    def unify(self, *others):
        """The frames [self, *others] with the nodes of all.

        >>> [len(one) for one in frame.unify(frame)]
        [2, 2]
        """
        frames = [self, *others]
        handles = (library.ctypes.c_void_p * len(frames))(*(f._synced().value for f in frames))
        made = (library.ctypes.c_void_p * len(frames))()
        library.check("frame_unify", handles, len(frames), made)
        return [type(self)(library.ctypes.c_void_p(handle)) for handle in made]

    def copy(self):
        """The same frame, of its own: what is set in the table of one is not in the other's."""
        self._synced()
        return self._twin()

    def deepcopy(self):
        """The same frame, of its own, as copy: what is set in the table of one is not in the other's."""
        return self.copy()

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, _):
        return self.copy()

    def __reduce__(self):
        return _restored, (type(self), self._saved(), copy.copy(self._kept), self._default)

    # --- what stands out ---

    def load_imbalance(self, metric_column=None, threshold=None, verbose=False):
        """Mean, maximum and imbalance (maximum / mean) of a column over the profiles, for the nodes whose largest value is at least
        threshold: "time mean", "time max", "time imbalance", and as Hatchet has them "time.mean", "time.max", "time.imbalance".
        verbose: the profiles with the largest values are named, which they always are here.

        >>> list(frame.load_imbalance("time").values("time.imbalance"))
        [1.0, 1.0]
        """
        del verbose
        name = _one(metric_column) or self.default_column
        made = self.run("imbalance", name)
        for word in ("mean", "max", "imbalance"):
            quoted = f"{name} {word}".replace("\\", "\\\\").replace("'", "\\'")
            made = made._made("frame_derive", library.data(f"{name}.{word}"), library.data(f"'{quoted}'"))
        if threshold is None:
            return made
        return made.squash([value >= threshold for value in made.values(f"{name} max")])

    # --- printed ---

    def tree(self, metric_column=None, annotation_column=None, precision=3, name_column="name", expand_name=False, context_column="file",
             rank=None, thread=None, depth=None, highlight_name=False, colormap=None, invert_colormap=False, color=False, top=0,
             least=None, unicode=True, width=0, title=None):
        """The frame as an indented text, the largest first, what each node costs with and without what it calls. rank, thread: of
        these alone; depth: levels; least: percent of the total below which nodes are left out (1). What else Hatchet has to
        say about looks is taken and has no effect.

        >>> "main" in frame.tree()
        True
        """
        del annotation_column, precision, name_column, expand_name, context_column, highlight_name, colormap, invert_colormap
        columns = [metric_column] if isinstance(metric_column, str) or metric_column is None else list(metric_column)
        return self.export("tree", columns[0], columns[1:], self._somewhere(rank, thread), color=color, depth=depth or 0,
                           top=top, least=least, unicode=unicode, width=width, title=title)

    def to_dot(self, metric=None, name="name", rank=None, thread=None, threshold=0.0):
        """The graph in the language of Graphviz, a text; threshold: percent of the total below which nodes are left out.

        >>> frame.to_dot(threshold=1)[:7]
        'digraph'
        """
        del name
        return self.export("dot", metric, (), self._somewhere(rank, thread), least=threshold or None)

    def to_flamegraph(self, metric=None, name="name", rank=None, thread=None, threshold=0.0):
        """Folded stacks, a line each, for tools that draw flame graphs; export("flamegraph") draws one itself.

        >>> print(frame.to_flamegraph("time"), end="")
        main 1
        main;work 4
        """
        del name
        return self.export("folded", metric, (), self._somewhere(rank, thread), least=threshold or None)

    def to_literal(self, name="name", rank=None, thread=None):
        """The literal that from_literal and Hatchet's read: a list of dictionaries.

        >>> locus.Frame.from_literal(frame.to_literal()).names
        ['main', 'work']
        """
        del name
        text = self.export("literal", None, (), self._somewhere(rank, thread))
        is_collecting = gc.isenabled()
        gc.disable()  # nothing of what is made can be garbage, and looking for it takes half of the time
        try:
            return json.loads(text)
        finally:
            if is_collecting:
                gc.enable()

    def _somewhere(self, rank, thread):
        """The profiles of a rank and a thread; None: all. A single profile that knows no rank or thread, as after drop_index_levels,
        is what Hatchet has without these levels: there is nothing to choose."""
        if len(self.profiles) == 1 and self.profiles[0].rank is None and self.profiles[0].thread is None:
            return None
        said = [f"{what} = {int(number)}" for what, number in (("rank", rank), ("thread", thread)) if number is not None]
        return self.find_profiles(" and ".join(said)) if said else None


def _only(ways, columns):
    """The word that says what is made of all columns; None: there is none, or several."""
    words = set(ways.values())
    return words.pop() if len(words) == 1 and ways.keys() >= set(columns) else None


def _one(names):
    """The one name of a list with one, as Hatchet takes, too; else what it is."""
    return names[0] if isinstance(names, (list, tuple)) and len(names) == 1 else names


def _attribute(name):
    """Our name of an attribute of Hatchet."""
    return "kind" if name == "type" else name


def _quotient(a, b):
    return a / b if b else math.nan


def _each(values, number, word, function, is_turned):
    """A function of every value and a number."""
    if hasattr(values, "dtype"):
        if word != "divide":
            return function(number, values) if is_turned else function(values, number)
        below = values.copy() if is_turned else number
        if is_turned:
            below[below == 0] = math.nan
        return number / below if is_turned else values / (below or math.nan)

    def one(value):
        return function(number, value) if is_turned else function(value, number)
    return [one(float(value)) for value in values]


def _rows_of(cells):
    """(node, profile, value) of each cell, as Python's own numbers."""
    return zip(*(column.tolist() for column in cells))


def _grouped(cells, keys, function):
    """(groups, profiles, values) of cells whose nodes are in groups keys[node]."""
    found, how = {}, _function(function)
    if arrays.numpy and len(keys) > _FEW:
        return arrays.grouped(cells, keys, _way(function), how)
    for node, profile, value in _rows_of(cells):
        found.setdefault((keys[node], profile), []).append(value)
    return [g for g, _ in found], [p for _, p in found], [float(how(values)) for values in found.values()]


def _percentile(values, percent):
    values = sorted(values)
    at = (len(values) - 1) * percent / 100
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def _function(function):
    """A function of a list of values."""
    way = _way(function)
    if way is None:
        return function
    mean = {"sum": sum, "max": max, "min": min, "count": len, "mean": lambda v: sum(v) / len(v),
            "std": lambda v: math.sqrt(sum((x - sum(v) / len(v)) ** 2 for x in v) / len(v))}
    return mean[way] if way in mean else lambda values: _percentile(values, float(way[1:]))


def _below(frame, name, function):
    """(nodes, profiles, values) of a function over each node and those below it."""
    if _way(function) == "sum":
        alone = frame._put("alone", "exclusive", *frame.cells(name)).run("inclusive")
        return alone.cells("alone (inc)")
    if arrays.numpy and len(frame) > _FEW and _way(function) in ("max", "min") and frame.is_tree:
        return arrays.extremes_below(frame.cells(name), len(frame.profiles), frame._nodes("parents", library.ctypes.c_uint32)[:len(frame)],
                                     frame.depths, _way(function))
    how, made = _function(function), {}
    for node, profile, value in _rows_of(frame.cells(name)):
        made.setdefault(node, {})[profile] = [value]
    order, done = frame._call("frame_post_order"), {}
    for i in range(len(frame)):
        node = order[i]
        found = made.get(node, {})
        for child in frame._children_of(node):
            for profile, value in done.get(child, {}).items():
                found.setdefault(profile, []).append(value)
        done[node] = {profile: float(how(values)) for profile, values in found.items()}
    rows = [(node, profile, value) for node, values in done.items() for profile, value in values.items()]
    return tuple(list(column) for column in zip(*rows)) if rows else ([], [], [])


def _restored(kind, data, kept, default):
    """A frame of what pickle has kept."""
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name, "frame.db").write_bytes(data)
        made = kind.open(os.fspath(name))
    made._kept, made._default = kept, default
    return made
