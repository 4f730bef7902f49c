/* SPDX-License-Identifier: BSD-3-Clause */
/* Very many short threads: rounds of threads that are all alive at once, each of which allocates a block, works on it
 * and frees that of another thread. Arguments: threads alive at once, rounds. Prints the sum of all work, and the
 * process's memory in KiB after half of the rounds and after the last one.
 * With the arguments "brief" and a number: so many threads one after the other, each of which follows a ring in one
 * array for 0.6 ms of its CPU time; after each the main thread does the same in another array. Prints the CPU time of
 * both, in nanoseconds. A third and a fourth argument say for how many microseconds the threads and the main
 * thread do that instead.
 * With the arguments "touch", threads alive at once and rounds: each thread touches pages of its own first.
 * With the arguments "faults", threads and two numbers: so many threads, all alive at once, each of which touches so
 * many pages of its own in touch_one, and then so many in touch_other. With the arguments "read" and a number: so many
 * threads that are in the kernel, for 0.6 ms or a third argument of microseconds. Prints the process's times. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_LONGS 256
#define STACK_BYTES (64 * 1024)

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t all_alive;
    long n_wanted, n_alive;
    long **blocks;
    atomic_long sum;
    long n_touched; /* by the rounds before */
} run = {.mutex = PTHREAD_MUTEX_INITIALIZER, .all_alive = PTHREAD_COND_INITIALIZER};

static __attribute__((noinline)) long work(volatile long *block)
{
    for (int pass = 0; pass < 60; pass++)
        for (int i = 0; i < BLOCK_LONGS; i++)
            block[i] += i;
    return block[BLOCK_LONGS - 1];
}

static void wait_for_all(void)
{
    pthread_mutex_lock(&run.mutex);
    if (++run.n_alive == run.n_wanted)
        pthread_cond_broadcast(&run.all_alive);
    while (run.n_alive < run.n_wanted)
        pthread_cond_wait(&run.all_alive, &run.mutex);
    pthread_mutex_unlock(&run.mutex);
}

static void *live(void *argument)
{
    long i = (long)argument;
    run.blocks[i] = calloc(BLOCK_LONGS, sizeof(long));
    if (!run.blocks[i])
        abort();
    atomic_fetch_add(&run.sum, work(run.blocks[i]));
    wait_for_all();
    free(run.blocks[(i + 1) % run.n_wanted]);
    return NULL;
}

#define TOUCHED_PAGES 32 /* by each thread */
#define TOUCHERS_MAX 1200L

static char touched[TOUCHERS_MAX * TOUCHED_PAGES * 4096] __attribute__((aligned(4096)));

static void *touch(void *argument)
{
    char *mine = touched + (run.n_touched + (long)argument) * TOUCHED_PAGES * 4096;
    wait_for_all();
    for (int i = 0; i < TOUCHED_PAGES; i++)
        mine[i * 4096] = 1;
    return NULL;
}

static void one_round(pthread_t *threads, const pthread_attr_t *attributes, void *(*start)(void *))
{
    run.n_alive = 0;
    for (long i = 0; i < run.n_wanted; i++) {
        if (pthread_create(&threads[i], attributes, start, (void *)i) != 0)
            abort();
    }
    for (long i = 0; i < run.n_wanted; i++)
        pthread_join(threads[i], NULL);
}

static int touch_in_rounds(long n_at_once, long n_rounds)
{
    pthread_t *threads = calloc((size_t)n_at_once, sizeof *threads);
    pthread_attr_t attributes;
    if (!threads || n_at_once * n_rounds > TOUCHERS_MAX)
        return 1;
    (void)madvise(touched, sizeof touched, MADV_NOHUGEPAGE);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    run.n_wanted = n_at_once;
    for (long round = 0; round < n_rounds; round++, run.n_touched += n_at_once)
        one_round(threads, &attributes, touch);
    return 0;
}

static long memory_kib(void)
{
    char line[128];
    long kib = 0, part;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "RssAnon: %ld", &part) == 1 || sscanf(line, "RssShmem: %ld", &part) == 1)
            kib += part;
    }
    if (status)
        fclose(status);
    return kib;
}

#define RING 1024
#define BRIEF_NS 600000

struct used {
    const unsigned *ring;
    long wanted_ns; /* each time */
    long ns;
};

static unsigned of_threads[RING], of_main[RING];

static long cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static __attribute__((noinline)) unsigned follow(const unsigned *ring, unsigned at)
{
    for (int i = 0; i < 20000; i++)
        at = ring[at];
    return at;
}

static void *live_briefly(void *argument)
{
    struct used *used = argument;
    long begin_ns = cpu_ns(), end_ns;
    unsigned at = 0;
    do {
        at = follow(used->ring, at);
        end_ns = cpu_ns();
    } while (end_ns - begin_ns < used->wanted_ns && at < RING);
    used->ns += end_ns - begin_ns;
    return NULL;
}

static int live_in_turn(long n, long threads_ns, long main_ns)
{
    struct used by_threads = {of_threads, threads_ns, 0}, by_main = {of_main, main_ns, 0};
    pthread_t thread;
    for (unsigned i = 0; i < RING; i++)
        of_threads[i] = of_main[i] = (i + 389) % RING;
    for (long i = 0; i < n; i++) {
        if (pthread_create(&thread, NULL, live_briefly, &by_threads) != 0)
            return 1;
        pthread_join(thread, NULL);
        if (main_ns)
            (void)live_briefly(&by_main);
    }
    printf("%ld %ld\n", by_threads.ns, by_main.ns);
    return 0;
}

struct reads {
    int fd;
    long wanted_ns;
};

static void *read_zeros(void *argument)
{
    static char bytes[1 << 16];
    const struct reads *reads = argument;
    long end_ns = cpu_ns() + reads->wanted_ns;
    while (cpu_ns() < end_ns)
        if (pread(reads->fd, bytes, sizeof bytes, 0) < 0)
            abort();
    return NULL;
}

/* So many threads one after the other, which are in the kernel for most of their time. Prints the process's user and
 * system time in microseconds. */
static int read_in_turn(long n, long wanted_ns)
{
    struct reads reads = {open("/dev/zero", O_RDONLY), wanted_ns};
    pthread_t thread;
    struct rusage usage;
    for (long i = 0; i < n; i++) {
        if (pthread_create(&thread, NULL, read_zeros, &reads) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld %ld\n", usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec,
           usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec);
    return 0;
}

static struct {
    long n_one, n_other;
} faults;

__attribute__((noinline)) void touch_one(volatile char *pages, long n);
__attribute__((noinline)) void touch_other(volatile char *pages, long n);

void touch_one(volatile char *pages, long n)
{
    for (long i = 0; i < n; i++)
        pages[i * 4096] = 1;
}

void touch_other(volatile char *pages, long n)
{
    for (long i = 0; i < n; i++)
        pages[i * 4096] = 2;
}

static void *fault(void *argument)
{
    size_t n_bytes = (size_t)(faults.n_one + faults.n_other) * 4096;
    char *pages = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        abort();
    (void)madvise(pages, n_bytes, MADV_NOHUGEPAGE);
    wait_for_all();
    touch_one(pages, faults.n_one);
    touch_other(pages + faults.n_one * 4096, faults.n_other);
    return argument;
}

static int fault_at_once(long n_threads, long n_one, long n_other)
{
    pthread_attr_t attributes;
    pthread_t *threads = calloc((size_t)n_threads, sizeof *threads);
    run.n_wanted = n_threads;
    faults.n_one = n_one;
    faults.n_other = n_other;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (long i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], &attributes, fault, NULL) != 0)
            abort();
    for (long i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && !strcmp(argv[1], "touch"))
        return touch_in_rounds(atol(argv[2]), atol(argv[3]));
    if (argc > 4 && !strcmp(argv[1], "faults"))
        return fault_at_once(atol(argv[2]), atol(argv[3]), atol(argv[4]));
    if (argc > 2 && !strcmp(argv[1], "read"))
        return read_in_turn(atol(argv[2]), argc > 3 ? 1000 * atol(argv[3]) : BRIEF_NS);
    if (argc > 2 && !strcmp(argv[1], "brief"))
        return argc > 4 ? live_in_turn(atol(argv[2]), 1000 * atol(argv[3]), 1000 * atol(argv[4]))
                        : live_in_turn(atol(argv[2]), BRIEF_NS, BRIEF_NS);
    long n_rounds = argc > 2 ? atol(argv[2]) : 2, early_kib = 0;
    pthread_attr_t attributes;
    run.n_wanted = argc > 1 ? atol(argv[1]) : 100;
    run.blocks = calloc((size_t)run.n_wanted, sizeof *run.blocks);
    pthread_t *threads = calloc((size_t)run.n_wanted, sizeof *threads);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (long round = 1; round <= n_rounds; round++) {
        one_round(threads, &attributes, live);
        if (round == (n_rounds + 1) / 2)
            early_kib = memory_kib();
    }
    printf("sum %ld\nmemory %ld %ld\n", atomic_load(&run.sum), early_kib, memory_kib());
    return run.blocks && threads ? 0 : 1;
}
