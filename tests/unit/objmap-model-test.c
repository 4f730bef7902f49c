/* SPDX-License-Identifier: BSD-3-Clause */
/* The object map as plain code with threads, also under ThreadSanitizer: readers stand in for signal handlers, writers
 * insert, cut and remove under them, and memory that is given back is poisoned. Whatever a reader finds must be a block
 * that was live at some moment of its search, and a block that was live all the time must be found. A second program,
 * the same without epochs, must be found out. LOCUS_STRESS_S sets the seconds (default 2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/objmap/objmap.h"

#define WRITERS 2
#define READERS 3
#define SLOTS 48 /* of a writer */
#define BROKEN_S 60
#define STATUS_WRONG 3
#define STATUS_RACE 66 /* ThreadSanitizer's */
#define STATUS_UNDEFINED 1 /* UndefinedBehaviorSanitizer's, which sees what a torn record points to */

/* The order that the model itself brings must not hide that the map brings too little. Under ThreadSanitizer its own
 * words carry none, which on x86-64 costs no correctness. */
#ifdef __SANITIZE_THREAD__
#define MODEL_ORDER memory_order_relaxed
#else
#define MODEL_ORDER memory_order_seq_cst
#endif

/* Phases of a slot: 4 g + one of these, g counting the blocks that it held. */
enum phase { PHASE_GONE, PHASE_ENTERING, PHASE_LIVE, PHASE_LEAVING, PHASES };

static struct {
    _Atomic uint64_t phase[WRITERS * SLOTS];
    _Atomic bool stop;
    _Atomic uint64_t n_wrong, n_missed, n_refused, n_lookups, n_found, n_changes;
} model;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Most slots are close together, so that lists and splits of granules change; some hold blocks of many granules, and
 * some fill whole regions of an upper level. */
static uintptr_t slot_start(unsigned slot)
{
    if (slot % 8 == 7)
        return 0x470000000000u + slot * 0x10000000ull + 4096 * (slot % 3);
    return 0x560000000000u + slot * 1500ull + 16;
}

static size_t slot_bytes(unsigned slot, uint64_t generation)
{
    if (slot % 16 == 15)
        return (80ull << 20) + generation % 7 * 4096;
    if (slot % 8 == 7)
        return 300000 + generation % 5 * 70000;
    return 1000 + generation % 400;
}

/* Blocks of the heap have tables instead of records where they fit in. */
static bool is_of_heap(unsigned slot)
{
    return slot % 4 < 2;
}

static uint64_t block_var(unsigned slot, uint64_t generation)
{
    if (is_of_heap(slot))
        return var_key(VAR_HEAP, 0, (uint32_t)(generation << 8 | slot));
    return ((uint64_t)slot << 48 | generation) ^ 0x5a5a5a5a5a5a5a5au;
}

static uint64_t generation_of(const struct objmap_block *block, unsigned slot)
{
    return is_of_heap(slot) ? var_key_b(block->var) >> 8 : (block->var ^ 0x5a5a5a5a5a5a5a5au) & 0xffffffffffffu;
}

static void set_phase(unsigned slot, uint64_t generation, enum phase phase)
{
    atomic_store_explicit(&model.phase[slot], generation * PHASES + phase, MODEL_ORDER);
}

/* --- writers --- */

static void expect(bool is_right)
{
    if (!is_right)
        atomic_fetch_add(&model.n_wrong, 1);
}

/* False when the map refuses it: on a crowded machine a reader that does not get on holds up too much memory. */
static bool enter_block(unsigned slot, uint64_t generation)
{
    set_phase(slot, generation, PHASE_ENTERING);
    bool is_live = objmap_insert_hook(slot_start(slot), slot_bytes(slot, generation), block_var(slot, generation), 1,
                                      slot_bytes(slot, generation));
    set_phase(slot, generation, is_live ? PHASE_LIVE : PHASE_LEAVING);
    if (!is_live)
        atomic_fetch_add(&model.n_refused, 1);
    return is_live;
}

/* By a free, or as munmap takes a mapping away in parts. */
static void leave_block(unsigned slot, uint64_t generation)
{
    uintptr_t start = slot_start(slot), end = start + slot_bytes(slot, generation);
    set_phase(slot, generation, PHASE_LEAVING);
    if (slot % 8 == 7 && generation % 3) {
        uintptr_t middle = start + (end - start) / 3;
        objmap_cut_hook(middle, middle + (end - start) / 4, NULL, NULL);
        objmap_cut_hook(start, end, NULL, NULL);
    } else {
        expect(objmap_remove_hook(start, NULL));
    }
    set_phase(slot, generation + 1, PHASE_GONE);
}

static void *write_blocks(void *argument)
{
    unsigned writer = (unsigned)(uintptr_t)argument;
    uint64_t random = 77 + writer, generations[SLOTS] = {0}, n_changes = 0;
    bool is_live[SLOTS] = {false};
    while (!atomic_load_explicit(&model.stop, memory_order_relaxed)) {
        unsigned i = (unsigned)(next_random(&random) % SLOTS), slot = i * WRITERS + writer;
        if (is_live[i])
            leave_block(slot, generations[i]);
        is_live[i] = !is_live[i] && enter_block(slot, ++generations[i]);
        n_changes++;
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (is_live[i])
            leave_block(i * WRITERS + writer, generations[i]);
    atomic_fetch_add(&model.n_changes, n_changes);
    return NULL;
}

/* --- readers --- */

/* Whether the block was live at some moment between the phases before and after. */
static bool was_live(const struct objmap_block *found, unsigned slot, uint64_t before, uint64_t after)
{
    uint64_t generation = generation_of(found, slot);
    return found->var == block_var(slot, generation) && found->thread == 1 &&
           generation * PHASES + PHASE_ENTERING <= after && before <= generation * PHASES + PHASE_LEAVING;
}

static bool has_bounds(const struct objmap_block *found, unsigned slot, uintptr_t address)
{
    uintptr_t start = slot_start(slot), end = start + slot_bytes(slot, generation_of(found, slot));
    bool may_be_cut = slot % 8 == 7;
    return found->start <= address && address < found->end &&
           (may_be_cut ? found->start >= start && found->end <= end
                       : found->start == start && found->end == end && found->weight_bytes == end - start);
}

static void look_up(unsigned reader, unsigned slot, uintptr_t address)
{
    struct objmap_block found;
    uint64_t before = atomic_load_explicit(&model.phase[slot], MODEL_ORDER);
    bool is_found = objmap_find_sig(reader, address, &found);
    uint64_t after = atomic_load_explicit(&model.phase[slot], MODEL_ORDER);
    if (is_found) {
        if (!was_live(&found, slot, before, after) || !has_bounds(&found, slot, address))
            atomic_fetch_add_explicit(&model.n_wrong, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&model.n_found, 1, memory_order_relaxed);
    } else if (before == after && before % PHASES == PHASE_LIVE) {
        atomic_fetch_add_explicit(&model.n_missed, 1, memory_order_relaxed);
    }
}

static void *read_blocks(void *argument)
{
    unsigned reader = (unsigned)(uintptr_t)argument;
    uint64_t random = 1000 + reader, n_lookups = 0;
    for (; !atomic_load_explicit(&model.stop, memory_order_relaxed); n_lookups++) {
        unsigned slot = (unsigned)(next_random(&random) % (WRITERS * SLOTS));
        look_up(reader, slot, slot_start(slot) + random / 1024 % 990);
    }
    atomic_fetch_add(&model.n_lookups, n_lookups);
    return NULL;
}

/* --- the tests --- */

/* Runs until the time is over, or until something is wrong. */
static void run_model(time_t seconds)
{
    pthread_t threads[WRITERS + READERS];
    struct timespec pause = {.tv_nsec = 20000000};
    time_t until = time(NULL) + seconds;
    if (!objmap_init_hook(16))
        _exit(1);
    objmap_poison_hook(true);
    for (uintptr_t i = 0; i < WRITERS + READERS; i++)
        if (pthread_create(&threads[i], NULL, i < WRITERS ? write_blocks : read_blocks,
                           (void *)(i < WRITERS ? i : i - WRITERS)) != 0)
            _exit(1);
    while (time(NULL) < until && !atomic_load(&model.n_wrong) && !atomic_load(&model.n_missed))
        nanosleep(&pause, NULL);
    atomic_store(&model.stop, true);
    for (unsigned i = 0; i < WRITERS + READERS; i++)
        pthread_join(threads[i], NULL);
    printf("%llu changes, %llu lookups, %llu found, %llu wrong, %llu missed\n",
           (unsigned long long)atomic_load(&model.n_changes), (unsigned long long)atomic_load(&model.n_lookups),
           (unsigned long long)atomic_load(&model.n_found), (unsigned long long)atomic_load(&model.n_wrong),
           (unsigned long long)atomic_load(&model.n_missed));
}

static time_t seconds_wanted(void)
{
    const char *seconds = getenv("LOCUS_STRESS_S");
    return seconds ? atoi(seconds) : 2;
}

static void test_readers_see_what_is_live(void **state)
{
    (void)state;
    run_model(seconds_wanted());
    struct objmap_stats stats = objmap_stats_sig();
    assert_int_equal(atomic_load(&model.n_wrong), 0);
    assert_int_equal(atomic_load(&model.n_missed), 0);
    assert_true(atomic_load(&model.n_found) > 0 && atomic_load(&model.n_changes) > 0);
    assert_int_equal(stats.n_live, 0);
    assert_int_equal(stats.n_refused, atomic_load(&model.n_refused));
    assert_int_equal(stats.n_replaced, 0);
}

/* A crash on poisoned memory, a wrong answer, or a report of ThreadSanitizer. */
static void test_lack_of_epochs_is_found(void **state)
{
    (void)state;
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    assert_true(n > 0);
    (void)strcpy(path + n, "-broken");
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(path, path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        print_message("SKIP (part): a test cannot start programs here\n");
        skip();
    }
    if (WIFSIGNALED(status))
        assert_true(WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGABRT);
    else
        assert_true(WEXITSTATUS(status) == STATUS_WRONG || WEXITSTATUS(status) == STATUS_RACE ||
                    WEXITSTATUS(status) == STATUS_UNDEFINED);
}

static int run_broken(void)
{
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    run_model(BROKEN_S);
    return atomic_load(&model.n_wrong) || atomic_load(&model.n_missed) ? STATUS_WRONG : 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lack_of_epochs_is_found),
                                       cmocka_unit_test(test_readers_see_what_is_live)};
    const char *dash = argc > 0 ? strrchr(argv[0], '-') : NULL;
    if (dash && strcmp(dash, "-broken") == 0)
        return run_broken();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
