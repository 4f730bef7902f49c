/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables by region for a terminal. */
#include <stdio.h>
#include <string.h>

#include "analysis/report/leaks.h"
#include "export/exporter-list.h"
#include "export/text-cells.h"

static void put_row(const struct export_job *job, const struct region_row *row, struct buf *out)
{
    const struct report_row *of = row->row;
    buf_printf(out, "%5.1f %% ", row->share);
    text_bar(out, job, row->share, 8);
    buf_printf(out, "  ");
    text_cell(out, job, of ? of->name : "<not data-centric>", 26, false);
    buf_append(out, " ", 1);
    text_cell(out, job, of ? of->class : model_class_name(CLASS_UNATTRIBUTED), 14, false);
    if (of && strcmp(of->site, of->name) != 0)
        text_cut(out, job, of->site, job->columns - 60);
    while (out->len_bytes && out->data[out->len_bytes - 1] == ' ')
        out->data[--out->len_bytes] = 0;
    buf_append(out, "\n", 1);
}

static void put_region(const struct export_job *job, const struct region *region, struct buf *out)
{
    double rest = 0;
    size_t n = job->top ? job->top : region->n_rows;
    buf_append(out, "\n", 1);
    text_style(out, job, TEXT_BOLD);
    buf_printf(out, "%5.1f %%           ", region->share);
    text_cut(out, job, *region->name ? region->name : "outside of all regions", job->columns - 19);
    text_style(out, job, TEXT_PLAIN);
    buf_append(out, "\n", 1);
    for (size_t i = 0; i < region->n_rows; i++)
        if (i < n)
            put_row(job, &region->rows[i], out);
        else
            rest += region->rows[i].share;
    if (n < region->n_rows)
        buf_printf(out, "%5.1f %%           %zu more (--top 0 shows all)\n", rest, region->n_rows - n);
}

static int write_text(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct region_report regions;
    char text[160];
    int code = report_make(job->model, job->metric, false, job->with_paths, &report, err);
    if (code != 0)
        return code;
    code = regions_make(&report, &regions, err);
    if (code == 0) {
        (void)snprintf(text, sizeof text, "%.0f of %.64s, by region", report.total_samples,
                       job->model->metrics[job->metric].name);
        text_labelled(out, job, "samples", text);
        for (size_t i = 0; i < regions.n_regions; i++)
            put_region(job, &regions.regions[i], out);
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_text = {"regions", "text", write_text};
