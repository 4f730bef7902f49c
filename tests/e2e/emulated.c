/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with known functions and allocations, for machines that exist here only under qemu-user: works in main, in
 * a thread, and in a plugin that is found through its RUNPATH. With -DPLUGIN it is the plugin. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
#define N (1 << 15)

double plugin_work(double *values, long n_turns);

#ifdef PLUGIN
NOINLINE double plugin_work(double *values, long n_turns)
{
    double sum = 0;
    for (long i = 0; i < n_turns * N; i++)
        sum += values[i % N] * 1.5;
    return sum;
}
#else
static double table[N];
static volatile double sink;

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

NOINLINE static double sum_of(const double *values, long n_turns)
{
    double sum = 0;
    for (long i = 0; i < n_turns * N; i++)
        sum += values[i * 37 % N];
    return sum;
}

NOINLINE static void work_in_main(const double *values)
{
    for (double end = cpu_s() + 0.4; cpu_s() < end;)
        sink += sum_of(values, 4);
}

NOINLINE static void *work_in_thread(void *values)
{
    for (double end = cpu_s() + 0.4; cpu_s() < end;)
        sink += sum_of(values, 4);
    return NULL;
}

NOINLINE static double *grid_new(long n)
{
    double *grid = malloc((size_t)n * sizeof *grid);
    for (long i = 0; grid && i < n; i++)
        grid[i] = (double)i;
    return grid;
}

int main(void)
{
    double *grid = grid_new(N), (*work)(double *, long);
    void *plugin = dlopen("libemulated-plugin.so", RTLD_NOW);
    pthread_t thread;
    if (!grid || !plugin) {
        printf("no plugin: %s\n", dlerror());
        return 1;
    }
    *(void **)&work = dlsym(plugin, "plugin_work");
    if (!work || pthread_create(&thread, NULL, work_in_thread, table) != 0)
        return 1;
    work_in_main(grid);
    for (double end = cpu_s() + 0.4; cpu_s() < end;)
        sink += work(grid, 4);
    pthread_join(thread, NULL);
    free(grid);
    return 0;
}
#endif
