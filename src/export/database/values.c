/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of the XML form. */
#include "export/columns.h"

#include <stdlib.h>
#include <string.h>

static int add_pair(struct columns *columns, const char *name, size_t metric, struct error *err)
{
    char *copy = strdup(name);
    if (!copy || !vec_reserve(&columns->pairs, &columns->capacity, columns->n_pairs + 1, sizeof *columns->pairs)) {
        free(copy);
        return error_set(err, ERR_MEMORY, "out of memory");
    }
    columns->pairs[columns->n_pairs++] = (struct column_pair){copy, metric};
    return 0;
}

/* The metric that stands for time, by the beginning of its name, best first; -1 when none measures time. */
static int64_t time_metric(const struct model *model)
{
    static const char *const names[] = {"EADDR (usec)", "REALTIME (usec)", "WALLCLOCK (usec)"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        int64_t metric = model_metric(model, names[k]);
        if (metric >= 0)
            return metric;
    }
    return -1;
}

int columns_make(const struct model *model, struct columns *columns, struct error *err)
{
    int code = 0;
    int64_t time = time_metric(model);
    memset(columns, 0, sizeof *columns);
    if (time >= 0 && model_metric(model, "CPUTIME (usec)") < 0 && model_metric(model, "CPUTIME (sec)") < 0)
        code = add_pair(columns, "CPUTIME (usec)", (size_t)time, err);
    for (size_t i = 0; code == 0 && i < model->n_metrics; i++)
        code = add_pair(columns, model->metrics[i].name, i, err);
    return code;
}

void columns_fini(struct columns *columns)
{
    for (size_t i = 0; i < columns->n_pairs; i++)
        free(columns->pairs[i].name);
    free(columns->pairs);
    memset(columns, 0, sizeof *columns);
}

void columns_exclusive(const struct model *model, const double *own, double *exclusive)
{
    size_t n = model->n_metrics;
    memset(exclusive, 0, model->n_scopes * n * sizeof *exclusive);
    for (size_t i = 1; i < model->n_scopes; i++) {
        const struct scope *scope = &model->scopes[i];
        if (scope->kind != SCOPE_LINE)
            continue;
        for (size_t m = 0; m < n; m++) {
            exclusive[i * n + m] = own[i * n + m];
            exclusive[scope->parent * n + m] += scope->parent ? own[i * n + m] : 0;
        }
    }
}
