# SPDX-License-Identifier: BSD-3-Clause
"""What the meta tests share: the files of the tree, the folders of a file, C functions, and the verdict."""
import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", ROOT / "build"))
GENERATED = ("Makefile.in", "config.h.in", "aclocal.m4", "configure")
TOP = ("src", "tools", "tests", "doc", ".ci")


@functools.lru_cache(maxsize=None)
def files():
    """All files of the project as paths relative to the root: git's list, or the folders' in an unpacked tarball."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and (ROOT / ".git").exists():
        names = listed.stdout.splitlines()
    else:
        names = [str(p.relative_to(ROOT)) for top in TOP for p in (ROOT / top).rglob("*")]
        names += [p.name for p in ROOT.iterdir() if p.name not in GENERATED]
    return tuple(sorted(pathlib.PurePosixPath(n) for n in names if (ROOT / n).is_file()))


def sources(*suffixes, under=("src", "tools")):
    """Our own C (or other) files below the given top folders."""
    return [p for p in files() if p.suffix in (suffixes or (".c", ".h")) and p.parts[0] in under]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def without_comments(text):
    """C text with comments and string contents blanked; the lines stay where they are."""
    def blank(match):
        found = match.group(0)
        if found.startswith(("/*", "//")):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + re.sub(r"[^\n]", "_", found[1:-1]) + found[-1]
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def functions(text):
    """(name, first line, number of lines) of each function body: from the brace in column 0 to its end. The house
    style puts both braces of a function, and nothing else that follows a `)`, into column 0."""
    lines = without_comments(text).split("\n")
    found, start = [], None
    for i, line in enumerate(lines):
        if line == "{" and start is None:
            head = ""
            for j in range(i - 1, max(i - 12, -1), -1):
                head = lines[j] + " " + head
                if lines[j] == "" or lines[j][0] in "}#" or lines[j].endswith(";"):
                    break
            name = re.search(r"(\w+)\s*\([^{}]*\)[^(){}]*$", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head))
            if name:
                names = re.findall(r"(\w+)\s*\(", head)
                start = (names[0] if names else name.group(1), i + 1)
        elif line.startswith("}") and start is not None:
            found.append((start[0], start[1], i + 1 - start[1] - 1))
            start = None
    return found


def has_source(path, name):
    """Whether the source of an object is still there: make leaves the objects of removed ones behind."""
    folder = ROOT / str(path.parent.relative_to(BUILD)).removesuffix("/.libs")
    stems = {name.removesuffix(".o"), name.removesuffix(".o").partition("-")[2]}
    return any((folder / (stem + ending)).exists() for stem in stems for ending in (".c", ".S", ".cc"))


def objects(pattern):
    """Built object files of src/ and tools/ whose source matches the glob, libtool's and plain ones; in a libtool
    pair the position-independent object, which is the one that gets linked."""
    found = []
    for path in sorted(p for top in ("src", "tools") for p in (BUILD / top).rglob("*.o")):
        source = re.sub(r"^\w+_(la|a|test)-", "", path.name)
        if pathlib.PurePath(source).match(pattern) and not (path.parent / ".libs" / path.name).exists():
            if has_source(path, source):
                found.append(path)
    return found


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def finish(offenders, checked):
    """Prints the offenders; exit status 1 when there are any, 77 when nothing was there to check."""
    for line in offenders:
        print(f"FAIL: {line}")
    if not checked:
        skip("nothing of the kind exists in this tree")
    print(f"{checked} checked, {len(offenders)} offenders")
    sys.exit(1 if offenders else 0)
