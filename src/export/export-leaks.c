/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of leaks for a terminal of 100 columns: what is live, what that word means here, then for each allocation
 * path its figures and its functions. */
#include <stdio.h>
#include <string.h>

#include "analysis/report/leaks.h"
#include "export/exporter-list.h"
#include "export/text-cells.h"

#define FRAMES_MAX 16

static void put_sum(struct buf *text, const struct leak_sum *sum)
{
    char size[16];
    text_size(sum->bytes, size);
    buf_printf(text, "%llu block%s, %s", (unsigned long long)sum->n_blocks, sum->n_blocks == 1 ? "" : "s",
               sum->bytes ? size : "0 B");
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
    text_labelled(out, job, "program", model->command ? model->command : model->program ? model->program : "?");
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

/* What the figures are not. */
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
                   "%u of %zu threads belong to processes that did not end by themselves: theirs is what was live "
                   "then.",
                   model->n_killed, model->n_threads);
    if (model->n_killed)
        text_labelled(out, job, "note", text);
}

static void put_path(const struct leaks *leaks, const struct export_job *job, const struct leak_row *row,
                     struct buf *out)
{
    struct leak_frame frames[FRAMES_MAX];
    struct buf text = {0};
    size_t n = leaks_path(leaks, row, frames, FRAMES_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *function = model_text(job->model, frames[i].function);
        buf_printf(&text, "%s%.*s", i ? " < " : "", (int)strcspn(function, "("), function);
        if (frames[i].line)
            buf_printf(&text, " %s:%u", text_base(model_text(job->model, frames[i].file)), frames[i].line);
    }
    if (n) {
        buf_printf(out, "%*s", TEXT_LABEL_WIDTH + 2, "");
        text_style(out, job, TEXT_DIM);
        text_cut(out, job, text.data ? text.data : "", job->columns - TEXT_LABEL_WIDTH - 2);
        text_style(out, job, TEXT_PLAIN);
        buf_append(out, "\n", 1);
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
    size_t n = job->top && job->top < leaks.n_rows ? job->top : leaks.n_rows;
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

const struct exporter export_leaks_text = {"leaks", "text", write_text};
