/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables on a terminal: its columns, one row of a table each, as wide as what they hold, and cells that
 * are wrapped where that is too wide. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_TABLE_H
#define LOCUS_EXPORT_VARS_TABLE_H

#include "analysis/report/report.h"
#include "export/text-cells.h"

enum {
    COLUMN_RIGHT = 1, /* aligned to the right */
    COLUMN_BOLD = 2,
    COLUMN_WRAPS = 4,       /* gets the room that others leave, and goes on in the next line */
    COLUMN_BELOW = 8,       /* where there is no room, part of the line below the row */
    COLUMN_BELOW_LAST = 16, /* the same, where there still is no room without the others */
    COLUMN_DERIVED = 32     /* stands for one column for each derived metric with a title */
};

struct table_row {
    const struct report *report;
    const struct export_job *job;
    const struct report_row *row;
    size_t derived; /* COLUMN_DERIVED: which metric */
};

struct table_column {
    const char *title; /* COLUMN_DERIVED: the metric's */
    size_t width;      /* at least; it grows with what it holds */
    unsigned flags;
    bool (*is_shown)(const struct report *report, const struct export_job *job); /* NULL: always */
    void (*put)(const struct table_row *row, struct buf *cell);
};

#define TABLE_COLUMNS_MAX 24

/* The columns of one report, with their widths. */
struct vars_table {
    const struct report *report;
    const struct export_job *job;
    size_t n_rows; /* that are shown */
    size_t n_columns;
    struct {
        const struct table_column *column;
        size_t derived, width, at; /* at: where it begins */
    } shown[TABLE_COLUMNS_MAX];
    size_t indent;        /* of the lines below a row */
    size_t gap;           /* blanks between columns */
    unsigned flags_below; /* of the columns that go below the row */
};

/* Lays out the columns for the first n_rows of the report. Borrows both. */
void vars_table_init(struct vars_table *table, const struct report *report, const struct export_job *job,
                     size_t n_rows);

/* Appends the line of titles, and a row: as many lines as its longest cell needs. */
void vars_table_put_titles(const struct vars_table *table, struct buf *out);
void vars_table_put_row(const struct vars_table *table, const struct report_row *row, struct buf *out);

/* Appends a row that is a share of another whole: the share, its name, and words to the end of the line and beyond. */
void vars_table_put_words(const struct vars_table *table, double share, const char *name, const char *words,
                          struct buf *out);

/* Appends where the row's variable comes from, never nothing: the site, or the allocation path where the site says no
 * more than the name, or what a special row stands for. */
void vars_table_put_origin(const struct report *report, const struct report_row *row, struct buf *text);

#endif
