/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix product that walks the second factor down its columns: another page for every element. Accesses: a and b 50 %
 * each; the time is b's. */
#include "kernel.h"

#define N_ROWS 16
#define N_INNER 8192
#define N_COLUMNS 1040

static double *a, *b, *c;

static KERNEL_NOINLINE double dot(const double *row, const double *column, uint64_t stride)
{
    double first = 0, second = 0, third = 0, fourth = 0; /* so that the additions do not wait for each other */
    for (uint64_t k = 0; k < N_INNER; k += 4) {
        first += row[k] * column[k * stride];
        second += row[k + 1] * column[(k + 1) * stride];
        third += row[k + 2] * column[(k + 2) * stride];
        fourth += row[k + 3] * column[(k + 3) * stride];
    }
    return first + second + third + fourth;
}

/* One turn is one element of the product; each comes from a column a line further on. */
static uint64_t product(uint64_t n_turns, unsigned resident)
{
    static uint64_t element;
    for (uint64_t i = 0; i < n_turns; i++, element++) {
        uint64_t row = element / N_COLUMNS % N_ROWS, column = element * 8 % N_COLUMNS;
        c[row * N_COLUMNS + column] = dot(a + row * N_INNER, resident ? b : b + column, resident ? 0 : N_COLUMNS);
    }
    return (uint64_t)c[0];
}

int main(int argc, char **argv)
{
    static const struct kernel_loop loop = {product, {"b", NULL}, KERNEL_ALONE};
    a = kernel_check(malloc(N_ROWS * N_INNER * sizeof *a));
    b = kernel_check(malloc(N_INNER * N_COLUMNS * sizeof *b));
    c = kernel_check(calloc(N_ROWS * N_COLUMNS, sizeof *c));
    for (uint64_t i = 0; i < N_ROWS * N_INNER; i++)
        a[i] = (double)(i % 7);
    for (uint64_t i = 0; i < N_INNER * N_COLUMNS; i++)
        b[i] = (double)(i % 5);
    return kernel_loop_main(argc, argv, &loop, 4000);
}
