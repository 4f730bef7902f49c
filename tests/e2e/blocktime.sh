#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# BLOCKTIME: waits that the program times itself, by call path; and a program that looks closely at its calls sees no
# difference.
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need gcc python3
need_runtime
cd "$scratch"

gcc -g -O1 -pthread "$srcdir/tests/e2e/blocktime.c" -o waiter

# compare NAME: functions of the database against what the program has printed into NAME.said.
compare() {
    rm -rf "$1.db"
    "$builddir/hpcprof" -o "$1.db" "$1.m" >/dev/null
    "$builddir/hpcquery" functions --metric "BLOCKTIME (usec)" --json --top 0 "$1.db" >"$1.json"
    python3 - "$1.json" "$1.said" <<'END'
import json, sys
found = {row["function"]: row["inclusive"] * 1e-6 for row in json.load(open(sys.argv[1]))["functions"]}
is_right = True
for line in open(sys.argv[2]):
    name, said = line.split()[0], float(line.split()[1])
    right = abs(found.get(name, 0) - said) <= 0.05 * said + 0.002
    is_right = is_right and right
    print("ok  " if right else "FAIL", name, "said", said, "found", found.get(name))
sys.exit(not is_right)
END
}

for events in BLOCKTIME "CPUTIME BLOCKTIME" "datacentric BLOCKTIME"; do
    name=${events%% *}
    options=()
    for event in $events; do options+=(-e "$event"); done
    # Where others take the processor between the program's reading of the clocks and its call, the program believes that it
    # waited: so there are up to three runs.
    for run in 1 2 3; do
        rm -rf "$name.m"
        "$hpcrun" -o "$name.m" "${options[@]}" ./waiter waits "$scratch/file" >"$name.said" || fail "$events: status $?"
        compare "$name" && break
        [ $run != 3 ] || fail "$name: BLOCKTIME differs from the program's own times"
    done
done

./waiter same "$scratch/file" >native
"$hpcrun" -o same.m -e BLOCKTIME ./waiter same "$scratch/file" >measured || fail "status $?"
diff native measured || fail "the program sees a difference"
grep -q 'cancelled 1' native || fail "the program did not get as far as it should"

# without the event nothing is wrapped
"$hpcrun" -o plain.m -e CPUTIME -- bash -c 'cat /proc/self/maps' >maps
! grep -q libhpcrun-wait maps || fail "the wrappers are in a program that is not measured for waits"
"$hpcrun" -o on.m -e BLOCKTIME -- bash -c 'cat /proc/self/maps' >maps
grep -q libhpcrun-wait maps || fail "the wrappers are not there"
finish
