/* SPDX-License-Identifier: BSD-3-Clause */
/* A private anonymous mapping and a heap block. */
#include <sys/mman.h>

#include "kernel.h"

#define N (UINT64_C(1) << 22)

static uint64_t *region, *heap;

static KERNEL_NOINLINE uint64_t walk_region(uint64_t n_turns)
{
    return kernel_walk(region, N, n_turns);
}

static KERNEL_NOINLINE uint64_t walk_heap(uint64_t n_turns)
{
    return kernel_walk(heap, N, n_turns);
}

int main(int argc, char **argv)
{
    struct kernel_phase phases[] = {{"region", walk_region, 70, 0}, {"heap", walk_heap, 30, 0}};
    region = mmap(NULL, N * sizeof *region, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED)
        return 1;
    heap = kernel_check(malloc(N * sizeof *heap));
    kernel_fill(region, N);
    kernel_fill(heap, N);
    return kernel_phases_main(argc, argv, phases, 2);
}
