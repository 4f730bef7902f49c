/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenMP team that reads one array at random and sums another one in order, in turns. */
#include <omp.h>

#include "kernel.h"

#define N (UINT64_C(1) << 22)
#define N_THREADS 2

static uint64_t *scattered;
static double *ordered;

static KERNEL_NOINLINE uint64_t walk(uint64_t at, uint64_t n_turns)
{
    for (uint64_t i = 0; i < n_turns; i++)
        at = scattered[(at + i) & (N - 1)];
    return at;
}

static KERNEL_NOINLINE double sum(uint64_t from, uint64_t n)
{
    double total = 0;
    for (uint64_t i = from; i < from + n; i += 8)
        total += ordered[i & (N - 1)];
    return total;
}

int main(int argc, char **argv)
{
    struct kernel_options options = kernel_options(argc, argv);
    double seconds[N_THREADS][2] = {{0}};
    scattered = kernel_check(malloc(N * sizeof *scattered));
    ordered = kernel_check(malloc(N * sizeof *ordered));
    kernel_fill(scattered, N);
    for (uint64_t i = 0; i < N; i++)
        ordered[i] = 1;
    kernel_begin();
#pragma omp parallel num_threads(N_THREADS)
    {
        int t = omp_get_thread_num();
        uint64_t at = (uint64_t)t;
        double total = 0, own[2] = {0};
        while (own[0] + own[1] < options.seconds / N_THREADS) {
            int is_walk = own[0] <= 4 * own[1];
            double start = kernel_now();
            if (is_walk)
                at = walk(at, 20000);
            else
                total += sum(at, 400000);
            own[!is_walk] += kernel_now() - start;
        }
        seconds[t][0] = own[0];
        seconds[t][1] = own[1];
#pragma omp critical
        kernel_sink += at + (uint64_t)total;
    }
    kernel_end();
    struct kernel_phase phases[] = {{"scattered", NULL, 0, 0}, {"ordered", NULL, 0, 0}};
    for (int t = 0; t < N_THREADS; t++)
        for (int p = 0; p < 2; p++)
            phases[p].seconds += seconds[t][p];
    if (options.is_truth)
        kernel_print_phases(phases, 2);
    return 0;
}
