/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of exporters: each turns a part of the model into text of one form. To add one, write export-x.c with one
 * struct exporter and add its row to exporters.c. Ordinary code. */
#ifndef LOCUS_EXPORT_EXPORTERS_H
#define LOCUS_EXPORT_EXPORTERS_H

#include "analysis/model.h"

struct thread_values;
struct table;

/* What the user asked for. */
struct export_job {
    const struct model *model;
    const char *report, *form;          /* those of the exporter */
    const struct thread_values *values; /* NULL = none */
    const char *directory;              /* of the database */
    const char *subject; /* annotate: the file or function; cpus, patterns, sharing: the variable, NULL: all */
    size_t metric;
    size_t top;       /* rows at most; 0 = all */
    bool fits_screen; /* vars, text: fewer rows and words where that makes the report fit one screen */
    bool is_tight;    /* ... and no legends, to leave the room to rows */
    bool with_unused; /* variables without samples too; annotate: lines without samples */
    bool with_paths;  /* heap variables by allocation path */
    bool at_mark;     /* leaks: what was live at the mark */
    bool by_time;     /* vars: order by all time at a variable, not by the time that waits, or may wait, for memory */
    bool with_fields; /* vars: the fields of each variable */
    bool is_verbose;  /* vars: also how it was measured */
    unsigned by;      /* enum split_by of analysis/report/code-table.h: what the rows are split by, 0 = not */
    bool color;       /* terminal escape sequences may be used */
    bool unicode;     /* characters beyond ASCII may be used for bars */
    unsigned columns; /* width of the terminal */
    const char *const
        *derived; /* [n_derived] "NAME = EXPRESSION": columns of vars, functions, lines, types and trees */
    size_t n_derived;
    double least; /* percent of the total below which rows are left out; negative: as the report likes it */
};

struct exporter {
    /* "vars", "tree", "functions", "lines", "annotate", "annotate instructions", "types", "datatree", "advice",
     * "leaks", "cpus", "numa", "first-touch", "patterns", "sharing", "vars by", "functions by", "lines by", "types by",
     * "annotate by", "regions" (vars by region), "export" (all of the database) */
    const char *report;
    const char *form; /* "text", "csv", "json"; vars, export: "html" */
    /* Appends to out.  err: ERR_MEMORY; leaks, annotate, cpus, first-touch, patterns: ERR_NOT_FOUND; errors of reading
     * job->values */
    int (*write)(const struct export_job *job, struct buf *out, struct error *err);
};

/* NULL when there is none for this report and form. */
const struct exporter *exporters_find(const char *report, const char *form);

/* Appends a report's table as its form wants it, CSV or a JSON array of rows, and frees the table.  err: ERR_MEMORY */
int export_put_rows(const struct export_job *job, struct table *table, struct buf *out, struct error *err);

/* The same; as JSON, behind the beginning of an object that holds the program and, under the name, the rows. */
int export_put_table(const struct export_job *job, const char *name, struct table *table, struct buf *out,
                     struct error *err);

/* Appends an answer and frees it: as CSV its rows, as JSON an object with the members of the head's row and, under the
 * name, the rows.  err: ERR_MEMORY */
int export_put_answer(const struct export_job *job, struct table *head, const char *name, struct table *rows,
                      struct buf *out, struct error *err);

#endif
