/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables by region as JSON. */
#include "analysis/report/leaks.h"
#include "export/exporter-list.h"
#include "fmt/json.h"

static void put_row(const struct export_job *job, const struct region_row *row, struct buf *out)
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

static void put_region(const struct export_job *job, const struct region *region, struct buf *out)
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
        put_row(job, &region->rows[i], out);
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
            put_region(job, &regions.regions[i], out);
        }
        buf_printf(out, "]}\n");
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_json = {"regions", "json", write_json};
