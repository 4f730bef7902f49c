/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of threads: threads that begin and end at once wait for nobody, not even for one that stands still in the
 * middle of its own beginning or of a switch, and whoever is alive in the end is sampled as the last switch says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switched_while_they_come_and_go),
        cmocka_unit_test(test_nobody_waits_for_a_thread_that_stands_still),
        cmocka_unit_test(test_nobody_waits_for_a_switch),
    };
    sem_init(&test.is_held, 0, 0);
    sem_init(&test.go_on, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
