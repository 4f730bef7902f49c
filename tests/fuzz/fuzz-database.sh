#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzzes what hpcprof and hpcquery read: fuzz-database.sh SECONDS DIRECTORY, see fuzz-common.sh. The corpus begins with
# measurements of a small program, and with their databases.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
. "$LOCUS_SRCDIR/tests/fuzz/fuzz-common.sh"
fuzz_begin database "$1" "$2"
read -ra libraries < <(pkg-config --cflags --libs jansson hwloc libzstd 2>/dev/null || echo -ljansson -lhwloc)
fuzz_build "$srcdir"/src/{export,analysis,structure,fnbounds,fmt,sampling/abi}/*.c "$srcdir"/src/base/{error,scratch,spill,team,vec,workers}.c \
    "${libraries[@]}" -lpthread -ldw -lelf -lZydis -ldl -lm

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
cd "$scratch"
"$CC" -O1 -g app.c -o app
for events in "" "-e FAULTS" "-e CPUTIME" "-e MEMLEAK"; do
    # shellcheck disable=SC2086 # words of one option
    "$builddir/hpcrun" $events -o "m${events// /}" ./app 2>/dev/null || continue
    "$builddir/hpcprof" -o "d${events// /}" "m${events// /}" >/dev/null 2>&1 || true
done
python3 "$srcdir/tests/fuzz/database-seeds.py" m* d* "$corpus"
fuzz_run -max_len=60000
finish
