# SPDX-License-Identifier: BSD-3-Clause
"""The preloaded library from outside: it needs libc only, exports only what it interposes, its public functions and
the placeholders, and takes little thread-local memory from the programs it visits."""
import re
import subprocess

import tree

NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld64.so.2"}
API = {"hpctoolkit_sampling_start", "hpctoolkit_sampling_stop", "hpctoolkit_sampling_is_active"}
PLACEHOLDERS = {"DATACENTRIC", "DATACENTRIC_Dynamic", "DATACENTRIC_Static", "DATACENTRIC_Unknown",
                "DATACENTRIC_MemoryAccess"}
EXPORT_LISTS = ("src/alloc-wrap/exports.txt", "src/runtime/exports.txt")
MAX_TLS_BYTES = 256


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options], capture_output=True, text=True, check=True).stdout


def listed_exports():
    names = set()
    for path in EXPORT_LISTS:
        if (tree.ROOT / path).exists():
            names |= {line.split()[0] for line in tree.read(path).splitlines() if line.strip() and line[0] != "#"}
    return names


def symbols(library, option, section):
    """name -> (type, binding, defined) of a symbol table."""
    text = readelf(option, library)
    found = {}
    for line in text.split(f"Symbol table '{section}'")[-1].splitlines():
        words = line.split()
        if len(words) >= 8 and re.match(r"\d+:", words[0]):
            found[words[7].split("@")[0]] = (words[3], words[4], words[6] != "UND")
    return found


def check_exports(library):
    exported = {n for n, (_, binding, defined) in symbols(library, "--dyn-syms", ".dynsym").items()
                if defined and binding != "LOCAL"}
    expected = listed_exports() | API | PLACEHOLDERS
    yield from (f"{name} is exported but in no list of exports" for name in sorted(exported - expected))
    yield from (f"{name} should be exported and is not" for name in sorted(expected - exported))


def main():
    library = next((p for p in (tree.BUILD / ".libs", tree.BUILD / "src/runtime/.libs")
                    if (p / "libhpcrun.so").exists()), None)
    if library is None:
        tree.skip("libhpcrun.so has not been built")
    library = str(library / "libhpcrun.so")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", library)))
    offenders = [f"libhpcrun.so needs {name}" for name in sorted(needed - NEEDED)]
    offenders += check_exports(library)
    static = symbols(library, "-s", ".symtab")
    offenders += [f"placeholder function {name} is missing from .symtab" for name in sorted(PLACEHOLDERS)
                  if static.get(name, ("", "", False))[0] != "FUNC"]
    tls = re.search(r"^\s*TLS\s+\S+ \S+ \S+ \S+ (\S+)", readelf("-l", library), re.M)
    tls_bytes = int(tls.group(1), 16) if tls else 0
    print(f"thread-local memory: {tls_bytes} bytes")
    if tls_bytes > MAX_TLS_BYTES:
        offenders.append(f"libhpcrun.so has {tls_bytes} bytes of thread-local memory, at most {MAX_TLS_BYTES}")
    if "__tls_get_addr" in static:
        offenders.append("libhpcrun.so calls __tls_get_addr: thread-local variables must be initial-exec")
    if re.search(r"\((TEXTREL|RPATH|RUNPATH)\)", readelf("-d", library)):
        offenders.append("libhpcrun.so has text relocations or a search path of its own")
    tree.finish(offenders, 1)


main()
