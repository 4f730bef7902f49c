/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports of functions and of lines, as text, CSV and JSON: what each costs, and which data it costs that on. */
#include "analysis/report/places.h"

#include "base/path.h"
#include "export/exporters.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define DATA_SHOWN 3
#define DATA_SHARE_MIN 5 /* percent of the row, below which data is not shown */
#define NAME_WIDTH 30
#define PLACE_WIDTH 20

/* The name of the variable that a row's data is in. */
static const char *data_name(const struct places *places, const struct place_data *data)
{
    return model_text(places->model, places->model->variables[data->variable].name);
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* "62 % table, 20 % keys": of the row's own value. */
static void put_data(const struct places *places, const struct place_row *row, struct buf *text)
{
    for (size_t i = 0; i < row->n_data && i < DATA_SHOWN; i++) {
        double share = percent(row->data[i].value, row->own);
        if (share >= DATA_SHARE_MIN)
            buf_printf(text, "%s%.0f %% %s", i ? ", " : "", share < 100 ? share : 100,
                       data_name(places, &row->data[i]));
    }
}

static void put_text_row(const struct places *places, const struct export_job *job, enum place_kind kind,
                         const struct place_row *row, struct buf *out)
{
    const char *file = path_last(model_text(places->model, row->file));
    struct buf name = {0}, place = {0}, data = {0};
    text_function(&name, model_text(places->model, row->function));
    if (row->line)
        buf_printf(&place, "%s:%u", file, row->line);
    else
        buf_printf(&place, "%s", *file == '<' ? path_last(model_text(places->model, row->module)) : file);
    put_data(places, row, &data);
    buf_printf(out, "%5.1f %%  ", percent(row->own, places->total));
    if (kind == PLACE_FUNCTION)
        buf_printf(out, "%5.1f %%  ", percent(row->inclusive, places->total));
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, kind == PLACE_FUNCTION ? name.data : place.data,
              kind == PLACE_FUNCTION ? NAME_WIDTH : PLACE_WIDTH, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  ");
    text_cell(out, job, kind == PLACE_FUNCTION ? place.data : name.data,
              kind == PLACE_FUNCTION ? PLACE_WIDTH : NAME_WIDTH, false);
    size_t used = NAME_WIDTH + PLACE_WIDTH + (kind == PLACE_FUNCTION ? 22 : 13);
    buf_printf(out, "  ");
    text_cut(out, job, data.data ? data.data : "", job->columns > used + 2 ? job->columns - used - 2 : 0);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
    buf_fini(&name);
    buf_fini(&place);
    buf_fini(&data);
}

static size_t n_shown(const struct places *places, const struct export_job *job)
{
    return job->top && job->top < places->n_rows ? job->top : places->n_rows;
}

static int write_text(const struct export_job *job, enum place_kind kind, struct buf *out, struct error *err)
{
    struct places places;
    const struct model *model = job->model;
    int code = places_make(model, job->metric, kind, &places, err);
    if (code != 0)
        return code;
    size_t n = n_shown(&places, job);
    double rest = 0;
    text_labelled(out, job, "program", model->command ? model->command : model->program ? model->program : "?");
    text_labelled(out, job, "metric", model->metrics[job->metric].name);
    text_style(out, job, TEXT_BOLD);
    if (kind == PLACE_FUNCTION)
        buf_printf(out, "\n    own      all  %-*s  %-*s  on data\n", NAME_WIDTH, "function", PLACE_WIDTH, "begins at");
    else
        buf_printf(out, "\n    own  %-*s  %-*s  on data\n", PLACE_WIDTH, "line", NAME_WIDTH, "in");
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < n; i++)
        put_text_row(&places, job, kind, &places.rows[i], out);
    for (size_t i = n; i < places.n_rows; i++)
        rest += places.rows[i].own;
    if (n < places.n_rows)
        buf_printf(out, "%5.1f %%  %zu more (--top 0 shows all)\n", percent(rest, places.total), places.n_rows - n);
    places_fini(&places);
    return 0;
}

static int write_csv(const struct export_job *job, enum place_kind kind, struct buf *out, struct error *err)
{
    struct places places;
    int code = places_make(job->model, job->metric, kind, &places, err);
    if (code != 0)
        return code;
    buf_printf(out, "function,file,line,module,own,own_share,inclusive,inclusive_share,data\n");
    for (size_t i = 0; i < n_shown(&places, job); i++) {
        const struct place_row *row = &places.rows[i];
        struct buf data = {0};
        for (size_t k = 0; k < row->n_data; k++)
            buf_printf(&data, "%s%s %.15g", k ? "; " : "", data_name(&places, &row->data[k]), row->data[k].value);
        csv_put_text(out, model_text(job->model, row->function));
        buf_append(out, ",", 1);
        csv_put_text(out, model_text(job->model, row->file));
        buf_printf(out, ",%u,", row->line);
        csv_put_text(out, model_text(job->model, row->module));
        buf_printf(out, ",%.15g,%.6f,%.15g,%.6f,", row->own, percent(row->own, places.total), row->inclusive,
                   percent(row->inclusive, places.total));
        csv_put_text(out, data.data ? data.data : "");
        buf_append(out, "\n", 1);
        buf_fini(&data);
    }
    places_fini(&places);
    return 0;
}

static int write_json(const struct export_job *job, enum place_kind kind, struct buf *out, struct error *err)
{
    struct places places;
    int code = places_make(job->model, job->metric, kind, &places, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", places.total);
    buf_printf(out, ",\n\"%s\": [", kind == PLACE_FUNCTION ? "functions" : "lines");
    for (size_t i = 0; i < n_shown(&places, job); i++) {
        const struct place_row *row = &places.rows[i];
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
            json_put_text(out, data_name(&places, &row->data[k]));
            json_put_double_at(out, "value", row->data[k].value);
            buf_append(out, "}", 1);
        }
        buf_printf(out, "]}");
    }
    buf_printf(out, "]}\n");
    places_fini(&places);
    return 0;
}

static int functions_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_text(job, PLACE_FUNCTION, out, err);
}

static int functions_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_csv(job, PLACE_FUNCTION, out, err);
}

static int functions_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_json(job, PLACE_FUNCTION, out, err);
}

static int lines_text(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_text(job, PLACE_LINE, out, err);
}

static int lines_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_csv(job, PLACE_LINE, out, err);
}

static int lines_json(const struct export_job *job, struct buf *out, struct error *err)
{
    return write_json(job, PLACE_LINE, out, err);
}

const struct exporter export_functions_text = {"functions", "text", functions_text};
const struct exporter export_functions_csv = {"functions", "csv", functions_csv};
const struct exporter export_functions_json = {"functions", "json", functions_json};
const struct exporter export_lines_text = {"lines", "text", lines_text};
const struct exporter export_lines_csv = {"lines", "csv", lines_csv};
const struct exporter export_lines_json = {"lines", "json", lines_json};
