/* SPDX-License-Identifier: BSD-3-Clause */
/* "patterns N": N threads use eight arrays, each in a way of its own, for the same CPU time. "patterns N false|true|
 * padded|unshared": they count, each on a processor of its own while there are enough, in words of one line, in the
 * same word, in lines of their own, or on their own stacks. "patterns N turns|serial": in the same word, but one at a
 * time: again and again for 60 ms, or for all of its life. A last word "atomic": by atomic additions. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LARGE (1 << 21) /* doubles: 16 MiB */
#define MIDDLE (1 << 19)
#define SMALL (1 << 12)
#define PHASE_S 0.4 /* CPU time of all threads together */
#define TURN_S 0.06 /* CPU time, longer than a watch of hpcrun --verify-sharing */
#define TURNS 5     /* of each thread */

static double owned[MIDDLE], blocked[MIDDLE], interleaved[MIDDLE], streamed[LARGE], scattered[LARGE], few[MIDDLE];
static double table[SMALL];
static volatile long tally[SMALL];
static _Alignas(64) volatile long words[8];
static struct {
    _Alignas(64) volatile long count;
} padded[8];
static long n_threads;
static const char *sharing;
static bool is_atomic;
static pthread_barrier_t barrier;

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static __attribute__((noinline)) double sweep(double *array, long from, long to, long step)
{
    double sum = 0;
    for (long i = from; i < to; i += step)
        sum += array[i];
    return sum;
}

static __attribute__((noinline)) void raise(double *array, long from, long to, long step)
{
    for (long i = from; i < to; i += step)
        array[i] += 1;
}

static __attribute__((noinline)) uint64_t look_up(const double *array, long n, uint64_t at, double *sum)
{
    for (int i = 0; i < 20000; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        *sum += array[(at >> 33) % (uint64_t)n];
    }
    return at;
}

static __attribute__((noinline)) uint64_t count(uint64_t at)
{
    for (int i = 0; i < 20000; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        __atomic_fetch_add(&tally[(at >> 33) % SMALL], 1, __ATOMIC_RELAXED); /* a plain store seldom has samples */
    }
    return at;
}

/* One turn of a phase for thread t. */
static double turn(int phase, long t, uint64_t *at)
{
    double sum = 0;
    long part = MIDDLE / n_threads;
    switch (phase) {
    case 0:
        raise(owned, 0, t ? 0 : MIDDLE, 1);
        break;
    case 1:
        raise(blocked, t * part, (t + 1) * part, 1);
        break;
    case 2:
        raise(interleaved, t, MIDDLE, n_threads);
        break;
    case 3:
        return sweep(streamed, 0, LARGE, 1);
    case 4:
        *at = look_up(scattered, LARGE, *at, &sum);
        break;
    case 5:
        *at = look_up(table, SMALL, *at, &sum);
        break;
    default:
        *at = count(*at);
    }
    return sum;
}

static void use_arrays(long t)
{
    uint64_t at = 88172645463325252u * (uint64_t)(t + 1);
    volatile double sum = 0;
    for (int phase = 0; phase < 7; phase++) {
        double end = cpu_s() + (phase ? PHASE_S / (double)n_threads : t ? 0 : PHASE_S);
        pthread_barrier_wait(&barrier);
        while (cpu_s() < end)
            sum = sum + turn(phase, t, &at);
    }
    if (t == 0)
        raise(few, 0, MIDDLE, 1);
}

static void count_words(long t)
{
    volatile long own[8] = {0};
    volatile long *word = !strcmp(sharing, "false")      ? &words[t % 8]
                          : !strcmp(sharing, "padded")   ? &padded[t % 8].count
                          : !strcmp(sharing, "unshared") ? &own[0]
                                                         : &words[3];
    bool in_turns = !strcmp(sharing, "turns");
    double end = cpu_s() + (in_turns ? TURN_S : 1.0 / (double)n_threads);
    if (strcmp(sharing, "serial") != 0)
        pthread_barrier_wait(&barrier);
    while (is_atomic && cpu_s() < end)
        for (int i = 0; i < 100000; i++)
            __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    while (!is_atomic && cpu_s() < end)
        for (int i = 0; i < 100000; i++)
            ++*word;
}

/* To the t-th of the processors that the program may use: a busy machine's scheduler may leave all threads on one. */
static void pin(long t)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    long at = t % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && at-- == 0)
            CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void take_turns(long t)
{
    for (long turn = 0; turn < TURNS * n_threads; turn++)
        if (turn % n_threads == t)
            count_words(t);
        else
            pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

static void *run(void *number)
{
    long t = (long)(intptr_t)number;
    if (sharing)
        pin(t);
    if (sharing && !strcmp(sharing, "turns"))
        take_turns(t);
    else if (sharing)
        count_words(t);
    else
        use_arrays(t);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    n_threads = argc > 1 ? atol(argv[1]) : 4;
    sharing = argc > 2 ? argv[2] : NULL;
    is_atomic = argc > 3 && !strcmp(argv[3], "atomic");
    if (n_threads < 1 || n_threads > 64)
        return 2;
    pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
    bool is_serial = sharing && !strcmp(sharing, "serial");
    for (long t = 0; t < n_threads; t++) {
        if (pthread_create(&threads[t], NULL, run, (void *)(intptr_t)t))
            return 1;
        if (is_serial)
            pthread_join(threads[t], NULL);
    }
    for (long t = 0; t < n_threads && !is_serial; t++)
        pthread_join(threads[t], NULL);
    return 0;
}
