# SPDX-License-Identifier: BSD-3-Clause
"""Frames as tables of pandas, column by column: nothing here is done for each cell, and what is large is there once."""
import functools

import numpy
import pandas

from locus import _abi as abi
from locus import _library as library

_LEVELS = ("rank", "thread", "process")
_LEFT_OUT = ("file", "line", "module", "depth", "parent")


def category(texts):
    """Texts as a column that has each of them once."""
    number = {}
    codes = [number.setdefault(text, len(number)) for text in texts]
    return pandas.Categorical.from_codes(codes, list(number))


@functools.lru_cache(maxsize=16)
def _kind_of(*texts):
    """The type of a column that has these texts."""
    return pandas.CategoricalDtype(pandas.Index(texts, dtype=object))


def _of_addresses(pointers, n):
    """The same of n addresses of texts, each of which is read once."""
    addresses = numpy.frombuffer(pointers, dtype=numpy.uintp, count=n)
    if n and (addresses == addresses[0]).all():
        return pandas.Categorical.from_codes(numpy.zeros(n, dtype=numpy.int8), dtype=_kind_of(*library.texts_at([int(addresses[0])])))
    codes, different = pandas.factorize(addresses)  # as they come
    texts = numpy.empty(len(different), dtype=object)
    texts[:] = library.texts_at(different)
    categories = pandas.Index(texts, dtype=object)
    if not categories.is_unique:  # one text at several addresses
        which, categories = pandas.factorize(texts)
        codes, categories = which[codes], pandas.Index(categories, dtype=object)
    return pandas.Categorical.from_codes(codes, dtype=pandas.CategoricalDtype(categories))


def levels(profiles):
    """What tells profiles apart: [(name, values, code of each profile)]. Rank and thread where all know them, and the process where
    these are not enough; else their names, with numbers behind those that are there twice. A single profile that knows nothing: []."""
    known = [name for name in _LEVELS if all(getattr(p, name) is not None for p in profiles)]
    for n in (2, 3):
        chosen = [name for name in known if name in _LEVELS[:n]]
        if chosen and len({tuple(getattr(p, name) for name in chosen) for p in profiles}) == len(profiles):
            return [(name, *_codes([getattr(p, name) for p in profiles])) for name in chosen]
    if len(profiles) == 1:
        return []
    names, seen = [], {}
    for profile in profiles:
        seen[profile.name] = seen.get(profile.name, 0) + 1
        names.append(profile.name if seen[profile.name] == 1 else f"{profile.name} ({seen[profile.name]})")
    return [("profile", *_codes(names, is_sorted=False))]


def _codes(values, is_sorted=True):
    """The different values, and which of them each is."""
    different = sorted(set(values)) if is_sorted else list(dict.fromkeys(values))
    number = {value: i for i, value in enumerate(different)}
    return different, numpy.array([number[value] for value in values], dtype=numpy.int8 if len(different) < 2**7 else numpy.int32)


def _kinds(frame):
    """What the nodes stand for."""
    kinds = numpy.frombuffer(frame._nodes("kinds", abi.c_int), dtype=numpy.intc, count=len(frame))
    used = numpy.flatnonzero(numpy.bincount(kinds, minlength=abi.FRAME_KINDS))
    code = numpy.zeros(abi.FRAME_KINDS, dtype=numpy.int8)
    code[used] = numpy.arange(len(used))
    return pandas.Categorical.from_codes(code[kinds], dtype=_kind_of(*(_kind_name(kind) for kind in used.tolist())))


@functools.lru_cache(maxsize=abi.FRAME_KINDS)
def _kind_name(kind):
    return library.text(library.call("frame_kind_name", kind))


def _attribute(frame, name):
    values = frame.attribute(name)
    return category(values) if isinstance(values, list) else values


def attributes(frame):
    """The columns of what the nodes are, each made when it is asked for."""
    n = len(frame)

    def texts(what):
        return _of_addresses(frame._nodes(what, library.ctypes.c_char_p), n)

    def numbers(what, kind, dtype):
        return numpy.frombuffer(frame._nodes(what, kind), dtype=dtype, count=n)
    made = {"name": lambda: texts("names"), "kind": lambda: _kinds(frame), "file": lambda: texts("files"),
            "line": lambda: numbers("lines", abi.c_uint32, numpy.uint32), "module": lambda: texts("modules"),
            "depth": lambda: numpy.asarray(frame.depths), "parent": lambda: numbers("parents", abi.c_uint32, numpy.int32)}
    made.update((name, functools.partial(_attribute, frame, name)) for name in frame.attributes)
    return made


def table(frame, columns, by_profile=False):
    """Frame.to_pandas."""
    made = {name: make() for name, make in attributes(frame).items()}
    if by_profile and columns:
        return _by_profile(frame, columns, made)
    made.update((name, frame.values(name)) for name in columns)
    return pandas.DataFrame(made, index=pandas.RangeIndex(len(frame), name="node"))


def _by_profile(frame, columns, around):
    """The cells of columns in rows by node and profile, and behind them what the nodes are."""
    nodes, profiles, values = frame._rows(columns)
    made = dict(zip(columns, values))
    found = levels(frame.profiles) or [("profile", [frame.profiles[0].name], numpy.zeros(1, dtype=numpy.int16))]
    codes = [nodes.view(numpy.int32)] + [code[profiles] for _, _, code in found]
    del profiles
    index = pandas.MultiIndex(levels=[pandas.RangeIndex(len(frame))] + [values for _, values, _ in found], codes=codes,
                              names=["node"] + [name for name, _, _ in found], verify_integrity=False)
    made.update((name, column.take(nodes)) for name, column in around.items())
    return pandas.DataFrame(made, index=index, copy=False)


def dataframe(frame):
    """Frame.dataframe: values first, and what the nodes are behind them, as in Hatchet. A single profile that knows no rank or thread
    is no level."""
    around = attributes(frame)
    around["type"] = around.pop("kind")
    is_single = not levels(frame.profiles)
    columns = frame.columns
    if is_single or not columns:
        made = {name: numpy.array(frame.values(name)) for name in columns}
        made = pandas.DataFrame({**made, **_ordered(around)}, index=pandas.RangeIndex(len(frame), name="node"))
    else:
        made = _by_profile(frame, columns, _ordered(around))
    if frame._kept is not None:
        made = made[numpy.asarray(frame._kept)[made.index.get_level_values("node")]]
    return made


def _ordered(around):
    """What the nodes are, in the order of a reader; what no node knows is left out."""
    made = {name: around[name]() for name in ("name", "type", "file", "line", "module")}
    made = {name: values for name, values in made.items() if name in ("name", "type") or _is_known(values)}
    made.update((name, make()) for name, make in around.items() if name not in made and name not in _LEFT_OUT)
    return made


def _is_known(values):
    return any(values.categories) if isinstance(values, pandas.Categorical) else bool((values != 0).any())


def changes(frame, changed):
    """What was set in the table of a frame: (name, sums, nodes, profiles, values) of each column that is new or other than the frame's."""
    known, around = set(frame.all_columns), {"name", "type", "file", "line", "module", *frame.attributes}
    index, found = changed.index, levels(frame.profiles)
    nodes = profiles = own = None
    for name in changed.columns:
        if not isinstance(name, str) or name in around or not pandas.api.types.is_numeric_dtype(changed[name].dtype):
            continue
        values = changed[name].to_numpy(dtype=numpy.float64, na_value=numpy.nan)
        if nodes is None:
            nodes = index.get_level_values("node").to_numpy(dtype=numpy.uint32)
            profiles = _profiles_of(index, found)
            own = _own_values(frame, nodes, profiles, not found)
        if name in own and numpy.array_equal(values, own[name], equal_nan=True):
            continue
        if name in known and _is_same(frame, name, nodes, profiles, values):
            continue
        yield name, frame.sums(name) if name in known else "plain", nodes, profiles, values


def _own_values(frame, nodes, profiles, is_single):
    """The values of all columns in these rows, where they are those that the frame has itself, as long as nobody has chosen others: all are
    read at once, as in most tables nothing was set. Else {}."""
    columns = frame.columns
    if is_single:
        is_whole = len(nodes) == len(frame) and (nodes == numpy.arange(len(nodes), dtype=numpy.uint32)).all()
        return {name: frame.values(name) for name in columns} if is_whole else {}
    found_nodes, found_profiles, values = frame._rows(columns) if columns else ([], [], [])
    return dict(zip(columns, values)) if numpy.array_equal(nodes, found_nodes) and numpy.array_equal(profiles, found_profiles) else {}


def _profiles_of(index, found):
    """The profile of each row."""
    if not found:
        return numpy.zeros(len(index), dtype=numpy.uint32)
    sizes = [len(values) for _, values, _ in found]
    number = numpy.full(int(numpy.prod(sizes)), 0, dtype=numpy.uint32)
    number[numpy.ravel_multi_index([code for _, _, code in found], sizes)] = numpy.arange(len(found[0][2]), dtype=numpy.uint32)
    codes = [pandas.Index(values).get_indexer(index.get_level_values(name)) for name, values, _ in found]
    return number[numpy.ravel_multi_index(codes, sizes)]


def _is_same(frame, name, nodes, profiles, values):
    """Whether a column has these values."""
    is_there = ~numpy.isnan(values)
    found = frame.cells(name)
    given = (nodes[is_there], profiles[is_there], values[is_there])
    if all(numpy.array_equal(a, b) for a, b in zip(found, given)):
        return True
    order = numpy.lexsort((given[1], given[0]))
    if all(numpy.array_equal(a, b[order]) for a, b in zip(found, given)):
        return True
    return frame._kept is not None and set(zip(*given)) <= set(zip(*found))
