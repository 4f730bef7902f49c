# SPDX-License-Identifier: BSD-3-Clause
"""Who may include whom. The table is the architecture: a folder sees its own headers and those of the folders listed
here. The subfolders of a room may have rows of their own; without one they belong to the room. A room in another room's row
stands for all that is in it, in the rows of its own subfolders for its own files alone. No cycle can arise."""
import graphlib
import pathlib
import re

import tree

MAY_SEE = {
    "src/base": [],
    "src/arena": ["base"],
    "src/fmt": ["base", "arena", "sampling/abi"],
    "src/measurement": ["base", "arena", "fmt"],
    "src/symnames": ["base"],
    "src/collect": ["base", "arena", "fmt", "measurement", "symnames", "sampling/abi"],
    "src/companion": ["base", "arena", "fmt", "measurement", "symnames", "collect", "fnbounds", "sampling/abi"],
    "src/import": ["base", "fmt", "sampling/abi"],
    "src/frame": ["base", "fmt"],
    "src/streams": ["base", "fmt", "measurement", "import", "sampling/abi"],
    "src/fnbounds": ["base"],
    "src/sampling": ["base"],
    "src/alloc-wrap": ["base"],
    "src/runtime": [],
    "src/runtime/own": ["base"],
    "src/runtime/unwind": ["base", "fnbounds", "runtime/own"],
    "src/runtime/objmap": ["base", "arena", "alloc-wrap", "runtime/own"],
    "src/runtime/record": ["base", "arena", "fnbounds", "sampling/abi", "runtime/own", "runtime/unwind",
                           "runtime/objmap"],
    "src/runtime/events": ["base", "arena", "sampling/abi", "runtime/own", "runtime/record"],
    "src/runtime/allocs": ["base", "arena", "alloc-wrap", "runtime/own", "runtime/unwind", "runtime/objmap",
                           "runtime/record", "runtime/events"],
    "src/runtime/process": ["base", "arena", "alloc-wrap", "runtime/own", "runtime/objmap", "runtime/record",
                            "runtime/events", "runtime/allocs"],
    "src/runtime/wrap": ["base", "arena", "alloc-wrap", "runtime/own", "runtime/objmap", "runtime/record",
                         "runtime/events", "runtime/process", "runtime"],
    "src/trial": ["base", "fmt"],
    "src/runtime/actions": ["base", "alloc-wrap", "runtime/own", "trial"],
    "src/structure/elf": ["base", "fnbounds"],
    "src/structure/cfg": ["base", "structure/elf"],
    "src/structure/types": ["base", "structure/elf"],
    "src/structure/names": ["base", "structure/elf", "structure/types"],
    "src/structure": ["base", "fnbounds", "structure/elf", "structure/cfg", "structure/types", "structure/names"],
    "src/structure/xml": ["base", "structure/elf", "structure/types", "structure"],
    "src/analysis": ["base", "arena", "fmt", "measurement", "symnames", "collect", "import", "fnbounds", "sampling/abi",
                     "structure"],
    "src/database": ["base", "arena", "fmt", "measurement", "structure", "analysis", "trial"],
    "src/table": ["base", "fmt"],
    "src/answer": ["base", "fmt", "analysis", "table"],
    "src/export": ["base", "arena", "fmt", "measurement", "frame", "streams", "import", "fnbounds", "structure",
                   "analysis", "database", "table", "answer", "trial"],
    "src/session": ["base", "fmt", "frame", "streams", "analysis", "database", "table", "answer", "export"],
    "src/face": ["base", "fmt", "table", "answer", "session"],
    "src/face/term": ["base", "table", "answer", "session"],
    "src/running": ["base", "arena", "fmt", "measurement", "collect", "fnbounds", "analysis"],
    "tools": ["base", "arena", "fmt", "measurement", "symnames", "collect", "companion", "import", "frame",
              "streams", "fnbounds", "sampling", "structure", "analysis", "database", "table",
              "answer", "export", "session", "face", "trial", "running"],
}
FOLDERS = [f.removeprefix("src/") for f in MAY_SEE if f.startswith("src/")]
# Faces send requests and show answers: what no file of theirs names.
FACES, UNSEEN = ("tools/hpcquery/", "tools/hpcviewer/", "src/face/", "python/"), re.compile(r"\bstruct (model|report|prepared|export_job)\b")
OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
MAX_OWN_INCLUDES = 10


def folder_of(path):
    """The longest row that the path lies under; the room itself when there is none."""
    rows = ["/".join(path.parts[:n]) for n in range(len(path.parts) - 1, 0, -1)]
    return next((r for r in rows if r in MAY_SEE), path.parts[0] if path.parts[0] == "tools" else "/".join(path.parts[:2]))


def room_of(folder):
    return "/".join(folder.split("/")[:2])


def sees(folder, target, included):
    """Whether the row of a folder allows to include what lies in another folder's row."""
    for seen in MAY_SEE[folder]:
        if target == "src/" + seen or room_of(target) != room_of(folder) and included.startswith(seen + "/"):
            return True
    return target == folder


def allowed(path, included):
    return "/" not in included or sees(folder_of(path), folder_of(pathlib.PurePosixPath("src", included)), included)


def cycles():
    """A sentence for a cycle in the table."""
    graph = {f: [t for t in MAY_SEE if t != f and sees(f, t, t.removeprefix("src/") + "/")] for f in MAY_SEE}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "the table of layers has a cycle: " + " -> ".join(error.args[1])


def check(path):
    text = tree.read(path)
    includes = OWN_INCLUDE.findall(text)
    for included in includes:
        if included.split("/")[0] in FOLDERS + ["tools"] and not allowed(path, included):
            yield f"{path} includes {included}; {folder_of(path)} may see only {MAY_SEE[folder_of(path)]}"
        if included.startswith(".."):
            yield f"{path} includes {included}: write the path from src/"
        local = (tree.ROOT / path).parent / included
        if "/" not in included and included != "config.h" and not local.exists():
            yield f"{path} includes {included}, which is not beside it"
    includes = [i for i in includes if i != "config.h"]
    if path.suffix == ".c" and len(includes) > MAX_OWN_INCLUDES:
        yield f"{path} has {len(includes)} own includes, at most {MAX_OWN_INCLUDES}"
    if path.name.endswith("-sig.c") and (not includes or includes[-1] != "base/sigsafe.h"):
        yield f"{path}: the last include of a -sig file is base/sigsafe.h"


def faces():
    """A sentence for each face that computes."""
    for path in map(str, tree.files()):
        found = UNSEEN.search(tree.read(path)) if path.startswith(FACES) and path.endswith((".c", ".h", ".py")) else None
        if found:
            yield f"{path} names {found[0]}: a face asks a session (src/session)"


def main():
    paths = tree.sources()
    unknown = {folder_of(p) for p in paths} - MAY_SEE.keys()
    offenders = [*cycles(), *faces()]
    offenders += [f"folder {f} is not in the table of layers" for f in sorted(unknown)]
    for path in paths:
        if folder_of(path) in MAY_SEE:
            offenders += check(path)
    tree.finish(offenders, len(paths))


main()
