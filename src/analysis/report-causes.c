/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rows of a report were spent on, and their order by it: see causes.h. */
#include <stdlib.h>
#include <string.h>

#include "analysis/causes.h"
#include "analysis/report.h"

#define RESIDENT_PART 0.5

/* Samples without variable. */
static struct cause_sum cause_of_other(const struct report_row *row)
{
    if (row->fate || causes_are_unknown(row->name))
        return (struct cause_sum){.memory_high = 1, .unverified = 1};
    return (struct cause_sum){.execution = 1};
}

/* The parts of a row, 1 for all of it; what no file tells of is not verified. */
static struct cause_sum parts_of(const struct report *report, const struct report_row *row, uint32_t event)
{
    const struct variable *variable = row->variable;
    const struct cause_sum *sum = variable ? causes_of(variable, event) : NULL;
    if (row->is_waiting || row->fate || !variable || variable->class == CLASS_UNATTRIBUTED ||
        variable->class == CLASS_WAITING)
        return cause_of_other(row);
    double known = sum ? sum->memory + sum->execution + sum->unverified : 0, all = known;
    if (report->model->has_samples && variable->samples && (double)variable->samples[report->metric] > known)
        all = (double)variable->samples[report->metric];
    if (!sum || all <= 0)
        return (struct cause_sum){.memory_high = 1, .unverified = 1};
    return (struct cause_sum){.memory = sum->memory / all,
                              .memory_low = sum->memory_low / all,
                              .memory_high = (sum->memory_high + all - known) / all,
                              .execution = sum->execution / all,
                              .unverified = (sum->unverified + all - known) / all,
                              .resident = sum->resident / all};
}

static bool knows_causes(const struct report *report, uint32_t event)
{
    for (size_t i = 0; i < report->model->n_variables; i++)
        if (causes_of(&report->model->variables[i], event))
            return true;
    return false;
}

void report_add_causes(struct report *report)
{
    const struct model *model = report->model;
    bool is_own = model->n_events && report->event >= model->events && report->event < model->events + model->n_events;
    uint32_t event = is_own ? (uint32_t)(report->event - model->events) : 0;
    struct cause_sum *all = &report->causes;
    if (!is_own || report->is_hardware || !knows_causes(report, event))
        return;
    report->has_causes = true;
    for (size_t i = 0; i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        struct cause_sum part = parts_of(report, row, event), *sum = &row->causes;
        *sum =
            (struct cause_sum){row->share * part.memory,    row->share * part.memory_low, row->share * part.memory_high,
                               row->share * part.execution, row->share * part.unverified, row->share * part.resident};
        all->memory += sum->memory;
        all->memory_low += sum->memory_low;
        all->memory_high += sum->memory_high;
        all->execution += sum->execution;
        all->unverified += sum->unverified;
        all->resident += sum->resident;
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct report_row *x = a, *y = b;
    bool x_is_special = report_is_special(x), y_is_special = report_is_special(y);
    if (x_is_special != y_is_special)
        return x_is_special ? 1 : -1;
    if (x_is_special && x->value != y->value)
        return x->value > y->value ? -1 : 1;
    double x_waits = x->causes.memory + x->causes.unverified, y_waits = y->causes.memory + y->causes.unverified;
    if (x_waits != y_waits)
        return x_waits > y_waits ? -1 : 1;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->site, y->site);
}

void report_order_by_memory(struct report *report)
{
    if (report->has_causes && report->n_rows)
        qsort(report->rows, report->n_rows, sizeof *report->rows, compare_rows);
}

const char *report_meaning(const struct report *report, const struct report_row *row)
{
    const struct cause_sum *sum = &row->causes;
    const struct variable *variable = row->variable;
    bool is_data = variable && variable->class != CLASS_UNATTRIBUTED && variable->class != CLASS_WAITING;
    if (!report->has_causes || !is_data || row->share <= 0)
        return NULL;
    if (sum->resident > RESIDENT_PART * row->share)
        return "resident in the core's caches: change the arithmetic, not the data";
    if (sum->execution > RESIDENT_PART * row->share)
        return "execution that the data only feed: change the arithmetic, not the data";
    if (sum->unverified > RESIDENT_PART * row->share)
        return "not verified: too few samples of an instruction, or its addresses do not tell";
    return NULL;
}
