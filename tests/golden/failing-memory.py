#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hpcquery without memory: of the calls for memory, and of those on files, that a query makes one fails, each in turn (a
sample of them where there are many). The query then prints what it prints otherwise, or nothing on its output and one
line of error; it never ends by a signal. What libraries read of a program's debug information may be less. `failing-memory.py N`: N calls of each kind and query, instead of 40."""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(os.environ["LOCUS_SRCDIR"]), pathlib.Path(os.environ["LOCUS_BUILDDIR"])
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import bundle  # noqa: E402
import measurement as m  # noqa: E402
import v4  # noqa: E402

N_CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 40 if os.environ.get("LOCUS_TEST_FULL") else 14
QUERIES = """
table|callgrind.out
csv|caliper.json
dot|gprof.dot
json|literal.py.txt
folded|sums.xml
pprof|xml-db
chrome|v4
literal|v4
flamegraph|v4
speedscope|v4
callgrind|v4
diff|v4|xml-db
query|[{"name": "m.*"}, "*"]|v4
filter|name =~ "w" and (any(time > 1) or profiles(time > 2) >= 1 or percentile(time, 50) > 2)|:|csv|literal.json
callers|:|csv|v4
callgraph|collapsed|:|csv|callgrind.out
hierarchy|module file function|:|csv|v4
union|:|csv|v4|literal.json
divide|:|csv|v4|xml-db
aggregate|rank|p50|:|csv|v4
imbalance|time|v4
flat|:|csv|callgrind.out
--derive|a=2*time|--profiles|rank>=0|inclusive|:|csv|v4
vars|--fields|ours
functions|ours
diff|--json|ours|twice
diff|--by|variable|ours|twice
lines|--csv|ours
annotate|--instructions|--all|fill|insn
tree|--json|ours
leaks|ours
vars|--html|ours
vars|--by|package|--csv|ours
vars|--json|--paths|ours
vars|--csv|--derive|a=2*time|ours
types|--by|function|--json|ours
advice|--json|ours
cpus|ours
cpus|--csv|ours
cpus|--json|--by|node|--variable|grid|ours
"""
problems = []


def make_inputs(scratch):
    """The inputs of the readers' test, and two databases of ours."""
    inputs = bundle.golden("readers") / "inputs"
    for path in inputs.iterdir():
        (scratch / path.name).symlink_to(path)
    v4.write_small(scratch / "v4")
    start = [("/nowhere/app", 0x1010), ("/nowhere/app", 0x2020)]
    variables = [m.heap(start + [("/nowhere/app", 0x3030)], size=1 << 20), m.reason("DATACENTRIC_No_Compute"),
                 m.by_address("DATACENTRIC_Static", "/nowhere/app", 0x404040, "static", "grid", 8192, [[0, 0, 3], [2, 0, 4]])]
    for name, factor in (("ours", 1), ("twice", 2)):
        for thread in (0, 1):
            profile = m.Profile("app", [("EADDR (usec)", m.INT, 1000)], thread=thread, pid=100)
            profile.topology = "topology.xml"
            for i, variable in enumerate(variables):
                profile.sample(start + [("/nowhere/app", 0x5000 + 16 * i)], {0: factor * (10 * i + thread + 1)}, variable)
            profile.write(scratch / f"measured-{name}")
        (scratch / f"measured-{name}" / "topology.xml").write_text(m.TWO_NODES, encoding="utf-8")
        subprocess.run([BUILD / "hpcprof", "-q", "-o", name, f"measured-{name}"], cwd=scratch, check=True)
    make_instructions(scratch)


def make_instructions(scratch):
    """A database with instructions of a small program."""
    (scratch / "fill.c").write_text("char a[9];\nint fill(int n) { while (n-- > 0) a[n] = 1; return n; }\n"
                                    "int main(void) { return fill(9); }\n", encoding="ascii")
    subprocess.run(["gcc", "-g", "-o", "fill", "fill.c"], cwd=scratch, check=True)
    symbols = subprocess.run(["nm", "fill"], cwd=scratch, capture_output=True, check=True, text=True).stdout
    start = int(re.search(r"^(\w+) T fill$", symbols, re.M)[1], 16)
    profile = m.Profile("fill", [("EADDR (usec)", m.INT, 1000)])
    for address in range(start, start + 12):
        profile.add(profile.path(profile.root, [(str(scratch / "fill"), address)], m.LEAF), {0: 1})
    profile.write(scratch / "filled", side=False)
    subprocess.run([BUILD / "hpcprof", "-q", "--instructions", "-o", "insn", "filled"], cwd=scratch, check=True)


def run(scratch, query, call=None):
    """The result, and whether the call was reached."""
    done = scratch / "happened"
    done.unlink(missing_ok=True)
    more = {"NTH_CALL": call, "NTH_DONE": str(done), "LD_PRELOAD": str(scratch / "nth-call.so")} if call else {}
    result = subprocess.run([BUILD / "hpcquery", *query], cwd=scratch, env={**os.environ, **more}, capture_output=True)
    return result, done.exists()


def check(scratch, query, call, whole):
    """False when the query makes fewer calls."""
    result, reached = run(scratch, query, call)
    words = result.stderr.decode(errors="replace")
    is_less = "--instructions" in query and result.stdout
    if result.returncode == whole.returncode and (result.stdout == whole.stdout or is_less):
        return reached
    if result.returncode != 1 or result.stdout or words.count("\n") != 1:
        problems.append(f"{' '.join(query)}, {call}: status {result.returncode}, {len(result.stdout)} bytes of "
                        f"{len(whole.stdout)} printed: {words[:300]}")
    elif call.startswith("memory") and "memory" not in words:
        problems.append(f"{' '.join(query)}, {call}: without memory it says: {words[:300]}")
    return reached


def sweep(scratch, query, kind, rng):
    whole, high = run(scratch, query)[0], 16
    if whole.returncode not in (0, 3) or not whole.stdout:
        problems.append(f"{' '.join(query)}: status {whole.returncode}: {whole.stderr.decode(errors='replace')}")
        return
    while high < 1 << 20 and run(scratch, query, f"{kind}:{high}:fail")[1]:
        high *= 2
    for n in sorted(rng.sample(range(1, high + 1), min(N_CALLS, high))):
        check(scratch, query, f"{kind}:{n}:fail", whole)


def main():
    if os.environ.get("LOCUS_SANITIZER"):
        print("SKIP: sanitizers have an allocator of their own")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="locus-test.") as name:
        scratch, rng = pathlib.Path(name), random.Random(5)
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", scratch / "nth-call.so", SOURCE / "tests/lib/nth-call.c"],
                       check=True)
        make_inputs(scratch)
        for query in QUERIES.split("\n"):
            for kind in ("memory", "file") if query else ():
                sweep(scratch, query.split("|"), kind, rng)
    for problem in problems[:20]:
        print("FAIL:", problem)
    sys.exit(1 if problems else 0)


main()
