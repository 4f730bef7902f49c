/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers and hooks of a profiler must survive: three threads that load and unload libraries, allocate and free,
 * and walk their own stack, for so many seconds. Arguments: seconds, libraries to load. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_BLOCKS 256

static struct {
    atomic_bool is_over;
    int n_libraries;
    char **libraries;
    unsigned long n_loads, n_allocations, n_walks;
} stress;

static void *load_libraries(void *unused)
{
    while (!stress.is_over) {
        for (int i = 0; i < stress.n_libraries; i++) {
            void *library = dlopen(stress.libraries[i], i % 2 ? RTLD_NOW : RTLD_LAZY);
            void (*work)(void) = library ? (void (*)(void))dlsym(library, "library_work") : NULL;
            if (work)
                work();
            if (library && dlclose(library) == 0)
                stress.n_loads++;
        }
    }
    return unused;
}

static void *allocate(void *unused)
{
    char *blocks[N_BLOCKS] = {NULL};
    unsigned seed = 1;
    while (!stress.is_over) {
        seed = seed * 1103515245u + 12345u;
        unsigned i = seed >> 16 & (N_BLOCKS - 1);
        size_t size = (seed >> 8 & 8191) + 1;
        if (seed >> 24 & 1) {
            free(blocks[i]);
            blocks[i] = malloc(size);
        } else {
            blocks[i] = realloc(blocks[i], size);
        }
        if (blocks[i])
            memset(blocks[i], 1, size < 64 ? size : 64);
        stress.n_allocations++;
    }
    for (int i = 0; i < N_BLOCKS; i++)
        free(blocks[i]);
    return unused;
}

static __attribute__((noinline)) int walk(unsigned depth)
{
    void *frames[64];
    if (depth == 0)
        return backtrace(frames, 64);
    return walk(depth - 1) + 1;
}

static void *walk_stacks(void *unused)
{
    while (!stress.is_over)
        stress.n_walks += walk((unsigned)(stress.n_walks % 20)) > 0;
    return unused;
}

int main(int argc, char **argv)
{
    static void *(*const starts[])(void *) = {load_libraries, allocate, walk_stacks};
    pthread_t threads[3];
    struct timespec pause = {argc > 1 ? atoi(argv[1]) : 1, 0};
    stress.n_libraries = argc > 2 ? argc - 2 : 0;
    stress.libraries = argv + 2;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, starts[i], NULL);
    nanosleep(&pause, NULL);
    stress.is_over = true;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("all worked: %d\n", stress.n_loads && stress.n_allocations && stress.n_walks);
    return 21;
}
