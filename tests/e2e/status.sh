#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpcrun --status shows the progress of running processes, and the program does not notice.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
choose_faults
need python3
cd "$scratch"
$CC -O1 -g -pthread "$srcdir/tests/e2e/status.c" -o status || fail "status.c does not build"

# begin NAME ARGUMENT COMMAND...: a measured program that runs until `finish_program`; $program is what was started.
begin() {
    local name=$1 argument=$2
    shift 2
    mkfifo "$name.in"
    "$@" "$hpcrun" -e EADDR@f500 "${faults[@]}" -o "$name.m" ./status "$argument" <"$name.in" >"$name.out" 2>"$name.err" &
    program=$!
    exec 7>"$name.in"
}

# until_status NAME PYTHON: asks for the status of $program until the expression over the JSON "s" is true.
until_status() {
    local waited=0
    until timeout 60 "$hpcrun" --status --json "$program" >"$1.json" 2>"$1.status-err" &&
        python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$1.json" "$2"; do
        waited=$((waited + 1))
        [ "$waited" -lt 60 ] || break
        sleep 0.3
    done
    [ "$waited" -lt 60 ] || fail "$1: it never came to: $2: $(cat "$1.json" "$1.status-err")"
}

# end_program NAME: its input ends, and it has noticed nothing.
end_program() {
    local status=0
    exec 7>&-
    wait "$program" || status=$?
    [ "$status" = 6 ] || fail "$1: status $status"
    echo "end of input" | diff - <(sort -u "$1.out") || fail "$1: another output"
}

begin busy busy env
until_status busy 's["processes"][0]["events"][0]["taken"] > 60 and len(s["processes"][0]["variables"]) > 1'
python3 - "$program" "$scratch/busy.m" <<'PYTHON' || fail "busy: $(cat busy.json)"
import json, sys
(process,) = json.load(open("busy.json"))["processes"]
assert process["pid"] == int(sys.argv[1]) and process["program"] == "status" and process["directory"] == sys.argv[2]
assert process["threads"] == 3 and process["threads_ended"] == 0 and process["sampling"] and process["elapsed_s"] > 0
assert 0 < process["memory_bytes"] < process["memory_limit_bytes"] and process["blocks"] >= 1
event = process["events"][0]
assert event["name"] == "EADDR" and event["per_second"] > 0
# Samples that are under way have no fate yet; nothing else lacks one.
never = {"not-delivered", "in-kernel", "own-fault"}
assert 0 <= event["taken"] - sum(n for name, n in event["fates"].items() if name not in never) <= 300
names = {v["variable"]: v for v in process["variables"]}
assert names["matrix"]["class"] == "heap" and "status.c:" in names["matrix"]["alloc_site"], names
assert names["counters"]["class"] == "static", names
assert sum(v["samples"] for v in process["variables"]) <= process["address_samples"]
PYTHON
expect_status 0 timeout 60 "$hpcrun" --status "$program"
expect_text out "^process +$program: $scratch/status$"
expect_text out '^EADDR +[0-9]+ samples, [0-9]+/s since the start, [0-9]+/s in the last second$'
expect_text out '^dropped +[0-9]+ samples$'
expect_text out '% +[0-9]+ +matrix +heap +main \(status.c:[0-9]+\)$'
expect_status 0 timeout 60 "$hpcrun" --status busy.m
expect_text out "^process +$program:"
expect_status 0 timeout 60 "$hpcrun" --status
expect_text out "^ *$program .* status  $scratch/busy.m$"
# Another user learns nothing but whose it is; root may look at everybody's.
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && "${nobody[@]}" "$hpcrun" -V >/dev/null 2>&1; then
    expect_status 1 timeout 60 "${nobody[@]}" "$hpcrun" --status "$program"
    expect_text err 'belongs to another user \(0\)'
    expect_status 0 timeout 60 "${nobody[@]}" "$hpcrun" --status
    ! grep -q "$program" out || fail "another user sees the process"
else
    skip_part "the looks of other users need root, setpriv and a build that all can read"
fi
end_program busy
python3 "$srcdir/tests/lib/check-fates.py" busy.m --processes 1 --threads 3 >out || fail "busy: $(cat out)"
expect_status 1 timeout 60 "$hpcrun" --status "$program"
expect_text err "there is no process $program"

# What hpcrun stays the parent of, as in a step of Slurm, is found from there; and so are many children.
begin kept busy env SLURM_JOB_ID=77
until_status kept 'len(s["processes"]) == 1 and s["processes"][0]["pid"] != '"$program"
end_program kept
begin many 40 env
until_status many 'len(s["processes"]) == 41' # of itself and all below it
family=$program
mapfile -t children < <(pgrep -P "$family")
[ "${#children[@]}" = 40 ] || fail "${#children[@]} children"
waited=0
until timeout 60 "$hpcrun" --status many.m >list && [ "$(wc -l <list)" = 42 ] || [ "$waited" = 60 ]; do
    waited=$((waited + 1))
    sleep 0.3
done
for child in "${children[@]}"; do
    grep -q "^ *$child " list || fail "no line of child $child: $(cat list)"
done
end_program many

expect_status 1 timeout 60 "$hpcrun" --status $$
expect_text err 'is not being measured, nor is any process that it started'
mkdir empty
expect_status 1 timeout 60 "$hpcrun" --status empty
expect_text err 'no running process of this host is being measured into empty'
expect_status 2 timeout 60 "$hpcrun" --status nowhere
expect_status 2 timeout 60 "$hpcrun" --status 12x
expect_status 2 timeout 60 "$hpcrun" --status 1 2
expect_status 2 timeout 60 "$hpcrun" --json true
finish
