/* SPDX-License-Identifier: BSD-3-Clause */
/* Random updates of a big table, positions and factors from small ones. Accesses: 40 / 40 / 20 %; time: table. */
#include "kernel.h"

#define N_TABLE (UINT64_C(1) << 25)
#define N_RAN 1024
#define N_LUT 256

static uint64_t *table, *ran, *lut;

static KERNEL_NOINLINE uint64_t update(uint64_t *words, uint64_t mask, uint64_t *seeds, const uint64_t *factors,
                                       uint64_t n_turns)
{
    for (uint64_t i = 0; i < n_turns; i++) {
        uint64_t *seed = &seeds[i % N_RAN];
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        words[*seed >> 30 & mask] ^= factors[*seed >> 56];
    }
    return words[0];
}

static uint64_t run(uint64_t n_turns, unsigned resident)
{
    return update(table, resident ? 1023 : N_TABLE - 1, ran, lut, n_turns);
}

int main(int argc, char **argv)
{
    static const struct kernel_loop loop = {run, {"table", NULL}, KERNEL_ALONE};
    table = kernel_check(malloc(N_TABLE * sizeof *table));
    ran = kernel_check(malloc(N_RAN * sizeof *ran));
    lut = kernel_check(malloc(N_LUT * sizeof *lut));
    memset(table, 1, N_TABLE * sizeof *table);
    kernel_fill(ran, N_RAN);
    kernel_fill(lut, N_LUT);
    return kernel_loop_main(argc, argv, &loop, 10000000);
}
