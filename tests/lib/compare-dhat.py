#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the blocks of a measurement with what valgrind's heap profiler counted in another run of the same program:
the same allocation call paths below main or a thread's start, and the same blocks and bytes at each. Our addresses are
turned into functions' lines by addr2line, valgrind's by itself; so the analysis of this project has no part in it.
usage: compare-dhat.py DHAT_FILE MEASUREMENT_DIR HPCPROFTT MIN_BYTES"""
import collections
import json
import pathlib
import re
import subprocess
import sys

FRAME = re.compile(r"0x[0-9A-Fa-f]+: (.*) \((?:in (.+)|([^()]+):(\d+))\)$")
WRAPPER = re.compile(r"^(malloc|calloc|realloc|memalign|posix_memalign|aligned_alloc|operator new(\[\])?\(.*)$")


def cut(frames):
    """Frames, innermost first, up to main or the function that a thread starts with; None when there is no such."""
    for i, (function, _) in enumerate(frames):
        if function == "main" or "._omp_fn" in function:
            return tuple(place for _, place in frames[:i + 1])
    return None


def dhat_paths(path, min_bytes):
    """{path: (blocks, bytes)} of the paths whose blocks are all as large as the threshold."""
    data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    sums = collections.defaultdict(lambda: (0, 0))
    for point in data["pps"]:
        frames = []
        for index in point["fs"]:
            found = FRAME.match(data["ftbl"][index])
            function, module, file, line = found.groups() if found else ("???", "?", None, None)
            if not frames and WRAPPER.match(function):
                continue
            frames.append((function, f"{file}:{line}" if file else pathlib.Path(module).resolve().name))
        key = cut(frames)
        if key and point["tb"] >= min_bytes * point["tbk"]:
            sums[key] = sums[key][0] + point["tbk"], sums[key][1] + point["tb"]
    return dict(sums)


class Symbols:
    """Functions and lines of return addresses, as addr2line gives them; a module's name where it has none."""

    def __init__(self):
        self.known = {}

    def frames(self, module, address):
        if (module, address) not in self.known:
            lines = subprocess.run(["addr2line", "-f", "-i", "-e", module, hex(address)], check=True,
                                   capture_output=True, text=True).stdout.splitlines()
            found = []
            for function, place in zip(lines[::2], lines[1::2]):
                file, _, line = place.split(" ")[0].rpartition(":")
                has_line = line.isdigit() and line != "0"
                found.append((function, f"{pathlib.Path(file).name}:{line}" if has_line
                              else pathlib.Path(module).resolve().name))
            self.known[module, address] = found
        return self.known[module, address]


def our_paths(directory, hpcproftt):
    sums, symbols = collections.defaultdict(lambda: (0, 0)), Symbols()
    for profile in pathlib.Path(directory).glob("*.hpcrun"):
        text = subprocess.run([hpcproftt, "--json", str(profile)], check=True, capture_output=True, text=True).stdout
        epoch = json.loads(text)["epochs"][0]
        modules = {module["id"]: module["path"] for module in epoch["modules"]}
        nodes = {abs(node["id"]): node for node in epoch["nodes"]}
        side = json.loads(profile.with_suffix(".objects").read_text(encoding="utf-8"))
        for variable in side["variables"]:
            if variable["kind"] != "heap" or not variable["n_blocks"]:
                continue
            frames, node = [], nodes[variable["node"]]
            while node["module"]: # at the top stands a function of the library, and below it some wrap the program's
                if "libhpcrun" not in modules[node["module"]]:
                    frames += symbols.frames(modules[node["module"]], int(node["ip"]) - 1)
                node = nodes[abs(node["parent"])]
            key = cut(frames)
            if key:
                sums[key] = sums[key][0] + variable["n_blocks"], sums[key][1] + variable["bytes"]
    return dict(sums)


def main():
    expected = dhat_paths(sys.argv[1], int(sys.argv[4]))
    actual = our_paths(sys.argv[2], sys.argv[3])
    wrong = 0
    for key in sorted(set(expected) | set(actual)):
        if expected.get(key) != actual.get(key):
            wrong += 1
            print(f"{' < '.join(key)}: {actual.get(key)} blocks and bytes instead of {expected.get(key)}")
    print(f"{len(expected)} paths with {sum(n for n, _ in expected.values())} blocks, {wrong} differ")
    return 1 if wrong or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
