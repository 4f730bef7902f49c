/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with a pool of its own that tells of its blocks in one of three ways: API 1: our header, 2: heaptrack's
 * API, 3: ITT's heap functions as its static library finds them. Three quarters of the time go to "hot", one quarter to
 * "cold"; both lie in one slab. "gone" was freed before its place was given to "hot". */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if API == 1
#include "runtime/locus.h"
#elif API == 2
__attribute__((weak)) void heaptrack_malloc(void *p, size_t n_bytes);
__attribute__((weak)) void heaptrack_free(void *p);
__attribute__((weak)) void heaptrack_realloc(void *old_p, size_t n_bytes, void *new_p);
#endif

#define SLAB_BYTES (96ul << 20)
#define BLOCK_BYTES (32ul << 20)

static struct {
    char *slab;
    size_t used_bytes;
} pool;

#if API == 3
static void *itt_library(void)
{
    const char *name = getenv("INTEL_LIBITTNOTIFY64");
    const char *groups = getenv("INTEL_ITTNOTIFY_GROUPS");
    void *library = name && groups && strstr(groups, "heap") ? dlopen(name, RTLD_LAZY) : NULL;
    return library && dlsym(library, "__itt_api_version") ? library : NULL;
}
#endif

static void tell_alloc(void *p, size_t n_bytes)
{
#if API == 1
    locus_pool_alloc(p, n_bytes);
#elif API == 2
    if (heaptrack_malloc)
        heaptrack_malloc(p, n_bytes);
#elif API == 3
    void *library = itt_library();
    void *(*create)(const char *, const char *) = library ? dlsym(library, "__itt_heap_function_create") : NULL;
    void (*end)(void *, void **, size_t, int) = library ? dlsym(library, "__itt_heap_allocate_end") : NULL;
    if (create && end)
        end(create("take", "pool"), &p, n_bytes, 0);
#endif
}

static void tell_free(void *p)
{
#if API == 1
    locus_pool_free(p);
#elif API == 2
    if (heaptrack_free)
        heaptrack_free(p);
#elif API == 3
    void *library = itt_library();
    void (*begin)(void *, void *) = library ? dlsym(library, "__itt_heap_free_begin") : NULL;
    if (begin)
        begin(NULL, p);
#endif
}

static __attribute__((noinline)) void *pool_take(size_t n_bytes)
{
    char *p = pool.slab + pool.used_bytes;
    pool.used_bytes += n_bytes;
    tell_alloc(p, n_bytes);
    return p;
}

static __attribute__((noinline)) void pool_give_back_last(void *p, size_t n_bytes)
{
    tell_free(p);
    pool.used_bytes -= n_bytes;
}

static unsigned long chase(const unsigned *block, unsigned steps, unsigned at)
{
    for (unsigned i = 0; i < steps; i++)
        at = block[at % (BLOCK_BYTES / sizeof *block)] + i * 1664525u + at * 22695477u;
    return at;
}

int main(void)
{
    pool.slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool.slab == MAP_FAILED)
        return 1;
    unsigned *gone = pool_take(BLOCK_BYTES);
    gone[0] = 1;
    pool_give_back_last(gone, BLOCK_BYTES);
    unsigned *hot = pool_take(BLOCK_BYTES);
    unsigned *cold = pool_take(BLOCK_BYTES);
    memset(pool.slab, 1, SLAB_BYTES);
    unsigned long sum = 0;
    for (unsigned i = 0; i < 40; i++) {
        sum += chase(hot, 300000, i);
        sum += chase(cold, 100000, i);
    }
    printf("%lu\n", sum % 2);
    munmap(pool.slab, SLAB_BYTES);
    unsigned *rest = malloc(BLOCK_BYTES); /* likely where the slab was */
    for (unsigned i = 0; rest && i < 4; i++)
        sum += chase(memset(rest, (int)i, BLOCK_BYTES), 100000, i);
    free(rest);
    return sum == 1;
}
