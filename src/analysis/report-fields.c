/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of the rows of the table of variables: how the samples of a row are spread over them, how many have a
 * type at all, and where a structure should be split. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report.h"

#define ADVICE_SHARE 2.0       /* percent of all samples that a row must have */
#define ADVICE_SAMPLES 20      /* and its samples */
#define ADVICE_BYTES 32768     /* and its size: smaller ones stay in the first-level cache however they are laid out */
#define ADVICE_HOT 0.8         /* of the row's samples that the hot fields must have ... */
#define ADVICE_HOT_FIELDS 3    /* ... which are so many at most ... */
#define ADVICE_HOT_BYTES 0.5   /* ... and so much of an element */

/* The event whose places are shown for the metric: its own, else the first that has any; UINT32_MAX: none. */
static uint32_t event_of(const struct report *report)
{
    const struct model *model = report->model;
    uint32_t first = UINT32_MAX;
    for (size_t v = 0; v < report->n_variables; v++)
        for (size_t i = 0; i < report->variables[v].n_fields; i++) {
            uint32_t event = report->variables[v].fields[i].event;
            if (event >= model->n_events)
                continue;
            if (strcmp(model->events[event].metric, model->metrics[report->metric].name) == 0)
                return event;
            first = event < first ? event : first;
        }
    return first;
}

static bool is_of_row(const struct report_row *row, const struct variable_field *field)
{
    uint32_t part = row->part ? (uint32_t)(row->part - row->variable->parts) : FIELD_NO_PART;
    return field->part == part;
}

static int compare_fields(const void *a, const void *b)
{
    const struct report_field *x = a, *y = b;
    if (x->samples != y->samples)
        return x->samples > y->samples ? -1 : 1;
    if (x->offset_bytes != y->offset_bytes)
        return x->offset_bytes < y->offset_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool add_field(const struct report *report, struct report_row *row, const struct variable_field *from)
{
    if (!vec_reserve(&row->fields, &row->cap_fields, row->n_fields + 1, sizeof *row->fields))
        return false;
    struct report_field *field = &row->fields[row->n_fields];
    const char *path = model_text(report->model, from->name);
    *field = (struct report_field){.path = path,
                                   .type = model_text(report->model, from->type),
                                   .flags = from->flags,
                                   .offset_bytes = from->offset_bytes,
                                   .size_bytes = from->size_bytes,
                                   .samples = (double)from->samples};
    if (asprintf(&field->name, "%s%s%s", row->name, from->flags & FIELD_UNTYPED ? " " : "", path) < 0)
        return false;
    row->n_fields++;
    return true;
}

/* Fields of an array of structures: "[].x", "(:)%x". */
static bool is_in_element(const struct report_field *field)
{
    return !field->flags && (strncmp(field->path, "[].", 3) == 0 || strncmp(field->path, "(:)%", 4) == 0);
}

/* The first fields, by samples, that have ADVICE_HOT of them; 0 when they are too many or too large. */
static size_t hot_fields(const struct report_row *row, double *fraction, uint64_t *bytes)
{
    *fraction = 0;
    *bytes = 0;
    for (size_t i = 0; i < row->n_fields && i < ADVICE_HOT_FIELDS && is_in_element(&row->fields[i]); i++) {
        *fraction += row->fields[i].fraction;
        *bytes += row->fields[i].size_bytes;
        if (*fraction >= ADVICE_HOT)
            return (double)*bytes <= ADVICE_HOT_BYTES * (double)row->element_bytes ? i + 1 : 0;
    }
    return 0;
}

static void advise(struct report_row *row)
{
    double fraction;
    uint64_t bytes;
    struct buf text = {0};
    size_t n = hot_fields(row, &fraction, &bytes);
    if (n == 0 || row->share < ADVICE_SHARE || row->samples < ADVICE_SAMPLES || row->size_bytes < ADVICE_BYTES)
        return;
    buf_printf(&text, "%.0f %% of it in ", 100 * fraction);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ",
                   row->fields[i].path + (row->fields[i].path[0] == '(' ? 3 : 2));
    buf_printf(&text, ", %llu of %llu bytes: ", (unsigned long long)bytes, (unsigned long long)row->element_bytes);
    buf_printf(&text, n == 1 ? "keep that field in an array of its own" : "split the structure, these fields apart");
    row->advice = text.data;
}

static bool fill_row(const struct report *report, uint32_t event, struct report_row *row)
{
    const struct variable *variable = row->variable;
    double total = 0;
    row->type = model_text(report->model, row->part ? row->part->type : variable->type);
    row->element_bytes = row->part ? row->part->element_bytes : variable->element_bytes;
    row->type_source = model_type_source_name((enum type_source)variable->type_source);
    for (size_t i = 0; i < variable->n_fields; i++)
        if (variable->fields[i].event == event && is_of_row(row, &variable->fields[i])) {
            if (!add_field(report, row, &variable->fields[i]))
                return false;
            total += (double)variable->fields[i].samples;
        }
    for (size_t i = 0; i < row->n_fields; i++) {
        row->fields[i].fraction = row->fields[i].samples / total;
        row->fields[i].share = row->share * row->fields[i].fraction;
    }
    if (row->n_fields)
        qsort(row->fields, row->n_fields, sizeof *row->fields, compare_fields);
    advise(row);
    return true;
}

static bool is_data(const struct variable *variable)
{
    return variable && (variable->class <= CLASS_STACK);
}

int report_add_fields(struct report *report, struct error *err)
{
    uint32_t event = event_of(report);
    double in_data = 0;
    if (event == UINT32_MAX)
        return 0;
    report->has_fields = true;
    for (size_t i = 0; i < report->n_rows; i++) {
        struct report_row *row = &report->rows[i];
        if (!row->variable)
            continue;
        if (!fill_row(report, event, row))
            return error_set(err, ERR_MEMORY, "out of memory");
        in_data += is_data(row->variable) ? row->share : 0;
        for (size_t f = 0; f < row->n_fields; f++)
            if (!(row->fields[f].flags & FIELD_UNTYPED)) {
                report->typed += row->fields[f].share;
                report->typed_by[row->variable->type_source] += row->fields[f].share;
            }
    }
    report->typed = in_data > 0 ? 100 * report->typed / in_data : 0;
    for (int i = 0; i < TYPE_SOURCES; i++)
        report->typed_by[i] = in_data > 0 ? 100 * report->typed_by[i] / in_data : 0;
    return 0;
}

bool report_merge_fields(struct variable *into, const struct variable *from)
{
    if (!into->type) {
        into->type = from->type;
        into->type_source = from->type_source;
        into->element_bytes = from->element_bytes;
    }
    for (size_t i = 0; i < from->n_fields; i++)
        if (!model_add_field(into, &from->fields[i]))
            return false;
    return true;
}
