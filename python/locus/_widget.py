# SPDX-License-Identifier: BSD-3-Clause
"""A frame as a tree to look at: HTML that opens and closes without a script, and, where a notebook's kernel runs, nodes that are
chosen, hidden and searched for, with what was chosen back in Python. The page draws what it is sent and says what was clicked; all
else is decided here. It is anywidget's where that can be imported (JupyterLab, Notebook 7, VS Code), and talks by a comm of its own
in the classic notebook."""
import functools
import heapq
import importlib.util
import math
import os
import sys
import weakref

from . import _library as library
from ._tables import escaped

N_STATIC, N_CHILDREN, N_ROWS, N_TABLE = 400, 200, 500, 100  # nodes without script; shown below one; in all; chosen ones in the table
N_BYTES = 120000  # of rows in a message, the table apart
OPEN_DEPTH = 3  # levels that are open at first
OPEN_LEAST = 1  # percent of the total: of these levels only what has so much is open
TARGET = "locus.tree"  # of comms
SIDES = {1: ("\N{BLACK LEFT-POINTING TRIANGLE}", "left"), 2: ("\N{BLACK RIGHT-POINTING TRIANGLE}", "right")}  # that alone have a node
STYLE = """<style>.locus{font:13px/1.5 sans-serif;display:flex;gap:1em;align-items:flex-start}.locus-tree{flex:1;min-width:20em;overflow:auto;outline-offset:-2px}
.locus-row,.locus summary{white-space:nowrap;cursor:pointer}.locus-row.chosen{background:#cfe3ff;color:#000}.locus-row.found b{text-decoration:underline}
.locus details,.locus p{margin:0 0 0 1em}.locus-bar{display:inline-block;width:6em;height:.7em;margin:0 .5em;background:#8882;position:relative}
.locus-bar i{position:absolute;top:0;bottom:0;background:#5b8bc9}.locus-bar i.less{background:#c9823b}.locus-open{display:inline-block;width:1.2em}
.locus-value{display:inline-block;min-width:5em;text-align:right;margin-right:.7em}.locus small{opacity:.7;margin-left:.5em}.locus th{cursor:pointer}</style>"""
# What both kinds of notebook run: el shows what comes, model takes what was done.
SCRIPT = """function locusTree(el, model) {
  const at = (event, what) => event.target.closest(what), node = (event) => Number(at(event, "[data-node]").dataset.node);
  model.on((made) => {
    const tree = el.querySelector(".locus-tree"), top = tree ? tree.scrollTop : 0, had = el.contains(document.activeElement) && tree === document.activeElement;
    el.innerHTML = made;
    const now = el.querySelector(".locus-tree");
    now.scrollTop = top;
    if (had) now.focus({preventScroll: true});
  });
  el.addEventListener("click", (event) => {
    if (at(event, "[data-sort]")) model.send({do: "sort", by: at(event, "[data-sort]").dataset.sort});
    else if (at(event, "[data-do]")) model.send({do: at(event, "[data-do]").dataset.do});
    else if (at(event, "[data-node]")) {
      el.querySelector(".locus-tree").focus({preventScroll: true});
      if (event.detail === 2) model.send({do: "focus", node: node(event)});
      else if (at(event, ".locus-open")) model.send({do: "open", node: node(event)});
      else model.send({do: "choose", node: node(event), more: event.ctrlKey || event.metaKey, whole: event.shiftKey});
    }
  });
  el.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (at(event, "input")) return;
    const keys = {h: {do: "hide"}, "/": null, Escape: {do: "back"}, ArrowDown: {do: "move", step: 1}, ArrowUp: {do: "move", step: -1},
      ArrowRight: {do: "unfold"}, ArrowLeft: {do: "fold"}, Enter: {do: "focus"}};
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!(key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (keys[key]) model.send(keys[key]);
    else el.querySelector("input[type=search]").focus();
  });
  el.addEventListener("change", (event) => {
    if (at(event, "input[type=search]")) model.send({do: "search", text: event.target.value});
    else if (at(event, "input[type=range]")) model.send({do: "least", percent: Number(event.target.value)});
  });
  model.send({do: "draw"});
}"""
MODULE = SCRIPT + """
export default {render({model, el}) {
  locusTree(el, {send: (message) => model.send(message), on: (show) => model.on("msg:custom", (message) => show(message.html))});
}};"""
CLASSIC = """<script>(function () {
  const el = document.getElementById("%(id)s"), kernel = window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel;
  if (!el || !kernel || !kernel.comm_manager) return;
  const comm = kernel.comm_manager.new_comm("%(target)s", {id: "%(id)s"});
  Jupyter.keyboard_manager.register_events(el);
""" + SCRIPT + """
  locusTree(el, {send: (message) => comm.send(message), on: (show) => comm.on_msg((message) => show(message.content.data.html))});
}());</script>"""
_shown: "weakref.WeakValueDictionary[str, Tree]" = weakref.WeakValueDictionary()  # by id, for comms


class Tree:
    """What Frame.show returns: the tree of a frame by one of its columns, most costly first.

    nodes: the chosen nodes' numbers; query: the text of a query that finds them again; frame: what is left of the frame when hidden
    nodes, those outside the focus and those below the least share are gone; table: the chosen rows of to_pandas(). In a notebook a
    click chooses (with Ctrl one more, with Shift all that is below), a double click or Enter focuses, H hides, / searches and Escape
    goes back; choose, focus, hide, prune, search and back do the same from Python.

    >>> tree = frame.show()
    >>> tree.choose([0], whole=True).nodes, tree.query
    ([0, 1], '[{"name": "main"}, "*"]')
    """

    def __init__(self, frame, column=None, height=400):
        self.of, self.height, self.column = frame, height, ""
        if column is not None or frame.all_columns:
            self.column = frame.all_columns[frame._inclusive(column)]
        self._values = frame.values(self.column) if self.column else [math.nan] * len(frame)
        self._missing = frame.attribute("missing") if "missing" in frame.attributes else None
        self._roots = self._sorted(frame.roots)
        self._total = sum(abs(self._value(n)) for n in self._roots)
        known = self._values[self._values == self._values] if hasattr(self._values, "dtype") else [v for v in self._values if v == v]
        self._is_signed = self._missing is not None or bool(len(known)) and min(known) < 0
        self._most = max((abs(float(min(known))), abs(float(max(known))))) if len(known) else 0
        self._nodes, self._hidden, self._focus, self._least = [], set(), None, 0.0
        self._found, self._sort, self._handlers = set(), None, []
        self._text, self._widget, self.id = "", None, "locus-" + os.urandom(8).hex()
        self._open, self._below_of = set(), {}
        self._open_first(self._roots, OPEN_DEPTH)
        _shown[self.id] = self

    # --- the tree ---

    @functools.cached_property
    def _texts(self):
        """The names, files and lines of all nodes."""
        return self.of.names, self.of.files, self.of.lines

    def _value(self, node):
        value = float(self._values[node])
        return 0.0 if math.isnan(value) else value

    def _sorted(self, nodes):
        return sorted((int(n) for n in nodes), key=lambda n: (-abs(self._value(n)), n))

    def _children(self, node):
        if node not in self._below_of:
            self._below_of[node] = self._sorted(self.of.children(node))
        return self._below_of[node]

    def _open_first(self, nodes, depth):
        for node in nodes if depth else ():
            if abs(self._value(node)) * 100 >= OPEN_LEAST * self._total and node not in self._open:
                self._open.add(node)
                self._open_first(self._children(node), depth - 1)

    def _is_kept(self, node):
        return node not in self._hidden and abs(self._value(node)) * 100 >= self._least * self._total

    def _below(self, node):
        """A node with all that is below it, in order."""
        made, seen, waiting = [], set(), [int(node)]
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                made.append(at)
                waiting.extend(reversed(self._children(at)))
        return made

    def _rows(self):
        """What is shown: (node, depth, the nodes above), or (None, depth, how many) for those that have no room."""
        made, roots = [], self._roots if self._focus is None else [self._focus]
        waiting = [(n, 0, frozenset()) for n in reversed([n for n in roots if self._is_kept(n)])]
        while waiting and len(made) < N_ROWS:
            node, depth, above = waiting.pop()
            made.append((node, depth, above))
            if node is None or node not in self._open or node in above:
                continue
            kept = [n for n in self._children(node) if self._is_kept(n)]
            if len(kept) > N_CHILDREN:
                waiting.append((None, depth + 1, len(kept) - N_CHILDREN))
            waiting.extend((n, depth + 1, above | {node}) for n in reversed(kept[:N_CHILDREN]))
        if waiting:
            made.append((None, 0, len(waiting)))
        return made

    # --- what is done ---

    @property
    def nodes(self):
        """The numbers of the chosen nodes."""
        return list(self._nodes)

    def _set_nodes(self, nodes):
        old, self._nodes = self._nodes, nodes
        if old != nodes:
            for handler in list(self._handlers):
                handler({"name": "nodes", "old": list(old), "new": list(nodes), "owner": self, "type": "change"})

    def observe(self, handler, names="nodes"):
        """Calls handler with a dictionary (name, old, new, owner) whenever other nodes are chosen."""
        if names not in ("nodes", ["nodes"]):
            raise ValueError(f"{names!r} does not change; nodes does")
        self._handlers.append(handler)

    def unobserve(self, handler):
        """Ends that."""
        self._handlers.remove(handler)

    def choose(self, nodes, whole=False, more=False):
        """Chooses nodes; whole: with all that is below them; more: beside those that are chosen already, which are let go if they are
        named again."""
        chosen = []
        for node in nodes:
            node = self.of._known(int(node))
            chosen += self._below(node) if whole else [node]
        if more:
            again = set(chosen) & set(self._nodes)
            chosen = [n for n in self._nodes if n not in again] + [n for n in chosen if n not in again]
        self._set_nodes(list(dict.fromkeys(chosen)))
        return self._drawn()

    def focus(self, node=None):
        """Shows a node (None: the first chosen one) and what is below it alone."""
        node = node if node is not None else self._nodes[0] if self._nodes else None
        if node is not None:
            self._focus = self.of._known(int(node))
            self._open.add(self._focus)
        return self._drawn()

    def hide(self, nodes=None):
        """Hides nodes (None: the chosen ones) with all that is below them."""
        for node in self._nodes if nodes is None else nodes:
            self._hidden.update(self._below(self.of._known(int(node))))
        self._set_nodes([n for n in self._nodes if n not in self._hidden])
        return self._drawn()

    def prune(self, percent):
        """Shows only nodes with at least so many percent of the total."""
        self._least = min(max(float(percent), 0.0), 100.0)
        return self._drawn()

    def search(self, text):
        """Marks the nodes with a text in their names, and opens what is above them; "" ends it."""
        self._text, wanted = str(text), str(text).lower()
        self._found = {n for n, name in enumerate(self._texts[0]) if wanted and wanted in name.lower()}
        waiting, seen = list(self._found), set()
        while waiting:
            for above in self.of.parents(waiting.pop()):
                above = int(above)
                if above not in seen:
                    seen.add(above)
                    waiting.append(above)
        self._open |= seen
        return self._drawn()

    def back(self):
        """Takes back the last of search, focus, least share and hidden nodes that holds."""
        if self._found or self._text:
            self._text, self._found = "", set()
        elif self._focus is not None:
            self._focus = None
        elif self._least:
            self._least = 0.0
        else:
            self._hidden = set()
        return self._drawn()

    def _move(self, step):
        rows = [row[0] for row in self._rows() if row[0] is not None]
        last = self._nodes[-1] if self._nodes else None
        at = rows.index(last) + step if last in rows else 0
        if rows:
            self.choose([rows[min(max(at, 0), len(rows) - 1)]])

    def handle(self, message):
        """Does what a page says was done ({"do": "choose", "node": 3, ...}) and returns what it is to show; nothing is done where that
        makes no sense."""
        do, node = message.get("do"), message.get("node")
        last = self._nodes[-1] if self._nodes else None
        self._is_quiet = True
        try:
            if do == "choose":
                self.choose([node], whole=bool(message.get("whole")), more=bool(message.get("more")))
            elif do == "open":
                self._open ^= {self.of._known(int(node))}
            elif do in ("fold", "unfold") and last is not None:
                (self._open.discard if do == "fold" else self._open.add)(last)
            elif do == "move":
                self._move(int(message.get("step", 1)))
            elif do == "least":
                self.prune(message.get("percent", 0))
            elif do == "search":
                self.search(message.get("text", ""))
            elif do == "sort":
                self._sort = (message.get("by"), self._sort is not None and self._sort == (message.get("by"), False))
            elif do in ("focus", "hide", "back"):
                {"focus": lambda: self.focus(node), "hide": self.hide, "back": self.back}[do]()
        except (TypeError, ValueError, IndexError):  # of a page of another time, or of somebody else
            pass
        finally:
            self._is_quiet = False
        return self.html()

    _is_quiet = False

    def _drawn(self):
        if self._widget is not None and not self._is_quiet:
            self._widget.send({"html": self.html()})
        return self

    # --- back to Python ---

    @property
    def query(self):
        """The text of a query that finds the chosen nodes: short where one node with all below it is chosen and its name alone finds
        the same, else by their paths; "": none are chosen."""
        if not self._nodes:
            return ""
        chosen = set(self._nodes)
        top = self._nodes[0]
        if set(self._below(top)) == chosen:
            name = self._texts[0][top].replace("\\", "\\\\").replace('"', '\\"')
            short = f'[{{"name": "{name}"}}, "*"]'
            try:
                if set(map(int, self.of.find(short))) == chosen:
                    return short
            except library.Error:  # the name is no pattern: operator()(
                pass
        return self.of.select(self._nodes)

    @property
    def frame(self):
        """The frame of what is left: hidden nodes, those outside the focus and those below the least share are gone."""
        if not self._hidden and self._focus is None and not self._least:
            return self.of
        inside = set(self._below(self._focus)) if self._focus is not None else None
        keep = [self._is_kept(n) and (inside is None or n in inside) for n in range(len(self.of))]
        return self.of._left(keep, True)

    @property
    def table(self):
        """The chosen nodes' rows of to_pandas()."""
        return self.of.to_pandas().loc[self._nodes]

    # --- HTML ---

    def _place(self, node):
        file, line = os.path.basename(self._texts[1][node]), self._texts[2][node]
        return f"{file}:{line}" if file and line else file

    def _bar(self, node):
        value, most = self._value(node), self._most or 1
        width = 100 * abs(value) / most
        style = f"left:{'50' if value > 0 else f'{50 - width / 2:.1f}'}%;width:{width / 2:.1f}%" if self._is_signed \
            else f"left:0;width:{width:.1f}%"
        return f'<span class="locus-bar"><i{" class=less" if value < 0 else ""} style="{style}"></i></span>'

    def _cells(self, node):
        value = float(self._values[node])
        shown = "" if math.isnan(value) else f"{value:+.6g}" if self._is_signed else f"{value:.6g}"
        side = self._missing[node] if self._missing is not None else None
        arrow = ' <span title="only on the {1}">{0}</span>'.format(*SIDES[side]) if side in SIDES else ""
        place = self._place(node)
        return (f'{self._bar(node)}<span class="locus-value">{shown}</span><b>{escaped(self._texts[0][node])}</b>{arrow}' +
                (f"<small>{escaped(place)}</small>" if place else ""))

    def _row(self, node, depth, above):
        if node is None:
            return f'<div class="locus-row" style="padding-left:{depth + 1.2}em">{above} more, with less</div>'
        is_open, has = node in self._open and node not in above, bool(self._children(node))
        sign = "\N{RIGHTWARDS ARROW WITH HOOK}" if node in above else "" if not has else "\N{BLACK DOWN-POINTING SMALL TRIANGLE}" \
            if is_open else "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
        classes = "locus-row" + " chosen" * (node in self._chosen) + " found" * (node in self._found)
        state = f' aria-expanded="{"true" if is_open else "false"}"' if has else ""
        return (f'<div class="{classes}" role="treeitem" aria-level="{depth + 1}" aria-selected="{"true" if node in self._chosen else "false"}"'
                f'{state} data-node="{node}" style="padding-left:{depth}em"><span class="locus-open">{sign}</span>{self._cells(node)}</div>')

    def _chosen_table(self):
        """The chosen nodes with all columns and attributes, by the one that was clicked."""
        if not self._nodes:
            return ""
        of, nodes = self.of, self._nodes
        columns = [("name", self._texts[0]), ("kind", of.kinds)] + [(c, of.values(c)) for c in of.all_columns] + \
            [(a, of.attribute(a)) for a in of.attributes]
        cells = {"place": {n: self._place(n) for n in nodes}, **{name: {n: values[n] for n in nodes} for name, values in columns}}
        names = ["name", "place"] + [name for name, _ in columns[1:]]
        if self._sort is not None and self._sort[0] in cells:
            by = cells[self._sort[0]]
            nodes = sorted(nodes, key=lambda n: by[n] if isinstance(by[n], str) else -_number(by[n]), reverse=self._sort[1])
        body = "".join("<tr>" + "".join(f"<td>{escaped(_shown_cell(cells[c][n]))}</td>" for c in names) + "</tr>" for n in nodes[:N_TABLE])
        more = f"<p>{len(nodes) - N_TABLE} more</p>" if len(nodes) > N_TABLE else ""
        return (f'<div style="overflow:auto;max-height:{self.height}px"><table><thead><tr>' +
                "".join(f'<th data-sort="{escaped(c)}">{escaped(c)}</th>' for c in names) + f"</tr></thead><tbody>{body}</tbody></table>{more}</div>")

    def html(self):
        """What a page with a kernel shows."""
        self._chosen = set(self._nodes)
        made, n_left, room = [], 0, N_BYTES
        for row in self._rows():
            text = self._row(*row) if room > 0 else ""
            made.append(text)
            room, n_left = room - len(text.encode("utf-8", "replace")), n_left + (not text)
        rows = "".join(made) + (self._row(None, 0, n_left) if n_left else "")
        trail = [f"{len(self._hidden)} hidden"] if self._hidden else []
        trail += [f"least share {self._least:g} %"] if self._least else []
        trail += ["focus: " + self._texts[0][self._focus]] if self._focus is not None else []
        trail += [f"{len(self._found)} found"] if self._text else []
        head = (f'<div><input type="search" placeholder="search ( / )" aria-label="Search" value="{escaped(self._text)}"> '
                f'<label>least share <input type="range" min="0" max="20" step="0.5" value="{self._least:g}"></label> '
                f'<button data-do="hide">Hide (H)</button> <button data-do="back">Back (Esc)</button> {escaped(", ".join(trail))}</div>')
        return (f'{STYLE}{head}<div class="locus"><div class="locus-tree" role="tree" tabindex="0" aria-label="{escaped(self.column)}" '
                f'style="max-height:{self.height}px">{rows}</div>{self._chosen_table()}</div>')

    _chosen: "set[int]" = set()

    def _static(self):
        """The costliest nodes as elements that open and close by themselves."""
        kept, made = {}, []
        waiting = [(-abs(self._value(n)), n, None) for n in self._roots]
        heapq.heapify(waiting)
        while waiting and len(kept) < N_STATIC:  # the costliest of those whose parent is there
            _, node, above = heapq.heappop(waiting)
            if node in kept:
                continue
            kept[node] = above
            for below_it in self._children(node)[:N_CHILDREN]:
                heapq.heappush(waiting, (-abs(self._value(below_it)), below_it, node))
        below = {}
        for node, above in kept.items():
            below.setdefault(above, []).append(node)
        stack = [(n, 0) for n in reversed(below.get(None, []))]
        while stack:
            node, depth = stack.pop()
            if isinstance(node, str):
                made.append(node)
                continue
            left = len(self._children(node)) - len(below.get(node, []))
            if not below.get(node):
                made.append(f"<p>{self._cells(node)}{f' <small>{left} below</small>' if left else ''}</p>")
                continue
            made.append(f"<details{' open' if depth < OPEN_DEPTH else ''}><summary>{self._cells(node)}</summary>")
            stack.append((f"<p><small>{left} more, with less</small></p></details>" if left else "</details>", 0))
            stack.extend((n, depth + 1) for n in reversed(below[node]))
        return f'{STYLE}<div class="locus"><div class="locus-tree" style="max-height:{self.height}px">{"".join(made)}</div></div>'

    def _repr_html_(self):
        _register()
        return f'<div id="{self.id}">{self._static()}</div>' + CLASSIC % {"id": self.id, "target": TARGET}

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        made = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if importlib.util.find_spec("anywidget"):
            if self._widget is None:
                self._widget = _anywidget(self)
            shown = self._widget._repr_mimebundle_(include=include, exclude=exclude)
            data, metadata = shown if isinstance(shown, tuple) else (shown or {}, {})
            return {**made, **data, "text/html": made["text/html"]}, metadata
        return made

    def __repr__(self):
        return self.of.tree(self.column) if self.column else repr(self.of)


def _number(value):
    """A number to sort by: what is none comes last."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return -math.inf
    return -math.inf if math.isnan(number) else number


def _shown_cell(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{float(value):.6g}" if hasattr(value, "__float__") and not isinstance(value, str) else str(value)


def _anywidget(tree):
    """The widget of a tree, where anywidget is there."""
    import anywidget  # pylint: disable=import-error, import-outside-toplevel
    kind = type("LocusTree", (anywidget.AnyWidget,), {"_esm": MODULE})
    widget = kind()
    widget.on_msg(lambda _, message, __: widget.send({"html": tree.handle(message)}))
    return widget


def _register():
    """Lets pages of the classic notebook reach their trees, where there is a kernel."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    manager = getattr(getattr(shell, "kernel", None), "comm_manager", None)
    if manager is not None:
        manager.register_target(TARGET, opened)


def opened(comm, message):
    """What is done when a page has opened a comm: it is answered until it closes."""
    tree = _shown.get(message["content"]["data"].get("id"))
    if tree is None:
        comm.close()
        return
    comm.on_msg(lambda said: comm.send({"html": tree.handle(said["content"]["data"])}))
