/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables whose pages are on known nodes of a machine with two, and threads on known nodes that use them, each for a
 * known part of the work: numa.py compares what the profiler says with that. CPUs 0 and 1 are on node 0, CPUs 2
 * and 3 on node 1. All reads are repeated string instructions: an emulated processor is interrupted between two words
 * of these, and at other loads never. How long a thread works is given as how much it reads, so that it reads the same
 * share of the whole on a busy machine, too.
 *
 * numa-homes all N: one variable after the other, as many words for each thread as it reads in N ms.
 * numa-homes findings N: loops like those of programs whose placement others have studied: streamcluster, nw, UMT2013
 * and blackscholes.
 * numa-homes fixed N: the same variables as far as they are wrong, in their right places.
 * numa-homes kill N: only the first one, then an end by SIGKILL.
 * numa-homes as UID COMMAND...: runs a command as another user. */
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
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
#define TEAM 4
#define PART_WORDS (N_WORDS / TEAM)
#define PLANE_WORDS ((size_t)16384) /* of 128 KiB */
#define SIDE ((size_t)1536)         /* between rows of a matrix: an odd number of pages */
#define BLOCK ((size_t)64)
#define SIDE_BLOCKS ((size_t)10)
#define OPTION_WORDS 64
#define OPTION_PARTS 24 /* times as long as it reads an option, it computes */
#define MEASURE_MS 30
#define BIND 2
#define INTERLEAVE 3

static long unit_words, option_turns;

/* A thread's use of a variable. How it walks: at random, or as one of the programs. */
struct use {
    uint64_t *words;
    int cpu;
    long n_words;                          /* to be read */
    size_t (*walk)(const struct use *use); /* returns how many words it has read, or might have read in its time */
    int number;                            /* of the thread in its team */
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

static void read_words(const uint64_t *words, size_t n)
{
    __asm__ volatile("rep lodsq" : "+S"(words), "+c"(n) : : "rax", "memory");
}

/* Reads random lines; where it reads next does not depend on what it has read. */
static __attribute__((noinline)) size_t read_some(const struct use *use)
{
    static _Thread_local uint64_t at = 1;
    for (int i = 0; i < 2000; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        read_words(use->words + (at >> 33) % (N_WORDS / 64) * 64, 64);
    }
    return 2000 * 64;
}

/* The arithmetic for an option. */
static __attribute__((noinline)) void compute(long n_turns)
{
    volatile double price = 1;
    for (long i = 0; i < n_turns; i++)
        price = price * 0.999 + 0.001;
}

static void *work(void *argument)
{
    const struct use *use = argument;
    pin(use->cpu);
    for (long n = 0; n < use->n_words;)
        n += (long)use->walk(use);
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

/* A thread on each CPU that reads so many words [TEAM]; none where that is 0. */
static void run_pinned(uint64_t *words, const long *n_words)
{
    struct use uses[TEAM];
    int n = 0;
    for (int i = 0; i < TEAM; i++)
        if (n_words[i])
            uses[n++] = (struct use){.words = words, .cpu = i, .n_words = n_words[i], .walk = read_some};
    run(uses, n);
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

static double cpu_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Finds out how much this machine reads and computes in a time when nothing disturbs it. */
static void measure(long unit_ms)
{
    uint64_t *measured = reserve();
    touch(measured, BYTES, 0);
    struct use use = {.words = measured};
    double words_per_ms = 0, turns_per_ms = 0;
    for (int i = 0; i < 5; i++) {
        double start_ms = cpu_ms(), n = 0, ms;
        while ((ms = cpu_ms() - start_ms) < MEASURE_MS)
            n += (double)read_some(&use);
        words_per_ms = n / ms > words_per_ms ? n / ms : words_per_ms;
        for (n = 0, start_ms = cpu_ms(); (ms = cpu_ms() - start_ms) < MEASURE_MS; n += 1000)
            compute(1000);
        turns_per_ms = n / ms > turns_per_ms ? n / ms : turns_per_ms;
    }
    unit_words = (long)((double)unit_ms * words_per_ms);
    option_turns = (long)(OPTION_PARTS * OPTION_WORDS / words_per_ms * turns_per_ms);
    (void)munmap(measured, BYTES);
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

/* First touched on node 0, used by one thread there and, three times as long, by two on node 1. */
static void use_wrong(void)
{
    uint64_t *wrong = reserve();
    touch(wrong, BYTES, 0);
    run_pinned(wrong, (const long[]){0, unit_words, unit_words * 3 / 2, unit_words * 3 / 2});
}

static void use_interleaved(void)
{
    uint64_t *interleaved = reserve();
    place(interleaved, INTERLEAVE, 3);
    touch(interleaved, BYTES, 0);
    run_pinned(interleaved, (const long[]){unit_words, 0, unit_words, 0});
}

/* Bound to node 1, used on node 0 only. */
static void use_bound(void)
{
    uint64_t *bound = reserve();
    place(bound, BIND, 2);
    touch(bound, BYTES, 0);
    run_pinned(bound, (const long[]){unit_words, unit_words, 0, 0});
}

/* Half of the time on the wrong node. */
static void use_migrated(void)
{
    uint64_t *migrated = reserve();
    touch(migrated, BYTES, 0);
    run_pinned(migrated, (const long[]){0, 0, 2 * unit_words, 0});
    move(migrated, 1);
    run_pinned(migrated, (const long[]){0, 0, 2 * unit_words, 0});
}

/* A copy for each node. */
static void use_replicated(void)
{
    uint64_t *replicated[2];
    for (int node = 0; node < 2; node++) {
        replicated[node] = malloc(BYTES);
        touch(replicated[node], BYTES, 2 * node);
    }
    run_pinned(replicated[0], (const long[]){0, unit_words, 0, 0});
    run_pinned(replicated[1], (const long[]){0, 0, 0, unit_words});
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
    run_pinned(huge, (const long[]){0, 0, 0, unit_words});
}

/* On node 0, where one thread works 2.2 times as long as the one on node 1. */
static void use_unbalanced(void)
{
    uint64_t *unbalanced = reserve();
    touch(unbalanced, BYTES, 1);
    run_pinned(unbalanced, (const long[]){unit_words * 11 / 5, 0, unit_words, 0});
}

/* Half of it has never been written. */
static void use_sparse(void)
{
    uint64_t *sparse = reserve();
    touch(sparse, BYTES / 2, 2);
    run_pinned(sparse, (const long[]){0, 0, unit_words, 0});
}

/* --- as in programs that others have studied --- */

/* Threads of a team, one on each CPU. */
static void run_team(uint64_t *words, size_t (*walk)(const struct use *use))
{
    struct use uses[TEAM];
    for (int i = 0; i < TEAM; i++)
        uses[i] = (struct use){.words = words, .cpu = i, .n_words = unit_words, .walk = walk, .number = i};
    run(uses, TEAM);
}

/* Each thread writes the pages that walk_points or walk_planes reads. */
static void *touch_part(void *argument)
{
    const struct use *use = argument;
    bool by_plane = use->n_words != 0;
    size_t n = by_plane ? PLANE_WORDS : PART_WORDS;
    pin(use->cpu);
    for (size_t first = n * (size_t)use->number; first < N_WORDS; first += by_plane ? n * TEAM : N_WORDS)
        for (size_t i = first; i < first + n; i++)
            use->words[i] = i;
    return NULL;
}

static void touch_parts(uint64_t *words, bool by_plane)
{
    struct use uses[TEAM];
    for (int i = 0; i < TEAM; i++) {
        uses[i] = (struct use){.words = words, .cpu = i, .n_words = by_plane, .number = i};
        if (pthread_create(&uses[i].thread, NULL, touch_part, &uses[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < TEAM; i++)
        (void)pthread_join(uses[i].thread, NULL);
}

/* streamcluster: each thread takes the distances of its points from one of them. */
static __attribute__((noinline)) size_t walk_points(const struct use *use)
{
    for (size_t i = 0; i < PART_WORDS; i += 64)
        read_words(use->words + PART_WORDS * (size_t)use->number + i, 64);
    return PART_WORDS;
}

/* A thread's part of a diagonal of n blocks that begins at block x of row y, and goes up. */
static void walk_diagonal(const struct use *use, size_t x, size_t y, size_t n)
{
    for (size_t i = n * (size_t)use->number / TEAM; i < n * (size_t)(use->number + 1) / TEAM; i++)
        for (size_t row = 0; row < BLOCK; row++)
            read_words(use->words + ((y - i) * BLOCK + row) * SIDE + (x + i) * BLOCK, BLOCK);
}

/* nw: the blocks of each antidiagonal are shared out among the threads, down to the longest one, and from there on. */
static __attribute__((noinline)) size_t walk_diagonals(const struct use *use)
{
    for (size_t n = 1; n <= SIDE_BLOCKS; n++)
        walk_diagonal(use, 0, n - 1, n);
    for (size_t n = SIDE_BLOCKS - 1; n > 0; n--)
        walk_diagonal(use, SIDE_BLOCKS - n, SIDE_BLOCKS - 1, n);
    return SIDE_BLOCKS * SIDE_BLOCKS * BLOCK * BLOCK / TEAM;
}

/* UMT2013: planes go to the threads in turn. */
static __attribute__((noinline)) size_t walk_planes(const struct use *use)
{
    for (size_t first = PLANE_WORDS * (size_t)use->number; first < N_WORDS; first += PLANE_WORDS * TEAM)
        for (size_t i = 0; i < PLANE_WORDS; i += 64)
            read_words(use->words + first + i, 64);
    return PART_WORDS;
}

/* blackscholes: a few words for each option, and much arithmetic. */
static __attribute__((noinline)) size_t walk_options(const struct use *use)
{
    size_t n_options = PART_WORDS / 512;
    for (size_t i = 0; i < n_options; i++) {
        read_words(use->words + PART_WORDS * (size_t)use->number + i * 512, OPTION_WORDS);
        compute(option_turns);
    }
    return n_options * OPTION_WORDS * (1 + OPTION_PARTS) / 2;
}

static void use_findings(bool is_fixed)
{
    uint64_t *block = reserve(), *referrence = reserve(), *input_itemsets = reserve(), *STime = reserve();
    if (is_fixed) {
        place(referrence, INTERLEAVE, 3);
        place(input_itemsets, INTERLEAVE, 3);
        touch_parts(block, false);
        touch_parts(STime, true);
    } else {
        touch(block, BYTES, 0);
        touch(STime, BYTES, 0);
    }
    touch(referrence, BYTES, 0);
    touch(input_itemsets, BYTES, 0);
    run_team(block, walk_points);
    run_team(referrence, walk_diagonals);
    run_team(input_itemsets, walk_diagonals);
    run_team(STime, walk_planes);
}

static void use_buffer(void)
{
    uint64_t *buffer = reserve();
    touch(buffer, BYTES, 0);
    run_team(buffer, walk_options);
}

/* What use_wrong and the others have in wrong places, in right ones. */
static void use_fixed(void)
{
    uint64_t *wrong = reserve(), *bound = reserve(), *migrated = reserve(), *unbalanced = reserve();
    place(wrong, INTERLEAVE, 3);
    place(bound, BIND, 1);
    touch(wrong, BYTES, 0);
    touch(bound, BYTES, 2);
    touch(migrated, BYTES, 3);
    run_pinned(wrong, (const long[]){0, unit_words, unit_words * 3 / 2, unit_words * 3 / 2});
    run_pinned(bound, (const long[]){unit_words, unit_words, 0, 0});
    run_pinned(migrated, (const long[]){0, 0, 2 * unit_words, 0});
    place(unbalanced, INTERLEAVE, 3);
    touch(unbalanced, BYTES, 1);
    run_pinned(unbalanced, (const long[]){unit_words, 0, unit_words, 0});
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
    measure(atol(argv[2]));
    if (strcmp(argv[1], "findings") == 0 || strcmp(argv[1], "fixed") == 0) {
        use_findings(strcmp(argv[1], "fixed") == 0);
        if (strcmp(argv[1], "fixed") == 0)
            use_fixed();
        else
            use_buffer();
        return 0;
    }
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
