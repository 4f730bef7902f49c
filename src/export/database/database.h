/* SPDX-License-Identifier: BSD-3-Clause */
/* The metric columns of a database in the XML form, and the values of a thread in them: an inclusive and an exclusive
 * column for each metric. Ordinary code. */
#ifndef LOCUS_EXPORT_COLUMNS_H
#define LOCUS_EXPORT_COLUMNS_H

#include "analysis/model.h"

/* A pair of columns. Column 2k is inclusive, 2k + 1 exclusive, for pair k. */
struct column_pair {
    char *name;      /* without " (I)" and " (E)" */
    size_t metric;   /* of the model */
};

struct columns {
    struct column_pair *pairs; /* [n_pairs] */
    size_t n_pairs, capacity;
};

/* The pairs for a model: first "CPUTIME (usec)", which readers take for time, from the metric that measures time
 * (unless there is one of that name), then every metric.  err: ERR_MEMORY */
int columns_make(const struct model *model, struct columns *columns, struct error *err);
void columns_fini(struct columns *columns);

/* Exclusive values as HPCToolkit writes them: a statement has its own, a function, inlined function or place the sum of
 * the statements directly in it, a call site none. own, exclusive [n_scopes][n_metrics]. */
void columns_exclusive(const struct model *model, const double *own, double *exclusive);

#endif
