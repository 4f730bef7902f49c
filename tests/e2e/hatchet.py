#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd
"""Hatchet, as its users have it, loads both forms of the databases of the programs whose answer is known, of four ranks
of MPI, and of 1000 profiles: the tree has every context, its functions and loops and their sums are those of the files
and the same in both forms, and its operations work.

Hatchet is no part of this tree and nothing here needs it otherwise: LOCUS_HATCHET_PYTHON names an interpreter that can
import it (default: python3); where there is none, this test is skipped."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ["LOCUS_SRCDIR"])
BUILD = pathlib.Path(os.environ["LOCUS_BUILDDIR"])
LIBRARY = SOURCE / "tests" / "lib"
PYTHON = os.environ.get("LOCUS_HATCHET_PYTHON", "python3")
KERNELS = BUILD / "tests" / "e2e" / "kernels"
PROGRAMS = ("chase", "containers", "fortran", "gather", "gups", "hash", "mapped", "matmul", "memops", "openmp", "stack",
            "statics", "stream", "stripped", "threads", "tls")
sys.path.insert(0, str(LIBRARY))
import v4  # noqa: E402

CAUSES = re.compile(r" (memory|execution|unverified)\b")

failures = []


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=300,
                            stdin=subprocess.DEVNULL, **options)
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {result.returncode}: {result.stdout}{result.stderr}")
    return result.stdout


def close(a, b, scale):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-9 * scale


def check_causes(name, meta, values, loaded):
    """What waits for memory, is execution, or is not verified: columns with the sums of the files, which are together
    those of the event in the data-centric tree."""
    data = next((identity for identity, _, entry in meta["entries"] if entry == "<datacentric>"), None)
    sums = {m: v for c, m, v in values if c == data}
    totals = {metric["name"]: sums.get(metric["instances"][-1][1], 0) for metric in meta["metrics"]}
    wanted = {metric: total for metric, total in totals.items() if CAUSES.search(metric)}
    for event in {CAUSES.sub("", metric) for metric in wanted}:
        parts = [total for metric, total in wanted.items() if CAUSES.sub("", metric) == event]
        expect(close(sum(parts), totals[event], totals[event]), f"{name}: {event} is {totals[event]}, its parts {parts}")
    for metric in wanted.keys() | loaded["causes"].keys():  # what is nowhere has no column
        total, found = wanted.get(metric, 0), loaded["causes"].get(metric, 0)
        expect(close(found, total, total + 1), f"{name}: {metric} is {found}, not {total}")


def check_v4(name, directory, loaded):
    """Nodes and roots are those of the files."""
    meta, profiles = v4.read(directory / "meta.db"), v4.read(directory / "profile.db")["profiles"]
    time = next(i for m in meta["metrics"] if m["name"] == "CPUTIME (sec)" for _, i in m["instances"][-1:])
    sums = {c: v for c, m, v in profiles[0]["values"] if m == time}
    n_contexts = len(meta["contexts"]) + len(meta["entries"])
    expect(loaded["n_nodes"] == n_contexts, f"{name}: {loaded['n_nodes']} nodes of {n_contexts} contexts")
    for identity, _, entry in meta["entries"]:
        found = loaded["roots"].get(entry, 0)
        expect(close(found, sums.get(identity, 0), found), f"{name}: {entry} has {found}, not {sums.get(identity)}")
    expect(len(loaded["roots"]) == len(meta["entries"]), f"{name}: roots {loaded['roots']}")
    check_causes(name, meta, profiles[0]["values"], loaded)


def check_xml(name, directory, loaded):
    document = ElementTree.parse(directory / "experiment.xml").getroot()
    names = {p.get("i"): p.get("n") for p in document.iter("Procedure")}
    data = document.find(".//SecCallPathProfileData")
    n_nodes = sum(1 for e in data.iter() if e.tag in ("PF", "L", "S") or (e.tag == "Pr" and names[e.get("n")]))
    expect(loaded["n_nodes"] == n_nodes, f"{name}: {loaded['n_nodes']} nodes of {n_nodes} elements")
    column = next(m.get("i") for m in document.iter("Metric") if m.get("n") == "CPUTIME (usec):Sum (I)")
    sums = {}
    for root in data.findall("PF"):
        value = sum(float(m.get("v")) for m in root.findall("M") if m.get("n") == column)
        sums[names[root.get("n")]] = sums.get(names[root.get("n")], 0) + value
    expect(sums.keys() == loaded["roots"].keys(), f"{name}: roots {loaded['roots'].keys()}, not {sums.keys()}")
    for root, value in sums.items():
        expect(close(loaded["roots"].get(root, 0), value, value), f"{name}: {root} has {loaded['roots'].get(root)}")


def check_same(name, one, other):
    for metric in one["causes"].keys() | other["causes"].keys():
        a, b = (loaded["causes"].get(metric, 0) for loaded in (one, other))
        expect(close(a, b, a + b), f"{name}: {metric} is {a} and {b}")
    check_same_paths(name, one, other)


def check_same_paths(name, one, other):
    """The functions and loops of both forms, and their sums, which the XML form has in microseconds."""
    trees = []
    for loaded, scale in ((one, 1), (other, 1e-6)):
        tree = {}
        for path, values in loaded["paths"]:
            path = tuple(path[1:] if path[:1] == ["main thread"] else path)
            old = tree.get(path, (0, 0))
            tree[path] = tuple(a + b * scale for a, b in zip(old, values))
        tree.pop((), None)
        trees.append(tree)
    expect(trees[0].keys() == trees[1].keys(), f"{name}: only in one form: {list(trees[0].keys() ^ trees[1].keys())[:4]}")
    whole = max((values[0] for values in trees[0].values()), default=0)
    expect(whole > 0, f"{name}: no time")
    for path in trees[0].keys() & trees[1].keys():
        for a, b in zip(trees[0][path], trees[1][path]):
            expect(close(a, b, whole), f"{name}: {' > '.join(path)}: {trees[0][path]} and {trees[1][path]}")


def check(name, measured, scratch):
    forms = [scratch / f"{name}.db", scratch / f"{name}.xml"]
    run(BUILD / "hpcprof", "-q", "-o", forms[0], "--xml", forms[1], measured)
    run(sys.executable, LIBRARY / "check-v4.py", "--time", forms[0])
    run(sys.executable, LIBRARY / "check-database.py", "--time", forms[1])
    loaded = [json.loads(line) for line in run(PYTHON, LIBRARY / "load-hatchet.py", *forms).splitlines()
              if line.startswith("{")]
    unread = loaded[0].get("unread")
    for form, found in zip(("version 4", "XML"), loaded):
        for problem in found.get("problems", ()):
            expect(False, f"{name}, {form}: {problem}")
    check_xml(name, forms[1], loaded[1])
    if unread:
        print(f"SKIP (part): {name}: {unread}; the XML form has {loaded[1]['n_nodes']} nodes, {len(loaded[1]['paths'])} paths")
    else:
        check_v4(name, forms[0], loaded[0])
        check_same(name, *loaded)
        print(f"{name}: {loaded[0]['n_nodes']} and {loaded[1]['n_nodes']} nodes, {len(loaded[0]['paths'])} paths")
    shutil.rmtree(forms[0])
    shutil.rmtree(forms[1])


def measure(command, measured, environment):
    subprocess.run([str(c) for c in command], env=environment, capture_output=True, timeout=120, check=False,
                   stdin=subprocess.DEVNULL)
    return any(measured.glob("*.hpcrun"))


def check_mpi(scratch, environment):
    if not shutil.which("mpicc.mpich"):
        print("SKIP (part): mpicc.mpich is not installed")
        return
    include, program = f"-I{SOURCE / 'tests' / 'e2e'}", SOURCE / "tests" / "e2e" / "programs" / "ranks.c"
    run("mpicc.mpich", "-O2", "-g", include, program, "-o", scratch / "ranks")
    command = ["mpiexec.mpich", "-n", 4, BUILD / "hpcrun", "-o", scratch / "mpi", scratch / "ranks", "0.5"]
    expect(measure(command, scratch / "mpi", environment), "four ranks could not be measured")
    check("mpi", scratch / "mpi", scratch)


def main():
    probe = subprocess.run([PYTHON, str(LIBRARY / "load-hatchet.py"), "--probe"], capture_output=True, text=True, check=False)
    if probe.returncode == 77:
        skip(f"{probe.stdout.strip()} (set LOCUS_HATCHET_PYTHON)")
    expect(probe.returncode == 0, probe.stderr)
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        environment = {**os.environ, "XDG_CACHE_HOME": str(scratch / "cache"), "OMP_NUM_THREADS": "2"}
        hpcrun = [BUILD / "hpcrun", "-o"]
        wanted = sys.argv[1:] or [*PROGRAMS, "mpi", "many"]
        for program in (p for p in PROGRAMS if p in wanted):
            if not (KERNELS / program).exists():
                print(f"SKIP (part): {program} has not been built")
            elif measure([*hpcrun, scratch / program, KERNELS / program], scratch / program, environment):
                check(program, scratch / program, scratch)
            else:
                expect(False, f"{program} could not be measured")
        if "mpi" in wanted:
            check_mpi(scratch, environment)
        if "many" in wanted:
            run(sys.executable, LIBRARY / "make-profiles.py", "--profiles", 1000, "--threads", 8, "--nodes", 300,
                "--metrics", 2, scratch / "many")
            check("many", scratch / "many", scratch)
    for sentence in failures[:40]:
        print("FAIL:", sentence)
    sys.exit(1 if failures else 0)


main()
