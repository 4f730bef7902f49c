#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A database that is extended by a later measurement of a program is that of both at once: names, types and fields of
# variables, and how the samples of a stack frame divide among its locals, which is another in each measurement.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache
cat >locals.c <<'CODE'
#include <stdlib.h>
struct pair { long key, weight; };
enum { N = 1 << 14 };
static __attribute__((noinline)) long add_keys(const struct pair *pairs, long turns)
{
    long sum = 0;
    for (long t = 0; t < turns; t++)
        for (int i = 0; i < N; i++)
            sum += ((volatile const struct pair *)pairs)[i].key;
    return sum;
}
static __attribute__((noinline)) long add_counts(const long *counts, long turns)
{
    long sum = 0;
    for (long t = 0; t < turns; t++)
        for (int i = 0; i < N; i++)
            sum += ((volatile const long *)counts)[i];
    return sum;
}
int main(int argc, char **argv)
{
    struct pair pairs[N];
    long counts[N];
    for (int i = 0; i < N; i++) {
        pairs[i] = (struct pair){i, argc};
        counts[i] = i;
    }
    return add_keys(pairs, atol(argv[1])) == add_counts(counts, atol(argv[2]));
}
CODE
"${CC:-gcc}" -O1 -g locals.c -o locals || skip "no compiler"
for turns in "24000 8000" "4000 28000"; do
    # shellcheck disable=SC2086 # words
    expect_status 0 "$builddir/hpcrun" -e datacentric -o "m-${turns%% *}" ./locals $turns
done
expect_status 0 "$builddir/hpcprof" -q -o whole m-24000 m-4000
expect_status 0 "$builddir/hpcprof" -q -o extended m-24000
expect_status 0 "$builddir/hpcquery" vars --csv extended
cp out before
expect_text before 'main\(\)::pairs'
expect_text before 'main\(\)::counts'
expect_status 0 "$builddir/hpcprof" -q -o extended --extend m-4000
# Memory, execution and first touches are judged by measurement, so those of both at once may differ from the sum; the columns still add up.
without_causes() {
    python3 -c '
import csv, sys
rows = list(csv.reader(sys.stdin))
at = [i for i, name in enumerate(rows[0]) if name.startswith(("memory_", "execution_", "unverified_", "first_touch_share", "touched_share"))]
names = rows[0]
for row in rows[1:]:
    cell = dict(zip(names, row))
    if cell.get("memory_share"):
        parts = sum(float(cell.get(name) or 0) for name in ("memory_share", "execution_share", "unverified_share", "first_touch_share"))
        if abs(parts - float(cell["share"])) > 0.05:
            sys.exit(f"{row}: the parts of the share make {parts}")
for row in rows:
    print(",".join(cell for i, cell in enumerate(row) if i not in at))
'
}
for options in "" "--fields"; do
    for database in whole extended; do
        expect_status 0 "$builddir/hpcquery" vars --csv $options $database
        without_causes <out | sort >"$database.csv" || fail "the parts of shares in $database do not add up"
    done
    expect_same whole.csv extended.csv
done
finish
