/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of the system's calls in nanoseconds. The clocks themselves are read by clock_gettime, in the profiled program
 * by own_clock_ns_sig. */
#ifndef LOCUS_BASE_CLOCK_H
#define LOCUS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_S_NS UINT64_C(1000000000)

/* A time in nanoseconds; of a clock of dates that is since 1970.  ctx: any */
static inline uint64_t clock_ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * CLOCK_S_NS + (uint64_t)time->tv_nsec;
}

/* What a clock says now, ns.  ctx: ordinary */
static inline uint64_t clock_now_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return clock_ns_of(&now);
}

#endif
