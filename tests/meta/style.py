# SPDX-License-Identifier: BSD-3-Clause
"""The house style as far as a program can judge it: licence line, kebab-case names, a docstring on every public
prototype, no typedef of structs, no dead code, no notes to self, nobody but tools ends the process. And one voice for
what the programs say: errors go on behind the tool's name and a colon, or are a whole sentence; no sentence has words of
courtesy, contractions and the like."""
import re

import tree

CODE = {".c", ".h", ".S", ".cc", ".cpp", ".f90", ".py", ".sh", ".am", ".ac"}
KEBAB = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*(\.S)?$")
NOTES = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!:epoch)")
PRIVATE = re.compile(r"(?<![\w.])/(work|tmp/wt|tmp/bld)[/-]|\bruling \d|\bissue \d", re.I)
DEAD_CODE = re.compile(r"^\s*(/\*|\*|//)?\s*(\w[\w\s*>.\[\]-]* [-+|&]?= [^`]*|\w+\([^`]*\)|return\b[^`]*);\s*(\*/)?$")
EXITS = re.compile(r"(?<![\w.>])(_?exit|_Exit|quick_exit|abort)\s*\(")
MAY_EXIT = ("src/companion/", "src/runtime/", "src/alloc-wrap/", "src/trial/", "tools/")


ERROR = re.compile(r"\b(?:error_set|tool_error|tool_usage)\s*\(")
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?P<text>(?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)*'|(?P<name>[A-Za-z_]\w*)|\s+|.""", re.S)
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? +[a-z]{2,}")
NOT_SAID = re.compile(r"n't\b|\bsorry\b|\bfailed to\b|\bunable to\b|\binvalid\b|\bspecified\b|\butili[sz]e|[a-z]!|\be\.g\.|\bi\.e\.|\betc\b",
                      re.I)


def has_licence(text):
    return "SPDX-License-Identifier: BSD-3-Clause" in "\n".join(text.split("\n")[:2])


def prototypes(text):
    """(first line, name, follows another prototype without a gap) of each declaration or inline function."""
    lines = tree.without_comments(text).split("\n")
    depth, start, last_end = 0, None, -2
    for i, line in enumerate(lines):
        if line.startswith("#") or (i and lines[i - 1].endswith("\\")):
            continue
        if depth == 0 and start is None and line.strip():
            start = i
        depth += line.count("{") - line.count("}")
        if start is not None and depth == 0 and line.rstrip().endswith((";", "}")):
            head = " ".join(lines[start:i + 1]).split("{")[0]
            found = re.match(r"(?!typedef|_Static_assert)[\w\s*]*?\b(\w+)\s*\(", head)
            if found and "=" not in head.split("(")[0]:
                yield start, found.group(1), start == last_end + 1
                last_end = i
            start = None


def check_header(path, text):
    raw = text.split("\n")
    for start, name, grouped in prototypes(text):
        internal = path.name.endswith("-internal.h") and raw[start].startswith("static inline")
        if not grouped and not internal and not raw[start - 1].rstrip().endswith("*/"):
            yield f"{path}:{start + 1} {name} has no docstring"
    if not re.search(r"^#ifndef LOCUS_\w+_H$", text, re.M):
        yield f"{path} has no include guard LOCUS_..._H"


def check_c(path, text):
    code = tree.without_comments(text)
    if re.search(r"\btypedef\s+(struct|union)\b", code):
        yield f"{path} has a typedef of a struct"
    if re.search(r"^\s*#\s*if\s+0\b", text, re.M):
        yield f"{path} has code that is switched off"
    if not str(path).startswith(MAY_EXIT) and path.parts[0] == "src" and EXITS.search(code):
        yield f"{path} ends the process; only tools may"
    for number, line in enumerate(text.split("\n"), 1):
        comment = code.split("\n")[number - 1].strip() == "" and line.strip() != ""
        if comment and DEAD_CODE.match(line):
            yield f"{path}:{number} looks like code in a comment: {line.strip()}"
    head = "\n".join(text.split("\n")[1:3])
    if not head.lstrip().startswith("/*"):
        yield f"{path} does not say in its first lines what it is for"


def literals(code):
    """(offset, text) of the string literals, pieces joined; a macro between two pieces is a blank."""
    pieces, start, between = "", 0, ""
    for token in TOKEN.finditer(code):
        text, name = token.group("text"), token.group("name")
        if token.group().isspace() or token.group().startswith(("//", "/*")):
            continue
        if text is not None:
            start = start if pieces else token.start()
            pieces, between = pieces + between + text, ""
        elif name and pieces and name.isupper():
            between += "_"
        elif pieces:
            yield start, pieces
            pieces, between = "", ""


def check_voice(path, text):
    errors = [call.end() for call in ERROR.finditer(text)]
    for offset, said in literals(text):
        line = text.count("\n", 0, offset) + 1
        if SENTENCE.search(said) and NOT_SAID.search(said):
            yield f"{path}:{line} nothing of ours says: {NOT_SAID.search(said).group()}"
        first = any(end <= offset and not re.search(r'["()]', text[end:offset]) for end in errors)
        if not first or not SENTENCE.search(said):
            continue
        if re.match(r"(?:%[.\d*]*s: )*[A-Z][a-z]+ ", said) and not said.endswith("."):
            yield f"{path}:{line} an error goes on in lower case: {said}"
        if "\\n" in said or "  " in said:
            yield f"{path}:{line} an error is one line: {said}"


def main():
    offenders, checked = [], 0
    files = set(tree.files())
    for path in sorted(files):
        own = path.parts[0] in ("src", "tools", "tests")
        is_code = path.suffix in CODE or path.name == "dev"
        data = path.parts[:2] in (("tests", "golden"), ("tests", "data"))
        if own and not data and not KEBAB.match(path.name) and path.suffix not in (".am", ".md"):
            offenders.append(f"{path}: names are kebab-case")
        if path.suffix == ".py" and path.parts[0] == "tests" and len(path.parts) == 3 and path.with_suffix(".sh") in files:
            offenders.append(f"{path}: {path.stem}.sh has the same log, and make runs one of the two")
        if not is_code and path.suffix not in (".md", ".in"):
            continue
        checked += 1
        text = tree.read(path)
        if is_code and not has_licence(text):
            offenders.append(f"{path} has no SPDX line")
        for number, line in enumerate(text.split("\n"), 1):
            if NOTES.search(line) or (PRIVATE.search(line) and path.name != "style.py"):
                offenders.append(f"{path}:{number} {line.strip()}")
            if line != line.rstrip():
                offenders.append(f"{path}:{number} ends with blanks")
        if path.suffix == ".h" and path.parts[0] in ("src", "tools"):
            offenders += check_header(path, text)
        if path.suffix in (".c", ".h") and path.parts[0] in ("src", "tools"):
            offenders += check_c(path, text)
            offenders += check_voice(path, text)
    tree.finish(offenders, checked)


main()
