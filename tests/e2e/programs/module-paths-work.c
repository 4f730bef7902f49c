/* SPDX-License-Identifier: BSD-3-Clause */
/* The library of module-paths.c: all the work is done here. */
#include <stddef.h>
#include <time.h>

unsigned library_table[1u << 16];

unsigned library_work(int ms);

unsigned library_work(int ms)
{
    size_t n = sizeof library_table / sizeof *library_table;
    struct timespec now;
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++)
        library_table[i] = (unsigned)i * 2654435761u;
    do {
        sum = 0;
        for (size_t i = 0; i < 16 * n; i++)
            sum += library_table[(i * 4099) % n];
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
    return sum;
}
