#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hardware that is not here: rings as its kernels write them, made by a generator of our own, are replayed through the
# whole pipeline. Every count in the measurement and in the report of its database is known beforehand.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need gcc python3 setarch
setarch -R true 2>/dev/null || skip "address-space randomisation cannot be switched off here"
export XDG_CACHE_HOME=$scratch/cache LANG=C
n_samples=${LOCUS_REPLAY_SAMPLES:-3000}
gcc -g -O1 -no-pie -o "$scratch/program" "$srcdir/tests/e2e/programs/replay.c"
cd "$scratch"

# make KIND ADDRESSES N: the ring and what it must give.
make_ring() {
    python3 "$srcdir/tests/golden/make-replay.py" "$1" "$2" ring expected --samples "$3"
}

# measure: runs the program over the ring, its addresses into $1.
measure() {
    rm -rf measured database
    expect_status 0 timeout 120 setarch -R "$builddir/hpcrun" -ds -o measured -e REPLAY:ring ./program
    cp out "$1"
}

setarch -R ./program >native
for kind in pebs batch ibs power spe hostile; do
    make_ring "$kind" native 0
    measure before
    make_ring "$kind" before "$n_samples"
    measure after
    cmp -s before after || {
        skip_part "$kind: two runs of a program put its blocks at different places"
        continue
    }
    expect_status 0 python3 "$srcdir/tests/lib/check-fates.py" measured --processes 1 --threads 1
    case $kind in
        batch | spe | hostile)
            cat measured/*.log >log
            expect_text log 'is read many samples at a time: .* no call paths'
            ;;
    esac
    expect_status 0 timeout 120 "$builddir/hpcprof" -o database measured
    expect_status 0 python3 "$srcdir/tests/lib/check-v4.py" database
    expect_status 0 "$builddir/hpcquery" vars --csv database
    mv out report
    expect_status 0 python3 "$srcdir/tests/lib/check-replay.py" measured expected report "$builddir/hpcproftt"
    sed "s/^/$kind: /" out
    # Loads of lines that another core has modified are a candidate for sharing, and advice, wherever there are enough.
    if [ "$kind" = pebs ]; then
        "$builddir/hpcquery" vars --json database >vars.json || fail "no JSON"
        "$builddir/hpcquery" sharing --json database >sharing.json || fail "no JSON of lines"
        "$builddir/hpcquery" advice --json --min 0 --top 0 database >advice.json || fail "no advice"
        python3 - report >out 2>&1 <<'END' || fail "HITM: $(cat out)"
import csv, json, sys
def samples(row, *metrics):
    return sum(int(row.get(f"samples:{metric}") or 0) for metric in metrics)
modified = {row["variable"]: (samples(row, "MEM-hitm-local", "MEM-hitm-rmt"), samples(row, "MEM-Load"))
            for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")) if not row["variable"].startswith("<")}
wanted = {name for name, (n, loads) in modified.items() if n >= 20 and 10 * n >= loads}
advised = {row["variable"] for row in json.load(open("vars.json", encoding="utf-8"))["variables"]
           if row["advice"] and "modified in another core's cache" in row["advice"]}
seen = {line["variable"] for line in json.load(open("sharing.json", encoding="utf-8"))["lines"] if line["seen_modified"]}
ruled = {row["variable"] for row in json.load(open("advice.json", encoding="utf-8"))["advice"] if row["rule"] == "shared-lines"}
assert len(wanted) >= 3 and advised == wanted == seen == ruled, (modified, wanted, advised, seen, ruled)
END
    fi
done

# What this kernel writes, recorded and replayed: as many samples, all of them sound.
if works rings; then
    expect_status 0 python3 "$srcdir/tests/golden/record-ring.py" --hpcrun "$builddir/hpcrun" FAULTS@1 live ./program
    n_recorded=$(sed -n 's/^\([0-9]*\) pieces in live$/\1/p' err)
    [ "${n_recorded:-0}" -gt 20 ] || fail "only ${n_recorded:-no} faults were recorded"
    rm -rf measured
    expect_status 0 timeout 60 "$builddir/hpcrun" -ds -o measured -e REPLAY:live ./program
    expect_status 0 python3 "$srcdir/tests/lib/check-fates.py" measured --min-taken "$n_recorded"
    cat measured/*.log >log
    expect_text log "EVENT SUMMARY: taken: $n_recorded, overflows: $n_recorded,"
else
    skip_part "nothing can be recorded here"
fi

# Files that are none, or damaged.
printf 'nothing\n' >bad
expect_status 1 "$builddir/hpcrun" --strict -o measured-bad -e REPLAY:bad ./program
expect_text err 'bad: line 1: no recorded ring'
expect_status 1 "$builddir/hpcrun" --strict -o measured-bad -e REPLAY:missing ./program
expect_text err 'missing: cannot be read: No such file'
printf 'LOCUS-RING 1\nmode signal\nring_bytes 5000\n\n' >bad
expect_status 2 "$builddir/hpcrun" --strict -o measured-bad -e REPLAY:bad ./program
expect_text err 'ring_bytes 5000 is not a power of two'
head -c 5004 ring >bad # in the middle of a piece
rm -rf measured
expect_status 0 timeout 60 "$builddir/hpcrun" -ds -o measured -e REPLAY:bad ./program
cat measured/*.log >log
expect_text log 'the replay ends early'
finish
