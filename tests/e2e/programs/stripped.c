/* SPDX-License-Identifier: BSD-3-Clause */
/* The pointer chase once more, linked without symbols: names come from the loaded tables alone. */
#include "kernel.h"

#define N_BIG (UINT64_C(1) << 21)
#define N_SMALL 128

static struct kernel_node *big, *small;

static KERNEL_NOINLINE uint64_t chase_big(uint64_t n_turns)
{
    struct kernel_node *node = big;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n_turns; i++) {
        sum += node->payload;
        node = node->next;
    }
    big = node;
    return sum;
}

static KERNEL_NOINLINE uint64_t chase_small(uint64_t n_turns)
{
    struct kernel_node *node = small;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n_turns * 32; i++) {
        sum += node->payload;
        node = node->next;
    }
    small = node;
    return sum;
}

/* Functions of their own, because without lines nothing else tells two blocks of one function apart. */
static KERNEL_NOINLINE struct kernel_node *make_big(void)
{
    return kernel_check(malloc(N_BIG * sizeof *big));
}

static KERNEL_NOINLINE struct kernel_node *make_small(void)
{
    return kernel_check(malloc(N_SMALL * sizeof *small));
}

int main(int argc, char **argv)
{
    struct kernel_phase phases[] = {{"big", chase_big, 75, 0}, {"small", chase_small, 25, 0}};
    big = make_big();
    small = make_small();
    kernel_link(big, N_BIG);
    kernel_link(small, N_SMALL);
    return kernel_phases_main(argc, argv, phases, 2);
}
