#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Blocks far below the threshold (small-blocks.cc) are known by where they were allocated: through wrappers and
# containers, by threads whose blocks others walk and free, before and after a fork; and nothing else about the programs
# changes. By construction: which blocks are walked, and how often.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
perf_works || skip "perf is refused here, and timers are too slow"
need python3 g++
cd "$scratch"
g++ -O2 -g -pthread "$srcdir/tests/e2e/small-blocks.cc" -o small || {
    fail "small-blocks.cc does not build"
    finish
}
g++ -O0 -g -pthread "$srcdir/tests/e2e/small-blocks.cc" -o plain
g++ -O2 -pthread "$srcdir/tests/e2e/small-blocks.cc" -o bare

# measure PROGRAM WAY: the same output as natively; the table of variables goes to rows.csv. Of the samples of rows one in
# 250 may lie at the smaller ones: there are four times as many.
measure() {
    local event=EADDR
    [ "$2" != rows ] || event=EADDR@f4000
    expect_status 0 "./$1" "$2"
    cp out native
    expect_status 0 "$builddir/hpcrun" -e "$event" -o "$1.$2" "./$1" "$2"
    sed -n 's/^truth //p' err >truth
    cmp -s native out || fail "$1 $2: another output"
    python3 "$srcdir/tests/lib/check-fates.py" "$1.$2" --min-taken 50 >fates || fail "$1 $2: $(cat fates)"
    expect_status 0 "$builddir/hpcprof" -o "$1.$2.db" "$1.$2"
    expect_status 0 "$builddir/hpcquery" vars --csv "$1.$2.db"
    cp out rows.csv
}

# expect PROGRAM WAY CONDITION...: over site("name"), the share of the rows allocated in a function whose name holds
# that, named("text"), that of the rows whose name does, small, that of <small block>, and truth, what the program says.
expect() {
    local program=$1 way=$2
    shift 2
    python3 - rows.csv "$@" <<'PYTHON' || fail "$program $way"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
def site(name):
    return sum(float(r["share"]) for r in rows if r["class"] == "heap" and name in r["alloc_site"])
def named(text):
    return sum(float(r["share"]) for r in rows if text in r["variable"])
small = named("<small block>")
truth = float(open("truth", encoding="utf-8").read() or "nan")
bad = [condition for condition in sys.argv[2:] if not eval(condition)]
for row in sorted(rows, key=lambda r: -float(r["share"]))[:8]:
    print(f'   {float(row["share"]):5.1f} % {row["variable"]} [{row["alloc_site"]}]')
for condition in bad:
    print(f"does not hold: {condition}")
sys.exit(bool(bad))
PYTHON
}

measure small rows
expect small rows "small <= 5" 'site("fill") > 60' 'named("values[i]") > 0' 'named("columns[i]") > 0'
measure small containers
expect small containers "small <= 5" 'site("containers") > 70'
measure plain containers
expect plain containers "small <= 5" 'site("containers") > 30' # the rest is on the stack, without optimisation
measure small callers
expect small callers "small <= 5" 'site("add_to_first") + site("add_to_second") > 70' \
    'abs(site("add_to_second") / (site("add_to_first") + site("add_to_second")) - truth) < 0.12'
measure plain callers
# Without optimisation much of the waiting shows at the sum, which is on the stack.
expect plain callers "small <= 5" 'site("add_to_first") > 8' 'site("add_to_second") > 8'
measure small late # whoever makes blocks is looked at again and again, within operator new, too
expect small late 'site("make_late") > 60'
measure small threads
expect small threads "small <= 5" 'site("make_in_thread") > 60'
measure small fork
expect small fork "small <= 5" 'site("add_to_first") + site("checked_malloc") > 20' 'site("add_to_second") > 20'

# Without debug information and variables: sizes and functions.
measure bare rows
expect bare rows "small <= 5" 'named("blocks of 216 B from ") > 20' 'named("blocks of 108 B from ") > 0'

# Libraries that are loaded one after the other at the same addresses, in turns.
for name in first second; do
    $CC -O1 -g -shared -fPIC -DNAME="$name" "$srcdir/tests/e2e/small-reused.c" -o "lib_$name.so"
done
$CC -O1 -g "$srcdir/tests/e2e/small-reused.c" -o reused
if ./reused 4 >/dev/null; then
    for turns in 1 4; do
        measure reused "$turns"
        for kind in make copy; do
            expect reused "$turns" 'small <= 5' "site('first_$kind') + site('second_$kind') > 20" \
                "0.4 < site('first_$kind') / max(1, site('second_$kind')) < 2.5"
        done
    done
else
    skip_part "the loader puts the libraries elsewhere each time"
fi

# Blocks that come and go as fast as they can have no records after a while, unless their number is asked for; a tree that
# is built and given up keeps its own. The loop of churn lasts 0.6 s of CPU time and touches every block it makes.
cat >churn.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { WINDOW = 64, TREE = 150000 };
static char *window[WINDOW], *tree[TREE];
static long n_made, n_kept;
static volatile long sum;
__attribute__((noinline)) static char *make_two(void)
{
    return memset(malloc(2000), 1, 2000);
}
__attribute__((noinline)) static char *make_five(void)
{
    return memset(malloc(5000), 2, 5000);
}
static void churn(void)
{
    clock_t from = clock();
    for (; clock() - from < CLOCKS_PER_SEC * 6 / 10;)
        for (int i = 0; i < 4096; i++, n_made++) {
            free(window[i % WINDOW]);
            window[i % WINDOW] = i % 4 ? make_two() : make_five();
            for (int k = 0; k < 2000; k += 64)
                sum += window[i % WINDOW][k];
        }
    fprintf(stderr, "truth %ld\n", n_made);
}
static void build(void)
{
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < TREE; i++, n_kept++)
            tree[i] = malloc(1040);
        for (int i = 0; i < TREE; i++)
            free(tree[i]);
    }
    clock_t from = clock();
    for (long *at = calloc(1 << 12, 8); clock() - from < CLOCKS_PER_SEC / 4;)
        for (int i = 0; i < 1 << 12; i++)
            at[i]++;
    fprintf(stderr, "truth %ld\n", n_kept);
}
int main(int argc, char **argv)
{
    strcmp(argv[argc - 1], "churn") == 0 ? churn() : build();
    return 0;
}
END
$CC -O2 -g churn.c -o churn
# blocks DATABASE: how many blocks of churn.c were recorded; noted DATABASE: whether the note about their threshold stands.
blocks() {
    "$builddir/hpcquery" leaks --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["allocated"]["blocks"])'
}
noted() {
    "$builddir/hpcquery" leaks --json "$1" | grep -q " came and went "
}
measure churn churn
n_made=$(cat truth)
if [ "$n_made" -lt 300000 ]; then
    skip_part "this machine makes only $n_made blocks in 0.6 s: not too many to record them all"
else
    noted churn.churn.db || fail "churn: no note about blocks without records"
    [ "$(blocks churn.churn.db)" -lt $((n_made / 2)) ] || fail "churn: $(blocks churn.churn.db) of $n_made were recorded"
    expect churn churn "small <= 5" 'named("window[i%WINDOW]") > 10'
fi
DATACENTRIC_MIN_BYTES=1k measure churn churn
noted churn.churn.db && fail "churn, asked for: it has the note"
[ "$(blocks churn.churn.db)" -ge "$(cat truth)" ] || fail "churn, asked for: $(blocks churn.churn.db) of $(cat truth)"
measure churn build
noted churn.build.db && fail "build: it has the note"
[ "$(blocks churn.build.db)" -ge "$(cat truth)" ] || fail "build: $(blocks churn.build.db) of $(cat truth)"

# Memory that the program itself takes from the break, where small blocks were that have been freed since.
cat >break.c <<'END'
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
enum { N = 100000, WORDS = 1 << 20 };
static long *blocks[N];
__attribute__((noinline)) static long *make_freed(void)
{
    return calloc(1, 96);
}
int main(void)
{
    for (int i = 0; i < N; i++)
        blocks[i] = make_freed();
    for (int i = 0; i < N; i++)
        free(blocks[i]);
    malloc_trim(0);
    volatile long *taken = sbrk(WORDS * sizeof *taken);
    clock_t from = clock();
    while (clock() - from < CLOCKS_PER_SEC / 2)
        for (long i = 0; i < WORDS; i++)
            taken[i * 7919 % WORDS] += i;
    return 0;
}
END
$CC -O1 -g -o break break.c
measure break once
expect break once 'named("taken") > 20' 'site("make_freed") <= 5'

# Switched off, and below the threshold that the user chose: as before.
export DATACENTRIC_SMALL_SITES=0
measure small threads
expect small threads 'site("make_in_thread") == 0'
unset DATACENTRIC_SMALL_SITES
export DATACENTRIC_MIN_BYTES=32
measure small fork
expect small fork "small <= 5" 'site("add_to_first") > 8'

# Blocks below a high threshold that malloc maps for themselves, or that have no note because of their size.
$CC -O2 -g "$srcdir/tests/e2e/mid-blocks.c" -o mid
for threshold in 100000000 1g; do
    export DATACENTRIC_MIN_BYTES=$threshold
    measure mid blocks
    expect mid blocks 'named("<no block>") + small <= 5' 'named("mapped") > 20' 'named("moved") > 20' \
        'named("broken") > 5' 'all(r["n_blocks"] in ("", "0") for r in rows if r["class"] == "heap")'
done
finish
