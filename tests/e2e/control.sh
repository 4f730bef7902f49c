#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# When a program is sampled: by its own calls, by signals, after a delay, for a time; how long it lives; and which
# processes and ranks are measured at all. The program behaves as without hpcrun, and every sample has a fate.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need python3
cd "$scratch"
ulimit -c 0
$CC -O1 -g -pthread "$srcdir/tests/e2e/control.c" -o control || fail "control.c does not build"

# samples DIR FUNCTION: time in the function according to the call tree, in samples of 1 ms.
samples() {
    "$builddir/hpcquery" tree --csv "$1.db" | python3 -c '
import csv, sys
print(sum(int(float(r["inclusive"])) // 1000 for r in csv.DictReader(sys.stdin) if r["name"] == sys.argv[1]))' "$2"
}

# check NAME PROCESSES THREADS SAMPLED... -- UNSEEN...: the files, and where samples fell.
check() {
    local name=$1 function n
    python3 "$srcdir/tests/lib/check-fates.py" "$name" --processes "$2" --threads "$3" >out || fail "$name: $(cat out)"
    "$builddir/hpcprof" -o "$name.db" "$name" >out 2>err || fail "$name: $(cat err)"
    shift 3
    while [ "$1" != -- ]; do
        n=$(samples "$name" "$1")
        [ "$n" -gt 30 ] || fail "$name: $n samples in $1"
        shift
    done
    shift
    for function; do
        n=$(samples "$name" "$function")
        [ "$n" -le 3 ] || fail "$name: $n samples in $function"
    done
}

# way NAME OPTION...: natively and measured; the same output and status.
way() {
    local name=$1
    shift
    (exec ./control "$name") >native || true
    expect_status 3 timeout 120 "$hpcrun" -e EADDR@f1000 -o "$name" "$@" ./control "$name"
    expect_same native out
}

way api
check api 2 5 sampled_1 sampled_2 -- unseen_1 unseen_2
way signals -ds --start-signal USR1 --stop-signal SIGUSR2
check signals 1 1 sampled_1 sampled_2 -- unseen_1 unseen_2

# From outside, with one signal and a program that knows nothing of it.
mkfifo lines
timeout 120 "$hpcrun" -e EADDR@f1000 -ds --start-signal RTMIN+3 --stop-signal RTMIN+3 -o toggled ./control toggled \
    >lines 2>err &
started=$!
program=
while read -r line; do
    [ -n "$program" ] || program=$(pgrep -P "$started" || echo "$started")
    [ "$line" = "toggled done" ] || kill -s RTMIN+3 "$program"
done <lines
status=0
wait "$started" || status=$?
[ "$status" = 3 ] || fail "toggled: status $status"
check toggled 1 1 sampled_1 -- unseen_1 unseen_2

way delayed --delay 2.5
check delayed 1 2 sampled_1 -- unseen_1
way limited --duration 1
check limited 1 2 until -- unseen_1 unseen_2

# The end of a life is SIGALRM, as with the original.
expect_status 142 "$hpcrun" -e EADDR@f1000 --lifetime 1 -o endless ./control endless
waited=0
until compgen -G 'endless/*.hpcrun' >/dev/null || [ "$waited" = 100 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
"$builddir/hpcprof" -o endless.db endless >out 2>err || fail "endless: $(cat err)"
[ "$(samples endless sampled_1)" -gt 30 ] || fail "a life of a second left no samples"
HPCRUN_LIFETIME=1 expect_status 142 "$hpcrun" -e EADDR@f1000 -o endless-2 ./control endless

# Ranks: the same ones each time, others run as they are and stand in the index.
for rank in 0 1 2 3 4 5 6 7; do
    PMI_RANK=$rank HPCRUN_PROCESS_FRACTION=1/4 expect_status 3 "$hpcrun" -e EADDR -o ranks ./control brief
done
measured=$(find ranks -name '*.hpcrun' | sed 's/.*control-\([0-9]*\)-.*/\1/' | sort -un | xargs)
[ "$measured" = "000000 000004" ] || fail "ranks measured: $measured"
cat ranks/index-* >index
[ "$(grep -c 'control not measured: rank [123567] is outside of the fraction' index)" = 6 ] || fail "$(cat index)"

# Processes without rank: each decides, and both kinds add up.
cat >many.sh <<'END'
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    env true
done
END
expect_status 0 "$hpcrun" -f 1/2 -e EADDR -o processes bash many.sh
cat processes/index-* >index
chosen=$(grep -c 'no samples$' index || true) left=$(grep -c ' not measured: outside of the fraction' index || true)
files=$(find processes -name '*.hpcrun' | wc -l)
[ $((chosen + left + files)) -ge 20 ] && [ "$left" -gt 0 ] && [ $((chosen + files)) -gt 0 ] ||
    fail "$chosen without samples, $left left out, $files profiles"

# What makes no sense is refused before anything runs.
for bad in "--delay 0" "--duration -1" "--delay x" "--start-signal KILL" "--stop-signal SEGV" "--stop-signal URG" \
    "--start-signal 0" "--start-signal NONE" "--start-signal RTMIN+99" "--lifetime 0.5" "-f 2"; do
    # shellcheck disable=SC2086 # two words
    expect_status 2 "$hpcrun" $bad -o bad touch bad-marker
done
HPCRUN_PROCESS_FRACTION=often expect_status 2 "$hpcrun" -o bad touch bad-marker
[ ! -e bad ] && [ ! -e bad-marker ] || fail "something ran in spite of a wrong option"
finish
