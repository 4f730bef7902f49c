/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables that a job asks for, and what reports show of them. Every report takes its rows from here, so that all
 * of them, in all forms, leave out the same rows and have the same order. Ordinary code. */
#ifndef LOCUS_EXPORT_PREPARED_H
#define LOCUS_EXPORT_PREPARED_H

#include "analysis/report/first-touch.h"
#include "export/derived.h"

/* What is made beside the rows, and where a report does not follow its job. */
enum prepared_part {
    PREPARED_UNUSED = 1,        /* rows without samples in any case ... */
    PREPARED_USED = 2,          /* ... in no case */
    PREPARED_BY_SITE = 4,       /* one row for all allocation paths of a site in any case */
    PREPARED_ORDER = 8,         /* in the order that the job asks for; else by value */
    PREPARED_CHOICE = 16,       /* the job's least part and top rows */
    PREPARED_TOUCHES = 32,      /* who touched them first */
    PREPARED_SHARED_LINES = 64, /* which of them lie on cache lines that threads share */
    PREPARED_DERIVED = 128      /* what --derive adds */
};

struct prepared {
    struct report report;
    size_t n_rows; /* of the report, those that are shown: the first ones */
    size_t n_left; /* those that are not */
    struct first_touches touches;
    struct derived derived;
};

/* Makes the parts, of enum prepared_part; *prepared must not move.  err: ERR_MEMORY; of derived_make */
int prepared_make(const struct export_job *job, unsigned parts, struct prepared *prepared, struct error *err);
void prepared_fini(struct prepared *prepared);

/* Puts the top rows (0: all) with the largest shares, of at least so many percent of all samples (0 or less: any),
 * before the others; *n: how many these are. The order stays otherwise. So no row that is left out has a larger share
 * than one that is shown. False when out of memory. */
bool report_choose(struct report *report, double least, size_t top, size_t *n);

/* How many rows are at least so many percent of all samples. */
size_t report_count(const struct report *report, double least);

struct split;

/* Of rows that are split: the columns of a cell, the first of which has flags of enum column_flag beside its kind; and
 * those cells of a row, as a table that is joined. total and of_row: what their shares refer to. */
void split_add_columns(const struct split *split, uint64_t flags, struct column_list *list);
void split_fill_cells(const struct split *split, size_t row, double total, double of_row, struct table *table);

/* Columns that tell a thread. */
#define THREAD_COLUMNS                                                                                                 \
    {"process", NULL, CELL_COUNT}, {"rank", NULL, CELL_COUNT | COLUMN_LEFT_OUT}, {"thread", NULL, CELL_COUNT},         \
    {                                                                                                                  \
        "thread_name", NULL, CELL_TEXT | COLUMN_LEFT_OUT                                                               \
    }

/* Puts their cells: a rank is known of an MPI program, a name where the thread has one. number: in the model's list. */
void thread_put_cells(const struct model *model, uint32_t number, struct table *table);

#endif
