#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Nothing grows without limit: the files of a process stay below --max-size, a trace leaves room for the samples that
# come after it, and the log counts what was left out. LOCUS_BOUNDS_FAULTS changes how
# much a program records.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need_runtime
need_machine rings # of page faults
faults=${LOCUS_BOUNDS_FAULTS:-100000}
cd "$scratch"

cat >deep.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
/* deep FAULTS: that many page faults in each of two threads, on call paths as random numbers choose them, or, with a
 * second argument, on one. */
#define PAGES 256
static unsigned long n_faults;
static const char *is_plain;
static __attribute__((noinline)) void left(char *page, unsigned long path, int depth);
static __attribute__((noinline)) void right(char *page, unsigned long path, int depth)
{
    if (depth)
        (path & 1 ? left : right)(page, path >> 1, depth - 1);
    else
        *(volatile char *)page = 1;
    __asm__ volatile("" ::: "memory");
}
static __attribute__((noinline)) void left(char *page, unsigned long path, int depth)
{
    if (depth)
        (path & 1 ? left : right)(page, path >> 1, depth - 1);
    else
        *(volatile char *)page = 2;
    __asm__ volatile("" ::: "memory");
}
static void *run(void *unused)
{
    unsigned long path = 88172645463325252u;
    char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned long i = 0; i < n_faults; i++) {
        path ^= path << 13, path ^= path >> 7, path ^= path << 17;
        if (i % PAGES == 0)
            madvise(pages, PAGES * 4096, MADV_DONTNEED);
        left(pages + i % PAGES * 4096, is_plain ? 0 : path, is_plain ? 0 : 40);
    }
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    n_faults = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    is_plain = argc > 2 ? argv[2] : NULL;
    pthread_create(&thread, NULL, run, NULL);
    run(NULL);
    pthread_join(thread, NULL);
    return 4;
}
END
$CC -O1 -fno-optimize-sibling-calls -pthread deep.c -o deep

# size DIR: bytes of the program's files.
size() {
    find "$1" -name 'deep-*' -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'
}

# fates DIR: every sample has one.
fates() {
    python3 "$srcdir/tests/lib/check-fates.py" "$1" --processes 1 >"$scratch/fates" || fail "$1: $(cat "$scratch/fates")"
    cat "$scratch/fates"
}

# Files: a trace and paths that need more than twice what is allowed.
expect_status 4 "$hpcrun" -e FAULTS@1 -t -o whole ./deep 3000
expect_status 4 "$hpcrun" -e FAULTS@1 -t --max-size 256k -o small ./deep 3000
fates whole
fates small
echo "$(size whole) bytes without a limit to speak of, $(size small) bytes below 256k"
[ "$(size small)" -le 262144 ] || fail "$(size small) bytes in spite of --max-size 256k"
[ "$(size whole)" -gt 524288 ] || fail "only $(size whole) bytes without a limit: nothing was tested"
cat whole/deep-*.log >log.whole
cat small/deep-*.log >log.small
! grep -q 'left out' log.whole || fail "something was left out without need: $(cat log.whole)"
expect_text log.small 'left out, because the files of a process may have 262144 bytes .*: .*nodes of call paths'
[ "$(grep -c 'left out' log.small)" = 1 ] || fail "more than one message: $(cat log.small)"
"$builddir/hpcprof" -q -o small.db small || fail "hpcprof does not read the smaller files"
HPCRUN_MAX_SIZE=300K expect_status 0 "$hpcrun" -e CPUTIME -o env env
expect_text "$scratch/out" '^HPCRUN_MAX_SIZE=307200$'
HPCRUN_MAX_SIZE=much expect_status 2 "$hpcrun" -o wrong true
expect_status 2 "$hpcrun" --max-size 1k -o wrong true
expect_text "$scratch/err" 'at least 256k'

# Memory: the log of samples fills its share of a small arena, and is thinned from then on; the profiles have all.
expect_status 4 "$hpcrun" -e FAULTS@1 -t -ms 4m -o long ./deep "$faults" plain
fates long
cat long/deep-*.log >log.long
! grep -q 'dropped-arena-full' log.long || fail "the trace took the room of samples: $(grep EVENT log.long)"
samples=$(sed -n 's/^SUMMARY: samples: \([0-9]*\).*/\1/p' log.long)
traced=$(($(cat long/deep-*.hpctrace | wc -c) / 16))
echo "$samples samples, $traced of them in the trace"
[ "$samples" -gt $((2 * faults - faults / 10)) ] || fail "$samples samples of two times $faults faults"
expect_text log.long 'the log of samples was full .*: it has one of [0-9]+ samples, [0-9]+ are only in the profiles'
[ "$traced" -le 87400 ] || fail "$traced records in an arena of 4 MiB"
[ "$traced" -gt 40000 ] || fail "only $traced records"
python3 "$srcdir/tests/lib/check-events.py" long || fail "the log does not add up"
finish
