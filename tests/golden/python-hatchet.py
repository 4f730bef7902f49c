# SPDX-License-Identifier: BSD-3-Clause
"""What users of Hatchet type: the statements of its documentation, one after the other, with what each should print here. Each is an
example of doctest, run under an interpreter that has pandas; so are the examples in the docstrings of the package. Those that need no
pandas run under this one as well."""
import doctest
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
if os.environ.get("LOCUS_SANITIZER"):
    print("SKIP: a program without the sanitizer cannot load a library that has it")
    sys.exit(77)
os.environ["LOCUS_LIBRARY"] = str(BUILD / ".libs" / "liblocus.so")
sys.path.insert(0, str(SOURCE / "python"))
import locus  # noqa: E402


def node(name, own, total, *children, **attributes):
    return {"frame": {"name": name, "type": "function", **attributes}, "metrics": {"time (inc)": total, "time": own}, "children": list(children)}


# The tree of Hatchet's documentation.
BAR = node("bar", 5.0, 20.0, node("baz", 5.0, 5.0), node("grault", 10.0, 10.0))
CORGE = node("corge", 10.0, 55.0, BAR, node("grault", 10.0, 10.0), node("garply", 15.0, 15.0))
THUD = node("thud", 5.0, 25.0, node("baz", 5.0, 5.0), node("garply", 15.0, 15.0))
FRED = node("fred", 5.0, 40.0, node("plugh", 5.0, 5.0), node("xyzzy", 5.0, 30.0, THUD))
LITERAL = [node("foo", 0.0, 135.0, BAR, node("qux", 0.0, 60.0, node("quux", 5.0, 60.0, CORGE)), node("waldo", 0.0, 55.0, FRED, node(
    "garply", 15.0, 15.0))), node("hoge (ほげ)", 0.0, 15.0, node("piyo", 15.0, 15.0))]
PLAIN = r"""
Reading: a list of dictionaries, a dictionary, its text, a file.

>>> gf = ht.GraphFrame.from_literal(literal)
>>> len(gf), gf.columns
(22, ['time (inc)', 'time'])
>>> gf == ht.GraphFrame.from_literal(json.dumps(literal)) == ht.GraphFrame.from_literal(io.StringIO(json.dumps(literal)))
True
>>> ht.GraphFrame.from_literal(literal[1]).names
['hoge (ほげ)', 'piyo']
>>> ht.GraphFrame.from_literal(io.BytesIO(str(literal[1]).encode())).names
['hoge (ほげ)', 'piyo']
>>> ht.GraphFrame.from_literal("[{")
Traceback (most recent call last):
...
locus._library.Error: literal: line 1: an object is not closed

A text and objects are read alike, whatever the objects are.

>>> def alike(literal):
...     return ht.GraphFrame.from_literal(literal).to_literal() == ht.GraphFrame.from_literal(json.dumps(literal)).to_literal()
>>> leaf = {"frame": {"name": "ü", "line": 3, "file": "a.c", "more": 1}, "metrics": {"t": 1, "u": None, "where": "x"}, "children": None}
>>> node = {"frame": {"name": "x"}, "metrics": {"t": True, "_hatchet_nid": 0}, "children": (leaf, dict(leaf), {**leaf, "duplicate": True})}
>>> alike([leaf]), alike([node]), alike((node, leaf)), alike([{**node, "attributes": {"module": "m"}}]), alike([{**node, "name": "y"}])
(True, True, True, True, True)
>>> import fractions
>>> from collections import OrderedDict
>>> ht.GraphFrame.from_literal([OrderedDict(leaf), {"frame": {"name": "a"}, "metrics": {"t": fractions.Fraction(1, 2)}}]).values("t").tolist()
[1.0, 0.5]
>>> node["children"] = [node]
>>> ht.GraphFrame.from_literal(node)
Traceback (most recent call last):
...
ValueError: Circular reference detected
>>> for wrong in [], [1], [{"frame": 1}], [{"frame": {"name": "x"}, "children": 3}]:
...     try:
...         ht.GraphFrame.from_literal(wrong)
...     except ht.Error as error:
...         print(str(error)[:50])
literal: not a profile that can be read; these can
literal: not a profile that can be read; these can
literal: line 1: "frame" and "metrics" are objects
literal: line 1: "children" is a list
>>> chain = {"frame": {"name": "f"}, "metrics": {"t": 1}}
>>> for _ in range(20000):
...     chain = {"frame": {"name": "f"}, "metrics": {"t": 1}, "children": [chain]}
>>> len(ht.GraphFrame.from_literal(chain))
20001
>>> chain = {"frame": {"name": "c"}, "metrics": {"t": 1}}

Many nodes are asked for one by one, and graphs whose siblings are alike.

>>> many = [node for node in gf.traverse()] * 10
>>> [node.frame["name"] for node in many] == gf.names * 10, {tuple(node.frame) for node in many}
(True, {('name', 'type')})
>>> [[int(child) for child in node.children] for node in many] == [gf.children(node) for node in range(22)] * 10
True
>>> leaf, twin = {"frame": {"name": "b"}, "metrics": {"t": 1}}, {"frame": {"name": "b"}, "metrics": {"t": 1}, "children": [chain]}
>>> one, two = [{"frame": {"name": "a"}, "metrics": {"t": 1}, "children": below} for below in ([leaf, leaf], [leaf, twin])]
>>> three = {**two, "children": [twin, leaf]}
>>> one, two, three = map(ht.GraphFrame.from_literal, ([one], [two], [three]))
>>> one.graph == two.graph, two.graph == three.graph, two.graph == two.copy().graph
(False, True, True)

Functions are asked once about the columns where that says the same, and else about each row.

>>> pairs = [(lambda r: r["time"] * 2 - 1 > 9, lambda r: bool(r["time"] * 2 - 1 > 9)),
...          (lambda r: (r["time"] > 4) & (r["name"] == "bar"), lambda r: bool((r["time"] > 4) & (r["name"] == "bar"))),
...          (lambda r: r["line"] - 1 < 0, lambda r: bool(r["line"] - 1 < 0)), (lambda r: r["name"] != "bar", lambda r: bool(r["name"] != "bar"))]
>>> [len(gf.filter(a)) for a, b in pairs] == [len(gf.filter(b)) for a, b in pairs], [gf.filter(a) == gf.filter(b) for a, b in pairs]
(True, [True, True, True, True])
>>> [gf.filter(lambda r: r["absent"] > 1)]
Traceback (most recent call last):
...
KeyError: "there is no column 'absent'; there are: name, type, kind, file, line, module, depth, node_id, node, time (inc), time"
>>> of, by = gf.values("time"), "max min sum mean count p50".split()
>>> grouped = {function: gf.groupby("name", function) for function in [*by, "std", len, lambda values: values[-1]]}
>>> [[name, *(round(float(grouped[f].values("time")[k]), 3) for f in grouped)] for k, name in enumerate(grouped[len].names) if name in ("bar", "garply")]
[['bar', 5.0, 5.0, 10.0, 5.0, 2.0, 5.0, 0.0, 2.0, 5.0], ['garply', 15.0, 15.0, 45.0, 15.0, 3.0, 15.0, 0.0, 3.0, 15.0]]
>>> [round(float(gf.groupby("type", how).values("time")[0]), 3) for how in (*by, "std", len)]
[15.0, 0.0, 150.0, 6.818, 22.0, 5.0, 4.896, 22.0]
>>> ranks = gf.union(gf * 3, gf + 1)
>>> [word for word in by[:-2] + ["std", "p25"] for edges in (False, True) if not ranks.groupby("name", word, edges).equal(
...     ranks.groupby("name", {"time": word, "time (inc)": lambda v, f=ht._hatchet._function(word): f(v)}, edges))]
[]
>>> [gf.run("group", "name", *words).run("flat").columns for words in (["edges", "p50"], ["min"], ["edges"])][0]
['time (inc)', 'time']
>>> gf.run("group", "name", "min", "edges")
Traceback (most recent call last):
...
locus._library.Error: groups are with 'edges' or without, not with 'min'
>>> gf.run("group", "name", "most")
Traceback (most recent call last):
...
locus._library.Error: 'most' is no way to make one value of several: sum, mean, min, max, std, count, p50
>>> bare = ht.GraphFrame.from_literal([{"frame": {"name": "a"}, "metrics": {"t (inc)": 5.0, "u (inc)": 3.0, "u": 1.0},
...     "children": [{"frame": {"name": "b"}, "metrics": {"t (inc)": 2.0, "u (inc)": 2.0, "u": 2.0}}]}])
>>> [bare.copy().generate_exclusive_columns(names).columns for names in ("u (inc)", ["t (inc)"], None)]
[['t (inc)', 'u (inc)', 'u'], ['t (inc)', 't', 'u (inc)', 'u'], ['t (inc)', 't', 'u (inc)', 'u']]
>>> bare.copy().generate_exclusive_columns().values("t").tolist()
[3.0, 2.0]

Copies share what was asked, and nodes stay when their frame is closed.

>>> twin = gf.copy()
>>> nodes = list(twin.graph.traverse())
>>> all(a is b for a, b in zip(nodes, gf.traverse())), [n.frame == gf.graph.roots[0].frame for n in nodes[:2]]
(True, [True, False])
>>> twin.close()
>>> nodes[1].name, nodes[1].children[0].frame, gf.names[:2]
('bar', {'name': 'baz', 'type': 'function'}, ['foo', 'bar'])

>>> below = gf.copy().subtree_sum(["time"], ["most"], max).subtree_sum(["time"], ["least"], min)
>>> [(node.name, float(below.values("most")[node]), float(below.values("least")[node])) for node in below.traverse()][:7]
[('foo', 15.0, 0.0), ('bar', 10.0, 5.0), ('baz', 5.0, 5.0), ('grault', 10.0, 10.0), ('qux', 15.0, 0.0), ('quux', 15.0, 5.0), ('corge', 15.0, 5.0)]
>>> large = ht.GraphFrame.from_literal([{**node, "metrics": dict(node["metrics"])} for node in literal * 9])
>>> len(large), float(large.groupby("type", "min").values("time")[0]), float(large.groupby("type", "p50").values("time")[0])
(198, 0.0, 5.0)
>>> [round(float(large.groupby("type", how).values("time")[0] / gf.groupby("type", how).values("time")[0]), 9)
...  for how in ("sum", "count", len, "max", "mean", "std")]
[9.0, 9.0, 9.0, 1.0, 1.0, 1.0]
>>> large.subtree_sum(["time"], ["most"], max).subtree_sum(["time"], ["least"], min).values("most").tolist()[:44] == below.values("most").tolist() * 2
True
>>> large.values("least").tolist()[:44] == below.values("least").tolist() * 2
True
>>> [gf_.values("time")[1] for gf_ in (gf * 2, gf / 0, 5 / gf, 1 - gf)]
[10.0, nan, 1.0, -4.0]

Looking at it.

>>> print(gf.tree(depth=3))
time: 150   (nodes below 1 % are left out)
   with     without   what is called
  90.0 %    0.0 %  foo
  40.0 %    3.3 %    qux › quux
  36.7 %    6.7 %      corge
  36.7 %    0.0 %    waldo
  26.7 %    3.3 %      fred
  10.0 %   10.0 %      garply
  13.3 %    3.3 %    bar
   6.7 %    6.7 %      grault
   3.3 %    3.3 %      baz
  10.0 %   10.0 %  hoge (ほげ) › piyo
<BLANKLINE>
>>> print(gf.to_dot()[:15])
digraph "frames
>>> print(gf.to_flamegraph(), end="")
foo;bar 5
foo;bar;baz 5
foo;bar;grault 10
foo;qux;quux 5
foo;qux;quux;corge 10
foo;qux;quux;corge;bar 5
foo;qux;quux;corge;bar;baz 5
foo;qux;quux;corge;bar;grault 10
foo;qux;quux;corge;grault 10
foo;qux;quux;corge;garply 15
foo;waldo;fred 5
foo;waldo;fred;plugh 5
foo;waldo;fred;xyzzy 5
foo;waldo;fred;xyzzy;thud 5
foo;waldo;fred;xyzzy;thud;baz 5
foo;waldo;fred;xyzzy;thud;garply 15
foo;waldo;garply 15
hoge (ほげ);piyo 15
>>> gf.default_metric, gf.exc_metrics, gf.inc_metrics, gf.show_metric_columns()
('time', ['time'], ['time (inc)'], ['time (inc)', 'time'])
>>> gf.to_literal() == ht.GraphFrame.from_literal(gf.to_literal()).to_literal()
True
>>> sorted(name for name in dir(gf) if name.startswith("to_"))
['to_callgraph', 'to_callgrind', 'to_callgrind_data', 'to_chrome', 'to_csv', 'to_dot', 'to_flamegraph', 'to_folded', 'to_json', 'to_literal', 'to_pandas', 'to_pprof', 'to_speedscope', 'to_table', 'to_tree']
>>> [type(getattr(gf, "to_" + name)()).__name__ for name in ("callgrind", "chrome", "csv", "json", "pprof", "speedscope")]
['str', 'str', 'str', 'str', 'bytes', 'str']

Going through it.

>>> [node.name for node in gf.traverse()][:5]
['foo', 'bar', 'baz', 'grault', 'qux']
>>> [node.name for node in gf.graph.traverse(order="post")][:5]
['baz', 'grault', 'bar', 'baz', 'grault']
>>> root = gf.graph.roots[0]
>>> root.frame["name"], root.frame["type"], [child.name for child in root.children], root.parents, root.depth
('foo', 'function', ['bar', 'qux', 'waldo'], [], 0)
>>> [node.name for node in list(gf)[9].path()]
['foo', 'qux', 'quux', 'corge', 'bar', 'grault']

Filter and query.

>>> filtered_gf = gf.filter(lambda x: x['time'] > 10.0)
>>> filtered_gf.names, filtered_gf.values("time").tolist()
(['garply', 'piyo'], [45.0, 15.0])
>>> gf.filter(lambda x: x["time"] > 4 and x["name"].startswith('g')).names
['grault', 'garply']
>>> two = lambda x: (x["time"] > 4) + (x["depth"] > 2) + (x["time (inc)"] > 20) >= 2  # of flags: numbers, and no numpy's "or"
>>> same = lambda f: gf.filter(f, squash=False).names == gf.filter(lambda x: bool(f(x)), squash=False).names
>>> same(two), same(lambda x: x["name"][0] == "q"), same(lambda x: (x["time"] > 4) & (x["depth"] + 1 > 2))
(True, True, True)
>>> kept = gf.filter(lambda x: x['time'] > 10.0, squash=False)
>>> len(kept), kept.squash() == filtered_gf
(22, True)
>>> query = [{"name": "qux"}, ("*", {"time (inc)": "> 10"}), {"name": "gr[a-z]+", "time (inc)": ">= 10"}]
>>> print(gf.filter(query).tree().splitlines()[2])
 100.0 %   12.5 %  qux › quux
>>> gf.query(query).names
['qux', 'quux', 'corge', 'bar', 'grault', 'grault']
>>> gf.query('MATCH (".", p)->("*", q) WHERE p."name" = "corge" AND q."time" >= 10').names
['corge', 'grault', 'garply']
>>> myQuery = [{"name": "corge"}, "*"]
>>> len(gf.filter(myQuery)), gf.filter(str(myQuery).replace("'", '"')) == gf.query(myQuery)
(6, True)
>>> gf.find([(2, {"depth": [">= 1", "<= 2"]}), "."])[:3], gf.find([[2, {"time": 5}], "."])
([4, 5, 6], [13, 15, 16, 17, 18])
>>> match = ht.QueryMatcher().match(".", lambda row: row["name"] == "fred").rel("*", lambda row: row["time"] < 10)
>>> gf.query(match).names
['fred', 'plugh', 'xyzzy', 'thud', 'baz']
>>> both = ht.AndQuery([{"name": "bar"}, "*"], [{"name": "corge"}, "*"])
>>> gf.query(both).names, gf.find(ht.Query(["*", {"name": "bar"}]) & both), len(gf.find(~both))
(['bar', 'baz', 'grault'], [7], 19)
>>> gf.filter(lambda x: x["time"] > 1000)
Traceback (most recent call last):
...
locus._library.Error: no node is left

Copies.

>>> other = gf.copy()
>>> other == gf, other.graph == gf.graph, gf.deepcopy() == gf, copy.copy(gf) == gf, copy.deepcopy(gf) == gf
(True, True, True, True, True)
>>> pickle.loads(pickle.dumps(gf)) == gf
True
>>> gf == 5, gf != gf.flat(), gf.graph == filtered_gf.graph
(False, True, False)

Arithmetic.

>>> gf2 = ht.GraphFrame.from_literal(literal[:1])
>>> gf3 = gf - gf2
>>> [(node.name, gf3.values()[node]) for node in gf3 if gf3.values()[node]]
[('piyo', 15.0)]
>>> (gf + gf2).values().tolist()[:4], (gf * gf2).values().tolist()[:4], (gf / gf2).values().tolist()[1:4]
([0.0, 10.0, 10.0, 20.0], [0.0, 25.0, 25.0, 100.0], [1.0, 1.0, 1.0])
>>> (gf + 1).values().tolist()[:3], (2 * gf).values().tolist()[:3], (gf / 2 - 1).values().tolist()[:3], (1 - gf).values().tolist()[:2]
([1.0, 6.0, 6.0], [0.0, 10.0, 10.0], [-1.0, 1.5, 1.5], [1.0, -4.0])
>>> gf3 += gf2
>>> gf3 == gf
True
>>> gf3 -= gf; gf3 *= 3; gf3 /= 2
>>> set(gf3.values())
{0.0}
>>> sum([gf, gf, gf2]) == gf + gf + gf2
True
>>> gf + "1"
Traceback (most recent call last):
...
TypeError: unsupported operand type(s) for +: 'Frame' and 'str'
>>> [len(f) for f in gf2.unify(gf)]
[22, 22]

Other shapes.

>>> groups = gf.groupby("name", max)
>>> dict(zip(groups.names, groups.values()))["garply"], len(groups), len(groups.roots)
(15.0, 15, 15)
>>> by_name = gf.groupby_aggregate("name", {"time": "mean", "time (inc)": lambda v: 1000 * len(v)})
>>> [(n.name, by_name.values()[n], by_name.values("time (inc)")[n]) for n in by_name.traverse()][:3]
[('foo', 0.0, 1000.0), ('bar', 5.0, 2000.0), ('baz', 5.0, 3000.0)]
>>> [child.name for child in by_name.graph.roots[0].children]
['bar', 'qux', 'waldo']
>>> gf.to_callgraph().names == gf.flatten().names == gf.flatten("name").names
True
>>> lists = ht.GraphFrame.from_lists(["a", ["b", "c"], "d"])
>>> lists.values("time (inc)").tolist()
[4.0, 2.0, 1.0, 1.0]
>>> [node.name for node in gf.hot_path()], [node.name for node in gf.hot_path(start_node=root.children[2], threshold=0.7)]
(['foo', 'qux'], ['waldo', 'fred', 'xyzzy', 'thud', 'garply'])
>>> halved = gf / 2
>>> halved.update_inclusive_columns() is halved, halved.values("time (inc)").tolist()[:2]
(True, [67.5, 10.0])
>>> gf.copy().subtree_sum(["time"], ["largest below"], max).values("largest below").tolist()[:4]
[15.0, 10.0, 5.0, 10.0]

Leaves are at depth -1, a pattern may look ahead, and conditions in braces are about the whole pattern.

>>> gf = ht.GraphFrame.from_literal(literal)
>>> gf.find([{"depth": "== -1"}]) == gf.find([{"depth": -1}]) == [n for n in range(len(gf)) if not gf.children(n)]
True
>>> set(gf.query([{"name": "(?!g|b|h)(?=.o).*"}]).names) == {"foo", "corge"}
True
>>> sorted(set(gf.query([{"name": "(?!fo[)|o]?)(foo|corge)"}]).names))
['corge']
>>> sorted(set(gf.query([{"name": "(?![\\])f])(foo|corge)"}]).names))
['corge']
>>> sorted(set(gf.query('MATCH (p)->(q) WHERE {p."name" = "thud"} OR {q."name" = "plugh"}').names))
['baz', 'fred', 'garply', 'plugh', 'thud']
>>> len(gf - gf) == len(gf)
True

Ranks and threads.

>>> ranks = ht.GraphFrame.from_hpctoolkit(data + "/hpctoolkit-cpi-database")
>>> len(ranks.profiles), ranks.profiles[1].rank, ranks.drop_index_levels(function=max).profiles[0].name
(4, 1, 'all')
>>> ranks = ht.GraphFrame.from_hpctoolkit(data + "/hpctoolkit-cpi-database")
>>> ranks.load_imbalance(metric_column="time", verbose=True).columns
['time mean', 'time max', 'time imbalance', 'time.mean', 'time.max', 'time.imbalance']
>>> print(ranks.tree(rank=1, metric_column=["time (inc)", "time"], depth=2).splitlines()[3])
  33.5 %    5.4 %    <unknown procedure>
>>> ranks.drop_index_levels().to_dot(rank=0, thread=0) == ranks.to_dot()
True
"""
WITH_PANDAS = r"""
>>> gf = ht.GraphFrame.from_literal(literal)
>>> print(gf.dataframe.head(3))  # doctest: +NORMALIZE_WHITESPACE
      time (inc)  time name      type
node
0          135.0   0.0  foo  function
1           20.0   5.0  bar  function
2            5.0   5.0  baz  function
>>> gf["time"].sum(), gf["name"][0], "time" in gf
(150.0, 'foo', True)
>>> gf.dataframe['scale'] = gf.dataframe['time'] * 4
>>> sorted_df = gf.dataframe.sort_values(by=['scale'], ascending=False)
>>> list(sorted_df["scale"])[:3], gf.tree(metric_column='scale').splitlines()[0]
([60.0, 60.0, 60.0], 'scale')
>>> table = gf.dataframe.copy()
>>> table["third"] = table["time"] / 3
>>> gf.dataframe = table
>>> "third" in gf.columns
True
>>> gf["time"] *= 2
>>> gf.values("time").tolist()[:4], gf.filter(lambda x: x["scale"] > 50).names
([0.0, 10.0, 10.0, 20.0], ['garply', 'piyo'])
>>> gf.flat_profile()["time"].head(2).to_dict()
{'garply': 90.0, 'grault': 60.0}
>>> twin = gf.copy()
>>> twin.dataframe["time"] = 7.0
>>> gf.copy() == gf, twin.copy() == gf, twin.copy().values("time").tolist()[:2], gf.values("time").tolist()[:2]
(True, False, [7.0, 7.0], [0.0, 10.0])
>>> grouped = gf.dataframe.groupby('name')["time"].sum()
>>> grouped["garply"]
90.0
>>> gf.correlation_analysis(["time", "time (inc)"]).shape
(2, 2)

A cross section.

>>> ranks = ht.GraphFrame.from_hpctoolkit(data + "/hpctoolkit-cpi-database")
>>> list(ranks.dataframe.index.names)
['node', 'rank', 'thread']
>>> print(ranks.dataframe.xs(0, level="rank").head(3)[["time (inc)", "name"]])  # doctest: +NORMALIZE_WHITESPACE
             time (inc)            name
node thread
0    0         0.999238  <program root>
1    0         0.999238            main
13   0         0.999238    MPI_Finalize
>>> ranks.drop_index_levels(function=np.max)
<locus.Frame: 34 nodes, 1 profiles, columns time (inc), time>
>>> list(ranks.dataframe.index.names)
['node']
>>> threads = ht.GraphFrame.from_hpctoolkit(data + "/hatchet_cpi_v4_database")
>>> list(threads.dataframe.index.names), sorted(set(threads.dataframe.index.get_level_values("thread")))
(['node', 'rank', 'thread'], [0, 3])
>>> np.float64(2) * gf == gf * 2
True
>>> [str(gf.dataframe[name].dtype) for name in ("name", "type", "time")]
['category', 'category', 'float64']
"""
EXAMPLES = [{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 1.0, "time (inc)": 5.0},
             "children": [{"frame": {"name": "work", "type": "function"}, "metrics": {"time": 4.0, "time (inc)": 4.0}}]}]


def data():
    """The databases of Hatchet's tests, which lie beside the tree; None: they do not."""
    found = SOURCE.parent / "shared" / "data" / "hpctoolkit" / "hatchet"
    return str(found) if found.is_dir() else None


def run(name, text, names, failures):
    test = doctest.DocTestParser().get_doctest(text, names, name, __file__, 0)
    said = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test, out=said.append)
    failures += said
    return len(test.examples)


def check():
    """All examples that this interpreter can run; returns the failures."""
    import copy
    import io
    import pickle
    try:
        import numpy
        import pandas  # noqa: F401
    except ImportError:
        numpy = None
    names = {"ht": locus, "json": json, "io": io, "copy": copy, "pickle": pickle, "literal": LITERAL, "np": numpy,
             "has_pandas": numpy is not None, "data": data()}
    failures, n = [], 0
    for text in [PLAIN] + [WITH_PANDAS] * (numpy is not None):
        if not data():
            text = text.partition("Ranks and threads.")[0].partition("A cross section.")[0]
        n += run("the seed", text, dict(names), failures)
    for module in ("locus._hatchet", "locus"):
        for test in doctest.DocTestFinder().find(sys.modules[module]):
            if numpy is not None or "pandas" not in test.docstring and "dataframe" not in test.docstring:
                if ">>>" in test.docstring and "session" not in test.docstring:
                    with tempfile.TemporaryDirectory() as scratch:
                        path = os.path.join(scratch, "path")
                        pathlib.Path(path).write_text(json.dumps(EXAMPLES), encoding="ascii")
                        n += run(test.name, test.docstring, {"locus": locus, "path": path, "frame": locus.Frame.open(path)}, failures)
    if n < 160:
        failures.append(f"{n} examples")
    return failures


def main():
    failures = check()
    if data() is None:
        print("SKIP: databases with ranks: ../shared/data/hpctoolkit/hatchet is not there")
    if sys.argv[1:] != ["--here"]:
        for python in ("/usr/bin/python3",):
            if subprocess.run([python, "-c", "import numpy, pandas"], capture_output=True, check=False).returncode:
                print(f"SKIP: tables of pandas: {python} has none (python3-pandas)")
                continue
            done = subprocess.run([python, __file__, "--here"], capture_output=True, check=False, text=True)
            if done.returncode:
                failures.append(done.stdout + done.stderr)
    for sentence in failures[:40]:
        print("FAIL:", sentence[:3000])
    sys.exit(1 if failures else 0)


main()
