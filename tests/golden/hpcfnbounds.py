# SPDX-License-Identifier: BSD-3-Clause
"""hpcfnbounds on a small library compiled here: what it lists agrees with nm and readelf; bad input is refused."""
import os
import pathlib
import re
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
    again = tool("--table", "default", library, XDG_CACHE_HOME=f"{scratch}/xdg")
    expect(again.stdout.startswith(f"{scratch}/xdg/locus/"), f"default cache: {again.stdout}{again.stderr}")


def check_refusals(library, scratch):
    text = pathlib.Path(scratch) / "text"
    text.write_text("no module\n", encoding="utf-8")
    for arguments, status, words in (((), 2, "no module"), (("-c", "-m", library), 2, "exclude"),
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
        check_table(library, scratch)
        check_refusals(library, scratch)
    for sentence in failures:
        print(f"FAIL: {sentence}")
    return 1 if failures else 0


sys.exit(main())
