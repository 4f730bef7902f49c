/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived columns of reports: their rows become the nodes of a frame, which computes them. */
#include "export/derived.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/report.h"
#include "base/input.h"
#include "database/database.h"
#include "database/v4.h"
#include "export/text-cells.h"
#include "frame/make.h"
#include "frame/ops.h"
#include "frame/readers.h"
#include "table/table.h"

#define WIDTH_LEAST 9 /* of a column in text */
#define WIDTH_MOST 20
#define DERIVED_PLACE 255 /* in CSV: behind all others */

char *derived_name(const char *text)
{
    size_t first = strspn(text, " "), len = strcspn(text, "=");
    while (len > first && text[len - 1] == ' ')
        len--;
    return strndup(text + first, len - first);
}

bool derived_needs(const struct export_job *job, size_t metric)
{
    for (size_t i = 0; i < job->n_derived; i++)
        if (strstr(job->derived[i], job->model->metrics[metric].name) || strstr(job->derived[i], "time"))
            return true;
    return false;
}

/* The rows as nodes with a column for each metric, and one for time, without and with what they call. */
struct rows {
    const struct export_job *job;
    size_t n_rows;
    derived_value *value;
    const void *context;
    struct frame *frame;
    uint32_t *node_of; /* [n_rows] */
};

static void add_column(const struct rows *rows, const struct column_pair *pair, bool is_inclusive,
                       struct frame_maker *maker)
{
    double scale = v4_export_scale(pair);
    struct buf name = {0};
    buf_printf(&name, "%s%s", scale == 1 ? pair->name : "time", is_inclusive ? " (inc)" : "");
    maker->failed |= name.failed;
    size_t column = name.failed ? 0 : maker_column(maker, name.data, is_inclusive ? FRAME_INCLUSIVE : FRAME_EXCLUSIVE);
    for (size_t row = 0; !maker->failed && row < rows->n_rows && derived_needs(rows->job, pair->metric); row++) {
        double value = rows->value(rows->context, row, pair->metric, is_inclusive);
        if (value != 0)
            maker_value(maker, column, rows->node_of[row], 0, value * scale);
    }
    buf_fini(&name);
}

static int make_frame(struct rows *rows, struct error *err)
{
    struct columns columns;
    struct frame_maker maker;
    uint32_t *new_of = NULL;
    int code = columns_make(rows->job->model, &columns, err);
    if (code != 0)
        return code;
    maker_init(&maker);
    rows->node_of = calloc(rows->n_rows + 1, sizeof *rows->node_of);
    maker.failed |= !rows->node_of;
    for (size_t row = 0; !maker.failed && row < rows->n_rows; row++)
        rows->node_of[row] = maker_node(&maker, FRAME_NONE, &(struct made_node){.kind = FRAME_OTHER});
    for (size_t i = 0; !maker.failed && i < columns.n_pairs; i++) {
        add_column(rows, &columns.pairs[i], false, &maker);
        add_column(rows, &columns.pairs[i], true, &maker);
    }
    code = frame_made(&maker, &rows->frame, &new_of, err);
    for (size_t row = 0; code == 0 && row < rows->n_rows; row++)
        rows->node_of[row] = new_of[rows->node_of[row]];
    free(new_of);
    columns_fini(&columns);
    return code;
}

/* Adds column i of the job to the frame, and takes its values. */
static int derive(struct rows *rows, struct derived *derived, size_t i, struct error *err)
{
    struct frame *result = NULL;
    struct error reason = {0};
    const double *values;
    const char *text = rows->job->derived[i];
    if (!(derived->names[i] = derived_name(text)))
        return error_memory(err);
    int code = frame_derive(rows->frame, derived->names[i], strchr(text, '=') + 1, &result, &reason);
    if (code != 0)
        return error_set(err, code, "--derive: %s", reason.text);
    frame_close(rows->frame);
    rows->frame = result;
    code = frame_values(result, frame_find_column(result, derived->names[i], NULL), NULL, &values, err);
    for (size_t row = 0; code == 0 && row < rows->n_rows; row++)
        derived->values[row * derived->n + i] = values[rows->node_of[row]];
    return code;
}

int derived_make(const struct export_job *job, size_t n_rows, derived_value *value, const void *context,
                 struct derived *derived, struct error *err)
{
    struct rows rows = {.job = job, .n_rows = n_rows, .value = value, .context = context};
    *derived = (struct derived){.n = job->n_derived, .n_rows = n_rows};
    if (derived->n == 0)
        return 0;
    derived->names = calloc(derived->n, sizeof *derived->names);
    derived->values = calloc(n_rows * derived->n + 1, sizeof *derived->values);
    int code = derived->names && derived->values ? make_frame(&rows, err) : error_memory(err);
    for (size_t i = 0; code == 0 && i < derived->n; i++)
        code = derive(&rows, derived, i, err);
    frame_close(rows.frame);
    free(rows.node_of);
    if (code != 0)
        derived_fini(derived);
    return code;
}

static double metric_of_variable(const void *context, size_t row, size_t metric, bool is_inclusive)
{
    const struct report *report = context;
    (void)is_inclusive;
    return report_value(report, &report->rows[row], metric);
}

int derived_of_report(const struct export_job *job, const struct report *report, struct derived *derived,
                      struct error *err)
{
    return derived_make(job, report->n_rows, metric_of_variable, report, derived, err);
}

void derived_fini(struct derived *derived)
{
    for (size_t i = 0; derived->names && i < derived->n; i++)
        free(derived->names[i]);
    free(derived->names);
    free(derived->values);
    *derived = (struct derived){0};
}

/* --- text --- */

static double value_at(const struct derived *derived, size_t row, size_t column)
{
    return row < derived->n_rows ? derived->values[row * derived->n + column] : (double)NAN;
}

static size_t width_of(const struct derived *derived, size_t column)
{
    size_t width = text_width(derived->names[column]);
    return width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
}

size_t derived_width(const struct derived *derived)
{
    size_t width = 0;
    for (size_t i = 0; i < derived->n; i++)
        width += width_of(derived, i) + 2;
    return width;
}

void derived_put_titles(const struct derived *derived, const struct export_job *job, struct buf *out)
{
    for (size_t i = 0; i < derived->n; i++) {
        text_cell(out, job, derived->names[i], width_of(derived, i), true);
        buf_printf(out, "  ");
    }
}

void derived_put_cell(const struct derived *derived, size_t row, size_t column, struct buf *out)
{
    double value = value_at(derived, row, column);
    if (isnan(value))
        buf_printf(out, "-");
    else
        buf_printf(out, "%.4g", value);
}

void derived_put_cells(const struct derived *derived, size_t row, struct buf *out)
{
    for (size_t i = 0; i < derived->n; i++) {
        struct buf cell = {0};
        derived_put_cell(derived, row, i, &cell);
        buf_printf(out, "%*s  ", (int)width_of(derived, i), cell.data ? cell.data : "");
        out->failed |= cell.failed;
        buf_fini(&cell);
    }
}

/* --- tables --- */

void derived_add_columns(const struct derived *derived, struct column_list *list)
{
    if (derived->n)
        column_list_make(list, "derived", NULL, CELL_OBJECT | COLUMN_MEMBERS(derived->n));
    for (size_t i = 0; i < derived->n; i++) {
        struct buf name = {0};
        printable_put(&name, derived->names[i]);
        column_list_make(list, name.data ? name.data : "", NULL,
                         CELL_NUMBER | COLUMN_ALL_DIGITS | COLUMN_PLACE(DERIVED_PLACE));
        list->failed |= name.failed;
        buf_fini(&name);
    }
}

void derived_put_row(const struct derived *derived, size_t row, struct table *table)
{
    if (derived->n)
        table_put_flag(table, true);
    for (size_t i = 0; i < derived->n; i++)
        table_put_number(table, value_at(derived, row, i));
}

/* --- what nodes are called --- */

enum frame_kind node_kind(const struct scope *scope)
{
    if (!model_is_procedure(scope))
        return scope->kind == SCOPE_LOOP ? FRAME_LOOP : FRAME_LINE;
    if (scope->role == ROLE_VARIABLE)
        return FRAME_VARIABLE;
    if (scope->role != ROLE_NONE)
        return FRAME_GROUP;
    return scope->kind == SCOPE_INLINED ? FRAME_INLINED : FRAME_FUNCTION;
}

void node_name(const struct model *model, uint32_t scope, struct buf *name)
{
    const struct scope *of = &model->scopes[scope];
    const char *file = model_text(model, model_file_of(model, scope)), *text = model_text(model, of->name);
    name->len_bytes = 0;
    if (model_is_procedure(of))
        buf_append(name, text, strlen(text));
    else
        hpctoolkit_place_name(node_kind(of), *file ? file : "<unknown file>", of->line, name);
}
