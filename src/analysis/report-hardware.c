/* SPDX-License-Identifier: BSD-3-Clause */
/* The hardware's part of the table of variables: derived metrics for each row and for all accesses together, and the
 * events that they come from. Ordinary code. */
#include <stdlib.h>
#include <string.h>

#include "analysis/report.h"

static size_t count_rows(void)
{
    size_t n = 0;
    while (metrics_row(n))
        n++;
    return n;
}

/* The event whose latencies a report about this metric shows: its own, else those of all events. */
static uint32_t latency_event(const struct report *report)
{
    const struct model *model = report->model;
    for (uint32_t i = 0; i < model->n_events; i++)
        if (model->events[i].has_data_source &&
            strcmp(model->events[i].metric, model->metrics[report->metric].name) == 0)
            return i;
    return UINT32_MAX;
}

/* All events that told about their accesses, as one. */
static void sum_events(struct report *report)
{
    const struct model *model = report->model;
    struct event_sum *sum = &report->events;
    *sum = (struct event_sum){.metric = model->metrics[report->metric].name};
    for (size_t i = 0; i < model->n_events; i++) {
        const struct event_sum *event = &model->events[i];
        if (!event->has_data_source)
            continue;
        sum->taken += event->taken;
        sum->overflows += event->overflows;
        sum->enabled_ns += event->enabled_ns;
        sum->running_ns += event->running_ns;
        sum->n_throttles += event->n_throttles;
        sum->n_no_metric += event->n_no_metric;
        sum->n_truncated += event->n_truncated;
        sum->n_collisions += event->n_collisions;
        sum->has_data_source = true;
        for (int fate = 0; fate < FATE_MAX; fate++)
            sum->fates[fate] += event->fates[fate];
    }
    if (sum->has_data_source)
        report->event = sum;
}

/* All derived metrics [n], malloc'ed. */
static double *derive(const struct metric_input *input, size_t n)
{
    double *values = calloc(n, sizeof *values);
    for (size_t i = 0; values && i < n; i++)
        values[i] = metrics_row(i)->value(metrics_row(i), input);
    return values;
}

/* What every row needs. */
struct filling {
    struct metric_columns columns;
    uint32_t event;
    size_t n_derived;
};

static bool fill_row(const struct report *report, struct report_row *row, const struct filling *filling)
{
    struct metric_input input = {.work = report->all.work};
    if (!row->variable || row->part)
        return true;
    metrics_fill(report->model, &filling->columns, row->variable->scopes, row->variable->n_scopes, &input);
    metrics_add_latency(row->variable->latencies, row->variable->n_latencies, filling->event, &input.latency);
    row->derived = derive(&input, filling->n_derived);
    return row->derived != NULL;
}

/* The costs of the program: by code, since the data-centric tree repeats them. */
static void fill_all(struct report *report, const struct filling *filling)
{
    const struct model *model = report->model;
    const uint32_t top = 0;
    int64_t instructions = metrics_instructions(model);
    metrics_fill(model, &filling->columns, &top, 1, &report->all);
    report->is_work_counted = instructions >= 0;
    report->all.work = instructions >= 0 ? model_value(model, 0, (size_t)instructions) : report->all.counts[MEM_LOAD];
    for (size_t i = 0; i < model->n_variables; i++)
        metrics_add_latency(model->variables[i].latencies, model->variables[i].n_latencies,
                            filling->event, &report->all.latency);
}

void report_place_accesses(const struct report *report, struct variable *variable)
{
    const struct model *model = report->model;
    size_t n = model->n_numa_nodes;
    if (!variable->places || !metrics_is_access(model->metrics[report->metric].name))
        return;
    for (size_t i = 0; i < model->n_events; i++) {
        int64_t metric = model->events[i].has_data_source ? model_metric(model, model->events[i].metric) : -1;
        for (size_t node = 0; metric >= 0 && node < n; node++)
            variable->places[report->metric * n + node] += variable->places[(size_t)metric * n + node];
    }
}

int report_add_hardware(struct report *report, struct error *err)
{
    const struct model *model = report->model;
    bool is_access = metrics_is_access(model->metrics[report->metric].name), ok = true;
    report->has_hardware = metrics_has_hardware(model);
    if (is_access)
        sum_events(report);
    if (!report->has_hardware)
        return 0;
    report->is_hardware = is_access || (report->event && report->event->has_data_source);
    struct filling filling = {.event = latency_event(report), .n_derived = count_rows()};
    metrics_columns(model, &filling.columns);
    fill_all(report, &filling);
    report->derived = derive(&report->all, filling.n_derived);
    ok = report->derived != NULL;
    for (size_t i = 0; ok && i < report->n_rows; i++)
        ok = fill_row(report, &report->rows[i], &filling);
    return ok ? 0 : error_set(err, ERR_MEMORY, "out of memory");
}
