/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the code the samples fell: a row for each function or for each line, with the data that it touched there;
 * and rows split by where their samples were taken. Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_CODE_TABLE_H
#define LOCUS_ANALYSIS_REPORT_CODE_TABLE_H

#include "analysis/load/values.h"
#include "analysis/report/report.h"

enum code_kind {
    CODE_FUNCTION = 0,
    CODE_LINE,       /* a line of a function */
    CODE_PLACE,      /* a line of a file, whatever function it is in there */
    CODE_INSTRUCTION /* an instruction; a line of a function where these are not kept */
};

/* Functions of one file. */
struct code_functions {
    const uint32_t *names; /* [n_names] string ids */
    size_t n_names;
    uint32_t file; /* string id: where they are declared */
};

/* What a function or line took on one variable. */
struct code_data {
    uint32_t variable; /* index into the model's */
    double value;
};

struct code_row {
    uint32_t function, file, module; /* string ids */
    uint32_t line;                   /* of a function: where it begins; 0 = not known */
    uint64_t vaddr;                  /* of an instruction; 0 = it is none */
    double own;                      /* without the functions that are called there, inlined ones included */
    double inclusive;                /* with these; recursion counts once */
    struct code_data *data;          /* [n_data] by value, highest first; what lies in no variable is not there */
    size_t n_data, cap_data;
};

struct code_table {
    const struct model *model;
    size_t metric;
    const struct code_functions *only; /* NULL = all */
    double total;                      /* of the metric, which shares refer to */
    struct code_row *rows;             /* [n_rows] by own value, highest first; those without any value are left out */
    size_t n_rows, cap_rows;
    struct slots slots;
};

/* Where the rows of code come from of a model that has no scopes: of what another tool wrote. */
struct code_source {
    /* Adds the rows of a kind by code_table_put, and sets table->total.  err: ERR_NOT_FOUND (there are none of this
     * kind, and why), ERR_MEMORY, errors of the values */
    int (*fill)(const struct code_source *source, enum code_kind kind, struct code_table *table, struct error *err);
    bool has_instructions; /* some row of an instruction has an address */
};

/* The row with the key of `like`, added when it is new; valid until the next call. NULL when out of memory. */
struct code_row *code_table_put(struct code_table *table, enum code_kind kind, const struct code_row *like);

/* Whether the table is about a function, by string ids of its name and of the file that it is declared in. */
bool code_table_wants(const struct code_table *table, uint32_t function, uint32_t file);

/* Makes the rows for a metric. only: of lines, those that lie in these functions (not in what is inlined there);
 * borrowed, NULL = all.  err: ERR_MEMORY, and as code_source.fill */
int code_table_make(const struct model *model, size_t metric, enum code_kind kind, const struct code_functions *only,
                    struct code_table *table, struct error *err);
void code_table_fini(struct code_table *table);

/* Another metric in the rows of a table of that kind: own and inclusive [n_rows], 0 where it has none.  err: as
 * code_table_make */
int code_table_values(const struct code_table *table, enum code_kind kind, size_t metric, double *own,
                      double *inclusive, struct error *err);

/* row_of [n_scopes], all 0: receives 1 + the index of the row whose own value contains that of the statement; of_data:
 * those of the statements in the tree of data instead.  False when out of memory. */
bool code_table_rows(const struct code_table *table, enum code_kind kind, bool of_data, uint32_t *row_of);

/* --- rows by thread, process, rank, CPU, core, package, NUMA node, region or function (split.c) --- */

/* Only what is not zero is kept, so that 1000 variables of 10000 threads are no burden. */

enum split_by {
    SPLIT_NONE = 0,
    SPLIT_THREAD,
    SPLIT_PROCESS,
    SPLIT_RANK,
    SPLIT_CPU,
    SPLIT_CORE,
    SPLIT_PACKAGE,
    SPLIT_NODE,
    SPLIT_REGION,
    SPLIT_PHASE,
    SPLIT_FUNCTION,
    SPLIT_BYS
};

#define SPLIT_NOT_KNOWN "?" /* the column of what is in none that is known */

struct split_cell {
    uint32_t row, column;
    double value;
};

/* How the values of a row are spread over all columns, those without value included. */
struct split_spread {
    size_t n_with_value;
    double mean, least, most; /* values */
    size_t least_at, most_at; /* columns, the first of equal ones */
    double imbalance;         /* most / mean; 0 when the mean is 0 */
};

struct split {
    enum split_by by;
    bool is_spread;  /* the columns are threads, processes, ranks or places, which should share the work */
    const char *key; /* what a column's name is: "rank.thread" */
    struct strtab columns;
    const char *
        *programs;     /* [columns] of threads, processes and ranks, borrowed from the model: what ran there, at last;
                        * "": several. NULL: by something else */
    bool has_programs; /* they differ */
    size_t n_rows;
    struct split_cell *cells; /* [n_cells] by row, then by column; row n_rows: sums over all samples of a column */
    size_t n_cells, cap_cells;
    size_t *first; /* [n_rows + 2] where the cells of each row begin */
};

/* How wide the titles of the columns are in a table, in characters: that of the longest one, from least to most. */
size_t split_title_width(const struct split *split, size_t least, size_t most);

/* "thread", "process", "rank", "cpu", "core", "package", "node", "region", "phase", "function"; SPLIT_NONE for any
 * other name, or the name of one. */
enum split_by split_by_named(const char *name);
/* Whether the columns are parts of the program's code, so that no thread need be known. */
static inline bool split_by_is_code(enum split_by by)
{
    return by == SPLIT_REGION || by == SPLIT_PHASE || by == SPLIT_FUNCTION;
}
/* Whether the columns are where threads ran: CPUs, cores, packages or nodes. */
bool split_by_is_place(enum split_by by);
const char *split_by_name(enum split_by by);

/* Further rows of a split, which have parts of the others: fields. */
struct split_fields {
    size_t n; /* they follow the rows of the report */
    struct split_part {
        uint32_t scope; /* or, where only rows are known, row of the report */
        uint32_t field;
        double fraction;
    } * of_scopes, *of_rows; /* [n_of_scopes], [n_of_rows]; owned by the caller */
    size_t n_of_scopes, cap_of_scopes, n_of_rows, cap_of_rows;
};

/* Splits the rows of a report of variables; row i is that of the report, and row n_rows + i that of field i; fields
 * NULL: none. Samples that were dropped have the column of their thread, in older databases SPLIT_NOT_KNOWN, as they
 * have where columns are code. By CPU, core, package or node, what is in no variable is shared out like the samples of
 * its thread on variables. values: of the threads of the database, not needed where columns are code
 * (split_by_is_code). err: ERR_NOT_FOUND (CPUs or nodes are not known), ERR_MEMORY, errors of the values */
int split_variables(const struct report *report, enum split_by by, const struct value_source *values,
                    const struct split_fields *fields, struct split *split, struct error *err);

/* The variables whose elements are of one type, or rows that are no variables. */
struct split_type {
    const char *name; /* "" = not known */
    uint64_t element_bytes;
    bool is_special; /* the name is that of the rows: "<compute>" */
    double value;
    size_t number; /* in the order of the report */
};

/* A field of such a type, of the event that the metric's fields are of. */
struct split_field {
    uint32_t type; /* index */
    uint32_t flags;
    const char *path; /* within an element; "" = all of it */
    uint64_t offset_bytes;
    double value;
};

struct split_types {
    struct split_type *types; /* [n] by value, highest first */
    size_t n, capacity;
    struct split_field *fields; /* [n_fields] by type, then by value; none of older databases */
    size_t n_fields, cap_fields;
};

/* parts.c: splits a report by the types of its variables: row i is that of type i, and row n + i that of field i.
 * err: as split_variables; both results are empty then */
int split_types_make(const struct report *report, enum split_by by, const struct value_source *values,
                     struct split_types *types, struct split *split, struct error *err);
void split_types_fini(struct split_types *types);

/* Splits the own values of functions or lines; row i is that of the table. By CPU, core, package or node values are
 * shared out: in the proportions of what the thread took there on the variable that the statement accesses, or on all.
 * err: ERR_UNSUPPORTED (by function), ERR_NOT_FOUND (CPUs are not known), ERR_MEMORY, errors of the values */
int split_code(const struct code_table *table, enum code_kind kind, enum split_by by, const struct value_source *values,
               struct split *split, struct error *err);

/* Splits the values of scopes with all that is below them; row i is that of scopes[i] [n_rows], parents come first, all
 * of the call tree or all of the tree of data. values: of the threads of the database. By function: what each statement
 * is in, by region: around it.  err: as split_code, without ERR_UNSUPPORTED */
int split_scopes(const struct model *model, size_t metric, const uint32_t *scopes, size_t n_rows, enum split_by by,
                 const struct value_source *values, struct split *split, struct error *err);

/* Adds rows up: row_of [n_rows] is 1 + the new row of each, 0 for none of the n. The sums of the columns stay.
 * err: ERR_MEMORY */
int split_join_rows(struct split *split, const uint32_t *row_of, size_t n, struct error *err);

/* What the names of processes need to differ. */
struct split_naming {
    bool by_rank;     /* each process has a rank of its own */
    bool has_one;     /* there is only one */
    bool has_hosts;   /* they are on several hosts */
    bool has_repeats; /* of several measurements */
};

/* What the names of the model's processes need. */
struct split_naming split_naming_of(const struct model *model);

/* Appends the name of the column that a thread belongs to, by SPLIT_THREAD, SPLIT_PROCESS or SPLIT_RANK. */
void split_put_column(const struct model *model, const struct split_naming *naming, enum split_by by, uint32_t thread,
                      struct buf *out);

/* Appends a thread's name as SPLIT_THREAD has it; and what such a name consists of: "thread", "rank.thread" or
 * "process.thread". */
void split_put_thread(const struct model *model, const struct split_naming *naming, uint32_t thread, struct buf *out);
const char *split_thread_key(const struct split_naming *naming);

/* Frees the split. */
void split_fini(struct split *split);

/* The spread of a row; row n_rows: of all samples. */
struct split_spread split_spread_of(const struct split *split, size_t row);

#endif
