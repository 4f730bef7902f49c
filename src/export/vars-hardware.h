/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of variables for a terminal, where hardware told about each access: what stands above and below the table.
 * Ordinary code. */
#ifndef LOCUS_EXPORT_VARS_HARDWARE_H
#define LOCUS_EXPORT_VARS_HARDWARE_H

#include "analysis/report/report.h"
#include "export/exporters.h"
#include "export/vars-fields.h"

/* Appends what is to know of the events beside the fates: samples without metric, throttling, shared counters. */
void hardware_put_counters(const struct report *report, struct buf *text);

/* Appends the labelled lines about all accesses together; nothing when the report is not about hardware. */
void hardware_put_summary(const struct report *report, const struct export_job *job, struct buf *out);

/* Appends what the columns of the hardware mean; nothing when there are none. */
void hardware_put_legend(const struct report *report, const struct export_job *job, struct buf *out);

#endif
