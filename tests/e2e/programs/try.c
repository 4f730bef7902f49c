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
                 {"uses", uses}};
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, argv[1]) == 0)
            return modes[i].run(argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
    return 2;
}
