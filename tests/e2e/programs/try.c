/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs for trials, whose output has numbers that follow from what an action does, whatever the machine's load.
 * try MODE [N]: see modes[]. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)
#define PAGE 4096

__attribute__((noinline)) static void *allocate(size_t n_bytes)
{
    void *p = malloc(n_bytes);
    if (!p)
        abort();
    return p;
}

/* What the kernel says of the mappings that a block lies in: kB of a kind. */
static unsigned long kilobytes(const void *p, const char *kind)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512], format[64];
    unsigned long start = 0, end = 0, n, sum = 0;
    snprintf(format, sizeof format, "%s: %%lu kB", kind);
    while (file && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "%lx-%lx ", &start, &end);
        if ((unsigned long)p >= start && (unsigned long)p < end && sscanf(line, format, &n) == 1)
            sum += n;
    }
    if (file)
        fclose(file);
    return sum;
}

static uint64_t sum_at_random(const unsigned *table, size_t n, size_t turns)
{
    uint64_t sum = 0, x = 88172645463325252u;
    for (size_t i = 0; i < turns; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += table[x % n];
    }
    return sum;
}

/* Random look-ups; says how many translations of addresses the table needs: a page each, or a huge one. */
static int gather(size_t n)
{
    size_t n_bytes = (n ? n : 64) << 20;
    unsigned *table = allocate(n_bytes);
    memset(table, 1, n_bytes);
    uint64_t sum = sum_at_random(table, n_bytes / sizeof *table, 20000000);
    unsigned long huge = kilobytes(table, "AnonHugePages");
    printf("sum %llu\n", (unsigned long long)sum);
    fprintf(stderr, "pages: %lu\n", ((unsigned long)(n_bytes / 1024) - huge) / 4 + huge / 2048);
    free(table);
    return 0;
}

/* One byte in each two mebibytes: huge pages take five hundred times the memory. */
static int sparse(size_t n)
{
    size_t n_bytes = (n ? n : 64) << 20;
    char *table = allocate(n_bytes);
    uint64_t sum = 0;
    for (int turn = 0; turn < 2000; turn++)
        for (size_t i = 0; i < n_bytes; i += HUGE)
            sum += (uint64_t)++table[i] & 1;
    printf("sum %llu\n", (unsigned long long)sum);
    fprintf(stderr, "resident: %lu\n", kilobytes(table, "Rss"));
    return 0;
}

/* A list whose nodes are made where other blocks of their size were given back in random order; says how many steps
 * lead far away. */
#define NODES 100000

struct node {
    struct node *next;
    uint64_t values[4];
};

__attribute__((noinline)) static struct node *make_node(struct node *next)
{
    struct node *node = malloc(sizeof *node);
    if (!node)
        abort();
    node->next = next;
    return node;
}

static int list(size_t n)
{
    static void *others[NODES];
    uint64_t x = 88172645463325252u, sum = 0;
    struct node *nodes = NULL;
    unsigned long n_far = 0;
    for (size_t i = 0; i < NODES; i++)
        others[i] = malloc(sizeof(struct node));
    for (size_t i = NODES - 1; i > 0; i--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        void *other = others[x % i];
        others[x % i] = others[i];
        others[i] = other;
    }
    for (size_t i = 0; i < NODES; i++)
        free(others[i]);
    for (size_t i = 0; i < NODES - 10; i++) {
        nodes = make_node(nodes);
        nodes->values[0] = i;
    }
    for (size_t turn = 0; turn < (n ? n : 20); turn++)
        for (const struct node *node = nodes; node; node = node->next)
            sum += node->values[0];
    for (const struct node *node = nodes; node->next; node = node->next) {
        uintptr_t a = (uintptr_t)node, b = (uintptr_t)node->next;
        n_far += (a > b ? a - b : b - a) > PAGE;
    }
    printf("sum %llu\n", (unsigned long long)sum);
    fprintf(stderr, "far: %lu\n", n_far);
    return 0;
}

/* A counter for each of two threads, made one after the other; says how many lie on the line of another one. */
#define COUNTERS 16

static void *count(void *argument)
{
    volatile uint64_t *counter = argument;
    for (int i = 0; i < 30000000; i++)
        ++*counter;
    return NULL;
}

static int counters(size_t n)
{
    uint64_t *made[COUNTERS];
    pthread_t threads[2];
    unsigned n_shared = 0;
    (void)n;
    for (int i = 0; i < COUNTERS; i++) {
        made[i] = calloc(1, sizeof *made[i]);
        n_shared += i && (uintptr_t)made[i] / 64 == (uintptr_t)made[i - 1] / 64;
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, count, made[i]))
            return 1;
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    printf("%llu\n", (unsigned long long)(*made[0] + *made[1]));
    fprintf(stderr, "shared: %u\n", n_shared);
    return 0;
}

/* Arrays 4 KiB apart, read side by side; says on how many different lines of their pages they begin. */
#define ARRAYS 16

static int arrays(size_t n)
{
    uint64_t *made[ARRAYS], sum = 0;
    unsigned n_lines = 0;
    for (int i = 0; i < ARRAYS; i++) {
        int k = 0;
        made[i] = malloc(4096 - sizeof(void *)); /* and the word before it */
        if (!made[i])
            return 1;
        memset(made[i], 1, 4096 - sizeof(void *));
        while (k < i && (uintptr_t)made[k] % PAGE / 64 != (uintptr_t)made[i] % PAGE / 64)
            k++;
        n_lines += k == i;
    }
    for (size_t turn = 0; turn < (n ? n : 5000); turn++)
        for (int k = 0; k < 500; k++)
            for (int i = 0; i < ARRAYS; i++)
                sum += made[i][k];
    printf("sum %llu\n", (unsigned long long)sum);
    fprintf(stderr, "lines: %u\n", n_lines);
    return 0;
}

/* Says how many of its pages are there before it has touched them. */
static int fresh(size_t n)
{
    size_t n_bytes = (n ? n : 16) << 20;
    char *table = allocate(n_bytes);
    uint64_t sum = 0;
    unsigned long there = kilobytes(table, "Rss");
    memset(table, 1, n_bytes);
    sum = sum_at_random((const unsigned *)table, n_bytes / sizeof(unsigned), 3000000);
    printf("sum %llu\n", (unsigned long long)sum);
    fprintf(stderr, "missing: %lu\n", (unsigned long)(n_bytes / 1024) > there ? n_bytes / 1024 - there : 0);
    return 0;
}

/* Says on which memory node each eighth of a table lies, as move_pages tells it. */
static int nodes_of(const char *table, size_t n_bytes)
{
    for (int i = 0; i < 8; i++) {
        void *page = (void *)(((uintptr_t)table + n_bytes / 8 * (size_t)i + n_bytes / 16) & ~(uintptr_t)(PAGE - 1));
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1L, &page, NULL, &node, 0) != 0)
            return 1;
        printf("%s%d", i ? " " : "nodes: ", node);
    }
    unsigned on[2] = {0, 0};
    for (size_t at = PAGE; at < n_bytes; at += PAGE) {
        void *page = (void *)(((uintptr_t)table + at) & ~(uintptr_t)(PAGE - 1));
        int node = -1;
        if (syscall(SYS_move_pages, 0, 1L, &page, NULL, &node, 0) == 0 && (node == 0 || node == 1))
            on[node]++;
    }
    printf("\non node 0: %u, on node 1: %u\n", on[0], on[1]);
    return 0;
}

static char static_table[8 << 20];

static int nodes(size_t n)
{
    size_t n_bytes = (n ? n : 8) << 20;
    char *table = allocate(n_bytes);
    memset(table, 1, n_bytes);
    memset(static_table, 1, sizeof static_table);
    uint64_t sum = sum_at_random((const unsigned *)table, n_bytes / sizeof(unsigned), 3000000) +
                   sum_at_random((const unsigned *)static_table, sizeof static_table / sizeof(unsigned), 3000000);
    printf("sum %llu\n", (unsigned long long)sum);
    return nodes_of(table, n_bytes) + nodes_of(static_table, sizeof static_table);
}

/* What comes out does not depend on where anything is. */
static int same(size_t n)
{
    (void)n;
    unsigned *table = allocate(8 << 20);
    memset(table, 1, 8 << 20);
    uint64_t sum = sum_at_random(table, 1 << 21, 3000000);
    printf("sum %llu\nwork: %d\n", (unsigned long long)sum, 12345);
    return 0;
}

/* Another output each time. */
static int differs(size_t n)
{
    (void)same(n);
    printf("process %d\n", (int)getpid());
    return 0;
}

/* Another output with an action. */
static int betrays(size_t n)
{
    (void)same(n);
    printf("%s\n", getenv("LOCUS_ACTIONS") ? "1.0001" : "1.0000");
    return 0;
}

static int fails(size_t n)
{
    (void)same(n);
    return 3;
}

static int fails_with_action(size_t n)
{
    (void)same(n);
    fflush(stdout);
    if (getenv("LOCUS_ACTIONS"))
        abort();
    return 0;
}

static int forks(size_t n)
{
    int status = 1;
    (void)n;
    pid_t child = fork();
    if (child == 0)
        exit(same(0));
    (void)waitpid(child, &status, 0);
    unsigned *table = allocate(8 << 20);
    memset(table, 1, 8 << 20);
    printf("child %d\n", status);
    return status;
}

/* Leaves a process behind, in a session of its own. */
static int leaves(size_t n)
{
    if (fork() == 0) {
        (void)setsid();
        (void)freopen("/dev/null", "w", stdout);
        (void)freopen("/dev/null", "w", stderr);
        sleep(n ? (unsigned)n : 100);
        _exit(0);
    }
    return same(0);
}

static int waits(size_t n)
{
    (void)same(0);
    fflush(stdout);
    sleep(n ? (unsigned)n : 1);
    return 0;
}

/* --- all that a program may do with its blocks --- */

#define BLOCKS 400

static void *blocks[BLOCKS];

static void check(int condition, int line)
{
    if (condition)
        return;
    printf("wrong at line %d\n", line);
    exit(1);
}
#define CHECK(condition) check(condition, __LINE__)

/* The place that actions are for: blocks of many sizes. */
__attribute__((noinline)) static void *make_block(size_t n_bytes, int how)
{
    void *p = NULL;
    if (how == 0)
        p = malloc(n_bytes);
    else if (how == 1)
        p = calloc(1, n_bytes);
    else if (how == 2)
        p = aligned_alloc(256, (n_bytes + 255) & ~(size_t)255);
    else if (how == 3)
        CHECK(posix_memalign(&p, 4096, n_bytes) == 0);
    else
        p = realloc(NULL, n_bytes);
    CHECK(p != NULL);
    CHECK(how != 2 || (uintptr_t)p % 256 == 0);
    CHECK(how != 3 || (uintptr_t)p % 4096 == 0);
    CHECK((uintptr_t)p % 16 == 0 && malloc_usable_size(p) >= n_bytes);
    for (size_t i = 0; how == 1 && i < n_bytes; i++)
        CHECK(((unsigned char *)p)[i] == 0);
    memset(p, 0x5a, n_bytes);
    return p;
}

static size_t size_of(unsigned i)
{
    static const size_t sizes[] = {1, 24, 40, 64, 100, 1000, 5000, 70000, 1200000, 3000000};
    return sizes[i % 10];
}

static void *release(void *argument)
{
    for (unsigned i = *(unsigned *)argument; i < BLOCKS; i += 4) {
        size_t n_bytes = size_of(i);
        if (i % 3 == 0) {
            blocks[i] = realloc(blocks[i], 2 * n_bytes);
            CHECK(blocks[i] && ((char *)blocks[i])[0] == 0x5a && ((char *)blocks[i])[n_bytes - 1] == 0x5a);
        }
        if (i % 7 == 0) {
            blocks[i] = realloc(blocks[i], n_bytes / 3 + 1);
            CHECK(blocks[i] && ((char *)blocks[i])[n_bytes / 3] == 0x5a);
        }
        free(blocks[i]);
    }
    return NULL;
}

static int uses(size_t n)
{
    unsigned firsts[4] = {0, 1, 2, 3};
    pthread_t threads[4];
    for (size_t turn = 0; turn < (n ? n : 3); turn++) {
        for (unsigned i = 0; i < BLOCKS; i++)
            blocks[i] = make_block(size_of(i), (int)(i % 5));
        for (unsigned i = 0; i < BLOCKS; i++)
            for (size_t k = 0; k < size_of(i); k += 997)
                CHECK(((char *)blocks[i])[k] == 0x5a);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], NULL, release, &firsts[i]) == 0);
        pid_t child = fork(); /* while the others hold what locks there are */
        if (child == 0) {
            free(make_block(100, 0));
            free(make_block(3000000, 1));
            _exit(0);
        }
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        for (int i = 0; i < 4; i++)
            (void)pthread_join(threads[i], NULL);
    }
    printf("all is well: 1\n");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(size_t n);
    } modes[] = {{"gather", gather},
                 {"sparse", sparse},
                 {"same", same},
                 {"differs", differs},
                 {"betrays", betrays},
                 {"fails", fails},
                 {"fails-with-action", fails_with_action},
                 {"forks", forks},
                 {"leaves", leaves},
                 {"waits", waits},
                 {"uses", uses},
                 {"list", list},
                 {"counters", counters},
                 {"arrays", arrays},
                 {"fresh", fresh},
                 {"nodes", nodes}};
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            return modes[i].run(argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
    return 2;
}
