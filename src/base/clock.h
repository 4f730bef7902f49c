/* SPDX-License-Identifier: BSD-3-Clause */
/* Times from system calls as nanoseconds. Ordinary code reads the clocks with clock_now_ns, the runtime inside the
 * profiled program with own_clock_ns_sig; both ask the kernel, because libraries such as libfaketime give the program,
 * and the companion process beside it, another time, which may stand still. */
#ifndef LOCUS_BASE_CLOCK_H
#define LOCUS_BASE_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_US_NS UINT64_C(1000)
#define CLOCK_MS_NS UINT64_C(1000000)
#define CLOCK_S_NS UINT64_C(1000000000)

/* A time in nanoseconds (since 1970 for CLOCK_REALTIME and file times).  ctx: any */
static inline uint64_t clock_ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * CLOCK_S_NS + (uint64_t)time->tv_nsec;
}

/* The time of a clock now, ns.  ctx: ordinary */
static inline uint64_t clock_now_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)syscall(SYS_clock_gettime, clock, &now);
    return clock_ns_of(&now);
}

#endif
