/* SPDX-License-Identifier: BSD-3-Clause */
/* Two arrays, one from malloc and one, where the library was there at compilation, from memkind; both are worked on.
 * usage: alloc-libraries SECONDS */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef WITH_MEMKIND
#include <memkind.h>
#endif

#define N_BYTES (16u << 20)

static volatile unsigned sum;

__attribute__((noinline)) static void touch(unsigned char *bytes)
{
    unsigned at = 1;
    for (int i = 0; i < 100000; i++) {
        at = at * 1664525u + 1013904223u;
        sum += bytes[(at >> 4) % N_BYTES]++;
    }
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.3;
    struct timespec start, now;
    unsigned char *ordinary = malloc(N_BYTES), *special = NULL;
#ifdef WITH_MEMKIND
    special = memkind_malloc(MEMKIND_DEFAULT, N_BYTES);
#endif
    memset(ordinary, 1, N_BYTES);
    if (special)
        memset(special, 1, N_BYTES);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        touch(ordinary);
        if (special)
            touch(special);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
    free(ordinary);
#ifdef WITH_MEMKIND
    memkind_free(MEMKIND_DEFAULT, special);
#endif
    puts("done");
    return 0;
}
