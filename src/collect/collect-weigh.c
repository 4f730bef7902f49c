/* SPDX-License-Identifier: BSD-3-Clause */
/* What the samples of one thread stand for: an event that shared its counter was seen only part of the time, and events
 * with different periods may add to one metric. Nodes hold raw counts wherever one period says it all.
 * Ordinary code. */

#include "collect/collect-internal.h"

#define PERIOD_MAX 1e15 /* a double holds every integer below */

static uint64_t load(const _Atomic uint64_t *value)
{
    return __atomic_load_n((const uint64_t *)value, __ATOMIC_RELAXED);
}

static uint64_t rounded(double value)
{
    return value < 1 ? 1 : value < PERIOD_MAX ? (uint64_t)(value + 0.5) : (uint64_t)PERIOD_MAX;
}

/* The event's fixed period; 0 when its samples bring weights, or count in fractions. */
static uint64_t fixed_period(const struct arena_event *event)
{
    bool is_whole = event->scale >= 1 && event->scale < PERIOD_MAX && event->scale == (double)(uint64_t)event->scale;
    return !(event->flags & EVENT_WEIGHTED) && is_whole ? (uint64_t)event->scale : 0;
}

static void weigh_event(struct thread *thread, uint32_t i)
{
    const struct arena_event *event = &thread->process->view->header->events[i];
    uint64_t enabled_ns = load(&thread->record->enabled_ns[i]), running_ns = load(&thread->record->running_ns[i]);
    struct weighing *weighing = &thread->weighings[i];
    weighing->ratio = running_ns && running_ns < enabled_ns ? (double)enabled_ns / (double)running_ns : 1;
    weighing->unit = fixed_period(event) ? rounded((double)fixed_period(event) * weighing->ratio) : 1;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Columns of one event keep its counts; the others count in the largest unit that all their events have in common. */
static void weigh_column(struct thread *thread, size_t index)
{
    const struct column *column = &thread->process->columns[index];
    struct thread_column *mine = &thread->columns[index];
    uint64_t unit = 0;
    *mine = (struct thread_column){.period = column->period, .scale = column->scale};
    for (uint32_t i = 0; i < thread->process->view->n_events; i++) {
        if (!(column->events & 1u << i))
            continue;
        unit = common_divisor(unit, thread->weighings[i].unit);
        mine->is_multiplexed |= thread->weighings[i].ratio > 1;
    }
    if (!column->events)
        return;
    if (column->kind == COLUMN_COUNT && column->scale != 1)
        mine->scale = column->scale * thread->weighings[column->event].ratio;
    else
        mine->period = unit;
}

void thread_weigh(struct thread *thread)
{
    for (uint32_t i = 0; i < thread->process->view->n_events; i++)
        weigh_event(thread, i);
    for (size_t i = 0; i < thread->process->n_columns; i++)
        weigh_column(thread, i);
}

static void put(struct hit_values *values, int column, uint64_t value)
{
    if (column < 0)
        return;
    values->columns[values->n] = column;
    values->values[values->n++] = value;
}

/* Weights are scaled hit by hit, so that both trees get the same whole numbers. */
static uint64_t scaled_weight(const struct thread *thread, const struct arena_hit *hit)
{
    double ratio = thread->weighings[hit->event].ratio;
    return ratio > 1 ? collect_whole((double)hit->weight * ratio) : hit->weight;
}

/* Samples of a weighted event count what they weigh, latency the mean weight of the hit's samples. */
static void weigh_access(const struct thread *thread, const struct arena_hit *hit, struct hit_values *values)
{
    const struct process *process = thread->process;
    bool is_weighted = process->view->header->events[hit->event].flags & EVENT_WEIGHTED;
    uint64_t weight = scaled_weight(thread, hit), unit = thread->weighings[hit->event].unit;
    double mean_weight = hit->count ? (double)weight / (double)hit->count : 0;
    for (int i = 0; i < MEM_METRICS; i++) {
        int column = hit->metrics & 1u << i ? process->column_of_metric[i] : -1;
        if (column >= 0)
            put(values, column, is_weighted ? weight : hit->count * (unit / thread->columns[column].period));
    }
    const int latency_columns[] = {process->latency_column,
                                   hit->metrics & MEM_REMOTE_METRICS ? process->remote_latency_column : -1};
    for (int i = 0; i < 2 && hit->latency; i++) {
        int column = latency_columns[i];
        if (column >= 0)
            put(values, column,
                is_weighted ? collect_whole((double)hit->latency * mean_weight)
                            : hit->latency * (unit / thread->columns[column].period));
    }
}

void thread_weigh_hit(const struct thread *thread, const struct arena_hit *hit, struct hit_values *values)
{
    const struct process *process = thread->process;
    values->n = 0;
    if (hit->event >= process->view->n_events || process->column_of_event[hit->event] < 0)
        return;
    int column = process->column_of_event[hit->event];
    bool is_weighted = process->columns[column].kind == COLUMN_WEIGHT;
    if (!hit->count && !(is_weighted && hit->weight))
        return;
    put(values, column, is_weighted ? scaled_weight(thread, hit) : hit->count);
    if (process->view->header->events[hit->event].flags & EVENT_DATA_SRC)
        weigh_access(thread, hit, values);
}
