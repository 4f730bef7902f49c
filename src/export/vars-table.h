/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables on a terminal. Each column is a row of a table; columns are as wide as their content, and
 * cells are wrapped if that is too wide. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_TABLE_H
#define LOCUS_EXPORT_VARS_TABLE_H

#include "analysis/report/report.h"
#include "base/vec.h"
#include "export/derived.h"
#include "answer/answer.h"
#include "export/text-cells.h"
#include "table/table.h"

enum {
    COLUMN_RIGHT = 1, /* aligned to the right */
    COLUMN_BOLD = 2,
    COLUMN_WRAPS = 4,       /* gets the room that others leave, and is wrapped to several lines */
    COLUMN_BELOW = 8,       /* if there is no room, part of the line below the row */
    COLUMN_BELOW_LAST = 16, /* the same, if there is still no room without the others */
    COLUMN_DERIVED = 32,    /* stands for one column for each derived metric with a title */
    COLUMN_ASKED = 64       /* stands for one column for each of --derive */
};

struct table_row {
    const struct report *report;
    const struct export_job *job;
    const struct report_row *row;
    size_t derived;              /* COLUMN_DERIVED: index of the metric; COLUMN_ASKED: of the column */
    const struct derived *asked; /* by row of the report */
};

struct table_column {
    const char *title; /* COLUMN_DERIVED: the metric's */
    size_t width;      /* at least; it grows with the content */
    unsigned flags;
    bool (*is_shown)(const struct report *report, const struct export_job *job); /* NULL: always */
    void (*put)(const struct table_row *row, struct buf *cell);
};

#define TABLE_COLUMNS_MAX 64
#define SCREEN_ROW_LINES 3 /* lines of a row, with those below it, in a report that fits one screen */

/* The columns of one report, with their widths. */
struct vars_table {
    const struct report *report;
    const struct export_job *job;
    const struct derived *asked; /* what --derive adds */
    size_t n_rows;               /* rows that are shown */
    size_t n_columns;
    struct {
        const struct table_column *column;
        size_t derived, width, at; /* at: where the column begins */
    } shown[TABLE_COLUMNS_MAX];
    size_t indent;        /* of the lines below a row */
    size_t gap;           /* blanks between columns */
    unsigned flags_below; /* of the columns that go below the row */
    bool failed;          /* out of memory */
};

/* Lays out the columns for the first n_rows of the report. Borrows all; asked is that of derived_of_report. */
void vars_table_init(struct vars_table *table, const struct report *report, const struct export_job *job,
                     const struct derived *asked, size_t n_rows);

/* Appends the line of titles, and a row: as many lines as its longest cell needs. */
void vars_table_put_titles(const struct vars_table *table, struct buf *out);
void vars_table_put_row(const struct vars_table *table, const struct report_row *row, struct buf *out);

/* Appends a row that is a share of another total: the share, its name, and words, wrapped if necessary. */
void vars_table_put_words(const struct vars_table *table, double share, const char *name, const char *words,
                          struct buf *out);

/* Appends the row's size and its number of blocks, each a dash if it has none: the bytes of all blocks and how many
 * they are; where nearly all were freed the mean size and "x 20000". */
void vars_table_put_size(const struct report_row *row, struct buf *text);
void vars_table_put_blocks(const struct report_row *row, struct buf *text);

/* Appends where the row's variable comes from, always something: the site, the allocation path if the site says no more
 * than the name, or what a special row stands for. */
void vars_table_put_origin(const struct report *report, const struct report_row *row, struct buf *text);

/* --- first touch (export-first-touch.c) --- */

struct first_touches;

/* Appends who touched the row's variable first and who used it, or that nobody was seen; false when there is nothing to
 * say. */
bool first_touch_put_sentence(const struct first_touches *touches, const struct report_row *row, struct buf *text);

/* Whether the row's variable has pages enough for that to matter. */
bool first_touch_matters(const struct first_touches *touches, const struct report_row *row);

/* --- fields --- */

/* The lines of the table of variables that are about fields. Ordinary code. */

/* One line of the head: how many samples have a type, and how it is known. Nothing in reports without places. */
void fields_put_summary(const struct report *report, const struct export_job *job, struct buf *out);

/* The lines below a row: its fields, if the job has with_fields, and in any case the advice that follows from them.
 * indent: characters before them. */
void fields_put_row(const struct export_job *job, const struct report_row *row, size_t indent, struct buf *out);

/* --- what the hardware says --- */

/* The report of variables for a terminal when hardware described each access: what goes above and below the table.
 * Ordinary code. */

/* Appends what else to know about the events apart from fates: samples without metric, throttling, shared counters. */
void hardware_put_counters(const struct report *report, struct buf *text);

/* Appends the labelled lines about all accesses together; nothing when the report is not about hardware. */
void hardware_put_summary(const struct report *report, const struct export_job *job, struct buf *out);

/* Appends what the columns of the hardware mean; nothing when there are none. */
void hardware_put_legend(const struct report *report, const struct export_job *job, struct buf *out);

/* --- statistics over threads and processes --- */

/* How the values of a variable are distributed over threads and over processes, from the values by context of
 * the database. Ordinary code. */

/* Statistics of n numbers, zeros included; the standard deviation is that of the whole population (divided by n),
 * variation is the standard deviation divided by the mean, 0 when the mean is 0. */
struct row_statistics {
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

/* Statistics of the report's metric in a row over all threads and over all processes; all zero for rows without
 * variable. err: ERR_IO, ERR_FORMAT (names the file and the offset), ERR_MEMORY */
int thread_values_statistics(const struct thread_values *values, const struct report *report,
                             const struct report_row *row, struct row_statistics *threads,
                             struct row_statistics *processes, struct error *err);

/* The values by thread [n_threads] that the last such statistics are of. Borrowed; the next call overwrites them. */
const double *thread_values_by_thread(const struct thread_values *values);

/* --- lines below a row --- */

/* What goes below a row of the table of variables: where its samples were taken. Ordinary code. */

/* vars-head.c: what the causes mean for a row; NULL: nothing, or it is too small for words about that, or there are too
 * few samples. Static storage: the same pointer for the same meaning. */
const char *vars_table_meaning(const struct report *report, const struct report_row *row);

/* Appends on which NUMA nodes the accessing threads ran, for nodes with at least half a percent of the samples; nothing
 * on machines with one node. */
void lines_put_places(const struct report *report, const struct report_row *row, struct buf *text);

/* Appends the i-th of the row's lines, its part of the row, and the loop around it if the line before is not in that
 * loop. */
void lines_put_place(const struct report *report, const struct report_row *row, size_t i, struct buf *text);

/* --- allocation paths --- */

struct leak_frame;

/* export-leaks.c: the functions of a row's allocation path, innermost first, in frames [LEAK_FRAMES_MAX]; returns how
 * many, 0 for what was not allocated. */
size_t alloc_path_of(const struct report *report, const struct report_row *row, struct leak_frame *frames);

/* Puts the allocation path of a row as two cells, innermost function first, nothing or an empty table
 * for what was not allocated: a text "f (a.c:30) < main (a.c:12)", each function calls the one before it; and a table
 * of function, file and line. */
void alloc_path_put_row(const struct report *report, const struct report_row *row, struct table *table);

/* --- the head --- */

/* What goes above and below the table of variables on a terminal. Above, the answer in short: program and run, what the
 * samples are and what they leave out. Below, what the special rows and columns mean and what went wrong; with -v also
 * how it was measured. Ordinary code. */

/* Appends the lines above the table. */
void head_put(const struct report *report, const struct export_job *job, struct buf *out);

/* export-vars-text.c: appends how long threads waited without a processor, and how much they read and wrote, with the
 * places of most of that, if it was measured and is worth a line. */
void head_put_calls(const struct report *report, const struct export_job *job, struct buf *out);

/* Appends the lines below it; n_rows: number of the report's rows that are shown. */
void foot_put(const struct report *report, const struct export_job *job, size_t n_rows, struct buf *out);

/* --- forms of vars --- */

/* As CSV or JSON. */
report_maker vars_make_answer;

/* --- the self-test --- */

/* The figures of the skid self-test in one line. Ordinary code. */

/* Appends what the JSON text of a profile's skid figures says; other text is appended as it is. */
void skid_text(struct buf *out, const char *json);

#endif
