/* SPDX-License-Identifier: BSD-3-Clause */
/* How the values of a variable spread over threads and over processes (ranks), from the values by context of the
 * database. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_SPREAD_H
#define LOCUS_EXPORT_VARS_SPREAD_H

#include "analysis/report/report.h"

/* Statistics of n numbers, those that are zero included; the standard deviation is that of all of them (divided by n),
 * variation is the standard deviation by the mean, 0 where that is 0. */
struct row_spread {
    size_t n, n_with_value;
    double mean, least, most, deviation, variation;
};

/* The values by context of a database; NULL stands for none. */
struct thread_values;

/* Opens cct.db in a database directory that the model was read from; *values is NULL when there is none, or when the
 * model does not know its threads. The caller frees it.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
int thread_values_open(const char *directory, const struct model *model, struct thread_values **values,
                       struct error *err);
void thread_values_free(struct thread_values *values);

/* Spread of the report's metric in a row over all threads and over all processes; all zero for the row without
 * variable.  err: ERR_IO, ERR_FORMAT (names the file and the offset), ERR_MEMORY */
int thread_values_spread(const struct thread_values *values, const struct report *report, const struct report_row *row,
                         struct row_spread *threads, struct row_spread *processes, struct error *err);

#endif
