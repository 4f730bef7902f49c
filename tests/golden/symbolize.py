# SPDX-License-Identifier: BSD-3-Clause
"""hpcprof on profiles whose addresses lie in a program compiled here: functions, lines and inlined functions are those of
the source, and variables have their names. Once with, once without debug information, and stripped."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402
import toolchain  # noqa: E402
import v4  # noqa: E402

PROGRAM = SOURCE / "tests" / "golden" / "symbolize.c"
LINES = PROGRAM.read_text(encoding="utf-8").split("\n")
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def line_of(comment):
    return next(i for i, text in enumerate(LINES, 1) if f"/* {comment} */" in text)


def output(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


class Program:
    """Addresses in the compiled program, from nm and objdump."""

    def __init__(self, path, with_lines):
        self.path = str(path)
        self.symbols = {f[-1]: int(f[0], 16) for f in map(str.split, output(toolchain.utility("nm"), path).splitlines()) if len(f) == 3}
        code = output(toolchain.utility("objdump"), "-d", "--no-show-raw-insn", path)
        starts = [int(a, 16) for a in re.findall(r"^ +([0-9a-f]+):", code, re.M)]
        following = dict(zip(starts, starts[1:]))
        self.calls = {}  # (function, callee): return addresses
        function = None
        for text in code.splitlines():
            if head := re.match(r"^[0-9a-f]+ <(\w+)>:", text):
                function = head.group(1)
            elif call := re.match(r"^ +([0-9a-f]+):\s+(?:bnd call|callq?|bl)\s+[0-9a-f]+ <(?:\w+\.plt_call\.)?(\w+)[^>]*>", text):
                key = function, call.group(2)
                self.calls.setdefault(key, []).append(following[int(call.group(1), 16)])
        self.starts = starts
        self.lines = {}
        if with_lines:
            self.read_lines(starts)

    def read_lines(self, starts):
        text = subprocess.run([toolchain.utility("addr2line"), "-e", self.path], input="\n".join(map(hex, starts)), capture_output=True,
                              text=True, check=True).stdout.splitlines()
        for address, where in zip(starts, text):
            number = where.rsplit(":", 1)[1].split()[0]
            self.lines.setdefault(int(number) if number.isdigit() else 0, []).append(address)

    def at(self, address):
        return self.path, address

    def returns(self, function, callee, n=0):
        return self.path, self.calls[function, callee][n]


def compile_program(scratch, *options):
    path = scratch / "prog"
    path.unlink(missing_ok=True)
    subprocess.run([*toolchain.COMPILER, *options, "-fno-builtin", "-fno-optimize-sibling-calls", "-o", str(path), str(PROGRAM)], check=True)
    return path


def measure(program, addresses, directory):
    """10 samples on field, 6 on local, 4 on box.inside, 5, 3 and 2 on the tables, through the leaf addresses given."""
    p = m.Profile("prog", [("EADDR (usec)", m.INT, 1000)])
    main, setup = program.returns("main", "setup"), program.returns("setup", "reader")
    blocks = [[program.returns("setup", "malloc")], [program.returns("setup", "grab"), program.returns("grab", "malloc")],
              [program.returns("setup", "must_alloc"), program.returns("must_alloc", "malloc")]]
    for count, path in zip((10, 6, 4), blocks):
        p.sample([main, setup, program.at(addresses["plain"])], {0: count}, m.heap([main, *path]))
    for count, name, place, kind in ((5, "table_static", "Static", "static"), (3, "table_global", "Static", "static"),
                                     (2, "table_thread", "ThreadLocal", "tls")):
        variable = m.by_address(f"DATACENTRIC_{place}", program.path, addresses[name] + 8, kind)
        p.sample([main, program.at(addresses["inlined"])], {0: count}, variable)
    shutil.rmtree(directory, ignore_errors=True)
    p.write(directory)


def query(scratch, directory, *options):
    database = scratch / "database"
    result = subprocess.run([str(BUILD / "hpcprof"), *map(str, options), "-v", "-o", str(database), str(directory)],
                            capture_output=True, text=True, check=False)
    expect(result.returncode == 0, f"hpcprof: {result.stderr}")
    check = subprocess.run([sys.executable, str(SOURCE / "tests" / "lib" / "check-v4.py"), "--time", str(database)],
                           capture_output=True, text=True, check=False)
    expect(check.returncode == 0, f"rules: {check.stdout}{check.stderr}")
    rows = csv.DictReader(io.StringIO(output(BUILD / "hpcquery", "vars", "--csv", database)))
    nodes = [node for report in ("tree", "datatree")
             for node in json.loads(output(BUILD / "hpcquery", report, "--json", database))["nodes"]]
    return {r["variable"]: r for r in rows}, nodes, result.stdout


def addresses_of(program):
    tls = int(next(f[1] for f in map(str.split, output(toolchain.utility("readelf"), "-sW", program.path).splitlines())
                   if f and f[-1] == "table_thread"), 16)
    return {"table_static": program.symbols["table_static"], "table_global": program.symbols["table_global"],
            "table_thread": tls}


def check_debug(scratch, options):
    program = Program(compile_program(scratch, "-g", *options), True)
    addresses = addresses_of(program)
    addresses["plain"] = program.lines[line_of("access in reader")][0]
    addresses["inlined"] = program.lines[line_of("access inlined")][0]
    measure(program, addresses, scratch / "measurements")
    rows, nodes, _ = query(scratch, scratch / "measurements")
    wanted = {"field": 10, "local": 6, "box.inside": 4, "table_static": 5, "table_global": 3, "table_thread": 2}
    expect({n: float(r["samples"]) for n, r in rows.items()} == wanted, f"{options}: variables {rows.keys()}")
    for name in ("field", "local", "box.inside"):
        site = f"setup (symbolize.c:{line_of('allocates ' + name)})"
        expect(name in rows and rows[name]["alloc_site"] == site, f"{options}: {name} from {rows.get(name)}")
    expect(rows.get("table_static", {}).get("size_bytes") == "4096", f"{options}: table_static")
    top = rows.get("field", {}).get("top_lines", "")
    expect(top.endswith(f"symbolize.c:{line_of('access in reader')} 100.00%"), f"{options}: lines of field: {top}")
    by_id = {n["id"]: n for n in nodes}
    inlined = [n for n in nodes if n["inlined"]]
    expect(inlined and all(n["name"] == "touch" and by_id[n["parent"]]["name"] == "reader" and
                           n["call_line"] == line_of("call of touch") for n in inlined), f"{options}: inlined {inlined}")
    setup = [n for n in nodes if n["name"] == "setup"]
    expect(setup and all(n["call_line"] == line_of("call of setup") for n in setup), f"{options}: calls of setup {setup}")


def check_without_debug(scratch):
    path = compile_program(scratch, "-O0")
    program = Program(path, False)
    addresses = addresses_of(program)
    addresses["plain"] = addresses["inlined"] = program.symbols["reader"] + 4
    measure(program, addresses, scratch / "measurements")
    rows, _, notes = query(scratch, scratch / "measurements")
    setup = [name for name in rows if re.fullmatch(r"setup\+0x[0-9a-f]+", name)]
    expect(len(setup) == 1 and {"table_static", "table_global", "table_thread"} <= rows.keys(), f"symbols only: {rows.keys()}")
    expect(notes.count("debug information") == 1 and "prog" in notes, f"symbols only: {notes}")
    subprocess.run([toolchain.utility("strip"), str(path)], check=True)
    rows, nodes, _ = query(scratch, scratch / "measurements")
    start = f"func_{hex(program.symbols['setup'])} [prog]"
    expect(start in {n["name"] for n in nodes}, f"stripped: no {start} in {[n['name'] for n in nodes]}")
    path.unlink()
    rows, nodes, notes = query(scratch, scratch / "measurements")
    expect(notes.count("Not readable") == 1 and sum(float(r["samples"]) for r in rows.values()) == 30, f"gone: {notes}")


def check_moved_source(scratch):
    """Names come from the machine code alone, or from sources found elsewhere by -I and -R."""
    work = scratch / "old"
    work.mkdir()
    shutil.copy(PROGRAM, work / "moved.c")
    subprocess.run([*toolchain.COMPILER, "-g", "-O0", "-fno-builtin", "-o", str(scratch / "prog"), str(work / "moved.c")],
                   check=True)
    program = Program(scratch / "prog", True)
    addresses = addresses_of(program)
    addresses["plain"] = addresses["inlined"] = program.lines[line_of("access in reader")][0]
    measure(program, addresses, scratch / "measurements")
    (scratch / "new").mkdir()
    (work / "moved.c").rename(scratch / "new" / "moved.c")
    from_code = {"field"} if toolchain.machine() == "x86_64" else set()
    for options in (("-I", scratch / "new"), ("-R", f"{work}={scratch / 'new'}"), ()):
        rows, _, _ = query(scratch, scratch / "measurements", *options)
        expect(({"field", "local"} if options else from_code) <= rows.keys(), f"{options}: {rows.keys()}")
    check_copies(scratch, work / "moved.c", scratch / "new" / "moved.c")


def check_structure(scratch):
    """Functions, inlining, loops and lines from a structure file are those from the module; they do not need it."""
    path = compile_program(scratch, "-g", "-O1")
    program = Program(path, True)
    addresses = addresses_of(program)
    addresses["plain"] = program.lines[line_of("access in reader")][0]
    addresses["inlined"] = program.lines[line_of("access inlined")][0]
    measure(program, addresses, scratch / "measurements")
    (scratch / "structs").mkdir()
    output(BUILD / "hpcstruct", "-q", "--nocache", "-o", scratch / "structs" / "prog.hpcstruct", path)
    trees = []
    for options in ((), ("-S", scratch / "structs" / "prog.hpcstruct"), ("-S", scratch / "structs")):
        rows, nodes, _ = query(scratch, scratch / "measurements", *options)
        trees.append([n for n in nodes if "name" in n and n["name"] in ("main", "setup", "reader", "touch")])
        expect({"field", "table_static"} <= rows.keys(), f"{options}: variables {rows.keys()}")
        path.rename(scratch / "away")
        if options:  # symbols of 1024 bytes are in such files
            rows, nodes, said = query(scratch, scratch / "measurements", *options)
            trees.append([n for n in nodes if "name" in n and n["name"] in ("main", "setup", "reader", "touch")])
            expect("table_static" in rows and "Not readable" not in said, f"without module: {rows.keys()} {said}")
        (scratch / "away").rename(path)
    texts = [sorted((n["name"], n["file"], n["line"], n["call_line"], n["inlined"]) for n in tree) for tree in trees]
    expect(len(texts[0]) > 5 and all(t == texts[0] for t in texts), f"trees by structure files differ: {texts}")
    bad = scratch / "bad.hpcstruct"
    for content in ("", "<LM", "<a/>", "<LM n='x'><F", "no structure", '<LM n="x" n=3/>', "<LM n='x'>"):
        bad.write_text(content, encoding="utf-8")
        result = subprocess.run([str(BUILD / "hpcprof"), "-S", str(bad), "-o", str(scratch / "no"),
                                 str(scratch / "measurements")], capture_output=True, text=True, check=False)
        expect(result.returncode == 1 and result.stderr.count("\n") == 1 and bad.name in result.stderr,
               f"{content}: {result.stderr}")


def copies_of(database):
    """The files that meta.db says are copied, as it names them, and the files in src."""
    named = {path for flags, path in v4.read(database / "meta.db")["files"] if flags & 1}
    return named, {str(p.relative_to(database)) for p in (database / "src").rglob("*") if p.is_file()}


def check_copies(scratch, old, new):
    """The program's source, which has moved from old to new, is copied when it is found, and nothing else is."""
    text, place = new.read_bytes(), f"src{old.resolve()}"
    deep = scratch / "tree" / "old"
    (scratch / "tree" / "other").mkdir(parents=True)
    (scratch / "tree" / "other" / "moved.c").write_text("decoy", encoding="utf-8")
    deep.mkdir()
    shutil.copy(new, deep)
    (scratch / "links").mkdir()
    (scratch / "links" / "moved.c").symlink_to(new)
    database = scratch / "database"
    xml = scratch / "xml"
    for options, found in ((("-I", scratch / "new"), True), (("-R", f"{old.parent}={scratch / 'new'}"), True),
                           (("-I", f"{scratch}/tree/+"), True), (("-I", scratch / "tree"), True),
                           (("-I", scratch / "links"), False), (("-I", f"{scratch}/links/+"), False), ((), False),
                           (("--no-sources", "-I", scratch / "new"), None)):
        _, _, said = query(scratch, scratch / "measurements", *options, "--xml", xml)
        named, files = copies_of(database)
        expect(named == files and (place in named) == bool(found), f"{options}: {named} {files}")
        expect(not found or (database / place).read_bytes() == text, f"{options}: another file was copied")
        expect((found is not None) == ("source files copied" in said), f"{options}: {said}")
        expect(found is not False or str(old) in said, f"{options}: {said}")
        expect((f'n="./{place}"' in (xml / "experiment.xml").read_text(encoding="utf-8")) == bool(found) and
               (xml / place).exists() == bool(found), f"{options}: copies in the XML form")
    query(scratch, scratch / "measurements", "-I", scratch / "new")
    query(scratch, scratch / "measurements", "--extend")
    expect(place in copies_of(database)[0] and place in copies_of(database)[1], "an extended database lost a copy")
    shutil.copy(new, old)
    query(scratch, scratch / "measurements")
    expect(place in copies_of(database)[0], "a source in its own place was not copied")
    (scratch / "mine" / "src").mkdir(parents=True)
    refused = subprocess.run([str(BUILD / "hpcprof"), "-o", str(scratch / "mine"), str(scratch / "measurements")],
                             capture_output=True, text=True, check=False)
    expect(refused.returncode == 1 and "holds other files" in refused.stderr, f"src of others: {refused.stderr}")


def main():
    for tool in ("nm", "objdump", "addr2line", "readelf", "strip"):
        if not shutil.which(toolchain.utility(tool)):
            print(f"SKIP: {tool} is not installed")
            sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for options in (("-O0",), ("-O1", "-no-pie")):
            check_debug(scratch, options)
        check_without_debug(scratch)
        check_structure(scratch)
        check_moved_source(scratch)
    for sentence in failures:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
