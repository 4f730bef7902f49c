/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of the threads, which a model has no room for: they are taken profile by profile from where they lie, a
 * temporary file or an older database. Ordinary code; any thread may take. */
#ifndef LOCUS_ANALYSIS_VALUES_H
#define LOCUS_ANALYSIS_VALUES_H

#include "analysis/ingest.h"
#include "analysis/model.h"

struct value_source {
    void *self;
    /* Calls take with pieces of the values of the model's thread t: values of statements, in no particular order, the
     * same statement and metric perhaps several times, but always the same ones in the same pieces.
     * err: ERR_IO, ERR_MEMORY, what take returns */
    int (*visit)(void *self, const struct model *model, size_t t,
                 int (*take)(void *context, const struct cell *cells, size_t n_cells, struct error *err), void *context,
                 struct error *err);
    void (*free)(void *self);
};

/* What was ingested: pieces of a temporary file, and what their numbers became. */
struct spilled_values {
    struct spill spill;
    struct ingested *profiles; /* [n_profiles] as struct thread counts them */
    size_t n_profiles, cap_profiles;
    uint32_t *scopes;  /* [n_scopes] of the model, by id in the store */
    size_t n_scopes;
    uint32_t *metrics; /* [n_metrics] of the model, by index of ingest.metrics */
    size_t n_metrics;
};

/* A source over *values, malloc'ed, which it owns from then on. */
struct value_source values_spilled(struct spilled_values *values);

/* Frees the source; all zero is fine. */
void values_free(struct value_source *source);

#endif
