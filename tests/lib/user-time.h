/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that a thread has spent in user mode, for programs that compare two parts of themselves. Many kernels
 * split user from system time by what their tick of 4 ms finds, and scale the sum by it, so that the user time of a
 * pass of some ms over new pages is chance. So a clock ticks here every 0.1 ms, and the ticks in user mode are
 * counted. Where perf is refused it is the kernel's figure. */
#ifndef LOCUS_TESTS_LIB_USER_TIME_H
#define LOCUS_TESTS_LIB_USER_TIME_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USER_TICK_NS 100000
#define USER_RING_BYTES (64 * 4096)

/* Page faults of the process so far that needed no disk. */
static double n_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_minflt;
}

static struct perf_event_mmap_page *user_ring(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .size = sizeof attr};
    attr.sample_period = USER_TICK_NS;
    attr.sample_type = PERF_SAMPLE_IP;
    attr.exclude_kernel = attr.exclude_hv = 1;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    void *ring = fd < 0 ? MAP_FAILED
                        : mmap(NULL, 4096 + USER_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return ring == MAP_FAILED ? NULL : ring;
}

/* Seconds in user mode since the first call, of the thread that made it. */
static double user_s(void)
{
    static struct perf_event_mmap_page *ring;
    static uint64_t n_ticks;
    static int is_begun;
    if (!is_begun)
        ring = user_ring();
    is_begun = 1;
    if (!ring) {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
    }
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), at = ring->data_tail;
    while (at < head) {
        const struct perf_event_header *record = (const void *)((char *)ring + 4096 + at % USER_RING_BYTES);
        n_ticks += record->type == PERF_RECORD_SAMPLE;
        at += record->size;
    }
    __atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
    return (double)n_ticks * USER_TICK_NS * 1e-9;
}

#endif
