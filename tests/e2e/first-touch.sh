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

# What first touches take of the time in user mode: a loop fills new pages, which are in the caches as the kernel has just
# cleared them, and in turns pages that are there and in the second-level cache. The difference is of first touches, and
# nothing waits for memory. Passes that are not timed are sampled: over new pages, or over as many that are there.
cat >"$scratch/fill.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#define N (1u << 23)
#define N_NEAR (1u << 15)
__attribute__((weak)) void hpctoolkit_sampling_start(void);
__attribute__((weak)) void hpctoolkit_sampling_stop(void);
static double user_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
}
static double *map(void)
{
    double *values = mmap(NULL, N * sizeof *values, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (values == MAP_FAILED)
        exit(1);
    madvise(values, N * sizeof *values, MADV_NOHUGEPAGE);
    return values;
}
__attribute__((noinline)) static void fill(double *values, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        values[i] = i;
}
/* n of the values at a time, all the same or one after the other. */
static double pass(double *kept, unsigned n, int is_sampled)
{
    double *values = kept ? kept : map();
    if (is_sampled && hpctoolkit_sampling_start)
        hpctoolkit_sampling_start();
    double start = user_s();
    for (unsigned i = 0; i < N; i += N_NEAR)
        fill(values + i % n, N_NEAR);
    start = user_s() - start;
    if (is_sampled && hpctoolkit_sampling_stop)
        hpctoolkit_sampling_stop();
    if (!kept)
        munmap(values, N * sizeof *values);
    return start;
}
int main(int argc, char **argv)
{
    double *kept = map(), of_new = 0, of_near = 0, sampled = 0;
    int is_new = argc > 1 && strcmp(argv[1], "new") == 0;
    fill(kept, N);
    for (int i = 0; sampled < 0.7; i++) {
        sampled += pass(is_new ? NULL : kept, N, 1);
        of_new += pass(NULL, N, 0);
        of_near += pass(kept, N_NEAR, 0);
    }
    printf("%.9f\n", of_near / of_new);
    return 0;
}
END
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    # Of vectors about half is told only (doc/guide.md): the self-test knows loops of plain stores.
    "$compiler" -O2 -g -fno-tree-vectorize "$scratch/fill.c" -o "$scratch/fill"
    for way in new kept; do
        name=$compiler-$way
        "$builddir/hpcrun" -ds -e EADDR -e FAULTS -o "$scratch/$name.m" "$scratch/fill" $way >"$scratch/$name.part" \
            2>"$scratch/errors" || fail "$name: $(cat "$scratch/errors")"
        "$builddir/hpcprof" -q -o "$scratch/$name.db" "$scratch/$name.m"
        "$builddir/hpcquery" vars --json "$scratch/$name.db" >"$scratch/$name.json"
    done
    if ! "$builddir/hpcrun" --doctor 2>/dev/null | grep -q "first touch of a page takes"; then
        skip_part "the skid self-test says nothing of first touches here"
        continue
    fi
    python3 - "$scratch" "$compiler" <<'PYTHON' || fail "$compiler: first touches are not told from the rest"
import json, pathlib, sys
scratch, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
sums = {}
for way in ("new", "kept"):
    part = float((scratch / f"{compiler}-{way}.part").read_text())
    report = json.loads((scratch / f"{compiler}-{way}.json").read_text())
    sums[way] = part, *(report[key] for key in ("first_touch_share", "memory_share", "memory_low", "memory_high"))
new, kept = sums["new"], sums["kept"]
touches = 100 * (1 - new[0])
print(f"{compiler}: {touches:.0f} % of the time over new pages are first touches, by the report {new[1]:.0f} %, memory "
      f"{new[2]:.0f} % ({new[3]:.0f}-{new[4]:.0f}); over pages that are there {kept[1]:.0f} %")
is_right = 0.25 * new[1] <= touches <= max(1.75 * new[1], new[1] + 10) and new[1] >= 5 and kept[1] <= 5 and (new[2] <= 10 or new[3] <= 0)
sys.exit(not is_right)
PYTHON
done
finish
