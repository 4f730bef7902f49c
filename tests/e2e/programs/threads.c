/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads, each with a heap array of its own; the second has a third of the first one's time. */
#include <pthread.h>

#include "kernel.h"

#define N (UINT64_C(1) << 22)

struct worker {
    struct kernel_phase phase;
    struct kernel_options options;
    uint64_t *words;
    uint64_t position;
};

static uint64_t *first, *second;

static KERNEL_NOINLINE uint64_t walk(const uint64_t *words, uint64_t at, uint64_t n_turns)
{
    for (uint64_t i = 0; i < n_turns; i++)
        at = words[(at + i) & (N - 1)];
    return at;
}

static void *work(void *data)
{
    struct worker *worker = data;
    double start = kernel_now();
    while (worker->phase.seconds < worker->options.seconds * worker->phase.weight / 100) {
        worker->position = walk(worker->words, worker->position, 20000);
        worker->phase.seconds = kernel_now() - start;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    struct worker workers[2] = {{.phase = {"first", NULL, 75, 0}}, {.phase = {"second", NULL, 25, 0}}};
    struct kernel_options options = kernel_options(argc, argv);
    first = kernel_check(malloc(N * sizeof *first));
    second = kernel_check(malloc(N * sizeof *second));
    kernel_fill(first, N);
    kernel_fill(second, N);
    kernel_begin();
    for (int t = 0; t < 2; t++) {
        workers[t].options = options;
        workers[t].words = t ? second : first;
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0)
            return 1;
    }
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    kernel_end();
    struct kernel_phase phases[2] = {workers[0].phase, workers[1].phase};
    if (options.is_truth)
        kernel_print_phases(phases, 2);
    return 0;
}
