#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hpcrun --report: the program, then its report, all in one command; the exit status is the program's.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
[ -e "$builddir/.libs/libhpcrun.so" ] || skip "libhpcrun.so has not been built"
[ -x "$builddir/hpcprof" ] && [ -x "$builddir/hpcquery" ] || skip "hpcprof and hpcquery have not been built"
cd "$scratch"

cat >sweep.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(void)
{
    size_t n = 4u << 20;
    long *table = calloc(n, sizeof *table), sum = 0;
    while (clock() < CLOCKS_PER_SEC)
        for (size_t i = 0, k = 1; i < 100000; i++, k = k * 6364136223846793005u + 1442695040888963407u)
            sum += ++table[(k >> 40) % n];
    printf("sum %s\n", sum > 0 ? "positive" : "negative");
    free(table);
    return 6;
}
END
$CC -O2 -g sweep.c -o sweep
expect_status 6 "$builddir/hpcrun" --report -o found ./sweep
[ "$(head -n 1 "$scratch/out")" = 'sum positive' ] || fail "the program's output does not come first"
expect_text "$scratch/out" '% .*(table|main \(sweep.c:7\)) .*heap'
expect_text "$scratch/err" '^hpcrun: datacentric: '
[ -e found-database ] || fail "no database: $(ls)"
! grep -q 'still runs' "$scratch/out" || fail "the report was made before the measurement was complete"
[ -z "$(find found -name '.writing-*')" ] || fail "the directory is still marked"

# Processes before the program proper that end before their first EADDR sample do not make it a report of page faults.
cp "$(type -P true)" a-first
expect_status 6 "$builddir/hpcrun" --report -o wrapped sh -c './a-first; ./a-first; ./sweep'
expect_text "$scratch/out" '^samples  *[0-9]+ of EADDR'
finish
