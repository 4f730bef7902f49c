/* SPDX-License-Identifier: BSD-3-Clause */
/* triad-threads PASSES: two threads that walk through shared arrays much larger than the caches, PASSES times. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N (1 << 22) /* numbers in an array, 32 MiB */
#define N_THREADS 2

static struct {
    double *a, *b, *c;
    long n_passes;
} triad;

static __attribute__((noinline)) void pass(int from, int to, double factor)
{
    for (int i = from; i < to; i++)
        triad.a[i] = triad.b[i] + factor * triad.c[i];
}

static void *walk(void *argument)
{
    int part = (int)(long)argument;
    for (long i = 0; i < triad.n_passes; i++)
        pass(part * (N / N_THREADS), (part + 1) * (N / N_THREADS), (double)i);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[N_THREADS];
    triad.n_passes = argc > 1 ? atol(argv[1]) : 0;
    triad.a = malloc(N * sizeof(double));
    triad.b = malloc(N * sizeof(double));
    triad.c = malloc(N * sizeof(double));
    if (triad.n_passes < 1 || !triad.a || !triad.b || !triad.c)
        return 2;
    for (int i = 0; i < N; i++)
        triad.b[i] = triad.c[i] = i;
    for (long i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, walk, (void *)i))
            return 1;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%g\n", triad.a[N - 1]);
    return 0;
}
