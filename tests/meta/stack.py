# SPDX-License-Identifier: BSD-3-Clause
"""Stack use of what runs in a signal handler: the deepest chain of calls through the *-sig.c files stays within what
the walker's file reckons with (HANDLER_BYTES), for each walker that the machine can have. With a walker of our own
these are 4 KiB, because the smallest thread stack (16 KiB) also has to hold the signal frame of a wide-vector
machine. What a walk by libunwind takes is measured by tests/unit/unwind-libunwind-test."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import tree

MAX_BYTES = 4096  # in a tree that has no walker
WALKERS = ("unwind-sig.c", "unwind-link-sig.c", "unwind-libunwind-sig.c")
LIBUNWIND = "unwind-libunwind-sig.c"
# Leaves of the C library and the kernel's vdso, generously.
FOREIGN_BYTES = 256
# Calls through pointers: what each function that makes them may reach.
INDIRECT = {
    "unwind_find_rule_sig": ["loadmap_find_code_sig"],
    "refuse_sig": ["arena_log_sig"],
    "own_state": [],  # pthread_getspecific
    "chain_call_sig": [],  # the program's own handler, on the program's account
}


def compiler():
    """gcc by any name; clang has no -fcallgraph-info."""
    for words in (os.environ.get("CC", "gcc").split(), ["gcc"]):
        if words and shutil.which(words[0]):
            version = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False).stdout
            if "Free Software Foundation" in version:
                return words
    return tree.skip("stack use is measured with gcc, which is not installed")


def is_compiled(name):
    """Whether a source is for the machine that the compiler is for."""
    machine = subprocess.run([*compiler(), "-dumpmachine"], capture_output=True, text=True, check=True).stdout.split("-")[0]
    if own := re.fullmatch(r"arch-(.*)-sig\.c", name):
        return own.group(1) == {"x86_64": "x86-64", "powerpc64le": "ppc64le"}.get(machine, machine)
    if name == "unwind-link-sig.c":
        return machine not in ("x86_64", "s390x")
    return machine == "x86_64" or name != "unwind-sig.c"


def call_graph(path, scratch):
    """(bytes of each function, [(caller, callee)]) as the compiler reports them for one source."""
    out = pathlib.Path(scratch) / (path.name + ".o")
    command = [*compiler(), "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fcallgraph-info=su", f"-I{tree.ROOT}/src",
               f"-I{tree.BUILD}", "-c", str(tree.ROOT / path), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"FAIL: {path} does not compile alone:\n{done.stderr}")
    text = out.with_suffix(".ci").read_text(encoding="utf-8")
    sizes, unbounded = {}, []
    for title, label in re.findall(r'node: \{ title: "([^"]+)" label: "([^"]*)"', text):
        size = re.search(r"\\n(\d+) bytes \(([\w,]+)\)", label)
        if size:
            sizes[title] = int(size.group(1))
            if size.group(2) == "dynamic":
                unbounded.append(title)
    edges = re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text)
    edges = [(caller, re.sub(r"^.*:(\w+)\.localalias$", r"\1", callee)) for caller, callee in edges]
    return sizes, edges, unbounded


def deepest(function, calls, sizes, path, memo, offenders):
    """(bytes, chain) below and including function."""
    if function in path:
        offenders.add("recursion: " + " > ".join([*path[path.index(function):], function]))
        return 0, []
    if function not in sizes:
        return FOREIGN_BYTES, [function]
    if function not in memo:
        best = (0, [])
        for callee in calls.get(function, ()):
            best = max(best, deepest(callee, calls, sizes, [*path, function], memo, offenders), key=lambda b: b[0])
        memo[function] = (best[0] + sizes[function], [function, *best[1]])
    return memo[function]


def short(function):
    return function.split(":")[-1]


def constant(path, name):
    return int(re.search(rf"#define {name} (\d+)", tree.read(path)).group(1))


class Graph:
    """Functions of some sources, their bytes, and who calls whom."""

    def __init__(self):
        self.sizes, self.calls, self.offenders = {}, {}, set()

    def add(self, reported):
        own_sizes, edges, unbounded = reported
        self.sizes.update(own_sizes)
        self.offenders |= {f"{short(f)} has a stack frame of unknown size" for f in unbounded}
        for caller, callee in edges:
            if callee != "__indirect_call":
                self.calls.setdefault(caller, []).append(callee)
            elif short(caller) in INDIRECT:
                self.calls.setdefault(caller, []).extend(INDIRECT[short(caller)])
            else:
                self.offenders.add(f"{short(caller)} calls through a pointer that INDIRECT does not explain")

    def check(self, max_bytes):
        memo = {}
        found = max((deepest(f, self.calls, self.sizes, [], memo, self.offenders) for f in self.sizes),
                    key=lambda b: b[0])
        print(f"deepest: {found[0]} bytes: " + " > ".join(f"{short(f)} {self.sizes.get(f, '')}" for f in found[1]))
        if found[0] > max_bytes:
            self.offenders.add(f"{short(found[1][0])} needs {found[0]} bytes of stack, at most {max_bytes}")


def main():
    sources = [p for p in tree.sources(".c") if p.name.endswith("-sig.c") and is_compiled(p.name)]
    if not sources:
        tree.skip("this tree has no *-sig.c")
    walkers = [p for p in sources if p.name in WALKERS]
    with tempfile.TemporaryDirectory() as scratch:
        reported = {p: call_graph(p, scratch) for p in sources if p.name != LIBUNWIND}
    offenders, n_checked = set(), 0
    for walker in walkers or [None]:
        graph = Graph()
        for path in sources:
            if path not in walkers:
                graph.add(reported[path])
        if walker and walker.name == LIBUNWIND:
            graph.sizes["unwind_walk_sig"] = constant(walker.with_name("unwind-libunwind.h"), "UNWIND_LIBUNWIND_BYTES")
        elif walker:
            graph.add(reported[walker])
        graph.check(constant(walker, "HANDLER_BYTES") if walker else MAX_BYTES)
        offenders |= graph.offenders
        n_checked += len(graph.sizes)
    tree.finish(sorted(offenders), n_checked)


main()
