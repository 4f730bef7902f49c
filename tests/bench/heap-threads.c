/* SPDX-License-Identifier: BSD-3-Clause */
/* heap-threads THREADS OPERATIONS SMALLEST LARGEST: threads that each keep a thousand blocks of random sizes and
 * replace one of them OPERATIONS times, every sixteenth by a block of another thread. Prints wall and CPU seconds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_BLOCKS 1000
#define N_SHARED 64
#define THREADS_MAX 256

static struct {
    long n_operations;
    size_t smallest, largest;
    _Atomic(char *) shared[N_SHARED];
    pthread_barrier_t start;
} heap;

static char *take(size_t n_bytes)
{
    char *block = malloc(n_bytes);
    if (!block)
        abort();
    block[0] = block[n_bytes - 1] = 1;
    return block;
}

static void *work(void *argument)
{
    char *blocks[N_BLOCKS];
    unsigned long random = 88172645463325252ul + (unsigned long)argument;
    for (int i = 0; i < N_BLOCKS; i++)
        blocks[i] = take(heap.smallest);
    pthread_barrier_wait(&heap.start);
    for (long i = 0; i < heap.n_operations; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char **slot = &blocks[random % N_BLOCKS];
        if (i % 16 == 0)
            *slot = atomic_exchange(&heap.shared[random / N_BLOCKS % N_SHARED], *slot);
        free(*slot);
        *slot = take(heap.smallest + (random >> 32) % (heap.largest - heap.smallest + 1));
    }
    for (int i = 0; i < N_BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    long n_threads = argc == 5 ? atol(argv[1]) : 0;
    if (n_threads < 1 || n_threads > THREADS_MAX)
        return 2;
    heap.n_operations = atol(argv[2]);
    heap.smallest = (size_t)atol(argv[3]);
    heap.largest = (size_t)atol(argv[4]);
    pthread_barrier_init(&heap.start, NULL, (unsigned)n_threads + 1);
    for (long i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    pthread_barrier_wait(&heap.start);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    printf("%.4f %.4f\n", seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
