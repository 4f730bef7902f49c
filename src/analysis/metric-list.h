/* SPDX-License-Identifier: BSD-3-Clause */
/* The families of derived metrics, for metrics.c and the files that define them. Each ends with an empty row. */
#ifndef LOCUS_ANALYSIS_METRIC_LIST_H
#define LOCUS_ANALYSIS_METRIC_LIST_H

#include "analysis/metrics.h"

extern const struct metric_derived metric_latency[], metric_levels[], metric_remote[], metric_access[];

#endif
