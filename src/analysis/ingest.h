/* SPDX-License-Identifier: BSD-3-Clause */
/* One profile after the other into the store: nodes are merged, values that are not zero go into a temporary file. Any
 * number of threads, each with a scratch of its own. Ordinary code. */
#ifndef LOCUS_ANALYSIS_INGEST_H
#define LOCUS_ANALYSIS_INGEST_H

#include "analysis/rawstore.h"
#include "base/scratch.h"
#include "fmt/hpcrun.h"

/* What all threads share. */
struct ingest {
    struct raw_store *store;
    struct spill *spill;
    pthread_mutex_t metrics_mutex;
    struct strtab metrics;         /* names, in the order in which threads met them */
    bool data_metrics[UINT16_MAX]; /* metrics that have values in data-centric trees */
    bool is_spill_full;            /* the temporary file could not be written: no profile can be read any more */
};

/* A value of a profile as the temporary file holds it: 14 bytes each. */
struct ingest_value {
    uint32_t node;   /* id in the store */
    uint16_t metric; /* index of ingest.metrics */
    double value;    /* multiplied by the period */
};

#define INGEST_VALUE_BYTES 14u

/* A record of a trace there: 12 bytes each. */
struct ingest_event {
    uint64_t time_ns;
    uint32_t node; /* id in the store, RAW_NONE for one that the profile does not have */
};

#define INGEST_EVENT_BYTES 12u

struct ingest_total {
    uint16_t metric;
    double value;
};

/* What is left of a profile. */
struct ingested {
    struct spill_piece *pieces; /* [n_pieces] each a whole number of values */
    size_t n_pieces, cap_pieces;
    struct ingest_total *totals; /* [n_totals] over all nodes, of metrics that have any */
    size_t n_totals, cap_totals;
    struct spill_piece *trace_pieces; /* [n_trace_pieces] each a whole number of events */
    size_t n_trace_pieces, cap_trace_pieces;
    uint64_t n_events, min_time_ns, max_time_ns; /* of the trace */
    bool is_disordered;                          /* its times do not ascend */
};

/* The nodes of one epoch by their ids in the profile. */
struct raw_ids {
    uint32_t *slots; /* [n_slots] index + 1, 0 empty */
    size_t n_slots;
    uint32_t *ids;   /* [n] absolute */
    uint32_t *nodes; /* [n] ids in the store */
    uint32_t *flags; /* [n] enum raw_flag, and RAW_IN_DATA */
    size_t n, capacity, cap_nodes, cap_flags;
};

struct ingest_scratch {
    struct raw_ids ids;
    struct buf values;
    uint16_t *metrics; /* of the epoch: index of ingest.metrics */
    double *sums;      /* of the epoch's metrics */
    uint32_t *modules; /* [65536] of the epoch: id in the store */
    size_t cap_metrics, cap_sums, cap_modules, n_roots;
    const struct hpcrun_profile *head;
};

/* Called at the end of each epoch, when all its nodes are merged: whether it counts. */
struct ingest_reader {
    void *context;
    int (*epoch)(void *context, const struct hpcrun_profile *head, const struct raw_ids *ids, struct error *err);
};

/* Reads the profile at path. *profile must be empty; the caller frees it by ingested_fini.
 * err: as hpcrun_visit; ERR_FORMAT (the nodes are no tree), ERR_IO, ERR_MEMORY, the reader's */
int ingest_profile(struct ingest *ingest, struct ingest_scratch *scratch, const char *path,
                   const struct ingest_reader *reader, struct ingested *profile, struct error *err);

/* Reads the trace beside the profile at path, if there is one, when the nodes of the profile are merged; any thread.
 * err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY; the profile is without trace then */
int ingest_trace(struct ingest *ingest, const char *profile_path, const struct hpcrun_profile *head,
                 const struct raw_ids *ids, struct ingested *profile, struct error *err);

/* Free everything. */
void ingested_fini(struct ingested *profile);
void ingest_scratch_fini(struct ingest_scratch *scratch);

/* Empties ids and makes room for n nodes; adds one, whose id is not there yet and for which there is room.
 * raw_ids_begin: false when out of memory. */
bool raw_ids_begin(struct raw_ids *ids, size_t n);
void raw_ids_add(struct raw_ids *ids, uint32_t id, uint32_t node, uint32_t flags);
void raw_ids_fini(struct raw_ids *ids);

/* The store's id of the profile's node, RAW_NONE when there is none. */
uint32_t raw_ids_find(const struct raw_ids *ids, uint32_t id);

/* Decodes a value. */
struct ingest_value ingest_value_at(const char *bytes);

#endif
