/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports of functions and of lines, as text, CSV and JSON: what each costs, and which data it costs that on. */
#include "analysis/report/code-table.h"

#include "base/path.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define DATA_SHOWN 3
#define DATA_SHARE_MIN 5 /* percent of the row, below which data is not shown */
#define NAME_WIDTH 30
#define POSITION_WIDTH 20

/* The name of the variable that a row's data is in. */
static const char *data_name(const struct code_table *table, const struct code_data *data)
{
    return model_text(table->model, table->model->variables[data->variable].name);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "62 % table, 20 % keys": of the row's own value. */
static void put_data(const struct code_table *table, const struct code_row *row, struct buf *text)
{
    for (size_t i = 0; i < row->n_data && i < DATA_SHOWN; i++) {
        double share = percent(row->data[i].value, row->own);
        if (share >= DATA_SHARE_MIN)
            buf_printf(text, "%s%.0f %% %s", i ? ", " : "", share < 100 ? share : 100, data_name(table, &row->data[i]));
    }
}

static void put_text_row(const struct code_table *table, const struct export_job *job, enum code_kind kind,
                         const struct code_row *row, struct buf *out)
{
    const char *file = path_last(model_text(table->model, row->file));
    struct buf name = {0}, position = {0}, data = {0};
    text_function(&name, model_text(table->model, row->function));
    if (row->line)
        buf_printf(&position, "%s:%u", file, row->line);
    else
        buf_printf(&position, "%s", *file == '<' ? path_last(model_text(table->model, row->module)) : file);
    put_data(table, row, &data);
    buf_printf(out, "%5.1f %%  ", percent(row->own, table->total));
    if (kind == CODE_FUNCTION)
        buf_printf(out, "%5.1f %%  ", percent(row->inclusive, table->total));
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, kind == CODE_FUNCTION ? name.data : position.data,
              kind == CODE_FUNCTION ? NAME_WIDTH : POSITION_WIDTH, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  ");
    text_cell(out, job, kind == CODE_FUNCTION ? position.data : name.data,
              kind == CODE_FUNCTION ? POSITION_WIDTH : NAME_WIDTH, false);
    size_t used = NAME_WIDTH + POSITION_WIDTH + (kind == CODE_FUNCTION ? 22 : 13);
    buf_printf(out, "  ");
    text_cut(out, job, data.data ? data.data : "", job->columns > used + 2 ? job->columns - used - 2 : 0);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
    buf_fini(&name);
    buf_fini(&position);
    buf_fini(&data);
}

static size_t n_shown(const struct code_table *table, const struct export_job *job)
{
    return job->top && job->top < table->n_rows ? job->top : table->n_rows;
}

static int write_text(const struct export_job *job, enum code_kind kind, struct buf *out, struct error *err)
{
    struct code_table table;
    const struct model *model = job->model;
    int code = code_table_make(model, job->metric, kind, &table, err);
    if (code != 0)
        return code;
    size_t n = n_shown(&table, job);
    double rest = 0;
    text_labelled(out, job, "program", model->command ? model->command : model->program ? model->program : "?");
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    text_style(out, job, TEXT_BOLD);
    if (kind == CODE_FUNCTION)
        buf_printf(out, "\n    own      all  %-*s  %-*s  on data\n", NAME_WIDTH, "function", POSITION_WIDTH,
                   "begins at");
    else
        buf_printf(out, "\n    own  %-*s  %-*s  on data\n", POSITION_WIDTH, "line", NAME_WIDTH, "in");
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < n; i++)
        put_text_row(&table, job, kind, &table.rows[i], out);
    for (size_t i = n; i < table.n_rows; i++)
        rest += table.rows[i].own;
    if (n < table.n_rows)
        buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", percent(rest, table.total), table.n_rows - n);
    code_table_fini(&table);
    return 0;
}

static int write_csv(const struct export_job *job, enum code_kind kind, struct buf *out, struct error *err)
{
    struct code_table table;
    int code = code_table_make(job->model, job->metric, kind, &table, err);
    if (code != 0)
        return code;
    buf_printf(out, "function,file,line,module,own,own_share,inclusive,inclusive_share,data\n");
    for (size_t i = 0; i < n_shown(&table, job); i++) {
        const struct code_row *row = &table.rows[i];
        struct buf data = {0};
        for (size_t k = 0; k < row->n_data; k++)
            buf_printf(&data, "%s%s %.15g", k ? "; " : "", data_name(&table, &row->data[k]), row->data[k].value);
        csv_put_text(out, model_text(job->model, row->function));
        buf_append(out, ",", 1);
        csv_put_text(out, model_text(job->model, row->file));
        buf_printf(out, ",%u,", row->line);
        csv_put_text(out, model_text(job->model, row->module));
        buf_printf(out, ",%.15g,%.6f,%.15g,%.6f,", row->own, percent(row->own, table.total), row->inclusive,
                   percent(row->inclusive, table.total));
        csv_put_text(out, data.data ? data.data : "");
        buf_append(out, "\n", 1);
        buf_fini(&data);
    }
    code_table_fini(&table);
    return 0;
}

static int write_json(const struct export_job *job, enum code_kind kind, struct buf *out, struct error *err)
{
    struct code_table table;
    int code = code_table_make(job->model, job->metric, kind, &table, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", table.total);
    buf_printf(out, ",\n\"%s\": [", kind == CODE_FUNCTION ? "functions" : "lines");
    for (size_t i = 0; i < n_shown(&table, job); i++) {
        const struct code_row *row = &table.rows[i];
        buf_printf(out, i ? ",\n{\"function\": " : "\n{\"function\": ");
        json_put_text(out, model_text(job->model, row->function));
        json_put_text_at(out, "file", model_text(job->model, row->file));
        json_put_word_at(out, "line", row->line);
        json_put_text_at(out, "module", model_text(job->model, row->module));
        json_put_double_at(out, "own", row->own);
        json_put_double_at(out, "inclusive", row->inclusive);
        buf_printf(out, ", \"data\": [");
        for (size_t k = 0; k < row->n_data; k++) {
            buf_printf(out, k ? ", {\"variable\": " : "{\"variable\": ");
            json_put_text(out, data_name(&table, &row->data[k]));
            json_put_double_at(out, "value", row->data[k].value);
            buf_append(out, "}", 1);
        }
        buf_printf(out, "]}");
    }
    buf_printf(out, "]}\n");
    code_table_fini(&table);
    return 0;
}

static int functions_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_text(job, CODE_FUNCTION, out, err);
}

static int functions_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_csv(job, CODE_FUNCTION, out, err);
}

static int functions_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_json(job, CODE_FUNCTION, out, err);
}

static int lines_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_text(job, CODE_LINE, out, err);
}

static int lines_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_csv(job, CODE_LINE, out, err);
}

static int lines_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_json(job, CODE_LINE, out, err);
}

const struct exporter export_functions_text = {"functions", "text", functions_text};
const struct exporter export_functions_csv = {"functions", "csv", functions_csv};
const struct exporter export_functions_json = {"functions", "json", functions_json};
const struct exporter export_lines_text = {"lines", "text", lines_text};
const struct exporter export_lines_csv = {"lines", "csv", lines_csv};
const struct exporter export_lines_json = {"lines", "json", lines_json};
