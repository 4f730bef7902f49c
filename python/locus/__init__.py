# SPDX-License-Identifier: BSD-3-Clause
"""Databases of Locus, asked for the reports of hpcquery; and profiles of Locus, HPCToolkit, Hatchet, Caliper, callgrind, pprof and
others as frames: opened, queried, changed and compared. Both by liblocus, with values as arrays (of numpy where it is there) or as tables of
pandas.

    import locus
    session = locus.Session("database")
    answer = session.ask("vars", by="thread", top=10)
    answer["share"], answer[0], answer.to_pandas()    a column, a row, a table

    frame = session.frame()                 or locus.Frame.open("profile"), of any tool
    frame.values("time")                    one number for each node
    frame.filter('time > 1 and name =~ "^MPI_"').flat().to_pandas()
    frame.query('MATCH (".", p)->("*") WHERE p."name" = "solve"')
    frame.select([4, 7])                    the text of a query that finds these nodes again
    after - before                          by node and profile

Frames do not change: every operation makes a new one, but those that say "in place", and what is set in frame.dataframe. A database
has two trees that hold the same costs, of code and of data: a frame has that of code unless "data" or "both" is asked for, since sums
over all nodes of both count everything twice. Between functions stand nodes of lines, loops and calls. In a notebook a frame is shown as the table of its hot nodes. Errors are
locus.Error, whose text says what is wrong and where."""
import array
import collections
import collections.abc
import ctypes
import functools
import html
import inspect
import math
import os
import pathlib
import weakref

from locus import _abi as abi
from locus import _library as library
from locus._hatchet import (AndQuery, ConjunctionQuery, CypherQuery, DisjunctionQuery, ExclusiveDisjunctionQuery, Familiar, Graph,
                            IntersectionQuery, NegationQuery, Node, NotQuery, ObjectQuery, OrQuery, Query, QueryMatcher, StringQuery,
                            SymDifferenceQuery, UnionQuery, XorQuery, _numbers, _Questions, parse_cypher_query, parse_string_dialect)
from locus._library import Error
from locus._session import Answer, Report, Session, reports, runs
from locus._tables import Table
from locus._widget import Tree

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

__version__ = "0.1.0"
__all__ = ["AndQuery", "Answer", "ConjunctionQuery", "CypherQuery", "DisjunctionQuery", "Error", "ExclusiveDisjunctionQuery", "Frame", "Graph",
           "GraphFrame", "IntersectionQuery", "NegationQuery", "Node", "NotQuery", "ObjectQuery", "OrQuery", "Profile", "Query", "QueryMatcher",
           "Report", "Session", "StringQuery", "SymDifferenceQuery", "Table", "Tree", "UnionQuery", "XorQuery", "forms", "operations",
           "parse_cypher_query", "parse_string_dialect", "reports", "runs"]

def __dir__():
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"])


Profile = collections.namedtuple("Profile", "name rank thread process node")
Profile.__doc__ = "Somewhere that values were measured: a thread, a rank, a file. None: not known. node: the host, from 0."
Difference = collections.namedtuple("Difference", "node before after")
_AGGREGATES, _SUMS, _SELECTED_BY = (tuple(value.removeprefix(prefix).lower() for value in abi.ENUMS[name]) for name, prefix in (
    ("frame_aggregate", "FRAME_"), ("frame_sums", "FRAME_"), ("query_by", "QUERY_BY_")))


def _array(code, pointer, n):
    """A copy of n numbers: an array of numpy, or of the module array."""
    size = 1 if code == "b" else array.array(code).itemsize
    data = ctypes.string_at(pointer, n * size) if n else b""
    if numpy:
        return numpy.frombuffer(data, dtype={"d": numpy.float64, "I": numpy.uint32, "b": numpy.bool_}[code]).copy()
    made = array.array(code)
    made.frombytes(data)
    return made


def _view(pointer, n, keep):
    """n numbers where they lie, as an array of numpy that cannot be written; keep lives as long. Without numpy, a copy."""
    if not numpy or not n:
        return _array("d", pointer, n)
    return numpy.asarray(_Memory("f8", pointer, n, True, keep))


class _Memory:
    """n numbers where they lie, as numpy finds them; keep lives as long as an array of them."""

    __slots__ = ("__array_interface__", "__weakref__", "keep")

    def __init__(self, kind, pointer, n, is_fixed, keep=None):
        self.keep = keep
        self.__array_interface__ = {"version": 3, "shape": (n,), "typestr": "=" + kind,
                                    "data": (ctypes.cast(pointer, ctypes.c_void_p).value, is_fixed)}


def _taken(code, pointer, n):
    """n numbers that the library has allocated: an array of numpy that is there in place, and frees them, else a copy."""
    if not numpy or not n:
        made = _array(code, pointer, n)
        library.free(pointer)
        return made
    memory = _Memory("f8" if code == "d" else "u4", pointer, n, False)
    weakref.finalize(memory, library.free, ctypes.c_void_p(memory.__array_interface__["data"][0]))
    return numpy.asarray(memory)


def _operand(kind, values):
    """Numbers as an array that the library reads."""
    if numpy:
        made = numpy.ascontiguousarray(values, dtype=kind)
        return made.ctypes.data_as(ctypes.POINTER(kind))
    return (kind * (len(values) or 1))(*values)


def forms():
    """The forms that frames can be printed in (Frame.export): (name, summary)."""
    found = []
    while (name := library.call("print_form", len(found))) is not None:
        found.append((library.text(name), library.text(library.call("print_form_summary", len(found)))))
    return found


def operations():
    """The operations that frames have as methods: (name, number of frames, other operands, summary)."""
    n = ctypes.c_size_t()
    table = library.call("frame_operations", n)
    return [(library.text(table[i].name), table[i].n_frames, library.text(table[i].operands), library.text(table[i].summary))
            for i in range(n.value)]


class _Owner:
    """One owner of a frame of the library, which never changes: the frame is freed behind the last one. What was asked of it is kept
    here, for all copies. bulk: what all nodes are, once many were asked for."""

    def __init__(self, handle):
        self.handle, self.bulk, self.n_asked, self.named = handle, {}, 0, None
        self.release = weakref.finalize(self, library.call, "frame_close", handle)


def _listed(values):
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _attribute_of(frame, name):
    return _listed(frame.attribute(name))


def _values_of(frame, name):
    return _listed(frame.values(name))


class _Lazy(collections.abc.Mapping):
    """A dictionary whose values functions make when they are asked for."""

    def __init__(self, makers):
        self._makers, self._made = makers, {}

    def __getitem__(self, name):
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._makers[name]()
        return made

    def __iter__(self):
        return iter(self._makers)

    def __contains__(self, name):
        return name in self._makers

    def __len__(self):
        return len(self._makers)


class _Nodes:
    """The nodes of a frame, made when they are asked for."""

    def __init__(self, frame):
        self._frame = frame

    def __getitem__(self, number):
        return Node(number, self._frame)


_KEPT = 100000  # nodes, whose objects are kept


def _nodes_of(frame, is_bare=False):
    """All nodes of a frame as objects. is_bare: one after the other, and what they are when they are asked."""
    if is_bare:
        return (Node(number, frame) for number in range(len(frame)))
    texts = {key: values for key, values in frame._texts_of_all().items() if any(values)}
    if texts.keys() == {"name", "type"}:
        facts = [{"name": name, "type": kind} for name, kind in zip(texts["name"], texts["type"])]
    else:
        facts = [{key: value for key, value in zip(texts, row) if value} for row in zip(*texts.values())]
    made, new = [], int.__new__
    for number, about in enumerate(facts):
        node = new(Node, number)
        node._of, node.frame = frame, about
        made.append(node)
    return made


class Frame(Familiar):
    """A profile: nodes (numbers from 0), their attributes, and columns of values for each profile. Made by Frame.open, Session.frame and
    by operations, which leave their frame as it is.

        look        tree, hot, hot_path, flat_profile, show, dataframe, to_pandas, values
        choose      filter, query, squash, mask (nodes); choose, section (profiles: "rank = 3")
        sum up      flat, group, hierarchy, callers, callgraph, groupby_aggregate; aggregate (profiles), load_imbalance
        compare     - (subtract), / (divide: nan where the divisor has no value), diff, union, equal; by function: a.flat() - b.flat()
        columns     columns, default_column, derive, inclusive, exclusive
        write       save, export, to_callgrind, to_literal (Hatchet), to_speedscope, to_pprof, to_flamegraph, to_csv, ...

    Conditions: 'time > 1 and name =~ "^MPI_" and kind = "function"'; columns whose names are no words in single quotes: "'time (inc)' > 1".
    Sort and plot with to_pandas(): .sort_values("time"), .plot.barh("name", "time").

    >>> frame.filter("time > 0.5 and 'time (inc)' > 4").to_pandas().sort_values("time")["name"].tolist()
    ['main']
    """

    def __init__(self, handle):
        self._owner, self._path = _Owner(handle), None
        self._dataframe = self._kept = self._default = None

    def _twin(self):
        """A frame of what this one is, without what was set in its table."""
        made = type(self).__new__(type(self))
        made._owner, made._path, made._dataframe, made._kept, made._default = self._owner, None, None, self._kept, self._default
        return made

    @classmethod
    def open(cls, path, fields=False, tree=None, parts=False):
        """Opens whatever liblocus can read: a database of Locus or HPCToolkit, a file of Hatchet, callgrind, Caliper, pprof, perf
        script. fields: with the fields of each variable between it and what touches it; parts: with the
        lines, instructions, calls and jumps of functions as nodes, where a file of callgrind has functions alone. A database has two
        trees that hold the same costs, of code and of data; tree: "code", that one alone, as hpcquery's operations take it, so that sums
        over all nodes are right; "data"; or "both", which fields are a part of. Without it both with fields, else "code". Error: the file
        is of no known kind, and why.

        >>> locus.Frame.open(path)
        <locus.Frame: 2 nodes, 1 profiles, columns time, time (inc)>
        """
        tree = tree or ("both" if fields else "code")
        if tree not in ("code", "data", "both"):
            raise ValueError(f"'{tree}' is none of code, data, both")
        handle = ctypes.c_void_p()
        library.check("frame_open_fields" if fields else "frame_open_parts" if parts else "frame_open", os.fsencode(path), handle)
        made = cls(handle)
        made._path = os.fspath(path)
        return made if tree == "both" else made._made("frame_choose_tree", library.data(tree))

    @classmethod
    def from_hpctoolkit(cls, path, tree="code"):
        """A database of HPCToolkit, or of ours: of that the tree of code alone; tree: "data", or "both"."""
        return cls.open(path, tree=tree)

    from_caliper = from_caliperreader = from_gprof_dot = open

    def close(self):
        """Ends the frame, which is freed rather at once than when nobody refers to it any more; arrays of its values, copies of it and
        nodes stay."""
        if self._owner is not None:
            self._owner.bulk.clear()
        self._owner = self._dataframe = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        if self._owner is None:
            raise ValueError("the frame is closed")
        return self._owner.handle

    def _synced(self):
        """The handle of the frame with what was set in its table."""
        self._open()
        if self._dataframe is not None:
            from locus import _pandas
            table, self._dataframe = self._dataframe, None
            for name, sums, *cells in _pandas.changes(self, table):
                self._owner = self._put(name, sums, *cells)._owner
            self._dataframe = table
        return self._open()

    def _become(self, other):
        """Makes this frame what another one is. Returns it."""
        self._owner, self._dataframe, self._kept = other._owner, None, None
        return self

    def _call(self, function, *operands):
        return library.call(function, self._open(), *operands)

    def _check(self, function, *operands):
        library.check(function, self._synced(), *operands)

    def _made(self, function, *operands):
        """The frame that a function makes, whose last operand is where it goes."""
        handle = ctypes.c_void_p()
        self._check(function, *operands, handle)
        return self._like(handle)

    def _like(self, handle):
        """A frame that was made of this one."""
        made = Frame(handle)
        made._path = self._path
        if self._default is not None and self._default in made.all_columns:
            made._default = self._default
        return made

    def _put(self, name, sums, nodes, profiles, values):
        """The frame with a column of values of nodes in profiles."""
        return self._made("frame_put_column", library.data(name), _SUMS.index(sums), _operand(ctypes.c_uint32, nodes),
                          _operand(ctypes.c_uint32, profiles), _operand(ctypes.c_double, values), len(values))

    # --- nodes ---

    def __len__(self):
        return self._call("frame_n_nodes")

    @property
    def is_tree(self):
        """Whether every node has at most one parent."""
        return self._call("frame_is_tree")

    def _nodes(self, what, ctype):
        """What frame_get_nodes gives of all nodes: a buffer."""
        made = (ctype * (len(self) or 1))()
        self._call("frame_get_nodes", *(made if name == what else None for name in ("kinds", "names", "files", "modules", "lines", "parents")))
        return made

    def _names_of(self, what):
        return library.texts(self._nodes(what, ctypes.c_char_p), len(self))

    @property
    def names(self):
        """The names of the nodes, in the order of their numbers: a list. So are files, lines, kinds, modules.

        >>> frame.names
        ['main', 'work']
        """
        return self._names_of("names")

    @property
    def files(self):
        """The files of the nodes; "" is not known."""
        return self._names_of("files")

    @property
    def modules(self):
        """The load modules of the nodes; "" is not known."""
        return self._names_of("modules")

    @property
    def lines(self):
        """The lines of the nodes; 0 is not known."""
        return self._nodes("lines", ctypes.c_uint32)[:len(self)]

    @property
    def kinds(self):
        """What the nodes stand for: "function", "line", "variable", ...

        >>> frame.kinds
        ['function', 'function']
        """
        words = [library.text(library.call("frame_kind_name", kind)) for kind in range(abi.FRAME_KINDS)]
        return [words[kind] for kind in self._nodes("kinds", ctypes.c_int)[:len(self)]]

    @property
    def attributes(self):
        """The names of further attributes."""
        return [library.text(self._call("frame_attribute_name", i)) for i in range(self._call("frame_n_attributes"))]

    def attribute(self, name):
        """The values of a further attribute: texts, or an array of numbers with nan where there is none."""
        names = self.attributes
        if name not in names:
            raise Error(abi.ERR_NOT_FOUND, f"there is no attribute '{name}'; there are: {', '.join(names) or 'none'}")
        at = names.index(name)
        is_text = self._call("frame_attribute_is_text", at)
        made = ((ctypes.c_char_p if is_text else ctypes.c_double) * (len(self) or 1))()
        self._call("frame_get_texts" if is_text else "frame_get_numbers", at, made)
        return library.texts(made, len(self)) if is_text else _array("d", made, len(self))

    def _neighbours(self, function, *node):
        n = ctypes.c_size_t()
        pointer = self._call(function, *node, n)
        return [pointer[i] for i in range(n.value)]

    @property
    def roots(self):
        """The nodes without parent."""
        return self._neighbours("frame_roots")

    def children(self, node):
        """The numbers of the children of a node, in order.

        >>> frame.roots, frame.children(0), frame.parents(1)
        ([0], [1], [0])
        """
        return self._neighbours("frame_children", self._known(node))

    def parents(self, node):
        """The parents of a node: at most one in a tree."""
        return self._neighbours("frame_parents", self._known(node))

    def _are_many_asked(self):
        """Whether so many single nodes were asked for that what all are is fetched at once."""
        self._open()
        self._owner.n_asked += 1
        return self._owner.n_asked >= 64 or len(self) <= 64

    def _kept_once(self, what, make):
        """What make says of all nodes, which is kept."""
        self._open()
        if what not in self._owner.bulk:
            self._owner.bulk[what] = make()
        return self._owner.bulk[what]

    def _known_texts(self):
        """What Node.frame says of all nodes, once many are asked for; before, None."""
        return self._kept_once("texts", self._texts_of_all) if self._are_many_asked() else None

    def _texts_of_all(self):
        return {"name": self.names, "type": self.kinds, "file": self.files, "line": list(self.lines), "module": self.modules}

    def _all_nodes(self):
        """All nodes as objects, with what they are: once and for all, unless they are very many."""
        return self._kept_once("nodes", lambda: _nodes_of(self._twin())) if len(self) <= _KEPT else _nodes_of(self, is_bare=True)

    def _children_of(self, node):
        """children, of all nodes at once when many are asked for."""
        if not self._are_many_asked() or not self.is_tree:
            return self.children(node)
        return self._kept_once("children", self._children_of_all)[self._known(node)]

    def _children_of_all(self):
        made = [[] for _ in range(len(self))]
        for child, parent in enumerate(self._nodes("parents", ctypes.c_uint32)[:len(self)]):
            if parent != abi.FRAME_NONE:
                made[parent].append(child)
        return made

    def _is_same_graph(self, other):
        """Whether both have the same nodes and edges, siblings that are alike in the same order."""
        result = ctypes.c_bool()
        self._check("frame_equal_graph", other._synced(), result)
        return result.value

    def _known(self, node):
        if not 0 <= node < len(self):
            raise IndexError(f"there is no node {node}: the frame has {len(self)}")
        return node

    @property
    def depths(self):
        """Steps from the nearest root."""
        return _array("I", self._call("frame_depths"), len(self))

    # --- columns and profiles ---

    @property
    def columns(self):
        """The names of the columns that are not hidden. "time" of a database is in seconds, other units stand in the names, (inc) is with
        all that a node calls.

        >>> frame.columns, frame.default_column, frame.sums("time (inc)")
        (['time', 'time (inc)'], 'time', 'inclusive')
        """
        self._synced()
        return [name for name, is_hidden in self._column_names() if not is_hidden]

    @property
    def all_columns(self):
        """The names of all columns."""
        return [name for name, _ in self._column_names()]

    def _column_names(self):
        """The name of each column, and whether it is hidden; asked once for each frame of the library."""
        self._open()
        if self._owner.named is None:
            self._owner.named = [(library.text(self._call("frame_column_name", i)), self._call("frame_column_is_hidden", i))
                                 for i in range(self._call("frame_n_columns"))]
        return self._owner.named

    def _column(self, name):
        self._synced()
        if name is None and self._default is None:
            at = self._call("frame_default_column")
            if at == library.NO_COLUMN:
                raise Error(abi.ERR_NOT_FOUND, "the frame has no column")
            return at
        wanted = self._default if name is None else name
        for at, (known, _) in enumerate(self._column_names()):
            if known == wanted:
                return at
        error = abi.Error()
        at = self._call("frame_find_column", library.data(wanted), error)
        if at == library.NO_COLUMN:
            raise Error.of(error)
        return at

    def _inclusive(self, name):
        """The number of a column; None: of the inclusive one, where the default one has such a pair."""
        at = self._column(name)
        pair = self._call("frame_column_pair", at)
        is_own = name is None and _SUMS[self._call("frame_column_sums", at)] == "exclusive" and pair != library.NO_COLUMN
        return pair if is_own else at

    @property
    def default_column(self):
        """The column that is meant where none is named."""
        return self.all_columns[self._column(None)]

    def sums(self, column=None):
        """"exclusive" (of the nodes alone), "inclusive" (of all below, too) or "plain" (does not add up)."""
        return _SUMS[self._call("frame_column_sums", self._column(column))]

    @property
    def profiles(self):
        """The threads, ranks or files that values were measured in: a list of Profile, whose places are the numbers that profiles= takes.

        >>> frame.profiles
        [Profile(name='', rank=None, thread=None, process=None, node=None)]
        """
        known = (self._call("frame_profile", i).contents for i in range(self._call("frame_n_profiles")))
        return [Profile(library.text(p.name), *(None if v < 0 else v for v in (p.rank, p.thread, p.process, p.node))) for p in known]

    def values(self, column=None, profiles=None, aggregate="sum", percentile=50):
        """A number for each node, nan where there is none: of all profiles, or of those whose numbers, or a condition on which, are
        given. aggregate: sum, mean, min, max, std, count or percentile. The array cannot be written: it is the frame's own.

        >>> list(frame.values("time"))
        [1.0, 4.0]
        """
        if aggregate not in _AGGREGATES:
            raise ValueError(f"'{aggregate}' is none of {', '.join(_AGGREGATES)}")
        view = abi.FrameView(None, 0, _AGGREGATES.index(aggregate), percentile)
        if profiles is not None:
            chosen = sorted(set(self.find_profiles(profiles) if isinstance(profiles, str) else profiles))
            view.profiles, view.n_profiles = (ctypes.c_uint32 * (len(chosen) or 1))(*chosen), len(chosen)
        pointer = ctypes.POINTER(ctypes.c_double)()
        self._check("frame_values", self._column(column), view, pointer)
        return _view(pointer, len(self), self._owner)

    def cells(self, column=None):
        """The values of every node in every profile that has one: arrays of nodes, profiles and values, by node.

        >>> [list(column) for column in frame.cells("time")]
        [[0, 1], [0, 0], [1.0, 4.0]]
        """
        nodes, profiles, values = self._rows([column])
        return nodes, profiles, values[0]

    def _rows(self, columns):
        """(nodes, profiles, [values of each column]) of the nodes and profiles where a column has a value."""
        at = (ctypes.c_size_t * (len(columns) or 1))(*map(self._column, columns))
        nodes, profiles, n = ctypes.POINTER(ctypes.c_uint32)(), ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_size_t()
        values = (ctypes.POINTER(ctypes.c_double) * (len(columns) or 1))()
        self._check("frame_get_rows", at, len(columns), nodes, profiles, values, n)
        return _taken("I", nodes, n.value), _taken("I", profiles, n.value), [_taken("d", values[i], n.value) for i in range(len(columns))]

    def find_profiles(self, condition):
        """The numbers of the profiles for which a condition on rank, thread, process, host or name, such as "rank = 3", is true.

        >>> frame.find_profiles('name = ""')
        [0]
        """
        pointer, n = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_size_t()
        self._check("frame_find_profiles", library.data(condition), pointer, n)
        return library.taken(pointer, n.value)

    def to_pandas(self, columns=None, by_profile=False):
        """A table of pandas with a row for each node: attributes, whose texts are categories, and the sums of columns (those that are
        not hidden, when none are named). by_profile: a row for each node and profile where a column has a value; the levels of its index
        are the node's number, and rank, thread and process as far as they are known, else the profile's name.

        >>> list(frame.to_pandas()["time"])
        [1.0, 4.0]
        """
        from locus import _pandas
        return _pandas.table(self, self.columns if columns is None else list(columns), by_profile)

    def _row_columns(self):
        """Everything about the nodes, as lists by name, each made when it is asked for."""
        made = {"name": lambda: self.names, "type": lambda: self.kinds, "kind": lambda: self.kinds, "file": lambda: self.files,
                "line": lambda: list(self.lines), "module": lambda: self.modules, "depth": lambda: _listed(self.depths),
                "node_id": lambda: range(len(self))}
        made.update((name, functools.partial(_attribute_of, self, name)) for name in self.attributes)
        made["node"] = lambda: _Nodes(self)
        made.update((name, functools.partial(_values_of, self, name)) for name in self.columns)
        return _Lazy(made)

    # --- queries ---

    def find(self, query):
        """The nodes that a query names: a text in either form of its language, a list of elements, or a Query.

        >>> frame.find([("*", {"time": "> 2"})])
        [1]
        """
        return _numbers(self._flags_of(query))

    def _flags_of(self, query):
        """Whether a query names a node, for each."""
        asked, pointer = _Questions(self), ctypes.POINTER(ctypes.c_bool)()
        text = asked.text(query)
        asked.frame._check("query_run", library.data(text), None, pointer)
        if not numpy:
            return self._taken_flags(pointer)
        made = _array("b", pointer, len(self))
        library.free(pointer)
        return made

    def test(self, condition):
        """Whether a condition is true, for each node.

        >>> frame.test("time > 2")
        [False, True]
        """
        pointer = ctypes.POINTER(ctypes.c_bool)()
        self._check("frame_test", library.data(condition), None, pointer)
        return self._taken_flags(pointer)

    def _taken_flags(self, pointer):
        found = pointer[:len(self)]
        library.free(pointer)
        return found

    def paths(self, query, most=1000, longest=True):
        """The paths that a pattern (a text) matches, so many at most, as lists of nodes; longest: not those that go on to
        another match.

        >>> frame.paths('["*", {"name": "work"}]')
        [[0, 1], [1]]
        """
        made = abi.QueryPaths()
        self._check("query_paths", library.data(query), None, most, longest, made)
        found = [[made.nodes[k] for k in range(p.first, p.first + p.n)] for p in made.items[:made.n]]
        library.call("query_paths_fini", made)
        return found

    def select(self, nodes, by="path"):
        """The text of a query that finds these nodes again: by the path to them, in other frames too, or by "node" number.

        >>> frame.find(frame.select([1]))
        [1]
        """
        nodes = [int(n) for n in nodes]
        text = ctypes.c_void_p()
        for node in nodes:
            self._known(node)
        self._check("query_select", (ctypes.c_uint32 * (len(nodes) or 1))(*nodes), len(nodes), _SELECTED_BY.index(by), text)
        made = library.text(ctypes.string_at(text.value))
        library.free(text)
        return made

    # --- operations ---

    def run(self, operation, *operands):
        """Runs an operation of locus.operations() by its name. Operands are other frames, and texts or numbers.

        >>> frame.run("derive", "twice", "2 * time").columns[-1]
        'twice'
        """
        frames = [self] + [o for o in operands if isinstance(o, Frame)]
        texts = [library.data(str(o)) for o in operands if not isinstance(o, Frame)]
        handles = (ctypes.c_void_p * len(frames))(*(f._synced().value for f in frames))
        made = ctypes.c_void_p()
        library.check("frame_run", library.data(operation), handles, len(frames), (ctypes.c_char_p * (len(texts) or 1))(*texts),
                      len(texts), made)
        return self._like(made)

    def mask(self, keep):
        """The same nodes, with values only where keep[node], a flag for each.

        >>> list(frame.mask([False, True]).values("time"))
        [nan, 4.0]
        """
        return self._made("frame_mask", self._flags(keep))

    def _flags(self, keep):
        if numpy and isinstance(keep, numpy.ndarray) and keep.dtype == bool and keep.shape == (len(self),):
            return (ctypes.c_bool * (len(keep) or 1)).from_buffer_copy(keep.tobytes() or b"\0")
        keep = [bool(k) for k in keep]
        if len(keep) != len(self):
            raise ValueError(f"{len(keep)} flags for {len(self)} nodes")
        return (ctypes.c_bool * (len(keep) or 1))(*keep)

    def equal(self, other, tolerance=1e-9):
        """Whether both have the same nodes, edges, profiles, columns and values, these but for a share of tolerance.

        >>> frame.equal(frame.copy())
        True
        """
        result = ctypes.c_bool()
        self._check("frame_equal", other._synced(), tolerance, result, None)
        return result.value

    def diff(self, after, column=None, threshold=0.0):
        """(frame, differences): the nodes whose value changes by more than threshold percent of the total, largest first, as (node,
        before, after); node is a number of the frame that comes first, which has the nodes of both.

        >>> both, differences = frame.diff(frame * 2)
        >>> [(both.names[node], before, after) for node, before, after in differences]
        [('work', 4.0, 8.0), ('main', 1.0, 2.0)]
        """
        handle, pointer, n = ctypes.c_void_p(), ctypes.POINTER(abi.FrameDifference)(), ctypes.c_size_t()
        name = self.all_columns[self._column(column)]
        self._check("frame_diff", after._synced(), library.data(name), threshold, handle, pointer, n)
        found = [Difference(pointer[i].node, pointer[i].before, pointer[i].after) for i in range(n.value)]
        library.free(pointer)
        return Frame(handle), found

    def hot_path(self, column=None, share=0.5, start=None, *, start_node=None, metric=None, threshold=None):
        """The way from a node (None: the largest root) along the largest children, which have at least a share of their caller's cost.
        start_node, metric and threshold are Hatchet's names of start, column and share.

        >>> [node.name for node in frame.hot_path()]
        ['main', 'work']
        """
        column, share, start = metric or column, share if threshold is None else threshold, start if start_node is None else start_node
        pointer, n = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_size_t()
        self._check("frame_hot_path", self._inclusive(column), None, abi.FRAME_NONE if start is None else self._known(start), share, pointer, n)
        return [Node(number, self) for number in library.taken(pointer, n.value)]

    def save(self, path):
        """Writes the frame into a new directory, which Frame.open and hpcquery open.

        >>> frame.save(path + ".saved")
        >>> locus.Frame.open(path + ".saved") == frame
        True
        """
        data = self._saved()
        os.mkdir(path)
        file = pathlib.Path(path) / "frame.db"
        try:
            file.write_bytes(data)
        except BaseException:
            file.unlink(missing_ok=True)
            os.rmdir(path)
            raise

    def _saved(self):
        """The bytes of a saved frame."""
        return self._bytes("frame_save")

    def _bytes(self, function, *operands):
        """The bytes that a function allocates."""
        pointer, n = ctypes.c_void_p(), ctypes.c_size_t()
        self._check(function, *operands, pointer, n)
        made = ctypes.string_at(pointer.value, n.value)
        library.free(pointer)
        return made

    # --- printed ---

    def export(self, form, column=None, others=(), profiles=None, *, top=0, least=None, color=False, unicode=True, width=0, title=None,
               depth=0):
        """The frame in a form of locus.forms(): a text, or bytes where the form has them (pprof). column: what it shows or sorts by;
        others: further columns of a table; profiles: their numbers, or a condition; top: rows at most; least: percent of the total
        below which nodes are left out (None: as the form likes); depth: levels of a tree at most.

        >>> "main" in frame.export("dot"), sorted(name for name, _ in locus.forms())[0]
        (True, 'callgrind')
        """
        job = abi.PrintJob(size=ctypes.sizeof(abi.PrintJob), top=top, color=color, unicode=unicode, columns=width, depth=depth,
                           least=least or 0, has_least=least is not None)
        column = self._default if column is None else column
        job.column = None if column is None else library.data(column)
        job.named, job.n_named = (ctypes.c_char_p * (len(others) or 1))(*map(library.data, others)), len(others)
        if profiles is not None:
            chosen = sorted(set(self.find_profiles(profiles) if isinstance(profiles, str) else profiles))
            job.profiles, job.n_profiles = (ctypes.c_uint32 * (len(chosen) or 1))(*chosen), len(chosen)
        title = title if title is not None else os.path.basename(self._path or "")
        job.title, job.path = library.data(title), None if self._path is None else os.fsencode(self._path)
        made = self._bytes("print_frame", library.data(form), job)
        return made if form == "pprof" else library.text(made)

    # --- display ---

    def __repr__(self):
        if self._owner is None:
            return "<locus.Frame, closed>"
        return f"<locus.Frame: {len(self)} nodes, {len(self.profiles)} profiles, columns {', '.join(self.columns) or 'none'}>"

    def hot(self, column=None, top=20, only=None):
        """The top nodes with the largest values: (node, value), largest first. only: flags of the nodes that count.

        >>> frame.hot(top=1)
        [(1, 4.0)]
        """
        values = self.values(column)
        known = [i for i in range(len(self)) if not math.isnan(values[i]) and (only is None or only[i])]
        return [(i, float(values[i])) for i in sorted(known, key=lambda i: (-values[i], i))[:top]]

    def show(self, column=None, height=400):
        """The frame as a tree by a column (None: the inclusive one), height pixels high, to look at in a notebook: see locus.Tree.

        >>> frame.show().choose([1]).nodes
        [1]
        """
        return Tree(self, column, height)

    def _table(self, column, rows):
        """A table of nodes with a bar for each value."""
        most, body = max((abs(v) for _, v in rows), default=0) or 1, []
        for node, value in rows:
            file, line = os.path.basename(library.text(self._call("frame_file", node))), self._call("frame_line", node)
            cells = (library.text(self._call("frame_name", node)), f"{file}:{line}" if file and line else file,
                     library.text(library.call("frame_kind_name", self._call("frame_kind", node))))
            bar = f'<div style="background:#5b8bc9;height:0.7em;width:{100 * abs(value) / most:.1f}px"></div>'
            body.append(f'<tr><td style="text-align:right">{value:.6g}</td><td>{bar}</td>' +
                        "".join(f'<td style="text-align:left">{html.escape(c)}</td>' for c in cells) + "</tr>")
        return (f"<table><thead><tr><th>{html.escape(column)}</th><th></th><th>name</th><th>place</th><th>kind</th></tr></thead>"
                f"<tbody>{''.join(body)}</tbody></table>")

    def _repr_html_(self):
        """The hot nodes; of a database with data, those of the code, and the hot variables."""
        head = f"<p>{html.escape(repr(self).strip('<>'))}</p>"
        if self._owner is None or not self.all_columns:
            return head
        column = self._column(None)
        is_code = [t != "data" for t in self.attribute("tree")] if "tree" in self.attributes else None
        made = head + self._table(self.default_column, self.hot(only=is_code if is_code and any(is_code) else None))
        is_variable = [k == "variable" for k in self.kinds]
        pair = self._call("frame_column_pair", column)
        if any(is_variable) and pair != library.NO_COLUMN:
            made += self._table(self.all_columns[pair], self.hot(self.all_columns[pair], only=is_variable))
        return made


_EXAMPLES = {
    "derive": ("list(frame.derive('twice', '2 * time').values('twice'))", "[2.0, 8.0]"),
    "inclusive": ("frame.inclusive().columns", "['time', 'time (inc)']"),
    "exclusive": ("list(frame.exclusive().values('time'))", "[1.0, 4.0]"),
    "choose": ("len(frame.choose('name = \"\"').profiles)", "1"),
    "section": ("list(frame.section('name = \"\"').values('time'))", "[1.0, 4.0]"),
    "aggregate": ("list(frame.union(frame).aggregate('all', how='mean').values('time'))", "[1.0, 4.0]"),
    "group": ("list(frame.group('kind', how='max').values('time'))", "[4.0]"),
    "hierarchy": ("frame.hierarchy('kind function').names", "['function', 'main', 'work']"),
    "flat": ("frame.flat().names", "['main', 'work']"),
    "callers": ("frame.callers(depth=2).names", "['main', 'work', 'main']"),
    "callgraph": ("frame.callgraph().children(0)", "[1]"),
    "hotpath": ("frame.hotpath('time').names", "['main', 'work']"),
    "imbalance": ("list(frame.imbalance('time').values('time max'))", "[1.0, 4.0]"),
    "union": ("len(frame.union(frame, frame).profiles)", "3"),
    "subtract": ("list(frame.subtract(frame).values('time'))", "[0.0, 0.0]"),
    "multiply": ("list(frame.multiply(frame).values('time'))", "[1.0, 16.0]"),
    "divide": ("list(frame.divide(frame).values('time'))", "[1.0, 1.0]"),
}


def _add_operations():
    """Every operation of the library that has no method yet becomes one, and so does every form: to_speedscope."""
    kinds = inspect.Parameter

    def method(name, n_frames, operands, summary):
        own = [kinds("self", kinds.POSITIONAL_ONLY)]
        if n_frames != 1:
            own.append(kinds("other", kinds.POSITIONAL_OR_KEYWORD) if n_frames == 2 else kinds("others", kinds.VAR_POSITIONAL))
        for word in operands.split():  # [word] is there or not, [WORD] a value that may be left out
            default = kinds.empty if word[0] != "[" else None if word.isupper() else False
            own.append(kinds(word.strip("[]").lower(), kinds.POSITIONAL_OR_KEYWORD, default=default))
        signature = inspect.Signature(own)

        def run(*given, **named):
            rest = []
            for key, value in signature.bind_partial(*given, **named).arguments.items():
                if key == "others":
                    rest += value
                elif value is not None and value is not False:
                    rest.append(key if value is True else " ".join(value) if isinstance(value, (list, tuple)) else value)
            return rest[0].run(name, *rest[1:])
        run.__name__, run.__signature__ = name, signature
        run.__doc__ = f"A new frame: {summary}."
        if name in _EXAMPLES:
            run.__doc__ += "\n\n>>> {}\n{}\n".format(*_EXAMPLES[name])
        return run

    def printer(form, summary):
        def export(self, column=None, others=(), profiles=None, **options):
            return self.export(form, column, others, profiles, **options)
        own = inspect.signature(Frame.export)
        export.__signature__ = own.replace(parameters=[p for p in own.parameters.values() if p.name != "form"])
        export.__name__ = "to_" + form.replace("-", "_")
        export.__doc__ = f"The frame in form {form}: {summary}. A text{', as bytes' * (form == 'pprof')}; the operands are those of export."
        if not form.endswith("-data"):  # which a frame of code is refused
            export.__doc__ += f"\n\n>>> len(frame.{export.__name__}('time')) > 9\nTrue\n"
        return export
    made = [method(*operation) for operation in operations()] + [printer(*form) for form in forms()]
    for function in made:
        if not hasattr(Frame, function.__name__):
            function.__qualname__ = f"Frame.{function.__name__}"
            setattr(Frame, function.__name__, function)


_add_operations()
GraphFrame = Frame
