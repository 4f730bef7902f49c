/* SPDX-License-Identifier: BSD-3-Clause */
/* What reports have from frames: what --derive adds to them, and what nodes are called.
 *
 * --derive adds columns that expressions over a report's metrics compute for each row. A row's value follows from the
 * row's own sums, so that a ratio of a function, file, module or variable is that of their sums, and not a sum of
 * ratios. Ordinary code. */
#ifndef LOCUS_EXPORT_DERIVED_H
#define LOCUS_EXPORT_DERIVED_H

#include "answer/answer.h"
#include "frame/frame.h"

/* All zero: there are no such columns, and nothing is put. */
struct derived {
    char **names; /* [n] */
    size_t n, n_rows;
    double *values; /* [n_rows][n]; NAN: missing */
};

/* The value of a metric of the model in a row, with all that it calls (is_inclusive) or without; 0 is missing. */
typedef double derived_value(const void *context, size_t row, size_t metric, bool is_inclusive);

/* The name in "NAME = EXPRESSION", malloc'ed; NULL when out of memory. */
char *derived_name(const char *text);

/* Computes the job's columns for n_rows rows. Expressions know "X" and "X (inc)" for every metric X, and "time" in
 * seconds, as those on frames do (frame/expression.h); in rows without callees both are the same.
 * err: ERR_USAGE, ERR_NOT_FOUND (what is wrong about an expression), ERR_MEMORY */
int derived_make(const struct export_job *job, size_t n_rows, derived_value *value, const void *context,
                 struct derived *derived, struct error *err);
void derived_fini(struct derived *derived);

struct report;

/* The same for the rows of a report of variables, in its present order. */
int derived_of_report(const struct export_job *job, const struct report *report, struct derived *derived,
                      struct error *err);

/* Whether an expression of the job may need a metric: it has its name. */
bool derived_needs(const struct export_job *job, size_t metric);

/* Text: the width of all columns with the blanks behind them, their titles, and their cells in a row. */
size_t derived_width(const struct derived *derived);
void derived_put_titles(const struct derived *derived, const struct export_job *job, struct buf *out);
void derived_put_cells(const struct derived *derived, size_t row, struct buf *out);

/* One number, a dash where it is missing. */
void derived_put_cell(const struct derived *derived, size_t row, size_t column, struct buf *out);

struct column_list;
struct table;

/* Their columns: an object of them in JSON, the last ones in CSV; and the cells of a row. row SIZE_MAX: all are
 * missing. */
void derived_add_columns(const struct derived *derived, struct column_list *list);
void derived_put_row(const struct derived *derived, size_t row, struct table *table);

/* --- what nodes are called --- */

/* The nodes of a model's trees in the words that a frame of its database has for them (frame/frame.h), so that what a
 * report or the page shows can be asked for in a query. */

/* Its kind; frame_kind_name says the word. Call sites count as lines, as they do in the database. */
enum frame_kind node_kind(const struct scope *scope);

/* Replaces what name holds by the node's name: loops and lines are called by their places, "Loop@a.c:7". */
void node_name(const struct model *model, uint32_t scope, struct buf *name);

#endif
