#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# needs: memfd rings
"""hpcprof --instructions and hpcquery annotate --instructions: a store that takes 2000 page faults and a load that waits
stand at their addresses, with what they touched, on the command line and in a page; addresses and texts are those of objdump; a module that is missing or
another build is named."""
import csv
import io
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ.get("LOCUS_SRCDIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LOCUS_BUILDDIR", "."))
sys.path.insert(0, str(SOURCE / "tests" / "lib"))
import browser  # noqa: E402
import measurement as m  # noqa: E402
import viewer  # noqa: E402
from measurement import expect, failures, run  # noqa: E402

PAGES = 2000
TOUCH = r"""
#include <sys/mman.h>
static char *pages;
static inline void put(char *at)
{
    __asm__ volatile(".globl hot_store\nhot_store: movb $1, (%0)" : : "r"(at) : "memory");
}
__attribute__((noinline)) static void fill(long n)
{
    for (long i = 0; i < n; i++)
        put(pages + 4096 * i);
}
int main(void)
{
    pages = mmap(0, 4096 * 2000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 4096 * 2000, MADV_NOHUGEPAGE);
    fill(2000);
    return pages[1];
}
"""
CHASE = r"""
#include <stdlib.h>
#define N (1u << 21)
static void **chain;
__attribute__((noinline)) static void *chase(void **at, long n)
{
    while (n-- > 0)
        __asm__ volatile(".globl hot_load\nhot_load: mov (%0), %0" : "+r"(at) : : "memory");
    return at;
}
int main(void)
{
    unsigned at = 0;
    chain = malloc(N * sizeof *chain);
    for (unsigned i = 0; i < N; i++) { /* a walk through all of a power of two, in no order */
        unsigned next = at * 1664525u + 1013904223u & N - 1;
        chain[at] = &chain[next];
        at = next;
    }
    return chase(chain, 12000000) == 0;
}
"""


CALLS = r"""
#include <stdio.h>
__attribute__((noinline)) int one(int n) { return n + puts("one"); }
__attribute__((noinline)) int two(int n) { return n + puts("two"); }
static inline __attribute__((always_inline)) int both(int n)
{
    return one(n) + two(n) + one(n + 1);
}
__attribute__((noinline)) int all(int n, int (*volatile by_address)(int))
{
    return by_address(n) + one(n) + both(n) + both(n + 2) - by_address(n);
}
int main(int n, char **words)
{
    (void)words;
    return all(n, two);
}
"""


def annotate(database, subject, *options):
    text = run("hpcquery", "annotate", "--instructions", "--csv", *options, subject, database).stdout
    return list(csv.DictReader(io.StringIO(text)))


def compile_c(path, text, *options):
    path.with_suffix(".c").write_text(text, encoding="ascii")
    subprocess.run(["gcc", "-g", "-O2", "-Wl,--build-id", *options, "-o", path, path.with_suffix(".c")], check=True)


def objdump(program):
    """{address: text}."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, check=True, text=True).stdout
    return {int(address, 16): what for address, what in re.findall(r"^ +([0-9a-f]+):\t(.*)$", text, re.M)}


def plain(text):
    """An instruction without what the two write differently: names, padding, 0x before targets, zero displacements,
    the shift by one, the 64-bit constant, and instructions that do nothing."""
    text = re.sub(r"\s+", " ", re.sub(r"\s*(<.*>|#.*)$", "", text)).strip()
    if re.match(r"(data16 |cs |repz )*(nop[wl]?|xchg %ax,%ax)\b", text):
        return "nop"
    text = re.sub(r"^(j\w+|call) (?:0x)?([0-9a-f]+)$", r"\1 \2", text)
    text = re.sub(r"^(sh[lr]|sa[lr]|ro[lr])([bwlq]?) \$0x1,", r"\1\2 ", text)
    return re.sub(r"^movabs ", "mov ", re.sub(r"\b0x0\(", "(", text))


def check_texts(rows, program, least):
    """Every instruction is one of objdump's, with its text, and none of a function is missing."""
    known = objdump(program)
    wrong = [(r["address"], r["instruction"], known.get(int(r["address"], 16))) for r in rows
             if plain(r["instruction"]) != plain(known.get(int(r["address"], 16), "none"))]
    expect(not wrong and len(rows) >= least, f"{program.name}: {len(rows)} instructions; not as objdump has them: {wrong[:5]}")
    places = sorted(known)
    for first, last in {(min(f), max(f)) for f in
                        ([int(r["address"], 16) for r in rows if r["function"] == name] for name in {r["function"] for r in rows})}:
        missing = [hex(a) for a in places if first <= a <= last and hex(a) not in {r["address"] for r in rows}]
        expect(not missing, f"{program.name}: {hex(first)} to {hex(last)} without {missing[:5]}")


def symbol(program, name):
    text = subprocess.run(["nm", program], capture_output=True, check=True, text=True).stdout
    return int(re.search(rf"^(\w+) \w {name}$", text, re.M)[1], 16)


def check_faults(scratch):
    """Each of 2000 pages is touched first by one store: 2000 faults at its address, in one variable."""
    program, database = scratch / "touch", scratch / "touch.db"
    compile_c(program, TOUCH)
    run("hpcrun", "-e", "FAULTS@1", "-o", scratch / "touch.m", program)
    run("hpcprof", "-q", "--instructions", "-o", database, scratch / "touch.m")
    run("hpcprof", "-q", "-o", scratch / "touch-plain.db", scratch / "touch.m")
    store = hex(symbol(program, "hot_store"))
    for subject in ("fill", "put", "touch.c", "touch.c:put"):
        rows = [r for r in annotate(database, subject, "-M", "FAULTS") if r["address"] == store]
        found = [(r["function"], float(r["own"]), r["data"]) for r in rows]
        expect(found == [("fill", PAGES, f"pages {PAGES}")], f"faults of the store in {subject}: {found}")
    whole, part = (annotate(database, subject, "-M", "FAULTS", "--all") for subject in ("fill", "put"))
    expect([r["address"] for r in part] == [store] and len(whole) > 5, f"of put: {part}; of fill: {len(whole)}")
    check_texts(whole, program, 6)
    known = json.loads(run("hpcquery", "annotate", "--instructions", "--json", "-M", "FAULTS", "put", database).stdout)
    expect([(i["address"], i["own"]) for i in known["instructions"]] == [(store, PAGES)], f"as JSON: {known}")
    text = run("hpcquery", "annotate", "--instructions", "-M", "FAULTS", "fill", database).stdout
    expect(re.search(rf"^ *\d+\.\d %  +{store[2:]} +movb +\$0x1,\(%\w+\) +100 % pages$", text, re.M), f"as text: {text}")
    expect("put(pages + 4096 * i);" in text and "# pages" in text, f"source and names: {text}")
    by_line = [r for r in annotate(scratch / "touch-plain.db", "fill", "-M", "FAULTS") if r["address"] == store]
    expect([(r["own"], r["line_own"]) for r in by_line] == [("", str(PAGES))], f"by line: {by_line}")
    text = run("hpcquery", "annotate", "--instructions", "-M", "FAULTS", "put", scratch / "touch-plain.db").stdout
    expect("known by line only" in text and store[2:] in text, f"by line: {text}")
    check_without_lines(scratch, program)
    check_refused(scratch, program, database)


def check_without_lines(scratch, program):
    """Without debug information and costs of instructions, a function's own share is known, and no more."""
    bare = scratch / "bare" / "touch"
    bare.parent.mkdir()
    subprocess.run(["objcopy", "--strip-debug", program, bare], check=True)
    run("hpcrun", "-e", "FAULTS@1", "-o", scratch / "bare.m", bare)
    run("hpcprof", "-q", "-o", scratch / "bare.db", scratch / "bare.m")
    functions = csv.DictReader(io.StringIO(run("hpcquery", "functions", "--csv", "-M", "FAULTS", scratch / "bare.db").stdout))
    name, own = next((r["function"], float(r["own_share"])) for r in functions if r["function"].startswith("fill"))
    text = run("hpcquery", "annotate", "--instructions", "-M", "FAULTS", name, scratch / "bare.db").stdout
    share = float(re.search(r"^share +([\d.]+) % of FAULTS, known by function only", text, re.M)[1])
    expect(abs(share - own) < 0.1 and share > 10 and hex(symbol(bare, "hot_store"))[2:] in text, f"without lines: {own} %: {text}")
    rows = annotate(scratch / "bare.db", name, "-M", "FAULTS")
    expect(len(rows) > 5 and not any(r["own"] or r["line_own"] for r in rows), f"without lines: {rows[:3]}")


def check_refused(scratch, program, database):
    """Machine code is that of the file which was measured, or none."""
    def refused(*words):
        result = run("hpcquery", "annotate", "--instructions", "-M", "FAULTS", "fill", database, status=1)
        expect(result.stderr.count("\n") == 1 and all(w in result.stderr for w in words) and not result.stdout, f"{words}: {result}")
    kept = program.rename(scratch / "kept")
    refused(str(program), "not readable")
    compile_c(program, TOUCH, "-DOTHER", "-O1")
    refused(str(program), "another build")
    program.write_bytes(kept.read_bytes()[:4096])
    refused(str(program))
    program.write_bytes(b"none")
    refused(str(program))
    kept.rename(program)
    expect(annotate(database, "fill", "-M", "FAULTS"), "the module is back")
    for words in (("functions",), ("vars",), ("annotate", "fill", "--by", "thread")):
        run("hpcquery", *words, "--instructions", database, status=2)
    result = run("hpcprof", "-q", "--instructions", "-o", scratch / "x", scratch / "none", status=1)
    expect(result.stderr.count("\n") == 1, f"no measurement: {result.stderr}")


def check_time(scratch):
    """A load that waits: its time is at the instruction behind it, on the variable that it reads."""
    program, database = scratch / "chase", scratch / "chase.db"
    compile_c(program, CHASE)
    run("hpcrun", "-o", scratch / "chase.m", program)
    run("hpcprof", "-q", "--instructions", "-o", database, scratch / "chase.m")
    rows = annotate(database, "chase")
    load, total = symbol(program, "hot_load"), sum(float(r["own"]) for r in rows)
    behind = min(a for a in objdump(program) if a > load)
    near = sum(float(r["own"]) for r in rows if int(r["address"], 16) in (load, behind))
    on_chain = sum(float(re.search(r"chain ([\d.]+)", r["data"])[1]) for r in rows if "chain " in r["data"])
    expect(near > 0.8 * total > 0, f"{near} of {total} at {hex(load)} and {hex(behind)}: {rows}")
    expect(on_chain > 0.8 * total, f"{on_chain} of {total} on chain: {rows}")
    functions = csv.DictReader(io.StringIO(run("hpcquery", "functions", "--csv", database).stdout))
    whole = next(float(r["own"]) for r in functions if r["function"] == "chase")
    expect(abs(whole - total) <= 1e-9 * whole, f"the instructions have {total}, the function {whole}")
    check_texts(annotate(database, "chase", "--all"), program, 5)
    check_page(scratch, database)


def check_page(scratch, database):
    """A page shows the machine code beside the source, with these numbers; and whatever is done, no view has others, of all threads or of some."""
    try:
        page = viewer.Viewer(scratch / "profile")
    except browser.Failure as failure:
        print("SKIP (part):", failure)
        return
    run("hpcviewer", "-o", scratch / "chase.html", database)
    with subprocess.Popen([BUILD / "hpcviewer", "--no-browser", database], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as served:
        address = next(line for line in served.stdout if line.startswith("http:")).strip()
        for case, home, choices in (("a file", f"file://{scratch}/chase.html", ()), ("a server", address, ["thread = 0", "process = 0"])):
            numbers = viewer.Numbers(BUILD / "hpcquery", database)
            page.open(home)
            for condition in ("", *choices):
                page.value(f"location.hash = 'active=function:chase&profiles={condition}&layout=code:annotate,source:machine'; 0")
                page.settle()
                expect(page.are_states_one() and not (wrong := numbers.compare(page)), f"{case}, {condition or 'all'}: {wrong[:3]}")
            expect(numbers.counts.get("machine code", 0) > 0 and numbers.counts.get("annotate", 0) >= 5, f"{case}: {numbers.counts}")
            failures.extend(viewer.play(page, numbers, random.Random(3), 60, choices))
        served.terminate()
    page.close()


def check_kernels(scratch):
    """All instructions of many functions, sampled once at every third byte."""
    program = scratch / "kernels"
    subprocess.run(["gcc", "-O3", "-g", "-march=x86-64-v3", "-o", program, SOURCE / "tests/golden/structure-kernels.c"], check=True)
    profile = m.Profile("kernels", [("EADDR (usec)", m.INT, 1000)])
    text = subprocess.run(["nm", "-S", program], capture_output=True, check=True, text=True).stdout
    for start, size in re.findall(r"^(\w+) (\w+) [Tt] ", text, re.M):
        for address in range(int(start, 16), int(start, 16) + int(size, 16), 3):
            profile.add(profile.path(profile.root, [(str(program), address)], m.LEAF), {0: 1})
    profile.write(scratch / "kernels.m", side=False)
    run("hpcprof", "-q", "--instructions", "-o", scratch / "kernels.db", scratch / "kernels.m")
    rows = annotate(scratch / "kernels.db", "structure-kernels.c", "--all")
    known = objdump(program)
    wrong = [(r["instruction"], known.get(int(r["address"], 16))) for r in rows
             if plain(r["instruction"]) != plain(known.get(int(r["address"], 16), "none"))]
    expect(len(rows) > 500 and not wrong, f"{len(rows)} instructions of kernels, {len(wrong)} not as objdump has them: {wrong[:8]}")
    own = sum(float(r["own"]) for r in rows)
    at_starts = sum(1000 for a in known if any(r["address"] == hex(a) and float(r["own"]) for r in rows))
    expect(own == at_starts > 0, f"{own} at instructions, {at_starts} sampled")


def check_calls(scratch):
    """Calls stand at the instructions that make them, also where several are on one line, and lead to where the callee begins."""
    program = scratch / "calls"
    compile_c(program, CALLS)
    known = objdump(program)
    names = {symbol(program, name): name for name in ("one", "two", "all")}
    places = sorted(known)
    begin, end = symbol(program, "all"), min(a for a in map(lambda n: symbol(program, n), ("main", "_fini", "one", "two")) if a > symbol(program, "all"))
    calls = {a: int(known_target[1], 16) if (known_target := re.match(r"call +(?:0x)?([0-9a-f]+)", known[a])) else symbol(program, "two")
             for a in places if known[a].startswith("call") and begin <= a < end}
    expect(len(calls) >= 7 and set(calls.values()) == {symbol(program, "one"), symbol(program, "two")}, f"calls of all: {calls}")
    profile, values = m.Profile("calls", [("EADDR (usec)", m.INT, 1000)]), {}
    for i, (at, callee) in enumerate(sorted(calls.items())):
        behind = places[places.index(at) + 1]
        profile.add(profile.path(profile.root, [(str(program), behind), (str(program), callee)], m.LEAF), {0: i + 1})
        values[at] = (names[callee], callee, (i + 1) * 1000000)
    profile.write(scratch / "calls.m", side=False)
    run("hpcprof", "-q", "--instructions", "-o", scratch / "calls.db", scratch / "calls.m")
    text = run("hpcquery", "export", "callgrind", scratch / "calls.db").stdout
    function, function_names, found, inlined = None, {}, {}, {}
    for key, number, name, target, at, cost in re.findall(
            r"^(c?fn)=\((\d+)\)(?: (.*))?(?:\ncalls=\d+ (0x[0-9a-f]+) \d+\n(0x[0-9a-f]+) \d+ (\d+))?", text, re.M):
        function_names.setdefault(number, name)
        if key == "fn":
            function = function_names[number]
        elif function_names[number] == "both":
            inlined[int(at, 16)] = int(cost)
        elif function in ("all", "both"):
            found[int(at, 16)] = (function_names[number], int(target, 16), int(cost))
    expect(found == values, f"calls at {found}, not {values}: {text}")
    expect(inlined and set(inlined) <= set(calls), f"inlined code is at {inlined}")
    plain_text = run("hpcprof", "-q", "-o", scratch / "plain.db", scratch / "calls.m") and \
        run("hpcquery", "export", "callgrind", scratch / "plain.db").stdout
    expect("positions: line\n" in plain_text and "0x" not in plain_text, f"without instructions: {plain_text}")


def main():
    if platform.machine() != "x86_64":
        print("SKIP: the programs are for x86-64")
        return 77
    with tempfile.TemporaryDirectory() as name:
        check_faults(pathlib.Path(name))
        check_time(pathlib.Path(name))
        check_kernels(pathlib.Path(name))
        check_calls(pathlib.Path(name))
    for sentence in failures:
        print("FAIL:", sentence)
    return 1 if failures else 0


sys.exit(main())
