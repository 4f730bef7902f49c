#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Functions of code that a program generates have the names that it writes down for profilers, in a map or a jitdump:
# also when the program is killed or takes the map away at its end, but not those of an earlier process with the same id.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
[ "$(uname -m)" = x86_64 ] || skip "the program generates code of x86-64"
need python3
[ -w /tmp ] || skip "/tmp, where maps have to be, cannot be written"
cd "$scratch"
$CC -O1 -g "$srcdir/tests/e2e/jit.c" -o jit

# measure NAME STATUS SECONDS COMMAND...: one run; its tree as NAME.csv. Maps of the processes are removed afterwards.
measure() {
    local name=$1 status=$2
    shift 2
    expect_status "$status" "$builddir/hpcrun" -e CPUTIME@f500 -o "$name.m" "$@"
    local profile pid
    for profile in "$name".m/*.hpcrun; do
        pid=$(basename "$profile" | sed -E 's/.*-([0-9]+)-[0-9]+\.hpcrun$/\1/')
        rm -f "/tmp/perf-$pid.map"
    done
    expect_status 0 "$builddir/hpcprof" -o "$name.db" "$name.m"
    expect_status 0 "$builddir/hpcquery" tree --csv "$name.db"
    cp out "$name.csv"
}

# has NAME INNER OUTER: the time is in INNER, called by OUTER, called in the loop of main.
has() {
    python3 - "$@" <<'PYTHON' || fail "$1: not main, $3, $2"
import csv, sys
rows = {row["id"]: row for row in csv.DictReader(open(sys.argv[1] + ".csv", encoding="utf-8"))}
best = max((r for r in rows.values() if r["name"].startswith(sys.argv[2])), key=lambda r: float(r["inclusive"]))
outer = rows[best["parent"]]
total = max(float(r["inclusive"]) for r in rows.values())
print(sys.argv[1], f"{100 * float(best['inclusive']) / total:.0f} % in", best["name"])
loop = rows[outer["parent"]]
main = rows[loop["parent"]]
assert outer["name"].startswith(sys.argv[3]) and (loop["kind"], main["name"]) == ("loop", "main"), (best, outer, loop, main)
assert float(best["inclusive"]) > 0.8 * total
PYTHON
}

measure map 0 ./jit map 0.5
has map 'inner(unsigned char*, unsigned long)' 'LazyCompile:~outer app.js:3'
! grep -q old_function map.csv || fail "a function that is there no more has time"
measure dump 0 ./jit dump 0.5
has dump dumped_inner 'dumped outer'
measure killed 137 timeout -s KILL 1 ./jit map 30
has killed 'inner(unsigned char*, unsigned long)' 'LazyCompile:~outer app.js:3'
measure removed 0 ./jit removed 3
has removed 'inner(unsigned char*, unsigned long)' 'LazyCompile:~outer app.js:3'
measure stale 0 ./jit stale 0.5
! grep -qE 'inner|outer' stale.csv || fail "names of a map that is older than the process"
grep -q 'is older than the process: not used' stale.m/companion-*.txt || fail "no message about the old map"
measure undescribed 0 ./jit undescribed 0.5
grep -q '0x[0-9a-f]* \[unknown module\]\|0x[0-9a-f]* unknown module' undescribed.csv ||
    fail "generated code without description is not shown by address"

# A program as people use it.
if command -v node >/dev/null; then
    cat >hot.js <<'JAVASCRIPT'
function hotLoop(a) { let s = 0; for (let i = 0; i < a.length; i++) s += a[i] * (i & 7); return s; }
const a = new Float64Array(1 << 16).fill(1.5), end = Date.now() + 1500;
let t = 0;
while (Date.now() < end) t += hotLoop(a);
console.log(t > 0);
JAVASCRIPT
    measure node 0 node --perf-basic-prof hot.js
    expect_text node.csv 'hotLoop.*hot\.js'
    # By now node's table has been made: through the compiled code and V8's own the walks find their ends.
    measure again 0 node --perf-basic-prof hot.js
    python3 - again.m/node-*-000-*.objects <<'PYTHON' || fail "few call paths through node are complete"
import json, sys
stops = [int(n) for n in json.load(open(sys.argv[1], encoding="utf-8"))["unwind_stops"]]
print(f"node: {stops[0]} of {sum(stops)} walks are complete")
assert stops[0] > 0.5 * sum(stops), stops
PYTHON
else
    skip_part "node is not installed"
fi
finish
