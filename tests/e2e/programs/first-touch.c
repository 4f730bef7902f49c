/* SPDX-License-Identifier: BSD-3-Clause */
/* Every page of each array is touched first at a known place: heap blocks from malloc through a wrapper, calloc and
 * realloc, one that the allocator itself copies, a static and a global array, some by four threads. It prints the
 * number of pages of each. The pages are kept small, so that each one faults. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define PAGE 4096L
#define THREADS 4

enum { PLAIN_PAGES = 512, SHARED_PAGES = 1024, CLEARED_PAGES = 256, GROWN_PAGES = 2048, COPIED_PAGES = 600 };

static char fixed_table[384 * PAGE];
char global_grid[768 * PAGE];
static char *plain, *shared, *cleared, *grown, *copied;

__attribute__((noinline)) static void *checked_malloc(size_t n_bytes)
{
    void *p = malloc(n_bytes);
    if (!p)
        abort();
    return p;
}

__attribute__((noinline)) static void touch(char *first, long n_pages)
{
    for (long i = 0; i < n_pages; i++)
        *(volatile char *)(first + i * PAGE) = 1;
}

/* The heap proper instead of a mapping, and no room to grow in place: realloc itself copies and touches a half. */
static void copy_within_allocator(void)
{
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    copied = checked_malloc(COPIED_PAGES / 2 * PAGE);
    touch(copied, COPIED_PAGES / 2);
    void *behind = checked_malloc(2 * PAGE);
    copied = realloc(copied, COPIED_PAGES * PAGE);
    touch(copied, COPIED_PAGES);
    free(behind);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

static void *work(void *argument)
{
    long part = (long)argument;
    touch(shared + part * (SHARED_PAGES / THREADS) * PAGE, SHARED_PAGES / THREADS);
    touch(global_grid + part * (768 / THREADS) * PAGE, 768 / THREADS);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            abort();
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
}

int main(void)
{
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    plain = checked_malloc(PLAIN_PAGES * PAGE);
    shared = checked_malloc(SHARED_PAGES * PAGE);
    cleared = calloc(CLEARED_PAGES, PAGE);
    touch(plain, PLAIN_PAGES);
    touch(fixed_table, 384);
    touch(cleared, CLEARED_PAGES);
    run_threads();
    plain = realloc(plain, (PLAIN_PAGES + 512) * PAGE);
    touch(plain, PLAIN_PAGES + 512);
    free(plain);
    grown = malloc(GROWN_PAGES * PAGE);
    touch(grown, GROWN_PAGES);
    copy_within_allocator();
    printf("plain %d\nshared %d\ncleared %d\ngrown %d\ncopied %d\nfixed_table 384\nglobal_grid 768\n",
           PLAIN_PAGES + 512, SHARED_PAGES, CLEARED_PAGES, GROWN_PAGES, COPIED_PAGES / 2 * 3);
    free(grown);
    free(copied);
    free(cleared);
    free(shared);
    return 0;
}
