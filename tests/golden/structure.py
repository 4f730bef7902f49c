# SPDX-License-Identifier: BSD-3-Clause
"""hpcstruct on kernels whose loops are known by construction: number, nesting and lines, without and with optimisation,
by each compiler there is; inlined functions with the lines of their calls; variables; the form of the file; forms of
debug information (DWARF 4 and 5, split, compressed, in a file of its own, shared by dwz) that must give the same."""
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
TOOL = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcstruct"
KERNELS = SOURCE / "tests" / "golden" / "structure-kernels.c"
LINES = KERNELS.read_text(encoding="utf-8").split("\n")
SANITIZED = any(name in TOOL.read_bytes() for name in (b"__asan_init", b"__tsan_init"))
failures, checks = [], 0


def expect(condition, sentence):
    global checks
    checks += 1
    if not condition:
        failures.append(sentence)


def known_loops():
    """{function: sorted [(depth, first line, last line)]} from the marks in the comments."""
    first, last, function = {}, {}, None
    for number, text in enumerate(LINES, 1):
        if head := re.match(r"(?:KERNEL|static inline \S+) .*?(\w+)\(\w", text):
            function = head.group(1)
        for kind, name in re.findall(r"\b(loop|last) ([A-Z](?:\.[A-Z])*|dot)\b", text) if function else ():
            (first if kind == "loop" else last)[function, name] = number
    loops = {}
    for (function, name), line in first.items():
        depth = name.count(".")
        if name == "dot":
            function, depth = "gemv", 1
        loops.setdefault(function, []).append((depth, line, last[(function if name != "dot" else "dot"), name]))
    return {function: sorted(found) for function, found in loops.items()}


def structure(path, *options):
    run = subprocess.run([TOOL, "--nocache", "-o", "-", *options, path], capture_output=True, check=False)
    if run.returncode != 0:
        failures.append(f"hpcstruct fails on {path}: {run.stderr.decode()}")
        return ElementTree.fromstring("<none/>")
    return ElementTree.fromstring(run.stdout)


def loops_of(element, depth=0):
    for child in element:
        if child.tag == "L":
            lines = child.get("l").split("-")
            yield depth, int(lines[0]), int(lines[-1])
        yield from loops_of(child, depth + (child.tag == "L"))


def functions(root):
    return {p.get("n"): p for p in root.iter("P")}


def compile_kernels(directory, name, compiler, *options):
    path = directory / name
    subprocess.run([*compiler, "-g", *options, str(KERNELS), "-o", str(path)], check=True)
    return path


def check_loops(name, root, ends_at_brace=False):
    """ends_at_brace: the compiler gives the jump back the line of the loop's closing brace."""
    found = functions(root)
    for function, wanted in known_loops().items():
        got = sorted(loops_of(found[function])) if function in found else None
        if got and ends_at_brace and len(got) == len(wanted):
            got = [(d, first if function != "jump_in" else want[1], want[2] if last - want[2] in (0, 1, 2) else last)
                   for (d, first, last), want in zip(got, wanted)]
        expect(got == wanted, f"{name}: loops of {function} are {got}, not {wanted}")
    jump_in = [loop.get("ir") for loop in found["jump_in"].iter("L")] if "jump_in" in found else []
    expect(jump_in == ["1"], f"{name}: the loop with two entries is not marked as irreducible")


def check_inlined(name, root):
    call = next(i for i, text in enumerate(LINES, 1) if "y[i] = dot(" in text)
    declared = next(i for i, text in enumerate(LINES, 1) if " double dot(" in text)
    for outer in functions(root)["gemv"].iter("A"):
        for inner in outer.findall("A"):
            if inner.get("n") == "dot" and outer.get("l") == str(call) and inner.get("l") == str(declared):
                expect(outer.get("f") == inner.get("f") == str(KERNELS), f"{name}: files of the inlined function")
                expect(inner.find("L") is not None, f"{name}: the loop of the inlined function is not in it")
                return
    expect(False, f"{name}: dot is not inlined into gemv at line {call}")


def addresses(text):
    return [(int(a, 16), int(b, 16)) for a, b in re.findall(r"\[(0x[0-9a-f]+)-(0x[0-9a-f]+)\)", text or "")]


def check_form(name, path, root):
    """Elements by the document type; statements disjoint; variables with the addresses and sizes of the symbols."""
    ids = [e.get("i") for e in root.iter() if e.tag != "HPCToolkitStructure"]
    expect(len(ids) == len(set(ids)), f"{name}: ids are not unique")
    ranges = sorted(r for s in root.iter() if s.tag in ("S", "C") for r in addresses(s.get("v")))
    expect(len(ranges) > 50 and all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:])), f"{name}: statements overlap")
    expect(root.find("LM").get("n") == os.path.realpath(path), f"{name}: name of the module")
    symbols = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout.splitlines()
    large = {f[3]: (int(f[0], 16), int(f[0], 16) + int(f[1], 16)) for f in map(str.split, symbols)
             if len(f) == 4 and f[2] in "bBdDrR" and int(f[1], 16) >= 1024}
    got = {v.get("n"): addresses(v.get("v"))[0] for v in root.iter("V")}
    expect(got == large and len(got) == 3, f"{name}: variables are {got}, not {large}")
    if shutil.which("xmllint"):
        text = subprocess.run([TOOL, "--nocache", "-o", "-", path], capture_output=True, check=True).stdout
        valid = subprocess.run(["xmllint", "--valid", "--noout", "-"], input=text, capture_output=True, check=False)
        expect(valid.returncode == 0, f"{name}: not valid by its own document type: {valid.stderr.decode()[:300]}")


def check_calls(name, path, root):
    """The calls are those that objdump shows, with their targets and with the lines of the code around them."""
    if not shutil.which("objdump"):
        print("objdump is missing: calls are not checked")
        return
    text = subprocess.run(["objdump", "-d", "-l", "--section=.text", "--no-show-raw-insn", path], capture_output=True,
                          text=True, check=True).stdout
    wanted, line, open_call = {}, 0, None
    for row in text.splitlines():
        if where := re.match(r".*\.c:(\d+)(?: \(discriminator \d+\))?$", row):
            line = int(where.group(1))
        elif code := re.match(r" +([0-9a-f]+):\t(?:(?:bnd|notrack) )?(\S+) *(\S*)", row):
            at = int(code.group(1), 16)
            if open_call is not None:
                wanted[open_call][1] = at - open_call
            open_call = at if code.group(2) == "call" else None
            if open_call is not None:
                target = re.match(r"[0-9a-f]+$", code.group(3))
                wanted[at] = [int(code.group(3), 16) if target else None, 0, line]
    expect(len(wanted) >= 5, f"{name}: objdump shows only {len(wanted)} calls")
    got = {}
    for call in root.iter("C"):
        ((start, end),) = addresses(call.get("v"))
        if min(wanted) <= start <= max(wanted):
            got[start] = [int(call.get("t"), 16) if call.get("t") else None, end - start, int(call.get("l"))]
    debugged = {start for start, call in got.items() if call[2]}
    expect(len(debugged) >= 5, f"{name}: only {len(debugged)} calls have lines")
    plain = lambda calls: {s: c if s in debugged else c[:2] for s, c in calls.items()}  # noqa: E731
    expect(plain(got) == plain(wanted), f"{name}: calls are {plain(got)}, not {plain(wanted)}")


def without_ids(root):
    """The tree without ids and the module's own names."""
    base = os.path.basename(root.find("LM").get("n")) if root.find("LM") is not None else ""
    def text_of(element):
        attributes = sorted((k, v.replace(f"[{base}]", "[]")) for k, v in element.attrib.items()
                            if k != "i" and element.tag != "LM")
        return (element.tag, attributes, [text_of(child) for child in element])
    return text_of(root)


def forms(directory, compiler):
    """(name, path) of the kernels with the same code and debug information in other forms."""
    run = lambda *command: subprocess.run(list(map(str, command)), check=True, cwd=directory)  # noqa: E731
    yield "DWARF 4", compile_kernels(directory, "dwarf-4", compiler, "-O2", "-gdwarf-4")
    for version in ("4", "5"):
        path = directory / f"relative-{version}"
        subprocess.run([*compiler, "-g", f"-gdwarf-{version}", "-O2", f"{KERNELS.parent.name}/{KERNELS.name}", "-o", path],
                       check=True, cwd=KERNELS.parent.parent)
        yield f"relative path, DWARF {version}", path
    yield "compressed", compile_kernels(directory, "compressed", compiler, "-O2", "-gz")
    run(*compiler, "-g", "-O2", "-gsplit-dwarf", "-c", KERNELS, "-o", "split.o")
    run(*compiler, "split.o", "-o", "split")
    yield "split", directory / "split"
    run(*compiler, "-g", "-O2", "-gdwarf-4", "-gsplit-dwarf", "-c", KERNELS, "-o", "split-4.o")
    run(*compiler, "split-4.o", "-o", "split-4")
    yield "split DWARF 4", directory / "split-4"
    path = compile_kernels(directory, "linked", compiler, "-O2")
    run("objcopy", "--only-keep-debug", path, "linked.debug")
    run("objcopy", "--strip-debug", "--add-gnu-debuglink=linked.debug", path)
    yield "debug link", path
    if shutil.which("dwz"):
        one = compile_kernels(directory, "shared-one", compiler, "-O2")
        two = compile_kernels(directory, "shared-two", compiler, "-O2")
        run("dwz", "-m", "common.debug", one, two)
        if (directory / "common.debug").exists():
            yield "dwz", one


TYPED = """struct particle { double pos[3]; float vel; unsigned a : 3, b : 5; struct particle *next; };
struct particle grid[100];
int main(int argc, char **argv)
{
    int local[64];
    (void)argv;
    for (int i = 0; i < 64; i++)
        local[i] = argc;
    return (int)grid[argc].a + local[argc & 63];
}
"""


def check_types(directory, compiler):
    """--types: fields with offsets and bits, a local array in the frame; valid by the document type."""
    source, path = directory / "typed.c", directory / "typed"
    source.write_text(TYPED, encoding="utf-8")
    subprocess.run([*compiler, "-g", "-O0", str(source), "-o", str(path)], check=True)
    root = structure(path, "--types")
    types = {t.get("d"): t for t in root.iter("T")}
    grid = types[next(v for v in root.iter("V") if v.get("n") == "grid").get("t")]
    particle = types[grid.get("t")]
    fields = [(m.get("n"), m.get("o"), m.get("b"), m.get("w")) for m in particle.iter("M")]
    expect((particle.get("n"), particle.get("k"), particle.get("s")) == ("particle", "struct", "40"), "types: the struct")
    expect(fields == [("pos", "0", None, None), ("vel", "24", None, None), ("a", "28", "224", "3"), ("b", "28", "227", "5"),
                      ("next", "32", None, None)], f"types: fields {fields}")
    locals_ = {d.get("n"): d for d in functions(root)["main"].findall("D")}
    expect(locals_.keys() == {"argc", "argv", "local", "i"}, f"types: locals {locals_.keys()}")
    expect(locals_["local"].get("s") == "256" and locals_["argc"].get("k") == "parameter", "types: local and argc")
    places = [(r.get("k"), int(r.get("o"))) for r in locals_["local"].findall("R")]
    expect(len(places) == 1 and places[0][0] == "frame" and -400 < places[0][1] <= -256, f"types: places {places}")
    expect(next(structure(path).iter("D"), None) is None, "types: locals without --types")
    if shutil.which("xmllint"):
        text = subprocess.run([TOOL, "--types", "-o", "-", path], capture_output=True, check=True).stdout
        valid = subprocess.run(["xmllint", "--valid", "--noout", "-"], input=text, capture_output=True, check=False)
        expect(valid.returncode == 0, f"types: not valid by its own document type: {valid.stderr.decode()[:300]}")


ASSEMBLY = """.text
.globl _start, sized
_start: ud2
.size _start, . - _start
.skip 64, 0x90
sized: nop
ret
.size sized, . - sized
.section .rodata, "a"
.globl table
table: .fill 64, 1, 0xc3
"""


def check_assembly(directory, compiler):
    """Functions that assembly gives a size but no type have their names; labels of data are no functions, also where
    they share a segment with the code."""
    source, path = directory / "assembly.s", directory / "assembly"
    source.write_text(ASSEMBLY, encoding="utf-8")
    subprocess.run([*compiler, "-nostdlib", "-static", "-Wl,-z,noseparate-code", source, "-o", path], check=True)
    found = set(functions(structure(path)))
    expect({"_start", "sized"} <= found and "table" not in found, f"assembly: functions {sorted(found)}")
    bounds = subprocess.run([TOOL.parent / "hpcfnbounds", path], capture_output=True, text=True, check=True).stdout
    expect(" sized" in bounds and " table" not in bounds, f"assembly: hpcfnbounds says {bounds}")


# Two functions into which inner and part are inlined. In outer, one instruction of line 21, which is outer's own, lies
# among those of inner's loop; in each, the loop is each's own, though most of its instructions are of part.
INLINED = """.text
.file 1 "inlined.c"
.globl outer, each
.type outer, @function
outer: .loc 1 20 1
xor %eax, %eax
.Linner: .loc 1 10 3
mov %rdi, %rcx
.Lturn: .loc 1 11 5
add (%rcx), %rax
.Lmoved: .loc 1 21 3
mov %rsi, %rdx
.Lback: .loc 1 12 5
add %rdx, %rax
imul $3, %rax, %rax
.loc 1 10 3
add $8, %rcx
cmp %rsi, %rcx
jne .Lturn
.Linner_end: .loc 1 22 1
ret
.Louter_end: .size outer, . - outer
.type each, @function
each: .loc 1 40 1
xor %eax, %eax
.Leach: .loc 1 41 3
mov (%rdi), %rcx
.Lpart: .loc 1 31 3
imul %rcx, %rcx
lea 3(%rcx), %rcx
imul %rcx, %rcx
imul $7, %rcx, %rcx
add %rcx, %rax
.Lpart_end: .loc 1 41 3
add $8, %rdi
cmp %rsi, %rdi
jne .Leach
.loc 1 42 1
ret
.Leach_end: .size each, . - each
.section .debug_line
.Llines:
.section .debug_abbrev
.byte 1, 0x11, 1, 3, 8, 0x10, 0x17, 0x11, 1, 0x12, 7, 0, 0
.byte 2, 0x2e, 0, 3, 8, 0x3a, 0xb, 0x3b, 0xb, 0x20, 0xb, 0, 0
.byte 3, 0x2e, 1, 3, 8, 0x3a, 0xb, 0x3b, 0xb, 0x11, 1, 0x12, 7, 0, 0
.byte 4, 0x1d, 0, 0x31, 0x13, 0x55, 0x17, 0x58, 0xb, 0x59, 0xb, 0, 0
.byte 0
.section .debug_ranges
.Linner_ranges: .quad .Linner - outer, .Lmoved - outer, .Lback - outer, .Linner_end - outer, 0, 0
.Lpart_ranges: .quad .Lpart - outer, .Lpart_end - outer, 0, 0
.section .debug_info
.Lunit: .long .Lunit_end - .Lunit - 4
.value 4
.long .debug_abbrev
.byte 8
.byte 1
.string "inlined.c"
.long .Llines
.quad outer, .Leach_end - outer
.Linner_die: .byte 2
.string "inner"
.byte 1, 9, 1
.Lpart_die: .byte 2
.string "part"
.byte 1, 30, 1
.byte 3
.string "outer"
.byte 1, 19
.quad outer, .Louter_end - outer
.byte 4
.long .Linner_die - .Lunit, .Linner_ranges
.byte 1, 21
.byte 0
.byte 3
.string "each"
.byte 1, 39
.quad each, .Leach_end - each
.byte 4
.long .Lpart_die - .Lunit, .Lpart_ranges
.byte 1, 41
.byte 0, 0
.Lunit_end:
"""


def check_moved(directory, compiler):
    """An instruction of the caller among those of an inlined loop does not lift the loop into the caller; a loop whose
    jump back is the caller's own stays there."""
    source, path = directory / "inlined.s", directory / "inlined.so"
    source.write_text(INLINED, encoding="utf-8")
    subprocess.run([*compiler, "-nostdlib", "-shared", source, "-o", path], check=True)
    found = functions(structure(path))
    loops = {(p, a.get("n"), loop.get("l")) for p in ("outer", "each") for a in found[p].iter("A") for loop in a.findall("L")}
    own = {(p, loop.get("l")) for p in ("outer", "each") for loop in found[p].findall("L")}
    expect(loops == {("outer", "inner", "10-12")}, f"moved: loops of inlined functions {loops}")
    expect(own == {("each", "41")}, f"moved: loops of the functions themselves {own}")
    moved = [s for s in found["outer"].findall("S") if s.get("l") == "21"]
    expect(len(moved) == 1 and addresses(moved[0].get("v")), "moved: the instruction of line 21 is not outer's own")


def check_damaged(directory, path):
    """Cut and changed files: a structure, or one message and exit status 1; never a crash, never much memory."""
    whole = path.read_bytes()
    generator = random.Random(5)
    damaged = [whole[:len(whole) * i // 16] for i in range(16)] + [b"#!/bin/sh\n", b"\x7fELF"]
    for _ in range(24):
        changed = bytearray(whole)
        for _ in range(generator.choice((1, 8, 64))):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        damaged.append(bytes(changed))
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # noqa: E731
    for i, content in enumerate(damaged):
        (directory / "damaged").write_bytes(content)
        run = subprocess.run([TOOL, "--nocache", "--types", "-j1", "-o", directory / "out", directory / "damaged"],
                             capture_output=True, check=False, preexec_fn=None if SANITIZED else limit)
        text = run.stderr.decode(errors="replace")
        good = run.returncode == 0 or (run.returncode == 1 and text.count("\n") == 1 and text.startswith("hpcstruct: "))
        expect(good, f"damaged file {i}: status {run.returncode}, {text[:300]}")
    for arguments, status in ((["/nonexistent"], 1), ([directory], 1), (["-j", "0", path], 2), ([], 2), (["--nonsense"], 2)):
        run = subprocess.run([TOOL, *arguments], capture_output=True, check=False, cwd=directory)
        expect(run.returncode == status and run.stderr, f"{arguments}: status {run.returncode}, not {status}")


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        gcc = os.environ.get("CC", "gcc").split()
        probe = subprocess.run([*gcc, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
        if not probe.startswith("x86_64"):
            print(f"SKIP: loops are found in code for x86-64, not for {probe.strip()}")
            sys.exit(77)
        plain = None
        for level in ("-O0", "-O1", "-O2", "-O3"):
            path = compile_kernels(directory, "gcc" + level, gcc, level)
            root = structure(path)
            if level != "-O1":
                check_loops(f"gcc {level}", root)
            check_inlined(f"gcc {level}", root)
            check_form(f"gcc {level}", path, root)
            check_calls(f"gcc {level}", path, root)
            plain = root if level == "-O2" else plain
            expect(without_ids(structure(path, "-j2")) == without_ids(structure(path, "-j1")),
                   f"gcc {level}: threads change the result")
        for form, path in forms(directory, gcc):
            expect(without_ids(structure(path)) == without_ids(plain), f"{form}: not the structure of the plain form")
        if shutil.which("clang"):
            for level in ("-O0", "-O2", "-O3"):
                path = compile_kernels(directory, "clang" + level, ["clang"], level)
                check_loops(f"clang {level}", structure(path), level == "-O0")
        else:
            print("clang is missing: its code is not checked")
        check_types(directory, gcc)
        check_assembly(directory, gcc)
        check_moved(directory, gcc)
        check_damaged(directory, directory / "gcc-O2")
        strip = directory / "stripped"
        shutil.copy(directory / "gcc-O2", strip)
        subprocess.run(["strip", strip], check=True)
        root = structure(strip)
        expect(sum(1 for _ in root.iter("L")) >= 15, "stripped: the loops of the machine code are missing")
        expect(all(e.get("l") == "0" for e in root.iter("S")), "stripped: a line is known")
    for sentence in failures:
        print(sentence)
    print(f"{checks} checks, {len(failures)} failed")
    sys.exit(bool(failures))


main()
