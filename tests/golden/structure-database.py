# SPDX-License-Identifier: BSD-3-Clause
"""Loops and inlined functions as scopes of databases: samples are put into the loops of kernels that know theirs, and
must come out below them, in the tree of hpcquery and in both forms of the database, which keep their rules."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import measurement as m  # noqa: E402
import toolchain  # noqa: E402

KERNELS = SOURCE / "tests" / "golden" / "structure-kernels.c"
LINES = KERNELS.read_text(encoding="utf-8").split("\n")
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    expect(result.returncode == 0, f"{command}: {result.stdout}{result.stderr}")
    return result.stdout


def line_of(text, start=0):
    return next(i for i, line in enumerate(LINES, 1) if text in line and i > start)


def deepest(element, loops=()):
    """(number of loops, an address in the innermost one) of the deepest loops in a part of a structure file."""
    best = (0, None)
    for child in element:
        inside = loops + ((child,) if child.tag == "L" else ())
        if child.tag == "S" and len(loops) > best[0]:
            best = len(loops), int(re.match(r"\{\[(0x\w+)-", child.get("v")).group(1), 16)
        best = max(best, deepest(child, inside), key=lambda found: found[0])
    return best


def chain(nodes, function):
    """What is below the function on the way to its statements: loops as ("loop", line), functions by name."""
    by_id = {n["id"]: n for n in nodes}
    for node in nodes:
        if node["kind"] != "line" or node["inclusive"] == 0:
            continue
        names = []
        while node["parent"] in by_id:
            node = by_id[node["parent"]]
            names.append(("loop", node["line"]) if node["kind"] == "loop" else node["name"])
        if function in names:
            return names[:names.index(function)][::-1]
    return None


def check_level(scratch, level):
    program = scratch / f"kernels{level}"
    subprocess.run([*toolchain.COMPILER, "-g", level, str(KERNELS), "-o", str(program)], check=True)
    root = ElementTree.fromstring(run(BUILD / "hpcstruct", "--nocache", "-o", "-", program))
    functions = {p.get("n"): p for p in root.iter("P")}
    main = int(re.match(r"\{\[(0x\w+)-", next(functions["main"].iter("S")).get("v")).group(1), 16)
    profile = m.Profile("kernels", [("EADDR (usec)", m.INT, 1000)])
    wanted = {"matmul": 3, "gemv": 2, "triangle": 2, "choose": 1}
    for function, depth in wanted.items():
        found, address = deepest(functions[function])
        expect(found == depth, f"{level}: {function} has {found} nested loops, not {depth}")
        profile.sample([(str(program), main + 1), (str(program), address)], {0: 7},
                       m.reason("DATACENTRIC_Unknown_NoBlock"))
    profile.write(scratch / f"measured{level}")
    database, xml = scratch / f"database{level}", scratch / f"xml{level}"
    run(BUILD / "hpcprof", "-q", "-o", database, "--xml", xml, scratch / f"measured{level}")
    run(sys.executable, SOURCE / "tests" / "lib" / "check-v4.py", "--time", database)
    run(sys.executable, SOURCE / "tests" / "lib" / "check-database.py", "--time", xml)
    nodes = json.loads(run(BUILD / "hpcquery", "tree", "--json", database))["nodes"]
    matmul, triangle = line_of("KERNEL void matmul"), line_of("KERNEL double triangle")
    loops = {
        "matmul": [("loop", line_of(f"loop {name} ", matmul)) for name in ("A", "A.B", "A.B.C")],
        "gemv": [("loop", line_of("y[i] = dot(") - 1), "dot",
                 ("loop", line_of("loop dot"))],
        "triangle": [("loop", line_of(f"loop {name} ", triangle)) for name in ("A", "A.B")],
        "choose": [("loop", line_of("loop A ", line_of("KERNEL void choose")))],
    }
    for function, expected in loops.items():
        expect(chain(nodes, function) == expected, f"{level}: below {function}: {chain(nodes, function)}, not {expected}")
    text = run(BUILD / "hpcquery", "tree", database)
    expect(f"loop at {KERNELS.name}:{loops['matmul'][2][1]}" in text, f"{level}: no loop in the text:\n{text}")
    tree = ElementTree.parse(xml / "experiment.xml")
    inner = [e for e in tree.iter("L") if e.get("l") == str(loops["matmul"][2][1])]
    expect(len(inner) == 2 and all(loop.find("S") is not None for loop in inner), f"{level}: matmul's inner loop in experiment.xml")


def main():
    if toolchain.machine() != "x86_64":
        print("SKIP: loops are found in code for x86-64")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        for level in ("-O0", "-O2", "-O3"):
            check_level(pathlib.Path(name), level)
    for sentence in failures:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
