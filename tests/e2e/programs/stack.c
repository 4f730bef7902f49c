/* SPDX-License-Identifier: BSD-3-Clause */
/* An array on the stack of a caller, passed down to the function that reads it, beside one on the heap. */
#include "kernel.h"

#define N_LOCAL (UINT64_C(1) << 19) /* 4 MiB: half of the usual stack */
#define N_HEAP (UINT64_C(1) << 22)

static uint64_t *heap;
static const uint64_t *passed;

static KERNEL_NOINLINE uint64_t walk_passed(uint64_t n_turns)
{
    return kernel_walk(passed, N_LOCAL, n_turns);
}

static KERNEL_NOINLINE uint64_t walk_heap(uint64_t n_turns)
{
    return kernel_walk(heap, N_HEAP, n_turns);
}

static KERNEL_NOINLINE int with_local_array(int argc, char **argv)
{
    struct kernel_phase phases[] = {{"local", walk_passed, 60, 0}, {"heap", walk_heap, 40, 0}};
    uint64_t local[N_LOCAL];
    kernel_fill(local, N_LOCAL);
    passed = local;
    int status = kernel_phases_main(argc, argv, phases, 2);
    passed = NULL;
    return status;
}

int main(int argc, char **argv)
{
    heap = kernel_check(malloc(N_HEAP * sizeof *heap));
    kernel_fill(heap, N_HEAP);
    return with_local_array(argc, argv);
}
