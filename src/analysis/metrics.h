/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics that are computed from others: derived metrics, and below them the causes of time as metrics.
 * Derived metrics are numbers that are computed for a report from what the hardware says about the accesses to a
 * variable. One file per family (metric-x.c) and one row in metrics.c; exporters print whatever is in the table.
 * Counts are estimates of all accesses (samples times period, scaled where the counter was shared), so that they can be
 * compared across events, threads and runs; latencies come from the samples as they are. Ordinary code. */
#ifndef LOCUS_ANALYSIS_METRICS_H
#define LOCUS_ANALYSIS_METRICS_H

#include "analysis/build/build.h"
#include "analysis/load/values.h"
#include "analysis/model.h"
#include "sampling/abi/data-src.h"

#define METRICS_TIME_UNIT "(usec)"

/* What was measured for a set of accesses: those to a variable, or all. */
struct metric_input {
    double counts[MEM_METRICS];           /* accesses with each metric of data-src.h */
    double latency_cycles, remote_cycles; /* of all accesses; and of those that another NUMA node served */
    struct latency_sum latency;           /* of the samples */
    double work;                          /* of the whole measurement: instructions, or loads if those were not
                                           * counted */
};

struct metric_derived {
    const char *name;        /* in CSV and JSON */
    const char *title;       /* column of the table on a terminal, at most five characters; NULL: not in it */
    const char *description; /* formula in words */
    /* NAN where it is not defined, such as a share of nothing. */
    double (*value)(const struct metric_derived *row, const struct metric_input *input);
    uint32_t above, below, without; /* for value functions that are ratios: sets of metrics, one bit each */
    double parameter;               /* for those that take a number */
    bool is_of_histogram;           /* metrics_is_beyond says whether a value is only known to be larger */
};

/* Row i of all derived metrics, NULL at the end of the table. */
const struct metric_derived *metrics_row(size_t i);

/* Indexes of the hardware's metrics in the model, -1 for none. */
struct metric_columns {
    int64_t counts[MEM_METRICS], latency, remote;
};

/* Finds them by name. */
void metrics_columns(const struct model *model, struct metric_columns *columns);

/* Fills the values of [n] subtrees that do not overlap from the model; latency and work are left alone. */
void metrics_fill(const struct model *model, const struct metric_columns *columns, const uint32_t *scopes, size_t n,
                  struct metric_input *input);

/* Adds the latencies of an event (UINT32_MAX: of all events) in from [n] to *sum. */
void metrics_add_latency(const struct variable_latency *from, size_t n, uint32_t event, struct latency_sum *sum);

/* Adds the latencies in from [n] to those of the variable, event by event; false when out of memory. */
bool metrics_merge_latencies(struct variable *variable, const struct variable_latency *from, size_t n);

/* True when the model has metrics of accesses that come from hardware. */
bool metrics_has_hardware(const struct model *model);

/* True for the metrics that several events may add to: those of data-src.h and the latencies. */
bool metrics_is_access(const char *name);

/* True for metrics of time. */
bool metrics_is_time(const char *name);

/* True for the time that threads wait without a processor: each wait is measured, none is sampled. */
bool metrics_is_blocked(const char *name);

#define METRICS_READ "IO Bytes Read"

/* True for the bytes that calls read or write: each call is measured, none is sampled, and the variables are files. */
bool metrics_is_io(const char *name);

/* Index of the metric that counts instructions, -1 when none was measured. */
int64_t metrics_instructions(const struct model *model);

/* The latency that percent of the samples stay below, core cycles: interpolated within the histogram's bin, or the
 * beginning of the last bin, which holds everything larger; NAN when there is no sample. */
double metrics_percentile(const struct latency_sum *latency, double percent);

/* Whether a percentile is at the end of the histogram, so that the latency may be any larger one. */
bool metrics_is_beyond(const struct metric_derived *row, double value);

/* Value functions for the table's rows: the sum of the counts in a set; and 100 * above / (below - without), NAN when
 * the divisor is 0. */
double metrics_sum(const struct metric_derived *row, const struct metric_input *input);
double metrics_percent(const struct metric_derived *row, const struct metric_input *input);

/* --- causes as metrics --- */

/* What waited for memory, was execution, or is not known, as metrics of their own beside the event's: by context of the
 * data-centric tree and by thread, from the verdicts of causes.h on each instruction at each variable. Ordinary
 * code. */

/* Adds the metrics of each event that has causes, once all side files are read and before the model is built: for
 * "EADDR (usec)" they are called "EADDR memory (usec)", "EADDR execution (usec)" and "EADDR unverified (usec)".
 * err: ERR_MEMORY */
int cause_metrics_add(struct model *model, const struct cause_table *causes, struct error *err);

/* Index of the metric that has this part of the metric whole, -1 when there is none. */
int64_t cause_metrics_part(const struct model *model, size_t whole, enum cause_part part);

/* Computes which part of the values of each node of the tree goes to which of these metrics, once the scopes are made,
 * not yet sorted, and the causes are judged; splits->row_of is [n_nodes]. Time in which a thread waited for another is
 * execution, as in the report.  err: ERR_MEMORY */
int cause_metrics_split(const struct build *build, struct value_splits *splits, struct error *err);

#endif
