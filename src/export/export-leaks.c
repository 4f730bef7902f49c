/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of leaks: for a terminal, as CSV and as JSON. On a terminal of 100 columns: what is live, what that word
 * means here, then the figures and functions of each allocation path. */
#include "analysis/report/leaks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "answer/answer.h"
#include "export/vars-table.h"
#include "export/text-cells.h"
#include "fmt/json.h"
#include "table/table.h"

#define FRAMES_MAX 16

static void put_sum(struct buf *text, const struct leak_sum *sum)
{
    char size[16];
    text_size(sum->bytes, size);
    buf_printf(text, "%llu block%s, %s", (unsigned long long)sum->n_blocks, sum->n_blocks == 1 ? "" : "s",
               sum->bytes ? size : "0 B");
}

/* The paths that are shown: the first ones, if they have the least part of what is live; later ones have less. */
static size_t n_shown(const struct leaks *leaks, const struct export_job *job)
{
    double all = (double)(leaks->is_at_mark ? leaks->marked.bytes : leaks->live.bytes);
    size_t n = 0;
    while (n < leaks->n_rows && job_shows(job, all > 0 ? 100 * (double)leaks->rows[n].live_bytes / all : 0, n))
        n++;
    return n;
}

static void put_moment(const struct leaks *leaks, struct buf *text)
{
    const struct model *model = leaks->report.model;
    if (leaks->is_at_mark && model->mark_ns > model->start_ns)
        buf_printf(text, "at the mark, %.1f s after the start: ", (double)(model->mark_ns - model->start_ns) / 1e9);
    else
        buf_printf(text, leaks->is_at_mark ? "at the mark: " : "at exit: ");
}

static void put_head(const struct leaks *leaks, const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    struct buf text = {0};
    text_program(out, job);
    put_moment(leaks, &text);
    put_sum(&text, leaks->is_at_mark ? &leaks->marked : &leaks->live);
    buf_printf(&text, "; allocated in all: ");
    put_sum(&text, &leaks->allocated);
    text_labelled(out, job, "live", text.data);
    buf_fini(&text);
    if (leaks->has_use) {
        buf_printf(&text,
                   "%.1f %% of %.0f samples of %s fell on allocation paths with live blocks; never accessed by a "
                   "sample: ",
                   leaks->share, leaks->report.total_samples, model->metrics[job->metric].name);
        put_sum(&text, &leaks->unused);
    } else {
        buf_printf(&text, "not measured (add an event with data addresses, such as datacentric)");
    }
    text_labelled(out, job, "use", text.data);
    buf_fini(&text);
}

/* Explains what the figures leave out. */
static void put_notes(const struct leaks *leaks, const struct export_job *job, struct buf *out)
{
    const struct model *model = job->model;
    char text[320];
    text_labelled(out, job, "note",
                  leaks->is_at_mark
                      ? "Live: allocated and not freed when the mark was made."
                      : "Live: allocated and not freed when the process ended. Nothing is known of what still points "
                        "to a block: memory that statics, caches or pools keep on purpose counts, too.");
    if (leaks->has_use)
        text_labelled(out, job, "note", "Samples are those of all blocks of a path, freed ones included.");
    if (model->sample_bytes)
        (void)snprintf(text, sizeof text,
                       "Blocks below %llu bytes are estimates from a sample, one for every %llu bytes on average.",
                       (unsigned long long)model->min_bytes, (unsigned long long)model->sample_bytes);
    else
        (void)snprintf(text, sizeof text,
                       "Blocks below %llu bytes are not among them (DATACENTRIC_MIN_BYTES; hpcrun -ck SAMPLE_BYTES=N "
                       "estimates them).",
                       (unsigned long long)model->min_bytes);
    if (model->min_bytes > 1)
        text_labelled(out, job, "note", text);
    (void)snprintf(text, sizeof text,
                   "%u of %zu threads belong to processes that did not end by themselves: their blocks are "
                   "those that were live then.",
                   model->n_killed, model->n_threads);
    if (model->n_killed)
        text_labelled(out, job, "note", text);
    for (size_t i = 0; i < model->n_notes; i++)
        if (leaks_is_of_blocks(model->notes[i]))
            text_labelled(out, job, "note", model->notes[i]);
}

static void put_path(const struct leaks *leaks, const struct export_job *job, const struct leak_row *row,
                     struct buf *out)
{
    struct leak_frame frames[LEAK_FRAMES_MAX];
    struct buf text = {0};
    size_t n = leaks_path(&leaks->report, row->row, frames, job->with_paths ? LEAK_FRAMES_MAX : FRAMES_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *function = model_text(job->model, frames[i].function);
        buf_printf(&text, "%s%.*s", i ? " < " : "", (int)strcspn(function, "("), function);
        if (frames[i].line)
            buf_printf(&text, " %s:%u", path_last(model_text(job->model, frames[i].file)), frames[i].line);
    }
    if (n) {
        buf_printf(out, "%*s", TEXT_LABEL_WIDTH + 2, "");
        text_style(out, job, TEXT_DIM);
        if (job->with_paths) {
            text_wrapped(out, job, text.data ? text.data : "", TEXT_LABEL_WIDTH + 2, TEXT_LABEL_WIDTH + 2);
        } else {
            text_cut(out, job, text.data ? text.data : "", job->columns - TEXT_LABEL_WIDTH - 2);
            buf_append(out, "\n", 1);
        }
        text_style(out, job, TEXT_PLAIN);
    }
    buf_fini(&text);
}

static void put_row(const struct leaks *leaks, const struct export_job *job, const struct leak_row *leak,
                    struct buf *out)
{
    const struct report_row *row = leak->row;
    char live[16], allocated[16], use[24] = "-";
    text_size(leak->live_bytes, live);
    text_size(row->size_bytes, allocated);
    if (leaks->has_use)
        (void)snprintf(use, sizeof use, row->value > 0 ? "%.1f %%" : "none", row->share);
    text_cell(out, job, live, 10, true);
    buf_printf(out, " %8llu", (unsigned long long)leak->n_live);
    text_cell(out, job, allocated, 12, true);
    buf_printf(out, " %8llu", (unsigned long long)row->n_blocks);
    text_cell(out, job, use, 10, true);
    buf_printf(out, "  ");
    text_style(out, job, TEXT_BOLD);
    text_cell(out, job, row->name, 22, false);
    text_style(out, job, TEXT_PLAIN);
    buf_printf(out, " %s", row->class);
    buf_append(out, "\n", 1);
    put_path(leaks, job, leak, out);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct leaks leaks;
    int code = leaks_make(job->model, job->metric, job->at_mark, job->with_unused, &leaks, err);
    if (code != 0)
        return code;
    struct leak_sum rest = {0};
    size_t n = n_shown(&leaks, job);
    put_head(&leaks, job, out);
    put_notes(&leaks, job, out);
    if (n) {
        text_style(out, job, TEXT_BOLD);
        buf_printf(out, "\n      live   blocks   allocated   blocks   samples  variable               class");
        text_style(out, job, TEXT_PLAIN);
        buf_append(out, "\n", 1);
    }
    for (size_t i = 0; i < n; i++)
        put_row(&leaks, job, &leaks.rows[i], out);
    for (size_t i = n; i < leaks.n_rows; i++) {
        rest.n_blocks += leaks.rows[i].n_live;
        rest.bytes += leaks.rows[i].live_bytes;
    }
    if (n < leaks.n_rows) {
        buf_printf(out, "%zu more paths: ", leaks.n_rows - n);
        put_sum(out, &rest);
        buf_printf(out, " (--top 0 shows all)\n");
    }
    leaks_fini(&leaks);
    return 0;
}

/* --- paths of allocations --- */

static const struct column frame_columns[] = {
    PLACE_COLUMNS,
};

size_t alloc_path_of(const struct report *report, const struct report_row *row, struct leak_frame *frames)
{
    return model_is_block(row->variable) ? leaks_path(report, row, frames, LEAK_FRAMES_MAX) : 0;
}

void alloc_path_put_row(const struct report *report, const struct report_row *row, struct table *table)
{
    const struct model *model = report->model;
    struct leak_frame frames[LEAK_FRAMES_MAX];
    struct buf text = {0};
    size_t n = alloc_path_of(report, row, frames);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s%s", i ? " < " : "", model_text(model, frames[i].function));
        if (frames[i].line)
            buf_printf(&text, " (%s:%u)", model_text(model, frames[i].file), frames[i].line);
    }
    table_put_made(table, &text);
    struct table *path = table_put_table(table, COLUMNS(frame_columns));
    for (size_t i = 0; i < n; i++)
        table_put_place(path, model_text(model, frames[i].function), model_text(model, frames[i].file), frames[i].line);
}

/* --- CSV and JSON --- */

static const struct column leak_columns[] = {
    VARIABLE_COLUMNS,
    {"live_blocks", NULL, CELL_WORD},
    {"live_bytes", NULL, CELL_WORD},
    {"allocated_blocks", NULL, CELL_WORD},
    {"allocated_bytes", NULL, CELL_WORD},
    {"freed_blocks", NULL, CELL_WORD},
    {"freed_bytes", NULL, CELL_WORD},
    {"marked_blocks", NULL, CELL_WORD},
    {"marked_bytes", NULL, CELL_WORD},
    {"samples", NULL, CELL_NUMBER | COLUMN_LEFT_OUT | COLUMN_ALL_DIGITS},
    {"share", NULL, CELL_PERCENT | COLUMN_LEFT_OUT | COLUMN_6_DIGITS},
    {"path", NULL, CELL_TEXT | COLUMN_NO_JSON},
    {"path", NULL, CELL_TABLE},
};

static void fill_row(struct table *table, const struct leaks *leaks, const struct leak_row *leak)
{
    const struct report_row *row = leak->row;
    const struct variable *variable = row->variable;
    table_put_variable(table, row->name, row->class, row->site);
    table_put_word(table, leak->n_live);
    table_put_word(table, leak->live_bytes);
    table_put_word(table, variable->n_blocks);
    table_put_word(table, variable->size_bytes);
    table_put_word(table, variable->n_blocks_freed);
    table_put_word(table, variable->size_freed_bytes);
    table_put_word(table, variable->n_blocks_marked);
    table_put_word(table, variable->size_marked_bytes);
    table_put_number(table, leaks->has_use ? row->samples : NAN);
    table_put_number(table, leaks->has_use ? row->share : NAN);
    alloc_path_put_row(&leaks->report, row, table);
}

/* A sum of blocks: an object of two numbers. */
#define SUM_COLUMNS(name, flags)                                                                                       \
    {name, NULL, CELL_OBJECT | COLUMN_MEMBERS(2) | (flags)}, {"blocks", NULL, CELL_WORD},                              \
    {                                                                                                                  \
        "bytes", NULL, CELL_WORD                                                                                       \
    }

static const struct column head_columns[] = {
    {"moment", NULL, CELL_TEXT},
    {"min_bytes", NULL, CELL_WORD},
    {"sample_bytes", NULL, CELL_WORD},
    {"start_ns", NULL, CELL_WORD},
    {"mark_ns", NULL, CELL_WORD},
    {"n_killed", NULL, CELL_WORD},
    SUM_COLUMNS("allocated", 0),
    SUM_COLUMNS("freed", 0),
    SUM_COLUMNS("live_at_end", 0),
    SUM_COLUMNS("live_at_mark", 0),
    {"live_share", NULL, CELL_PERCENT | COLUMN_LEFT_OUT},
    SUM_COLUMNS("live_without_samples", COLUMN_LEFT_OUT),
    {"notes", NULL, CELL_TABLE | COLUMN_BARE},
};

static const struct column note_columns[] = {{"note", NULL, CELL_TEXT}};

static void fill_sum(struct table *head, const struct leak_sum *sum, bool is_known)
{
    if (is_known)
        table_put_flag(head, true);
    else
        table_put_absent(head);
    table_put_word_if(head, is_known, sum->n_blocks);
    table_put_word_if(head, is_known, sum->bytes);
}

static void fill_head(struct table *head, const struct leaks *leaks, const struct export_job *job)
{
    const struct model *model = job->model;
    table_put_text(head, leaks->is_at_mark ? "mark" : "end");
    table_put_word(head, model->min_bytes);
    table_put_word(head, model->sample_bytes);
    table_put_word_if(head, model->start_ns > 0, model->start_ns);
    table_put_word_if(head, model->mark_ns > 0, model->mark_ns);
    table_put_word(head, model->n_killed);
    fill_sum(head, &leaks->allocated, true);
    fill_sum(head, &leaks->freed, true);
    fill_sum(head, &leaks->live, true);
    fill_sum(head, &leaks->marked, true);
    table_put_number(head, leaks->has_use ? leaks->share : NAN);
    fill_sum(head, &leaks->unused, leaks->has_use);
    struct table *notes = table_put_table(head, COLUMNS(note_columns));
    for (size_t i = 0; i < model->n_notes; i++)
        if (leaks_is_of_blocks(model->notes[i]))
            table_put_text(notes, model->notes[i]);
}

static int make_answer(const struct export_job *job, struct answer *answer, struct error *err)
{
    struct leaks leaks;
    int code = leaks_make(job->model, job->metric, job->at_mark, job->with_unused, &leaks, err);
    if (code != 0)
        return code;
    size_t n = n_shown(&leaks, job);
    answer_begin(answer, "paths", COLUMNS(leak_columns));
    answer->rows.n_more = leaks.n_rows - n;
    if (!leaks.has_use)
        answer->metric = NULL;
    fill_head(answer_set_head(answer, COLUMNS(head_columns)), &leaks, job);
    for (size_t i = 0; i < n; i++)
        fill_row(&answer->rows, &leaks, &leaks.rows[i]);
    leaks_fini(&leaks);
    return 0;
}

static const struct ask_note notes[] = {
    {ASK_ALL, "Also list allocation paths without live blocks."},
    {ASK_PATHS, "Complete paths in text; CSV and JSON always have them."},
    {ASK_MIN, "Part of the bytes that are live."},
    {0, NULL},
};

const struct report_kind answer_leaks = {
    .name = "leaks",
    .operands = "DB",
    .summary = "what was still allocated when the program ended",
    .manual =
        "leaks prints what was still allocated when the program ended, by allocation path: live blocks and bytes, "
        "all that was allocated there, and the share of the samples that fell on it, or that none did. Live means "
        "allocated and not freed; pointers to a block do not matter. Any measurement that recorded allocations "
        "will do.",
    .example = "leaks --top 0 hpctoolkit-app-database",
    .options = ASK_ROWS | ASK(ALL) | ASK(PATHS) | ASK(MARK),
    .no_by = "a block belongs to its process, whichever thread or function would free it",
    .notes = notes,
    .forms = {.make = make_answer, .text = write_text},
};
