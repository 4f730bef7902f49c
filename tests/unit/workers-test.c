/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks in parallel: each is done once, turns come in the order of the numbers, failures and stops end the whole. */
#include "base/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/scratch.h"

enum { N_TASKS = 500 };

struct counting {
    size_t n_begun, order[N_TASKS], n_ordered, failing, stop_after, n_progress;
};

static int task(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    struct counting *counting = context;
    (void)worker;
    (void)__atomic_fetch_add(&counting->n_begun, 1, __ATOMIC_RELAXED);
    if (i == counting->failing)
        return error_set(err, ERR_RANGE, "task %zu", i);
    if (i % 3 == 0) { /* others have no turn of their own */
        if (!workers_turn(workers, i))
            return error_set(err, ERR_USAGE, "ended");
        counting->order[counting->n_ordered++] = i;
        workers_turned(workers, i);
    }
    return 0;
}

static void show(void *context, const char *phase, size_t n_done, size_t n_tasks)
{
    struct counting *counting = context;
    assert_string_equal(phase, "testing");
    assert_true(n_tasks == N_TASKS);
    if (n_done == 0) /* the phase begins */
        assert_int_equal(counting->n_progress, 0);
    else
        assert_int_equal(n_done, ++counting->n_progress);
}

static bool stop(void *context)
{
    const struct counting *counting = context;
    return __atomic_load_n(&counting->n_begun, __ATOMIC_RELAXED) >= counting->stop_after;
}

static int run(struct counting *counting, size_t n_threads, struct error *err)
{
    const struct job job = {.n_threads = n_threads, .progress = show, .stop = stop, .context = counting};
    struct workers workers = {.job = &job, .phase = "testing", .n_tasks = N_TASKS, .task = task, .context = counting};
    return workers_run(&workers, err);
}

static void test_order(void **state)
{
    (void)state;
    for (size_t n_threads = 1; n_threads < 9; n_threads += 3) {
        struct counting counting = {.failing = SIZE_MAX, .stop_after = SIZE_MAX};
        struct error err;
        assert_int_equal(run(&counting, n_threads, &err), 0);
        assert_int_equal(counting.n_begun, N_TASKS);
        assert_int_equal(counting.n_progress, N_TASKS);
        assert_int_equal(counting.n_ordered, (N_TASKS + 2) / 3);
        for (size_t i = 0; i < counting.n_ordered; i++)
            assert_int_equal(counting.order[i], 3 * i);
    }
}

static void test_ends(void **state)
{
    (void)state;
    for (size_t n_threads = 1; n_threads < 9; n_threads += 3) {
        struct counting failing = {.failing = 100, .stop_after = SIZE_MAX};
        struct counting stopped = {.failing = SIZE_MAX, .stop_after = 50};
        struct error err;
        assert_int_equal(run(&failing, n_threads, &err), ERR_RANGE);
        assert_string_equal(err.text, "task 100");
        assert_true(failing.n_begun < N_TASKS);
        assert_int_equal(run(&stopped, n_threads, &err), ERR_USAGE);
        assert_true(stopped.n_begun < 50 + n_threads);
    }
    assert_true(workers_processors() > 0);
}

static void test_spill(void **state)
{
    (void)state;
    struct spill spill;
    struct spill_piece pieces[3];
    struct error err;
    char text[8] = "";
    assert_int_equal(spill_open(&spill, "/no/such/directory", &err), ERR_IO);
    assert_int_equal(spill_open(&spill, ".", &err), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(spill_append(&spill, "abcdef" + i, 3, &pieces[i], &err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(spill_read(&spill, pieces[i].offset, text, pieces[i].len_bytes, &err), 0);
        assert_memory_equal(text, "abcdef" + i, 3);
    }
    assert_int_equal(spill_read(&spill, spill.len_bytes - 1, text, 3, &err), ERR_IO);
    spill_close(&spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_spill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
