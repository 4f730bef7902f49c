/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays in frames of all kinds: plain, realigned, of variable length, recursive. Each takes about the same
 * time. */
#include <stdio.h>
#include <string.h>

#define N 4096u
#define TURNS 20000000u

/* Each step waits for the one before. */
__attribute__((noinline)) static unsigned walk(const unsigned *values, unsigned mask)
{
    unsigned at = 1;
    for (unsigned i = 0; i < TURNS; i++)
        at = values[at & mask] + at * 1664525u + 1013904223u;
    return at;
}

__attribute__((noinline)) static unsigned plain(void)
{
    unsigned in_plain[N];
    for (unsigned i = 0; i < N; i++)
        in_plain[i] = i;
    return walk(in_plain, N - 1);
}

__attribute__((noinline)) static unsigned aligned(void)
{
    unsigned in_aligned[N] __attribute__((aligned(64)));
    memset(in_aligned, 1, sizeof in_aligned);
    return walk(in_aligned, N - 1);
}

__attribute__((noinline)) static unsigned itself(unsigned at)
{
    unsigned in_itself[N] __attribute__((aligned(64)));
    for (unsigned i = 0; i < N; i++)
        in_itself[i] = i * at;
    for (unsigned i = 0; i < TURNS; i++)
        at = in_itself[at & (N - 1)] + at * 1664525u + 1013904223u;
    return at;
}

__attribute__((noinline)) static unsigned variable(unsigned n)
{
    unsigned in_variable[n];
    memset(in_variable, 1, n * sizeof in_variable[0]);
    return walk(in_variable, n - 1);
}

__attribute__((noinline)) static unsigned recursive(unsigned depth)
{
    unsigned in_recursive[N];
    for (unsigned i = 0; i < N; i++)
        in_recursive[i] = i + depth;
    unsigned sum = depth ? recursive(depth - 1) : walk(in_recursive, N - 1);
    return sum + in_recursive[depth];
}

int main(void)
{
    printf("%u\n", plain() + aligned() + itself(3) + variable(N) + recursive(3));
    return 0;
}
