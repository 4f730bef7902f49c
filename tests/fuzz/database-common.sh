# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the fuzzers of what hpcprof reads, behind fuzz-common.sh.
# shellcheck disable=SC2154 # srcdir, builddir and scratch come from there

# database_seeds DATABASE_CORPUS EXTEND_CORPUS: measurements of a small program, and their databases.
database_seeds() {
    cat >"$scratch/app.c" <<'END'
#include <stdlib.h>
static double table[4000];
int main(int argc, char **argv)
{
    double *cells = malloc(100000 * sizeof *cells), sum = argc;
    for (int i = 0; i < 4000000; i++)
        sum += cells[i * 7919L % 100000] = table[i % 4000] += i;
    free(cells);
    return sum == 3 && argv;
}
END
    (
        cd "$scratch" || exit 1
        "${CC:-cc}" -O1 -g app.c -o app
        for events in "" "-e FAULTS" "-e CPUTIME -t" "-e MEMLEAK"; do
            # shellcheck disable=SC2086 # words of one option
            "$builddir/hpcrun" $events -o "m${events// /}" ./app 2>/dev/null || continue
            "$builddir/hpcprof" -o "d${events// /}" "m${events// /}" >/dev/null 2>&1 || true
        done
        python3 "$srcdir/tests/fuzz/database-seeds.py" m* d* "$1" "$2"
    )
}
