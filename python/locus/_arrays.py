# SPDX-License-Identifier: BSD-3-Clause
"""What is done to all nodes at once where numpy is there: nothing here is done for each node."""
import dis
import functools

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

# Instructions of functions that do to a column what they do to a cell, and have no other effect.
_PLAIN = {"BINARY_SUBSCR", "CACHE", "COMPARE_OP", "COPY_FREE_VARS", "EXTENDED_ARG", "LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL",
          "NOP", "RESUME", "RETURN_VALUE"}
_SIGNS = {"+", "-", "*", "&", "|"}
_FLAG_SIGNS = {"&", "|"}
_OLD_SIGNS = {"BINARY_ADD": "+", "BINARY_SUBTRACT": "-", "BINARY_MULTIPLY": "*", "BINARY_AND": "&", "BINARY_OR": "|"}


@functools.lru_cache(maxsize=256)
def _is_for_columns(code):
    """Whether a function does to columns what it does to cells: it takes cells of the row by name, compares them and computes with them.
    What was compared is only combined by & and |: in sums, flags of columns are no numbers. Texts have no parts, and tuples no columns."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG", "NOP", "RESUME")]
    is_compared = False
    for i, step in enumerate(steps):
        sign = step.argrepr if step.opname == "BINARY_OP" else _OLD_SIGNS.get(step.opname)
        if sign is None and step.opname not in _PLAIN or sign is not None and sign not in _SIGNS:
            return False
        if is_compared and sign is not None and sign not in _FLAG_SIGNS:
            return False
        if step.opname == "BINARY_SUBSCR" and (i < 2 or steps[i - 2].opname != "LOAD_FAST"):
            return False
        if step.opname == "LOAD_CONST" and isinstance(step.argval, (tuple, frozenset)):
            return False
        is_compared = is_compared or step.opname == "COMPARE_OP"
    return True


def truths(function, columns, values, n):
    """What a function of a row says of all n nodes: flags, or None where it has to be asked for each of them. columns: lists and arrays
    by name; values: the array of those that are columns of values, else None."""
    code = getattr(function, "__code__", None)
    if numpy is None or code is None or code.co_argcount != 1 or code.co_flags & 0x2c:  # no *more, **more, nor generator
        return None
    if not _is_for_columns(code):
        return None
    try:
        made = function(_Columns(columns, values))
    except Exception:  # pylint: disable=broad-except  # each node says what is wrong
        return None
    return made if isinstance(made, numpy.ndarray) and made.dtype == bool and made.shape == (n,) else None


class _Columns:
    """The row of all nodes at once: cells are columns."""

    def __init__(self, columns, values):
        self._columns, self._values = columns, values

    def __getitem__(self, name):
        column = self._values(name)
        if column is not None:
            return column
        column = self._columns[name]
        if isinstance(column, list) and column and isinstance(column[0], str):
            return numpy.array(column, dtype=object)
        made = numpy.asarray(column)
        if made.dtype.kind not in "iuf":
            raise TypeError("neither texts nor numbers")
        return made.astype(numpy.float64 if made.dtype.kind == "f" else numpy.int64, copy=False)


def _ends(different):
    return numpy.flatnonzero(numpy.concatenate(([True], different)))


def grouped(cells, keys, way, function):
    """(groups, profiles, values) of cells (nodes, profiles, values) whose nodes are in groups keys[node]; way: a word for function, which
    takes a list, or None."""
    nodes, profiles, values = map(numpy.asarray, cells)
    if not len(nodes):
        return [], [], []
    groups = numpy.asarray(keys, dtype=numpy.int64)[nodes]
    order = numpy.lexsort((profiles, groups))
    groups, profiles, values = groups[order], profiles[order], values[order]
    starts = _ends((groups[1:] != groups[:-1]) | (profiles[1:] != profiles[:-1]))
    sizes = numpy.diff(numpy.append(starts, len(values)))
    if way in ("max", "min", "sum"):
        made = {"max": numpy.maximum, "min": numpy.minimum, "sum": numpy.add}[way].reduceat(values, starts)
    elif way == "count":
        made = sizes.astype(numpy.float64)
    elif way in ("mean", "std"):
        made = numpy.add.reduceat(values, starts) / sizes
        if way == "std":
            made = numpy.sqrt(numpy.add.reduceat((values - numpy.repeat(made, sizes)) ** 2, starts) / sizes)
    else:
        given = values.tolist()
        made = numpy.array([float(function(given[start:start + size])) for start, size in zip(starts.tolist(), sizes.tolist())])
    return groups[starts], profiles[starts], made


def extremes_below(cells, n_profiles, parents, depths, way):
    """(nodes, profiles, values) of the largest or smallest value at or below each node of a tree; parents, depths: of all nodes, which
    are in pre-order."""
    pick = numpy.fmax if way == "max" else numpy.fmin
    nodes, profiles, values = map(numpy.asarray, cells)
    parents, depths = numpy.asarray(parents), numpy.asarray(depths).astype(numpy.int64)
    order = numpy.argsort(depths, kind="stable")
    bounds = numpy.searchsorted(depths[order], numpy.arange((depths.max() if len(depths) else 0) + 2))
    levels = []
    for at in range(len(bounds) - 2, 0, -1):
        level = order[bounds[at]:bounds[at + 1]]
        above = parents[level]
        starts = _ends(above[1:] != above[:-1])
        levels.append((level, starts, above[starts]))
    made = []
    for profile in range(n_profiles):
        of_profile, whole = profiles == profile, numpy.full(len(depths), numpy.nan)
        whole[nodes[of_profile]] = values[of_profile]
        for level, starts, above in levels:
            whole[above] = pick(whole[above], pick.reduceat(whole[level], starts))
        known = numpy.flatnonzero(~numpy.isnan(whole))
        made.append((known, numpy.full(len(known), profile), whole[known]))
    return tuple(map(numpy.concatenate, zip(*made)))
