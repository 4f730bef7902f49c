/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that spend their time in known ways, and say how much of it. usage: accounts WAY
 *   short      hardly runs at all
 *   kernel     reads from the kernel for some time, then works a little
 *   spinlock   one thread works on a table for 400 ms while another waits for a spin lock
 *   backoff    works on a table in a loop that pauses once in a thousand turns: that is work
 *   openmp     one thread works on a table for 400 ms while the others wait at a barrier (with -fopenmp)
 *   yield      one thread works on a table for 400 ms while another yields until it has done
 *   daemon     a daemon, whose parent ends at once, works on a table for 400 ms
 *   endless    works on a table until it is killed
 *   heir       so does a child of fork, whose parent becomes another program at once */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef N
#define N (1u << 22) /* words of the table, more than the caches of a core hold */
#endif
#ifdef __x86_64__
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() (void)0
#endif

static pthread_spinlock_t lock;
static _Atomic int is_done;
static volatile unsigned sink;
static double worked_s; /* user time of what works */

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double thread_user_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

static void work(double seconds, int pauses)
{
    double begin = thread_user_s();
    unsigned *table = malloc(N * sizeof *table), sum = 0;
    double end = cpu_s() + seconds;
    for (unsigned i = 0; i < N; i++)
        table[i] = i * 2654435761u;
    do {
        for (unsigned i = 0; i < N; i++) {
            sum += table[i * 4099u & (N - 1)];
            if (pauses && i % 1000 == 0)
                PAUSE();
        }
    } while (cpu_s() < end);
    sink = sum;
    free(table);
    worked_s += thread_user_s() - begin;
}

/* A table that takes no time to fill. */
static void work_little(void)
{
    static unsigned table[1024];
    for (double end = cpu_s() + 0.01; cpu_s() < end;) {
        for (unsigned i = 0; i < 1024; i++)
            table[i] += i * 2654435761u;
    }
    sink = table[1];
}

static void *wait_for_lock(void *unused)
{
    pthread_spin_lock(&lock);
    pthread_spin_unlock(&lock);
    return unused;
}

static void *yield_until_done(void *unused)
{
    while (!is_done)
        sched_yield();
    return unused;
}

static void with(void *(*other)(void *))
{
    pthread_t thread;
    pthread_spin_init(&lock, 0);
    pthread_spin_lock(&lock);
    pthread_create(&thread, NULL, other, NULL);
    work(0.4, 0);
    is_done = 1;
    pthread_spin_unlock(&lock);
    pthread_join(thread, NULL);
}

static void read_much(void)
{
    char *buffer = malloc(1 << 18);
    int fd = open("/dev/zero", O_RDONLY);
    struct rusage usage;
    do {
        for (int i = 0; i < 100; i++)
            if (read(fd, buffer, 1 << 18) < 0)
                exit(3);
        getrusage(RUSAGE_SELF, &usage);
    } while ((double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6 < 0.6);
    close(fd);
    free(buffer);
}

static void wait_in_openmp(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        work(0.4, 0);
#pragma omp barrier
        sink++;
    }
}

/* Little else than recorded blocks that come and go. */
static void allocate(double seconds)
{
    static char *blocks[20000];
    const size_t n = sizeof blocks / sizeof blocks[0];
    unsigned long random = 1;
    for (clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;)
        for (size_t i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            char **block = &blocks[(random >> 33) % n];
            free(*block);
            *block = malloc(1024 + (random >> 40) % 4096);
            if (*block)
                **block = 1;
        }
}

/* A child whose parent is gone before it can ask anything of it. */
static void without_parent(const char *way)
{
    if (!strcmp(way, "daemon")) {
        if (daemon(1, 1) != 0)
            exit(3);
    } else if (fork() != 0) {
        execlp("true", "true", (char *)NULL);
        exit(3);
    }
    work(0.4, 0);
}

static void *work_and_exit(void *unused)
{
    (void)unused;
    work(0.4, 0);
    exit(0);
}

/* The main thread, which has done nothing but start, is closed by another one. */
static void exit_in_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_and_exit, NULL) == 0)
        pthread_join(thread, NULL);
}

/* What hpcrun says to have used before it became this process (,PID,CPU in ns,...), in seconds. */
static double launcher_s(void)
{
    const char *usage = getenv("HPCRUN_LAUNCHER_USAGE");
    const char *cpu = usage && *usage ? strchr(usage + 1, ',') : NULL;
    return cpu ? atof(cpu + 1) / 1e9 : 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    double begun_s = (double)clock() / CLOCKS_PER_SEC;
    struct rusage usage;
    if (!strcmp(way, "short"))
        work_little();
    else if (!strcmp(way, "allocate"))
        allocate(0.5);
    else if (!strcmp(way, "kernel"))
        read_much();
    else if (!strcmp(way, "spinlock"))
        with(wait_for_lock);
    else if (!strcmp(way, "yield"))
        with(yield_until_done);
    else if (!strcmp(way, "openmp"))
        wait_in_openmp();
    else if (!strcmp(way, "daemon") || !strcmp(way, "heir"))
        without_parent(way);
    else if (!strcmp(way, "exit"))
        exit_in_thread();
    else if (!strcmp(way, "endless"))
        work(1000, 0);
    if (!strcmp(way, "kernel") || !strcmp(way, "backoff"))
        work(0.6, !strcmp(way, "backoff")); /* the table's first touches may take a tenth of a second */
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"user_s\": %ld.%06ld, \"system_s\": %ld.%06ld, \"worked_s\": %f, ", usage.ru_utime.tv_sec,
           usage.ru_utime.tv_usec, usage.ru_stime.tv_sec, usage.ru_stime.tv_usec, worked_s);
    printf("\"launcher_s\": %f, \"begun_s\": %f, \"ended_s\": %f}\n", launcher_s(), begun_s,
           (double)clock() / CLOCKS_PER_SEC);
    return 0;
}
