#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What threads cost: creating and joining one, and a hundred thousand with ten thousand alive at once.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
ulimit -n "$(ulimit -Hn)"
$CC -O2 -g -pthread "$srcdir/tests/e2e/programs/many-threads.c" -o "$scratch/many-threads"
cat >"$scratch/create.c" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static void *nothing(void *argument) { return argument; }
int main(void)
{
    struct timespec start, end;
    pthread_t thread;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (int i = 0; i < 5000; i++) {
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%f\n", ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / 5000 / 1000);
    return 0;
}
END
$CC -O2 -pthread "$scratch/create.c" -o "$scratch/create"
PYTHONPATH=$srcdir/tests/bench python3 - "$builddir/hpcrun" "$scratch" "${1:-7}" <<'END'
import glob, re, shutil, sys
import compare
hpcrun, scratch, n_rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
def measured(*options):
    def words():
        shutil.rmtree(f"{scratch}/m", ignore_errors=True)
        return [hpcrun, "-o", f"{scratch}/m", *options, f"{scratch}/create"]
    return words
rows = compare.in_turn({"native": [f"{scratch}/create"], "hpcrun": measured(), "one": measured("-e", "EADDR"),
                        "none": measured("-e", "MEMLEAK")}, n_rounds, lambda run: float(run.out))
for name, title in (("hpcrun", "two events (the default)"), ("one", "one event"), ("none", "no event")):
    added = [a - b for a, b in zip(rows[name][0], rows["native"][0])]
    print(f"create and join a thread, {title}: {compare.median(added):+.1f} us of CPU time to "
          f"{compare.median(rows['native'][0]):.1f} us (goal 50)")
native = compare.Run([f"{scratch}/many-threads", "10000", "10"])
shutil.rmtree(f"{scratch}/m", ignore_errors=True)
run = compare.Run([hpcrun, "-o", f"{scratch}/m", f"{scratch}/many-threads", "10000", "10"])
if native.status or run.status:
    print("SKIP (part): this machine does not run ten thousand threads")
    sys.exit(0)
memory = [int(re.search(r"memory (\d+)", text).group(1)) for text in (native.out, run.out)]
late = int(re.search(r"memory \d+ (\d+)", run.out).group(1))
profiles = len(glob.glob(f"{scratch}/m/*.hpcrun"))
print(f"100,000 threads, 10,000 alive at once: {run.cpu_s:.1f} s of CPU time to {native.cpu_s:.1f} s, {profiles} profiles; "
      f"memory {memory[1] / 1024:.0f} MiB after 50,000, {late / 1024:.0f} MiB after all "
      f"({(memory[1] - memory[0]) / 10000:.0f} KiB for a live one)")
END
finish
