# SPDX-License-Identifier: BSD-3-Clause
"""python/locus/_abi.py is what the headers of liblocus say: structures, values of enums, functions. It is made from the headers, and
here the compiler says whether it is right: sizes, offsets and values. The package refuses a library whose structures have other
sizes. abi.py --write makes it anew after a change of a header (in a build directory: LOCUS_BUILDDIR)."""
import ctypes
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"]).resolve()
ABI = SOURCE / "python" / "locus" / "_abi.py"
SCALARS = {"bool": "c_bool", "char": "c_char", "unsigned char": "c_ubyte", "int": "c_int", "unsigned": "c_uint", "double": "c_double", "size_t": "c_size_t",
           **{f"{u}int{n}_t": f"c_{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}}
VALUES = {"UINT16_MAX": 2**16 - 1, "INT32_MIN": -2**31, "SIZE_MAX": 2**64 - 1, "UINT32_MAX": 2**32 - 1,
          "UINT64_MAX": 2**64 - 1, "INT64_MAX": 2**63 - 1, "INT64_MIN": -2**63}
HEAD = '''# SPDX-License-Identifier: BSD-3-Clause
"""What the headers of liblocus say. Made by tests/golden/abi.py --write: do not edit."""
from ctypes import (POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int16, c_int32, c_int64, c_int8, c_size_t, c_ubyte,
                    c_uint, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p)
'''


class Header:
    """What one or several headers declare: {name: [(member, type)]}, {name: {value: number}}, {name: number}, {name: types}."""

    def __init__(self, text):
        self.structs, self.enums, self.values, self.functions = {}, {}, {}, {}
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        for name, value in re.findall(r"^#define (\w+) (.+)$", text, re.M):
            self.add_value(name, value)
        text = re.sub(r"^#(?:.*\\\n)*.*$|^extern \"C\" \{$|^\}$", "", text, flags=re.M)
        for name, body in re.findall(r"^enum (\w+) \{(.*?)\};", text, re.M | re.S):
            self.enums[name], at = {}, 0
            for word in filter(None, map(str.strip, body.split(","))):
                key, _, value = map(str.strip, word.partition("="))
                at = self.number(value) if value else at
                self.enums[name][key] = self.values[key] = at
                at += 1
        for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S):
            self.structs[name] = list(self.members(body))
        text = re.sub(r"^struct \w+ \{.*?^\};|^enum \w+ \{[^}]*\};|^(struct|enum) \w+;", "", text, flags=re.M | re.S)
        for result, name, operands in re.findall(r"^([a-z][\w ]*?[ *]+)(\w+)\(([^;]*?)\)[^;()]*;", text, re.M | re.S):
            operands = [] if operands.strip() == "void" else [self.split(o)[0] for o in operands.split(",")]
            self.functions[name] = [" ".join(result.split()), *operands]

    def number(self, text):
        words = re.sub(r"\bU?INT\d+_C\((\w+)\)", r"\1", text)
        words = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", words)
        return eval(words, {"__builtins__": {}}, {**VALUES, **self.values})  # pylint: disable=eval-used

    def add_value(self, name, text):
        if re.fullmatch(r'"[^"]*"', text):
            self.values[name] = text[1:-1]
            return
        try:
            self.values[name] = self.number(text)
        except (NameError, SyntaxError):
            pass  # no number

    @staticmethod
    def split(declaration):
        """(type, name, size) of "const char *name[8]"; a parameter that is an array is a pointer."""
        found = re.fullmatch(r"\s*(.*?)(\w+)\s*(?:\[(\w*)\])?\s*", " ".join(declaration.split()))
        return found[1].strip() + ("*" if found[3] == "" else ""), found[2], found[3]

    def members(self, body):
        for line in filter(None, map(str.strip, re.sub(r"\([^()]*\)\s*;", "();", body).split(";"))):
            if "(*" in line:
                yield re.search(r"\(\*(\w+)\)", line)[1], "c_void_p"
                continue
            first, *others = re.sub(r"\(\)$", "", line).split(",")
            kind, name, size = self.split(first)
            yield name, self.member(kind, size)
            for other in others:
                stars, name, size = re.fullmatch(r"\s*([*\s]*)(\w+)\s*(?:\[(\w+)\])?", other).groups()
                yield name, self.member(kind.rstrip("* ") + stars, size)

    def member(self, kind, size):
        return kind if not size else (kind, self.number(size))

    def ctype(self, kind, is_result=False):
        """What ctypes calls a type."""
        if isinstance(kind, tuple):
            return f"{self.ctype(kind[0])} * {kind[1]}"
        if kind == "c_void_p":
            return kind
        base, stars = re.sub(r"\bconst\b", "", kind.replace("*", "")).strip(), kind.count("*")
        if base.startswith("struct "):
            base = base[7:]
            made, is_opaque = (camel(base), False) if base in self.structs else ("c_void_p", True)
        else:
            made, is_opaque = (None, True) if base == "void" else ("c_int" if base.startswith("enum ") else SCALARS[base], False)
        if base == "char" and stars:
            owned = not kind.startswith("const") and (stars > 1 or is_result)  # freed by who gets it
            made, stars = "c_void_p" if owned else "c_char_p", stars - 1
        elif is_opaque and stars:
            made, stars = "c_void_p", stars - 1
        for _ in range(stars):
            made = f"POINTER({made})"
        return str(made)


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def paths():
    """The public headers, in the order of the Makefile."""
    text = (BUILD / "Makefile").read_text(encoding="utf-8")
    return [BUILD / word for word in re.search(r"^nodist_locusinclude_HEADERS = ((?:.*\\\n)*.*)$", text, re.M)[1].replace("\\", " ").split()]


def read():
    return Header("\n".join(path.read_text(encoding="ascii") for path in paths()))


def wrapped(head, words, tail, indent):
    """A line, or several."""
    lines, line = [], head
    for i, word in enumerate(words):
        word += tail if i == len(words) - 1 else ","
        if len(line) + 1 + len(word) > 130:
            lines.append(line.rstrip())
            line = " " * indent
        line += word if line.endswith(("(", "[", "{")) or line == " " * indent else " " + word
    return "\n".join(lines + [line]) + "\n"


def module(header):
    """The text of _abi.py."""
    made = HEAD
    for name, value in sorted(header.values.items()):
        made += f"\n{name} = {value!r}" if name not in {k for e in header.enums.values() for k in e} else ""
    for name, values in header.enums.items():
        made += f"\n\n# enum {name}\n" + "\n".join(f"{key} = {value}" for key, value in values.items())
    made += "\n\n# The values of the enums that count from 0, in order.\nENUMS = {\n"
    for name, values in header.enums.items():
        if list(values.values()) == list(range(len(values))):
            made += wrapped(f'    "{name}": (', [f'"{key}"' for key in values], "),", 8)
    made += "}\n"
    for name, members in header.structs.items():
        fields = [f'("{member}", {header.ctype(kind)})' for member, kind in members]
        made += f'\n\nclass {camel(name)}(Structure):\n    """struct {name}"""\n' + wrapped("    _fields_ = [", fields, "]", 16)
    made += "\n\nSTRUCTS = {\n" + "".join(f'    "{name}": {camel(name)},\n' for name in header.structs) + "}\n"
    made += "# name: (result, operand, ...)\nFUNCTIONS = {\n"
    for name, (result, *operands) in header.functions.items():
        made += wrapped(f'    "{name}": (', [header.ctype(result, True), *map(header.ctype, operands)], "),", 8)
    return made + "}\n"


def measured(header):
    """{name: number} that the compiler has for sizes, offsets and values."""
    lines = [f'p("sizeof {name}", sizeof(struct {name}));' for name in header.structs]
    lines += [f'p("{name}.{member}", offsetof(struct {name}, {member}));' for name, members in header.structs.items() for member, _ in members]
    lines += [f'p("{name}", (long long)({name}));' for name, value in header.values.items() if isinstance(value, int)]
    includes = "".join(f'#include "{path}"\n' for path in paths())
    code = f"{includes}#include <stdio.h>\nstatic void p(const char *name, long long n)\n{{\n    printf(\"%s=%lld\\n\", name, n);\n}}\n" \
        "int main(void)\n{\n    " + "\n    ".join(lines) + "\n    return 0;\n}\n"
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "program"
        subprocess.run(["gcc", "-w", "-I", str(BUILD / "include"), "-x", "c", "-", "-o", str(program)], input=code, text=True, check=True)
        text = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return {name: int(value) for name, _, value in (line.partition("=") for line in text.splitlines())}


def load():
    spec = importlib.util.spec_from_file_location("_abi", ABI)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def offenders():
    header = read()
    exported = {line for line in (BUILD / "liblocus.map").read_text(encoding="ascii").replace(";", "").split() if re.fullmatch(r"[a-z]\w+_\w+", line)}
    if not ABI.exists() or ABI.read_text(encoding="ascii") != module(header):
        yield "python/locus/_abi.py is not what the headers say: LOCUS_BUILDDIR=build LOCUS_SRCDIR=. python3 tests/golden/abi.py --write"
        return
    if set(header.functions) != exported:
        yield f"functions of headers and exports differ: {sorted(set(header.functions) ^ exported)}"
    abi, wanted = load(), measured(header)
    for name, kind in abi.STRUCTS.items():
        found = {f"sizeof {name}": ctypes.sizeof(kind), **{f"{name}.{field}": getattr(kind, field).offset for field, *_ in kind._fields_}}
        for what, number in found.items():
            if wanted.pop(what) != number:
                yield f"{what} is {number} in Python"
    for name, number in wanted.items():
        if (getattr(abi, name, 0) - number) % 2**64:  # C has printed it with a sign
            yield f"{name} is {number} in C, {getattr(abi, name, None)} in Python"


def refusals():
    """A package whose structures are others does not load the library, and says which two do not fit."""
    if os.environ.get("LOCUS_SANITIZER"):
        return
    library = BUILD / ".libs" / "liblocus.so"
    with tempfile.TemporaryDirectory() as scratch:
        package = pathlib.Path(scratch) / "locus"
        package.mkdir()
        for path in (SOURCE / "python" / "locus").glob("*.py"):
            (package / path.name).write_bytes(path.read_bytes())
        for old, new, words in (("c_double)]", 'c_double), ("more", c_int64)]', "has 1"), ('    "frame_open"', '    "frame_opens"', "frame_opens")):
            text = ABI.read_text(encoding="ascii")
            (package / "_abi.py").write_text(text.replace(old, new, 1), encoding="ascii")
            done = subprocess.run([sys.executable, "-c", "import locus"], env={**os.environ, "PYTHONPATH": scratch, "LOCUS_LIBRARY": str(library)},
                                  capture_output=True, text=True, check=False)
            last = done.stderr.rstrip().rpartition("\n")[2]
            if old not in text or not last.startswith("ImportError: ") or not all(w in last for w in (str(library), str(package))):
                yield f"a package with {new} is not refused: {done.stderr}"


def main():
    if sys.argv[1:] == ["--write"]:
        ABI.write_text(module(read()), encoding="ascii")
        return
    found = [*offenders(), *refusals()]
    for sentence in found:
        print("FAIL:", sentence)
    sys.exit(1 if found else 0)


main()
