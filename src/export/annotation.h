/* SPDX-License-Identifier: BSD-3-Clause */
/* What is shown of a file or of functions that the user named: their lines with what each costs, the source beside
 * them, and the words for the data that a row touched. Ordinary code. */
#ifndef LOCUS_EXPORT_ANNOTATION_H
#define LOCUS_EXPORT_ANNOTATION_H

#include "analysis/report/code-table.h"
#include "answer/answer.h"
#include "table/table.h"

/* --- the data of a row --- */

/* Appends "62 % table, 20 % keys": the variables with the most of the row's own value. */
void code_put_data(const struct code_table *table, const struct code_row *row, struct buf *text);

/* The title of a column of such words; "": data are not known. */
const char *code_data_title(const struct model *model);

/* The columns of what a row costs, by itself and with what it calls, and of all variables that it spent that on. */
#define CODE_COSTS 4
#define CODE_DATA 2
extern const struct column code_cost_columns[CODE_COSTS + CODE_DATA];

/* The cells of the costs, and those of the variables. */
void code_fill_costs(const struct code_table *table, const struct code_row *row, struct table *rows);
void code_fill_data(const struct code_table *table, const struct code_row *row, struct table *rows);

/* --- a source --- */

/* The copy of a source in a database, line by line. All zero is empty: there is none. */
struct source_lines {
    struct buf text; /* newlines have become zeros */
    size_t *starts;  /* [n] of each line */
    size_t n, capacity;
};

/* Reads the copy of the file called name, if the database at directory has it; false when out of memory. */
bool source_lines_read(const char *directory, const char *name, struct source_lines *lines);
void source_lines_fini(struct source_lines *lines);

/* Appends line 1 ... n with blanks for tabs, as it would be shown; nothing for others. */
void source_lines_put(const struct source_lines *lines, uint32_t line, struct buf *out);

/* --- lines of a file, or of functions --- */

/* A line to be shown. */
struct shown_line {
    const struct code_row *row; /* NULL: it has no samples */
    uint32_t line;              /* of the source; 0: in another file, or nowhere in it */
};

struct annotation {
    const struct export_job *job;
    struct code_table table; /* rows of the file shown first, by line */
    size_t n_in_file;        /* so many rows are in the file shown */
    struct code_functions functions;
    uint32_t *names; /* [n_names] of the functions, when it is about functions; owned */
    size_t n_names, cap_names;
    uint32_t file;    /* string id: whose source is shown */
    uint32_t first;   /* of functions: the first line of the first one, 0 = not known */
    double inclusive; /* of one function, with what it calls */
    struct source_lines source;
    struct shown_line *shown; /* [n_shown] in the order of the source */
    size_t n_shown, cap_shown;
    double rest; /* own value of the lines that are left out */
    size_t n_left;
};

/* Finds what the job's subject names, and fills in table (the rows of the file, or of the functions, in no order),
 * names, functions and file. annotation_fini frees it, unless this fails.
 * err: ERR_NOT_FOUND (nothing, or several things, go by that name), ERR_MEMORY */
int annotation_find(struct annotation *annotation, const struct export_job *job, struct error *err);

/* The same, with the lines to be shown: those that cost the least percent, and so many lines of context around each.
 * err: as annotation_find */
int annotation_make(struct annotation *annotation, const struct export_job *job, double least, size_t context,
                    struct error *err);
void annotation_fini(struct annotation *annotation);

/* Appends the names of the functions that it is about, for a report's head; nothing for a file. */
void annotation_put_functions(const struct annotation *annotation, struct buf *out);

/* export-instructions.c: annotate --instructions. */
extern const struct report_forms instructions_forms;

#endif
