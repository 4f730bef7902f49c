/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of the table of variables that are about fields. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_FIELDS_H
#define LOCUS_EXPORT_VARS_FIELDS_H

#include "analysis/report/report.h"
#include "export/exporters.h"

/* One line of the head: how many samples have a type, and from where. Nothing in reports without places. */
void fields_put_summary(const struct report *report, const struct export_job *job, struct buf *out);

/* The lines below a row: with the job's with_fields its fields, and always the advice that follows from them.
 * indent: characters before them. */
void fields_put_row(const struct export_job *job, const struct report_row *row, size_t indent, struct buf *out);

#endif
