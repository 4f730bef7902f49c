# SPDX-License-Identifier: BSD-3-Clause
"""hpcfnbounds on a small library compiled here: what it lists agrees with nm and readelf; bad input is refused."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ["LOCUS_SRCDIR"]) / "tests" / "lib"))
import toolchain  # noqa: E402

TOOL = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcfnbounds"
SOURCE = """
int numbers[500] = {1};
static char buffer[3000];
__thread long counters[200];
static __attribute__((noinline)) int hidden(int i) { return numbers[i] + buffer[i]; }
int visible(int i) { counters[i]++; buffer[i & 7]++; return hidden(i) + 1; }
int other(int (*f)(int)) { return f(3) + 4; }
"""
failures = []


def tool(*arguments, **variables):
    return subprocess.run([str(TOOL), *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, **variables})


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def symbols(path, kinds):
    lines = subprocess.run([toolchain.utility("nm"), "-S", path], capture_output=True, text=True, check=True).stdout.splitlines()
    found = (line.split() for line in lines)
    return {words[3]: (int(words[0], 16), int(words[1], 16)) for words in found
            if len(words) == 4 and words[2] in kinds}


def listed(text):
    return {m.group(2): int(m.group(1), 16) for m in re.finditer(r"^0x([0-9a-f]+)    (.*)$", text, re.M)}


def check_functions(library, stripped):
    done = tool(library)
    functions = listed(done.stdout)
    for name, (address, _) in symbols(library, "tT").items():
        expect(functions.get(name) == address, f"function {name} is not at {address:#x}: {functions.get(name)}")
    last = done.stdout.splitlines()[-1]
    count = len(re.findall(r"^0x", done.stdout, re.M))
    expect(last == f"num symbols = {count}, reference offset = 0x0, relocatable = 1", f"last line: {last}")
    starts = {int(a, 16) for a in re.findall(r"^0x([0-9a-f]+)", tool(stripped).stdout, re.M)}
    for name in ("hidden", "visible", "other"):
        address = symbols(library, "tT")[name][0]
        expect(address in starts, f"{name} is not found in the stripped library")


def check_c_source(library, scratch):
    source = pathlib.Path(scratch) / "list.c"
    source.write_text(tool("-c", library).stdout + "#include <stdio.h>\nint main(void) { printf(\"%lu %lx %d\\n\","
                      " hpcrun_nm_addrs_len, hpcrun_nm_addrs[0], hpcrun_is_relocatable); return 0; }\n",
                      encoding="utf-8")
    subprocess.run([*toolchain.COMPILER, source, "-o", f"{scratch}/list"], check=True)
    printed = subprocess.run([f"{scratch}/list"], capture_output=True, text=True, check=True).stdout.split()
    addresses = re.findall(r"^0x([0-9a-f]+)", tool(library).stdout, re.M)
    expect(printed == [str(len(addresses) + 1), addresses[0], "1"], f"the C source says {printed}")


def check_variables(library):
    text = tool("-m", library).stdout
    variables = listed(text)
    for name in ("numbers", "buffer"):
        address, size = symbols(library, "bBdD")[name]
        expect(variables.get(name) == address, f"variable {name} is not at {address:#x}")
        expect(f"{size}  {name}\n" in text, f"variable {name} has not {size} bytes")
    expect("counters (thread-local)" in variables, "the thread-local variable is missing")
    everything = listed(tool("-m", library, DATACENTRIC_MIN_BYTES="1").stdout)
    expect(len(everything) > len(variables), "DATACENTRIC_MIN_BYTES=1 lists no more")


def check_rows(library):
    text = tool("--rows", library).stdout
    start = symbols(library, "tT")["other"][0]
    rows = {"x86_64": "cfa=rsp+8", "aarch64": "cfa=sp+0 ra=x30", "powerpc64le": "cfa=r1+0 ra=lr"}
    if row := rows.get(toolchain.machine()):
        expect(f"{start:#x}    {row}\n" in text, f"function other does not start with {row}")


def check_table(library, scratch):
    modules = [library, "[vdso]"]
    if "LOCUS_EMULATED" in os.environ:
        print("SKIP (part): there is no vdso under qemu-user")
        modules.pop()
    done = tool("--table", f"{scratch}/cache", *modules)
    paths = done.stdout.split()
    expect(done.returncode == 0 and len(paths) == len(modules), f"--table: {done.stderr}")
    for path in paths:
        expect(pathlib.Path(path).read_bytes()[:7] == b"LOCUSLM", f"{path} is no table")
    several = tool("--table", f"{scratch}/several", "-js", "3", *modules)
    expect([pathlib.Path(p).name for p in several.stdout.split()] == [pathlib.Path(p).name for p in paths],
           f"-js 3: {several.stdout}{several.stderr}")
    again = tool("--table", "default", library, XDG_CACHE_HOME=f"{scratch}/xdg")
    expect(again.stdout.startswith(f"{scratch}/xdg/locus/"), f"default cache: {again.stdout}{again.stderr}")


def check_c_variables(library, scratch):
    source = pathlib.Path(scratch) / "data.c"
    program = ("#include <stdio.h>\nint main(void) { for (unsigned long i = 0; i < hpcrun_data_addrs_len; i++)"
               " printf(\"%lx %lu\\n\", hpcrun_data_addrs[2 * i], hpcrun_data_addrs[2 * i + 1]); return 0; }\n")
    for options, wanted in ((("-c", "-m"), ("numbers", "buffer")), (("-c", "-x"), ())):
        source.write_text(tool(*options, library).stdout + program, encoding="utf-8")
        subprocess.run([*toolchain.COMPILER, source, "-o", f"{scratch}/data"], check=True)
        printed = subprocess.run([f"{scratch}/data"], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
        lines = [f"{address:x} {size}" for address, size in (symbols(library, "bBdD")[name] for name in wanted)]
        expect(sorted(printed) == sorted(lines), f"{options}: {printed} instead of {lines}")


def check_separate(library, scratch):
    """Symbols of a stripped library from .gnu_debugdata, made as distributions do: functions that .dynsym lacks."""
    objcopy, strip = toolchain.utility("objcopy"), toolchain.utility("strip")
    keep, mini = pathlib.Path(scratch) / "keep", f"{scratch}/mini"
    keep.write_text("hidden\n", encoding="utf-8")
    subprocess.run([objcopy, "--only-keep-debug", library, f"{mini}.debug"], check=True)
    subprocess.run([objcopy, "-S", f"--keep-symbols={keep}", f"{mini}.debug", mini], check=True)
    subprocess.run(["xz", "-k", "-f", mini], check=True)
    subprocess.run([strip, "-o", f"{mini}.so", library], check=True)
    before = listed(tool(f"{mini}.so").stdout)
    subprocess.run([objcopy, "--add-section", f".gnu_debugdata={mini}.xz", f"{mini}.so"], check=True)
    after = listed(tool(f"{mini}.so").stdout)
    expect("hidden" not in before and after.get("hidden") == symbols(library, "tT")["hidden"][0],
           f"hidden is {after.get('hidden')} with .gnu_debugdata")
    expect("numbers" in listed(tool("-m", f"{mini}.so").stdout), ".gnu_debugdata hides the variables of .dynsym")


def message(kind, contents=b"", version=1):
    return b"LFNB" + struct.pack(">HHQ", version, kind, len(contents)) + contents


def serve(requests):
    """Exit status, messages on standard error, and the answers (type, contents)."""
    done = subprocess.run([str(TOOL), "-s", "0", "1"], input=requests, capture_output=True, check=False)
    answers, at = [], 0
    while at < len(done.stdout):
        mark, version, kind, n_bytes = struct.unpack_from(">4sHHQ", done.stdout, at)
        expect(mark == b"LFNB" and version == 1, f"an answer begins with {mark} {version}")
        answers.append((kind, done.stdout[at + 16:at + 16 + n_bytes]))
        at += 16 + n_bytes
    return done.returncode, done.stderr.decode(), answers


def check_server(library):
    path = library.encode()
    status, words, answers = serve(message(1, path) + message(1, b"/does/not/exist") + message(2, path) + message(3) +
                                   message(1, path))
    expect(status == 0 and [kind for kind, _ in answers] == [16, 17, 16], f"server: {status} {words} {answers}")
    n, offset, relocatable = struct.unpack_from(">3Q", answers[0][1])
    starts = struct.unpack_from(f">{2 * n}Q", answers[0][1], 24)[::2]
    text = tool(library).stdout
    expect([f"{a:#x}" for a in starts] == re.findall(r"^(0x[0-9a-f]+)", text, re.M) and offset == 0 and relocatable == 1,
           "the server's functions differ from the list")
    expect(b"/does/not/exist" in answers[1][1], f"the server's error is {answers[1][1]}")
    contents = answers[2][1]
    n = struct.unpack_from(">Q", contents)[0]
    names = contents[8 + 32 * n:]
    found = {names[at:names.index(b"\0", at)].decode(): (address, size)
             for address, size, _, at in struct.iter_unpack(">4Q", contents[8:8 + 32 * n])}
    for name in ("numbers", "buffer"):
        expect(found.get(name) == symbols(library, "bBdD")[name], f"the server's {name} is {found.get(name)}")
    for bad, said in ((b"nonsense" * 4, "LFNB"), (message(1, path)[:20], "within a message"),
                      (message(9, path), "type 9"), (message(1, path, 2), "version 2")):
        status, words, answers = serve(bad)
        expect(status == 1 and said in words and not answers, f"{bad}: {status} {words}")


def check_refusals(library, scratch):
    text = pathlib.Path(scratch) / "text"
    text.write_text("no module\n", encoding="utf-8")
    for arguments, status, words in (((), 2, "no module"), (("-m", "--rows", library), 2, "exclude"),
                                     (("-c", "--rows", library), 2, "-c"), (("-x", library), 2, "needs -c"),
                                     (("-s", "0"), 2, "two descriptors"), (("-js", "0", library), 2, "-js"),
                                     (("--nonsense", library), 2, "--nonsense"),
                                     (("/does/not/exist",), 1, "/does/not/exist"), ((text,), 1, "not an ELF file"),
                                     (("--table", "/proc/none", library), 1, "/proc/none")):
        done = tool(*arguments)
        expect(done.returncode == status and words in done.stderr,
               f"{arguments}: status {done.returncode}, {done.stderr.strip()}")
    both = tool(text, library)
    expect(both.returncode == 1 and "visible" in both.stdout, "a bad module keeps the others from being listed")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        library, stripped = f"{scratch}/liblist.so", f"{scratch}/stripped.so"
        pathlib.Path(f"{scratch}/a.c").write_text(SOURCE, encoding="utf-8")
        subprocess.run([*toolchain.COMPILER, "-O2", "-shared", "-fPIC", f"{scratch}/a.c", "-o", library], check=True)
        subprocess.run([toolchain.utility("strip"), "-o", stripped, library], check=True)
        check_functions(library, stripped)
        check_c_source(library, scratch)
        check_variables(library)
        check_rows(library)
        check_c_variables(library, scratch)
        check_separate(library, scratch)
        check_server(library)
        check_table(library, scratch)
        check_refusals(library, scratch)
    for sentence in failures:
        print(f"FAIL: {sentence}")
    return 1 if failures else 0


sys.exit(main())
