/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree that all threads merge their profiles into: nodes are found or added by (parent, load module, address) in
 * shards with a lock each. The ids of nodes depend on which thread was first; raw_tree_make puts them into an order
 * that does not. Ordinary code, any number of threads. */
#ifndef LOCUS_ANALYSIS_LOAD_INGEST_H
#define LOCUS_ANALYSIS_LOAD_INGEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/build/symbolize.h"
#include "base/scratch.h"
#include "base/vec.h"
#include "fmt/hpcrun.h"

#define RAW_NONE UINT32_MAX
#define RAW_SHARDS 64u
#define RAW_BLOCKS 18u
#define RAW_FIRST_BLOCK 1024u /* nodes in the first block of a shard; each next one has twice as many */

/* What is known about a node, OR-ed over all profiles: node types in the low 16 bits, and these. */
enum raw_flag {
    RAW_IS_LIVE = 1 << 16, /* it is in some profile that was read to its end */
    RAW_HAS_VALUES = 1 << 17,
    RAW_IS_TRACED = 1 << 18
};

struct raw_entry {
    uint64_t ip;
    uint32_t parent, module; /* id in the store, RAW_NONE for the root; module: index + 1 of modules, 0 = none */
    uint32_t flags;
};

struct raw_shard {
    pthread_mutex_t mutex;
    uint32_t *slots; /* [n_slots] number in the shard + 1, 0 empty */
    size_t n_slots;
    uint32_t n_nodes;
    struct raw_entry *blocks[RAW_BLOCKS]; /* entries never move */
};

struct raw_store {
    struct raw_shard shards[RAW_SHARDS];
    pthread_mutex_t modules_mutex;
    struct strtab modules; /* paths, in the order in which threads found them */
};

/* NULL when out of memory. */
struct raw_store *raw_store_new(void);
void raw_store_free(struct raw_store *store);

/* Index + 1 of a load module; 0 when out of memory. */
uint32_t raw_store_module(struct raw_store *store, const char *path);

/* The child of parent (RAW_NONE: the root) with this key, added when new; RAW_NONE when out of memory. */
uint32_t raw_store_child(struct raw_store *store, uint32_t parent, uint32_t module, uint64_t ip);

/* The node with this id, which raw_store_child returned to this thread, unless all threads are done. */
struct raw_entry *raw_store_entry(const struct raw_store *store, uint32_t id);

/* Adds to a node's flags. */
void raw_store_mark(struct raw_store *store, uint32_t id, uint32_t flags);

/* Number of nodes of a shard; their ids are shard + RAW_SHARDS * (0, 1, ...). Not while others add. */
static inline uint32_t raw_store_count(const struct raw_store *store, uint32_t shard)
{
    return store->shards[shard].n_nodes;
}

/* --- the tree of one profile --- */

/* All profiles merged by address: one tree whose nodes are (parent, load module, address), without regard to sources.
 * Its order follows from the keys alone, whichever threads or ranks merged it in whatever order. Ordinary code. */

/* Node; node 0 is the root of all profiles. A parent has a lower index than its children, which are in order of the
 * module's path and the address. */
struct raw_node {
    uint64_t ip;
    uint32_t parent; /* RAW_NONE for node 0 */
    uint32_t module; /* symbolizer id */
    uint32_t type;   /* enum hpcrun_node_type bits, OR of all profiles */
    bool has_children, has_values;
    bool is_traced;      /* some trace refers to it */
    uint8_t role;        /* enum scope_role, set by placeholders_assign */
    bool in_data;        /* at or below the data-centric root */
    uint32_t variable;   /* index into the model's variables, RAW_NONE outside them */
    uint32_t inner, own; /* scopes for the node's children and for its own values; 0 = none */
    uint32_t traced;     /* scope for traces that refer to it; 0 = none */
};

struct raw_tree {
    struct raw_node *nodes; /* [n_nodes] */
    size_t n_nodes;
    uint32_t *index_of; /* [n_ids] by id in the store; RAW_NONE for nodes that do not count */
    size_t n_ids;
};

/* Makes the tree of the store's live nodes, in order. Modules new to the symbolizer are added.  err: ERR_MEMORY */
int raw_tree_make(const struct raw_store *store, struct symbolizer *symbolizer, struct raw_tree *tree,
                  struct error *err);

/* Frees everything and makes the tree empty. */
void raw_tree_fini(struct raw_tree *tree);

/* --- profiles --- */

/* Reads one profile after the other into the store: nodes are merged, non-zero values go into a temporary file. Any
 * number of threads, each with a scratch of its own. Ordinary code. */

/* What all threads share. */
struct ingest {
    struct raw_store *store;
    struct spill *spill;
    pthread_mutex_t metrics_mutex;
    struct strtab metrics;         /* names, in the order in which threads found them */
    bool data_metrics[UINT16_MAX]; /* metrics that have values in data-centric trees */
    bool is_spill_full;            /* the temporary file could not be written: no more profiles can be read */
};

/* A value of a profile, 14 bytes in the temporary file. */
struct ingest_value {
    uint32_t node;   /* id in the store */
    uint16_t metric; /* index of ingest.metrics */
    double value;    /* multiplied by the period */
};

#define INGEST_VALUE_BYTES 14u

/* A record of a trace, 12 bytes in the temporary file. */
struct ingest_event {
    uint64_t time_ns;
    uint32_t node; /* id in the store, RAW_NONE if the profile does not have it */
};

#define INGEST_EVENT_BYTES 12u

struct ingest_total {
    uint16_t metric;
    double value;
};

/* What remains of a profile after reading it. */
struct ingested {
    struct spill_piece *pieces; /* [n_pieces] each a whole number of values */
    size_t n_pieces, cap_pieces;
    struct ingest_total *totals; /* [n_totals] over all nodes, of metrics that have any */
    size_t n_totals, cap_totals;
    struct spill_piece *trace_pieces; /* [n_trace_pieces] each a whole number of events */
    size_t n_trace_pieces, cap_trace_pieces;
    uint64_t n_events, min_time_ns, max_time_ns; /* of the trace */
    bool is_disordered;                          /* its times are not ascending */
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

/* Called at the end of each epoch, when all its nodes are merged; decides whether it counts. */
struct ingest_reader {
    void *context;
    int (*epoch)(void *context, const struct hpcrun_profile *head, const struct raw_ids *ids, struct error *err);
};

/* Reads the profile at path. *profile must be empty; the caller frees it with ingested_fini.
 * err: as hpcrun_visit; ERR_FORMAT (the nodes are no tree), ERR_IO, ERR_MEMORY, the reader's */
int ingest_profile(struct ingest *ingest, struct ingest_scratch *scratch, const char *path,
                   const struct ingest_reader *reader, struct ingested *profile, struct error *err);

/* Reads the trace beside the profile at path, if there is one, once the nodes of the profile are merged; any thread.
 * err: ERR_IO, ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY; the profile then has no trace */
int ingest_trace(struct ingest *ingest, const char *profile_path, const struct hpcrun_profile *head,
                 const struct raw_ids *ids, struct ingested *profile, struct error *err);

/* Free everything. */
void ingested_fini(struct ingested *profile);
void ingest_scratch_fini(struct ingest_scratch *scratch);

/* raw_ids_begin empties ids and makes room for n nodes; false when out of memory. raw_ids_add adds one whose id is new;
 * there must be room. */
bool raw_ids_begin(struct raw_ids *ids, size_t n);
void raw_ids_add(struct raw_ids *ids, uint32_t id, uint32_t node, uint32_t flags);
void raw_ids_fini(struct raw_ids *ids);

/* The store's id of the profile's node, RAW_NONE when there is none. */
uint32_t raw_ids_find(const struct raw_ids *ids, uint32_t id);

/* Decodes a value. */
struct ingest_value ingest_value_at(const char *bytes);

#endif
