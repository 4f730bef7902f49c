/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables as JSON. */
#include <math.h>

#include "export/prepared.h"
#include "export/vars-table.h"
#include "fmt/json.h"

static void put_loop(const struct model *model, const struct loop_lines *loop, struct buf *out)
{
    if (!loop->first) {
        buf_printf(out, "null");
        return;
    }
    buf_printf(out, "{\"file\": ");
    json_put_text(out, model_text(model, loop->file));
    json_put_word_at(out, "line", loop->first);
    json_put_word_at(out, "end_line", loop->last);
    buf_printf(out, "}");
}

static void put_lines(const struct report *report, const struct report_row *row, struct buf *out)
{
    json_put_key(out, "lines", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < row->n_lines; i++) {
        const struct report_line *line = &row->lines[i];
        buf_printf(out, i ? ", {\"function\": " : "{\"function\": ");
        json_put_text(out, model_text(report->model, line->function));
        json_put_text_at(out, "file", model_text(report->model, line->file));
        json_put_word_at(out, "line", line->line);
        json_put_double_at(out, "value", line->value);
        json_put_key(out, "loop", 0);
        put_loop(report->model, &line->loop, out);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

static void put_fields(const struct report_row *row, struct buf *out)
{
    json_put_text_at(out, "type", row->type && *row->type ? row->type : NULL);
    json_put_text_at(out, "type_source", row->type && *row->type ? row->type_source : NULL);
    json_put_word_at(out, "element_bytes", row->element_bytes);
    json_put_text_at(out, "advice", row->advice);
    json_put_key(out, "fields", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < row->n_fields; i++) {
        const struct report_field *field = &row->fields[i];
        buf_printf(out, i ? ", {\"field\": " : "{\"field\": ");
        json_put_text(out, field->name);
        json_put_text_at(out, "type", *field->type ? field->type : NULL);
        buf_printf(out, ", \"offset_bytes\": %lld", (long long)field->offset_bytes);
        json_put_word_at(out, "size_bytes", field->size_bytes);
        json_put_double_at(out, "samples", field->samples);
        json_put_double_at(out, "share", field->share);
        buf_printf(out, ", \"typed\": %s}", field->flags & FIELD_UNTYPED ? "false" : "true");
    }
    buf_printf(out, "]");
}

static void put_derived(const double *values, struct buf *out)
{
    json_put_key(out, "derived", 0);
    buf_printf(out, "{");
    for (size_t i = 0; metrics_row(i); i++) {
        json_put_key(out, metrics_row(i)->name, i == 0);
        if (!values || isnan(values[i]))
            buf_printf(out, "null");
        else
            json_put_double(out, values[i]);
    }
    buf_printf(out, "}");
}

static void put_metrics(const struct report *report, const struct report_row *row, struct buf *out)
{
    int n = 0;
    json_put_key(out, "metrics", 0);
    buf_printf(out, "{");
    for (size_t m = 0; m < report->model->n_metrics; m++) {
        if (report->model->metrics[m].hidden)
            continue;
        buf_printf(out, n++ ? ", " : "");
        json_put_text(out, report->model->metrics[m].name);
        buf_printf(out, ": {\"samples\": ");
        json_put_double(out, report_samples(report, row, m));
        json_put_double_at(out, "value", report_value(report, row, m));
        buf_printf(out, "}");
    }
    buf_printf(out, "}");
    put_derived(row->derived, out);
}

/* Puts what the remote costs are relative to, and the derived metrics of all accesses. */
static void put_hardware(const struct report *report, struct buf *out)
{
    json_put_key(out, "hardware", 0);
    buf_printf(out, "{\"remote_cost_per\": \"%s\"", report->is_work_counted ? "instruction" : "load");
    put_derived(report->derived, out);
    buf_printf(out, "}");
}

static int put_statistics(const struct export_job *job, const struct report *report, const struct report_row *row,
                          struct buf *out, struct error *err)
{
    static const char *const names[] = {"threads", "processes"};
    struct row_statistics statistics[2];
    int code = thread_values_statistics(job->values, report, row, &statistics[0], &statistics[1], err);
    for (size_t i = 0; code == 0 && i < 2 && statistics[i].n; i++) {
        json_put_key(out, names[i], 0);
        buf_printf(out, "{\"n\": %zu, \"with_value\": %zu", statistics[i].n, statistics[i].n_with_value);
        json_put_double_at(out, "mean", statistics[i].mean);
        json_put_double_at(out, "min", statistics[i].least);
        json_put_double_at(out, "max", statistics[i].most);
        json_put_double_at(out, "stddev", statistics[i].deviation);
        json_put_double_at(out, "cov", statistics[i].variation);
        buf_printf(out, "}");
    }
    return code;
}

/* Percent of all samples. */
static void put_causes(const struct cause_sum *sum, struct buf *out)
{
    json_put_double_at(out, "memory_share", sum->memory);
    json_put_double_at(out, "memory_low", sum->memory_low);
    json_put_double_at(out, "memory_high", sum->memory_high);
    json_put_double_at(out, "execution_share", sum->execution);
    json_put_double_at(out, "unverified_share", sum->unverified);
    json_put_double_at(out, "memory_least", sum->memory_least);
    json_put_double_at(out, "memory_most", sum->memory_most);
    json_put_double_at(out, "first_touch_share", sum->first_touch);
}

/* Percent of all CPU time, where that is known; they add up to 100. */
static void put_time_causes(const struct report *report, struct buf *out)
{
    double percents[REPORT_CAUSES];
    report_time_causes(report, percents);
    json_put_key(out, "causes", 0);
    buf_printf(out, "{");
    for (enum report_cause cause = 0; cause < REPORT_CAUSES; cause++) {
        json_put_key(out, report_cause_name(cause), cause == 0);
        json_put_double(out, percents[cause]);
    }
    buf_printf(out, "}");
}

/* What a thread waited for, by value. */
static void put_constructs(const struct report_row *row, struct buf *out)
{
    json_put_key(out, "constructs", 0);
    buf_printf(out, "[");
    for (size_t i = 0; i < row->n_constructs; i++) {
        buf_printf(out, i ? ", {\"name\": " : "{\"name\": ");
        json_put_text(out, row->constructs[i].name);
        json_put_double_at(out, "value", row->constructs[i].value);
        buf_printf(out, "}");
    }
    buf_printf(out, "]");
}

/* Who touched it first, where that is known. */
static void put_touches(const struct first_touches *touches, const struct report_row *row, struct buf *out)
{
    struct buf text = {0};
    if (touches->is_measured && first_touch_put_sentence(touches, row, &text))
        json_put_text_at(out, "first_touch", text.data);
    buf_fini(&text);
}

static int put_row(const struct export_job *job, const struct first_touches *touches, const struct report_row *row,
                   const struct derived *derived, struct buf *out, struct error *err)
{
    const struct report *report = touches->report;
    int code = 0;
    const struct variable *variable = row->variable;
    buf_printf(out, "{\"variable\": ");
    json_put_text(out, row->name);
    json_put_text_at(out, "class", row->class);
    json_put_text_at(out, "alloc_site", row->site);
    json_put_double_at(out, "samples", row->samples);
    json_put_double_at(out, "share", row->share);
    json_put_double_at(out, "value", row->value);
    if (report->has_causes) {
        enum report_cause aside = report_aside(row);
        put_causes(&row->causes, out);
        json_put_text_at(out, "aside", aside == REPORT_CAUSES ? NULL : report_cause_name(aside));
        json_put_text_at(out, "meaning", report_meaning(report, row));
    }
    json_put_word_at(out, "size_bytes", row->size_bytes);
    json_put_word_at(out, "n_blocks", row->n_blocks);
    if (variable) {
        json_put_word_at(out, "size_freed_bytes", variable->size_freed_bytes);
        json_put_word_at(out, "n_blocks_freed", variable->n_blocks_freed);
        json_put_word_at(out, "max_block_bytes", variable->max_block_bytes);
        json_put_word_at(out, "inexact_samples", variable->n_inexact);
        json_put_word_at(out, "n_paths", row->n_paths);
        json_put_text_at(out, "function", model_text(report->model, variable->function));
        json_put_text_at(out, "file", model_text(report->model, variable->file));
        json_put_word_at(out, "line", variable->line);
        json_put_text_at(out, "module", model_text(report->model, variable->module));
    }
    if (row->places) {
        json_put_key(out, "node_samples", 0);
        json_put_words(out, row->places, report->model->n_numa_nodes);
    }
    if (row->n_constructs)
        put_constructs(row, out);
    put_touches(touches, row, out);
    if (report->has_hardware)
        put_metrics(report, row, out);
    if (job->with_paths)
        json_put_alloc_path(report, row, out);
    derived_put_json(derived, (size_t)(row - report->rows), out);
    put_lines(report, row, out);
    if (report->has_fields)
        put_fields(row, out);
    if (job->values)
        code = put_statistics(job, report, row, out, err);
    buf_printf(out, "}");
    return code;
}

static void put_fates(const struct event_sum *event, struct buf *out)
{
    int n = 0;
    json_put_word_at(out, "taken", event->taken);
    json_put_word_at(out, "overflows", event->overflows);
    if (event->has_data_source) {
        json_put_word_at(out, "n_no_metric", event->n_no_metric);
        json_put_word_at(out, "n_throttles", event->n_throttles);
        json_put_word_at(out, "n_truncated", event->n_truncated);
        json_put_word_at(out, "n_collisions", event->n_collisions);
    }
    json_put_word_at(out, "enabled_ns", event->enabled_ns);
    json_put_word_at(out, "running_ns", event->running_ns);
    if (event->n_spared) {
        json_put_word_at(out, "n_spared", event->n_spared);
        json_put_word_at(out, "sample_cost_ns", event->sample_cost_ns);
    }
    json_put_key(out, "fates", 0);
    buf_printf(out, "{");
    for (int i = 0; i < FATE_MAX; i++)
        if (event->fates[i]) {
            json_put_key(out, fate_row(i)->name, n++ == 0);
            json_put_word(out, event->fates[i]);
        }
    buf_printf(out, "}");
}

/* Puts the times that the shares refer to. */
static void put_times(const struct report *report, struct buf *out)
{
    json_put_key(out, "cpu_time", 0);
    buf_printf(out, "{\"user_s\": ");
    json_put_double(out, report->user_s);
    json_put_double_at(out, "system_s", report->system_s);
    if (report->system_waiting_s > 0)
        json_put_double_at(out, "system_waiting_s", report->system_waiting_s);
    json_put_double_at(out, "sampled_s", report->sampled_s);
    if (report->model->delay_ns)
        json_put_double_at(out, "delay_s", (double)report->model->delay_ns / 1e9);
    if (report->model->unmeasured_ns)
        json_put_double_at(out, "unmeasured_s", (double)report->model->unmeasured_ns / 1e9);
    json_put_double_at(out, "kernel_percent", 100 * report->system_s / (report->user_s + report->system_s));
    buf_printf(out, ", \"shares_are_of\": \"%s\"}", report->is_user_only ? "user time" : "CPU time");
}

int vars_write_json(const struct export_job *job, struct buf *out, struct error *err)
{
    struct prepared prepared;
    const struct report *report = &prepared.report;
    unsigned parts = PREPARED_ORDER | PREPARED_CHOICE | PREPARED_TOUCHES | PREPARED_SHARED_LINES | PREPARED_DERIVED;
    int code = prepared_make(job, parts, &prepared, err);
    if (code != 0)
        return code;
    buf_printf(out, "{\"program\": ");
    json_put_text(out, job->model->program);
    json_put_text_at(out, "plan", job->model->plan);
    json_put_text_at(out, "metric", job->model->metrics[job->metric].name);
    json_put_double_at(out, "total_value", report->total_value);
    json_put_double_at(out, "total_samples", report->total_samples);
    json_put_double_at(out, "no_access_percent", report->no_access);
    json_put_double_at(out, "recovered_percent", report->recovered);
    json_put_double_at(out, "named_percent", report->named);
    if (report->has_causes)
        put_causes(&report->causes, out);
    if (report->has_causes)
        put_time_causes(report, out);
    if (report->has_fields)
        json_put_double_at(out, "typed_percent", report->typed);
    if (report->event)
        put_fates(report->event, out);
    buf_printf(out, ", \"has_too_few_samples\": %s", report->has_too_few ? "true" : "false");
    if (report->sampled_s > 0 && report->user_s + report->system_s > 0)
        put_times(report, out);
    if (report->has_hardware)
        put_hardware(report, out);
    buf_printf(out, ",\n\"variables\": [");
    for (size_t i = 0; code == 0 && i < prepared.n_rows; i++) {
        buf_printf(out, i ? ",\n" : "\n");
        code = put_row(job, &prepared.touches, &report->rows[i], &prepared.derived, out, err);
    }
    buf_printf(out, "]}\n");
    prepared_fini(&prepared);
    return code;
}
