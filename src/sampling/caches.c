/* SPDX-License-Identifier: BSD-3-Clause */
/* The curve of the caches: how long a load takes from data of each size; see skid.h. In virtual machines the processor
 * claims caches of a size that no guest gets. Ordinary code (the launcher). */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/workers.h"
#include "sampling/skid.h"

#define LINE_BYTES 64u
#define PAGE_BYTES 4096u
#define HUGE_BYTES ((size_t)2 << 20)
#define FIRST_KIB 16u
#define FINE_KIB 32768u  /* two sizes to each power of two up to here */
#define MOST_KIB 262144u /* 256 MiB */
#define LEAST_KIB 65536u /* with less than that at most, memory is not told from a large cache */
#define TURNS 12000
#define ROUNDS 4            /* the fastest counts */
#define ALL_CPUS_MAX 64     /* that are tried at once */
#define ALL_LEAST_KIB 512u  /* of each processor */
#define ALL_MOST_KIB 32768u /* of each processor */
#define WALK_FIRST_KIB 16384u
#define WALK_MOST_KIB 65536u /* small pages of more take too long to make */
#define APART_TURNS 48000
#define APART_ROUNDS 6 /* of each: what is looked for is a part of it, and smaller than disturbances */
#define SHARE 8         /* of the memory that is free: no more is taken, by all together */
#define TLB_PAGES_MAX 32768u
#define TLB_SLOWER_PS 4000 /* by which a load is slower whose translation is not at hand */

static unsigned bits_for(uint64_t n_lines)
{
    unsigned bits = 1;
    while ((UINT64_C(1) << bits) < n_lines)
        bits++;
    return bits;
}

/* A random order without a table: numbers of so many bits in another order, each once, and then scaled to the lines. */
static inline uint64_t line_at(uint64_t n_lines, unsigned bits, uint64_t i)
{
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    const unsigned half = bits / 2;
    uint64_t x = (i * UINT64_C(0x9e3779b97f4a7c15)) & mask;
    x ^= x >> half;
    x = (x * UINT64_C(0xd6e8feb86659fd93)) & mask;
    x ^= x >> half;
    return x * n_lines >> bits;
}

/* The memory holds zeros, so that adding what a load brings changes nothing, but the next load has to wait for it. */
__attribute__((noinline)) static uint64_t chase(const char *memory, uint64_t n_lines, uint32_t step_bytes,
                                                uint32_t skew_lines, uint32_t n_turns, uint64_t at)
{
    const unsigned bits = bits_for(n_lines);
    for (uint32_t i = 0; i < n_turns; i++) {
        uint64_t x = line_at(n_lines, bits, at);
        at += 1 + *(const volatile uint64_t *)(memory + x * step_bytes + (x & skew_lines) * LINE_BYTES);
    }
    return at;
}

/* Loads of any of so many lines (< 2^32), some of which come back, as in programs; none waits for another one. */
__attribute__((noinline)) static uint64_t scatter(const char *memory, uint64_t n_lines, uint64_t n_turns, uint64_t at)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n_turns; i++) {
        at = at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += *(const volatile uint64_t *)(memory + ((at >> 32) * n_lines >> 32) * LINE_BYTES);
    }
    return at + sum;
}

static uint32_t load_ps(const char *memory, uint64_t n_lines, uint32_t step_bytes, uint32_t skew_lines)
{
    uint64_t best_ns = UINT64_MAX;
    uint64_t at = chase(memory, n_lines, step_bytes, skew_lines, n_lines < TURNS ? (uint32_t)n_lines : TURNS, 0);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        at = chase(memory, n_lines, step_bytes, skew_lines, TURNS, at);
        uint64_t took_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    uint64_t each_ps = best_ns * 1000 / TURNS;
    return each_ps < UINT32_MAX ? (uint32_t)each_ps : UINT32_MAX;
}

/* The same of loads that wait for nothing, from two memories in turns: what else goes on then slows down both. */
static void apart_ps(char *const memory[2], uint64_t n_lines, uint32_t *const ps[2])
{
    uint64_t best_ns[2] = {UINT64_MAX, UINT64_MAX}, at[2];
    for (int i = 0; i < 2; i++)
        at[i] = scatter(memory[i], n_lines, n_lines, 0); /* the caches hold what they can */
    for (int round = 0; round < 2 * APART_ROUNDS; round++) {
        int i = round % 2;
        uint64_t start_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
        at[i] = scatter(memory[i], n_lines, APART_TURNS, at[i]);
        uint64_t took_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
        best_ns[i] = took_ns < best_ns[i] ? took_ns : best_ns[i];
    }
    for (int i = 0; i < 2; i++)
        *ps[i] = (uint32_t)(best_ns[i] * 1000 / APART_TURNS);
}

/* What the arithmetic of the order takes, and a load from the first level with it. */
static uint32_t overhead_ps(const char *memory)
{
    const uint32_t first_level_ps = 1200; /* four or five cycles */
    uint32_t ps = load_ps(memory, FIRST_KIB / 2 * 1024 / LINE_BYTES, LINE_BYTES, 0);
    return ps > first_level_ps ? ps - first_level_ps : 0;
}

static uint32_t less(uint32_t ps, uint32_t overhead)
{
    return ps > overhead ? ps - overhead : 1;
}

/* Zeros that are really there, in huge pages if there are any. */
static char *take_memory(size_t n_bytes, int advice)
{
    char *memory =
        mmap(NULL, n_bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    memory = (char *)(((uintptr_t)memory + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
    (void)madvise(memory, n_bytes, advice);
    return memory;
}

static void touch(char *memory, size_t from, size_t to)
{
    for (size_t i = from; i < to; i += PAGE_BYTES)
        ((volatile char *)memory)[i] = 0;
    for (size_t i = 0; i < to; i += LINE_BYTES)
        (void)((volatile char *)memory)[i];
}

/* Whether memory that has been touched lies in a huge page. */
static bool is_huge(const char *memory)
{
    char line[256];
    unsigned long start, end, kib;
    bool is_here = false, is_found = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    while (maps && fgets(line, sizeof line, maps) && !is_found) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            is_here = (uintptr_t)memory >= start && (uintptr_t)memory < end;
        else if (is_here && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
            is_found = kib > 0;
    }
    if (maps)
        (void)fclose(maps);
    return is_found;
}

static uint32_t next_size(uint32_t kib)
{
    if (kib & (kib - 1)) /* three halves of a power of two */
        return kib / 3 * 4;
    return kib < FINE_KIB ? kib / 2 * 3 : kib * 2;
}

/* --- one processor --- */

static void measure_tlb(struct cache_curve *curve, uint32_t overhead, uint32_t most_kib)
{
    const uint32_t n_most = most_kib / (PAGE_BYTES / 1024);
    char *memory = take_memory((size_t)TLB_PAGES_MAX * PAGE_BYTES, MADV_NOHUGEPAGE);
    if (!memory)
        return;
    uint32_t n_before = 0;
    for (uint32_t n = 16; n <= TLB_PAGES_MAX && n <= n_most; n *= 2) {
        for (uint32_t i = n_before; i < n; i++)
            ((volatile char *)memory)[(size_t)i * PAGE_BYTES] = 0;
        n_before = n;
        /* The same number of lines side by side, whose translations are at hand. */
        uint32_t apart = less(load_ps(memory, n, PAGE_BYTES, 63), overhead);
        uint32_t beside = less(load_ps(memory, n, LINE_BYTES, 0), overhead);
        if (apart > beside + TLB_SLOWER_PS)
            return;
        curve->tlb_kib = n * (PAGE_BYTES / 1024);
    }
}

static void measure_alone(struct cache_curve *curve, uint32_t most_kib)
{
    char *memory = take_memory((size_t)MOST_KIB * 1024, MADV_HUGEPAGE);
    if (!memory)
        return;
    touch(memory, 0, HUGE_BYTES);
    curve->is_huge = is_huge(memory);
    uint32_t overhead = overhead_ps(memory), n = 0;
    size_t touched = 0;
    for (uint32_t kib = FIRST_KIB; kib <= most_kib && n < CACHE_SIZES_MAX; kib = next_size(kib)) {
        touch(memory, touched, (size_t)kib * 1024);
        touched = (size_t)kib * 1024;
        uint32_t ps = less(load_ps(memory, (uint64_t)kib * 1024 / LINE_BYTES, LINE_BYTES, 0), overhead);
        curve->sizes[n++] = (struct cache_point){.kib = kib, .alone_ps = ps};
    }
    (void)munmap(memory, (size_t)MOST_KIB * 1024);
    measure_tlb(curve, overhead, most_kib);
    curve->n_sizes = n;
}

/* --- pages of both sizes --- */

/* What the walks through the tables of pages take: the same loads from small pages and from huge ones. */
static void measure_walks(struct cache_curve *curve, uint32_t most_kib)
{
    const uint32_t end_kib = most_kib / 2 < WALK_MOST_KIB ? most_kib / 2 : WALK_MOST_KIB; /* both are there at once */
    char *pages[2] = {take_memory((size_t)end_kib * 1024, MADV_NOHUGEPAGE),
                      take_memory((size_t)end_kib * 1024, MADV_HUGEPAGE)};
    size_t touched = 0;
    uint32_t n = 0, overhead = pages[0] && pages[1] ? overhead_ps(pages[1]) : 0;
    for (uint32_t kib = WALK_FIRST_KIB; pages[0] && pages[1] && kib <= end_kib && n < CACHE_WALKS_MAX; kib *= 2) {
        const uint64_t n_lines = (uint64_t)kib * 1024 / LINE_BYTES;
        struct cache_walk walk = {.kib = kib};
        for (int i = 0; i < 2; i++)
            touch(pages[i], touched, (size_t)kib * 1024);
        touched = (size_t)kib * 1024;
        walk.small_ps = less(load_ps(pages[0], n_lines, LINE_BYTES, 0), overhead);
        walk.huge_ps = less(load_ps(pages[1], n_lines, LINE_BYTES, 0), overhead);
        apart_ps(pages, n_lines, (uint32_t *const[2]){&walk.small_apart_ps, &walk.huge_apart_ps});
        curve->walks[n++] = walk;
    }
    curve->n_walks = n;
}

/* --- all at once --- */

/* In memory that the children share. */
struct all {
    struct cache_curve curve;
    uint32_t most_kib;        /* that may be taken */
    _Atomic uint32_t n_ready; /* of those that wait to begin */
    _Atomic uint32_t is_begun;
    uint32_t ps[ALL_CPUS_MAX][CACHE_SIZES_MAX];
};

static bool is_wanted(uint32_t kib, uint32_t most_kib)
{
    return kib >= ALL_LEAST_KIB && kib <= most_kib;
}

static void run_one_of_all(struct all *all, uint32_t index, int cpu, uint32_t most_kib)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    (void)sched_setaffinity(0, sizeof own, &own);
    char *memory = take_memory((size_t)most_kib * 1024, MADV_HUGEPAGE);
    if (memory)
        touch(memory, 0, (size_t)most_kib * 1024);
    uint32_t overhead = memory ? overhead_ps(memory) : 0;
    (void)atomic_fetch_add(&all->n_ready, 1);
    while (!atomic_load(&all->is_begun))
        (void)usleep(200);
    for (uint32_t i = 0; memory && i < all->curve.n_sizes; i++) {
        uint32_t kib = all->curve.sizes[i].kib;
        if (!is_wanted(kib, most_kib))
            continue;
        touch(memory, (size_t)kib * 1024, (size_t)kib * 1024);
        all->ps[index][i] = less(load_ps(memory, (uint64_t)kib * 1024 / LINE_BYTES, LINE_BYTES, 0), overhead);
    }
    (void)syscall(SYS_exit_group, 0);
}

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The middle one of the processors counts. */
static void take_middle(struct all *all, uint32_t n_cpus)
{
    uint32_t times[ALL_CPUS_MAX];
    for (uint32_t i = 0; i < all->curve.n_sizes; i++) {
        for (uint32_t k = 0; k < n_cpus; k++)
            times[k] = all->ps[k][i];
        qsort(times, n_cpus, sizeof times[0], compare_times);
        all->curve.sizes[i].all_ps = times[n_cpus / 2];
    }
    all->curve.n_cpus = n_cpus;
}

static void measure_all(struct all *all)
{
    cpu_set_t allowed;
    int cpus[ALL_CPUS_MAX];
    pid_t children[ALL_CPUS_MAX];
    uint32_t n_cpus = 0, n = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int cpu = 0; cpu < (int)CPU_SETSIZE && n_cpus < ALL_CPUS_MAX; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[n_cpus++] = cpu;
    uint64_t each_kib = n_cpus > 1 ? workers_free_bytes() / 1024 / SHARE / n_cpus : 0;
    uint32_t most_kib = each_kib > ALL_MOST_KIB ? ALL_MOST_KIB : (uint32_t)each_kib;
    if (most_kib < ALL_LEAST_KIB)
        return;
    for (; n < n_cpus; n++) {
        children[n] = fork();
        if (children[n] < 0)
            break;
        if (children[n] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            run_one_of_all(all, n, cpus[n], most_kib);
        }
    }
    while (atomic_load(&all->n_ready) < n && waitpid(-1, NULL, WNOHANG) == 0)
        (void)usleep(200);
    atomic_store(&all->is_begun, 1);
    for (uint32_t i = 0; i < n; i++)
        (void)waitpid(children[i], NULL, 0);
    if (n == n_cpus)
        take_middle(all, n_cpus);
}

/* If memory becomes short all the same, the kernel is to take it from here. */
static void offer_to_die(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "we");
    if (file) {
        (void)fputs("1000", file);
        (void)fclose(file);
    }
}

/* Ends the child, and only it: no handler or buffer inherited from the caller may run. A child that is late is killed,
 * and what it started with it. */
static bool run_forked(struct all *all, void (*run)(struct all *all), uint64_t end_ns)
{
    int status = 0;
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        offer_to_die();
        run(all);
        (void)syscall(SYS_exit_group, 0);
    }
    pid_t done = 0;
    while ((done = waitpid(pid, &status, WNOHANG)) == 0 && clock_now_ns(CLOCK_MONOTONIC) < end_ns)
        (void)usleep(1000);
    if (done == 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
    return done == pid && WIFEXITED(status);
}

static void run_alone(struct all *all)
{
    measure_alone(&all->curve, all->most_kib);
}

static void run_walks(struct all *all)
{
    measure_walks(&all->curve, all->most_kib);
}

void cache_curve_measure(struct cache_curve *curve, uint32_t wall_ms)
{
    uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + wall_ms * CLOCK_MS_NS;
    uint64_t most_kib = workers_free_bytes() / 1024 / SHARE;
    *curve = (struct cache_curve){0};
    if (most_kib < LEAST_KIB)
        return;
    struct all *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return;
    all->most_kib = most_kib < MOST_KIB ? (uint32_t)most_kib : MOST_KIB;
    if (run_forked(all, run_alone, end_ns) && all->curve.n_sizes) {
        *curve = all->curve;
        if (run_forked(all, measure_all, end_ns))
            *curve = all->curve;
        all->curve = *curve;
        if (curve->is_huge && run_forked(all, run_walks, clock_now_ns(CLOCK_MONOTONIC) + wall_ms / 2 * CLOCK_MS_NS))
            *curve = all->curve;
    }
    (void)munmap(all, sizeof *all);
}
