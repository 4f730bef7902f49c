/* SPDX-License-Identifier: BSD-3-Clause */
/* The sources of a file or of a function with what each line costs and which variables it touches, as text, CSV and
 * JSON. One list of lines serves all forms. */
#include "export/annotation.h"

#include "base/path.h"
#include "answer/answer.h"
#include "export/text-cells.h"
#include "fmt/json.h"

#define CONTEXT_LINES 3
#define HOT_SHARE 0.5 /* percent of everything, from which a line is shown as text */

static void put_shown(const struct annotation *annotation, const struct shown_line *shown, struct buf *out)
{
    const struct export_job *job = annotation->job;
    const struct code_table *table = &annotation->table;
    const struct code_row *row = shown->row;
    size_t of_data = job->columns / 4, of_source = job->columns - of_data - 29;
    size_t without_data = of_source + of_data + 2;
    struct buf text = {0}, data = {0};
    if (row)
        buf_printf(out, "%5.1f %%  %5.1f %%  ", code_percent(row->own, table->total),
                   code_percent(row->inclusive, table->total));
    else
        buf_printf(out, "%18s", "");
    if (shown->line)
        source_lines_put(&annotation->source, shown->line, &text);
    else if (row)
        buf_printf(&text, "%s",
                   row->file == annotation->file && row->line && annotation->source.n
                       ? "(behind the end of the copy)"
                       : path_last(model_text(job->model, row->file)));
    if (row)
        code_put_data(table, row, &data);
    if (shown->line || row->line)
        buf_printf(out, "%6u  ", shown->line ? shown->line : row->line);
    else
        buf_printf(out, "     ?  ");
    text_style(out, job, row ? TEXT_PLAIN : TEXT_DIM);
    text_cell(out, job, text.data ? text.data : "", data.len_bytes ? of_source : without_data, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, "  ");
    text_cut(out, job, data.data ? data.data : "", of_data);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
    buf_fini(&text);
    buf_fini(&data);
}

static double own_of_all(const struct annotation *annotation)
{
    double own = 0;
    for (size_t i = 0; i < annotation->table.n_rows; i++)
        own += annotation->table.rows[i].own;
    return own;
}

static void put_annotation_head(const struct annotation *annotation, struct buf *out)
{
    const struct export_job *job = annotation->job;
    const struct model *model = job->model;
    const char *file = model_text(model, annotation->file);
    double total = annotation->table.total;
    struct buf text = {0};
    text_program(out, job);
    annotation_put_functions(annotation, &text);
    if (text.len_bytes)
        text_labelled(out, job, annotation->n_names == 1 ? "function" : "functions", text.data);
    buf_fini(&text);
    buf_printf(&text, "%s%s", *file ? file : "not known",
               annotation->source.n ? "" : ": the database has no copy of it, so that only its lines' numbers follow");
    text_labelled(out, job, "file", text.data ? text.data : "");
    buf_fini(&text);
    buf_printf(&text, "%.1f %% of %s", code_percent(own_of_all(annotation), total), model->metrics[job->metric].name);
    if (annotation->n_names == 1)
        buf_printf(&text, ", %.1f %% with what it calls", code_percent(annotation->inclusive, total));
    text_labelled(out, job, "share", text.data ? text.data : "");
    buf_fini(&text);
}

static int annotate_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least < 0 ? HOT_SHARE : job->least, CONTEXT_LINES, err);
    if (code != 0)
        return code;
    put_annotation_head(&annotation, out);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "\n    own      all    line  %-*s  on data\n", (int)(job->columns - job->columns / 4 - 29),
               annotation.source.n ? "source" : "file");
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        if (shown->line && (i ? shown[-1].line : 0) + 1 != shown->line)
            buf_printf(out, "%24s\n", "...");
        put_shown(&annotation, shown, out);
    }
    if (annotation.n_left)
        buf_printf(out, "%5.1f %%  %zu more lines with samples (--%s 0 shows all)\n",
                   code_percent(annotation.rest, annotation.table.total), annotation.n_left, job->top ? "top" : "min");
    annotation_fini(&annotation);
    return 0;
}

/* What a line costs that may have no samples. */
static struct code_row costs_of(const struct annotation *annotation, const struct shown_line *shown)
{
    return shown->row ? *shown->row : (struct code_row){.file = annotation->file, .line = shown->line};
}

static int annotate_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least, 0, err);
    if (code != 0)
        return code;
    double total = annotation.table.total;
    buf_printf(out, "file,line,own,own_share,inclusive,inclusive_share,data,source\n");
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        struct code_row row = costs_of(&annotation, shown);
        struct buf source = {0};
        csv_put_text(out, model_text(job->model, row.file));
        buf_printf(out, ",%u,%.15g,%.6f,%.15g,%.6f,", row.line, row.own, code_percent(row.own, total), row.inclusive,
                   code_percent(row.inclusive, total));
        code_put_csv_data(&annotation.table, &row, out);
        buf_append(out, ",", 1);
        source_lines_put(&annotation.source, shown->line, &source);
        csv_put_text(out, source.data ? source.data : "");
        buf_append(out, "\n", 1);
        buf_fini(&source);
    }
    annotation_fini(&annotation);
    return 0;
}

static int annotate_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least, 0, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total", annotation.table.total);
    json_put_text_at(out, "file", model_text(job->model, annotation.file));
    buf_printf(out, ", \"has_source\": %s, \"functions\": [", annotation.source.n ? "true" : "false");
    for (size_t i = 0; i < annotation.n_names; i++) {
        buf_printf(out, "%s", i ? ", " : "");
        json_put_text(out, model_text(job->model, annotation.names[i]));
    }
    buf_append(out, "]", 1);
    json_put_double_at(out, "own", own_of_all(&annotation));
    buf_printf(out, ",\n\"lines\": [");
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        struct code_row row = costs_of(&annotation, shown);
        struct buf source = {0};
        buf_printf(out, i ? ",\n{\"file\": " : "\n{\"file\": ");
        json_put_text(out, model_text(job->model, row.file));
        json_put_word_at(out, "line", row.line);
        json_put_double_at(out, "own", row.own);
        json_put_double_at(out, "inclusive", row.inclusive);
        code_put_json_data(&annotation.table, &row, out);
        source_lines_put(&annotation.source, shown->line, &source);
        json_put_text_at(out, "source", source.data ? source.data : "");
        buf_append(out, "}", 1);
        buf_fini(&source);
    }
    buf_printf(out, "]}\n");
    annotation_fini(&annotation);
    return 0;
}

static const struct ask_note notes[] = {
    {ASK_ALL, "All lines."},
    {ASK_BY,
     "In text, threads, processes, ranks and places show the extremes where there are many; CSV and JSON have all "
     "that is not zero."},
    {ASK_MIN, "Default in text: 0.5."},
    {0, NULL},
};

const struct report_kind answer_annotate = {
    .name = "annotate",
    .operands = "FILE|FUNCTION DB",
    .summary = "the source of a file or function, or its machine code, with what each line cost",
    .manual =
        "annotate prints the source of a file, or of a function, as the database has a copy of it, with what each "
        "line cost: the lines with samples and a few around them. A file goes by the end of its path, a function "
        "by its name without parameters; FILE:FUNCTION tells apart those of the same name. With --instructions it "
        "prints the machine code that was made from these lines, with the source between, as perf annotate does.",
    .example = "annotate --instructions solve hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(ALL) | ASK(BY) | ASK(INSTRUCTIONS),
    .options_by = ASK_ROWS | ASK(ALL) | ASK(BY),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = notes,
    .shows_all = true,
    .forms = {.text = annotate_text, .csv = annotate_csv, .json = annotate_json},
    .by_forms = &by_forms,
    .instructions_forms = &instructions_forms,
};
