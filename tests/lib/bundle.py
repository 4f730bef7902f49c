#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A folder as one text, for inputs of tests that are many small files.

bundle.py unpack FILE DIRECTORY               makes the folder (DIRECTORY may exist, and is made otherwise)
bundle.py pack DIRECTORY FILE [LAST...]       writes FILE; files LAST come behind all else of their folder

A text is made of lines:
  # ...                 a comment; empty lines mean nothing
  [FOLDER]              the names below are in this one, [.] is the outermost
  NAME = LINE           a file with this line
  NAME =                a file with the lines that follow, each behind a |; a last line \\ says that no newline ends it
  NAME hex              the same, with the bytes in hexadecimal digits
  NAME same-as PATH     a file with the content of PATH, which is above
  NAME -> TARGET        a symbolic link
  NAME/                 an empty folder
A +x behind a name makes the file executable. What is odd in a name is written as in addresses of the web (%20).
"""
import functools
import os
import pathlib
import re
import sys
import tempfile
import urllib.parse

HEAD = """# SPDX-License-Identifier: BSD-3-Clause
# A folder as one text: see tests/lib/bundle.py, which packs and unpacks it.
"""
ENTRY = re.compile(r"(\S+?)( \+x)? (=|hex|->|same-as)(?: (.*))?$")
ONE_LINE = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\n\r\x00-\x08\x0b-\x1f\x7f]*[^\s\x00-\x1f\x7f])?\n")
TEXT = re.compile(r"[^\r\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]*")
HEX_COLUMNS = 96
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
scratch = tempfile.TemporaryDirectory()  # goes with the program


def block(lines, at):
    """The lines behind bars that begin at lines[at], and where they end."""
    end = at
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return [line[1:] for line in lines[at:end]], end


def content(kind, value, lines, at, known):
    """Bytes of a file, and where its lines end."""
    if kind == "same-as":
        return known[name_of(value)], at
    if kind == "=" and value is not None:
        return (value + "\n").encode(), at
    held, at = block(lines, at)
    if kind == "hex":
        return bytes.fromhex("".join(held)), at
    text = "".join(line + "\n" for line in held)
    if at < len(lines) and lines[at] == "\\":
        return text[:-1].encode(), at + 1
    return text.encode(), at


def name_of(written):
    return urllib.parse.unquote(written)


def write(path, data, executable):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if executable:
        path.chmod(path.stat().st_mode | 0o111)


def unpack(file, directory):
    """Makes the folder that a text describes; returns it."""
    directory, folder, known = pathlib.Path(directory), "", {}
    lines, at = pathlib.Path(file).read_text(encoding="utf-8").split("\n"), 0
    directory.mkdir(parents=True, exist_ok=True)
    while at < len(lines):
        line, at = lines[at], at + 1
        entry = ENTRY.match(line)
        if not line or line.startswith("#"):
            continue
        if re.fullmatch(r"\[\S+\]", line):
            folder = "" if line == "[.]" else name_of(line[1:-1]) + "/"
        elif re.fullmatch(r"\S+/", line):
            (directory / (folder + name_of(line))).mkdir(parents=True)
        elif entry and entry[3] == "->":
            (directory / folder).mkdir(parents=True, exist_ok=True)
            (directory / (folder + name_of(entry[1]))).symlink_to(name_of(entry[4]))
        elif entry:
            path = folder + name_of(entry[1])
            known[path], at = content(entry[3], entry[4], lines, at, known)
            write(directory / path, known[path], entry[2])
        else:
            raise ValueError(f"{file}:{at}: not understood: {line}")
    return directory


@functools.cache
def golden(name):
    """The folder of tests/golden/NAME.txt, unpacked until the program ends."""
    return unpack(GOLDEN / f"{name}.txt", pathlib.Path(tempfile.mkdtemp(dir=scratch.name), "golden", name))


def keep_golden(name):
    """Writes tests/golden/NAME.txt anew from what golden() unpacked and its user has changed since."""
    (GOLDEN / f"{name}.txt").write_text(pack(golden(name)), encoding="utf-8")


def written(name):
    return urllib.parse.quote(str(name), safe="/._-+:,@~^{}()")


def file_lines(path, name, known):
    """What stands for a file that has not been seen; known: {content: its path} of the longer ones."""
    data = path.read_bytes()
    head = written(path.name) + (" +x" if os.access(path, os.X_OK) else "")
    if data in known:
        return [f"{head} same-as {written(known[data])}"]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or not TEXT.fullmatch(text):
        known[data] = name
        digits = data.hex()
        return [f"{head} hex"] + ["|" + digits[i:i + HEX_COLUMNS] for i in range(0, len(digits), HEX_COLUMNS)]
    if ONE_LINE.fullmatch(text):
        return [f"{head} = {text[:-1]}"]
    if len(data) > 1:
        known[data] = name
    lines = ["|" + line for line in text.split("\n")]
    return [f"{head} ="] + (lines[:-1] if not text or text.endswith("\n") else [*lines, "\\"])


def pack(directory, last=()):
    """The text of a folder."""
    directory, known, lines, folder = pathlib.Path(directory), {}, [], "."
    paths = [path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir() or not any(path.iterdir())]
    behind = "\U0010ffff"
    paths.sort(key=lambda p: (p.parent.relative_to(directory).parts + (behind,) * (p.name in last), p.name))
    for path in paths:
        name = path.relative_to(directory)
        if str(name.parent) != folder:
            folder = str(name.parent)
            lines += ["", f"[{written(folder)}]"]
        if path.is_symlink():
            lines.append(f"{written(path.name)} -> {written(os.readlink(path))}")
        elif path.is_dir():
            lines.append(written(path.name) + "/")
        else:
            lines += file_lines(path, name, known)
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "unpack":
        unpack(sys.argv[2], sys.argv[3])
    elif len(sys.argv) >= 4 and sys.argv[1] == "pack":
        pathlib.Path(sys.argv[3]).write_text(pack(sys.argv[2], sys.argv[4:]), encoding="utf-8")
    else:
        sys.exit(__doc__)
