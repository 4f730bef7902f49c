/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables by region: for a terminal, as CSV and as JSON. */
#include "analysis/report/leaks.h"

#include <stdio.h>
#include <string.h>

#include "export/exporters.h"
#include "export/text-cells.h"
#include "fmt/json.h"

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

/* --- CSV --- */

/* The table of variables by region as comma-separated values (RFC 4180): one row for a region and variable. */

static void put_field(struct buf *out, const char *text)
{
    csv_put_text(out, text);
    buf_printf(out, ",");
}

static void put_csv_row(const struct export_job *job, const struct region *region, const struct region_row *row,
                        struct buf *out)
{
    const struct report_row *of = row->row;
    put_field(out, region->name);
    put_field(out, of ? of->name : "<not data-centric>");
    put_field(out, of ? of->class : model_class_name(CLASS_UNATTRIBUTED));
    put_field(out, of ? of->site : "");
    buf_printf(out, "%.15g,%.6f,%.6f,%.15g\n", model_samples(job->model, job->metric, row->value), row->share,
               100 * row->value / region->value, row->value);
}

static int write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct region_report regions;
    int code = report_make(job->model, job->metric, false, job->with_paths, &report, err);
    if (code != 0)
        return code;
    code = regions_make(&report, &regions, err);
    if (code == 0) {
        buf_printf(out, "region,variable,class,alloc_site,samples,share,share_of_region,value\n");
        for (size_t i = 0; i < regions.n_regions; i++) {
            const struct region *region = &regions.regions[i];
            for (size_t k = 0; k < region->n_rows && (job->top == 0 || k < job->top); k++)
                put_csv_row(job, region, &region->rows[k], out);
        }
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_csv = {"regions", "csv", write_csv};

/* --- JSON --- */

/* The table of variables by region as JSON. */

static void put_json_row(const struct export_job *job, const struct region_row *row, struct buf *out)
{
    const struct report_row *of = row->row;
    buf_printf(out, "{\"variable\": ");
    json_put_text(out, of ? of->name : "<not data-centric>");
    json_put_text_at(out, "class", of ? of->class : model_class_name(CLASS_UNATTRIBUTED));
    json_put_text_at(out, "alloc_site", of ? of->site : "");
    json_put_double_at(out, "samples", model_samples(job->model, job->metric, row->value));
    json_put_double_at(out, "share", row->share);
    json_put_double_at(out, "value", row->value);
    buf_printf(out, "}");
}

static void put_json_region(const struct export_job *job, const struct region *region, struct buf *out)
{
    buf_printf(out, "{\"region\": ");
    json_put_text(out, region->name);
    json_put_double_at(out, "samples", model_samples(job->model, job->metric, region->value));
    json_put_double_at(out, "share", region->share);
    json_put_double_at(out, "value", region->value);
    json_put_key(out, "variables", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < region->n_rows && (job->top == 0 || i < job->top); i++) {
        buf_printf(out, i ? ",\n" : "\n");
        put_json_row(job, &region->rows[i], out);
    }
    buf_printf(out, "]}");
}

static int write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct report report;
    struct region_report regions;
    int code = report_make(job->model, job->metric, false, job->with_paths, &report, err);
    if (code != 0)
        return code;
    code = regions_make(&report, &regions, err);
    if (code == 0) {
        buf_printf(out, "{\"program\": ");
        json_put_text(out, job->model->program);
        json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
        json_put_double_at(out, "total_value", report.total_value);
        json_put_double_at(out, "total_samples", report.total_samples);
        buf_printf(out, ",\n\"regions\": [");
        for (size_t i = 0; i < regions.n_regions; i++) {
            buf_printf(out, i ? ",\n" : "\n");
            put_json_region(job, &regions.regions[i], out);
        }
        buf_printf(out, "]}\n");
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_json = {"regions", "json", write_json};
