/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the code the samples fell: a row for each function or for each line, with the data that it touched there.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_CODE_TABLE_H
#define LOCUS_ANALYSIS_REPORT_CODE_TABLE_H

#include "analysis/model.h"

enum code_kind {
    CODE_FUNCTION = 0,
    CODE_LINE, /* a line of a function */
    CODE_PLACE /* a line of a file, whatever function it is in there */
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

/* Makes the rows for a metric. only: of lines, those that lie in these functions (not in what is inlined there);
 * borrowed, NULL = all.  err: ERR_MEMORY */
int code_table_make(const struct model *model, size_t metric, enum code_kind kind, const struct code_functions *only,
                    struct code_table *table, struct error *err);
void code_table_fini(struct code_table *table);

/* row_of [n_scopes], all 0: receives 1 + the index of the row whose own value contains that of the statement.
 * False when out of memory. */
bool code_table_rows(const struct code_table *table, enum code_kind kind, uint32_t *row_of);

#endif
