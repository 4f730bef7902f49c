/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of runtime/record/governor.h with random plans and costs: no clock is ever armed below the floor, the
 * program gets its share within a few samples whatever a sample costs, and weights stay exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "runtime/record/governor.h"

#define CASES 20000
#define MS UINT64_C(1000000)

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Of any order of magnitude up to 2^bits. */
static uint64_t random_size(unsigned bits)
{
    return random_number() >> (64 - 1 - random_number() % bits);
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct governor_plan random_plan(bool is_clock)
{
    return (struct governor_plan){
        .period = 1 + random_size(40), .tick_ns = random_number() % 4 ? random_size(22) : 0, .is_clock = is_clock};
}

/* By its own arithmetic, not by the one that is tested. */
static uint64_t least_of(const struct governor_plan *plan)
{
    return max_of(max_of(plan->period / 20, 200000), 10 * plan->tick_ns);
}

static void test_no_clock_below_the_floor(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct governor_plan plan = random_plan(true);
        struct governor governor = governor_begin_sig(&plan, (unsigned)(random_number() % 8));
        uint64_t least = least_of(&plan);
        for (int k = 0; k < 50; k++) {
            uint64_t late = random_size(45);
            assert_true(governor_period_sig(&governor, &plan) >= least);
            assert_true(governor_period_sig(&governor, &plan) >= plan.period);
            assert_true(governor_first_sig(&governor, &plan, random_number()) >= least);
            assert_true(governor_second_sig(&governor, &plan) >= least);
            assert_true(governor_second_sig(&governor, &plan) == governor_period_sig(&governor, &plan));
            assert_true(governor_rest_sig(&governor, &plan, late) >= least);
            (void)governor_judge_sig(&governor, &plan, random_size(30), random_size(40));
        }
    }
}

/* The remainder is where a clock with this period would have ticked; where that is too soon, the tick after it stands
 * for both. */
static void test_remainders_keep_the_phase(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct governor_plan plan = random_plan(true);
        struct governor governor = governor_begin_sig(&plan, 0);
        uint64_t period = governor_period_sig(&governor, &plan), late = random_size(45);
        uint32_t one = governor.stands_for;
        uint64_t rest = governor_rest_sig(&governor, &plan, late);
        assert_true(rest <= 2 * period);
        if (period == plan.period << governor.slow)
            assert_int_equal((late + rest) % period, 0);
        assert_int_equal(governor.stands_for, rest > period ? 2 * one : one);
    }
}

/* Of threads that live for a time of at least two floors, as many are sampled as their share of a period demands. */
static void test_first_periods_are_fair(void **state)
{
    const struct governor_plan plan = {.period = 1000000, .is_clock = true};
    const uint64_t lives[] = {450000, 700000, 900000};
    (void)state;
    for (size_t k = 0; k < sizeof lives / sizeof *lives; k++) {
        uint64_t sum = 0;
        for (int i = 0; i < 200000; i++) {
            struct governor governor = governor_begin_sig(&plan, (unsigned)(i % 3));
            uint64_t first = governor_first_sig(&governor, &plan, random_number());
            if (governor.slow == 0 && first <= lives[k])
                sum += governor.stands_for;
        }
        /* One in three begins at the period of the plan: 66667 trials, 2 % are far more than their deviation. */
        double share = (double)sum / 66667, wanted = (double)lives[k] / 1e6;
        assert_true(share > wanted * 0.98 && share < wanted * 1.02);
    }
}

/* All parts of a thread's life are sampled alike, but that what lies between one and two floors stands for what lies
 * before: threads that do one thing after the other in a period or two have right shares. */
static void test_first_periods_are_even(void **state)
{
    enum { PARTS = 40, LIFE = 4000000, TRIALS = 400000 }; /* of 0.1 ms */
    const struct governor_plan plan = {.period = 1000000, .is_clock = true};
    unsigned n[PARTS] = {0};
    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        struct governor governor = governor_begin_sig(&plan, 0);
        uint64_t at = governor_first_sig(&governor, &plan, random_number());
        for (bool is_first = true; at < LIFE; is_first = false) {
            n[at * PARTS / LIFE]++;
            at += is_first ? governor_second_sig(&governor, &plan) : governor_period_sig(&governor, &plan);
        }
    }
    for (int part = 0; part < PARTS; part++) {
        double wanted = part < 2 ? 0 : part < 4 ? 2 : 1, seen = n[part] / (TRIALS / 10.0);
        assert_true(seen > wanted - 0.03 && seen < wanted + 0.03);
    }
}

/* Where two floors are longer than a period, as many threads are sampled as can be, and those that live for periods
 * have little less than their periods demand, all with the same weight. */
static void test_dear_ticks_are_fair(void **state)
{
    const struct governor_plan plan = {.period = 1000000, .tick_ns = 60000, .is_clock = true};
    const struct {
        double life, share;
    } cases[] = {{599999, 0}, {700000, 0.2}, {1000000, 0.8}, {8000000, 7.8}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t sum = 0;
        for (int i = 0; i < 100000; i++) {
            struct governor governor = governor_begin_sig(&plan, 0);
            uint64_t at = governor_first_sig(&governor, &plan, random_number());
            for (bool is_first = true; (double)at <= cases[k].life; is_first = false) {
                assert_int_equal(governor.stands_for, 1);
                sum++;
                at += (is_first ? governor_second_sig : governor_period_sig)(&governor, &plan);
            }
        }
        double share = (double)sum / 100000;
        assert_true(share >= cases[k].share - 0.02 && share <= cases[k].share + 0.02);
    }
}

/* Whatever a sample costs, after so many doublings the program gets four times that between two of them. */
static void test_the_program_gets_its_share(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct governor_plan plan = random_plan(true);
        struct governor governor = governor_begin_sig(&plan, 0);
        uint64_t cost = random_size(34), whole = cost + plan.tick_ns;
        for (int k = 0; k < GOVERNOR_SLOWEST + 2; k++)
            if (governor_judge_sig(&governor, &plan, cost, 0))
                (void)governor_period_sig(&governor, &plan);
        assert_true(governor.slow == GOVERNOR_SLOWEST || governor_period_sig(&governor, &plan) - whole >= 4 * whole);
        /* No slower than need be: half the period would not do, or is not allowed. */
        bool is_least = governor.slow == governor_least_sig(&plan);
        assert_true(is_least || (plan.period << governor.slow) / 2 < 5 * whole);
    }
}

/* A handler that lost its processor once does not slow the event down, and when samples become cheap again there are as
 * many as before. */
static void test_one_dear_sample_changes_nothing(void **state)
{
    const struct governor_plan plan = {.period = MS, .tick_ns = 10000, .is_clock = true};
    struct governor governor = governor_begin_sig(&plan, 0);
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_false(governor_judge_sig(&governor, &plan, i % 2 ? 50 * MS : 2000, 0));
    for (int i = 0; i < 20; i++)
        (void)governor_judge_sig(&governor, &plan, MS, 0);
    assert_int_equal(governor.slow, 3);
    for (int i = 0; i < 4 * GOVERNOR_CALM; i++)
        (void)governor_judge_sig(&governor, &plan, 2000, 0);
    assert_int_equal(governor.slow, 0);
}

/* What is not a clock goes by what the program got between two samples. */
static void test_counts_go_by_what_the_program_got(void **state)
{
    const struct governor_plan plan = {.period = 1000, .tick_ns = 0}, exact = {.period = 1, .is_exact = true};
    struct governor governor = governor_begin_sig(&plan, 0), each = governor_begin_sig(&exact, 5);
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_false(governor_judge_sig(&governor, &plan, 3000, 12000));
    for (int i = 0; i < 10; i++)
        (void)governor_judge_sig(&governor, &plan, 3000, 3000);
    assert_true(governor.slow >= 8);
    for (int i = 0; i < 10; i++)
        assert_false(governor_judge_sig(&each, &exact, MS, 1));
    assert_int_equal(governor_period_sig(&each, &exact), 1);
    assert_int_equal(each.stands_for, 1);
}

/* The kernel follows a new rate slowly: what the program got meanwhile says nothing of it. */
static void test_rates_go_by_their_period(void **state)
{
    const struct governor_plan plan = {.period = MS, .is_rate = true};
    struct governor governor = governor_begin_sig(&plan, 0);
    (void)state;
    for (int i = 0; i < 100; i++)
        (void)governor_judge_sig(&governor, &plan, MS, 1000);
    assert_int_equal(governor.slow, 3);
}

/* What the owner slowed down is as fast as before with the next sample, as far as what samples cost lets it. */
static void test_a_wish_ends_at_once(void **state)
{
    struct governor_plan plan = {.period = MS, .is_clock = true, .slow_least = 7};
    struct governor cheap = governor_begin_sig(&plan, 0), dear = cheap;
    (void)state;
    assert_int_equal(cheap.slow, 7);
    assert_false(governor_judge_sig(&cheap, &plan, 2000, 0));
    assert_false(governor_judge_sig(&dear, &plan, MS, 0));
    plan.slow_least = 2;
    assert_true(governor_judge_sig(&cheap, &plan, 2000, 0));
    assert_int_equal(cheap.slow, 2);
    plan.slow_least = 0;
    assert_true(governor_judge_sig(&cheap, &plan, 2000, 0));
    assert_int_equal(cheap.slow, 0);
    assert_true(governor_judge_sig(&dear, &plan, MS, 0));
    assert_int_equal(dear.slow, 3);
    for (int i = 0; i < 10; i++)
        (void)governor_judge_sig(&dear, &plan, MS, 0);
    assert_int_equal(dear.slow, 3);
}

/* A clock that runs for so long, on a machine where a sample's cost changes all the time, tells exactly that time. */
static void test_weights_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        const struct governor_plan plan = {.period = MS, .tick_ns = random_size(17), .is_clock = true};
        struct governor governor = governor_begin_sig(&plan, 0);
        uint64_t time = 0, told = 0, cost = 1000;
        uint64_t period = governor_period_sig(&governor, &plan);
        for (int k = 0; k < 5000; k++) {
            uint32_t stands_for = governor.stands_for;
            time += period;
            told += stands_for * plan.period;
            if (random_number() % 100 == 0)
                cost = random_size(24);
            if (governor_judge_sig(&governor, &plan, cost, 0))
                period = governor_period_sig(&governor, &plan);
        }
        assert_true(time == told);
    }
}

/* What n counted events look like by their samples, where after each of them another period may be chosen. */
static double told_of(uint64_t n, uint64_t largest)
{
    struct governor_cell cell = governor_first_cell_sig(largest, random_number());
    double told = 0;
    while (cell.due <= n) {
        uint64_t period = random_number() % 3 ? cell.period : 1 + random_number() % largest;
        uint64_t count = cell.due;
        told += (double)cell.period;
        cell = governor_next_cell_sig(&cell, count, period, random_number());
        assert_true(cell.due > count && cell.offset >= 1 && cell.offset <= cell.period);
    }
    return told;
}

/* Samples stand for as many events as there were, whatever a thread counts in its life and however periods change. */
static void test_cells_tell_all_events(void **state)
{
    static const uint64_t lives[] = {1, 10, 100, 150, 10000};
    (void)state;
    for (size_t k = 0; k < sizeof lives / sizeof *lives; k++) {
        const int n_trials = lives[k] < 1000 ? 400000 : 20000;
        double sum = 0, squares = 0;
        for (int i = 0; i < n_trials; i++) {
            double told = told_of(lives[k], 100);
            sum += told;
            squares += told * told;
        }
        double mean = sum / n_trials, variance = (squares / n_trials - mean * mean) / n_trials;
        double off = mean - (double)lives[k];
        if (off * off > 25 * variance) /* five standard errors */
            fail_msg("%d events: %g", (int)lives[k], mean);
    }
}

/* At one period samples come at its distance, also when some were missed. */
static void test_cells_of_one_period_are_regular(void **state)
{
    struct governor_cell cell = governor_first_cell_sig(100, 41);
    (void)state;
    assert_int_equal(cell.due, 42);
    cell = governor_next_cell_sig(&cell, 42, 100, 7);
    assert_int_equal(cell.due, 142);
    cell = governor_next_cell_sig(&cell, 399, 100, 7);
    assert_int_equal(cell.due, 442);
    cell = governor_next_cell_sig(&cell, 442, 10, 7); /* the cell ends at 500 */
    assert_int_equal(cell.due, 508);
}

/* A thread that counts one event in 500 ns has a sample each millisecond after a few, one that counts few has each of
 * them, and the first samples stand for few. */
static void test_the_pace_follows_what_is_counted(void **state)
{
    uint64_t period = 1;
    (void)state;
    for (int i = 0; i < 20; i++)
        period = governor_pace_sig(period, period, period * 500, MS, UINT64_MAX);
    assert_int_equal(period, 1024);
    assert_int_equal(governor_pace_sig(period, 1024, 0, MS, UINT64_MAX), 1024);
    period = governor_pace_sig(period, 1024, 100 * MS, MS, UINT64_MAX);
    assert_in_range(period, 8, 16);
    assert_int_equal(governor_pace_sig(period, 1, 1000 * MS, MS, UINT64_MAX), 1);
    assert_int_equal(governor_pace_sig(4, 4, 1000, MS, 4), 4);
    for (int i = 0; i < CASES; i++) {
        uint64_t before = 1 + random_size(24), most = 1 + random_size(24);
        uint64_t after = governor_pace_sig(before, random_size(62), random_size(62), random_size(62), most);
        assert_true(after >= 1 && after <= 2 * before && (after <= before || after <= most));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_clock_below_the_floor),
        cmocka_unit_test(test_remainders_keep_the_phase),
        cmocka_unit_test(test_first_periods_are_fair),
        cmocka_unit_test(test_first_periods_are_even),
        cmocka_unit_test(test_dear_ticks_are_fair),
        cmocka_unit_test(test_the_program_gets_its_share),
        cmocka_unit_test(test_one_dear_sample_changes_nothing),
        cmocka_unit_test(test_counts_go_by_what_the_program_got),
        cmocka_unit_test(test_rates_go_by_their_period),
        cmocka_unit_test(test_a_wish_ends_at_once),
        cmocka_unit_test(test_weights_are_exact),
        cmocka_unit_test(test_cells_tell_all_events),
        cmocka_unit_test(test_cells_of_one_period_are_regular),
        cmocka_unit_test(test_the_pace_follows_what_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
