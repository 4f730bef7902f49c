/* SPDX-License-Identifier: BSD-3-Clause */
/* The sources of a file or of a function with what each line costs and which variables it touches, as text, CSV and
 * JSON. One list of lines serves all forms. */
#include "export/annotation.h"

#include "base/path.h"
#include "answer/answer.h"
#include "export/text-cells.h"

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
        buf_printf(out, "%5.1f %%  %5.1f %%  ", percent_of(row->own, table->total),
                   percent_of(row->inclusive, table->total));
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
    text_end_line(out);
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
    buf_printf(&text, "%s", *file ? file : "not known");
    if (!annotation->source.n)
        buf_printf(&text, ": %s, so that only its lines' numbers follow",
                   model->code ? "it cannot be read here" : "the database has no copy of it");
    text_labelled(out, job, "file", text.data ? text.data : "");
    buf_fini(&text);
    buf_printf(&text, "%.1f %% of %s", percent_of(own_of_all(annotation), total), model->metrics[job->metric].name);
    if (annotation->n_names == 1)
        buf_printf(&text, ", %.1f %% with what it calls", percent_of(annotation->inclusive, total));
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
    buf_printf(out, "\n    own      all    line  %-*s  %s", (int)(job->columns - job->columns / 4 - 29),
               annotation.source.n ? "source" : "file", code_data_title(job->model));
    text_end_line(out);
    text_style(out, job, TEXT_PLAIN);
    for (size_t i = 0; i < annotation.n_shown; i++) {
        const struct shown_line *shown = &annotation.shown[i];
        if (shown->line && (i ? shown[-1].line : 0) + 1 != shown->line)
            buf_printf(out, "%24s\n", "...");
        put_shown(&annotation, shown, out);
    }
    if (annotation.n_left)
        buf_printf(out, "%5.1f %%  %zu more lines with samples (--%s 0 shows all)\n",
                   percent_of(annotation.rest, annotation.table.total), annotation.n_left, job->top ? "top" : "min");
    annotation_fini(&annotation);
    return 0;
}

/* --- CSV and JSON --- */

static const struct column name_columns[] = {{"function", NULL, CELL_TEXT}};

static const struct column head_columns[] = {
    {"total", NULL, CELL_NUMBER},    {"file", NULL, CELL_TEXT},
    {"has_source", NULL, CELL_FLAG}, {"functions", NULL, CELL_TABLE | COLUMN_BARE},
    {"own", NULL, CELL_NUMBER},
};

static const struct column place_columns[] = {{"file", NULL, CELL_TEXT}, {"line", NULL, CELL_COUNT}};
static const struct column source_columns[] = {{"source", NULL, CELL_TEXT}};

static void fill_head(struct table *head, const struct annotation *annotation)
{
    const struct model *model = annotation->job->model;
    table_put_number(head, annotation->table.total);
    table_put_name(head, model_text(model, annotation->file));
    table_put_flag(head, annotation->source.n > 0);
    struct table *names = table_put_table(head, COLUMNS(name_columns));
    for (size_t i = 0; i < annotation->n_names; i++)
        table_put_text(names, model_text(model, annotation->names[i]));
    table_put_number(head, own_of_all(annotation));
}

/* A line that may have no samples. */
static void fill_line(struct table *lines, const struct annotation *annotation, const struct shown_line *shown)
{
    const struct code_row none = {.file = annotation->file, .line = shown->line};
    const struct code_row *row = shown->row ? shown->row : &none;
    struct buf source = {0};
    table_put_name(lines, model_text(annotation->job->model, row->file));
    table_put_if(lines, row->line > 0, row->line);
    code_fill_costs(&annotation->table, row, lines);
    code_fill_data(&annotation->table, row, lines);
    source_lines_put(&annotation->source, shown->line, &source);
    table_put_made(lines, &source);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct annotation annotation;
    int code = annotation_make(&annotation, job, job->least, 0, err);
    if (code != 0)
        return code;
    column_list_add(&answer->columns, COLUMNS(place_columns));
    column_list_add(&answer->columns, COLUMNS(code_cost_columns));
    column_list_add(&answer->columns, COLUMNS(source_columns));
    answer_begin(answer, "lines", NULL, 0);
    answer->rows.n_more = annotation.n_left;
    fill_head(answer_set_head(answer, COLUMNS(head_columns)), &annotation);
    for (size_t i = 0; i < annotation.n_shown; i++)
        fill_line(&answer->rows, &annotation, &annotation.shown[i]);
    annotation_fini(&annotation);
    return 0;
}

static const struct ask_note notes[] = {
    {ASK_ALL, "All lines."},
    NOTE_BY_EXTREMES,
    {ASK_MIN, "Default in text: 0.5."},
    {0, NULL},
};

const struct report_kind answer_annotate = {
    .name = "annotate",
    .operands = "FILE|FUNCTION DB",
    .about = about_code,
    .summary = "the source of a file or function, or its machine code, with what each line cost",
    .manual =
        "annotate prints the source of a file, or of a function, as the database has a copy of it, with what each "
        "line cost: the lines with samples and a few around them. A file goes by the end of its path, a function "
        "by its name without parameters; FILE:FUNCTION tells apart those of the same name. With --instructions it "
        "prints the machine code that was made from these lines, with the source between, as perf annotate does.",
    .example = "annotate --instructions solve hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(ALL) | ASK(BY) | ASK(INSTRUCTIONS) | ASK(PROFILES),
    .options_by = ASK_ROWS | ASK(ALL) | ASK(BY),
    .by = BY_THREAD | BY(FUNCTION),
    .notes = notes,
    .shows_all = true,
    .forms = {.make = make_answer, .text = annotate_text},
    .by_forms = &by_forms,
    .instructions_forms = &instructions_forms,
};
