/* SPDX-License-Identifier: BSD-3-Clause */
/* Touches fresh pages and prints the CPU time of the fastest round, ns for each page. "touch-bench ring": the kernel
 * writes a record of each fault into a ring that nobody reads, which is the least that knowing all of them can cost.
 * "touch-bench rate": it writes a thousand a second, which is the least for some of them. */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096L
#define PAGES 4096L

static double cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double round_ns(void)
{
    char *block = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        abort();
    (void)madvise(block, PAGES * PAGE, MADV_NOHUGEPAGE);
    double before = cpu_ns();
    for (long i = 0; i < PAGES; i++)
        *(volatile char *)(block + i * PAGE) = 1;
    double after = cpu_ns();
    (void)munmap(block, PAGES * PAGE);
    return (after - before) / (double)PAGES;
}

/* As FAULTS@ring has it: instruction and address of each fault in the program's own code; or at a limited rate, with
 * what FAULTS wants to know, in a ring that is overwritten. */
static void open_ring(int is_rate)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_PAGE_FAULTS,
                                   .sample_period = 1,
                                   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1,
                                   .watermark = 1,
                                   .wakeup_watermark = UINT32_MAX};
    if (is_rate) {
        attr.freq = 1;
        attr.sample_freq = 1000;
        attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
        attr.write_backward = 1;
    }
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 || mmap(NULL, (is_rate ? 2 : 65) * (size_t)PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
        abort();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        open_ring(strcmp(argv[1], "rate") == 0);
    double best = 1e30;
    for (int i = 0; i < 30; i++) {
        double ns = round_ns();
        best = ns < best ? ns : best;
    }
    printf("%.1f\n", best);
    return 0;
}
