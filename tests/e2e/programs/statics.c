/* SPDX-License-Identifier: BSD-3-Clause */
/* Static variables: two of a position-independent executable (.bss and .data) and one of a shared library. */
#include "kernel.h"

#define N (UINT64_C(1) << 22)

uint64_t library_walk(uint64_t n_turns);
void library_init(void);

static uint64_t zero_table[N];
static uint64_t data_table[N] = {1, 2, 3};

static KERNEL_NOINLINE uint64_t walk_zero(uint64_t n_turns)
{
    return kernel_walk(zero_table, N, n_turns);
}

static KERNEL_NOINLINE uint64_t walk_data(uint64_t n_turns)
{
    return kernel_walk(data_table, N, n_turns);
}

int main(int argc, char **argv)
{
    struct kernel_phase phases[] = {
        {"zero_table", walk_zero, 50, 0}, {"data_table", walk_data, 20, 0}, {"library_table", library_walk, 30, 0}};
    kernel_fill(zero_table, N);
    kernel_fill(data_table, N);
    library_init();
    return kernel_phases_main(argc, argv, phases, 3);
}
