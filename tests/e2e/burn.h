/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of the tests do in each of their ways: compute on the heap and say the answer. */
#ifndef LOCUS_TESTS_BURN_H
#define LOCUS_TESTS_BURN_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Computes on heap memory for that much CPU time of the calling thread; the answer does not depend on how often. */
static inline unsigned burn(int ms)
{
    size_t n = 1u << 16;
    unsigned *table = malloc(n * sizeof *table), sum = 0;
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (size_t i = 0; i < n; i++)
        table[i] = (unsigned)i * 2654435761u;
    do {
        sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += table[(i * 4099) % n];
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
    free(table);
    return sum;
}

/* Writes a line at once, past stdio, which a child would have a copy of. */
static inline void say(const char *text, unsigned value)
{
    char line[200];
    int n = snprintf(line, sizeof line, "%s %u\n", text, value);
    if (write(1, line, (size_t)n) != n)
        _exit(90);
}

#endif
