/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks three blocks: one that malloc maps for itself, the one that realloc makes of it, and one that is larger than
 * what has a note in the shadow of the heap and lies below the break. */
#include <stdio.h>
#include <stdlib.h>

static volatile double sink;

__attribute__((noinline)) static double walk(const double *at, size_t n, int turns)
{
    double sum = 0;
    unsigned x = 1;
    for (int i = 0; i < turns; i++) {
        x = x * 1664525u + 1013904223u;
        sum += at[(x >> 8) % n];
    }
    return sum;
}

int main(void)
{
    size_t n = 1 << 19, n_broken = 12500;
    double *mapped = calloc(n, sizeof *mapped);
    double *broken = calloc(n_broken, sizeof *broken);
    if (!mapped || !broken)
        return 1;
    sink = walk(mapped, n, 60000000);
    double *moved = realloc(mapped, 2 * n * sizeof *mapped);
    if (!moved)
        return 1;
    sink += walk(moved, n, 60000000);
    sink += walk(broken, n_broken, 60000000);
    free(broken);
    free(moved);
    puts("done");
    return 0;
}
