/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the code the samples fell: a row for each function or for each line, with the data that it touched there.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_CODE_TABLE_H
#define LOCUS_ANALYSIS_REPORT_CODE_TABLE_H

#include "analysis/model.h"

enum code_kind { CODE_FUNCTION = 0, CODE_LINE };

/* What a function or line took on one variable. */
struct code_data {
    uint32_t variable; /* index into the model's */
    double value;
};

struct code_row {
    uint32_t function, file, module; /* string ids */
    uint32_t line;                   /* of a function: where it begins; 0 = not known */
    double own;                      /* of a function: without the functions that it calls, inlined ones included */
    double inclusive;                /* of a function: with these; recursion counts once. Of a line: the same as own */
    struct code_data *data;          /* [n_data] by value, highest first; what lies in no variable is not there */
    size_t n_data, cap_data;
};

struct code_table {
    const struct model *model;
    size_t metric;
    double total;          /* of the metric, which shares refer to */
    struct code_row *rows; /* [n_rows] by own value, highest first; those without any value are left out */
    size_t n_rows, cap_rows;
    struct slots slots;
};

/* Makes the rows for a metric.  err: ERR_MEMORY */
int code_table_make(const struct model *model, size_t metric, enum code_kind kind, struct code_table *table,
                    struct error *err);
void code_table_fini(struct code_table *table);

#endif
