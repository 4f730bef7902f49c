# SPDX-License-Identifier: BSD-3-Clause
"""Databases that are asked for the reports of hpcquery: see Session."""
import collections
import ctypes
import inspect
import json
import operator
import os
import weakref

from locus import _abi as abi
from locus import _library as library
from locus._tables import Table, escaped

Report = collections.namedtuple("Report", "name summary options by")
Report.__doc__ = "A report: its name, what it prints, the options that Session.ask takes for it, and the words that option by takes."
# How options reach a request, whose other fields have the names of theirs.
_FLAGS = {"paths": "with_paths", "fields": "with_fields", "all": "with_unused", "instructions": "with_instructions", "mark": "at_mark"}
_TREES = tuple(value.removeprefix("SESSION_").lower() for value in abi.ENUMS["session_tree"])


def _texts(function, *operands):
    """The texts that a function gives by their number."""
    found = []
    while (text := library.call(function, *operands, len(found))) is not None:
        found.append(library.text(text))
    return found


def reports():
    """The reports that there are.

    >>> [report.name for report in locus.reports()][:3]
    ['vars', 'functions', 'lines']
    """
    keys, summaries = _texts("session_key"), _texts("session_report_summary")
    return [Report(name, summaries[i], tuple(key for k, key in enumerate(keys) if library.call("session_report_takes", i, k)),
                   tuple(_texts("session_report_by", i)))
            for i, name in enumerate(_texts("session_report"))]


class _Owner:
    """What frees something of the library, after all that was made of it: keep."""

    def __init__(self, function, handle, keep=None):
        self.handle = handle
        self.release = weakref.finalize(self, _release, function, handle, keep)


def _release(function, handle, _keep):
    library.call(function, handle)


class Answer(Table):
    """What a report says: a Table of its rows, and what stands before them.

    >>> answer = session.ask("vars", top=2)
    >>> len(answer), answer.report, answer.name
    (2, 'vars', 'variables')
    >>> [row["variable"] for row in answer] == list(answer["variable"])
    True

    report: its name; program, metric: what was measured (metric None: it is about none); name: what the rows are; head: a dictionary
    of what is true of all rows, as in JSON; notes: sentences; n_left: how many rows top and min left out, as far as the report says
    so."""

    def __init__(self, session, request, handle):
        self._session, self._request = session, request
        owner = _Owner("answer_free", handle, session)
        super().__init__(library.call("answer_rows", handle), owner)
        self.report, self.n_left = request["report"], library.call("answer_n_left", handle)
        self.program, self.metric, self.name = (None if text is None else library.text(text) for text in (
            library.call(f"answer_{what}", handle) for what in ("program", "metric", "name")))
        head = Table(library.call("answer_head", handle), owner)
        self.head = head[0] if len(head) else {}
        notes = self.head.get("notes")
        self.notes = [note for row in notes for note in row.values()] if isinstance(notes, Table) else []

    def to_json(self):
        """What hpcquery --json prints.

        >>> json.loads(session.ask("vars", top=2).to_json())["metric"] == session.ask("vars").metric
        True
        """
        if self._session is None:  # many runs
            return json.dumps({**self.head, "metric": self.metric, self.name: list(self)})
        text = ctypes.c_void_p()
        library.check("session_ask_json", self._session.handle, json.dumps(self._request).encode(), text)
        return _taken(text)

    def to_text(self, columns=120, top=12):
        """What hpcquery prints for a terminal of so many columns; top: rows, where the question did not say so (0: all).

        >>> session.ask("numa").to_text(80).startswith("program")
        True
        """
        if self._session is None:  # many runs
            shown = [self.columns, *(list(row.values()) for row in list(self)[:top or None])]
            return "".join("\t".join("" if cell is None else str(cell) for cell in row) + "\n" for row in shown)
        text = ctypes.c_void_p()
        request, _alive = _request({"top": top, **self._request})
        library.check("session_ask_text", self._session.handle, request, columns, text)
        return _taken(text)

    def __repr__(self):
        try:
            return self.to_text().rstrip("\n")
        except library.Error:
            return super().__repr__()

    def _repr_html_(self):
        """The first rows as a table, below what they are about."""
        about = " of ".join(escaped(text) for text in (self.report, self.metric, self.program) if text)
        more = f"<p>{self.n_left} more rows were left out (top, min)</p>" if self.n_left else ""
        return f"<p>{about}: {len(self)} {escaped(self.name)}</p>{super()._repr_html_()}{more}" + "".join(
            f"<p>{escaped(note)}</p>" for note in self.notes)


def _taken(text):
    made = library.text(ctypes.string_at(text.value))
    library.free(text)
    return made


def _request(options):
    """A request of the library, and what must live as long."""
    request, alive = abi.Request(size=ctypes.sizeof(abi.Request)), []
    for key, value in options.items():
        if key == "derive":
            texts = [library.data(text) for text in value]
            request.derived, request.n_derived = (ctypes.c_char_p * len(texts))(*texts), len(texts)
            alive.append(texts)
        elif key == "min":
            request.least, request.has_least = value, True
        else:
            setattr(request, {**_FLAGS, "variable": "subject"}.get(key, key), library.data(value) if isinstance(value, str) else value)
    return request, alive


def _checked(name, options):
    """Options as they stand in a request of JSON, without those that say nothing."""
    if not isinstance(name, str):
        raise TypeError(f"a report is a name, not {name!r:.60}")
    found = next((report for report in reports() if report.name == name), None)
    made = {"report": name}
    for key, value in options.items():
        if found and key not in found.options:
            raise TypeError(f"{name} takes no option '{key}'; it takes {', '.join(found.options)}")
        if value is None or (key in _FLAGS and not value):
            continue
        if key == "derive":
            value = [f"{n} = {e}" for n, e in value.items()] if isinstance(value, dict) else [value] if isinstance(value, str) else list(value)
        elif key == "top":
            value = operator.index(value)
            if not 0 <= value < 2**64:
                raise ValueError(f"top is how many rows are wanted, 0: all, not {value}")
        elif key == "min":
            value = float(value)
        else:
            value = True if key in _FLAGS else str(value)
        made[key] = value
    return made


class Session:
    """A database, opened once, and asked for the reports of hpcquery. path: also a file or directory of another tool that hpcquery
    functions takes, such as a file of callgrind; what it has nothing for is refused.

    >>> with locus.Session(database) as session:
    ...     answer = session.ask("vars", top=3, by="thread")
    >>> len(answer) <= 3
    True

    Each report is a method:

        what to do first              advice()
        where the cost is             vars(), functions(), lines(), tree(), annotate("function or file")
        a matrix                      functions(by="thread").to_pandas("cells"); by: thread, rank, region, ...
        threads and memory            sharing(), patterns(), first_touch(), numa(), cpus()
        another metric                vars(metric=NAME), with one of session.metrics
        the lines of a variable       lines(top=0).to_pandas("data"), rows by data.variable; its functions: vars(by="function")
        several runs                  locus.runs(paths, "functions"), "scaling" (speed_up by workers) or "regression"

    Rows come with the largest share first. Shares are in percent of the whole metric; value, own and inclusive in the metric's unit, which
    its name says; ..._bytes in bytes; answer.kinds says what each column is. A report of what was not recorded is a locus.Error that says
    what hpcrun has to measure.

    An answer stays as it is when its session is closed, or dropped: the memory of both is freed behind the last of them. Errors are
    locus.Error, with the sentence of hpcquery. A session, its answers and its frames are used by one thread at a time."""

    def __init__(self, path):
        handle = ctypes.c_void_p()
        if b"\0" in os.fsencode(path):
            raise ValueError("a path has no byte 0")
        library.check("session_open_any", os.fsencode(path), handle)
        self.path, self._owner = os.fspath(path), _Owner("session_close", handle)

    def close(self):
        """Ends the session. Its answers and frames stay."""
        self._owner = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _open(self):
        if self._owner is None:
            raise ValueError("the session is closed")
        return self._owner

    def reports(self):
        """The reports that can be asked for: their names, what they print, and what they take.

        >>> session.reports()[0].name, "by" in session.reports()[0].options
        ('vars', True)
        """
        return reports()

    @property
    def metrics(self):
        """The metrics that can be asked for.

        >>> session.ask("vars").metric in session.metrics
        True
        """
        return _texts("session_metric", self._open().handle)

    @property
    def notes(self):
        """Notes on the measurement.

        >>> all(isinstance(note, str) for note in session.notes)
        True
        """
        return _texts("session_note", self._open().handle)

    def ask(self, report, subject=None, **options):
        """The Answer of a report. subject: of annotate, the file or function. Options are those of hpcquery: metric, by, order and
        variable (texts), top (rows, 0: all; the row <kernel> of vars, whose whole is another, is not one of them), min (percent), derive
        ({name: expression}, or texts), paths, fields, all, instructions and mark (flags). None and False are as if not given. TypeError: what the report takes instead.

        >>> session.ask("functions", derive={"twice": "2 * time"}, min=1).columns[:1]
        ['function']
        """
        return self._answer(_checked(report, options if subject is None else {"subject": subject, **options}))

    def _answer(self, made):
        """Of a request as in JSON."""
        request, _alive = _request(made)
        owner, handle = self._open(), ctypes.c_void_p()
        library.check("session_ask", owner.handle, request, handle)
        return Answer(owner, made, handle)

    def _of_state(self, function, state):
        text = ctypes.c_void_p()
        library.check(function, self._open().handle, library.data(state), text)
        return _taken(text)

    def ask_state(self, state):
        """The Answer that a state shows, the text that hpcquery --at takes: its view, about what stands for its active thing there.

        >>> session.ask_state("view=vars&top=2").report
        'vars'
        """
        return self._answer(json.loads(self._of_state("session_state_request", state)))

    def command(self, state):
        """The command line that prints what a state shows.

        >>> session.command("view=vars&top=2").split()[:2]
        ['hpcquery', 'vars']
        """
        return self._of_state("session_state_line", state)

    def frame(self, tree="code"):
        """The database as a locus.Frame. tree: "code", "data" (the same costs by variable), "both", whose node numbers are those of the
        answers and whose sums over all nodes count everything twice, or "fields": both, with the fields of variables as nodes.

        >>> len(session.frame()) < len(session.frame("both"))
        True
        """
        import locus
        if tree not in _TREES:
            raise ValueError(f"'{tree}' is none of {', '.join(_TREES)}")
        handle = ctypes.c_void_p()
        library.check("session_frame", self._open().handle, _TREES.index(tree), handle)
        return locus.Frame(handle)

    def __repr__(self):
        return f"<locus.Session: {self.path}{', closed' if self._owner is None else ''}>"


_EXAMPLES = {
    "vars": ("session.vars(top=1).columns[:6]", "['variable', 'class', 'alloc_site', 'samples', 'share', 'value']"),
    "functions": ("session.functions(by='thread', top=1)['cells'][0].columns[:3]", "['thread', 'value', 'share']"),
    "lines": ("session.lines(top=1).columns[1:7]", "['file', 'line', 'module', 'own', 'own_share', 'inclusive']"),
    "annotate": ("session.annotate('leaf').columns[:4]", "['file', 'line', 'own', 'own_share']"),
    "tree": ("session.tree().columns[:4]", "['id', 'parent', 'depth', 'kind']"),
    "types": ("session.types().columns[:3]", "['type', 'field', 'field_type']"),
    "advice": ("session.advice().columns[5:9]", "['rule', 'advice', 'evidence', 'gain_at_most']"),
    "numa": ("session.numa().columns[4:8]", "['local', 'remote', 'no_page', 'remote_share']"),
    "patterns": ("session.patterns().columns[3:6]", "['share', 'used_as', 'confidence']"),
    "sharing": ("session.sharing().columns[5:9]", "['sharing', 'samples', 'stores', 'threads']"),
    "items": ("session.items('function:leaf')['item'][0]", "'function:leaf'"),
}


def _add_reports():
    """Each report becomes a method, whose signature says what it takes."""
    def method(report):
        def ask(self, *subject, **options):
            return self.ask(report.name, *subject, **options)
        kinds = inspect.Parameter
        own = [kinds("self", kinds.POSITIONAL_ONLY)] + [kinds("subject", kinds.POSITIONAL_OR_KEYWORD)] * ("subject" in report.options)
        ask.__signature__ = inspect.Signature(own + [
            kinds(key, kinds.KEYWORD_ONLY, default=False if key in _FLAGS else None) for key in report.options if key != "subject"])
        ask.__name__ = report.name.replace("-", "_")
        ask.__qualname__ = f"Session.{ask.__name__}"
        ask.__doc__ = f"The Answer of report {report.name}: {report.summary}. Session says the units of its columns."
        if report.by:
            ask.__doc__ += f" by (a table cells in each row): {', '.join(report.by)}."
        if report.name in _EXAMPLES:
            ask.__doc__ += "\n\n>>> {}\n{}\n".format(*_EXAMPLES[report.name])
        return ask
    for report in reports():
        made = method(report)
        if not hasattr(Session, made.__name__):
            setattr(Session, made.__name__, made)


_add_reports()


def runs(paths, report="list", by=None, base=None, metric=None, top=0, min=None, all=False, beyond_noise=False):
    """The Answer of a report about many inputs, each of them a run, as hpcquery runs prints it: "list" (what they were; all: also what
    is the same in all of them), "functions" (statistics over the runs of each group), "scaling" and "regression". by: the column of the
    list that groups have in common, or that is the number of workers; base: the run that others are compared with; beyond_noise: regression
    without what changed no more than runs of the same group differ. paths: a list.

    >>> answer = locus.runs([database, database], "functions", top=1)
    >>> answer["runs"][0], json.loads(answer.to_json())["functions"][0]["runs"], answer.to_text().split()[0]
    (2, 2, 'group')
    """
    made = {"report": report, "top": int(top)}
    for key, value in (("by", by), ("subject", base), ("metric", metric), ("min", min)):
        if value is not None:
            made[key] = float(value) if key == "min" else os.fspath(value)
    request, _alive = _request(made)
    request.with_unused, request.beyond_noise = bool(all), bool(beyond_noise)
    handle, names = ctypes.c_void_p(), [os.fsencode(path) for path in paths]
    library.check("session_ask_runs", (ctypes.c_char_p * len(names))(*names), len(names), request, handle)
    return Answer(None, made, handle)
