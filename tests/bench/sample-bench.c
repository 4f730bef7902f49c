/* SPDX-License-Identifier: BSD-3-Clause */
/* What one sample costs the program: the length of the gaps that it tears into a loop reading the time-stamp counter,
 * at call depth 30. Kernels: compute (nothing but the counter), chase (a dependent load that misses between two
 * readings). With "empty" the program samples itself with a handler that does nothing; under hpcrun it is called with
 * "none". */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define GAPS_MAX 200000
#define DEPTH 30

static uint32_t gaps[GAPS_MAX];
static size_t n_gaps;
static void **chase;

static void ignore_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
}

static int sample_myself(uint64_t period_ns)
{
    struct sigaction action = {.sa_sigaction = ignore_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .sample_period = period_ns,
                                   .exclude_kernel = 1,
                                   .wakeup_events = 1};
    sigaction(SIGURG, &action, NULL);
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = getpid()};
    if (fd < 0 || fcntl(fd, F_SETFL, O_ASYNC) || fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETOWN_EX, &owner))
        return -1;
    return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void measure(int is_chase, uint64_t limit_cycles, double seconds)
{
    uint64_t last = __rdtsc();
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    for (unsigned turn = 0;; turn++) {
        if (is_chase)
            chase = *chase;
        uint64_t now = __rdtsc();
        if (now - last > limit_cycles && n_gaps < GAPS_MAX)
            gaps[n_gaps++] = now - last > UINT32_MAX ? UINT32_MAX : (uint32_t)(now - last);
        last = now;
        if (!(turn & 0xffff) && clock() >= end)
            return;
    }
}

static __attribute__((noinline)) int deeper(int depth, int is_chase, uint64_t limit_cycles, double seconds)
{
    if (!depth) {
        measure(is_chase, limit_cycles, seconds);
        return 0;
    }
    int below = deeper(depth - 1, is_chase, limit_cycles, seconds);
    __asm__ volatile("" : "+r"(below)); /* no tail call: the frames are what is measured */
    return below + 1;
}

/* One cycle through all lines of a block far larger than the caches, in random order. */
static void chase_make(void)
{
    size_t n = (size_t)1 << 21;
    char *lines = aligned_alloc(64, n * 64);
    uint32_t *order = malloc(n * sizeof *order);
    if (!lines || !order)
        abort();
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = (size_t)random() % i;
        uint32_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    for (size_t i = 0; i < n; i++)
        *(void **)(void *)(lines + 64 * i) = lines + 64 * (size_t)order[i];
    free(order);
    chase = (void **)(void *)lines;
}

static int by_size(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Cycles of the time-stamp counter in a microsecond. */
static double cycles_per_us(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t first = __rdtsc();
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < 20000000);
    return (double)(__rdtsc() - first) / 20000;
}

int main(int argc, char **argv)
{
    double scale = cycles_per_us();
    int is_chase = argc > 2 && !strcmp(argv[2], "chase");
    chase_make();
    if (argc > 1 && !strcmp(argv[1], "empty") && sample_myself(1000000) != 0)
        return 77;
    (void)deeper(DEPTH, is_chase, (uint64_t)(4 * scale), 3);
    qsort(gaps, n_gaps, sizeof *gaps, by_size);
    printf("%zu %.2f\n", n_gaps, n_gaps ? gaps[n_gaps / 2] / scale : 0);
    return 0;
}
