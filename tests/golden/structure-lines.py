# SPDX-License-Identifier: BSD-3-Clause
"""hpcstruct against addr2line -i on 10,000 random addresses of a large program: the same lines, the same inlined calls.
The program is Debian's python3.11-dbg where it is installed, else hpcprof as built here; another one may be named as an
argument. Differences that a rule explains are counted under it:
  line 0        addr2line says "?" or line 0 where the compiler gave none; hpcstruct gives the line of the code before
  llvm agrees   llvm-symbolizer, asked where the two differ, says what hpcstruct does. (addr2line of binutils 2.40 names
                the file of the unit, not that of the line table, for functions that are written in a header.)
  no symbol     the same lines, but code without symbol: addr2line names the last symbol before it, llvm-symbolizer none
  label         the same line of assembly: addr2line names the last label, hpcstruct the function around it
  other file    the same, but only the file differs, and llvm-symbolizer is not installed
"""
import bisect
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

TOOL = pathlib.Path(os.environ["LOCUS_BUILDDIR"]) / "hpcstruct"
N_ADDRESSES = 10_000
RANGE = re.compile(r"\[0x([0-9a-f]+)-0x([0-9a-f]+)\)")


def program():
    if len(sys.argv) > 1:
        return sys.argv[1]
    large = "/usr/bin/python3.11d"
    if os.path.exists(large):
        return large
    built = TOOL.parent / "hpcprof"
    return str(built.parent / ".libs" / "hpcprof") if (built.parent / ".libs" / "hpcprof").exists() else str(built)


def spans(path):
    """[(start, end, chain)] sorted; chain: innermost first, (function, file, line)."""
    text = subprocess.run([TOOL, "--nocache", "-o", "-", path], capture_output=True, check=True).stdout
    out = []

    def walk(element, file, chain):
        for child in element:
            if child.tag in ("S", "C"):
                here = [(chain[0][0], file, int(child.get("l")))] + chain[1:]
                out.extend((int(a, 16), int(b, 16), here) for a, b in RANGE.findall(child.get("v")))
            elif child.tag == "L":
                walk(child, file, chain)
            elif child.tag == "A":
                inner = [c for c in child if c.tag == "A"]
                if inner and inner[0].get("n"):
                    called = [(chain[0][0], child.get("f"), int(child.get("l")))] + chain[1:]
                    walk(inner[0], inner[0].get("f"), [(inner[0].get("ln") or inner[0].get("n"), None, 0)] + called)
                else:
                    walk(child, child.get("f"), chain)

    for file in ElementTree.fromstring(text).iter("F"):
        for function in file.iter("P"):
            walk(function, file.get("n"), [(function.get("ln") or function.get("n"), None, 0)])
    return sorted(out, key=lambda span: span[:2])


def oracle(path, addresses):
    """The chains of addr2line, in the form of spans()."""
    # an address of its own as a mark between the answers
    text = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", path], input="\n".join(map(hex, addresses)),
                          capture_output=True, text=True, check=True).stdout.splitlines()
    chains, i = [], 0
    while i < len(text):
        if text[i].startswith("0x"):
            chains.append([])
            i += 1
            continue
        file, line = re.match(r"(.*):(\d+|\?)", text[i + 1]).groups()
        chains[-1].append((text[i], file, int(line) if line != "?" else 0))
        i += 2
    return chains


def same_file(a, b):
    """addr2line keeps "." and ".." in paths; both may be relative to the directory of the build."""
    return os.path.normpath(a or "??").split("/")[-2:] == os.path.normpath(b or "??").split("/")[-2:] or \
        os.path.basename(a or "") == os.path.basename(b or "")


def second_oracle(path, addresses):
    """The chains of llvm-symbolizer, in the form of spans(); an empty list when it is not there."""
    if not shutil.which("llvm-symbolizer") or not addresses:
        return []
    text = subprocess.run(["llvm-symbolizer", "--inlines", "--no-demangle", "--obj=" + path],
                          input="\n".join(map(hex, addresses)) + "\n", capture_output=True, text=True, check=True).stdout
    chains = []
    for part in text.strip("\n").split("\n\n"):
        lines = part.split("\n")
        chains.append([(f, *re.match(r"(.*):(\d+):\d+$", where).groups()) for f, where in zip(lines[::2], lines[1::2])])
    return [[(f, file, int(line)) for f, file, line in chain] for chain in chains]


def same(ours, theirs, with_file=True):
    return len(ours) == len(theirs) and all(
        o[2] == t[2] and (same_file(o[1], t[1]) or not with_file) and o[0].split(".")[0] == t[0].split(".")[0]
        for o, t in zip(ours, theirs))


def sized_symbols(path):
    rows = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=False).stdout.splitlines()
    return {row.split()[3] for row in rows if len(row.split()) == 4}


def judge(ours, theirs, seconds, sized):
    """None when both say the same, else the rule that explains the difference, else "unexplained"."""
    if same(ours, theirs):
        return None
    if len(ours) == len(theirs) and theirs[0][2] == 0 and \
            all(o[2] == t[2] for o, t in zip(ours[1:], theirs[1:])):
        return "line 0"
    if ours[-1][0].startswith("func_0x") and seconds and seconds[-1][0] == "??" and \
            same([("", *o[1:]) for o in ours], [("", *t[1:]) for t in theirs]):
        return "no symbol"
    if len(ours) == 1 and theirs[0][0] not in sized and ours[0][0] in sized and \
            same([("", *ours[0][1:])], [("", *t[1:]) for t in theirs]):
        return "label"
    if seconds is None and same(ours, theirs, False):
        return "other file"
    return "llvm agrees" if seconds and same(ours, seconds) else "unexplained"


def main():
    if not shutil.which("addr2line"):
        print("SKIP: addr2line is missing")
        sys.exit(77)
    path = program()
    known = spans(path)
    starts = [span[0] for span in known]
    generator = random.Random(11)
    debugged = [s for s in known if s[2][0][1] and not s[2][0][1].startswith("[")]
    total = sum(end - start for start, end, _ in debugged)
    offsets = sorted(generator.randrange(total) for _ in range(N_ADDRESSES))
    addresses, at = [], 0
    span = iter(debugged)
    start, end, _ = next(span)
    for offset in offsets:
        while offset >= at + end - start:
            at += end - start
            start, end, _ = next(span)
        addresses.append(start + offset - at)
    results, examples = collections.Counter(), []
    deep = 0
    answers = [(a, known[bisect.bisect_right(starts, a) - 1][2], theirs)
               for a, theirs in zip(addresses, oracle(path, addresses))]
    differing = [a for a, ours, theirs in answers if not same(ours, theirs)]
    seconds = dict(zip(differing, second_oracle(path, differing)))
    sized = sized_symbols(path)
    for address, ours, theirs in answers:
        verdict = judge(ours, theirs, seconds.get(address), sized)
        results[verdict or "same"] += 1
        deep += len(theirs) > 1
        if verdict == "unexplained" and len(examples) < 5:
            examples.append(f"{address:#x}: {ours}, addr2line: {theirs}, llvm-symbolizer: {seconds.get(address)}")
    print(f"{path}: {len(addresses)} addresses, {deep} in inlined code: {dict(results)}")
    print("\n".join(examples))
    sys.exit(results["unexplained"] > 0 or results["same"] < 0.9 * len(addresses))


main()
