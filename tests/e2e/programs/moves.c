/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread touches the pages of a block, another one frees it and gets the same memory for another block, which
 * nobody touches: the first touches belong to the block that is gone. Prints 1 when the memory was the same. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES (1 << 20)

static pthread_barrier_t barrier;
static char *volatile block;

static void *toucher(void *unused)
{
    (void)unused;
    for (int i = 0; i < BYTES; i += 4096)
        block[i] = 1;
    pthread_barrier_wait(&barrier); /* touched: not drained */
    pthread_barrier_wait(&barrier); /* freed and handed out again */
    return NULL;
}

static __attribute__((noinline)) char *make_first(void)
{
    return malloc(BYTES);
}

static __attribute__((noinline)) char *make_second(void)
{
    return malloc(BYTES);
}

int main(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 1 << 24);
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    char *first = make_first();
    block = first;
    pthread_create(&thread, NULL, toucher, NULL);
    pthread_barrier_wait(&barrier);
    free(first);
    char *second = make_second();
    block = second;
    printf("%d\n", first == second);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    free(second);
    return 0;
}
