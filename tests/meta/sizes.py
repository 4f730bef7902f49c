# SPDX-License-Identifier: BSD-3-Clause
"""A house of few, large rooms: how many files there are, how long they and their functions are, how much each needs from
others, and how far one sample travels. The table shows each figure, what it was before files were cut by chapter instead
of by a ceiling, and the goal; a figure fails beyond its limit. Where the limit is not the goal, the reason stands below
the table. Tables of data (generated, or rows only) count as files but have no functions."""
import re
import statistics

import tree

FILE_MAX, FUNCTION_MAX, MAX_COLUMNS, SHORT_LINES = 1000, 80, 120, 60
BELOW = (
    "files: the goal was set before there were frames, the browser's page and streams, whose readers, operations and\n"
    "forms for other tools are rows of tables, a file each. These rooms are counted apart, and have a limit of their own.\n"
    "Things that can be looked at took six: what finds them, their kinds by data, code and place, and their report.\n"
    "Samples in Python took three: the reader of its frames serves a handler and a hook, each of which is a file.",
    "extern functions with one client: a function of a handler's file (-sig), of a hook's or of a file that the build\n"
    "chooses cannot be static in the ordinary file that calls it; and a room with two or three chapters, each the other's\n"
    "only client, reads better than one file of 2000 lines. It was counted with tests as clients first (55 %).",
    "one sample's tour: CONTRIBUTING.md names where something is decided; what was counted before (84 files, 27 folder\n"
    "changes) was every file that its way touched, when the folders had no subfolders.",
    "include, guard and licence lines: every header names what it needs, system headers included.",
    "files: attaching has nine: its order, the calls in the program and its modules in the launcher; in the library what\n"
    "comes late (handler, ordinary code) and the slots of modules.",
    "files: BLOCKTIME has four: its source, the wrappers (a library of their own, so that nothing else pays for them), and\n"
    "what records a wait (waits.c, waits.h).",
    "tracked files: golden inputs of one purpose are one text; what remains are programs, scripts and texts of their own;\n"
    "the room of sessions, the columns of tables, the public faces of streams and texts, and the sessions of Python with their\n"
    "test and the benchmark of tables came then; levels of detail of time lines, with what viewers ask of them, came after;\n"
    "the screen of a terminal has a file for each view;\n"
    "somebody who does whatever comes in a page is a test of its own;\n"
    "then Hatchet's names and pandas' tables in Python, frames as text, and the tables of what neighbours' tools know; readers\n"
    "of Caliper's, pprof's and speedscope's files and of folded stacks, the Python package's own files, and reports over runs;\n"
    "the room of processes that run, with its tests and its views; files of callgrind read and written whole, and\n"
    "code of others' files as rows; the cases of Hatchet's own tests; many runs side by side;\n"
    "trials of programs that launchers of ranks start;\n"
    "where levels of time lines lie, and the index by which a window of a recording is read;\n"
    "literals that are objects of Python, the bench beside Hatchet, and the notebook of questions.",
)
# name, before, limit, goal as people say it
ROWS = {
    "files": ("files in src and tools, rooms of that time", 752, 463, "<= 430"),
    "later": ("files in rooms that came later", 0, 224, "-"),
    "short": ("files under 60 lines, %", 36.6, 15, "<= 15"),
    "median": (".c: median lines", 154, 350, "200-350"),
    "p90": (".c: nine in ten at most", 347, 700, "<= 700"),
    "max": (".c: the longest", 648, FILE_MAX, "<= 1000"),
    "one_client": ("extern functions with one client file, %", 60, 65, "<= 35"),
    "tour": ("files at the stops of one sample's tour", 84, 50, "<= 50"),
    "changes": ("changes of room on its way", 27, 12, "<= 12"),
    "function_median": ("function: median lines", 11, 15, "<= 15"),
    "function_p90": ("function: nine in ten at most", 22, 40, "<= 40"),
    "function_max": ("function: the longest", 59, FUNCTION_MAX, "<= 80"),
    "tracked": ("tracked files", 2693, 1440, "<= 1100"),
    "overhead": ("include, guard and licence lines, %", 5.5, 4, "<= 3"),
}
COUNTS = ("files", "later", "tracked")
ONE_MORE = "; if the new file has to be, a commit of its own raises the limit in ROWS of tests/meta/sizes.py"
LATER = ("src/frame/", "src/streams/", "src/export/frames/", "src/export/streams/", "src/export/advice/",
         "src/runtime/actions/", "src/trial/", "src/database/", "src/table/", "src/answer/", "src/session/", "src/face/", "src/running/")
PROTOTYPE = re.compile(r"^(?!static|typedef|#|extern)[A-Za-z_][\w \*]*?[ \*](\w+)\([^;{}]*\)[^;{}]*;", re.M)
DEFINITION = re.compile(r"^(?!static|typedef|#)[A-Za-z_][^;={}#]*?\b(\w+)\s*\([^;={}]*\)[^;={}]*\n\{\n", re.M)
OVERHEAD = re.compile(r"#\s*include\b|#ifndef \w+_H$|#define \w+_H$|#endif$|/\* SPDX")


def check_lines(path, lines):
    if len(lines) - 1 > FILE_MAX:
        yield f"{path} has {len(lines) - 1} lines, at most {FILE_MAX}"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{path}:{number} has {len(line)} columns, at most {MAX_COLUMNS}"
        if "\t" in line:
            yield f"{path}:{number} holds a tab"


def one_client(texts):
    """Percent of the functions of our headers that one file besides their own names."""
    words = {p: set(re.findall(r"\w+", t)) for p, t in texts.items()}
    declared = {name: p for p, t in texts.items() if p.suffix == ".h" for name in PROTOTYPE.findall(t)}
    defined = {}
    for path, text in texts.items():
        if path.suffix == ".c":
            for name in DEFINITION.findall(text):
                defined.setdefault(name, set()).add(path)
    counts = [len([p for p, w in words.items() if name in w and p != declared[name] and p not in files])
              for name, files in defined.items() if name in declared]
    return 100 * counts.count(1) / len(counts) if counts else 0


def tour():
    """(files, changes of room) of the first code tour in CONTRIBUTING.md, which tour.py holds against the code."""
    page = tree.read("CONTRIBUTING.md") if (tree.ROOT / "CONTRIBUTING.md").exists() else ""
    stops = re.findall(r"^\d+\. `((?:src|tools)/[\w/.-]+)`", page.partition("### One sample")[2].partition("\n### ")[0], re.M)
    rooms = ["/".join(stop.split("/")[:2]) for stop in stops]
    return len(set(stops)), sum(a != b for a, b in zip(rooms, rooms[1:]))


def measure(texts, lengths):
    n_lines = {p: t.count("\n") for p, t in texts.items()}
    code = sorted(n for p, n in n_lines.items() if p.suffix == ".c")
    overhead = sum(bool(OVERHEAD.match(line)) for t in texts.values() for line in t.split("\n"))
    n_files, n_changes = tour()
    n_later = sum(path.as_posix().startswith(LATER) for path in texts)
    blank = {p: tree.without_comments(t) for p, t in texts.items()}
    return {
        "files": len(texts) - n_later, "later": n_later, "short": 100 * sum(n < SHORT_LINES for n in n_lines.values()) / len(texts),
        "median": statistics.median(code), "p90": code[len(code) * 9 // 10], "max": code[-1],
        "one_client": one_client(blank), "tour": n_files, "changes": n_changes,
        "function_median": statistics.median(lengths), "function_p90": lengths[len(lengths) * 9 // 10],
        "function_max": lengths[-1], "overhead": 100 * overhead / sum(n_lines.values()),
        "tracked": len(tree.files()) if (tree.ROOT / ".git").exists() else 0,
    }


def main():
    offenders, lengths, texts = [], [0], {}
    paths = tree.sources(".c", ".h", ".S", under=("src", "tools", "tests"))
    for path in paths:
        text = tree.read(path)
        offenders += check_lines(path, text.split("\n"))
        if path.parts[0] == "tests":
            continue
        texts[path] = text
        if path.suffix == ".c":
            for name, first, n_lines in tree.functions(text):
                lengths.append(n_lines)
                if n_lines > FUNCTION_MAX:
                    offenders.append(f"{path}:{first} {name} has {n_lines} lines, at most {FUNCTION_MAX}")
    found = measure(texts, sorted(lengths))
    print(f"{'measured':42} {'before':>8} {'now':>8} {'limit':>8}  goal")
    for key, (title, before, limit, goal) in ROWS.items():
        print(f"{title:42} {before:8g} {found[key]:8.4g} {limit:8g}  {goal}")
        if found[key] > limit:
            offenders.append(f"{title}: {found[key]:.4g}, at most {limit:g}{ONE_MORE if key in COUNTS else ''}")
    print("\n".join(BELOW))
    tree.finish(offenders, len(paths))


main()
