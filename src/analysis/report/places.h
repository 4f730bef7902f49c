/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in the code the samples fell: a row for each function or for each line, with the data that it touched there.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_REPORT_PLACES_H
#define LOCUS_ANALYSIS_REPORT_PLACES_H

#include "analysis/model.h"

enum place_kind { PLACE_FUNCTION = 0, PLACE_LINE };

/* What a place took on one variable. */
struct place_data {
    uint32_t variable; /* index into the model's */
    double value;
};

struct place_row {
    uint32_t function, file, module; /* string ids */
    uint32_t line;                   /* of a function: where it begins; 0 = not known */
    double own;                      /* of a function: without the functions that it calls, inlined ones included */
    double inclusive;                /* of a function: with these; recursion counts once. Of a line: the same as own */
    struct place_data *data;         /* [n_data] by value, highest first; what lies in no variable is not there */
    size_t n_data, cap_data;
};

struct places {
    const struct model *model;
    size_t metric;
    double total;           /* of the metric, which shares refer to */
    struct place_row *rows; /* [n_rows] by own value, highest first; places without any value are left out */
    size_t n_rows, cap_rows;
    struct slots slots;
};

/* Makes the rows for a metric.  err: ERR_MEMORY */
int places_make(const struct model *model, size_t metric, enum place_kind kind, struct places *places,
                struct error *err);
void places_fini(struct places *places);

#endif
