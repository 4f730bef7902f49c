/* SPDX-License-Identifier: BSD-3-Clause */
/* What stands above and below the table of variables on a terminal. Above, the answer in short: program and run, the
 * samples and what they are of, and what is not in them. Below, what the special rows and columns mean and whatever is
 * wrong; and for those who ask (-v) how it was measured. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_HEAD_H
#define LOCUS_EXPORT_VARS_HEAD_H

#include "analysis/report/report.h"
#include "export/exporters.h"

/* Appends the lines above the table. */
void head_put(const struct report *report, const struct export_job *job, struct buf *out);

/* Appends the lines below it; n_rows: of the report's rows those that are shown. */
void foot_put(const struct report *report, const struct export_job *job, size_t n_rows, struct buf *out);

#endif
