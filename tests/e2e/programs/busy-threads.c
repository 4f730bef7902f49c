/* SPDX-License-Identifier: BSD-3-Clause */
/* Two OpenMP threads on one processor, so that each waits for the other to be given it. Prints the nanoseconds that
 * they could run and did not, and their CPU time, as the kernel counts them at the end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N (1 << 16)

int main(void)
{
    static double a[N];
    cpu_set_t one, all;
    unsigned long long run_ns, delay_ns, run = 0, delay = 0;
    char path[300];
    int cpu = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return 1;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return 1;
    for (clock_t end = clock() + CLOCKS_PER_SEC; clock() < end;) {
#pragma omp parallel for num_threads(2)
        for (int i = 0; i < N; i++)
            a[i] = a[i] * 0.5 + i;
    }
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        FILE *file = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file && fscanf(file, "%llu %llu", &run_ns, &delay_ns) == 2) {
            run += run_ns;
            delay += delay_ns;
        }
        if (file)
            fclose(file);
    }
    printf("%llu %llu\n", delay, run);
    return a[N - 1] > 0 ? 0 : 1;
}
