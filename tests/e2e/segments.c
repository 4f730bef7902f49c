/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked with a section far away from the rest, so that there is a gap between the program's segments: works there, and
 * from there in the near part. usage: segments SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned sum;

__attribute__((noinline)) static void near_work(void)
{
    for (unsigned i = 0; i < 100000; i++)
        sum += i;
}

__attribute__((noinline, section(".far"))) static void far_work(double seconds)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (unsigned i = 0; i < 100000; i++)
            sum += i;
        near_work();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds);
}

int main(int argc, char **argv)
{
    far_work(argc > 1 ? strtod(argv[1], NULL) : 0.3);
    puts("done");
    return 0;
}
