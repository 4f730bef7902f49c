/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared library of the program statics. */
#include "kernel.h"

#define N (UINT64_C(1) << 22)

uint64_t library_walk(uint64_t n_turns);
void library_init(void);

static uint64_t library_table[N];

void library_init(void)
{
    kernel_fill(library_table, N);
}

uint64_t library_walk(uint64_t n_turns)
{
    return kernel_walk(library_table, N, n_turns);
}
