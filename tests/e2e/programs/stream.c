/* SPDX-License-Identifier: BSD-3-Clause */
/* STREAM: copy, scale, add and triad over three arrays of the same size. Traffic with the reads before writing:
 * 29 / 29 / 43 %. */
#include "kernel.h"

#define N (UINT64_C(1) << 23)
#define N_SMALL 512
#define BLOCK 512

static double *a, *b, *c;

static KERNEL_NOINLINE void copy(double *restrict to, const double *restrict from)
{
    for (int i = 0; i < BLOCK; i++)
        to[i] = from[i];
}

static KERNEL_NOINLINE void scale(double *restrict to, const double *restrict from)
{
    for (int i = 0; i < BLOCK; i++)
        to[i] = 3.0 * from[i];
}

static KERNEL_NOINLINE void add(double *restrict to, const double *restrict x, const double *restrict y)
{
    for (int i = 0; i < BLOCK; i++)
        to[i] = x[i] + y[i];
}

static KERNEL_NOINLINE void triad(double *restrict to, const double *restrict x, const double *restrict y)
{
    for (int i = 0; i < BLOCK; i++)
        to[i] = x[i] + 3.0 * y[i];
}

/* One turn is one kernel over all blocks; bit 0: a small, bit 1: b, bit 2: c. */
static uint64_t run(uint64_t n_turns, unsigned resident)
{
    uint64_t mask_a = resident & 1 ? N_SMALL - 1 : N - 1;
    uint64_t mask_b = resident & 2 ? N_SMALL - 1 : N - 1;
    uint64_t mask_c = resident & 4 ? N_SMALL - 1 : N - 1;
    static uint64_t turn;
    for (uint64_t t = 0; t < n_turns; t++, turn++)
        for (uint64_t i = 0; i < N; i += BLOCK) {
            double *pa = a + (i & mask_a), *pb = b + (i & mask_b), *pc = c + (i & mask_c);
            switch (turn & 3) {
            case 0:
                copy(pc, pa);
                break;
            case 1:
                scale(pb, pc);
                break;
            case 2:
                add(pc, pa, pb);
                break;
            default:
                triad(pa, pb, pc);
                break;
            }
        }
    return (uint64_t)c[0];
}

int main(int argc, char **argv)
{
    static const struct kernel_loop loop = {run, {"a", "b", "c", NULL}, KERNEL_NORMALIZED};
    a = kernel_check(malloc(N * sizeof *a));
    b = kernel_check(malloc(N * sizeof *b));
    c = kernel_check(malloc(N * sizeof *c));
    for (uint64_t i = 0; i < N; i++) {
        a[i] = 1e-9 * (double)i;
        b[i] = c[i] = 0;
    }
    return kernel_loop_main(argc, argv, &loop, 8);
}
