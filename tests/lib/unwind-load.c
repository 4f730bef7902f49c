/* SPDX-License-Identifier: BSD-3-Clause */
/* C workloads for the unwinder's oracle test; compiled with several sets of flags. */
#include "unwind-load.h"

#include <alloca.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static struct {
    void (*on_signal)(void);
    volatile unsigned long sink; /* may wrap */
    jmp_buf out;
} load;

NOINLINE static long recurse(int depth, long a, long b)
{
    if (depth == 0)
        return a ^ b;
    long r = recurse(depth - 1, b + depth, a * 3) + depth;
    return r + a * b;
}

static int compare(const void *a, const void *b)
{
    load.sink += (unsigned long)recurse(2, *(const int *)a, 1);
    return *(const int *)a - *(const int *)b;
}

NOINLINE static void sort(int n)
{
    int *items = alloca((size_t)n * sizeof *items);
    for (int i = 0; i < n; i++)
        items[i] = (i * 7919) % 101;
    qsort(items, (size_t)n, sizeof *items, compare);
    load.sink += (unsigned long)items[n / 2];
}

/* A local that needs more alignment than the stack has makes the compiler realign it and address the caller's frame
 * through a saved pointer. */
NOINLINE static double realigned(int n, double x)
{
    double values[32] __attribute__((aligned(128)));
    char *more = alloca((size_t)n + 1);
    memset(more, n, (size_t)n + 1);
    for (int i = 0; i < 32; i++)
        values[i] = x * i + more[n];
    if (n > 0)
        values[n & 31] += realigned(n - 1, x + 1);
    double sum = 0;
    for (int i = 0; i < 32; i++)
        sum += values[i] * values[(i * 7) & 31];
    return sum;
}

NOINLINE static void jump(int depth)
{
    if (depth == 0 && load.on_signal)
        longjmp(load.out, 1);
    if (depth > 0)
        jump(depth - 1);
    load.sink++;
}

/* Library functions that are called for the first time here: the dynamic linker runs below these frames. */
NOINLINE static void late_calls(int n)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%d %g", n, 1.5 * n);
    load.sink += (unsigned long)(strtol(text, NULL, 10) + (long)strtod(text, NULL));
    load.sink += (unsigned long)(long)(cos(n) + hypot(n, 2.0) + cbrt(n) + tgamma(1.0 + n % 5));
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    load.sink += (unsigned long)now.tv_nsec + strcspn(text, "9") + strspn(text, "12");
}

static void handle(int signal)
{
    (void)signal;
    load.on_signal();
    sort(5);
    load.sink += (unsigned long)recurse(3, 1, 2);
}

void unwind_load_c(int n, void (*on_signal)(void))
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK}, plain = {.sa_handler = handle}, old;
    load.on_signal = on_signal;
    for (int i = 0; i < n; i++) {
        load.sink += (unsigned long)recurse(20 + i % 5, i, 2);
        sort(12 + i % 3);
        load.sink += (unsigned long)realigned(3 + i % 3, i);
        if (!setjmp(load.out))
            jump(6);
        late_calls(i);
        (void)sigaction(SIGUSR1, i & 1 ? &plain : &action, &old);
        (void)raise(SIGUSR1);
        (void)sigaction(SIGUSR1, &old, NULL);
    }
}
