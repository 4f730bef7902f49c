#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a sample costs beyond its count: its place in its variable, its record in the log, and the question on which memory
# node its page is; and whole programs with and without these questions. One memory node is told to be two.
# shellcheck source=tests/lib/common.sh
. "$LOCUS_SRCDIR/tests/lib/common.sh"
need python3
bench=$builddir/tests/bench/record-bench
[ -x "$bench" ] || skip "record-bench has not been built"
read -r reach log < <("$bench")
printf 'summary of places: %s ns a sample (goal 100)\n' "$reach"
printf 'log of samples: %s ns a sample with its clock (goal 60)\n' "$log"
# move_pages as the companion asks: 512 pages of another process at a time.
python3 - <<'END'
import ctypes, mmap, os, signal, statistics, time
libc = ctypes.CDLL(None, use_errno=True)
N, PAGE = 512, mmap.PAGESIZE
area = mmap.mmap(-1, 16 * N * PAGE)
for i in range(16 * N):
    area[i * PAGE] = 1
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
child = os.fork()
if child == 0:
    signal.pause()
pages, status, costs = (ctypes.c_void_p * N)(), (ctypes.c_int * N)(), []
for i in range(320):
    for k in range(N):
        pages[k] = start + ((i % 16) * N + k) * PAGE
    before = time.thread_time_ns()
    answer = libc.syscall(279, child, ctypes.c_ulong(N), pages, None, status, 0)  # move_pages of x86-64
    costs.append((time.thread_time_ns() - before) / N)
    if answer:
        print("homes: the kernel does not say where pages are:", os.strerror(ctypes.get_errno()))
        break
else:
    print(f"homes: {statistics.median(costs):.0f} ns a page, in batches of {N} (goal 200)")
os.kill(child, signal.SIGKILL)
END
finish
