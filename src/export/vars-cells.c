/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes below the rows of the table of variables on a terminal, and what the hardware says: see vars-table.h. */
#include "export/vars-table.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "base/scratch.h"
#include "database/v4.h"
#include "export/text-cells.h"

#define FIELDS_SHOWN 12
#define FIELD_MIN 0.005 /* of the row's samples */
#define NAME_WIDTH 34

/* The name of a local variable without its function, which is shown beside it. */
static const char *short_name(const char *name)
{
    const char *local = strstr(name, "()::");
    return local && strlen(name) > NAME_WIDTH ? local + 4 : name;
}

void fields_put_summary(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    int n = 0;
    if (!report->has_fields)
        return;
    buf_printf(&text, "%.1f %% of the samples in variables lie in a field or element of known type", report->typed);
    for (int i = 1; i < TYPE_SOURCES; i++)
        if (report->typed_by[i] >= 0.05)
            buf_printf(&text, "%s%s %.1f %%", n++ ? ", " : " (by ", model_type_source_name((enum type_source)i),
                       report->typed_by[i]);
    buf_printf(&text, n ? ")" : "");
    if (report->typed < 99.95)
        buf_printf(&text, ", of the others at most the offset is known");
    text_labelled(out, job, "types", text.data);
    buf_fini(&text);
}

static void put_line(const struct export_job *job, const char *text, size_t indent, struct buf *out)
{
    buf_printf(out, "%*s", (int)indent, "");
    text_style(out, job, TEXT_DIM);
    text_wrapped(out, job, text, indent, indent + 2);
    text_style(out, job, TEXT_PLAIN);
}

static void put_field(const struct export_job *job, const struct report_row *row, const struct report_field *field,
                      size_t indent, struct buf *out)
{
    struct buf text = {0};
    buf_printf(&text, "%5.1f %%  ", 100 * field->fraction);
    bool is_typed = !(field->flags & FIELD_UNTYPED);
    text_cell(&text, job, is_typed ? short_name(field->name) : field->path, NAME_WIDTH, false);
    if (!is_typed)
        buf_printf(&text, "  no type");
    else if (row->element_bytes && field->size_bytes && field->size_bytes < row->element_bytes)
        buf_printf(&text, "  %llu of %llu bytes, %s", (unsigned long long)field->size_bytes,
                   (unsigned long long)row->element_bytes, field->type);
    else
        buf_printf(&text, "  %s", field->type);
    put_line(job, text.data, indent, out);
    buf_fini(&text);
}

void fields_put_row(const struct export_job *job, const struct report_row *row, size_t indent, struct buf *out)
{
    size_t n = 0;
    while (job->with_fields && n < row->n_fields && n < FIELDS_SHOWN && row->fields[n].fraction >= FIELD_MIN)
        put_field(job, row, &row->fields[n++], indent, out);
    if (n && n < row->n_fields) {
        double rest = 0;
        char text[64];
        for (size_t i = n; i < row->n_fields; i++)
            rest += row->fields[i].fraction;
        (void)snprintf(text, sizeof text, "%5.1f %%  %zu more", 100 * rest, row->n_fields - n);
        put_line(job, text, indent, out);
    }
    if (row->advice)
        put_line(job, row->advice, indent, out);
}

/* --- what the hardware says --- */

/* What the hardware says about all accesses together. */

void hardware_put_counters(const struct report *report, struct buf *text)
{
    const struct event_sum *event = report->event;
    if (!event || !text->len_bytes)
        return;
    if (event->n_no_metric)
        buf_printf(text, "; %llu without metric", (unsigned long long)event->n_no_metric);
    if (event->n_throttles)
        buf_printf(text, "; throttled %llu times", (unsigned long long)event->n_throttles);
    if (event->n_truncated)
        buf_printf(text, "; AUX area too small %llu times", (unsigned long long)event->n_truncated);
    if (event->n_collisions)
        buf_printf(text, "; hardware gave up samples %llu times", (unsigned long long)event->n_collisions);
    if (event->running_ns < event->enabled_ns)
        buf_printf(text, "; counted %.1f %% of the time, scaled to all of it",
                   100 * (double)event->running_ns / (double)event->enabled_ns);
}

/* "52.0 M loads" */
static void put_count(double value, const char *what, struct buf *text)
{
    static const char *const units[] = {"", " k", " M", " G", " T"};
    size_t unit = 0;
    for (; value >= 10000 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1000;
    buf_printf(text, "%.*f%s %s", unit ? 1 : 0, value, units[unit], what);
}

/* All accesses, in the words of the table. */
static void put_levels(const struct report *report, struct buf *text)
{
    int n_put = 0;
    put_count(report->all.counts[MEM_LOAD], "loads, ", text);
    put_count(report->all.counts[MEM_STORE], "stores", text);
    for (size_t i = 0; metrics_row(i); i++) {
        const struct metric_derived *row = metrics_row(i);
        double value = report->derived[i];
        size_t len = row->title ? strlen(row->title) : 0;
        if (!row->title || isnan(value))
            continue;
        bool is_percent = len > 2 && strcmp(row->title + len - 2, " %") == 0;
        buf_printf(text, "%s %.*s %s", n_put++ ? "," : ";", (int)(is_percent ? len - 2 : len), row->title,
                   metrics_is_beyond(row, value) ? "> " : "");
        text_number(text, value);
        buf_printf(text, is_percent ? " %%" : " cycles");
    }
}

void hardware_put_summary(const struct report *report, const struct export_job *job, struct buf *out)
{
    struct buf text = {0};
    if (!report->is_hardware)
        return;
    put_levels(report, &text);
    text_labelled(out, job, "accesses", text.data ? text.data : "");
    buf_fini(&text);
    if (report->all.remote_cycles > 0 && report->all.work > 0) {
        buf_printf(&text, "latency of accesses to other NUMA nodes: %.3g cycles per %s",
                   report->all.remote_cycles / report->all.work,
                   report->is_work_counted ? "instruction (lpi_NUMA)"
                                           : "load (lpi_NUMA, per instruction, also needs -e instructions)");
        text_labelled(out, job, "remote", text.data ? text.data : "");
    }
    buf_fini(&text);
}

void hardware_put_legend(const struct report *report, const struct export_job *job, struct buf *out)
{
    if (report->is_hardware)
        text_labelled(out, job, "columns",
                      "mean, p95: latency in core cycles; L1 % of the loads, L2 % of those that missed L1, LLC % of "
                      "those that missed L2; lcl %, rmt %: of those that missed it, from this and from other NUMA "
                      "nodes");
}

/* --- statistics over threads and processes --- */

/* Reading a few contexts of cct.db: see vars-table.h. */

enum { CELL_BYTES = 12, METRIC_BYTES = 10, ROW_BYTES = 32, TABLE_AT = 48, PIECE_CELLS = 4096 };

struct thread_values {
    int fd;
    char *path;
    uint64_t file_bytes;
    uint32_t n_contexts;
    struct columns columns;
    double *by_thread;  /* [n_threads] scratch */
    double *by_process; /* [n_processes] scratch */
    uint16_t n_ids;     /* of each pair */
};

static int damaged(const struct thread_values *values, uint64_t offset, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%s: offset %llu: the values by context are damaged", values->path,
                     (unsigned long long)offset);
}

/* Reads n_items of item_bytes at offset after checking that they are in the file. */
static int take(const struct thread_values *values, uint64_t offset, uint64_t n_items, uint64_t item_bytes, void *bytes,
                struct error *err)
{
    if (offset > values->file_bytes || n_items > (values->file_bytes - offset) / item_bytes)
        return damaged(values, offset, err);
    return spill_read_at(values->fd, values->path, offset, bytes, n_items * item_bytes, err);
}

static int take_head(struct thread_values *values, const struct model *model, struct error *err)
{
    char head[TABLE_AT];
    struct stat info;
    if (fstat(values->fd, &info) != 0)
        return error_set(err, ERR_IO, "%s: cannot read: %s", values->path, strerror(errno));
    values->file_bytes = (uint64_t)info.st_size;
    int code = take(values, 0, 1, sizeof head, head, err);
    if (code)
        return code;
    memcpy(&values->n_contexts, head + 40, 4);
    if (memcmp(head, V4_BEGINS "ctxt\4", 15) != 0 || values->n_contexts != model->n_scopes + 1 || head[44] != ROW_BYTES)
        return error_set(err, ERR_FORMAT, "%s: offset 0: the file does not belong to the database", values->path);
    return 0;
}

int thread_values_open(const char *directory, const struct model *model, struct thread_values **out, struct error *err)
{
    *out = NULL;
    struct thread_values *values = calloc(1, sizeof *values);
    if (!values || asprintf(&values->path, "%s/%s", directory, v4_file_name(V4_CCT)) < 0) {
        free(values);
        return error_memory(err);
    }
    values->fd = input_open(AT_FDCWD, values->path, O_NOFOLLOW, NULL);
    int reason = values->fd < 0 ? errno : 0;
    if (values->fd < 0 || !model->has_thread_list) {
        int code = reason && reason != ENOENT
                       ? error_set(err, ERR_IO, "%s: cannot open: %s", values->path, input_reason(reason))
                       : 0;
        thread_values_free(values);
        return code;
    }
    values->by_thread = calloc(model->n_threads + 1, sizeof *values->by_thread);
    values->by_process = calloc(model->n_processes + 1, sizeof *values->by_process);
    int code = values->by_thread && values->by_process ? columns_make(model, &values->columns, err) : error_memory(err);
    if (code == 0)
        code = take_head(values, model, err);
    if (code == 0)
        code = v4_ids_per_metric(directory, &values->n_ids, err);
    if (code == 0)
        *out = values;
    else
        thread_values_free(values);
    return code;
}

void thread_values_free(struct thread_values *values)
{
    if (!values)
        return;
    if (values->fd >= 0)
        (void)close(values->fd);
    columns_fini(&values->columns);
    free(values->by_thread);
    free(values->by_process);
    free(values->path);
    free(values);
}

/* Adds the n cells at offset, times factor, to the threads. */
static int add_cells(const struct thread_values *values, size_t n_threads, uint64_t offset, uint64_t n, double factor,
                     struct error *err)
{
    char cells[PIECE_CELLS * CELL_BYTES];
    while (n > 0) {
        uint64_t n_now = n < PIECE_CELLS ? n : PIECE_CELLS;
        int code = take(values, offset, n_now, CELL_BYTES, cells, err);
        if (code)
            return code;
        for (uint64_t i = 0; i < n_now; i++) {
            uint32_t profile;
            double value;
            memcpy(&profile, cells + CELL_BYTES * i, 4);
            memcpy(&value, cells + CELL_BYTES * i + 4, 8);
            if (profile == 0 || profile > n_threads)
                return damaged(values, offset + CELL_BYTES * i, err);
            values->by_thread[profile - 1] += value * factor;
        }
        n -= n_now;
        offset += CELL_BYTES * n_now;
    }
    return 0;
}

struct block {
    uint64_t n_values, values, n_metrics, metrics;
};

/* Adds a context's values of the metric with this id. */
static int add_context(const struct thread_values *values, size_t n_threads, uint32_t context, uint16_t id,
                       double factor, struct error *err)
{
    struct block block;
    int code = take(values, TABLE_AT + (uint64_t)ROW_BYTES * context, 1, sizeof block, &block, err);
    block.n_metrics &= UINT16_MAX;
    char *index = code == 0 ? calloc(block.n_metrics + 1, METRIC_BYTES) : NULL;
    if (code == 0 && !index)
        code = error_memory(err);
    if (code == 0 && block.n_metrics)
        code = take(values, block.metrics, block.n_metrics, METRIC_BYTES, index, err);
    for (uint64_t i = 0; code == 0 && i < block.n_metrics; i++) {
        uint16_t metric;
        uint64_t start, end = block.n_values;
        memcpy(&metric, index + METRIC_BYTES * i, 2);
        memcpy(&start, index + METRIC_BYTES * i + 2, 8);
        if (i + 1 < block.n_metrics)
            memcpy(&end, index + METRIC_BYTES * (i + 1) + 2, 8);
        if (start > end || end > block.n_values || block.n_values > values->file_bytes / CELL_BYTES)
            code = damaged(values, block.metrics + METRIC_BYTES * i, err);
        else if (metric == id)
            code = add_cells(values, n_threads, block.values + CELL_BYTES * start, end - start, factor, err);
    }
    free(index);
    return code;
}

static struct row_statistics statistics_of(const double *numbers, size_t n)
{
    struct row_statistics result = {.n = n};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += numbers[i];
        result.n_with_value += numbers[i] != 0;
        result.least = i == 0 || numbers[i] < result.least ? numbers[i] : result.least;
        result.most = i == 0 || numbers[i] > result.most ? numbers[i] : result.most;
    }
    result.mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        squares += (numbers[i] - result.mean) * (numbers[i] - result.mean);
    result.deviation = n ? sqrt(squares / (double)n) : 0;
    result.variation = result.mean != 0 ? result.deviation / result.mean : 0;
    return result;
}

/* Takes out what statements below a scope of the row's variable cost that rows of their own show: waiting, and the
 * profiler. */
static int take_out_waiting(const struct thread_values *values, const struct report *report,
                            const struct report_row *row, uint32_t scope, uint16_t id, double factor, struct error *err)
{
    const struct model *model = report->model;
    uint32_t end = model_subtree_end(model, scope);
    int code = 0;
    for (uint32_t i = scope + 1; code == 0 && i < end; i++)
        if (model->own[i * model->n_metrics + report->metric] != 0 &&
            report_wait(report, row->variable, i) != row->wait)
            code = add_context(values, model->n_threads, i, id, -factor, err);
    return code;
}

int thread_values_statistics(const struct thread_values *values, const struct report *report,
                             const struct report_row *row, struct row_statistics *threads,
                             struct row_statistics *processes, struct error *err)
{
    const struct model *model = report->model;
    size_t pair = values->columns.n_pairs;
    *threads = *processes = (struct row_statistics){0};
    for (size_t k = 0; k < values->columns.n_pairs; k++) /* the last pair has the metric's own unit */
        if (values->columns.pairs[k].metric == report->metric)
            pair = k;
    if (!row->variable || pair == values->columns.n_pairs)
        return 0;
    double factor = report_part_fraction(report, row, report->metric) / v4_export_scale(&values->columns.pairs[pair]);
    memset(values->by_thread, 0, model->n_threads * sizeof *values->by_thread);
    memset(values->by_process, 0, model->n_processes * sizeof *values->by_process);
    int code = 0;
    uint16_t id = (uint16_t)(values->n_ids * (pair + 1) - 1); /* of the whole execution */
    for (size_t i = 0; code == 0 && i < row->variable->n_scopes; i++) {
        code = add_context(values, model->n_threads, row->variable->scopes[i], id, factor, err);
        if (code == 0 && row->fraction < 1)
            code = take_out_waiting(values, report, row, row->variable->scopes[i], id, factor, err);
    }
    for (size_t t = 0; t < model->n_threads; t++)
        values->by_process[model->threads[t].process] += values->by_thread[t];
    *threads = statistics_of(values->by_thread, model->n_threads);
    *processes = statistics_of(values->by_process, model->n_processes);
    return code;
}

const double *thread_values_by_thread(const struct thread_values *values)
{
    return values->by_thread;
}

/* --- lines below a row --- */

/* Lines of source that access a variable. */

void lines_put_places(const struct report *report, const struct report_row *row, struct buf *text)
{
    uint64_t total = 0;
    for (uint32_t i = 0; row->places && i < report->model->n_numa_nodes; i++)
        total += row->places[i];
    if (total == 0 || report->model->n_numa_nodes < 2)
        return;
    buf_printf(text, "threads ran on NUMA node");
    for (uint32_t i = 0; i < report->model->n_numa_nodes; i++) {
        double share = 100 * (double)row->places[i] / (double)total;
        if (share >= 0.5)
            buf_printf(text, " %u: %.0f %%", i, share);
    }
    buf_printf(text, "   ");
}

/* " in loop 77-79", with the file if it is not the line's; it is not repeated for the next line in the loop. */
static void put_loop(const struct report *report, const struct report_row *row, size_t i, struct buf *text)
{
    const struct report_line *line = &row->lines[i];
    bool is_told = i > 0 && line[-1].loop.first == line->loop.first && line[-1].loop.file == line->loop.file;
    if (!line->loop.first || is_told)
        return;
    buf_printf(text, " in loop ");
    if (line->loop.file != line->file)
        buf_printf(text, "%s:", path_last(model_text(report->model, line->loop.file)));
    text_lines(text, line->loop.first, line->loop.last);
}

void lines_put_place(const struct report *report, const struct report_row *row, size_t i, struct buf *text)
{
    const struct report_line *line = &row->lines[i];
    if (!report->has_too_few)
        buf_printf(text, "%.0f %% ", 100 * line->value / row->value);
    text_function(text, model_text(report->model, line->function));
    if (line->line)
        buf_printf(text, " %s:%u", path_last(model_text(report->model, line->file)), line->line);
    put_loop(report, row, i, text);
}
