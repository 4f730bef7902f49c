/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that are bound to CPUs, the two arguments, and touch pages of arrays there for the first time, each once:
 * one stays on the first CPU, one on the second, and one moves from the first to the second. It prints lines
 * "variable CPU pages". The pages are kept small, so that each one faults. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define PAGE 4096L

enum {
    LEFT_PAGES = 300,
    RIGHT_PAGES = 500,
    BOTH_PAGES = 400,
    FIRST_OF_BOTH = 100,
    MOVED_PAGES = 600,
    FIRST_OF_MOVED = 150
};

_Alignas(PAGE) char left[LEFT_PAGES * PAGE], right[RIGHT_PAGES * PAGE], both[BOTH_PAGES * PAGE];
static char *moved;
static int cpus[2];

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        abort();
}

__attribute__((noinline)) static void touch(char *array, long first, long end)
{
    for (long i = first; i < end; i++)
        *(volatile char *)(array + i * PAGE) = 1;
}

static void *stay_on_first(void *unused)
{
    run_on(cpus[0]);
    touch(left, 0, LEFT_PAGES);
    touch(both, 0, FIRST_OF_BOTH);
    return unused;
}

static void *stay_on_second(void *unused)
{
    run_on(cpus[1]);
    touch(right, 0, RIGHT_PAGES);
    touch(both, FIRST_OF_BOTH, BOTH_PAGES);
    return unused;
}

static void *move(void *unused)
{
    run_on(cpus[0]);
    touch(moved, 0, FIRST_OF_MOVED);
    run_on(cpus[1]);
    touch(moved, FIRST_OF_MOVED, MOVED_PAGES);
    return unused;
}

int main(int argc, char **argv)
{
    static void *(*const works[])(void *) = {stay_on_first, stay_on_second, move};
    pthread_t threads[3];
    if (argc != 3)
        return 2;
    cpus[0] = atoi(argv[1]);
    cpus[1] = atoi(argv[2]);
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    moved = malloc(MOVED_PAGES * PAGE);
    if (!moved)
        abort();
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, works[i], NULL) != 0)
            abort();
    for (int i = 0; i < 3; i++)
        (void)pthread_join(threads[i], NULL);
    printf("left %d %d\nright %d %d\n", cpus[0], LEFT_PAGES, cpus[1], RIGHT_PAGES);
    printf("both %d %d\nboth %d %d\n", cpus[0], FIRST_OF_BOTH, cpus[1], BOTH_PAGES - FIRST_OF_BOTH);
    printf("moved %d %d\nmoved %d %d\n", cpus[0], FIRST_OF_MOVED, cpus[1], MOVED_PAGES - FIRST_OF_MOVED);
    free(moved);
    return 0;
}
