/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables as comma-separated values (RFC 4180). The first seven columns never change. */
#include <math.h>

#include "export/prepared.h"
#include "export/text-cells.h"
#include "export/vars-table.h"

static void put_lines(const struct report *report, const struct report_row *row, struct buf *out)
{
    struct buf text = {0};
    for (size_t i = 0; i < row->n_lines && i < 3; i++) {
        const struct report_line *line = &row->lines[i];
        buf_printf(&text, "%s%s:%u %.2f%%", i ? "; " : "", model_text(report->model, line->file), line->line,
                   100 * line->value / row->value);
    }
    csv_put_text(out, text.data ? text.data : "");
    buf_fini(&text);
}

static bool same_loop(const struct loop_lines *a, const struct loop_lines *b)
{
    return a->first == b->first && a->file == b->file;
}

/* The loops around the lines, ordered by their hottest lines, each with the share of all lines in it. */
static void put_loops(const struct report *report, const struct report_row *row, struct buf *out)
{
    struct buf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < row->n_lines && n < 3; i++) {
        const struct loop_lines *loop = &row->lines[i].loop;
        double value = 0;
        size_t before = 0;
        while (before < i && !same_loop(&row->lines[before].loop, loop))
            before++;
        if (!loop->first || before < i)
            continue;
        for (size_t k = i; k < row->n_lines; k++)
            value += same_loop(&row->lines[k].loop, loop) ? row->lines[k].value : 0;
        buf_printf(&text, "%s%s:", n++ ? "; " : "", model_text(report->model, loop->file));
        text_lines(&text, loop->first, loop->last);
        buf_printf(&text, " %.2f%%", 100 * value / row->value);
    }
    csv_put_text(out, text.data ? text.data : "");
    buf_fini(&text);
}

/* After all other columns: samples and value of each metric, then the derived ones. */
static void put_hardware_titles(const struct model *model, struct buf *out)
{
    for (size_t m = 0; m < model->n_metrics; m++) {
        struct buf title = {0};
        if (model->metrics[m].hidden)
            continue;
        buf_printf(&title, "samples:%s", model->metrics[m].name);
        buf_append(out, ",", 1);
        csv_put_text(out, title.data ? title.data : "");
        buf_fini(&title);
        buf_printf(&title, "value:%s", model->metrics[m].name);
        buf_append(out, ",", 1);
        csv_put_text(out, title.data ? title.data : "");
        buf_fini(&title);
    }
    for (size_t i = 0; metrics_row(i); i++)
        buf_printf(out, ",%s", metrics_row(i)->name);
}

static void put_hardware(const struct report *report, const struct report_row *row, struct buf *out)
{
    for (size_t m = 0; m < report->model->n_metrics; m++)
        if (!report->model->metrics[m].hidden)
            buf_printf(out, ",%.15g,%.15g", report_samples(report, row, m), report_value(report, row, m));
    for (size_t i = 0; metrics_row(i); i++) {
        buf_append(out, ",", 1);
        if (row->derived && !isnan(row->derived[i]))
            buf_printf(out, "%.6f", row->derived[i]);
    }
}

static const char *const statistics_titles[] = {"threads", "processes"};

static void put_statistics_titles(struct buf *out)
{
    for (size_t i = 0; i < 2; i++)
        buf_printf(out, ",%s_with_value,%s_mean,%s_min,%s_max,%s_stddev,%s_cov", statistics_titles[i],
                   statistics_titles[i], statistics_titles[i], statistics_titles[i], statistics_titles[i],
                   statistics_titles[i]);
}

static int put_statistics(const struct export_job *job, const struct report *report, const struct report_row *row,
                          struct buf *out, struct error *err)
{
    struct row_statistics statistics[2];
    int code = thread_values_statistics(job->values, report, row, &statistics[0], &statistics[1], err);
    for (size_t i = 0; code == 0 && i < 2; i++)
        if (statistics[i].n == 0)
            buf_printf(out, ",,,,,,");
        else
            buf_printf(out, ",%zu,%.15g,%.15g,%.15g,%.15g,%.6f", statistics[i].n_with_value, statistics[i].mean,
                       statistics[i].least, statistics[i].most, statistics[i].deviation, statistics[i].variation);
    return code;
}

static void put_causes(const struct report_row *row, struct buf *out)
{
    const struct cause_sum *sum = &row->causes;
    enum report_cause aside = report_aside(row);
    buf_printf(out, ",%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%s,%.6f", sum->memory, sum->memory_low, sum->memory_high,
               sum->execution, sum->unverified, sum->memory_least, sum->memory_most,
               aside == REPORT_CAUSES ? "" : report_cause_name(aside), sum->first_touch);
}

/* Who touched it first, if that is known. */
static void put_touches(const struct first_touches *touches, const struct report_row *row, struct buf *out)
{
    struct buf text = {0};
    bool is_known = first_touch_put_sentence(touches, row, &text);
    buf_append(out, ",", 1);
    csv_put_text(out, is_known && text.data ? text.data : "");
    buf_fini(&text);
}

/* number: of the row in the report; SIZE_MAX: in none. */
static int put_row(const struct export_job *job, const struct first_touches *touches, const struct report_row *row,
                   const struct derived *derived, size_t number, struct buf *out, struct error *err)
{
    int code = 0;
    const struct report *report = touches->report;
    const struct variable *variable = row->variable;
    csv_put_text(out, row->name);
    buf_printf(out, ",%s,", row->class);
    csv_put_text(out, row->site);
    buf_printf(out, ",%llu,%llu,%.15g,%.6f", (unsigned long long)row->size_bytes, (unsigned long long)row->n_blocks,
               row->samples, row->share);
    buf_printf(out, ",%.15g,", row->value);
    csv_put_text(out, variable ? model_text(report->model, variable->file) : "");
    buf_printf(out, ",%u,", variable ? variable->line : 0);
    csv_put_text(out, variable ? model_text(report->model, variable->function) : "");
    buf_append(out, ",", 1);
    csv_put_text(out, variable ? model_text(report->model, variable->module) : "");
    buf_printf(out, ",%llu,%llu,%zu,", (unsigned long long)(variable ? variable->max_block_bytes : 0),
               (unsigned long long)(variable ? variable->n_inexact : 0), row->n_paths);
    put_lines(report, row, out);
    buf_append(out, ",", 1);
    put_loops(report, row, out);
    for (uint32_t i = 0; i < report->model->n_numa_nodes; i++)
        buf_printf(out, ",%llu", (unsigned long long)(row->places ? row->places[i] : 0));
    if (touches->is_measured)
        put_touches(touches, row, out);
    if (report->has_causes)
        put_causes(row, out);
    if (job->values)
        code = put_statistics(job, report, row, out, err);
    if (report->has_hardware)
        put_hardware(report, row, out);
    if (job->with_paths) {
        buf_append(out, ",", 1);
        csv_put_alloc_path(report, row, out);
    }
    derived_put_csv(derived, number, out);
    buf_append(out, "\n", 1);
    return code;
}

/* Time in the kernel, for which there are no samples: it has a value but no share. */
static int put_kernel(const struct export_job *job, const struct first_touches *touches, const struct derived *derived,
                      struct buf *out, struct error *err)
{
    const struct report_row row = {.name = SPECIAL_KERNEL,
                                   .class = "kernel",
                                   .site = (char *)(uintptr_t) "system calls and page faults",
                                   .value = 1e6 * touches->report->system_s};
    return report_kernel_percent(touches->report) > 0 ? put_row(job, touches, &row, derived, SIZE_MAX, out, err) : 0;
}

/* A row for each field of each variable; samples without a known place are a row without field. */
static void put_fields(const struct report_row *row, struct buf *out)
{
    for (size_t i = 0; i < (row->n_fields ? row->n_fields : 1); i++) {
        const struct report_field *field = row->n_fields ? &row->fields[i] : NULL;
        csv_put_text(out, row->name);
        buf_printf(out, ",%s,", row->class);
        csv_put_text(out, row->site);
        buf_append(out, ",", 1);
        csv_put_text(out, field ? field->name : "");
        buf_printf(out, ",%.15g,%.6f,", field ? field->samples : row->samples, field ? field->share : row->share);
        csv_put_text(out, field ? field->type : "");
        buf_printf(out, ",%lld,%llu,%s,", (long long)(field ? field->offset_bytes : 0),
                   (unsigned long long)(field ? field->size_bytes : 0),
                   field && !(field->flags & FIELD_UNTYPED) ? "yes" : "no");
        csv_put_text(out, row->type ? row->type : "");
        buf_printf(out, ",%llu,%s\n", (unsigned long long)row->element_bytes,
                   row->type && *row->type && row->type_source ? row->type_source : "");
    }
}

static void write_fields(const struct report *report, size_t n_rows, struct buf *out)
{
    buf_printf(out, "variable,class,alloc_site,field,samples,share,type,offset_bytes,size_bytes,typed,element_type,"
                    "element_bytes,type_source\n");
    for (size_t i = 0; i < n_rows; i++)
        put_fields(&report->rows[i], out);
}

int vars_write_csv(const struct export_job *job, struct buf *out, struct error *err)
{
    struct prepared prepared;
    const struct report *report = &prepared.report;
    unsigned parts = PREPARED_ORDER | PREPARED_CHOICE;
    int code =
        prepared_make(job, job->with_fields ? parts : parts | PREPARED_TOUCHES | PREPARED_DERIVED, &prepared, err);
    if (code != 0)
        return code;
    if (job->with_fields) {
        write_fields(report, prepared.n_rows, out);
        prepared_fini(&prepared);
        return 0;
    }
    buf_printf(out, "variable,class,alloc_site,size_bytes,n_blocks,samples,share,value,file,line,function,module,"
                    "max_block_bytes,inexact_samples,n_paths,top_lines,top_loops");
    for (uint32_t i = 0; i < job->model->n_numa_nodes; i++)
        buf_printf(out, ",node%u_samples", i);
    if (prepared.touches.is_measured)
        buf_printf(out, ",first_touch");
    if (report->has_causes)
        buf_printf(out, ",memory_share,memory_low,memory_high,execution_share,unverified_share,memory_least,"
                        "memory_most,aside,first_touch_share");
    if (job->values)
        put_statistics_titles(out);
    if (report->has_hardware)
        put_hardware_titles(job->model, out);
    buf_printf(out, job->with_paths ? ",path" : "");
    derived_put_csv_titles(&prepared.derived, out);
    buf_append(out, "\n", 1);
    for (size_t i = 0; code == 0 && i < prepared.n_rows; i++)
        code = put_row(job, &prepared.touches, &report->rows[i], &prepared.derived, i, out, err);
    if (code == 0)
        code = put_kernel(job, &prepared.touches, &prepared.derived, out, err);
    prepared_fini(&prepared);
    return code;
}
