/* SPDX-License-Identifier: BSD-3-Clause */
/* The object map under fire: threads insert, remove and cut while timer signals look addresses up on the same threads
 * and freed memory is poisoned. A lookup may be late by one change, but never wrong: blocks that stay are always found,
 * and what is found is a block that existed. LOCUS_STRESS_S sets the seconds (default 2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/objmap/objmap.h"

#define THREADS 4
#define SLOTS 512 /* blocks of a thread that come and go */
#define SLOT_BYTES 4096
#define STAYING 64 /* blocks that stay, between those of all threads */
#define LOOKUPS 64
#define HEAP 0x560000000000u
#define CUT_BYTES (40ull << 20)

static struct {
    _Atomic bool stop;
    _Atomic uint64_t n_wrong, n_missed, n_lookups, n_changes;
    _Atomic uint32_t cut_phase[THREADS]; /* odd: the cut block's first and last pages are recorded */
    _Atomic uint32_t started;
} stress;

static _Thread_local unsigned self;
static _Thread_local uint64_t handler_random;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t var_of(uintptr_t start)
{
    return start * 0x9e3779b97f4a7c15u;
}

/* Slots of all threads alternate, and every eighth holds a block that stays. */
static uintptr_t slot_start(unsigned thread, unsigned slot)
{
    return HEAP + ((uintptr_t)slot * (THREADS + 1) + thread) * SLOT_BYTES / 2 + 16;
}

static uintptr_t staying_start(unsigned i)
{
    return slot_start(THREADS, i * (SLOTS / STAYING));
}

static uintptr_t cut_start(unsigned thread)
{
    return 0x450000000000u + (uintptr_t)thread * 2 * CUT_BYTES + 100;
}

static void check_found(uintptr_t address, const struct objmap_block *found)
{
    bool is_cut_block = address < HEAP;
    if (address < found->start || address >= found->end || found->thread != 1 ||
        (!is_cut_block && found->var != var_of(found->start)) || (is_cut_block && found->var != 42))
        atomic_fetch_add(&stress.n_wrong, 1);
}

static void look_up(uintptr_t address, bool must_be_found)
{
    struct objmap_block found;
    if (objmap_find_sig(self, address, &found))
        check_found(address, &found);
    else if (must_be_found)
        atomic_fetch_add(&stress.n_missed, 1);
}

static void look_up_cut_block(unsigned thread, uint64_t random)
{
    uintptr_t address = cut_start(thread) + (random & 1 ? random % 1000 : CUT_BYTES - 1 - random % 1000);
    uint32_t phase = atomic_load(&stress.cut_phase[thread]);
    struct objmap_block found;
    bool is_found = objmap_find_sig(self, address, &found);
    if (is_found)
        check_found(address, &found);
    else if ((phase & 1) && atomic_load(&stress.cut_phase[thread]) == phase)
        atomic_fetch_add(&stress.n_missed, 1);
}

static void on_timer(int number)
{
    (void)number;
    for (unsigned i = 0; i < LOOKUPS; i++) {
        uint64_t random = next_random(&handler_random);
        if (i % 4 < 2)
            look_up(staying_start((unsigned)(random % STAYING)) + random / STAYING % 2000, true);
        else if (i % 4 == 2)
            look_up(slot_start((unsigned)(random % THREADS), (unsigned)(random / THREADS % SLOTS)) + 5, false);
        else
            look_up_cut_block((unsigned)(random % THREADS), random / THREADS);
    }
    atomic_fetch_add(&stress.n_lookups, LOOKUPS);
}

static void start_timer(timer_t *timer)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, timer), 0);
    struct itimerspec every = {{0, 100000}, {0, 100000}};
    assert_int_equal(timer_settime(*timer, 0, &every, NULL), 0);
}

/* One life of the block that is cut: recorded, cut in the middle in two ways, released. */
static void change_cut_block(uint64_t random)
{
    uintptr_t start = cut_start(self), end = start + CUT_BYTES;
    uintptr_t low = start + 1000 + random % (CUT_BYTES - 200000);
    if (!objmap_insert_hook(start, CUT_BYTES, 42, 1, CUT_BYTES))
        atomic_fetch_add(&stress.n_wrong, 1);
    atomic_fetch_add(&stress.cut_phase[self], 1);
    objmap_cut_hook(low, low + 1 + random % 100000, NULL, NULL);
    objmap_cut_hook(start + 100000, end - 100000, NULL, NULL);
    atomic_fetch_add(&stress.cut_phase[self], 1);
    objmap_cut_hook(start, end, NULL, NULL);
}

static void change_slot(bool *is_live, uint64_t random)
{
    unsigned slot = (unsigned)(random % SLOTS);
    uintptr_t start = slot_start(self, slot);
    bool ok = is_live[slot] ? objmap_remove_hook(start, NULL)
                            : objmap_insert_hook(start, 1024 + random / SLOTS % 1000, var_of(start), 1, 1);
    if (!ok)
        atomic_fetch_add(&stress.n_wrong, 1);
    is_live[slot] = !is_live[slot];
}

static void *mutate(void *argument)
{
    bool is_live[SLOTS] = {false};
    uint64_t random, n_changes = 0;
    timer_t timer;
    self = (unsigned)(uintptr_t)argument;
    random = 77 + self;
    handler_random = 1000 + self;
    start_timer(&timer);
    while (!atomic_load(&stress.stop)) {
        for (unsigned i = 0; i < 500; i++, n_changes++)
            change_slot(is_live, next_random(&random));
        change_cut_block(next_random(&random) >> 1);
    }
    timer_delete(timer);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (is_live[slot] && !objmap_remove_hook(slot_start(self, slot), NULL))
            atomic_fetch_add(&stress.n_wrong, 1);
    }
    atomic_fetch_add(&stress.n_changes, n_changes);
    return NULL;
}

static void start_map(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    assert_int_equal(sigaction(SIGURG, &action, NULL), 0);
    assert_true(objmap_init_hook(16));
    objmap_poison_hook(true);
    for (unsigned i = 0; i < STAYING; i++)
        assert_true(objmap_insert_hook(staying_start(i), 2000, var_of(staying_start(i)), 1, 2000));
}

/* In a child of a busy process the map works and holds the blocks that stay. */
static int check_child(void)
{
    struct objmap_block found;
    for (unsigned i = 0; i < STAYING; i++) {
        if (!objmap_find_sig(9, staying_start(i) + 1999, &found) || found.var != var_of(staying_start(i)))
            return 1;
    }
    for (unsigned i = 0; i < 1000; i++) {
        if (!objmap_insert_hook(0x440000000000u + i * 3000, 3000, 3, 1, 3000))
            return 2;
    }
    for (unsigned i = 0; i < 1000; i++) {
        if (!objmap_remove_hook(0x440000000000u + i * 3000, NULL))
            return 3;
    }
    return 0;
}

static void fork_once(void)
{
    objmap_fork_prepare_hook();
    pid_t pid = fork();
    objmap_fork_done_hook();
    if (pid == 0)
        _exit(check_child());
    int status = 0;
    assert_true(pid > 0);
    while (waitpid(pid, &status, 0) != pid)
        continue;
    assert_int_equal(status, 0);
}

static void test_stress(void **state)
{
    (void)state;
    const char *seconds = getenv("LOCUS_STRESS_S");
    time_t until = time(NULL) + (seconds ? atoi(seconds) : 2);
    pthread_t threads[THREADS];
    start_map();
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, mutate, (void *)i), 0);
    while (time(NULL) < until) {
        fork_once();
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    atomic_store(&stress.stop, true);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct objmap_stats stats = objmap_stats_sig();
    printf("%llu changes, %llu lookups, %llu retirements waiting at most\n",
           (unsigned long long)atomic_load(&stress.n_changes), (unsigned long long)atomic_load(&stress.n_lookups),
           (unsigned long long)stats.n_retired_pending_max);
    assert_int_equal(atomic_load(&stress.n_wrong), 0);
    assert_int_equal(atomic_load(&stress.n_missed), 0);
    assert_true(atomic_load(&stress.n_lookups) > 0);
    assert_int_equal(stats.n_live, STAYING);
    assert_int_equal(stats.n_refused, 0);
    assert_int_equal(stats.n_replaced, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stress)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
