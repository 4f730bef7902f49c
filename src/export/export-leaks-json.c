/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of leaks as JSON. */
#include "analysis/report/leaks.h"
#include "export/exporter-list.h"
#include "fmt/json.h"

#define FRAMES_MAX 1024

static void put_sum(struct buf *out, const char *key, const struct leak_sum *sum)
{
    json_put_key(out, key, 0);
    buf_printf(out, "{\"blocks\": ");
    json_put_word(out, sum->n_blocks);
    json_put_word_at(out, "bytes", sum->bytes);
    buf_append(out, "}", 1);
}

static void put_path(const struct leaks *leaks, const struct leak_row *row, struct buf *out)
{
    static struct leak_frame frames[FRAMES_MAX];
    const struct model *model = leaks->report.model;
    size_t n = leaks_path(leaks, row, frames, FRAMES_MAX);
    json_put_key(out, "path", 0);
    buf_append(out, "[", 1);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, i ? ", {\"function\": " : "{\"function\": ");
        json_put_text(out, model_text(model, frames[i].function));
        json_put_text_at(out, "file", model_text(model, frames[i].file));
        json_put_word_at(out, "line", frames[i].line);
        buf_append(out, "}", 1);
    }
    buf_append(out, "]", 1);
}

static void put_row(const struct leaks *leaks, const struct leak_row *leak, struct buf *out)
{
    const struct report_row *row = leak->row;
    const struct variable *variable = row->variable;
    buf_printf(out, "{\"variable\": ");
    json_put_text(out, row->name);
    json_put_text_at(out, "class", row->class);
    json_put_text_at(out, "alloc_site", row->site);
    json_put_word_at(out, "live_blocks", leak->n_live);
    json_put_word_at(out, "live_bytes", leak->live_bytes);
    json_put_word_at(out, "allocated_blocks", variable->n_blocks);
    json_put_word_at(out, "allocated_bytes", variable->size_bytes);
    json_put_word_at(out, "freed_blocks", variable->n_blocks_freed);
    json_put_word_at(out, "freed_bytes", variable->size_freed_bytes);
    json_put_word_at(out, "marked_blocks", variable->n_blocks_marked);
    json_put_word_at(out, "marked_bytes", variable->size_marked_bytes);
    if (leaks->has_use) {
        json_put_double_at(out, "samples", row->samples);
        json_put_double_at(out, "share", row->share);
    }
    put_path(leaks, leak, out);
    buf_append(out, "}", 1);
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct leaks leaks;
    const struct model *model = job->model;
    int code = leaks_make(model, job->metric, job->at_mark, job->with_unused, &leaks, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, model->program);
    json_put_text_at(out, "moment", job->at_mark ? "mark" : "end");
    json_put_word_at(out, "min_bytes", model->min_bytes);
    json_put_word_at(out, "sample_bytes", model->sample_bytes);
    json_put_word_at(out, "start_ns", model->start_ns);
    json_put_word_at(out, "mark_ns", model->mark_ns);
    json_put_word_at(out, "n_killed", model->n_killed);
    put_sum(out, "allocated", &leaks.allocated);
    put_sum(out, "freed", &leaks.freed);
    put_sum(out, "live_at_end", &leaks.live);
    put_sum(out, "live_at_mark", &leaks.marked);
    json_put_text_at(out, "metric", leaks.has_use ? model->metrics[job->metric].name : NULL);
    if (leaks.has_use) {
        json_put_double_at(out, "live_share", leaks.share);
        put_sum(out, "live_without_samples", &leaks.unused);
    }
    buf_printf(out, ",\n\"paths\": [");
    for (size_t i = 0; i < leaks.n_rows && (job->top == 0 || i < job->top); i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_row(&leaks, &leaks.rows[i], out);
    }
    buf_printf(out, "]}\n");
    leaks_fini(&leaks);
    return 0;
}

const struct exporter export_leaks_json = {"leaks", "json", write_json};
