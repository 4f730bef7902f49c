#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Libraries that are loaded with RTLD_DEEPBIND or by dlmopen call another malloc and free than ours: their calls are
# redirected, or the reports say what is not seen. What the program does never changes. By construction: 1.5 million steps
# through one array, each of which waits for the one before.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
need python3
cd "$scratch"
mkdir far
$CC -O2 -g "$srcdir/tests/e2e/deepbind-host.c" -ldl -o host
$CC -O2 -g "$srcdir/tests/e2e/deepbind-host.c" -ldl -Wl,--enable-new-dtags,-rpath,"$scratch/far" -o finder
plugin() {
    $CC -O1 -g -shared -fPIC "$srcdir/tests/e2e/deepbind-plugin.c" -o "$1" "${@:2}" || fail "$1 does not build"
}
plugin now.so -Wl,-z,relro,-z,now
plugin lazy.so -Wl,-z,lazy
plugin own.so -DOWN -Wl,-z,lazy
plugin far/found.so

# measure NAME PROGRAM LIBRARY MODE [OPTION...]: the same output as natively; tables to rows.csv and leaks.
measure() {
    local name=$1
    expect_status 0 "./$2" "$3" "$4"
    cp out native
    expect_status 0 "$builddir/hpcrun" -e EADDR@f4000 --leaks "${@:5}" -o "$name.m" "./$2" "$3" "$4"
    cmp -s native out || fail "$name: another output"
    expect_status 0 "$builddir/hpcprof" -q -o "$name.d" "$name.m"
    expect_status 0 "$builddir/hpcquery" vars --csv --top 0 "$name.d"
    cp out rows.csv
    expect_status 0 "$builddir/hpcquery" leaks --top 0 "$name.d"
    tr -s ' \n' ' ' <out >leaks
    expect_status 0 "$builddir/hpcquery" leaks --json "$name.d"
    cp out leaks.json
}

# expect NAME CONDITION...: over share("name").
expect() {
    python3 - rows.csv "${@:2}" <<'PYTHON' || fail "$1"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
def share(name):
    return sum(float(r["share"]) for r in rows if r["variable"] == name)
bad = [condition for condition in sys.argv[2:] if not eval(condition)]
for condition in bad:
    print(f"does not hold: {condition}:", {r["variable"]: r["share"] for r in rows})
sys.exit(bool(bad))
PYTHON
}
says() {
    grep -q -- "$2" leaks || fail "$1: no '$2' in $(cat leaks)"
    python3 - "$2" <leaks.json <<'PYTHON' || fail "$1: JSON says less"
import json, sys
sys.exit(not any(sys.argv[1] in note for note in json.load(open("leaks.json", encoding="utf-8"))["notes"]))
PYTHON
}
has_no_leak() {
    ! grep -q 'field\|plug_name' leaks || fail "$1: a leak that is none: $(cat leaks)"
}

for way in "now.so now" "now.so lazy" "lazy.so now" "lazy.so lazy"; do
    read -r library mode <<<"$way"
    measure "$library-$mode" host "./$library" "$mode"
    expect "$way" 'share("field") > 60' 'share("<small block>") == 0' 'share("<no block>") < 20'
    has_no_leak "$way"
    says "$way" "RTLD_DEEPBIND, whose calls of malloc and free were redirected"
    grep -q "$library is loaded with RTLD_DEEPBIND" "$library-$mode.m"/*.log || fail "$way: the log does not name it"
done

# Not redirected: nothing below the break is called small, and what is said of live blocks is said to be uncertain.
HPCRUN_DEEPBIND=0 measure left host ./now.so now
expect left 'share("field") == 0' 'share("<small block>") == 0' 'share("<no block>") > 60'
says left "whose calls of malloc and free are not seen"
says left " freed unseen"

measure dropped host ./now.so now --no-deepbind
expect dropped 'share("field") > 60'
has_no_leak dropped
says dropped "but for --no-deepbind"

# In a namespace of its own it has another libc: said, and the code there has its name.
measure apart host ./now.so apart
expect apart 'share("field") == 0' 'share("<no block>") > 60'
says apart "into a namespace of its own (dlmopen), which has a libc of its own"
grep -q "now.so is loaded into a namespace of its own" apart.m/*.log || fail "apart: the log does not name it"

# An allocator of its own stays its own; and a library that is found by the path of who calls dlopen is found.
measure own host ./own.so lazy
grep -q '^mine -$' native || fail "the plugin's own malloc is not used natively: $(cat native)"
measure found finder found.so now
says found "are not seen"
finish
