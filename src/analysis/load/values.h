/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of the threads, which are too many for a model: they are read profile by profile from a temporary file or
 * an older database. Ordinary code; any thread may read. */
#ifndef LOCUS_ANALYSIS_LOAD_VALUES_H
#define LOCUS_ANALYSIS_LOAD_VALUES_H

#include "analysis/load/ingest.h"
#include "analysis/model.h"

/* An event of a trace: from this time on the thread is in this scope; 0 = idle, or not known. */
struct trace_event {
    uint64_t time_ns;
    uint32_t scope;
};

struct trace_info {
    uint64_t n_events; /* 0: there is no trace */
    uint64_t min_time_ns, max_time_ns;
    bool is_disordered; /* times are not ascending */
};

/* Where values and traces are read from; in a team (base/workers.h), those of the profiles that this member read. */
struct value_source {
    void *self;
    /* Passes the values of a profile (numbered as in struct thread) to take, in pieces. They belong to statements and
     * are in no particular order; several may have the same statement and metric. Every visit passes the same pieces.
     * err: ERR_IO, ERR_FORMAT, ERR_MEMORY, what take returns */
    int (*visit)(void *self, size_t profile,
                 int (*take)(void *context, const struct cell *cells, size_t n_cells, struct error *err), void *context,
                 struct error *err);
    struct trace_info (*trace)(void *self, size_t profile);
    /* The same for the events of its trace. */
    int (*visit_trace)(void *self, size_t profile,
                       int (*take)(void *context, const struct trace_event *events, size_t n_events, struct error *err),
                       void *context, struct error *err);
    void (*free)(void *self);
};

#define VALUE_PARTS 3 /* CAUSE_PARTS of causes.h */

/* Metrics whose values are split: parts of each value also count for other metrics. How large they are depends on the
 * node. All zero: no metric is split. */
struct value_splits {
    struct value_split {
        uint32_t metric, parts[VALUE_PARTS]; /* of the model */
    } * metrics;                             /* [n_metrics] */
    size_t n_metrics;
    double *rows; /* [n_rows][n_metrics][VALUE_PARTS] 1 for all of it */
    size_t n_rows;
    uint32_t *row_of; /* [ids or nodes] row + 1, 0 = none: the values are not split */
};

/* What was ingested: pieces of a temporary file, and what their numbers mean in the model. */
struct spilled_values {
    struct spill spill;
    struct ingested *profiles; /* [n_profiles] in the numbering of struct thread */
    size_t n_profiles, cap_profiles;
    uint32_t *scopes; /* [n_scopes] of the model, by id in the store */
    uint32_t *traced; /* [n_scopes] the same for the nodes of traces */
    size_t n_scopes;
    uint32_t *metrics; /* [n_metrics] of the model, by index of ingest.metrics */
    size_t n_metrics;
    struct value_splits splits; /* by id in the store */
};

/* A source that reads *values, which is malloc'ed and which it owns from then on. */
struct value_source values_spilled(struct spilled_values *values);

/* Two sources as one: the first n_first profiles are those of *first, the others those of *second. scopes [n_scopes],
 * malloc'ed: the new number of each scope of *first. *joined owns all three; on failure they are freed.
 * err: ERR_MEMORY */
int values_join(struct value_source *first, size_t n_first, uint32_t *scopes, size_t n_scopes,
                struct value_source *second, struct value_source *joined, struct error *err);

/* Frees the source; all zero is fine. */
void values_free(struct value_source *source);

#endif
