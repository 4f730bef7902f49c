/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports of functions and of lines, as text, CSV and JSON: what each costs, and which data it costs that on. */
#include "analysis/report/code-table.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "export/annotation.h"
#include "export/derived.h"
#include "answer/answer.h"
#include "answer/item.h"
#include "export/text-cells.h"
#include "table/table.h"

#define NAME_PART 30 /* percent of the terminal's width */
#define POSITION_PART 20
#define NAME_LEAST 12 /* characters */
#define POSITION_LEAST 10

static size_t name_width(const struct export_job *job)
{
    size_t width = job->columns * NAME_PART / 100;
    return width < NAME_LEAST ? NAME_LEAST : width;
}

static size_t position_width(const struct export_job *job)
{
    size_t width = job->columns * POSITION_PART / 100;
    return width < POSITION_LEAST ? POSITION_LEAST : width;
}

/* Cuts " [module]" off the end of a name where the module stands beside it. */
static void drop_module(struct buf *name, const char *module)
{
    size_t len = strlen(module) + strlen(" []");
    if (!name->data || name->len_bytes <= len)
        return;
    char *end = name->data + name->len_bytes - len;
    if (strncmp(end, " [", 2) == 0 && strncmp(end + 2, module, len - 3) == 0 && end[len - 1] == ']') {
        *end = 0;
        name->len_bytes -= len;
    }
}

/* Leaves out rows below the least part, with and without what they call, and all but the first ones. Returns how many;
 * *rest receives their own values. */
static size_t leave_out(struct code_table *table, const struct export_job *job, double *rest)
{
    size_t n = 0, n_all = table->n_rows;
    *rest = 0;
    for (size_t i = 0; i < n_all; i++) {
        struct code_row *row = &table->rows[i];
        double most = row->own > row->inclusive ? row->own : row->inclusive;
        if (job_shows(job, percent_of(most, table->total), n)) {
            table->rows[n++] = *row;
            continue;
        }
        *rest += row->own;
        free(row->data);
    }
    table->n_rows = n;
    return n_all - n;
}

/* The values of all metrics in the rows of a table. */
struct code_values {
    size_t n_rows;
    double *own, *inclusive; /* [n_metrics][n_rows] */
};

static double metric_of_row(const void *context, size_t row, size_t metric, bool is_inclusive)
{
    const struct code_values *values = context;
    return (is_inclusive ? values->inclusive : values->own)[metric * values->n_rows + row];
}

/* Computes the derived columns of the rows. */
static int derive_rows(const struct export_job *job, enum code_kind kind, const struct code_table *table,
                       struct derived *derived, struct error *err)
{
    size_t n = table->n_rows, n_metrics = job->n_derived ? job->model->n_metrics : 0;
    struct code_values values = {n, calloc(n * n_metrics + 1, sizeof(double)),
                                 calloc(n * n_metrics + 1, sizeof(double))};
    int code = values.own && values.inclusive ? 0 : error_memory(err);
    for (size_t i = 0; code == 0 && i < n_metrics; i++)
        if (derived_needs(job, i))
            code = code_table_values(table, kind, i, &values.own[i * n], &values.inclusive[i * n], err);
    if (code == 0)
        code = derived_make(job, n, metric_of_row, &values, derived, err);
    free(values.own);
    free(values.inclusive);
    return code;
}

/* Rows of functions or lines, with what is derived for them. */
struct code_report {
    struct code_table table;
    struct derived derived;
    size_t n_left;
    double rest;          /* own value of the rows that are left out */
    unsigned char *twins; /* of functions: item_twins */
    uint32_t *like;       /* [n_rows] 1 + another row that text shows alike, 0: none; NULL: not asked for */
};

static void code_report_fini(struct code_report *report)
{
    code_table_fini(&report->table);
    derived_fini(&report->derived);
    free(report->twins);
    free(report->like);
}

/* Makes the rows that a job asks for. */
static int code_report_make(const struct export_job *job, enum code_kind kind, struct code_report *report,
                            struct error *err)
{
    *report = (struct code_report){0};
    int code = code_table_make(job->model, job->metric, kind, NULL, &report->table, err);
    if (code != 0)
        return code;
    if (kind == CODE_FUNCTION && !(report->twins = item_twins(&report->table, NULL))) {
        code_report_fini(report);
        return error_memory(err);
    }
    report->n_left = leave_out(&report->table, job, &report->rest);
    code = derive_rows(job, kind, &report->table, &report->derived, err);
    if (code != 0)
        code_report_fini(report);
    return code;
}

/* The name of a row, and where it is, as text shows them. */
static void put_labels(const struct code_report *report, size_t number, struct buf *name, struct buf *position)
{
    const struct code_table *table = &report->table;
    const struct code_row *row = &table->rows[number];
    const char *file = path_last(model_text(table->model, row->file));
    const char *module = path_last(model_text(table->model, row->module));
    text_function(name, model_text(table->model, row->function));
    if (row->line)
        buf_printf(position, "%s:%u", file, row->line);
    else
        buf_printf(position, "%s", *file == '<' ? module : file);
    if (!row->line && *file == '<')
        drop_module(name, module);
}

/* Notes for each row another one with the same labels; false when out of memory. */
static bool find_likes(struct code_report *report)
{
    struct strtab labels = {0};
    size_t n = report->table.n_rows;
    uint32_t *first = calloc(n + 1, sizeof *first); /* [labels] row + 1 */
    bool ok = first && (report->like = calloc(n + 1, sizeof *report->like));
    for (size_t i = 0; ok && i < n; i++) {
        struct buf label = {0}, position = {0};
        put_labels(report, i, &label, &position);
        buf_printf(&label, "\n%s", position.data ? position.data : "");
        int64_t known = label.failed ? -1 : strtab_intern(&labels, label.data);
        ok = known >= 0;
        if (ok && first[known]) {
            report->like[i] = first[known];
            report->like[first[known] - 1] = (uint32_t)i + 1;
        } else if (ok) {
            first[known] = (uint32_t)i + 1;
        }
        buf_fini(&label);
        buf_fini(&position);
    }
    strtab_fini(&labels);
    free(first);
    return ok;
}

/* A line below a row for what tells it from another one that looks the same. */
static void put_difference(const struct code_report *report, const struct export_job *job, size_t number,
                           struct buf *out)
{
    const struct model *model = report->table.model;
    const struct code_row *row = &report->table.rows[number], *other = &report->table.rows[report->like[number] - 1];
    struct buf text = {0};
    if (row->function != other->function)
        buf_printf(&text, "%s", model_text(model, row->function));
    if (row->file != other->file)
        buf_printf(&text, "%s%s", text.len_bytes ? ", " : "", model_text(model, row->file));
    if (row->module != other->module)
        buf_printf(&text, "%sin %s", text.len_bytes ? ", " : "", model_text(model, row->module));
    if (text.len_bytes) {
        buf_printf(out, "%18s", "");
        text_style(out, job, TEXT_DIM);
        text_wrapped(out, job, text.data, 18, 18);
        text_style(out, job, TEXT_PLAIN);
    }
    buf_fini(&text);
}

static void put_text_row(const struct code_report *report, const struct export_job *job, enum code_kind kind,
                         size_t number, struct buf *out)
{
    const struct code_table *table = &report->table;
    const struct code_row *row = &table->rows[number];
    size_t of_name = name_width(job), of_position = position_width(job), used = of_name + of_position + 22;
    used += derived_width(&report->derived);
    struct buf name = {0}, position = {0}, data = {0};
    put_labels(report, number, &name, &position);
    code_put_data(table, row, &data);
    buf_printf(out, "%5.1f %%  %5.1f %%  ", percent_of(row->own, table->total),
               percent_of(row->inclusive, table->total));
    derived_put_cells(&report->derived, number, out);
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, kind == CODE_FUNCTION ? name.data : position.data,
              kind == CODE_FUNCTION ? of_name : of_position, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  ");
    text_cell(out, job, kind == CODE_FUNCTION ? position.data : name.data,
              kind == CODE_FUNCTION ? of_position : of_name, false);
    buf_printf(out, "  ");
    text_cut(out, job, data.data ? data.data : "", job->columns > used + 2 ? job->columns - used - 2 : 0);
    text_end_line(out);
    buf_fini(&name);
    buf_fini(&position);
    buf_fini(&data);
    if (report->like[number])
        put_difference(report, job, number, out);
}

static enum code_kind kind_of(const struct export_job *job)
{
    return strcmp(job->report, "functions") == 0 ? CODE_FUNCTION : CODE_LINE;
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    enum code_kind kind = kind_of(job);
    struct code_report report;
    const struct model *model = job->model;
    int code = code_report_make(job, kind, &report, err);
    if (code == 0 && !find_likes(&report)) {
        code_report_fini(&report);
        code = error_memory(err);
    }
    if (code != 0)
        return code;
    text_program(out, job);
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "\n    own      all  ");
    derived_put_titles(&report.derived, job, out);
    if (kind == CODE_FUNCTION)
        buf_printf(out, "%-*s  %-*s  ", (int)name_width(job), "function", (int)position_width(job), "begins at");
    else
        buf_printf(out, "%-*s  %-*s  ", (int)position_width(job), "line", (int)name_width(job), "in");
    buf_printf(out, "%s", code_data_title(model));
    text_end_line(out);
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < report.table.n_rows; i++)
        put_text_row(&report, job, kind, i, out);
    if (report.n_left)
        buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", percent_of(report.rest, report.table.total),
                   report.n_left);
    code_report_fini(&report);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column head_columns[] = {
    {"total", NULL, CELL_NUMBER},
};

static const struct column place_columns[] = {
    PLACE_COLUMNS,
    {"module", NULL, CELL_TEXT},
};

static void fill_row(struct table *rows, const struct code_report *report, size_t number)
{
    const struct code_row *row = &report->table.rows[number];
    const struct model *model = report->table.model;
    table_put_place(rows, model_text(model, row->function), model_text(model, row->file), row->line);
    table_put_name(rows, model_text(model, row->module));
    code_fill_costs(&report->table, row, rows);
    code_fill_data(&report->table, row, rows);
    derived_put_row(&report->derived, number, rows);
    item_put_code_cell(model, report->twins, row, rows);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct code_report report;
    int code = code_report_make(job, kind_of(job), &report, err);
    if (code != 0)
        return code;
    column_list_add(&answer->columns, COLUMNS(place_columns));
    column_list_add(&answer->columns, COLUMNS(code_cost_columns));
    derived_add_columns(&report.derived, &answer->columns);
    column_list_add(&answer->columns, &(struct column)ITEM_COLUMN, 1);
    answer_begin(answer, job->report, NULL, 0);
    answer->rows.n_more = report.n_left;
    table_put_number(answer_set_head(answer, COLUMNS(head_columns)), report.table.total);
    for (size_t i = 0; i < report.table.n_rows; i++)
        fill_row(&answer->rows, &report, i);
    code_report_fini(&report);
    return 0;
}

static const struct ask_note by_notes[] = {
    NOTE_BY_EXTREMES,
    {0, NULL},
};

#define CODE_MANUAL                                                                                                    \
    "by itself and with the functions that it calls, and which variables it spent that on. Recursion counts once, "    \
    "and "                                                                                                             \
    "an inlined function is a function."

const struct report_kind answer_functions = {
    .name = "functions",
    .operands = "DB",
    .summary = "what each function cost, and which variables it spent that on",
    .manual = "functions prints what each function cost, " CODE_MANUAL,
    .example = "functions hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(BY) | ASK(DERIVE) | ASK(PROFILES),
    .options_by = ASK_ROWS | ASK(BY) | ASK(PROFILES),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = by_notes,
    .forms = {.make = make_answer, .text = write_text},
    .by_forms = &by_forms,
};

const struct report_kind answer_lines = {
    .name = "lines",
    .operands = "DB",
    .summary = "what each source line cost, and which variables it spent that on",
    .manual = "lines prints what each source line cost, " CODE_MANUAL,
    .example = "lines --top 20 hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(BY) | ASK(DERIVE) | ASK(PROFILES),
    .options_by = ASK_ROWS | ASK(BY) | ASK(PROFILES),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = by_notes,
    .forms = {.make = make_answer, .text = write_text},
    .by_forms = &by_forms,
};
