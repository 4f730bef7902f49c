#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# On which CPU each page of an array is touched, of threads that are bound to CPUs: every page fault, by variable and
# CPU, against what the program says; and the cores, packages and nodes of these CPUs, against the kernel's files.
# shellcheck source-path=SCRIPTDIR/../lib
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
for tool in hpcrun hpcprof hpcquery; do
    [ -x "$builddir/$tool" ] || skip "$tool has not been built"
done
need gcc python3
need_machine rings # of page faults
export XDG_CACHE_HOME=$scratch/cache

mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
[ "${#cpus[@]}" -ge 2 ] || skip "only one CPU may be used here"
first=${cpus[0]} second=${cpus[-1]}

gcc -g -O1 -pthread -D_GNU_SOURCE -o "$scratch/pinned" "$srcdir/tests/e2e/programs/pinned.c"
"$scratch/pinned" "$first" "$second" >"$scratch/truth"
for event in FAULTS@1 FAULTS@ring; do
    rm -rf "$scratch/m" "$scratch/db"
    expect_status 0 timeout 60 "$builddir/hpcrun" -e "$event" -o "$scratch/m" "$scratch/pinned" "$first" "$second"
    expect_status 0 timeout 60 "$builddir/hpcprof" -q -o "$scratch/db" "$scratch/m"
    expect_status 0 python3 "$srcdir/tests/lib/check-cpus.py" "$builddir/hpcquery" "$scratch/db" "$scratch/truth"
done

# The topology is known to who reads at once, however long reading it took. hwloc reads the pipe in place of the machine.
mkfifo "$scratch/machine"
(sleep 1 && cat "$scratch"/m/topology-*.xml >"$scratch/machine") &
expect_status 0 env HWLOC_XMLFILE="$scratch/machine" timeout 60 "$builddir/hpcrun" -e FAULTS@1 -o "$scratch/slow" "$scratch/pinned" "$first" "$second"
expect_status 0 timeout 60 "$builddir/hpcprof" -q -o "$scratch/slow-db" "$scratch/slow"
expect_status 0 python3 "$srcdir/tests/lib/check-cpus.py" "$builddir/hpcquery" "$scratch/slow-db" "$scratch/truth"
finish
