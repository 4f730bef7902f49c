#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every page fault of a program whose arrays are touched page by page: each variable has its pages, under its name, by
# signal and by ring, position-independent and not. One page more or less is the allocator's, which writes its header.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
for tool in hpcrun hpcprof hpcquery; do
    [ -x "$builddir/$tool" ] || skip "$tool has not been built"
done
need gcc python3
need_machine rings # of page faults
export XDG_CACHE_HOME=$scratch/cache

# measure PROGRAM EVENT TRUTH: one run; TRUTH has lines "variable pages".
measure() {
    rm -rf "$scratch/m" "$scratch/db"
    expect_status 0 timeout 60 "$builddir/hpcrun" -e "$2" -o "$scratch/m" "$scratch/$1"
    expect_status 0 timeout 60 "$builddir/hpcprof" -o "$scratch/db" "$scratch/m"
    expect_status 0 python3 "$srcdir/tests/lib/check-v4.py" "$scratch/db"
    expect_status 0 "$builddir/hpcquery" vars --csv "$scratch/db"
    python3 - "$scratch/out" "$3" "$1 $2" <<'PYTHON' || fail "$1 with $2"
import csv
import sys

rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
wrong = False
for line in open(sys.argv[2], encoding="utf-8"):
    name, pages, *sites = line.split()
    found = [r for r in rows if r["variable"] == name and r["class"] in ("heap", "static") and float(r["samples"]) > 1
             and (not sites or r["alloc_site"].startswith(sites[0]))]
    measured = sum(float(r["samples"]) for r in found)
    fine = abs(measured - float(pages)) <= max(1, len(found))
    wrong |= not fine
    print(f"{sys.argv[3]}: {name}: {pages} pages, measured {measured:g}{'' if fine else ' WRONG'}")
strange = [r for r in rows if r["class"] == "unknown" and r["variable"] == "<no block>" and float(r["samples"]) > 24]
if strange:
    print(f"{sys.argv[3]}: {strange[0]['samples']} faults in no block: {strange[0]['top_lines']}")
sys.exit(wrong or bool(strange))
PYTHON
}

# both SOURCE NAME TRUTH: the program built in both ways, measured in both ways.
both() {
    local kind event
    for kind in pie no-pie; do
        gcc -g -O1 -pthread -"$kind" -o "$scratch/$2-$kind" "$1"
        [ -e "$3" ] || "$scratch/$2-$kind" >"$3"
        for event in FAULTS@1 FAULTS@ring; do
            measure "$2-$kind" "$event" "$3"
        done
    done
}

both "$srcdir/tests/e2e/programs/first-touch.c" first-touch "$scratch/truth"

# The demonstration program of the original tool, where it is at hand. Its pages need 4 KiB mappings.
demo=${LOCUS_SHARED_DATA:-$srcdir/../shared/data}/hpctoolkit/datacentric-03.10/dcdemo.c
if [ ! -e "$demo" ]; then
    skip_part "dcdemo.c of the original tool's data is not here"
elif grep -q '\[always\]' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null; then
    skip_part "huge pages are always on here, and dcdemo.c does not turn them off"
else
    printf '%s\n' 'heap_a 1024 make_a' 'heap_b 2048' 'heap_c 1024' 'heap_a 7168 main' 'global_grid 2048' \
        'static_table 1024' >"$scratch/demo-truth"
    both "$demo" dcdemo "$scratch/demo-truth"
fi
finish
