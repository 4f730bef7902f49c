#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The sources beside each other over real programs: every file of a run is dumped by hpcproftt, traces name nodes of
# their profiles, and the database of each kind of run (one thread, OpenMP, forked processes) obeys the rules of readers.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
for tool in hpcrun hpcprof hpcproftt hpcquery; do
    [ -x "$builddir/$tool" ] || skip "$tool has not been built"
done
need gcc python3
need_machine rings # of page faults
export XDG_CACHE_HOME=$scratch/cache OMP_NUM_THREADS=2

# run NAME COMMAND...: measures into $scratch/NAME with the options before --, makes the database, checks both.
run() {
    local name=$1 file
    shift
    expect_status 0 timeout 60 "$builddir/hpcrun" -o "$scratch/$name" "$@"
    cp "$scratch/err" "$scratch/$name.err"
    for file in "$scratch/$name"/*.hpcrun "$scratch/$name"/*.hpctrace "$scratch/$name"/*.log; do
        [ -e "$file" ] || continue
        expect_status 0 "$builddir/hpcproftt" "$file"
        [ -s "$scratch/out" ] || fail "hpcproftt says nothing of $file"
    done
    expect_status 0 timeout 60 "$builddir/hpcprof" --xml "$scratch/$name.xml" -o "$scratch/$name.db" "$scratch/$name"
    expect_status 0 python3 "$srcdir/tests/lib/check-database.py" "$scratch/$name.xml"
    [ ! -s "$scratch/out" ] || sed 's/^/    | /' "$scratch/out"
    expect_status 0 python3 "$srcdir/tests/lib/check-v4.py" "$scratch/$name.db"
    [ ! -s "$scratch/out" ] || sed 's/^/    | /' "$scratch/out"
    expect_status 0 "$builddir/hpcquery" vars --csv "$scratch/$name.db"
}

# metrics NAME: the names of the metrics in the profiles of a run.
metrics() {
    local file
    for file in "$scratch/$1"/*.hpcrun; do
        "$builddir/hpcproftt" --json "$file"
    done | python3 -c 'import json, sys
text, at, names = sys.stdin.read(), 0, set()
while text[at:].strip():
    at += len(text[at:]) - len(text[at:].lstrip())
    profile, at = json.JSONDecoder().raw_decode(text, at)
    stack = [profile]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            names |= {m["name"] for m in value.get("metrics", []) if isinstance(m, dict) and "name" in m}
            stack += value.values()
        elif isinstance(value, list):
            stack += value
print("\n".join(sorted(names)))' >"$scratch/metrics"
}

cat >"$scratch/busy.c" <<'PROGRAM'
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *leak;
static double spin(double *a, long n, int rounds)
{
    double sum = 0;
    for (int k = 0; k < rounds; k++)
#pragma omp parallel for reduction(+ : sum)
        for (long i = 0; i < n; i++)
            sum += a[i] += k;
    return sum;
}
int main(int argc, char **argv)
{
    long n = 1 << 18;
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
        if (fork() == 0)
            break;
    double *array = calloc(n, sizeof *array);
    leak = malloc(50000);
    printf("%g\n", spin(array, n, 800));
    free(array);
    while (wait(NULL) > 0)
        ;
    return 0;
}
PROGRAM
gcc -g -O1 -o "$scratch/busy" "$scratch/busy.c"
gcc -g -O1 -fopenmp -o "$scratch/busy-omp" "$scratch/busy.c" 2>"$scratch/err" || skip_part "no OpenMP here"

run several -t -e EADDR@f500 -e FAULTS@1 -e CPUTIME -e MEMLEAK -- "$scratch/busy"
metrics several
for name in EADDR FAULTS CPUTIME 'Bytes Leaked'; do
    expect_text "$scratch/metrics" "^$name"
done
expect_text "$scratch/out" '^"?array"?,heap,'

# A trace is of version 01.01, and each of its nodes is in the profile beside it.
python3 - "$scratch/several" <<'PYTHON' || fail "the trace of the run does not fit its profile"
import pathlib
import struct
import sys

traces = list(pathlib.Path(sys.argv[1]).glob("*.hpctrace"))
for path in traces:
    data = path.read_bytes()
    assert data[:18] == b"HPCRUN-trace______" and data[18:23] == b"01.01", data[:32]
    body = data[32:]
    width = 16 if data[31] & 1 else 12
    records = [struct.unpack_from(">QI", body, at) for at in range(0, len(body) - 11, width)]
    assert len(records) > 20 and [t for t, _ in records] == sorted(t for t, _ in records)
    profile = path.with_suffix(".hpcrun").read_bytes()
    for node in {node for _, node in records}:
        assert struct.pack(">i", node) in profile or struct.pack(">i", -node) in profile, node
assert traces
PYTHON

run memleak -e MEMLEAK -- "$scratch/busy"
metrics memleak
expect_text "$scratch/metrics" '^Bytes Leaked'

run wallclock -e REALTIME@f200 -- "$scratch/busy"
expect_text "$scratch/wallclock.err" 'warning: .*REALTIME'
metrics wallclock
expect_text "$scratch/metrics" '^REALTIME'

run forked -- "$scratch/busy" 2
[ "$(find "$scratch/forked" -name '*.log' | wc -l)" = 3 ] || fail "three processes left other than three logs"
[ ! -x "$scratch/busy-omp" ] || run openmp -t -- "$scratch/busy-omp"
finish
