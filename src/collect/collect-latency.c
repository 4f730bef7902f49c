/* SPDX-License-Identifier: BSD-3-Clause */
/* What the side file says of the samples of a variable: their numbers, metric by metric and never scaled, and the
 * latencies that the hardware told. Ordinary code. */
#include <string.h>

#include "collect/collect-internal.h"

static void add_samples(struct thread *thread, struct variable *variable, uint32_t metric, uint64_t n_samples)
{
    struct objects_variable *row = &variable->row;
    for (size_t i = 0; i < row->n_samples; i++)
        if (row->samples[i].metric == metric) {
            row->samples[i].count += n_samples;
            return;
        }
    if (!vec_reserve(&row->samples, &variable->cap_samples, row->n_samples + 1, sizeof *row->samples)) {
        thread->tree.failed = true;
        return;
    }
    row->samples[row->n_samples++] = (struct objects_samples){.metric = metric, .count = n_samples};
}

/* The variable's latencies of an event, added when new; NULL when out of memory. */
static struct objects_latency *latency_of(struct thread *thread, struct variable *variable, uint32_t event)
{
    struct objects_variable *row = &variable->row;
    for (size_t i = 0; i < row->n_latencies; i++)
        if (row->latencies[i].event == event)
            return &row->latencies[i];
    if (!vec_reserve(&row->latencies, &variable->cap_latencies, row->n_latencies + 1, sizeof *row->latencies)) {
        thread->tree.failed = true;
        return NULL;
    }
    row->latencies[row->n_latencies] = (struct objects_latency){.event = event};
    return &row->latencies[row->n_latencies++];
}

void thread_describe_samples(struct thread *thread, struct variable *variable, const struct arena_hit *hit,
                             const struct hit_values *values)
{
    for (size_t i = 0; i < values->n; i++)
        add_samples(thread, variable, (uint32_t)values->columns[i], hit->count);
    bool has_latency = thread->process->view->header->events[hit->event].flags & EVENT_DATA_SRC && hit->latency;
    struct objects_latency *latency = has_latency ? latency_of(thread, variable, hit->event) : NULL;
    if (!latency)
        return;
    latency->n_samples += hit->count;
    latency->cycles += hit->latency;
    if (hit->metrics & MEM_REMOTE_METRICS) {
        latency->n_remote += hit->count;
        latency->remote_cycles += hit->latency;
    }
}

static void take_sketch(struct thread *thread, const struct arena_sketch *sketch)
{
    const struct view *view = thread->process->view;
    bool is_wanted = sketch->event < view->n_events && thread->process->column_of_event[sketch->event] >= 0 &&
                     view->header->events[sketch->event].flags & EVENT_ADDRESS;
    const struct declaration *declaration = is_wanted ? thread_declare(thread, sketch->var, HIT_LOST) : NULL;
    if (!declaration || declaration->variable == TREE_NONE)
        return;
    struct objects_latency *latency = latency_of(thread, &thread->variables[declaration->variable], sketch->event);
    /* bin 0: the hardware told no latency, and the samples are not in n_samples either */
    for (int i = 1; latency && i < ARENA_SKETCH_BINS; i++)
        latency->bins[i] += sketch->bins[i];
}

void thread_take_sketches(struct thread *thread)
{
    struct view_walk walk = {
        .kind = ARENA_SKETCHES, .thread = thread->ref, .record_bytes = sizeof(struct arena_sketch)};
    const void *record;
    while ((record = view_next(thread->process->view, &walk))) {
        struct arena_sketch sketch;
        memcpy(&sketch, record, sizeof sketch);
        take_sketch(thread, &sketch);
    }
}
