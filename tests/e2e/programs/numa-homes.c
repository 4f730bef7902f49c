/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables whose pages are on known nodes of a machine with two, and threads on known nodes that use them, each for a
 * known part of its CPU time: numa.py compares what the profiler says with that. CPUs 0 and 1 are on node 0, CPUs 2
 * and 3 on node 1.
 *
 * numa-homes all MS: one variable after the other, MS milliseconds of CPU time for each thread.
 * numa-homes kill MS: only the first one, then an end by SIGKILL.
 * numa-homes as UID COMMAND...: runs a command as another user. */
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define BYTES ((size_t)8 << 20)
#define N_WORDS (BYTES / sizeof(uint64_t))
#define BIND 2
#define INTERLEAVE 3

static long unit_ms;
static volatile uint64_t sink;

struct use {
    const uint64_t *words;
    int cpu;
    long ms;
    pthread_t thread;
};

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("sched_setaffinity");
}

static long cpu_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads random words; where it reads next does not depend on what it has read. */
static __attribute__((noinline)) uint64_t read_some(const uint64_t *words, uint64_t *state)
{
    uint64_t sum = 0, at = *state;
    for (int i = 0; i < 200000; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        sum += words[(at >> 33) % N_WORDS];
    }
    *state = at;
    return sum;
}

static void *work(void *argument)
{
    const struct use *use = argument;
    uint64_t state = (uint64_t)use->cpu + 1;
    pin(use->cpu);
    for (long end = cpu_ms() + use->ms; cpu_ms() < end;)
        sink += read_some(use->words, &state);
    return NULL;
}

static void run(struct use *uses, int n)
{
    for (int i = 0; i < n; i++)
        if (pthread_create(&uses[i].thread, NULL, work, &uses[i]) != 0)
            exit(1);
    for (int i = 0; i < n; i++)
        (void)pthread_join(uses[i].thread, NULL);
    (void)usleep(300000); /* until all samples have been asked for */
}

/* Writes the pages from this CPU. */
static void touch(uint64_t *words, size_t n_bytes, int cpu)
{
    pin(cpu);
    for (size_t i = 0; i < n_bytes / sizeof *words; i++)
        words[i] = i;
}

static uint64_t *reserve(void)
{
    void *words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        exit(1);
    (void)madvise(words, BYTES, MADV_NOHUGEPAGE);
    return words;
}

static void place(uint64_t *words, int policy, unsigned long nodes)
{
    if (syscall(SYS_mbind, words, BYTES, policy, &nodes, 64UL, 0U) != 0)
        perror("mbind");
}

static void move(uint64_t *words, int node)
{
    static void *pages[BYTES / PAGE];
    static int nodes[BYTES / PAGE], status[BYTES / PAGE];
    for (size_t i = 0; i < BYTES / PAGE; i++) {
        pages[i] = (char *)words + i * PAGE;
        nodes[i] = node;
    }
    if (syscall(SYS_move_pages, 0, BYTES / PAGE, pages, nodes, status, 2) != 0)
        perror("move_pages");
}

/* First touched on node 0, used by one thread there and two on node 1. */
static void use_wrong(void)
{
    uint64_t *wrong = reserve();
    touch(wrong, BYTES, 0);
    run((struct use[]){{wrong, 1, unit_ms, 0}, {wrong, 2, unit_ms, 0}, {wrong, 3, unit_ms, 0}}, 3);
}

static void use_interleaved(void)
{
    uint64_t *interleaved = reserve();
    place(interleaved, INTERLEAVE, 3);
    touch(interleaved, BYTES, 0);
    run((struct use[]){{interleaved, 0, unit_ms, 0}, {interleaved, 2, unit_ms, 0}}, 2);
}

/* Bound to node 1, used on node 0 only. */
static void use_bound(void)
{
    uint64_t *bound = reserve();
    place(bound, BIND, 2);
    touch(bound, BYTES, 0);
    run((struct use[]){{bound, 0, unit_ms, 0}}, 1);
}

/* Half of the time on the wrong node. */
static void use_migrated(void)
{
    uint64_t *migrated = reserve();
    touch(migrated, BYTES, 0);
    run((struct use[]){{migrated, 2, unit_ms, 0}}, 1);
    move(migrated, 1);
    run((struct use[]){{migrated, 2, unit_ms, 0}}, 1);
}

/* A copy for each node. */
static void use_replicated(void)
{
    uint64_t *replicated[2];
    for (int node = 0; node < 2; node++) {
        replicated[node] = malloc(BYTES);
        touch(replicated[node], BYTES, 2 * node);
    }
    run((struct use[]){{replicated[0], 1, unit_ms, 0}, {replicated[1], 3, unit_ms, 0}}, 2);
    free(replicated[0]);
    free(replicated[1]);
}

static void use_huge(void)
{
    uint64_t *huge = aligned_alloc(2 << 20, BYTES);
    if (!huge)
        exit(1);
    (void)madvise(huge, BYTES, MADV_HUGEPAGE);
    touch(huge, BYTES, 2);
    run((struct use[]){{huge, 3, unit_ms, 0}}, 1);
}

/* On node 0, where one thread works three times as long as the one on node 1. */
static void use_unbalanced(void)
{
    uint64_t *unbalanced = reserve();
    touch(unbalanced, BYTES, 1);
    run((struct use[]){{unbalanced, 0, 3 * unit_ms, 0}, {unbalanced, 2, unit_ms, 0}}, 2);
}

/* Half of it has never been written. */
static void use_sparse(void)
{
    uint64_t *sparse = reserve();
    touch(sparse, BYTES / 2, 2);
    run((struct use[]){{sparse, 2, unit_ms, 0}}, 1);
}

static int run_as(long uid, char **command)
{
    if (setgroups(0, NULL) != 0 || setgid((gid_t)uid) != 0 || setuid((uid_t)uid) != 0) {
        perror("numa-homes");
        return 1;
    }
    (void)execvp(command[0], command);
    perror(command[0]);
    return 127;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "as") == 0)
        return run_as(atol(argv[2]), argv + 3);
    if (argc != 3)
        return 2;
    unit_ms = atol(argv[2]);
    use_wrong();
    if (strcmp(argv[1], "kill") == 0)
        (void)raise(SIGKILL);
    use_interleaved();
    use_bound();
    use_migrated();
    use_replicated();
    use_huge();
    use_unbalanced();
    use_sparse();
    return 0;
}
