/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a frame costs the unwinder: without its cache, on the first pass with it, warm, with the memory of the
 * last path, for an unchanged path, and libunwind on the same contexts. Every walk starts at the end of a random call
 * chain 30 deep through 32 functions with 4 call sites each, so that one in three functions has rbp or rbx saved. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../lib/unwind-modules.h"

#define DEPTH 28
#define REPEATS 8 /* of a walk whose time would be near the clock's resolution */
#define WALKS 4000

enum pass { PASS_NO_CACHE, PASS_FIRST, PASS_WARM, PASS_MEMORY, PASS_UNCHANGED, PASS_LIBUNWIND, PASSES };

static struct {
    enum pass pass;
    uint32_t generation;
    uint64_t frames[PASSES], n_reused[PASSES];
    double cycles[PASSES][WALKS];      /* of each walk, by frame */
    unsigned n_walks, overhead_cycles; /* of reading the clock twice */
    struct unwind_bounds bounds;
    struct unwind_path path;
    int (*init)(void *cursor, void *context, int flag);
    int (*step)(void *cursor);
    uint64_t cursor[1024];
    volatile unsigned sink;
} bench;

static void note(uint64_t cycles, uint64_t n_frames)
{
    double own = cycles > bench.overhead_cycles ? (double)(cycles - bench.overhead_cycles) : 0;
    bench.cycles[bench.pass][bench.n_walks++] = own / (double)n_frames;
    bench.frames[bench.pass] += bench.pass == PASS_LIBUNWIND ? n_frames : bench.path.n_frames;
}

static void measure_libunwind(ucontext_t *context)
{
    uint64_t n = 1, start = __rdtsc();
    (void)bench.init(bench.cursor, context, 1);
    while (bench.step(bench.cursor) > 0)
        n++;
    note(__rdtsc() - start, n);
}

static __attribute__((noinline)) void leaf(void)
{
    ucontext_t context;
    if (getcontext(&context) != 0)
        return;
    if (bench.pass == PASS_LIBUNWIND) {
        measure_libunwind(&context);
        return;
    }
    struct unwind_start at = unwind_start_of(&context);
    if (bench.pass == PASS_NO_CACHE)
        bench.generation++;
    if (bench.pass == PASS_UNCHANGED)
        (void)unwind_walk_sig(&at, &bench.bounds, unwind_modules_find, bench.generation, &bench.path);
    int n_times = bench.pass == PASS_WARM || bench.pass == PASS_UNCHANGED ? REPEATS : 1;
    uint64_t start = __rdtsc(), n_frames = 0;
    for (int i = 0; i < n_times; i++) {
        if (bench.pass != PASS_UNCHANGED && bench.pass != PASS_MEMORY)
            bench.path.n_frames = 0;
        (void)unwind_walk_sig(&at, &bench.bounds, unwind_modules_find, bench.generation, &bench.path);
        n_frames += bench.path.n_frames;
    }
    note(__rdtsc() - start, n_frames);
    bench.n_reused[bench.pass] += bench.path.n_reused;
}

static void call_next(unsigned seed, int depth);

#define FUNCTION(n)                                                                                                    \
    static __attribute__((noinline)) unsigned f##n(unsigned seed, int depth)                                           \
    {                                                                                                                  \
        volatile char frame[(n)*24 + 8];                                                                               \
        unsigned a = seed * (n + 3), b = seed >> (n & 7);                                                              \
        frame[0] = (char)a;                                                                                            \
        switch (seed >> 28 & 3) {                                                                                      \
        case 0:                                                                                                        \
            call_next(seed * 5 + 1, depth);                                                                            \
            return (n) % 3 ? b + (unsigned char)frame[0] : 0;                                                          \
        case 1:                                                                                                        \
            call_next(seed * 13 + 7, depth);                                                                           \
            return (n) % 2 ? a ^ b : 1;                                                                                \
        case 2:                                                                                                        \
            call_next(seed * 29 + 3, depth);                                                                           \
            return a + (unsigned char)frame[n];                                                                        \
        default:                                                                                                       \
            call_next(seed * 61 + 9, depth);                                                                           \
            return (unsigned char)frame[0];                                                                            \
        }                                                                                                              \
    }

FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3) FUNCTION(4) FUNCTION(5) FUNCTION(6) FUNCTION(7) FUNCTION(8) FUNCTION(9) FUNCTION(10) FUNCTION(11)
    FUNCTION(12) FUNCTION(13) FUNCTION(14) FUNCTION(15) FUNCTION(16) FUNCTION(17) FUNCTION(18) FUNCTION(19) FUNCTION(20)
        FUNCTION(21) FUNCTION(22) FUNCTION(23) FUNCTION(24) FUNCTION(25) FUNCTION(26) FUNCTION(27) FUNCTION(28)
            FUNCTION(29) FUNCTION(30) FUNCTION(31)

                static void call_next(unsigned seed, int depth)
{
    static unsigned (*const functions[])(unsigned, int) = {f0,  f1,  f2,  f3,  f4,  f5,  f6,  f7,  f8,  f9,  f10,
                                                           f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21,
                                                           f22, f23, f24, f25, f26, f27, f28, f29, f30, f31};
    if (depth == 0)
        leaf();
    else
        bench.sink += functions[seed >> 20 & 31](seed, depth - 1);
}

static void run(enum pass pass)
{
    unsigned seed = 1;
    bench.pass = pass;
    bench.n_walks = 0;
    if (pass == PASS_FIRST)
        bench.generation++;
    for (int i = 0; i < WALKS; i++) {
        seed = seed * 1103515245u + 12345u;
        call_next(seed, DEPTH);
    }
}

static double ns_per_cycle(void)
{
    struct timespec from, to;
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    uint64_t start = __rdtsc();
    usleep(50000);
    uint64_t cycles = __rdtsc() - start;
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / (double)cycles;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void find_overhead(void)
{
    bench.overhead_cycles = 1000;
    for (int i = 0; i < 1000; i++) {
        uint64_t start = __rdtsc(), cycles = __rdtsc() - start;
        if (cycles < bench.overhead_cycles)
            bench.overhead_cycles = (unsigned)cycles;
    }
}

static void report(void)
{
    static const char *const names[PASSES] = {"no cache",          "first cached pass", "warm",
                                              "warm, with memory", "unchanged path",    "libunwind"};
    static const char *const goals[PASSES] = {"", "goal 60; ", "goal 12; ", "", "goal 1; ", ""};
    double ns = ns_per_cycle();
    for (int i = 0; i < PASSES; i++) {
        if (!bench.frames[i])
            continue;
        qsort(bench.cycles[i], WALKS, sizeof(double), compare);
        printf("%-18s %8.2f ns a frame (%s9 of 10 below %.2f; %.1f frames, %.0f %% taken over)\n", names[i],
               bench.cycles[i][WALKS / 2] * ns, goals[i], bench.cycles[i][WALKS * 9 / 10] * ns,
               (double)bench.frames[i] / WALKS, 100.0 * (double)bench.n_reused[i] / (double)bench.frames[i]);
    }
}

int main(void)
{
    char dir[] = "/tmp/unwind-bench-XXXXXX", command[64];
    struct error err;
    if (!mkdtemp(dir) || unwind_modules_load(dir, &err) != 0) {
        printf("FAIL: %s\n", err.text);
        return 1;
    }
    bench.bounds = unwind_stack_bounds();
    find_overhead();
    for (int i = PASS_NO_CACHE; i < PASS_LIBUNWIND; i++)
        run((enum pass)i);
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (library) {
        *(void **)&bench.init = dlsym(library, "_ULx86_64_init_local2");
        *(void **)&bench.step = dlsym(library, "_ULx86_64_step");
        run(PASS_LIBUNWIND);
    } else {
        printf("SKIP: libunwind.so.8 is not installed\n");
    }
    report();
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0;
}
