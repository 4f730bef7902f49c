/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables by region as comma-separated values (RFC 4180): one row for a region and variable. */
#include "analysis/report/leaks.h"
#include "export/csv-text.h"
#include "export/exporter-list.h"

static void put_field(struct buf *out, const char *text)
{
    csv_put_text(out, text);
    buf_printf(out, ",");
}

static void put_row(const struct export_job *job, const struct region *region, const struct region_row *row,
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
                put_row(job, region, &region->rows[k], out);
        }
        regions_fini(&regions);
    }
    report_fini(&report);
    return code;
}

const struct exporter export_regions_csv = {"regions", "csv", write_csv};
