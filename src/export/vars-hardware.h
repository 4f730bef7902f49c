/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of variables for a terminal, where hardware told about each access: latencies and cache levels take the
 * place of size and site, which get a line of their own. Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_HARDWARE_H
#define LOCUS_EXPORT_VARS_HARDWARE_H

#include "analysis/report.h"
#include "export/vars-fields.h"
#include "export/exporters.h"

/* Appends what is to know of the events beside the fates: samples without metric, throttling, shared counters. */
void hardware_put_counters(const struct report *report, struct buf *text);

/* Appends the labelled lines about all accesses together; nothing when the report is not about hardware. */
void hardware_put_summary(const struct report *report, const struct export_job *job, struct buf *out);

/* Appends the title of the table, and a row: its numbers, then size and site. */
void hardware_put_head(const struct export_job *job, struct buf *out);
void hardware_put_row(const struct export_job *job, const struct report_row *row, struct buf *out);

#endif
