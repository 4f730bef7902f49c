#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sessions on what other tools wrote, as viewers open them: a file of callgrind, a literal of Hatchet, a database of HPCToolkit.
Functions, lines and nodes have the costs of the file, and say which thing they are; sources are those that it names, and no others; what
is about data is refused with the reason. What is no
profile is refused as frames refuse it, and what is a database of ours as that."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import packed  # noqa: E402

CALLGRIND = """# callgrind format
version: 1
creator: by hand
cmd: ./app
events: Ir
fl=a.c
fn=main
1 10
cfn=work
calls=2 5
2 99
cfn=small
calls=1 9
3 1

fn=work
5 99

fn=small
9 1

totals: 110
"""
LITERAL = [{"frame": {"name": "main", "type": "function"}, "metrics": {"time": 1.0, "time (inc)": 5.0},
            "children": [{"frame": {"name": "work", "type": "function"}, "metrics": {"time": 4.0, "time (inc)": 4.0}}]}]
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def ask(path, **request):
    """The answer as JSON, or None and what was said."""
    result = subprocess.run([str(BUILD / "tests/lib/ask-packed"), "--json", str(path), json.dumps(request)], capture_output=True, check=False, text=True)
    if result.returncode:
        return None, result.stderr
    plain = subprocess.run([str(BUILD / "tests/lib/ask-packed"), str(path), json.dumps(request)], capture_output=True, check=True).stdout
    answer = json.loads(result.stdout)
    for sentence in packed.differences(packed.Answer(plain), answer):
        expect(False, f"{request}: {sentence}")
    return answer, ""


def by_name(rows, key):
    return {row[key]: row for row in rows}


def check_callgrind(scratch):
    path = scratch / "callgrind.out.1"
    path.write_text(CALLGRIND, encoding="utf-8")
    functions = by_name(ask(path, report="functions")[0]["functions"], "function")
    have = {name: (row["own"], row["inclusive"]) for name, row in functions.items()}
    expect(have == {"work": (99, 99), "main": (10, 110), "small": (1, 1)}, f"functions: {have}")
    expect(abs(functions["work"]["own_share"] - 90) < 1e-9 and functions["main"]["inclusive_share"] == 100, f"shares: {functions}")
    expect(list(functions) == ["work", "main", "small"], f"the order is {list(functions)}")
    first, _ = ask(path, report="functions", top=1)
    expect([row["function"] for row in first["functions"]] == ["work"], f"--top: {first}")
    nodes = ask(path, report="nodes")[0]
    rows = by_name(nodes["nodes"], "name")
    expect(nodes["total"] == 110 and rows["main"]["parent"] is None and rows["main"]["value"] == 110, f"nodes: {rows['main']}")
    expect(rows["work"]["value"] == 99 and nodes["nodes"][rows["work"]["parent"]]["name"] == "main", f"nodes: {rows['work']}")
    expect(rows["work"]["item"] == "function:work", f"the thing of a node is {rows['work']['item']}")
    folded = by_name(ask(path, report="nodes", min=5)[0]["nodes"], "name")
    expect("small" not in folded and folded["1 small"]["value"] == 1 and folded["1 small"]["kind"] == "small", f"folded: {folded}")
    lines = {row["line"]: row["own"] or 0 for row in ask(path, report="lines")[0]["lines"]}
    expect(lines == {1: 10, 2: 0, 3: 0, 5: 99, 9: 1}, f"lines: {lines}")
    session = ask(path, report="session")[0]
    expect([each["name"] for each in session["metrics"]][:1] == ["Ir"] and session["path"] == str(path), f"session: {session}")
    for request, words in (({"report": "vars"}, "no data accesses"), ({"report": "functions", "metric": "Cy"}, "no metric 'Cy'"), ({"report": "nothing"}, "nothing"),
                           ({"report": "source", "subject": "a.c"}, "no file 'a.c' here"),
                           ({"report": "source", "subject": "/etc/passwd"}, "names no file"), ({"report": "trust"}, "no data accesses")):
        answer, said = ask(path, **request)
        expect(answer is None and words in said, f"{request}: {answer} {said}")


def check_literal(scratch):
    path = scratch / "literal.json"
    path.write_text(json.dumps(LITERAL), encoding="utf-8")
    have = {row["function"]: (row["own"], row["inclusive"]) for row in ask(path, report="functions")[0]["functions"]}
    expect(have == {"work": (4, 4), "main": (1, 5)}, f"literal: {have}")


def check_refused(scratch):
    measurement, text = scratch / "measurement", scratch / "text"
    measurement.mkdir()
    (measurement / "app-000000-000-007f0100-1-0.hpcrun").write_bytes(b"HPCRUN-profile____")
    text.write_text("hello", encoding="utf-8")
    (scratch / "ours").mkdir()
    (scratch / "ours" / "locus.db").write_bytes(b"LOCUS")
    for path, words in ((measurement, "hpcprof makes a database"), (text, "not a profile"), (scratch / "none", "No such file"), (scratch / "ours", "locus.db")):
        answer, said = ask(path, report="session")
        expect(answer is None and words in said, f"{path.name}: {answer} {said}")


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        check_callgrind(scratch)
        check_literal(scratch)
        check_refused(scratch)
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(1 if failures else 0)


main()
