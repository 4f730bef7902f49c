/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's memcpy and memset. The time of a copy belongs to both of its sides. */
#include "kernel.h"

#define BYTES (UINT64_C(1) << 26)

static char *src, *dst, *zeros;

static KERNEL_NOINLINE uint64_t copy(uint64_t n_turns)
{
    (void)n_turns;
    memcpy(dst, src, BYTES);
    return (uint64_t)dst[17];
}

static KERNEL_NOINLINE uint64_t clear(uint64_t n_turns)
{
    memset(zeros, (int)(n_turns & 1), BYTES);
    return (uint64_t)zeros[17];
}

int main(int argc, char **argv)
{
    struct kernel_phase phases[] = {{"src+dst", copy, 65, 0}, {"zeros", clear, 35, 0}};
    src = kernel_check(malloc(BYTES));
    dst = kernel_check(malloc(BYTES));
    zeros = kernel_check(malloc(BYTES));
    memset(src, 1, BYTES);
    memset(dst, 2, BYTES);
    memset(zeros, 3, BYTES);
    return kernel_phases_main(argc, argv, phases, 2);
}
