#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What is live at the end, or at a mark, of a program whose blocks are known: lost ones, kept ones, those that another
# thread freed, grown ones, cut mappings, blocks of pools, children of fork; however the process ends. In the same run
# the samples show which of them were used.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cd "$scratch"
$CC -O1 -g -I"$srcdir/src" "$srcdir/tests/e2e/leaks.c" -o leaks -lpthread

# measure NAME STATUS ENDING OPTION...: one run; its report of leaks as NAME.json, with all paths.
measure() {
    local name=$1 status=$2 ending=$3
    shift 3
    expect_status "$status" "$builddir/hpcrun" -o "$name.m" "$@" ./leaks "$ending" 0.4
    expect_status 0 "$builddir/hpcprof" -o "$name.db" "$name.m"
    expect_status 0 "$builddir/hpcquery" leaks --all --json "$name.db"
    cp out "$name.json"
}

# check NAME: every figure of the report against the program's.
check() {
    python3 - "$@" "$(getconf PAGESIZE)" <<'PYTHON' || fail "$1: not what the program did"
import json, sys
name, page = sys.argv[1], int(sys.argv[-1])
report = json.load(open(name + ".json", encoding="utf-8"))
found, marked, shares = {}, {}, {}
for row in report["paths"]:
    key = "slab" if row["variable"] == "slab" else row["path"][0]["function"]
    figures = [row[k] for k in ("allocated_blocks", "allocated_bytes", "live_blocks", "live_bytes")]
    found[key] = tuple(a + b for a, b in zip(found.get(key, (0,) * 4), figures))
    marks = (row["marked_blocks"], row["marked_bytes"])
    marked[key] = tuple(a + b for a, b in zip(marked.get(key, (0, 0)), marks))
    shares[key] = shares.get(key, 0) + row.get("share", 0)
expected = {
    "main": (1, 8 << 20, 1, 8 << 20), "lose": (7, 21000, 7, 21000), "pass": (10, 50000, 4, 20000),
    "grow": (5, 510000, 1, 202000), "slab": (1, 1 << 20, 1, 1 << 20),
    "hand_out": (3, 270000, 2, 180000), "hold": (1, 123456, 0, 0),
    "map": (5, 64 * page, 4, (16 + 11 + 13) * page)}
if name == "fork":
    expected["fork_child"] = (2, 15554, 2, 15554)
if name == "all":
    expected["make_small"] = (5000, 1000000, 1000, 200000)
for key, figures in expected.items():
    assert key in found, f"nothing of {key}"
    assert found[key] == figures, f"{key}: {found[key]} instead of {figures}"
assert not {"make_small", "work", "free_some", "fork_child"} & (set(found) - set(expected)), found
live = sum(row["live_bytes"] for row in report["paths"])
assert report["live_at_end"]["bytes"] == live
assert report["allocated"]["bytes"] - report["freed"]["bytes"] == live
assert report["min_bytes"] == (1 if name == "all" else 1024) and report["sample_bytes"] == 0
assert (report["n_killed"] > 0) == (name == "kill")
if name == "count":
    assert report["metric"] is None and "live_without_samples" not in report, "nothing was sampled"
else:
    assert shares["main"] > 50, "the kept array was worked on"
    assert shares["lose"] == 0
    assert report["live_without_samples"]["blocks"] >= 7
if name == "mark":
    assert marked["hold"] == (1, 123456) and marked["pass"] == (4, 20000), marked
    assert report["live_at_mark"]["bytes"] == live + 123456 and report["mark_ns"] > report["start_ns"]
else:
    assert report["mark_ns"] is None and not any(sum(v) for v in marked.values())
PYTHON
}

# The metrics of the original, in the database: their sums over variables are the report's.
check_metrics() {
    local metric
    for metric in allocated freed live_at_end; do
        local name="Bytes Allocated"
        [ "$metric" != freed ] || name="Bytes Freed"
        [ "$metric" != live_at_end ] || name="Bytes Leaked"
        expect_status 0 "$builddir/hpcquery" vars -M "$name" --csv "$1.db"
        python3 - "$1.json" "$metric" out <<'PYTHON' || fail "$1: $name is not the report's"
import csv, json, sys
total = sum(float(row["value"]) for row in csv.DictReader(open(sys.argv[3], encoding="utf-8")))
assert total == json.load(open(sys.argv[1], encoding="utf-8"))[sys.argv[2]]["bytes"], total
PYTHON
    done
}

if perf_works; then
    measure exit 0 exit --leaks
    check exit
    check_metrics exit
    measure mark 0 mark --leaks
    check mark
    expect_status 0 "$builddir/hpcquery" leaks --mark mark.db
    expect_text out '^ +120\.6 KiB +1 +120\.6 KiB +1 +none +held +heap$'
    measure fork 0 fork --leaks
    check fork
    measure kill 137 kill -e EADDR
    check kill
    expect_status 0 "$builddir/hpcquery" leaks kill.db
    expect_text out 'did not end by themselves'
    DATACENTRIC_MIN_BYTES=1 measure all 0 _exit --leaks
    check all
else
    skip_part "perf is refused here, and timers are too slow"
fi

measure count 0 exit -e MEMLEAK
check count
check_metrics count
expect_status 1 "$builddir/hpcquery" leaks --mark count.db
expect_text err 'no mark was made'
grep -q 'blocks: 32 recorded' count.m/leaks-*.log || fail "the log does not say what was recorded"

# Small blocks as estimates: of 5000 a sample of about 480, of 1000 live ones about 95.
measure sampled 0 exit -e MEMLEAK -ck SAMPLE_BYTES=2000
python3 - sampled.json <<'PYTHON' || fail "the estimates of small blocks are too far off"
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
small = [row for row in report["paths"] if row["path"][0]["function"] == "make_small"]
total, live = sum(r["allocated_blocks"] for r in small), sum(r["live_blocks"] for r in small)
print(f"5000 blocks estimated as {total}, 1000 live ones as {live}")
assert 3750 < total < 6250 and 500 < live < 1500
assert sum(r["live_bytes"] for r in small) == 200 * live and report["sample_bytes"] == 2000
PYTHON

# The mark by the clock; and a measurement without allocations says so.
expect_status 0 "$builddir/hpcrun" -o at.m --leaks-at 0.3 -e MEMLEAK ./leaks exit 1.2
expect_status 0 "$builddir/hpcprof" -o at.db at.m
expect_status 0 "$builddir/hpcquery" leaks --mark --csv at.db
expect_text out '^held,heap,.*,1,123456,1,123456,1,123456,1,123456,'
expect_status 0 "$builddir/hpcrun" -o none.m -e CPUTIME ./leaks exit 0.3
expect_status 0 "$builddir/hpcprof" -o none.db none.m
expect_status 1 "$builddir/hpcquery" leaks none.db
expect_text err 'allocations were not recorded'
expect_status 2 "$builddir/hpcrun" --leaks-at soon ./leaks
finish
