/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of leaks as comma-separated values: one row for each allocation path. */
#include "analysis/report/leaks.h"
#include "export/csv-text.h"
#include "export/exporter-list.h"

#define FRAMES_MAX 1024

/* "main (a.c:12) < f (a.c:30)": each calls the one before it. */
static void put_path(const struct leaks *leaks, const struct leak_row *row, struct buf *out)
{
    static struct leak_frame frames[FRAMES_MAX];
    const struct model *model = leaks->report.model;
    struct buf text = {0};
    size_t n = leaks_path(leaks, row, frames, FRAMES_MAX);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&text, "%s%s", i ? " < " : "", model_text(model, frames[i].function));
        if (frames[i].line)
            buf_printf(&text, " (%s:%u)", model_text(model, frames[i].file), frames[i].line);
    }
    csv_put_text(out, text.data ? text.data : "");
    buf_fini(&text);
}

static void put_row(const struct leaks *leaks, const struct leak_row *leak, struct buf *out)
{
    const struct report_row *row = leak->row;
    const struct variable *variable = row->variable;
    const uint64_t words[] = {leak->n_live,
                              leak->live_bytes,
                              variable->n_blocks,
                              variable->size_bytes,
                              variable->n_blocks_freed,
                              variable->size_freed_bytes,
                              variable->n_blocks_marked,
                              variable->size_marked_bytes};
    csv_put_text(out, row->name);
    buf_printf(out, ",%s,", row->class);
    csv_put_text(out, row->site);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        buf_printf(out, ",%llu", (unsigned long long)words[i]);
    if (leaks->has_use)
        buf_printf(out, ",%.15g,%.6f,", row->samples, row->share);
    else
        buf_printf(out, ",,,");
    put_path(leaks, leak, out);
    buf_append(out, "\n", 1);
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct leaks leaks;
    int code = leaks_make(job->model, job->metric, job->at_mark, job->with_unused, &leaks, err);
    if (code != 0)
        return code;
    buf_printf(out, "variable,class,alloc_site,live_blocks,live_bytes,allocated_blocks,allocated_bytes,freed_blocks,"
                    "freed_bytes,marked_blocks,marked_bytes,samples,share,path\n");
    for (size_t i = 0; i < leaks.n_rows && (job->top == 0 || i < job->top); i++)
        put_row(&leaks, &leaks.rows[i], out);
    leaks_fini(&leaks);
    return 0;
}

const struct exporter export_leaks_csv = {"leaks", "csv", write_csv};
