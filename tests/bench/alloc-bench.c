/* SPDX-License-Identifier: BSD-3-Clause */
/* Cost of an allocation: malloc and free pairs, natively and under a command that wraps them, in one run.
 *   alloc-bench COMMAND...      for example: alloc-bench env LD_PRELOAD=/path/libhpcrun.so
 * runs itself alternately without and with COMMAND in front, and prints CPU time per pair and the ratio, the minimum of
 * the rounds. Prints only: nothing is asserted about time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 7
#define MAX_THREADS 8
#define LIVE_BLOCKS 100000

/* What one thread does between two looks at the clock. */
struct bench_case {
    const char *name;
    void (*run)(uint64_t n_pairs, void **live, uint64_t *random);
    uint64_t n_pairs;
    size_t n_live;
};

static void *volatile escape; /* the compiler must not remove a pair */

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    return *random ^= *random << 17;
}

static void run_fixed(uint64_t n_pairs, size_t n_bytes)
{
    for (uint64_t i = 0; i < n_pairs; i++) {
        void *p = malloc(n_bytes);
        escape = p;
        free(p);
    }
}

static void run_64(uint64_t n_pairs, void **live, uint64_t *random)
{
    (void)live;
    (void)random;
    run_fixed(n_pairs, 64);
}

static void run_2k(uint64_t n_pairs, void **live, uint64_t *random)
{
    (void)live;
    (void)random;
    run_fixed(n_pairs, 2048);
}

static void run_random(uint64_t n_pairs, void **live, uint64_t *random)
{
    for (uint64_t i = 0; i < n_pairs; i++) {
        uint64_t number = next_random(random);
        void **slot = &live[number % LIVE_BLOCKS];
        free(*slot);
        *slot = malloc(1024 + (number >> 32) % 3073);
    }
}

static const struct bench_case cases[] = {
    {"64 B", run_64, 2000000, 0},
    {"2 KiB, one live block", run_2k, 1000000, 0},
    {"1-4 KiB, random among 1e5 live blocks", run_random, 200000, LIVE_BLOCKS},
};
#define N_CASES (sizeof cases / sizeof *cases)

struct worker {
    pthread_t thread;
    const struct bench_case *bench_case;
    pthread_barrier_t *barrier;
    unsigned n_threads, index;
    double pair_ns;
};

static double thread_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *worker_main(void *context)
{
    struct worker *worker = context;
    const struct bench_case *bench_case = worker->bench_case;
    uint64_t random = 88172645463325252ull + worker->index, n_pairs = bench_case->n_pairs / worker->n_threads;
    void **live = calloc(bench_case->n_live + 1, sizeof *live);
    for (size_t i = 0; live && i < bench_case->n_live; i++)
        live[i] = malloc(1024 + next_random(&random) % 3073);
    bench_case->run(n_pairs / 10, live, &random);
    pthread_barrier_wait(worker->barrier);
    double start_ns = thread_ns();
    bench_case->run(n_pairs, live, &random);
    worker->pair_ns = (thread_ns() - start_ns) / (double)n_pairs;
    for (size_t i = 0; live && i < bench_case->n_live; i++)
        free(live[i]);
    free(live);
    return NULL;
}

/* The child's part: writes ns per pair, the mean over the threads, to path. */
static int measure(const char *path, unsigned case_index, unsigned n_threads)
{
    struct worker workers[MAX_THREADS];
    pthread_barrier_t barrier;
    double sum_ns = 0;
    pthread_barrier_init(&barrier, NULL, n_threads);
    for (unsigned i = 0; i < n_threads; i++) {
        workers[i] = (struct worker){.bench_case = &cases[case_index], .barrier = &barrier, .n_threads = n_threads};
        workers[i].index = i;
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]))
            return 1;
    }
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(workers[i].thread, NULL);
        sum_ns += workers[i].pair_ns;
    }
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%.3f\n", sum_ns / n_threads) < 0 || fclose(file))
        return 1;
    return 0;
}

/* Runs [prefix] self --measure path case threads; ns per pair, or -1. */
static double run_child(char **prefix, int n_prefix, const char *path, unsigned case_index, unsigned n_threads)
{
    char self[4096], case_text[12], threads_text[12];
    char *arguments[64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    (void)snprintf(case_text, sizeof case_text, "%u", case_index);
    (void)snprintf(threads_text, sizeof threads_text, "%u", n_threads);
    memcpy(arguments, prefix, (size_t)n_prefix * sizeof *prefix);
    char *const own[] = {self, "--measure", (char *)path, case_text, threads_text, NULL};
    memcpy(arguments + n_prefix, own, sizeof own);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout))
            execvp(arguments[0], arguments);
        _exit(127);
    }
    int status = 0;
    double pair_ns = -1;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        return -1;
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%lf", &pair_ns) != 1)
        pair_ns = -1;
    if (file)
        (void)fclose(file);
    return pair_ns;
}

static int compare(char **prefix, int n_prefix)
{
    static const unsigned thread_counts[] = {1, 2, 8};
    char path[] = "/tmp/alloc-bench.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || close(fd))
        return 1;
    printf("%-40s %7s %10s %10s %6s\n", "malloc/free pair", "threads", "native ns", "wrapped ns", "ratio");
    (void)fflush(stdout);
    for (unsigned i = 0; i < N_CASES * 3; i++) {
        double best[2] = {1e30, 1e30};
        for (unsigned round = 0; round < 2 * ROUNDS; round++) {
            double pair_ns = run_child(prefix, round % 2 ? n_prefix : 0, path, i / 3, thread_counts[i % 3]);
            if (pair_ns < 0) {
                fprintf(stderr, "alloc-bench: the command failed: %s\n", round % 2 ? prefix[0] : "itself");
                (void)unlink(path);
                return 1;
            }
            best[round % 2] = pair_ns < best[round % 2] ? pair_ns : best[round % 2];
        }
        printf("%-40s %7u %10.1f %10.1f %6.2f\n", cases[i / 3].name, thread_counts[i % 3], best[0], best[1],
               best[1] / best[0]);
        (void)fflush(stdout);
    }
    return unlink(path) != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--measure") == 0) {
        unsigned case_index = (unsigned)atoi(argv[3]), n_threads = (unsigned)atoi(argv[4]);
        return case_index >= N_CASES || !n_threads || n_threads > MAX_THREADS ||
               measure(argv[2], case_index, n_threads);
    }
    if (argc < 2 || argc > 50) {
        fprintf(stderr, "usage: alloc-bench COMMAND...\n");
        return 2;
    }
    return compare(argv + 1, argc - 1);
}
