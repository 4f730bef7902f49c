#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Rounds of threads that are all alive at once: later threads go on in the profiles of those that have ended, memory does
# not grow from round to round, and every sample has a fate. usage: many-threads.sh [ALIVE ROUNDS], default 1000 and 16.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
n_alive=${1:-1000} n_rounds=${2:-16}
n_own=256 # threads that always have profiles of their own
cd "$scratch"
$CC -O2 -g -pthread "$srcdir/tests/e2e/programs/many-threads.c" -o many-threads || fail "many-threads.c does not build"
ulimit -n "$(ulimit -Hn)"
limit=$(cat /proc/sys/kernel/threads-max)
[ "$limit" -gt $((2 * n_alive)) ] || skip "this machine has at most $limit threads"
./many-threads "$n_alive" "$n_rounds" >native || skip "this machine does not run $n_alive threads at once"

expect_status 0 "$builddir/hpcrun" -o m ./many-threads "$n_alive" "$n_rounds"
[ -d m ] || finish
grep ^sum native >expected
grep ^sum "$scratch/out" >actual
expect_same expected actual

# The first round fills the profiles, the others go on in them.
python3 "$srcdir/tests/lib/check-fates.py" m --processes 1 --min-taken $((n_alive / 10)) || fail "the fates do not add up"
n_profiles=$(find m -name '*.hpcrun' | wc -l)
[ "$n_profiles" -gt "$n_alive" ] && [ "$n_profiles" -le $((n_alive + n_own + 1)) ] ||
    fail "$n_profiles profiles of rounds of $n_alive threads"
expect_text m/*.log "threads: $((n_alive * n_rounds + 1)), in $n_profiles profiles"
if ulimit -n | grep -qx unlimited || [ "$(ulimit -n)" -gt $((3 * n_alive)) ]; then
    ! grep "could not be opened" m/*.log || fail "there were descriptors enough"
fi

# Memory in KiB after half of the rounds and the last one. A profile begins with a few pages and gets the others when
# the threads that follow each other in it need them; most have by then.
read -r _ early late < <(grep ^memory "$scratch/out")
echo "memory after half of the rounds: $early KiB, after round $n_rounds: $late KiB"
[ "$late" -lt $((early + early / 4)) ] || fail "memory grew from $early to $late KiB in rounds of the same size"
[ "$early" -lt $((n_alive * 100 + 32768)) ] || fail "a live thread takes more than 100 KiB: $early KiB for $n_alive"
# Where threads are many, one in eight counts its page faults, for all of them: they are as many as those of few threads.
if perf_works && [ "$(getconf _NPROCESSORS_ONLN)" -le 64 ]; then
    for at_once in 30 600; do
        rm -rf t db
        expect_status 0 "$builddir/hpcrun" -e FAULTS -e CPUTIME -o t ./many-threads touch $at_once $((1200 / at_once))
        settle t
        "$builddir/hpcprof" -q -o db t && "$builddir/hpcquery" vars --metric FAULTS --json db >touch-$at_once.json ||
            fail "no report of page faults"
        cat t/*.log >touch-$at_once.log
    done
    python3 - <<'END' || fail "page faults of many threads are not counted as those of few"
import json, re, sys
faults, counted = [], []
for at_once in (30, 600):
    rows = json.load(open(f"touch-{at_once}.json", encoding="utf-8"))["variables"]
    faults.append(sum(row["value"] for row in rows if row["variable"] == "touched"))
    log = open(f"touch-{at_once}.log", encoding="utf-8").read()
    enabled = {name: int(ns) for ns, name in re.findall(r"EVENT SUMMARY.* enabled-ns: (\d+),.* name: (\w+)", log)}
    counted.append(enabled["FAULTS"] / enabled["CPUTIME"])
print(f"page faults of 1200 threads, 30 at once and 600: {faults}, counted for {counted} of the time")
sys.exit(not (faults[0] and 0.5 < faults[1] / faults[0] < 2 and counted[0] > 0.9 and counted[1] < 0.8))
END
fi
# Page faults whose number is known, of few threads and of many, at a frequency and at periods: what the samples stand for
# is within four standard errors of it, for each function. At a frequency the samples weigh more and more, and one in
# eight of many threads stands for the others, so that the largest weight is some times the mean one.
count_faults() {
    local event=$1 n_threads=$2 n_one=$3 n_other=$4
    rm -rf f f.db
    expect_status 0 "$builddir/hpcrun" -e "$event" -o f ./many-threads faults "$n_threads" "$n_one" "$n_other"
    settle f
    if ! { "$builddir/hpcprof" -q -o f.db f && "$builddir/hpcquery" functions --metric "${event%@*}" --json f.db >f.json &&
        "$builddir/hpcquery" vars --metric "${event%@*}" --json f.db >f-vars.json; }; then
        fail "$event: no report of page faults"
        return
    fi
    python3 - "$event" "$n_threads" "$n_one" "$n_other" <<'END' || fail "$event: the samples stand for another number of faults"
import json, sys
event, (n_threads, *pages) = sys.argv[1], map(int, sys.argv[2:])
own = {row["function"]: row["own"] for row in json.load(open("f.json", encoding="utf-8"))["functions"]}
report = json.load(open("f-vars.json", encoding="utf-8"))
weight = report["total_value"] / report["taken"] * (1 if "@" in event and "@f" not in event else 6)
truth = [n * n_threads for n in pages]
told = [own.get(name, 0) for name in ("touch_one", "touch_other")]
share, wanted = told[0] / max(sum(told), 1), truth[0] / sum(truth)
allowed = [4 * (n * weight) ** 0.5 for n in (*truth, sum(truth))]
print(f"{event}, {n_threads} threads: {report['taken']} samples stand for {told} faults, share {share:.3f}; there were "
      f"{truth}, give or take {[round(n) for n in allowed[:2]]}, share {wanted:.3f}")
errors = [abs(a - b) for a, b in zip((*told, sum(told)), (*truth, sum(truth)))]
sys.exit(not (all(a <= b for a, b in zip(errors, allowed)) and
              abs(share - wanted) <= 4 * (wanted * (1 - wanted) * weight / sum(truth)) ** 0.5))
END
}
if perf_works && works rings; then
    for event in FAULTS FAULTS@1 FAULTS@100 FAULTS@f200 page-faults@100; do
        count_faults $event 1 15000 5000
        count_faults $event 20 750 250
        [ $event = FAULTS@1 ] || count_faults $event 500 150 50
    done
fi
# Threads that end before their first period does are sampled as often as their CPU time demands, with perf and with
# timers: of the samples in two arrays, those in the threads' array are as many as the program's clock says. Without a
# random first period there are none. A thread has to live for two times the shortest period (governor.h), which is ten
# times what a sample costs here.
life_us=$("$builddir/hpcrun" --doctor 2>/dev/null |
    awk '/a sample costs .* us/ && $4 * 22 > us { us = $4 * 22 } BEGIN { us = 600 } END { printf "%d", us }')
# brief POINTS COMMAND...: the share is right to so many points.
brief() {
    local points=$1
    shift
    rm -rf b db
    expect_status 0 "$@" "$builddir/hpcrun" -e EADDR@$((life_us * 5 / 3))us -o b ./many-threads brief 1000 "$life_us" "$life_us"
    settle b
    "$builddir/hpcprof" -q -o db b && "$builddir/hpcquery" vars --json db >brief.json || fail "$*: no report"
    expect_text <("$builddir/hpcquery" vars db) '^program .*at least 2[0-9]+ threads'
    python3 - brief.json "$scratch/out" "$points" <<'END' || fail "$*: brief threads are not sampled as others are"
import json, sys
rows = json.load(open(sys.argv[1], encoding="utf-8"))["variables"]
threads, main = [sum(row["value"] for row in rows if row["variable"] == name) for name in ("of_threads", "of_main")]
used = [int(word) for word in open(sys.argv[2]).read().split()]
measured, expected = 100 * threads / max(threads + main, 1), 100 * used[0] / sum(used)
print(f"brief threads: {measured:.1f} % of the samples, {expected:.1f} % of the CPU time")
sys.exit(not (threads and main and abs(measured - expected) < int(sys.argv[3])))
END
}
if [ "$(uname -m)" = x86_64 ]; then
    ! perf_works || brief 15
    $CC "$srcdir/tests/lib/refuse-perf.c" -o refuse-perf && brief 25 ./refuse-perf
else
    skip_part "software addresses need x86-64"
fi
# Threads shorter than a clock tick, mostly in the kernel: the process's own times, which the program prints, say how much.
expect_status 0 "$builddir/hpcrun" -e CPUTIME@200us -o r ./many-threads read 600 "$life_us"
settle r
"$builddir/hpcprof" -q -o r.db r && "$builddir/hpcquery" vars --json r.db >read.json || fail "no report of brief threads in the kernel"
python3 - read.json "$scratch/out" <<'END' || fail "the kernel's share of brief threads is not the process's"
import json, sys
measured = json.load(open(sys.argv[1], encoding="utf-8"))["cpu_time"]["kernel_percent"]
user, system = [int(word) for word in open(sys.argv[2]).read().split()]
print(f"in the kernel: {measured:.1f} % of the CPU time, {100 * system / (user + system):.1f} % by the process's clock")
sys.exit(abs(measured - 100 * system / (user + system)) > 10)
END

# None of them is as long as the shortest first period, a twentieth, though all together are longer than a period.
if perf_works; then
    expect_status 0 "$builddir/hpcrun" -e CPUTIME@1s -o short ./many-threads brief 40 30000 0
    settle short
    ! "$builddir/hpcprof" -q -o db short 2>short.err || fail "there are samples"
    expect_text short.err 'no samples: its 41 threads used 1\.[0-9]+ s of CPU time, but each of them less than .* of 1000 ms'
    expect_text short.err 'choose a shorter one'
fi
rm -rf db
"$builddir/hpcprof" -o db m >"$scratch/prof" 2>&1 || { fail "hpcprof does not read it"; cat "$scratch/prof"; }
finish
