/* SPDX-License-Identifier: BSD-3-Clause */
/* The governor's decisions: see governor.h. Arithmetic alone, so that they can be tried with any numbers. */
#include "runtime/record/governor.h"

#include "base/sigsafe.h"

#define PERIOD_MOST (UINT64_C(1) << 62)
#define PERIOD_STEP 16 /* some units count in steps of 16 and take no other periods */

/* period << slow, at most PERIOD_MOST. */
static uint64_t slowed_sig(uint64_t period, unsigned slow)
{
    return period > PERIOD_MOST >> slow ? PERIOD_MOST : period << slow;
}

static uint64_t larger_sig(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What a sample costs in all. */
static uint64_t whole_cost_sig(const struct governor_plan *plan, uint64_t cost_ns)
{
    uint64_t most = PERIOD_MOST / (2 * (GOVERNOR_SHARE + 1));
    cost_ns = cost_ns < most ? cost_ns : most;
    return cost_ns + (plan->tick_ns < most ? plan->tick_ns : most);
}

uint64_t governor_floor_sig(const struct governor_plan *plan, unsigned slow)
{
    uint64_t part = larger_sig(slowed_sig(plan->period, slow) / GOVERNOR_PLAN_PART, 1);
    uint64_t ticks = plan->tick_ns < PERIOD_MOST / GOVERNOR_TICKS ? plan->tick_ns * GOVERNOR_TICKS : PERIOD_MOST;
    return plan->is_clock ? larger_sig(part, larger_sig(GOVERNOR_CLOCK_LEAST_NS, ticks)) : part;
}

static uint8_t wished_sig(const struct governor_plan *plan)
{
    return (uint8_t)(plan->slow_least < GOVERNOR_SLOWEST ? plan->slow_least : GOVERNOR_SLOWEST);
}

unsigned governor_least_sig(const struct governor_plan *plan)
{
    unsigned slow = 0;
    while (slow < GOVERNOR_SLOWEST && !plan->is_exact &&
           slowed_sig(plan->period, slow) < governor_floor_sig(plan, slow))
        slow++;
    return plan->is_exact || slow >= wished_sig(plan) ? slow : wished_sig(plan);
}

uint64_t governor_pause_sig(const struct governor_plan *plan)
{
    return larger_sig(GOVERNOR_PAUSE_NS, larger_sig(plan->period, governor_floor_sig(plan, 0)));
}

struct governor governor_begin_sig(const struct governor_plan *plan, unsigned hint)
{
    unsigned least = governor_least_sig(plan);
    unsigned slow = hint > GOVERNOR_SLOWEST ? GOVERNOR_SLOWEST : hint;
    return (struct governor){
        .slow = (uint8_t)(plan->is_exact || slow < least ? least : slow), .wished = wished_sig(plan), .stands_for = 1};
}

uint64_t governor_period_sig(struct governor *self, const struct governor_plan *plan)
{
    uint64_t period = slowed_sig(plan->period, self->slow);
    self->stands_for = 1u << self->slow;
    return plan->is_clock ? larger_sig(period, governor_floor_sig(plan, self->slow)) : period;
}

uint64_t governor_first_sig(struct governor *self, const struct governor_plan *plan, uint64_t random)
{
    uint64_t period = governor_period_sig(self, plan), floor = governor_floor_sig(plan, self->slow);
    uint64_t step = period % PERIOD_STEP ? 1 : PERIOD_STEP;
    uint64_t first = (1 + random % (period / step)) * step;
    floor = (floor + step - 1) / step * step;
    self->owed = first < floor ? floor : 0;
    return first + self->owed;
}

uint64_t governor_second_sig(struct governor *self, const struct governor_plan *plan)
{
    uint64_t period = governor_period_sig(self, plan), owed = self->owed;
    self->owed = 0;
    return owed <= period / 2 ? period - owed : period;
}

uint64_t governor_rest_sig(struct governor *self, const struct governor_plan *plan, uint64_t late)
{
    uint64_t period = governor_period_sig(self, plan), left = period - late % period;
    if (left >= governor_floor_sig(plan, self->slow))
        return left;
    self->stands_for *= 2;
    return left + period;
}

uint64_t governor_pace_sig(uint64_t period, uint64_t n_counted, uint64_t spent_ns, uint64_t wanted_ns, uint64_t most)
{
    const uint64_t end = UINT64_C(1) << GOVERNOR_SLOWEST;
    uint64_t n = n_counted < end ? n_counted : end,
             wanted = wanted_ns < PERIOD_MOST / end ? wanted_ns : PERIOD_MOST / end;
    most = most > end ? end : most;
    if (!spent_ns)
        return period;
    uint64_t ideal = n * wanted / spent_ns;
    if (ideal > 2 * period)
        return larger_sig(2 * period <= most ? 2 * period : period, 1);
    while (period > 1 && 2 * ideal < period)
        period /= 2;
    return larger_sig(period, 1);
}

struct governor_cell governor_first_cell_sig(uint64_t period, uint64_t random)
{
    uint64_t offset = 1 + random % period;
    return (struct governor_cell){.period = period, .offset = offset, .due = offset};
}

struct governor_cell governor_next_cell_sig(const struct governor_cell *cell, uint64_t count, uint64_t period,
                                            uint64_t random)
{
    uint64_t late = count > cell->due ? count - cell->due : 0;
    struct governor_cell next = *cell;
    next.due += late / cell->period * cell->period;
    if (period == cell->period) {
        next.due += period;
        return next;
    }
    next.due += cell->period - cell->offset;
    next.period = period;
    next.offset = 1 + random % period;
    next.due += next.offset;
    next.due = larger_sig(next.due, count + 1);
    return next;
}

/* Whether the program gets its share at this period.  got_ns: what it got at the present one */
static bool has_share_sig(const struct governor_plan *plan, uint64_t period, uint64_t whole_ns, uint64_t got_ns)
{
    if (plan->is_clock || plan->is_rate)
        return period >= (GOVERNOR_SHARE + 1) * whole_ns;
    return got_ns >= GOVERNOR_SHARE * whole_ns;
}

bool governor_is_fair_sig(const struct governor *self, const struct governor_plan *plan, uint64_t cost_ns,
                          uint64_t got_ns)
{
    return plan->is_exact ||
           has_share_sig(plan, slowed_sig(plan->period, self->slow), whole_cost_sig(plan, cost_ns), got_ns);
}

/* Twice as many, and something to spare: else it would slow down again at once. */
static bool is_calm_sig(const struct governor_plan *plan, uint64_t period, uint64_t whole_ns, uint64_t got_ns)
{
    return has_share_sig(plan, period / 2, whole_ns + whole_ns / 4, got_ns / 2);
}

/* The owner does not want it so slow any more, and it was not slow for what samples cost: it need not be tried for
 * long.
 */
static bool hurry_sig(struct governor *self, const struct governor_plan *plan, uint64_t whole_ns, uint64_t got_ns)
{
    unsigned before = self->slow, least = governor_least_sig(plan);
    for (; self->slow > least && is_calm_sig(plan, slowed_sig(plan->period, self->slow), whole_ns, got_ns); got_ns /= 2)
        self->slow--;
    return self->slow < before;
}

bool governor_judge_sig(struct governor *self, const struct governor_plan *plan, uint64_t cost_ns, uint64_t got_ns)
{
    uint64_t period = slowed_sig(plan->period, self->slow);
    uint64_t least_ns = whole_cost_sig(plan, cost_ns < self->before_ns ? cost_ns : self->before_ns);
    uint64_t most_got_ns = larger_sig(got_ns, self->before_got_ns), whole_ns = whole_cost_sig(plan, cost_ns);
    unsigned least = governor_least_sig(plan);
    self->before_ns = cost_ns;
    self->before_got_ns = got_ns;
    if (plan->is_exact)
        return false;
    bool is_released = plan->slow_least < self->wished;
    self->wished = wished_sig(plan);
    if (is_released && hurry_sig(self, plan, whole_ns, got_ns)) {
        self->n_calm = 0;
        return true;
    }
    if (self->slow < least) {
        self->n_calm = 0;
        self->slow = (uint8_t)least;
        return true;
    }
    if (!has_share_sig(plan, period, least_ns, most_got_ns)) {
        self->n_calm = 0;
        if (self->slow == GOVERNOR_SLOWEST)
            return false;
        self->slow++;
        return true;
    }
    bool is_calm = is_calm_sig(plan, period, whole_ns, got_ns);
    self->n_calm = (uint8_t)(is_calm && self->slow > least ? self->n_calm + 1 : 0);
    if (self->n_calm < GOVERNOR_CALM)
        return false;
    self->n_calm = 0;
    self->slow--;
    return true;
}
