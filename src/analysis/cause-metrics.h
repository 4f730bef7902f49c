/* SPDX-License-Identifier: BSD-3-Clause */
/* What waited for memory, was execution, or cannot be told, as metrics of their own beside the event's: by context of
 * the data-centric tree and by thread, from the verdicts of causes.h on each instruction at each variable. Ordinary
 * code. */
#ifndef LOCUS_ANALYSIS_CAUSE_METRICS_H
#define LOCUS_ANALYSIS_CAUSE_METRICS_H

#include "analysis/build.h"
#include "analysis/load/values.h"

/* Adds the metrics of each event that has causes, when all side files are read and before the model is built: of
 * "EADDR (usec)" they are called "EADDR memory (usec)", "EADDR execution (usec)" and "EADDR unverified (usec)".
 * err: ERR_MEMORY */
int cause_metrics_add(struct model *model, const struct cause_table *causes, struct error *err);

/* Index of the metric that has this part of the metric whole, -1 when there is none. */
int64_t cause_metrics_part(const struct model *model, size_t whole, enum cause_part part);

/* When the scopes are made, not yet sorted, and the causes are judged: which part of the values of each node of the
 * tree goes to which of these metrics; splits->row_of is [n_nodes]. Time in which a thread waited for another is
 * execution, as in the report.  err: ERR_MEMORY */
int cause_metrics_split(const struct build *build, struct value_splits *splits, struct error *err);

#endif
