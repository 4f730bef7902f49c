/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics that experiment.xml itself holds: sums over all threads, statistics, or the values of each thread.
 * Ordinary code. */
#ifndef LOCUS_EXPORT_SUMMARY_H
#define LOCUS_EXPORT_SUMMARY_H

#include "export/columns.h"

enum summary_kind { SUMMARY_SUM = 0, SUMMARY_STATISTICS, SUMMARY_THREADS };

enum { SUMMARY_THREADS_MAX = 100 }; /* that are written without being asked for in so many words */

struct summary {
    enum summary_kind kind;
    size_t n_columns, n_scopes, n_parts;
    size_t n_threads; /* that have been added */
    double *values;   /* [n_parts][n_scopes][n_columns] */
};

/* Makes room for what kind needs. The sums are filled in by summary_sum, the rest by summary_add.
 * err: ERR_MEMORY */
int summary_init(struct summary *summary, enum summary_kind kind, const struct model *model,
                 const struct columns *columns, struct error *err);
void summary_fini(struct summary *summary);

/* Adds the next thread, of which values [n_scopes][n_columns] are all. */
void summary_add(struct summary *summary, const double *values);

/* When all threads have been added: completes the statistics and takes the sums from the model. exclusive [n_scopes]
 * [n_metrics]: as columns_exclusive. Statistics are over all threads, those without value included; the standard
 * deviation is that of all of them. */
void summary_end(struct summary *summary, const struct model *model, const struct columns *columns,
                 const double *exclusive);

/* What follows a metric's name in the name of its part: ":Sum", ":Mean", ".[0,1]". */
void summary_put_suffix(const struct summary *summary, const struct model *model, size_t part, struct buf *out);

/* How values of a part are combined: "sum", "min", "max"; NULL: they are not. */
const char *summary_combine(const struct summary *summary, size_t part);

/* Value of a column of a part, summary_end done. */
double summary_value(const struct summary *summary, size_t part, size_t scope, size_t column);

#endif
