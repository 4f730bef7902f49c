#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How threads use variables, and which lines they share, against a program whose answer is known: eight arrays, each used
# in a way of its own, and counters that lie in one line, are one, or are padded.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
need python3
cd "$scratch"
$CC -O1 -g -pthread "$srcdir/tests/e2e/patterns.c" -o patterns

for threads in 4 1 8; do
    expect_status 0 "$builddir/hpcrun" -e EADDR@f1000 -o "m$threads" ./patterns "$threads"
    expect_status 0 "$builddir/hpcprof" -o "db$threads" "m$threads"
    "$builddir/hpcquery" patterns --csv "db$threads" >patterns.csv || fail "no table for $threads threads"
    python3 - "$threads" >out 2>&1 <<'PYTHON' || fail "$threads threads: $(cat out)"
import csv, sys
threads = int(sys.argv[1])
found = {row["variable"]: row for row in csv.DictReader(open("patterns.csv", encoding="utf-8"))}
wanted = {"owned": "single owner", "blocked": "blocked by thread", "interleaved": "interleaved", "streamed": "streaming",
          "scattered": "random", "table": "shared read-only", "tally": "shared read-write"}
for name, use in wanted.items():
    row = found[name]
    print(row)
    assert row["used_as"] == (use if threads > 1 else "single owner"), name
    assert int(row["threads"]) == (1 if name == "owned" else threads), name
    assert (int(row["stores"]) == 0) <= (name != "tally") and (int(row["stores"]) > 0) <= (name in ("owned", "blocked", "interleaved", "tally")), name
assert found["streamed"]["order"] == "in order" and found["scattered"]["order"] == "irregular"
assert int(found["streamed"]["last_offset"]) > 15 << 20 and int(found["table"]["last_offset"]) < 32 << 10
assert found.get("few", {"used_as": "too few samples"})["used_as"] == "too few samples", found.get("few")
if threads > 1:
    assert int(found["interleaved"]["chunk_bytes"]) == 8, found["interleaved"]
PYTHON
done
"$builddir/hpcquery" patterns --json db4 | python3 -c 'import json, sys
rows = {row["variable"]: row for row in json.load(sys.stdin)["variables"]}
bins = [thread["bins"] for thread in rows["blocked"]["threads"]]
assert len(bins) == 4 and rows["blocked"]["bin_bytes"] == 65536
# the thread created as number t has the quarter t of the array, whichever of them ran first
assert all(sum(bins[t][16 * t:16 * t + 16]) > 0.95 * sum(bins[t]) for t in range(4)), bins' || fail "JSON"
# A program without MPI has no ranks: threads go by the number of their process.
pid=$(ls m4/*.hpcrun | sed -n '1s/.*-\([0-9]*\)-[0-9]*\.hpcrun/\1/p')
"$builddir/hpcquery" patterns --json db4 | python3 -c 'import json, sys
threads = [thread for row in json.load(sys.stdin)["variables"] for thread in row["threads"]]
assert threads and {(thread["process"], "rank" in thread) for thread in threads} == {(int(sys.argv[1]), False)}, threads' "$pid" ||
    fail "the threads are not those of process $pid"
"$builddir/hpcquery" cpus --csv db4 >cpus.csv || fail "cpus"
if head -n 1 cpus.csv | grep -w rank; then fail "cpus has a column of ranks"; fi
head -n 1 cpus.csv | grep -q ',process,thread,thread_name,variable,' || fail "cpus: $(head -n 1 cpus.csv)"
# The form as JSON has all of it.
mkdir as-json
"$builddir/hpcquery" export json db4 >as-json/text.json || fail "no JSON"
"$builddir/tests/golden/make-database" as-json/text.json as-json/locus.db || fail "JSON is not read"
for report in patterns sharing; do
    "$builddir/hpcquery" $report --json db4 >once.json
    "$builddir/hpcquery" $report --json as-json >twice.json || fail "$report: JSON is not read"
    expect_same once.json twice.json
done
python3 "$LOCUS_SRCDIR/tests/lib/choice.py" "$builddir/hpcquery" db4 patterns >out || fail "$(cat out)"
# Where the arrays begin, as the linker has put them: offsets in a page, and the largest power of two from another one.
python3 "$LOCUS_SRCDIR/tests/lib/choice.py" "$builddir/hpcquery" db4 alignment >out || fail "$(cat out)"
"$builddir/hpcquery" alignment --csv --top 0 db4 >alignment.csv || fail "no alignment"
nm patterns >symbols
python3 - >out 2>&1 <<'PYTHON' || fail "alignment: $(cat out)"
import csv
starts = {words[2]: int(words[0], 16) for words in map(str.split, open("symbols", encoding="utf-8")) if len(words) == 3}
rows = {row["variable"]: row for row in csv.DictReader(open("alignment.csv", encoding="utf-8")) if row["variable"] in starts}
assert len(rows) >= 7, rows
large = [name for name, row in rows.items() if int(row["block_bytes"]) >= 4096]
for name, row in rows.items():
    distances = [abs(starts[name] - starts[other]) for other in large if other != name and name in large]
    power = max((distance & -distance for distance in distances), default=0)
    print(row, starts[name] % 4096, power)
    assert int(row["page_offset"]) == starts[name] % 4096 and int(row["line_offset"]) == starts[name] % 64
    assert int(row["apart_bytes"] or 0) == (power if power >= 4096 else 0)
PYTHON
expect_status 0 "$builddir/hpcquery" patterns --variable blocked db4
expect_text out '^  1 +\|[^ ]{8}.* {40,}\| [0-9]+$'
expect_text out '^  4 +\| {40,}.*[.:=+*#%@-].*\| [0-9]+$'
expect_status 1 "$builddir/hpcquery" patterns --variable nothing db4
expect_status 2 "$builddir/hpcquery" vars --variable blocked db4

# What the report and the advice say of a variable agree: neither sends to the arithmetic where the other one sees lines
# that threads share.
agree() {
    for report in vars advice; do
        "$builddir/hpcquery" "$report" --json --min 0 "$1" >"$report.json" || fail "$report of $1"
    done
    "$builddir/hpcquery" sharing --json "$1" >lines.json || fail "lines of $1"
    python3 - >out 2>&1 <<'PYTHON' || fail "$1: $(cat out)"
import json
load = lambda name: json.load(open(f"{name}.json", encoding="utf-8"))
words = {"pad": "threads use different bytes of them", "shared-writes": "the same bytes",
         "resident": "change the arithmetic", "execution": "change the arithmetic"}
rules = {(row["variable"], row["rule"]) for row in load("advice")["advice"] if row["rule"] in words}
means = {row["variable"]: row.get("meaning") or "" for row in load("vars")["variables"]
         if not row["variable"].startswith("<")}  # there is no advice on what has no name
print(rules, means)
assert all(words[rule] in means[name] for name, rule in rules)
assert all(any((name, rule) in rules for rule, said in words.items() if said in text) for name, text in means.items()
           if any(said in text for said in words.values()))
assert any(line["variable"] == "words" and line["samples"] >= 32 for line in load("lines")["lines"])
for line in load("lines")["lines"]:
    rule = {"false sharing": "pad", "true sharing": "shared-writes"}.get(line["sharing"])
    if line["variable"] == "words" and rule and line["samples"] >= 32 and line["writers"] > 1:
        assert ("words", rule) in rules, line
PYTHON
}

# Nearly all samples of atomic additions are at them, on one processor as well.
for kind in false true; do
    expect_status 0 "$builddir/hpcrun" -e EADDR@f1000 -o "m-atomic-$kind" ./patterns 2 "$kind" atomic
    expect_status 0 "$builddir/hpcprof" -o "db-atomic-$kind" "m-atomic-$kind"
    agree "db-atomic-$kind"
done

# A processor seldom waits for a store: it takes another run when no sample shows who writes. Candidates for nothing are
# never right.
for kind in false true padded unshared; do
    for _ in 1 2 3 4; do
        rm -rf "m-$kind" "db-$kind"
        expect_status 0 "$builddir/hpcrun" -e EADDR@f1000 -o "m-$kind" ./patterns 2 "$kind"
        expect_status 0 "$builddir/hpcprof" -o "db-$kind" "m-$kind"
        expect_status 0 "$builddir/hpcquery" sharing "db-$kind"
        case $kind in
            padded | unshared) break ;;
        esac
        if grep -q 'words' out; then break; fi
    done
    case $kind in
        false | true)
            expect_text out "  $kind sharing .*words"
            python3 "$LOCUS_SRCDIR/tests/lib/choice.py" "$builddir/hpcquery" "db-$kind" sharing >choice || fail "$(cat choice)"
            [ "$("$builddir/hpcquery" sharing --csv "db-$kind" | grep -c '^words,.*,'"$kind sharing")" = 1 ] || fail "$kind: CSV"
            "$builddir/hpcquery" sharing --json "db-$kind" | grep -q '"sharing": "'"$kind sharing"'"' || fail "$kind: JSON"
            ;;
        *) expect_text out 'No cache line' ;;
    esac
done
finish
