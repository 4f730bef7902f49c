/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread-local array of a thread and one that all share. */
#include <pthread.h>

#include "kernel.h"

#define N (UINT64_C(1) << 20)

static __thread uint64_t own_table[N];
static uint64_t *shared_table;

static struct {
    int argc, status;
    char **argv;
} arguments;

static KERNEL_NOINLINE uint64_t walk_own(uint64_t n_turns)
{
    return kernel_walk(own_table, N, n_turns);
}

static KERNEL_NOINLINE uint64_t walk_shared(uint64_t n_turns)
{
    return kernel_walk(shared_table, N * 4, n_turns);
}

static void *work(void *unused)
{
    struct kernel_phase phases[] = {{"own_table", walk_own, 65, 0}, {"shared_table", walk_shared, 35, 0}};
    (void)unused;
    kernel_fill(own_table, N);
    arguments.status = kernel_phases_main(arguments.argc, arguments.argv, phases, 2);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    shared_table = kernel_check(malloc(N * 4 * sizeof *shared_table));
    kernel_fill(shared_table, N * 4);
    arguments.argc = argc;
    arguments.argv = argv;
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    return arguments.status;
}
