# SPDX-License-Identifier: BSD-3-Clause
"""All that the program says: every sentence in the sources, in one text. It holds the tables of messages (fates of samples, rows
that are no variables, options, refusals) and what single calls print, file by file in the order of the code, so that a change of
wording shows in one place and can be read there. A sentence is a string literal, pieces joined, in which two words follow each
other; %s and the like stand as in the code, {NAME} is a macro between its pieces. `messages.py --record` writes the text anew."""
import difflib
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402

GOLDEN = bundle.golden("messages")
SKIPPED = re.compile(r'^[ \t]*#[ \t]*(?:include|if|ifdef|ifndef|elif|error|pragma)\b[^\n]*', re.M)
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\\n]|\\.)*")|'(?:[^'\\\n]|\\.)*'|(?P<name>[A-Za-z_]\w*)|\s+|.""", re.S)
MACRO = re.compile(r"[A-Z][A-Z0-9_]*|PRI\w+")
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? +[a-z]{2,}")


def literals(code):
    """String literals in order, pieces joined."""
    pieces, between = "", ""
    for token in TOKEN.finditer(SKIPPED.sub("", code).replace("\\\n", "\n")):
        text, name, whole = token.group("text"), token.group("name"), token.group()
        if whole.isspace() or whole.startswith(("//", "/*")):
            continue
        if text:
            pieces += between + text[1:-1]
            between = ""
        elif name and pieces and MACRO.fullmatch(name):
            between += "{" + name + "}"
        else:
            if pieces:
                yield pieces
            pieces = between = ""


def sentences(path):
    return "".join(text + "\n" for text in literals(path.read_text(encoding="utf-8")) if SENTENCE.search(text))


def compare(name, known, text):
    lines = difflib.unified_diff(known.splitlines(), text.splitlines(), "committed", name, n=0, lineterm="")
    print(f"FAIL: {name} has other sentences; {pathlib.Path(__file__).name} --record, if that is meant", *lines, sep="\n")


def main():
    paths = [path for room in ("src", "tools") for path in (SOURCE / room).rglob("*.[ch]")]
    texts = {str(path.relative_to(SOURCE)): sentences(path) for path in paths}
    texts = {name: text for name, text in texts.items() if text}
    known = {str(path.relative_to(GOLDEN)): path.read_text(encoding="utf-8") for path in GOLDEN.rglob("*.[ch]")}
    if "--record" in sys.argv:
        for name in known.keys() - texts.keys():
            (GOLDEN / name).unlink()
        for name, text in texts.items():
            (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / name).write_text(text, encoding="utf-8")
        bundle.keep_golden("messages")
        known = texts
    changed = [name for name in sorted(texts.keys() | known.keys()) if texts.get(name) != known.get(name)]
    for name in changed:
        compare(name, known.get(name, ""), texts.get(name, ""))
    print(f"{sum(text.count(chr(10)) for text in texts.values())} sentences")
    sys.exit(1 if changed else 0)


main()
