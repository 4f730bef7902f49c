/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame as a table, a row for each node: as text, the largest first; as comma-separated values and as JSON with all
 * attributes, in the order of the nodes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/path.h"
#include "export/frames/forms.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define NAME_LEAST 24 /* columns of the terminal: names in fewer are not wrapped */

extern const struct frame_form form_table, form_csv, form_json;

struct shown_column {
    const char *name;
    const double *values; /* [n_nodes] */
    int width;            /* of the text */
};

struct shown_nodes {
    const struct frame_job *job;
    struct shown_column *columns; /* [n_columns] those that are shown */
    size_t n_columns;
    uint32_t *nodes;        /* [n_nodes] the rows */
    size_t n_nodes, n_left; /* n_left: rows that --top does not allow */
    const double *keys;     /* [] by node: what rows are ordered by, the job's column */
    size_t outliers;        /* the text attribute of that name; SIZE_MAX: there is none */
};

/* --- what is in the table --- */

static bool has_value(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            return true;
    return false;
}

/* Whether a column belongs to the table: of those that are not hidden all, or, in a text that many columns would not
 * fit, the job's; or those that the user named, with their pairs. */
static bool is_shown(const struct frame_job *job, bool is_text, size_t column)
{
    bool has_pair = frame_column_pair(job->frame, job->column) != SIZE_MAX;
    if (column == job->column)
        return true;
    if ((job->is_named || is_text) && has_pair && column == frame_column_pair(job->frame, job->column))
        return true;
    for (size_t i = 0; i < job->n_named; i++) {
        size_t named = frame_find_column(job->frame, job->named[i], NULL);
        if (named == column || (named != SIZE_MAX && frame_column_pair(job->frame, named) == column))
            return true;
    }
    /* without a pair they are what an operation made: before, after and change */
    return !job->is_named && !(is_text && has_pair) && !frame_column_is_hidden(job->frame, column);
}

/* Columns without any value are left out of a text. */
static int take_columns(struct shown_nodes *table, bool is_text, struct error *err)
{
    const struct frame_job *job = table->job;
    size_t n = frame_n_columns(job->frame), n_nodes = frame_n_nodes(job->frame);
    table->columns = calloc(n + 1, sizeof *table->columns);
    int code =
        table->columns ? frame_values(job->frame, job->column, &job->view, &table->keys, err) : error_memory(err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        struct shown_column *column = &table->columns[table->n_columns];
        if (!is_shown(job, is_text, i))
            continue;
        column->name = frame_column_name(job->frame, i);
        code = frame_values(job->frame, i, &job->view, &column->values, err);
        if (code == 0 && is_text && i != job->column && !has_value(column->values, n_nodes))
            continue;
        int width = (int)text_width(column->name);
        column->width = width < 11 ? 11 : width;
        table->n_columns++;
    }
    return code;
}

static double size_of(double value)
{
    return isnan(value) ? -1 : fabs(value);
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const uint32_t *x = a, *y = b;
    const struct shown_nodes *table = context;
    double of_x = size_of(table->keys[*x]), of_y = size_of(table->keys[*y]);
    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* Chooses the rows and their order. */
static int take_rows(struct shown_nodes *table, bool is_ordered, struct error *err)
{
    const struct frame_job *job = table->job;
    double total;
    int code = frame_job_total(job, job->column, &total, err);
    size_t n = frame_n_nodes(job->frame);
    table->nodes = malloc((n + 1) * sizeof *table->nodes);
    if (code == 0 && !table->nodes)
        code = error_memory(err);
    if (code != 0)
        return code;
    double least = job->min_percent / 100 * total;
    for (uint32_t i = 0; i < n; i++)
        if (least <= 0 || size_of(table->keys[i]) >= least)
            table->nodes[table->n_nodes++] = i;
    bool is_cut = job->top && job->top < table->n_nodes;
    if (table->n_nodes && (is_ordered || is_cut))
        qsort_r(table->nodes, table->n_nodes, sizeof *table->nodes, compare_rows, table);
    table->n_left = is_cut ? table->n_nodes - job->top : 0;
    table->n_nodes -= table->n_left;
    return 0;
}

static int shown_nodes_make(const struct frame_job *job, bool is_text, struct shown_nodes *table, struct error *err)
{
    *table = (struct shown_nodes){.job = job, .outliers = SIZE_MAX};
    for (size_t i = 0; i < frame_n_attributes(job->frame); i++)
        if (strcmp(frame_attribute_name(job->frame, i), "outliers") == 0 && frame_attribute_is_text(job->frame, i))
            table->outliers = i;
    int code = take_columns(table, is_text, err);
    return code ? code : take_rows(table, is_text, err);
}

static void shown_nodes_fini(struct shown_nodes *table)
{
    free(table->columns);
    free(table->nodes);
}

/* --- text --- */

/* What is known about where a node is. */
static void put_place(const struct frame *frame, uint32_t node, struct buf *out)
{
    const char *file = path_last(frame_file(frame, node)), *module = path_last(frame_module(frame, node));
    enum frame_kind kind = frame_kind(frame, node);
    const char *place = kind == FRAME_LINE || kind == FRAME_LOOP ? "" : *file ? file : module;
    if (!*place || *place == '<' || strcmp(path_last(frame_name(frame, node)), place) == 0)
        return;
    buf_printf(out, "  ");
    printable_put(out, place);
    if (*file && frame_line(frame, node))
        buf_printf(out, ":%u", frame_line(frame, node));
}

/* A row; what does not fit beside its numbers goes into further lines below the name. */
static void put_text_row(const struct shown_nodes *table, const struct export_job *look, uint32_t node, struct buf *out)
{
    const struct frame *frame = table->job->frame;
    const char *name = frame_name(frame, node);
    struct buf text = {0};
    size_t at = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        double value = table->columns[i].values[node];
        if (isnan(value))
            buf_printf(out, "%*s  ", table->columns[i].width, "-");
        else
            buf_printf(out, "%*.6g  ", table->columns[i].width, value);
        at += (size_t)table->columns[i].width + 2;
    }
    printable_put(&text, *name ? name : "?");
    put_place(frame, node, &text);
    const char *outliers = table->outliers == SIZE_MAX ? "" : frame_attribute_text(frame, table->outliers, node);
    if (*outliers) {
        buf_printf(&text, "  most: ");
        printable_put(&text, outliers);
    }
    out->failed |= text.failed;
    if (at + NAME_LEAST <= look->columns) {
        text_wrapped(out, look, text.data ? text.data : "", at, at + 2);
    } else {
        buf_printf(out, "%s\n", text.data ? text.data : "");
    }
    buf_fini(&text);
}

static int write_text(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct shown_nodes table;
    struct export_job look = {.color = job->color, .unicode = job->unicode, .columns = job->columns};
    int code = shown_nodes_make(job, true, &table, err);
    for (size_t i = 0; code == 0 && i < table.n_columns; i++) {
        text_cell(out, &look, table.columns[i].name, (size_t)table.columns[i].width, true);
        buf_printf(out, "  ");
    }
    if (code == 0)
        buf_printf(out, "name\n");
    for (size_t i = 0; code == 0 && i < table.n_nodes; i++)
        put_text_row(&table, &look, table.nodes[i], out);
    if (code == 0 && table.n_left)
        buf_printf(out, "%zu more (--top 0 shows all)\n", table.n_left);
    shown_nodes_fini(&table);
    return code;
}

const struct frame_form form_table = {
    .name = "table", .summary = "a row for each node, the largest first", .write = write_text};

/* --- comma-separated values --- */

static void put_number(struct buf *out, double value)
{
    char text[40];
    if (isnan(value))
        return;
    json_double_text(value, text, sizeof text);
    buf_printf(out, "%s", text);
}

/* The parents of a node, with blanks between them. */
static void put_parents(const struct frame *frame, uint32_t node, const char *between, struct buf *out)
{
    size_t n;
    const uint32_t *parents = frame_parents(frame, node, &n);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%u", i ? between : "", parents[i]);
}

static void put_csv_row(const struct shown_nodes *table, uint32_t node, struct buf *out)
{
    const struct frame *frame = table->job->frame;
    buf_printf(out, "%u,", node);
    put_parents(frame, node, " ", out);
    buf_printf(out, ",%s,", frame_kind_name(frame_kind(frame, node)));
    csv_put_quoted(out, frame_name(frame, node));
    buf_append(out, ",", 1);
    csv_put_quoted(out, frame_file(frame, node));
    buf_printf(out, ",%u,", frame_line(frame, node));
    csv_put_quoted(out, frame_module(frame, node));
    for (size_t i = 0; i < frame_n_attributes(frame); i++) {
        buf_append(out, ",", 1);
        if (frame_attribute_is_text(frame, i))
            csv_put_quoted(out, frame_attribute_text(frame, i, node));
        else
            put_number(out, frame_attribute_number(frame, i, node));
    }
    for (size_t i = 0; i < table->n_columns; i++) {
        buf_append(out, ",", 1);
        put_number(out, table->columns[i].values[node]);
    }
    buf_append(out, "\n", 1);
}

static int write_csv(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct shown_nodes table;
    int code = shown_nodes_make(job, false, &table, err);
    if (code == 0)
        buf_printf(out, "node,parents,kind,name,file,line,module");
    for (size_t i = 0; code == 0 && i < frame_n_attributes(job->frame); i++) {
        buf_append(out, ",", 1);
        csv_put_text(out, frame_attribute_name(job->frame, i));
    }
    for (size_t i = 0; code == 0 && i < table.n_columns; i++) {
        buf_append(out, ",", 1);
        csv_put_text(out, table.columns[i].name);
    }
    if (code == 0)
        buf_append(out, "\n", 1);
    for (size_t i = 0; code == 0 && i < table.n_nodes; i++)
        put_csv_row(&table, table.nodes[i], out);
    shown_nodes_fini(&table);
    return code;
}

const struct frame_form form_csv = {
    .name = "csv", .summary = "comma-separated values, a row for each node", .write = write_csv};

/* --- JSON --- */

static void put_json_number(struct buf *out, double value)
{
    if (isnan(value))
        buf_printf(out, "null");
    else
        json_put_double(out, value);
}

/* A key of an object, which is text whatever the name is. */
static void put_key(struct buf *out, const char *name, bool is_first)
{
    struct buf text = {0};
    printable_put(&text, name);
    json_put_key(out, text.data ? text.data : "", is_first);
    buf_fini(&text);
}

static void put_json_row(const struct shown_nodes *table, uint32_t node, struct buf *out)
{
    const struct frame *frame = table->job->frame;
    buf_printf(out, "{\"node\": %u, \"parents\": [", node);
    put_parents(frame, node, ", ", out);
    buf_printf(out, "]");
    json_put_text_at(out, "kind", frame_kind_name(frame_kind(frame, node)));
    json_put_text_at(out, "name", frame_name(frame, node));
    json_put_text_at(out, "file", frame_file(frame, node));
    json_put_word_at(out, "line", frame_line(frame, node));
    json_put_text_at(out, "module", frame_module(frame, node));
    json_put_key(out, "attributes", 0);
    buf_printf(out, "{");
    for (size_t i = 0; i < frame_n_attributes(frame); i++) {
        put_key(out, frame_attribute_name(frame, i), i == 0);
        if (frame_attribute_is_text(frame, i))
            json_put_text(out, frame_attribute_text(frame, i, node));
        else
            put_json_number(out, frame_attribute_number(frame, i, node));
    }
    buf_printf(out, "}");
    json_put_key(out, "values", 0);
    buf_printf(out, "{");
    for (size_t i = 0; i < table->n_columns; i++) {
        put_key(out, table->columns[i].name, i == 0);
        put_json_number(out, table->columns[i].values[node]);
    }
    buf_printf(out, "}}");
}

static int write_json(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct shown_nodes table;
    int code = shown_nodes_make(job, false, &table, err);
    if (code == 0) {
        buf_printf(out, "{\"column\": ");
        json_put_text(out, frame_column_name(job->frame, job->column));
        json_put_key(out, "nodes", 0);
        buf_printf(out, "[");
        for (size_t i = 0; i < table.n_nodes; i++) {
            buf_printf(out, i ? ",\n" : "\n");
            put_json_row(&table, table.nodes[i], out);
        }
        buf_printf(out, "]}\n");
    }
    shown_nodes_fini(&table);
    return code;
}

const struct frame_form form_json = {.name = "json", .summary = "JSON, an object for each node", .write = write_json};
