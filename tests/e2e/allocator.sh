#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The allocator's own time is no block: it is <allocator>, by the line that calls it, with advice when it is much. What it
# fills for the program is work on the block. Independent truth: in churn, libc has no other work. Blocks that only the
# allocator has touched are not lost: what keep makes is live, 20000 from each call.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
need python3 g++
cd "$scratch"
export DATACENTRIC_MIN_BYTES=64k # recording blocks one by one would be most of the time
g++ -O2 -g "$srcdir/tests/e2e/allocator-time.cc" -o allocator-time || {
    fail "allocator-time.cc does not build"
    finish
}

# measure WAY: tables to vars.csv, functions.csv and advice.json; the table for a terminal to text.
measure() {
    expect_status 0 "$builddir/hpcrun" -e EADDR@f1000 -o "$1.m" ./allocator-time "$1"
    expect_status 0 "$builddir/hpcprof" -q -o "$1.d" "$1.m"
    expect_status 0 "$builddir/hpcquery" vars --csv --top 0 "$1.d"
    cp out vars.csv
    expect_status 0 "$builddir/hpcquery" vars --json --top 0 "$1.d"
    cp out vars.json
    expect_status 0 "$builddir/hpcquery" vars --html --top 0 "$1.d"
    cp out page
    expect_status 0 "$builddir/hpcquery" functions --csv --top 0 "$1.d"
    cp out functions.csv
    expect_status 0 "$builddir/hpcquery" advice --json "$1.d"
    cp out advice.json
    expect_status 0 "$builddir/hpcquery" vars --top 0 "$1.d"
    cp out text
}

# expect WAY CONDITION...: over allocator(part of its site), share(name), in_libc(), advice(rule).
expect() {
    python3 - "${@:2}" <<'PYTHON' || fail "$1"
import csv, json, sys
def rows_of(path):
    return list(csv.DictReader(open(path, encoding="utf-8")))
rows, functions = rows_of("vars.csv"), rows_of("functions.csv")
items = json.load(open("advice.json", encoding="utf-8"))["advice"]
def allocator(site=""):
    return sum(float(r["share"]) for r in rows if r["variable"] == "<allocator>" and site in r["alloc_site"])
def share(name):
    return sum(float(r["share"]) for r in rows if r["variable"] == name)
def in_libc():
    return sum(float(r["own_share"]) for r in functions if "libc.so" in r["module"])
def advice(rule):
    return [a for a in items if a["rule"] == rule]
bad = [condition for condition in sys.argv[1:] if not eval(condition)]
for condition in bad:
    print(f"does not hold: {condition}")
if bad:
    for row in sorted(rows, key=lambda r: -float(r["share"]))[:12]:
        print(f'   {float(row["share"]):5.1f} % {row["variable"]} [{row["alloc_site"]}]')
    print([r for r in functions if r["function"] in ("malloc", "free", "cfree")], items[:2])
sys.exit(bool(bad))
PYTHON
}

measure churn
expect churn 'allocator() > 40' 'allocator("malloc: churn (allocator-time.cc:") > 10' \
    'allocator("free: churn (allocator-time.cc:") > 5' 'allocator("std::vector growth at grow (allocator-time.cc:") > 2' \
    'abs(allocator() - in_libc()) < 4' 'share("<small block>") + share("<no block>") < 2' \
    'len(advice("allocator")) == 1' '40 < advice("allocator")[0]["gain_at_most"] <= 100'
for face in text vars.json page; do
    grep -q '<allocator>\|&lt;allocator&gt;\|\\u003callocator>' "$face" || fail "$face does not name the allocator"
done

measure blocks
expect blocks 'allocator() < 10' 'share("p") > 50' 'not advice("allocator")'

# The sizes below the threshold are estimates from a sample of the blocks: within five standard errors, each time. A block
# of n bytes is sampled with probability p = 1 - exp(-n / mean) and stands for one of the two whole numbers around 1 / p.
unset DATACENTRIC_MIN_BYTES
for turn in 1 2 3 4 5 6 7 8 9 10; do
    options=(-mp 0.2)
    [ $((turn % 2)) -eq 0 ] || options=(-ck SAMPLE_BYTES=4096)
    rm -rf keep.m keep.d
    expect_status 0 "$builddir/hpcrun" --leaks "${options[@]}" -o keep.m ./allocator-time keep
    expect_status 0 "$builddir/hpcprof" -q -o keep.d keep.m
    expect_status 0 "$builddir/hpcquery" leaks --all --json keep.d
    python3 - out <<'PYTHON' || fail "${options[*]}: not the blocks that the program keeps"
import json, math, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
found, bad = {}, []
for row in report["paths"]:
    function = row["path"][0]["function"]
    found[function] = found.get(function, 0) + row["live_blocks"]
for n_bytes in (40, 100, 500, 2000, 3000, 6000):
    p = -math.expm1(-n_bytes / report["sample_bytes"]) if n_bytes < report["min_bytes"] else 1
    error = math.sqrt(20000 * ((1 - p) / p + (p / 4 if p < 1 else 0)))
    n = found.get(f"keep{n_bytes}", 0)
    if abs(n - 20000) > 5 * error:
        bad.append(f"{n} blocks of {n_bytes} bytes instead of 20000, standard error {error:.0f}")
print("\n".join(bad))
sys.exit(bool(bad))
PYTHON
done
finish
