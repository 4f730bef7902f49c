/* SPDX-License-Identifier: BSD-3-Clause */
/* A busy program with several threads: memory is allocated, walked, resized and freed all the time, a library comes and
 * goes, threads end and begin. It says "ready" and goes on until it is killed, or for so many seconds. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_BLOCKS 64

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    return *random ^= *random << 17;
}

static unsigned long walk(const char *block, size_t n_bytes)
{
    unsigned long sum = 0;
    for (size_t i = 0; i < n_bytes; i += 64)
        sum += (unsigned char)block[i];
    return sum;
}

static void *short_life(void *argument)
{
    char *block = malloc(100000);
    memset(block, 1, 100000);
    *(unsigned long *)argument += walk(block, 100000);
    free(block);
    return NULL;
}

static void come_and_go(unsigned long *sum)
{
    pthread_t thread;
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    if (pthread_create(&thread, NULL, short_life, sum) == 0)
        pthread_join(thread, NULL);
    if (library)
        dlclose(library);
}

static void *churn(void *argument)
{
    double end_s = now_s() + *(const double *)argument;
    char *blocks[N_BLOCKS] = {0};
    uint64_t random = (uintptr_t)&end_s | 1;
    unsigned long sum = 0;
    for (unsigned round = 0; now_s() < end_s; round++) {
        unsigned i = (unsigned)(next_random(&random) % N_BLOCKS);
        size_t n_bytes = 512 + next_random(&random) % 200000;
        char *block = realloc(round % 3 ? NULL : blocks[i], n_bytes);
        if (round % 3)
            free(blocks[i]);
        blocks[i] = block;
        memset(block, (int)round, n_bytes);
        sum += walk(block, n_bytes);
        if (round % 512 == 0)
            come_and_go(&sum);
    }
    for (unsigned i = 0; i < N_BLOCKS; i++)
        free(blocks[i]);
    return (void *)(uintptr_t)(sum | 1);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 60;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, churn, &seconds) != 0)
            return 1;
    (void)!write(1, "ready\n", 6);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 4;
}
