/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the object map against a plain array of blocks: random insertions, removals, cuts and lookups in windows from
 * 64 KiB to 100 TiB; then its memory, its limits and its behaviour over fork. Each test runs in a child of its own,
 * because a process has one map. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/objmap/objmap.h"

#define BLOCKS_MAX 4096

struct block {
    uintptr_t start, end;
    uint64_t var;
};

struct model {
    struct block blocks[BLOCKS_MAX];
    size_t n;
    uint64_t random;
    uint64_t bytes_gone, bytes_gone_expected;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const struct block *model_find(const struct model *model, uintptr_t address)
{
    for (size_t i = 0; i < model->n; i++) {
        if (model->blocks[i].start <= address && address < model->blocks[i].end)
            return &model->blocks[i];
    }
    return NULL;
}

static void model_cut(struct model *model, uintptr_t start, uintptr_t end, bool whole_blocks)
{
    for (size_t i = 0; i < model->n;) {
        struct block block = model->blocks[i];
        if (block.end <= start || end <= block.start) {
            i++;
            continue;
        }
        model->blocks[i] = model->blocks[--model->n];
        if (whole_blocks)
            continue;
        uintptr_t low = block.start > start ? block.start : start, high = block.end < end ? block.end : end;
        model->bytes_gone_expected += high - low;
        if (block.start < low)
            model->blocks[model->n++] = (struct block){block.start, low, block.var};
        if (high < block.end)
            model->blocks[model->n++] = (struct block){high, block.end, block.var};
    }
}

/* The kinds of places in which blocks live: windows that are small against their blocks, so that they meet. */
static const struct {
    uintptr_t base;
    uint64_t window_bytes, max_bytes, unit;
} windows[] = {
    {0x700000000000, 1 << 16, 200, 1},
    {0x700000100000, 1 << 18, 4096, 16},
    {0x600000000000 - (1 << 20), 1 << 21, 1 << 17, 16},
    {0x500000000000 - (1 << 26), 1 << 27, 1 << 24, 4096},
    {0x400000000000 - (1ull << 35), 1ull << 36, 1ull << 33, 4096},
    {0x100000000000, 1ull << 44, 200ull << 30, 1 << 20},
    {0, 4096, 300, 1},
    {(1ull << 49) - 65536, 65536, 4000, 1},
};
#define WINDOWS (sizeof windows / sizeof windows[0])

static void random_range(struct model *model, uintptr_t *start, uintptr_t *end)
{
    size_t i = next_random(&model->random) % WINDOWS;
    uint64_t unit = windows[i].unit;
    uint64_t offset = next_random(&model->random) % windows[i].window_bytes / unit * unit;
    uint64_t bytes = next_random(&model->random) % windows[i].max_bytes + 1;
    *start = windows[i].base + offset;
    *end = *start + bytes;
    if (*end > windows[i].base + windows[i].window_bytes)
        *end = windows[i].base + windows[i].window_bytes;
}

static void check_address(const struct model *model, uintptr_t address)
{
    struct objmap_block found = {0};
    const struct block *expected = model_find(model, address);
    bool is_found = objmap_find_sig(3, address, &found);
    assert_int_equal(is_found, expected != NULL);
    if (expected) {
        assert_int_equal(found.start, expected->start);
        assert_int_equal(found.end, expected->end);
        assert_int_equal(found.var, expected->var);
        assert_true(objmap_maybe_start_sig(expected->start));
    }
}

static void check_edges(const struct model *model, uintptr_t start, uintptr_t end)
{
    const uintptr_t addresses[] = {start - 1, start, start + (end - start) / 2, end - 1, end};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        check_address(model, addresses[i]);
}

struct visited {
    const struct model *model;
    uintptr_t last_end;
    size_t n;
};

static void check_visited(const struct objmap_block *block, void *ctx)
{
    struct visited *visited = ctx;
    const struct block *expected = model_find(visited->model, block->start);
    assert_non_null(expected);
    assert_int_equal(block->start, expected->start);
    assert_int_equal(block->end, expected->end);
    assert_true(block->start >= visited->last_end);
    visited->last_end = block->end;
    visited->n++;
}

static void check_all(const struct model *model)
{
    struct visited visited = {.model = model};
    objmap_visit_hook(check_visited, &visited);
    assert_int_equal(visited.n, model->n);
    assert_int_equal(objmap_stats_sig().n_live, model->n);
}

static void count_gone(const struct objmap_block *block, uint64_t bytes_removed, void *ctx)
{
    struct model *model = ctx;
    assert_true(bytes_removed > 0 && bytes_removed <= block->end - block->start);
    model->bytes_gone += bytes_removed;
}

static void step_insert(struct model *model)
{
    uintptr_t start, end;
    random_range(model, &start, &end);
    uint64_t var = next_random(&model->random);
    if (var % 4) /* blocks of the heap have tables where they fit in */
        var = var_key(VAR_HEAP, 0, (uint32_t)var);
    model_cut(model, start, end, true);
    model->blocks[model->n++] = (struct block){start, end, var};
    assert_true(objmap_insert_hook(start, end - start, var, 7, end - start));
    check_edges(model, start, end);
}

static void step_remove(struct model *model)
{
    if (!model->n)
        return;
    size_t i = next_random(&model->random) % model->n;
    struct block block = model->blocks[i];
    struct objmap_block removed = {0};
    model->blocks[i] = model->blocks[--model->n];
    assert_true(objmap_maybe_start_sig(block.start));
    assert_true(objmap_remove_hook(block.start, &removed));
    assert_int_equal(removed.end, block.end);
    assert_int_equal(removed.var, block.var);
    assert_int_equal(removed.thread, 7);
    assert_false(objmap_remove_hook(block.start, NULL));
    check_edges(model, block.start, block.end);
}

static void step_cut(struct model *model)
{
    uintptr_t start, end;
    random_range(model, &start, &end);
    model_cut(model, start, end, false);
    objmap_cut_hook(start, end, count_gone, model);
    assert_int_equal(model->bytes_gone, model->bytes_gone_expected);
    check_edges(model, start, end);
}

static void check_against_model(unsigned granule_shift)
{
    static struct model model;
    memset(&model, 0, sizeof model);
    model.random = 88172645463325252ull + granule_shift;
    assert_true(objmap_init_hook(granule_shift));
    objmap_poison_hook(true);
    for (unsigned i = 0; i < 60000; i++) {
        uint64_t what = next_random(&model.random) % 16;
        if (model.n > BLOCKS_MAX - 64 || (i / 10000 % 2 == 1 && what < 10) || what < 4)
            step_remove(&model);
        else if (what == 15 || (what == 14 && model.n > 500))
            step_cut(&model);
        else
            step_insert(&model);
        uintptr_t start, end;
        random_range(&model, &start, &end);
        check_address(&model, start);
        if (i % 2000 == 0)
            check_all(&model);
    }
    check_all(&model);
    while (model.n)
        step_remove(&model);
    check_all(&model);
    assert_true(objmap_stats_sig().n_replaced > 0);
    assert_int_equal(objmap_stats_sig().n_refused, 0);
}

static void run_model_16(void)
{
    check_against_model(16);
}

static void run_model_14(void)
{
    check_against_model(14);
}

static void run_limits(void)
{
    struct objmap_block found;
    assert_false(objmap_maybe_start_sig(4096));
    assert_false(objmap_insert_hook(4096, 1, 1, 1, 1));
    assert_false(objmap_find_sig(0, 4096, &found));
    assert_false(objmap_init_hook(13));
    assert_true(objmap_init_hook(16));
    assert_true(objmap_insert_hook(0x10000, 0, 1, 1, 0));
    assert_false(objmap_find_sig(0, 0x10000, &found));
    assert_false(objmap_remove_hook(0x10000, NULL));
    assert_false(objmap_insert_hook((1ull << 49) - 10, 11, 1, 1, 1));
    assert_false(objmap_insert_hook(UINTPTR_MAX - 10, 5, 1, 1, 1));
    assert_int_equal(objmap_stats_sig().n_refused, 2);
    assert_true(objmap_insert_hook((1ull << 49) - 10, 10, 1, 1, 1));
    assert_true(objmap_find_sig(OBJMAP_READERS - 1, (1ull << 49) - 1, &found));
    assert_false(objmap_find_sig(OBJMAP_READERS, (1ull << 49) - 1, &found));
    assert_false(objmap_find_sig(0, 1ull << 49, &found));
    assert_false(objmap_find_sig(0, UINTPTR_MAX, &found));
    assert_false(objmap_remove_hook(UINTPTR_MAX, NULL));
}

static void run_flag(void)
{
    struct objmap_block found;
    assert_true(objmap_init_hook(16));
    assert_true(objmap_insert_hook(0x20010, 5000, 9, 2, 15000));
    assert_false(objmap_flag_hook(0x20011, true));
    assert_true(objmap_flag_hook(0x20010, true));
    assert_true(objmap_find_sig(0, 0x20010 + 4999, &found));
    assert_int_equal(found.flags, OBJMAP_RESIZING);
    assert_int_equal(found.weight_bytes, 15000);
    /* What remains of a block that is being resized is still being resized, and weighs its share. */
    objmap_cut_hook(0x20010 + 2500, 0x20010 + 3750, NULL, NULL);
    assert_true(objmap_find_sig(0, 0x20010 + 4999, &found));
    assert_int_equal(found.flags, OBJMAP_RESIZING);
    assert_int_equal(found.weight_bytes, 3750);
    assert_true(objmap_flag_hook(0x20010 + 3750, false));
    assert_true(objmap_find_sig(0, 0x20010 + 4999, &found));
    assert_int_equal(found.flags, 0);
    assert_false(objmap_find_sig(0, 0x20010 + 3749, &found));
}

static unsigned n_dropped;

static void count_dropped(const struct objmap_block *block)
{
    n_dropped += block->var == var_key(VAR_HEAP, 0, 77);
}

/* Blocks of the heap that have tables: which do, and what becomes of them where another block comes or a part goes. */
static void run_tables(void)
{
    const uintptr_t start = 0x700000100010, next = start + 5008;
    const uint64_t var = var_key(VAR_HEAP, 0, 77);
    struct objmap_block found;
    assert_true(objmap_init_hook(16));
    objmap_on_drop(count_dropped);
    assert_false(objmap_near_insert_hook(start, 1023, var, 2, 1023));
    assert_false(objmap_near_insert_hook(start, 65536, var, 2, 65536));
    assert_false(objmap_near_insert_hook(start + 8, 5000, var, 2, 5000));
    assert_false(objmap_near_insert_hook(start, 5000, var, 2, 10000));
    assert_false(objmap_near_insert_hook(start, 5000, var_key(VAR_MMAP, 0, 77), 2, 5000));
    assert_false(objmap_near_insert_hook(start + (1 << 20) - 2000, 5000, var, 2, 5000));
    assert_true(objmap_near_insert_hook(start, 5000, var, 2, 5000));
    assert_false(objmap_near_insert_hook(start + 4096, 1024, var, 2, 1024));
    assert_false(objmap_near_insert_hook(start - 16, 1024, var, 2, 1024));
    assert_true(objmap_near_insert_hook(next, 65535, var, 3, 65535));
    assert_true(objmap_find_sig(0, start + 4999, &found));
    assert_int_equal(found.thread, 2);
    assert_false(objmap_find_sig(0, start + 5000, &found));
    assert_true(objmap_find_sig(0, next + 65534, &found));
    assert_int_equal(found.start, next);
    assert_int_equal(found.thread, 3);
    assert_false(objmap_find_sig(0, next + 65535, &found));
    /* the flag changes nothing else, and what remains of a block that is being resized is still being resized */
    assert_true(objmap_flag_hook(start, true));
    assert_true(objmap_flag_hook(start, false));
    assert_true(objmap_find_sig(0, start, &found));
    assert_int_equal(found.flags, 0);
    assert_int_equal(found.var, var);
    assert_int_equal(found.end, start + 5000);
    assert_true(objmap_flag_hook(next, true));
    objmap_cut_hook(next + 1000, next + 2000, NULL, NULL);
    assert_true(objmap_find_sig(0, next + 65534, &found));
    assert_int_equal(found.start, next + 2000);
    assert_int_equal(found.flags, OBJMAP_RESIZING);
    assert_int_equal(found.weight_bytes, 63535);
    assert_int_equal(objmap_stats_sig().n_live, 3);
    assert_true(objmap_near_remove_hook(start, &found));
    assert_int_equal(found.end, start + 5000);
    assert_true(objmap_insert_hook(start, 5000, var, 2, 5000));
    /* a mapping of which nobody has seen that the heap left its place */
    assert_true(objmap_insert_hook(start - 4096, 1 << 20, 9, 2, 1 << 20));
    assert_int_equal(n_dropped, 3);
    assert_int_equal(objmap_stats_sig().n_live, 1);
    assert_false(objmap_near_insert_hook(start, 5000, var, 2, 5000));
    /* ... and one that covers a whole region of the page map, which has no leaf there */
    const uintptr_t wide = 0x710000000000;
    assert_true(objmap_insert_hook(wide, (uintptr_t)64 << 20, 9, 2, (uint64_t)64 << 20));
    assert_null(objmap_slot_at(objmap_state_sig(), wide));
    assert_false(objmap_near_insert_hook(wide + 4096, 5000, var, 2, 5000));
    objmap_cut_hook(wide, wide + ((uintptr_t)64 << 20), NULL, NULL);
    assert_true(objmap_near_insert_hook(wide + 4096, 5000, var, 2, 5000));
    /* what is left of a mapping in the granule is seen, too */
    assert_true(objmap_insert_hook(wide + (4 << 20), (uintptr_t)64 << 20, 9, 2, (uint64_t)64 << 20));
    objmap_cut_hook(wide + (32 << 20) + 16, wide + (32 << 20) + 8208, NULL, NULL);
    assert_false(objmap_near_insert_hook(wide + (32 << 20), 5000, var, 2, 5000));
    assert_false(objmap_near_insert_hook(wide + (32 << 20) + 4096, 5000, var, 2, 5000));
    assert_true(objmap_near_insert_hook(wide + (32 << 20) + 1024, 5000, var, 2, 5000));
}

/* One large block: the page map must not be filled granule by granule. */
static void run_huge(void)
{
    struct objmap_block found;
    const uintptr_t start = 0x10000ffff000;
    const uint64_t bytes = 100ull << 30;
    assert_true(objmap_init_hook(16));
    uint64_t before = objmap_stats_sig().bytes_memory;
    for (unsigned i = 0; i < 100; i++) {
        assert_true(objmap_insert_hook(start, bytes, 5, 1, bytes));
        assert_true(objmap_find_sig(0, start + bytes / 3, &found));
        assert_true(objmap_find_sig(0, start + bytes - 1, &found));
        assert_false(objmap_find_sig(0, start + bytes, &found));
        objmap_cut_hook(start + bytes / 2, start + bytes / 2 + 4096, NULL, NULL);
        assert_true(objmap_find_sig(0, start + bytes / 2 - 1, &found));
        assert_false(objmap_find_sig(0, start + bytes / 2, &found));
        assert_true(objmap_find_sig(0, start + bytes / 2 + 4096, &found));
        objmap_cut_hook(0, UINTPTR_MAX, NULL, NULL);
        assert_int_equal(objmap_stats_sig().n_live, 0);
    }
    assert_true(objmap_stats_sig().bytes_memory - before < 2 << 20);
}

static void check_memory(size_t n_live)
{
    assert_true(objmap_stats_sig().bytes_memory <= (10ull << 20) + 200ull * n_live);
}

/* Blocks of min..max bytes side by side, then each freed and allocated again in random order, several times. */
static void run_memory(unsigned granule_shift, size_t n, size_t min_bytes, size_t max_bytes)
{
    uint64_t random = 12345;
    uintptr_t next = 0x550000000010;
    uintptr_t *starts = calloc(n, sizeof *starts);
    size_t *sizes = calloc(n, sizeof *sizes);
    assert_true(starts && sizes && objmap_init_hook(granule_shift));
    for (size_t i = 0; i < n; i++) {
        starts[i] = next;
        sizes[i] = min_bytes + next_random(&random) % (max_bytes - min_bytes + 1);
        next += (sizes[i] + 31) & ~(size_t)15;
        assert_true(objmap_insert_hook(starts[i], sizes[i], i, 1, sizes[i]));
    }
    check_memory(n);
    for (size_t round = 0; round < 4 * n; round++) {
        size_t i = next_random(&random) % n;
        assert_true(objmap_remove_hook(starts[i], NULL));
        assert_true(objmap_insert_hook(starts[i], sizes[i], i, 1, sizes[i]));
    }
    check_memory(n);
    for (size_t i = 0; i < n; i++)
        assert_true(objmap_remove_hook(starts[i], NULL));
    assert_int_equal(objmap_stats_sig().n_live, 0);
    assert_true(objmap_stats_sig().n_retired_pending < 200);
    free(starts);
    free(sizes);
}

static void run_memory_default(void)
{
    run_memory(16, 200000, 1024, 4096);
}

static void run_memory_small(void)
{
    run_memory(14, 200000, 16, 512);
}

static void run_memory_mixed(void)
{
    run_memory(16, 50000, 1024, 300000);
}

/* Where nobody reads, what a removal gives back is used by the next insertion; where somebody does, it waits. */
static void run_given_back(void)
{
    assert_true(objmap_init_hook(16));
    struct objmap_state *map = objmap_state_sig();
    struct objmap_block block;
    assert_true(objmap_insert_hook(0x40000, 1024, 1, 1, 1024));
    assert_true(objmap_find_sig(2, 0x40010, &block));
    const _Atomic uintptr_t *slot = objmap_slot_at(map, 0x40000);
    assert_non_null(slot);
    uintptr_t first = atomic_load(slot);
    assert_true(objmap_remove_hook(0x40000, NULL));
    assert_int_equal(objmap_stats_sig().n_retired_pending, 0);
    assert_true(objmap_insert_hook(0x40000, 1024, 2, 1, 1024));
    assert_int_equal(atomic_load(slot), first);
    atomic_store(&map->readers[2].epoch, atomic_load(&map->epoch));
    assert_true(objmap_remove_hook(0x40000, NULL));
    assert_true(objmap_insert_hook(0x40000, 1024, 3, 1, 1024));
    assert_int_not_equal(atomic_load(slot), first);
    assert_int_equal(((const struct objmap_record *)first)->block.var, 2);
    atomic_store(&map->readers[2].epoch, 0);
}

/* A reader that never leaves: memory is kept for it, new blocks are refused at the limit, and removals still work. */
static void run_stuck_reader(void)
{
    assert_true(objmap_init_hook(16));
    struct objmap_state *map = objmap_state_sig();
    assert_true(objmap_insert_hook(0x30000, 1024, 1, 1, 1024));
    atomic_store(&map->readers_end, (64 + 3) * 64 + 6);
    atomic_fetch_or(&map->readers_used[64 + 3], 1ull << 5);
    atomic_fetch_or(&map->reader_groups[1], 1ull << 3);
    atomic_store(&map->readers[(64 + 3) * 64 + 5].epoch, atomic_load(&map->epoch));
    size_t n_done = 0;
    while (n_done < 200000 && objmap_insert_hook(0x40000, 1024, 2, 1, 1024)) {
        assert_true(objmap_remove_hook(0x40000, NULL));
        n_done++;
    }
    assert_in_range(n_done, OBJMAP_PENDING_LIMIT - 200, OBJMAP_PENDING_LIMIT + 200);
    assert_true(objmap_stats_sig().n_retired_pending_max >= OBJMAP_PENDING_LIMIT);
    assert_int_equal(objmap_stats_sig().n_refused, 1);
    assert_true(objmap_remove_hook(0x30000, NULL));
    pid_t pid;
    objmap_fork_prepare_hook();
    pid = fork();
    objmap_fork_done_hook();
    if (pid == 0) /* the reader does not exist here */
        _exit(objmap_insert_hook(0x40000, 1024, 2, 1, 1024) && objmap_stats_sig().n_retired_pending < 200 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(objmap_insert_hook(0x40000, 1024, 2, 1, 1024));
    atomic_store(&map->readers[(64 + 3) * 64 + 5].epoch, 0);
    assert_true(objmap_insert_hook(0x40000, 1024, 2, 1, 1024));
    assert_true(objmap_stats_sig().n_retired_pending < 200);
}

#define WAITERS 16
#define HELD_NS 400000000 /* CPU time of others may make it longer */

static void *lock_and_unlock(void *argument)
{
    struct rusage usage;
    struct objmap_lock *lock = argument;
    char mine;
    assert_true(objmap_lock_hook(lock, (uintptr_t)&mine & ~(uintptr_t)7));
    objmap_unlock_hook(lock);
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return (void *)(uintptr_t)usage.ru_nvcsw;
}

/* Threads that wait for a lock sleep until it is given back. They look by themselves ever more seldom: if each did so
 * every 50 us, it would be some thousand times. */
static void run_waiters(void)
{
    assert_true(objmap_init_hook(16));
    struct objmap_lock *lock = &objmap_state_sig()->huge;
    pthread_t threads[WAITERS];
    int64_t mine = 0;
    assert_true(objmap_lock_hook(lock, (uintptr_t)&mine));
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lock_and_unlock, lock), 0);
    nanosleep(&(struct timespec){.tv_nsec = HELD_NS}, NULL);
    objmap_unlock_hook(lock);
    uintptr_t n_sleeps = 0;
    for (int i = 0; i < WAITERS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        n_sleeps += (uintptr_t)result;
    }
    assert_in_range(n_sleeps, 1, 64 * WAITERS);
    assert_int_equal(atomic_load(&lock->n_waiting), 0);
    assert_int_equal(atomic_load(&lock->owner), 0);
}

static void in_child(void **state)
{
    void (*run)(void) = *(void (**)(void)) * state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        run();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    static void (*const runs[])(void) = {run_model_16,   run_model_14,       run_limits,       run_flag,
                                         run_huge,       run_memory_default, run_memory_small, run_memory_mixed,
                                         run_given_back, run_stuck_reader,   run_waiters,      run_tables};
    static const char *const names[] = {
        "model, 64 KiB",        "model, 16 KiB",        "limits",     "flags",        "huge",    "memory",
        "memory, small blocks", "memory, mixed blocks", "given back", "stuck reader", "waiters", "tables"};
    struct CMUnitTest tests[sizeof runs / sizeof runs[0]];
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        tests[i] = (struct CMUnitTest){names[i], in_child, NULL, NULL, (void *)&runs[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
