/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands below a row of the table of variables: where its samples were taken. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_LINES_H
#define LOCUS_EXPORT_VARS_LINES_H

#include "analysis/report/report.h"
#include "export/vars-fields.h"

#define MEANING_PERCENT 5.0 /* of the samples: rows below that get no words about what they were spent on */

/* Appends samples by NUMA node, those with at least half a percent; on machines with one nothing. */
void lines_put_places(const struct report *report, const struct report_row *row, struct buf *text);

/* Appends the i-th of the row's lines, its part of the row, and the loop around it where that is new. */
void lines_put_place(const struct report *report, const struct report_row *row, size_t i, struct buf *text);

#endif
