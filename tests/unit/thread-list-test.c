/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of threads: threads that begin and end at once wait for nobody, not even for one that stands still in the
 * middle of its own beginning or of a switch, and whoever is alive in the end is sampled as the last switch says. And
 * which threads stand still while the process ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/events/events.h"
#include "runtime/process/threads.h"
#include "runtime/record/sample.h"

#define WORKERS 8
#define ROUNDS 3000

static struct {
    _Atomic bool is_active;
    struct thread_state *_Atomic held; /* whose events are not switched before go_on */
    sem_t is_held, go_on;
    struct thread_state *states[WORKERS];
    struct thread_state *self; /* the calling thread's */
    siginfo_t sent;            /* the last signal that was sent */
    unsigned sent_to, n_waits, n_naps;
    bool is_cut;
} test;

/* What the list calls; a thread's events are on or off by its `toggle`. */
void events_enable_sig(struct thread_state *self, bool enable)
{
    if (atomic_load(&test.held) == self) {
        sem_post(&test.is_held);
        sem_wait(&test.go_on);
    }
    __atomic_store_n(&self->toggle, enable, __ATOMIC_SEQ_CST);
}

bool sample_is_active_sig(void)
{
    return atomic_load(&test.is_active);
}

void sample_set_active_sig(bool active)
{
    atomic_store(&test.is_active, active);
}

void shield_raise_sig(struct shield *shield)
{
    (void)shield;
}

void shield_lower_sig(const struct shield *shield)
{
    (void)shield;
}

struct thread_state *thread_self_sig(void)
{
    return test.self;
}

uint32_t own_pid_sig(void)
{
    return 1000;
}

uint32_t own_tid_sig(void)
{
    return test.self->record->tid;
}

uint64_t own_clock_ns_sig(clockid_t clock)
{
    (void)clock;
    return 1;
}

bool arch_call_is_cut_sig(const ucontext_t *context)
{
    (void)context;
    return test.is_cut;
}

/* A wait lasts until the end of the process is over. */
long own_call_sig(long number, ...)
{
    va_list list;
    va_start(list, number);
    (void)va_arg(list, void *);
    if (number == SYS_rt_tgsigqueueinfo) {
        test.sent_to |= 1u << va_arg(list, unsigned);
        assert_int_equal(va_arg(list, int), SIGURG);
        test.sent = *va_arg(list, siginfo_t *);
    } else if (number == SYS_futex && va_arg(list, int) == FUTEX_WAIT_PRIVATE) {
        test.n_waits++;
        thread_release_others_sig();
    } else if (number == SYS_nanosleep) {
        test.n_naps++;
    }
    va_end(list);
    return 0;
}

static struct thread_state *new_state(void)
{
    struct thread_state *state = calloc(1, sizeof *state);
    assert_non_null(state);
    return state;
}

static unsigned n_live(void)
{
    unsigned n = 0;
    for (struct thread_state *state = thread_live_sig(); state; state = thread_live_next_sig(state))
        n++;
    return n;
}

static void begin(struct thread_state *state)
{
    state->toggle = 0;
    thread_live_add_sig(state);
    thread_switch_new_sig(state);
}

/* A state whose events are being switched when its thread ends is not used again. */
static void *work(void *argument)
{
    struct thread_state **mine = argument;
    for (int i = 0; i < ROUNDS; i++) {
        begin(*mine);
        if (!thread_live_remove_sig(*mine))
            *mine = new_state();
    }
    begin(*mine);
    return NULL;
}

static void test_switched_while_they_come_and_go(void **unused)
{
    pthread_t threads[WORKERS];
    (void)unused;
    thread_live_reset_sig();
    thread_switch_init_sig(true);
    for (int i = 0; i < WORKERS; i++) {
        test.states[i] = new_state();
        assert_int_equal(pthread_create(&threads[i], NULL, work, &test.states[i]), 0);
    }
    for (int i = 0; i < 2 * ROUNDS; i++)
        thread_switch_sig(i % 2);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(n_live(), WORKERS);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(test.states[i]->toggle, 1);
        thread_switch_sig(false);
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(test.states[i]->toggle, 0);
        thread_switch_sig(true);
    }
}

static void *begin_held(void *argument)
{
    begin(argument);
    return NULL;
}

/* With a lock around the list, the second thread would wait here for ever. */
static void test_nobody_waits_for_a_thread_that_stands_still(void **unused)
{
    struct thread_state *held = new_state(), *other = new_state();
    pthread_t thread;
    (void)unused;
    thread_live_reset_sig();
    thread_switch_init_sig(true);
    atomic_store(&test.held, held);
    assert_int_equal(pthread_create(&thread, NULL, begin_held, held), 0);
    sem_wait(&test.is_held);
    begin(other);
    assert_int_equal(other->toggle, 1);
    assert_int_equal(n_live(), 2);
    assert_true(thread_live_remove_sig(other));
    assert_int_equal(n_live(), 1);
    atomic_store(&test.held, NULL);
    sem_post(&test.go_on);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(held->toggle, 1);
}

static void *switch_off(void *unused)
{
    thread_switch_sig(false);
    return unused;
}

/* The switch stands still at one thread: that state must not be used again, and the others go on. */
static void test_nobody_waits_for_a_switch(void **unused)
{
    struct thread_state *held = new_state(), *other = new_state();
    pthread_t thread;
    (void)unused;
    thread_live_reset_sig();
    thread_switch_init_sig(true);
    begin(held);
    atomic_store(&test.held, held);
    assert_int_equal(pthread_create(&thread, NULL, switch_off, NULL), 0);
    sem_wait(&test.is_held);
    begin(other); /* the request is known already */
    assert_int_equal(other->toggle, 0);
    assert_true(thread_live_remove_sig(other));
    assert_false(thread_live_remove_sig(held));
    thread_switch_sig(true); /* stored; whoever switches does it */
    atomic_store(&test.held, NULL);
    sem_post(&test.go_on);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(sample_is_active_sig());
}

/* Whether the thread stands for a signal. It is one that was sent for that, or another one. */
static bool stands(struct thread_state *state, bool is_for_that)
{
    siginfo_t other = {.si_code = SI_USER};
    unsigned n_before = test.n_waits;
    test.self = state;
    assert_int_equal(thread_stand_sig(state, is_for_that ? &test.sent : &other, NULL), is_for_that);
    assert_false(atomic_load(&state->is_standing));
    return test.n_waits > n_before;
}

static void test_others_stand_still(void **state)
{
    enum { ENDER = 1, RUNS, IS_OVER, IS_LEFT, WAITS, HOLDS, LACKS_ROOM, STANDS, N };
    struct thread_state *threads[N];
    struct arena_thread records[N] = {0};
    (void)state;
    thread_live_reset_sig();
    for (unsigned i = ENDER; i < N; i++) {
        threads[i] = new_state();
        threads[i]->record = &records[i];
        records[i].tid = i;
        thread_live_add_sig(threads[i]);
    }
    (void)thread_live_remove_sig(threads[IS_OVER]);
    (void)thread_live_remove_sig(threads[IS_LEFT]);
    atomic_store(&threads[IS_LEFT]->is_left, true);
    threads[WAITS]->is_waiting = threads[HOLDS]->is_holding = threads[LACKS_ROOM]->lacks_stack_room = true;
    atomic_store(&threads[STANDS]->is_standing, true);
    test.self = threads[ENDER];
    thread_stop_others_sig(STOP_OUTSIDE_OURS);
    assert_int_equal(test.sent_to, 1u << RUNS | 1u << IS_LEFT);
    assert_true(thread_is_stop_sig(&test.sent));

    assert_false(stands(threads[ENDER], false)); /* a sample was waiting for the end of its shield */
    threads[RUNS]->in_hook = 1;
    assert_false(stands(threads[RUNS], true));
    threads[RUNS]->in_hook = 0;
    threads[RUNS]->tree_busy = threads[IS_LEFT]->tree_busy = 1;
    assert_false(stands(threads[RUNS], true));
    assert_true(stands(threads[IS_LEFT], true)); /* the one that ends the process is changing its trees */
    test.self = threads[ENDER];
    thread_stop_others_sig(STOP_OUTSIDE_OURS);
    threads[RUNS]->tree_busy = 0;
    assert_true(stands(threads[RUNS], true));
    assert_int_equal(test.n_naps, 0);
    assert_false(stands(threads[RUNS], true)); /* the end is over: the wait has released all */

    test.self = threads[ENDER];
    thread_stop_others_sig(STOP_ANYWHERE);
    threads[RUNS]->in_hook = 1;
    test.is_cut = true;
    assert_true(stands(threads[RUNS], false));
    assert_int_equal(test.n_naps, 1);
    for (unsigned i = ENDER; i < N; i++)
        free(threads[i]);
    thread_live_reset_sig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_stand_still),
        cmocka_unit_test(test_switched_while_they_come_and_go),
        cmocka_unit_test(test_nobody_waits_for_a_thread_that_stands_still),
        cmocka_unit_test(test_nobody_waits_for_a_switch),
    };
    sem_init(&test.is_held, 0, 0);
    sem_init(&test.go_on, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
