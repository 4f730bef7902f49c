/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what the object map costs: insertion, lookup, removal with insertion of a random block, and a pair on one
 * block, in ns, and its memory, for 1e3 to 1e6 live blocks; beside it malloc and free of the same sizes in the same
 * order. Prints only: nothing is asserted about time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/objmap/objmap.h"

#define BATCHES 50 /* the fastest one counts: the machine may have other work */
#define BATCH 10000

struct blocks {
    size_t n, min_bytes, max_bytes;
    uintptr_t *starts;
    size_t *sizes;
    void **native;
    uint64_t random;
};

static uint64_t next_random(struct blocks *blocks)
{
    blocks->random ^= blocks->random << 13;
    blocks->random ^= blocks->random >> 7;
    blocks->random ^= blocks->random << 17;
    return blocks->random;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Mixed sizes are log-uniform: as many blocks of 1-2 KiB as of 512 KiB-1 MiB. */
static size_t random_size(struct blocks *blocks)
{
    size_t max_bytes = blocks->max_bytes;
    while (max_bytes > 8 * blocks->min_bytes && next_random(blocks) % 2)
        max_bytes /= 2;
    return blocks->min_bytes + next_random(blocks) % (max_bytes - blocks->min_bytes + 1);
}

static double fill(struct blocks *blocks)
{
    uintptr_t next = 0x550000000010;
    for (size_t i = 0; i < blocks->n; i++) {
        blocks->sizes[i] = random_size(blocks);
        blocks->starts[i] = next;
        next += (blocks->sizes[i] + 31) & ~(size_t)15;
    }
    double start_ns = now_ns();
    for (size_t i = 0; i < blocks->n; i++)
        objmap_insert_hook(blocks->starts[i], blocks->sizes[i], i, 1, blocks->sizes[i]);
    return (now_ns() - start_ns) / (double)blocks->n;
}

/* What choosing a random block costs by itself: taken off below. */
static void choose(struct blocks *blocks, size_t k)
{
    *(volatile uintptr_t *)&blocks->starts[k];
    *(volatile size_t *)&blocks->sizes[k];
}

static void look_up(struct blocks *blocks, size_t k)
{
    struct objmap_block found;
    if (!objmap_find_sig(1, blocks->starts[k] + blocks->sizes[k] / 2, &found))
        printf("a lookup failed\n");
}

static void replace(struct blocks *blocks, size_t k)
{
    objmap_remove_hook(blocks->starts[k], NULL);
    objmap_insert_hook(blocks->starts[k], blocks->sizes[k], k, 1, blocks->sizes[k]);
}

static void replace_native(struct blocks *blocks, size_t k)
{
    free(blocks->native[k]);
    blocks->native[k] = malloc(blocks->sizes[k]);
    *(volatile char *)blocks->native[k] = 1;
}

/* ns of one operation on a random block. */
static double measure(struct blocks *blocks, void (*operation)(struct blocks *blocks, size_t k))
{
    double best_ns = 1e18;
    for (int batch = 0; batch < BATCHES; batch++) {
        double start_ns = now_ns();
        for (int i = 0; i < BATCH; i++)
            operation(blocks, next_random(blocks) % blocks->n);
        double ns = (now_ns() - start_ns) / BATCH;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return best_ns;
}

static void run(const char *name, size_t n, size_t min_bytes, size_t max_bytes)
{
    struct blocks blocks = {.n = n, .min_bytes = min_bytes, .max_bytes = max_bytes, .random = 88172645463325252u};
    blocks.starts = calloc(n, sizeof *blocks.starts);
    blocks.sizes = calloc(n, sizeof *blocks.sizes);
    blocks.native = calloc(n, sizeof *blocks.native);
    objmap_init_hook(16);
    double insert_ns = fill(&blocks), choose_ns = measure(&blocks, choose);
    double find_ns = measure(&blocks, look_up) - choose_ns, pair_ns = measure(&blocks, replace) - choose_ns;
    double bytes = (double)objmap_stats_sig().bytes_memory - (10 << 20);
    bool is_native = max_bytes <= 4096 || n <= 100000;
    for (size_t i = 0; is_native && i < n; i++)
        blocks.native[i] = malloc(blocks.sizes[i]);
    double native_ns = is_native ? measure(&blocks, replace_native) - choose_ns : 0;
    printf("%-10s %8zu %8.0f %8.0f %8.0f %8.0f %8.0f\n", name, n, insert_ns, find_ns, pair_ns, native_ns,
           bytes > 0 ? bytes / (double)n : 0.0);
}

static void run_in_child(const char *name, size_t n, size_t min_bytes, size_t max_bytes)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        run(name, n, min_bytes, max_bytes);
        (void)fflush(stdout);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

int main(void)
{
    printf("%-10s %8s %8s %8s %8s %8s %8s\n", "sizes", "blocks", "insert", "find", "pair", "malloc", "bytes");
    for (size_t n = 1000; n <= 1000000; n *= 10) {
        run_in_child("1 KiB", n, 1024, 1024);
        run_in_child("1-4 KiB", n, 1024, 4096);
        run_in_child("mixed", n, 1024, 1 << 20);
    }
    run_in_child("2 KiB", 1, 2048, 2048);
    return 0;
}
