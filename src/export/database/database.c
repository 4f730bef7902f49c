/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics over threads, one thread after the other: means and squares are updated, so that nothing is lost where
 * values are large and differ little. */
#include "export/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum part { PART_SUM = 0, PART_MEAN, PART_DEVIATION, PART_VARIATION, PART_MIN, PART_MAX, PARTS };

static const struct {
    const char *name, *combine;
} parts[PARTS] = {
    [PART_SUM] = {":Sum", "sum"},         [PART_MEAN] = {":Mean", NULL}, [PART_DEVIATION] = {":StdDev", NULL},
    [PART_VARIATION] = {":CoefVar", NULL}, [PART_MIN] = {":Min", "min"},  [PART_MAX] = {":Max", "max"},
};

int summary_init(struct summary *summary, enum summary_kind kind, const struct model *model,
                 const struct columns *columns, struct error *err)
{
    *summary = (struct summary){.kind = kind, .n_columns = 2 * columns->n_pairs, .n_scopes = model->n_scopes};
    summary->n_parts = kind == SUMMARY_SUM ? 1 : kind == SUMMARY_STATISTICS ? PARTS : model->n_threads;
    size_t n = summary->n_scopes * summary->n_columns, n_parts = summary->n_parts;
    if (n_parts == 0 || n == 0 || n <= SIZE_MAX / sizeof(double) / n_parts)
        summary->values = calloc(n * n_parts + 1, sizeof *summary->values);
    return summary->values ? 0 : error_set(err, ERR_MEMORY, "out of memory for %zu metrics of %zu scopes",
                                           n_parts * summary->n_columns, summary->n_scopes);
}

void summary_fini(struct summary *summary)
{
    free(summary->values);
    *summary = (struct summary){0};
}

static double *values_of(const struct summary *summary, size_t part)
{
    return summary->values + part * summary->n_scopes * summary->n_columns;
}

static void add_statistics(const struct summary *summary, const double *values, size_t n)
{
    double *mean = values_of(summary, PART_MEAN), *squares = values_of(summary, PART_DEVIATION);
    double *least = values_of(summary, PART_MIN), *most = values_of(summary, PART_MAX);
    for (size_t i = 0; i < n; i++) {
        double step = values[i] - mean[i];
        mean[i] += step / (double)summary->n_threads;
        squares[i] += step * (values[i] - mean[i]);
        least[i] = summary->n_threads == 1 || values[i] < least[i] ? values[i] : least[i];
        most[i] = summary->n_threads == 1 || values[i] > most[i] ? values[i] : most[i];
    }
}

void summary_add(struct summary *summary, const double *values)
{
    size_t n = summary->n_scopes * summary->n_columns;
    summary->n_threads++;
    if (summary->kind == SUMMARY_STATISTICS)
        add_statistics(summary, values, n);
    else if (summary->kind == SUMMARY_THREADS && summary->n_threads <= summary->n_parts)
        memcpy(values_of(summary, summary->n_threads - 1), values, n * sizeof *values);
}

void summary_end(struct summary *summary, const struct model *model, const struct columns *columns,
                 const double *exclusive)
{
    size_t n = summary->n_scopes * summary->n_columns;
    for (size_t i = 0; summary->kind != SUMMARY_THREADS && i < n; i++) {
        size_t scope = i / summary->n_columns, column = i % summary->n_columns;
        const double *from = column % 2 ? exclusive : model->inclusive;
        summary->values[i] = from[scope * model->n_metrics + columns->pairs[column / 2].metric];
    }
    if (summary->kind != SUMMARY_STATISTICS || summary->n_threads == 0)
        return;
    double *mean = values_of(summary, PART_MEAN), *deviation = values_of(summary, PART_DEVIATION);
    double *variation = values_of(summary, PART_VARIATION);
    for (size_t i = 0; i < n; i++) {
        deviation[i] = sqrt(deviation[i] / (double)summary->n_threads);
        variation[i] = mean[i] != 0 ? deviation[i] / mean[i] : 0;
    }
}

void summary_put_suffix(const struct summary *summary, const struct model *model, size_t part, struct buf *out)
{
    if (summary->kind != SUMMARY_THREADS) {
        buf_printf(out, "%s", parts[part].name);
        return;
    }
    const struct thread *thread = &model->threads[part];
    buf_printf(out, ".[%u,%u]", (unsigned)model->processes[thread->process].rank, (unsigned)thread->thread_id);
}

const char *summary_combine(const struct summary *summary, size_t part)
{
    return summary->kind == SUMMARY_THREADS ? NULL : parts[part].combine;
}

double summary_value(const struct summary *summary, size_t part, size_t scope, size_t column)
{
    return values_of(summary, part)[scope * summary->n_columns + column];
}
