/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a few contexts of cct.db: see vars-spread.h. */
#include "export/vars-spread.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/scratch.h"
#include "export/v4-export.h"

enum { CELL_BYTES = 12, METRIC_BYTES = 10, ROW_BYTES = 32, TABLE_AT = 48, PIECE_CELLS = 4096 };

struct thread_values {
    int fd;
    char *path;
    uint64_t file_bytes;
    uint32_t n_contexts;
    struct columns columns;
    double *by_thread;  /* [n_threads] scratch */
    double *by_process; /* [n_processes] scratch */
};

static int damaged(const struct thread_values *values, uint64_t offset, struct error *err)
{
    return error_set(err, ERR_FORMAT, "%s: offset %llu: the values by context are damaged", values->path,
                     (unsigned long long)offset);
}

/* Reads n_items of item_bytes at offset, after checking that they are in the file. */
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
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    values->fd = input_open(AT_FDCWD, values->path, O_NOFOLLOW, NULL);
    if (values->fd < 0 || !model->has_thread_list) {
        thread_values_free(values);
        return 0;
    }
    values->by_thread = calloc(model->n_threads + 1, sizeof *values->by_thread);
    values->by_process = calloc(model->n_processes + 1, sizeof *values->by_process);
    int code = values->by_thread && values->by_process ? columns_make(model, &values->columns, err)
                                                       : error_set(err, ERR_MEMORY, "out of memory");
    if (code == 0)
        code = take_head(values, model, err);
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

/* Adds the cells [n] at offset, multiplied, to the threads. */
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

/* Adds what a context has of the metric with this id. */
static int add_context(const struct thread_values *values, size_t n_threads, uint32_t context, uint16_t id,
                       double factor, struct error *err)
{
    struct block block;
    int code = take(values, TABLE_AT + (uint64_t)ROW_BYTES * context, 1, sizeof block, &block, err);
    block.n_metrics &= UINT16_MAX;
    char *index = code == 0 ? calloc(block.n_metrics + 1, METRIC_BYTES) : NULL;
    if (code == 0 && !index)
        code = error_set(err, ERR_MEMORY, "out of memory");
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

static struct row_spread spread_of(const double *numbers, size_t n)
{
    struct row_spread spread = {.n = n};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += numbers[i];
        spread.n_with_value += numbers[i] != 0;
        spread.least = i == 0 || numbers[i] < spread.least ? numbers[i] : spread.least;
        spread.most = i == 0 || numbers[i] > spread.most ? numbers[i] : spread.most;
    }
    spread.mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        squares += (numbers[i] - spread.mean) * (numbers[i] - spread.mean);
    spread.deviation = n ? sqrt(squares / (double)n) : 0;
    spread.variation = spread.mean != 0 ? spread.deviation / spread.mean : 0;
    return spread;
}

int thread_values_spread(const struct thread_values *values, const struct report *report, const struct report_row *row,
                         struct row_spread *threads, struct row_spread *processes, struct error *err)
{
    const struct model *model = report->model;
    size_t pair = values->columns.n_pairs;
    *threads = *processes = (struct row_spread){0};
    for (size_t k = 0; k < values->columns.n_pairs; k++) /* the last one has the metric's own unit */
        if (values->columns.pairs[k].metric == report->metric)
            pair = k;
    if (!row->variable || pair == values->columns.n_pairs)
        return 0;
    double factor = (row->part ? row->part->fraction : 1) / v4_export_scale(&values->columns.pairs[pair]);
    memset(values->by_thread, 0, model->n_threads * sizeof *values->by_thread);
    memset(values->by_process, 0, model->n_processes * sizeof *values->by_process);
    int code = 0;
    for (size_t i = 0; code == 0 && i < row->variable->n_scopes; i++)
        code = add_context(values, model->n_threads, row->variable->scopes[i],
                           (uint16_t)(V4_IDS_PER_METRIC * pair + V4_ID_EXECUTION), factor, err);
    for (size_t t = 0; t < model->n_threads; t++)
        values->by_process[model->threads[t].process] += values->by_thread[t];
    *threads = spread_of(values->by_thread, model->n_threads);
    *processes = spread_of(values->by_process, model->n_processes);
    return code;
}
