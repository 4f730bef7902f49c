#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Memcheck and heaptrack find the same leaks in the same program, path by path: blocks and bytes, small ones included;
# and DHAT the same blocks and bytes in all.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3 valgrind
unset DEBUGINFOD_URLS
cd "$scratch"
$CC -O1 -g -I"$srcdir/src" "$srcdir/tests/e2e/leaks.c" -o leaks -lpthread

DATACENTRIC_MIN_BYTES=1 expect_status 0 "$builddir/hpcrun" -e MEMLEAK -o m ./leaks exit
expect_status 0 "$builddir/hpcprof" -o db m
expect_status 0 "$builddir/hpcquery" leaks --all --json db
# Ours, without what others do not know or see otherwise: mappings, blocks of pools, memory of the thread library.
python3 - out >ours.json <<'PYTHON'
import json, sys
rows = []
for row in json.load(open(sys.argv[1], encoding="utf-8"))["paths"]:
    path = [[f["function"], f["line"]] for f in row["path"]]
    if row["class"] == "heap" and path[-1][0] == "main" and not any("pthread_create" in f for f, _ in path) and \
            not (path[0][0] == "hand_out" and row["variable"] != "slab"):
        rows.append([path] + [row[k] for k in ("live_blocks", "live_bytes", "allocated_blocks", "allocated_bytes")])
json.dump(rows, sys.stdout)
PYTHON

if valgrind --leak-check=full --show-leak-kinds=all --xml=yes --xml-file=memcheck.xml ./leaks exit >/dev/null 2>&1; then
    python3 - <<'PYTHON' || fail "memcheck finds other leaks"
import collections, json, xml.etree.ElementTree as ET
ours, theirs = (collections.defaultdict(lambda: (0, 0)) for _ in range(2))
def add(sums, path, n_blocks, n_bytes):
    key = tuple(tuple(frame) for frame in path)
    sums[key] = sums[key][0] + n_blocks, sums[key][1] + n_bytes
for path, n_blocks, n_bytes, *_ in json.load(open("ours.json", encoding="utf-8")):
    if n_blocks:
        add(ours, path, n_blocks, n_bytes)
for error in ET.parse("memcheck.xml").getroot().iter("error"):
    what = error.find("xwhat")
    path = [(f.findtext("fn"), int(f.findtext("line") or 0)) for f in error.find("stack")][1:]
    if what is not None and path[-1][0] == "main" and "pthread_create" not in str(path):
        add(theirs, path, int(what.findtext("leakedblocks")), int(what.findtext("leakedbytes")))
assert len(theirs) == 6 and ours == theirs, f"ours {dict(ours)}\nmemcheck {dict(theirs)}"
print(f"memcheck: the same {len(theirs)} paths, {sum(n for n, _ in theirs.values())} blocks, "
      f"{sum(n for _, n in theirs.values())} bytes")
PYTHON
else
    skip_part "memcheck does not run the program here"
fi

if valgrind --tool=dhat --dhat-out-file=dhat.json ./leaks exit >/dev/null 2>&1; then
    python3 - <<'PYTHON' || fail "DHAT counts other blocks"
import json
data = json.load(open("dhat.json", encoding="utf-8"))
points = [p for p in data["pps"] if any(": main (" in data["ftbl"][i] for i in p["fs"])
          and not any("pthread_create" in data["ftbl"][i] for i in p["fs"])]
theirs = sum(p["tbk"] for p in points), sum(p["tb"] for p in points)
rows = json.load(open("ours.json", encoding="utf-8"))
ours = sum(r[3] for r in rows), sum(r[4] for r in rows)
assert ours == theirs, f"ours {ours}, DHAT {theirs}"
print(f"DHAT: the same {theirs[0]} blocks, {theirs[1]} bytes in all")
PYTHON
else
    skip_part "DHAT does not run the program here"
fi

# heaptrack_print rounds: 8.39M, 202.00K; and counts calls, not the blocks that are left.
if command -v heaptrack >/dev/null && command -v heaptrack_print >/dev/null; then
    expect_status 0 heaptrack -o heap ./leaks exit
    heaptrack_print -l 1 -p 0 -a 0 -T 0 -f "$(echo heap.*)" >heaptrack.txt 2>/dev/null || fail "heaptrack_print fails"
    python3 - <<'PYTHON' || fail "heaptrack finds other leaks"
import json, re
text = open("heaptrack.txt", encoding="utf-8").read()
theirs = {(f, n, int(calls)) for n, calls, f in
          re.findall(r"^(\S+) leaked over (\d+) calls from\n(\w+)\n\s+at \S*leaks\.c:", text, re.M)}
def rounded(n):
    return f"{n / 1e6:.2f}M" if n >= 1e6 else f"{n / 1e3:.2f}K" if n >= 1e3 else f"{n}B"
ours = {(path[0][0], rounded(n_bytes), n_all)
        for path, n_blocks, n_bytes, n_all, _ in json.load(open("ours.json", encoding="utf-8")) if n_blocks}
assert len(theirs) == 6 and ours == theirs, f"ours {ours}\nheaptrack {theirs}"
print("heaptrack: the same 6 paths")
PYTHON
else
    skip_part "heaptrack is not installed"
fi
finish
