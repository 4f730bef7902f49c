# SPDX-License-Identifier: BSD-3-Clause
"""Rows of typed columns, as liblocus answers with them: see Table."""
import ctypes
import html
import math
import operator

from locus import _abi as abi
from locus import _library as library

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

N_SHOWN, N_SHOWN_COLUMNS, N_AT_ONCE = 50, 16, 5000
_KINDS = tuple(value.removeprefix("CELL_").lower() for value in abi.ENUMS["cell_kind"])
_REALS, _WORDS = ("number", "percent"), ("word", "address")


def _buffer(ctype, n):
    return (ctype * (n or 1))()


def _objects(values):
    """An array of what numpy would take for arrays of its own."""
    made = numpy.empty(len(values), dtype=object)
    made[:] = values
    return made


class Table:
    """Rows of typed columns. Each column is an array of numpy, read when it is first asked for:

        float64   numbers, and percent from 0 to 100
        int64     counts and nanoseconds; uint64: sizes and other words. float64 where some are not known
        uint64    addresses; object where some are not known
        bool      flags; object where some are not known
        object    texts (str), lists of numbers, and tables below a row (Table)

    What is not known is NaN in columns of float64, and None in columns of object and in rows. Without numpy, columns are lists with
    None. A column within an object of JSON has both keys in its name, such as "threads.mean". A table lives as long as Python
    holds it, or a table below it, whatever becomes of the session.

    >>> table = session.ask("vars", top=3)["lines"][0]
    >>> table.kinds["function"], [row["line"] for row in table] == list(table["line"])
    ('text', True)
    """

    def __init__(self, handle, owner):
        self._handle, self._owner, self._cache = handle, owner, {}
        self._n = library.call("table_rows", handle)
        self._at, self._groups = {}, {}
        self._tree = self._walk(0, library.call("table_columns", handle), "")

    def _walk(self, first, n, prefix):
        """[(key, name, column, members)] of columns; members None: no object."""
        found, at = [], first
        while at < first + n:
            key, n_members = library.text(library.call("table_key", self._handle, at)), library.call("table_members", self._handle, at)
            name = prefix + key
            if not library.call("table_is_for_csv", self._handle, at):
                is_object = self._kind(at) == "object"
                found.append((key, name, at, self._walk(at + 1, n_members, name + ".") if is_object else None))
                (self._groups if is_object else self._at)[name] = at
            at += 1 + n_members
        return found

    def _kind(self, at):
        return _KINDS[library.call("table_kind", self._handle, at)]

    # --- columns ---

    @property
    def columns(self):
        """The names of the columns, in order."""
        return list(self._at)

    def keys(self):
        """The names of the columns, so that dict(table) is {name: array}."""
        return self.columns

    @property
    def kinds(self):
        """{name: kind}: "text", "count", "word", "address", "number", "percent", "span" and "time" (both in nanoseconds), "flag",
        "words" (a list of them) or "table"."""
        return {name: self._kind(at) for name, at in self._at.items()}

    def __len__(self):
        return self._n

    def __contains__(self, name):
        return name in self._at

    def __getitem__(self, name):
        """The column of a name, the row of a number, or the list of the rows of a slice."""
        if isinstance(name, slice):
            return [self._row(number) for number in range(*name.indices(self._n))]
        if not isinstance(name, str):
            return self._row(operator.index(name))
        if name not in self._at:
            raise KeyError(f"there is no column '{name}'; there are: {', '.join(self._at) or 'none'}")
        if name not in self._cache:
            self._cache[name] = self._array(self._at[name])
        return self._cache[name]

    def _read(self, at, first, n):
        """Cells of a column as lists or buffers: (values, known), known None: values says it."""
        kind = self._kind(at)

        def get(what, *buffers):
            if not library.call(f"table_get_{what}", self._handle, at, first, n, *buffers):
                raise SystemError(f"liblocus does not give the {what} of a column")
            return buffers[0]
        if kind in _REALS:
            return get("numbers", _buffer(ctypes.c_double, n)), None
        if kind == "text":
            return library.texts(get("texts", _buffer(ctypes.c_char_p, n)), n), None
        if kind == "table":
            return [None if t is None else Table(t, self._owner) for t in get("tables", _buffer(ctypes.c_void_p, n))[:n]], None
        if kind == "words":
            lengths = _buffer(ctypes.c_size_t, n)
            lists = get("lists", _buffer(ctypes.POINTER(ctypes.c_uint64), n), lengths)
            return [lists[i][:lengths[i]] if lists[i] else None for i in range(n)], None
        known, is_word = _buffer(ctypes.c_ubyte, n), kind in _WORDS
        return get("words" if is_word else "counts", _buffer(ctypes.c_uint64 if is_word else ctypes.c_int64, n), known), known

    def _list(self, at, first, n):
        """Cells of a column as values of Python, None where they are not known."""
        values, known = self._read(at, first, n)
        if known is not None:
            made = bool if self._kind(at) in ("flag", "object") else int
            return [made(v) if k else None for v, k in zip(values[:n], known)]
        return [None if v != v else v for v in values[:n]] if self._kind(at) in _REALS else values

    def _array(self, at):
        if numpy is None:
            return self._list(at, 0, self._n)
        kind, (values, known) = self._kind(at), self._read(at, 0, self._n)
        if known is None and kind in _REALS:
            return numpy.frombuffer(values, count=self._n)
        if known is None:
            return _objects(values)
        whole = numpy.frombuffer(values, dtype=numpy.uint64 if kind in _WORDS else numpy.int64, count=self._n)
        is_known = numpy.frombuffer(known, dtype=numpy.bool_, count=self._n)
        if is_known.all():
            return whole.astype(numpy.bool_) if kind == "flag" else whole
        return _objects(self._list(at, 0, self._n)) if kind in ("address", "flag") else numpy.where(is_known, whole, numpy.nan)

    # --- rows ---

    def _rows(self, first, n, tree=None):
        """Rows as dictionaries, column by column."""
        rows = [{} for _ in range(n)]
        for key, _, at, members in self._tree if tree is None else tree:
            values = self._list(at, first, n)
            if members is not None:
                values = [row if is_there else None for row, is_there in zip(self._rows(first, n, members), values)]
            for row, value in zip(rows, values):
                row[key] = value
        return rows

    def __iter__(self):
        """Each row as a dictionary: values of Python, objects as dictionaries, None where something is not known."""
        first, n_more = 0, N_SHOWN  # few at first: who wants no others does not wait for them
        while first < self._n:
            yield from self._rows(first, min(n_more, self._n - first))
            first, n_more = first + n_more, min(2 * n_more, N_AT_ONCE)

    def _row(self, number):
        if not -self._n <= number < self._n:
            raise IndexError(f"there is no row {number}: there are {self._n}")
        return self._rows(number % self._n, 1)[0]

    def to_pandas(self, below=None):
        """A DataFrame of pandas with the same columns. below: the name of a column of tables: then it has a line for each row of
        these, whose columns are called "cells.value", with the cells that are around them.

        >>> session.ask("vars", by="thread")["cells"][0].columns[:2]
        ['thread', 'value']
        """
        import pandas
        made = pandas.DataFrame({name: self[name] for name in self._at})
        if below is None:
            return made
        tables = self[below]
        around = made.drop(columns=below).loc[made.index.repeat([len(t) if t else 0 for t in tables])].reset_index(drop=True)
        inner = [t.to_pandas() for t in tables if t]
        if not inner:
            return around
        return around.join(pandas.concat(inner, ignore_index=True).add_prefix(f"{below}."))

    def plot(self, column=None, by=None, top=20, ax=None):
        """Bars of a column (None: the first of percent, else of numbers) for the first top rows, named by another (None: the first of
        texts), with matplotlib. Returns the Axes, which is ax where one is given. What is not known has no bar.

        >>> session.ask("vars").plot().get_xlabel()  # doctest: +SKIP
        'share'
        """
        kinds = {name: self._kind(at) for name, at in self._at.items()}

        def first(*wanted):
            found = [name for kind in wanted for name in kinds if kinds[name] == kind]
            if not found:
                raise ValueError(f"no column of {' or '.join(wanted)}: there are {', '.join(kinds) or 'none'}")
            return found[0]
        column, by = column or first("percent", "number", "count"), by or first("text")
        n = min(self._n, max(int(top), 0))
        for name in (column, by):
            if name not in kinds:
                raise KeyError(f"there is no column '{name}'; there are: {', '.join(kinds) or 'none'}")
        values = [math.nan if v is None else float(v) for v in self._list(self._at[column], 0, n)]
        names = ["" if v is None else str(v) for v in self._list(self._at[by], 0, n)]
        if ax is None:
            import matplotlib.pyplot
            ax = matplotlib.pyplot.subplots(figsize=(8, 1 + 0.28 * n))[1]
        ax.barh(range(n), values)
        ax.set_yticks(range(n), [name if len(name) <= 60 else name[:59] + "\N{HORIZONTAL ELLIPSIS}" for name in names])
        ax.invert_yaxis()
        ax.set_xlabel(f"{column}, %" if kinds[column] == "percent" else column)
        return ax

    # --- display ---

    def __repr__(self):
        return f"<locus.{type(self).__name__}: {self._n} rows, columns {', '.join(self._at) or 'none'}>"

    def _shown(self):
        """The first cells of the columns that a display has room for: those that hold something there, in their order."""
        found = [(name, self._kind(at), self._list(at, 0, min(self._n, N_SHOWN))) for name, at in self._at.items()]
        return [column for column in found if any(value is not None for value in column[2])][:N_SHOWN_COLUMNS]

    def _repr_html_(self):
        """The first rows and the columns that hold something, with bars where something is a share."""
        if not self._n:
            return "<p>no rows</p>"
        shown, body = self._shown(), []
        for i in range(min(self._n, N_SHOWN)):
            cells = "".join(_cell(kind, values[i]) for _, kind, values in shown)
            body.append(f"<tr>{cells}</tr>")
        n_more = self._n - len(body)
        return (f"<table><thead><tr>{''.join(f'<th>{escaped(name)}</th>' for name, _, _ in shown)}</tr></thead>"
                f"<tbody>{''.join(body)}</tbody></table>" + (f"<p>{n_more} more</p>" if n_more else ""))


def escaped(text):
    """A text in HTML; bytes that are no UTF-8, which a name may have, are question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _cell(kind, value):
    """A cell of a table of HTML."""
    if value is None:
        return "<td></td>"
    if kind == "table":
        return f"<td>{len(value)} rows</td>"
    if kind == "percent":
        bar = f'<div style="background:#5b8bc9;height:0.3em;width:{min(max(value, 0), 100):.1f}%"></div>'
        return f'<td style="text-align:right;min-width:5em">{value:.1f} %{bar}</td>'
    if kind == "text":
        return f'<td style="text-align:left">{escaped(value)}</td>'
    made = f"{value:.6g}" if kind == "number" else hex(value) if kind == "address" else "yes" if value is True else "no" if value is False \
        else " ".join(map(str, value)) if kind == "words" else f"{value:,}"
    return f'<td style="text-align:right">{html.escape(made)}</td>'
