#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that say which blocks their pools hand out (locus.h, heaptrack's API, ITT's heap functions) are shown by
# these blocks and not by the slab; without the profiler they run the same.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
need python3
cd "$scratch"

for api in 1 2 3; do
    $CC -O1 -g -DAPI=$api -I"$srcdir/src" "$srcdir/tests/e2e/pools.c" -o "pools$api" -ldl
    expect_status 0 "./pools$api"
    cp out native
    expect_status 0 "$builddir/hpcrun" -e EADDR -o "m$api" "./pools$api"
    cmp -s native out || fail "API $api: another output"
    expect_status 0 "$builddir/hpcprof" -o "db$api" "m$api"
    expect_status 0 "$builddir/hpcquery" vars --csv "db$api"
    python3 - "$api" out <<'PYTHON' || fail "API $api: $(cat out)"
import csv, sys
share = {}
for row in csv.DictReader(open(sys.argv[2], encoding="utf-8")):
    share[row["variable"]] = share.get(row["variable"], 0) + float(row["share"])
hot, cold = share.get("hot", 0), share.get("cold", 0)
print(f"API {sys.argv[1]}: hot {hot:.1f} %, cold {cold:.1f} %, gone {share.get('gone', 0):.1f} %, slab {share.get('slab', 0):.1f} %, rest {share.get('rest', 0):.1f} %")
assert hot > 1.7 * cold > 0 and hot + cold > 70, share
assert share.get("gone", 0) < 3, share
PYTHON
done
finish
