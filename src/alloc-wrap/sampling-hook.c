/* SPDX-License-Identifier: BSD-3-Clause */
/* Poisson sampling of small blocks: see sampling.h. The two functions of libm that it needs are made here, because
 * the preloaded library needs libc only. Runs inside the program's malloc. */
#include "alloc-wrap/sampling.h"

#include <string.h>
#include <sys/auxv.h>

#define LN2 0.693147180559945309417

/* Natural logarithm of x, a positive normal number; error below 1e-12. src: log m = 2 atanh((m - 1) / (m + 1)) */
static double natural_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1022;
    bits = (bits & 0xfffffffffffffull) | 1022ull << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 17; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return exponent * LN2 + 2 * s * sum;
}

/* 1 - exp(-x) for x >= 0, exact for small x too. src: with y = 1 - exp(-h), 1 - exp(-2h) = y (2 - y) */
static double hit_probability(double x)
{
    if (x > 40)
        return 1;
    int n_halvings = 0;
    for (; x > 0.125; n_halvings++)
        x /= 2;
    double sum = 0;
    for (int k = 9; k >= 1; k--)
        sum = (1 - sum) * x / k;
    for (; n_halvings; n_halvings--)
        sum *= 2 - sum;
    return sum;
}

/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t next_random(struct sampling *sampling)
{
    uint64_t z = sampling->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Draws the exponentially distributed distance to the next hit. */
static void draw_distance(struct sampling *sampling, double mean_bytes)
{
    double uniform = ((double)(next_random(sampling) >> 11) + 0.5) * 0x1p-53;
    sampling->until_bytes = -mean_bytes * natural_log(uniform);
}

void sampling_seed_hook(struct sampling *sampling, uint64_t seed, double mean_bytes)
{
    sampling->random = seed;
    draw_distance(sampling, mean_bytes);
}

/* A seed that differs between processes and, by the address of the thread's state, between threads. */
static void seed_from_process(struct sampling *sampling, double mean_bytes)
{
    uint64_t seed = 0;
    const void *bytes = (const void *)getauxval(AT_RANDOM);
    if (bytes)
        memcpy(&seed, bytes, sizeof seed);
    seed ^= (uint64_t)(uintptr_t)sampling * 0x9e3779b97f4a7c15ull;
    sampling_seed_hook(sampling, seed | 1, mean_bytes);
}

double sampling_weight_hook(struct sampling *sampling, double mean_bytes, size_t n_bytes)
{
    if (!sampling->random)
        seed_from_process(sampling, mean_bytes);
    sampling->until_bytes -= (double)n_bytes;
    if (sampling->until_bytes >= 0 || !n_bytes)
        return 0;
    draw_distance(sampling, mean_bytes);
    return 1 / hit_probability((double)n_bytes / mean_bytes);
}

double sampling_whole_hook(struct sampling *sampling, double weight)
{
    double whole = (double)(uint64_t)weight;
    double uniform = (double)(next_random(sampling) >> 11) * 0x1p-53;
    return whole + (uniform < weight - whole);
}
