/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurement files in memory: .hpcrun profiles of versions 02.00, 02.10, 03.00, 03.10 (dense) and 04.00 (sparse), and
 * their reader and writer. The structure keeps everything the file holds, so that reading and writing a 03.10 file
 * gives the same bytes. Layouts: FORMAT.md. Ordinary code. */
#ifndef LOCUS_FMT_HPCRUN_H
#define LOCUS_FMT_HPCRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "fmt/file.h"
#include "fmt/json.h"
#include "sampling/abi/data-src.h"

/* --- names of metrics --- */

/* Metrics of hardware samples that are not in the table of sampling/abi/data-src.h: their names in profiles and
 * databases, and which data sources count as remote. Shared by writers and readers. Any context. */

/* Cycles from issue to data, summed over the samples and multiplied by the event's period like every count. */
#define MEM_LATENCY_NAME "LATENCY (cycles)"

/* The part of it that belongs to accesses served by another NUMA node. */
#define MEM_REMOTE_LATENCY_NAME "LATENCY-REMOTE (cycles)"

/* Served by another node: its memory, or a cache there. */
#define MEM_REMOTE_METRICS (1u << MEM_HITM_REMOTE | 1u << MEM_REMOTE_HIT | 1u << MEM_DRAM_REMOTE)

/* --- names of allocation metrics --- */

/* Names of the metrics of allocations, the first three as in the original. Shared by writers and readers. Any
 * context. */

#define LEAK_ALLOCATED_NAME "Bytes Allocated"
#define LEAK_FREED_NAME "Bytes Freed"
#define LEAK_LEAKED_NAME "Bytes Leaked"
#define LEAK_MARKED_NAME "Bytes Live at Mark"
#define SIZE_NAME "Size (byte)"    /* of the blocks by allocation path: hidden */
#define LEAK_NAMES_PREFIX "Bytes " /* all of them begin so, and none of our other metrics does */

/* --- the file --- */

struct hpcrun_pair {
    char *name, *value;
};

enum hpcrun_node_type {
    HPCRUN_NODE_REGULAR = 0,
    HPCRUN_NODE_LEAF = 1,
    HPCRUN_NODE_ALLOCATION = 2,
    HPCRUN_NODE_GLOBAL_VARIABLE = 4,
    HPCRUN_NODE_UNKNOWN_ATTRIBUTE = 8,
    HPCRUN_NODE_ROOT = 16,
    HPCRUN_NODE_MEMACCESS = 32
};

enum hpcrun_value_format {
    HPCRUN_VALUE_NULL = 0,
    HPCRUN_VALUE_INT = 1,
    HPCRUN_VALUE_REAL = 2,
    HPCRUN_VALUE_ADDRESS = 3
};

struct hpcrun_metric {
    char *name, *description, *formula, *format;
    uint8_t flags[16]; /* as in the file: 0 type, 1 value type, 2 value format, 4-5 partner, 6 show, 7 show percent */
    uint64_t period;   /* readers multiply every raw value by it */
    uint16_t is_frequency, is_multiplexed;
    double mean_period;
    uint64_t n_samples;
};

struct hpcrun_module {
    uint16_t id;
    char *path;
    uint64_t flags;
};

/* id: as stored (negative = leaf). values: n_metrics words of the profile's dense matrix (values[] below). */
struct hpcrun_node {
    int32_t id, parent;
    uint32_t type; /* enum hpcrun_node_type, OR-ed; 0 in versions without node_type */
    uint16_t module;
    uint64_t ip;
    uint8_t unwound; /* 04.00 only: flags byte */
};

struct hpcrun_id {
    uint16_t kind; /* low 14 bits kind, top 2 bits interpretation */
    uint64_t physical, logical;
};

/* One profile (one epoch; further epochs of old files are chained through next). All zero is empty. */
struct hpcrun_profile {
    char version[6];           /* "03.10" */
    uint8_t short_metrics;     /* 1: a 02.00 file from before 2017, whose metric entries end with the format string */
    struct hpcrun_pair *pairs; /* [n_pairs] header */
    size_t n_pairs, cap_pairs;
    uint64_t epoch_flags, granularity;
    uint32_t ra_to_callsite;
    struct hpcrun_pair *epoch_pairs; /* [n_epoch_pairs] */
    size_t n_epoch_pairs, cap_epoch_pairs;
    struct hpcrun_metric *metrics; /* [n_metrics] */
    size_t n_metrics, cap_metrics;
    struct hpcrun_module *modules; /* [n_modules] */
    size_t n_modules, cap_modules;
    struct hpcrun_node *nodes; /* [n_nodes] in file order */
    size_t n_nodes, cap_nodes;
    uint64_t *values; /* [n_nodes][n_metrics] raw words: integer, or double bits by the metric's value format */
    size_t cap_values;
    /* 04.00 only */
    char **id_kinds; /* [n_id_kinds] names of the id-tuple dictionary */
    uint16_t *id_kind_numbers;
    size_t n_id_kinds;
    struct hpcrun_id *ids; /* [n_ids] this profile's id tuple */
    size_t n_ids;
    struct hpcrun_profile *next; /* next epoch, NULL in practice */
};

/* Reads a whole file. *profile must be empty; on failure it is left empty.
 * err: ERR_IO, ERR_FORMAT (file, offset and reason), ERR_UNSUPPORTED (version), ERR_MEMORY */
int hpcrun_read(const char *path, struct hpcrun_profile *profile, struct error *err);

/* Same from memory; name is used in messages. */
int hpcrun_read_memory(const void *bytes, size_t len_bytes, const char *name, struct hpcrun_profile *profile,
                       struct error *err);

struct buf;

/* Appends a dense profile (02.00, 02.10, 03.00, 03.10 by profile->version) to out or, _file, writes it to a new file
 * that must not exist (written under the final name only when complete).
 * err: ERR_IO, ERR_RANGE (a count or id that the format cannot hold), ERR_UNSUPPORTED (04.00) */
int hpcrun_write(const struct hpcrun_profile *profile, struct buf *out, struct error *err);
int hpcrun_write_file(const struct hpcrun_profile *profile, const char *path, struct error *err);

/* The same in pieces, for large profiles of one epoch: first everything before the nodes (the profile has none, n_nodes
 * will follow), then each node, values: [n_metrics].  err: ERR_MEMORY, ERR_RANGE, ERR_UNSUPPORTED */
int hpcrun_write_head(const struct hpcrun_profile *profile, size_t n_nodes, struct buf *out, struct error *err);
void hpcrun_write_node(const struct hpcrun_profile *profile, const struct hpcrun_node *node, const uint64_t *values,
                       struct buf *out);

/* Value of a header pair, NULL when it is not there; borrowed. */
const char *hpcrun_pair_value(const struct hpcrun_profile *profile, const char *name);

/* Building: append; strings are copied; return the index, -1 when out of memory. hpcrun_add_node also appends
 * n_metrics zero words. Metrics must be complete before the first node. */
int64_t hpcrun_add_pair(struct hpcrun_profile *profile, const char *name, const char *value);
int64_t hpcrun_add_epoch_pair(struct hpcrun_profile *profile, const char *name, const char *value);
int64_t hpcrun_add_metric(struct hpcrun_profile *profile, const char *name, const char *description,
                          enum hpcrun_value_format format, uint64_t period, int show, int show_percent);
int64_t hpcrun_add_module(struct hpcrun_profile *profile, uint16_t id, const char *path, uint64_t flags);
int64_t hpcrun_add_node(struct hpcrun_profile *profile, const struct hpcrun_node *node);

/* Frees everything and makes the profile empty. */
void hpcrun_fini(struct hpcrun_profile *profile);

/* --- node by node --- */

/* Walking through a profile of any size without holding it in memory: its tables first, then node by node with the
 * values that are not zero. Ordinary code. */

struct hpcrun_value {
    uint32_t metric; /* index */
    uint64_t word;   /* as stored: integer, or double bits by the metric's value format; not 0 */
};

struct hpcrun_visitor {
    void *context;
    /* An epoch of n_nodes nodes begins; the nodes and values in head itself do not count. Borrowed. */
    int (*epoch)(void *context, const struct hpcrun_profile *head, size_t n_nodes, struct error *err);
    /* The next node. values [n_values] by metric; borrowed. */
    int (*node)(void *context, const struct hpcrun_node *node, const struct hpcrun_value *values, size_t n_values,
                struct error *err);
    /* The epoch is over. */
    int (*end)(void *context, const struct hpcrun_profile *head, struct error *err);
};

/* Visits the profile at path; the visitor's failures end it. Profiles of one epoch in a dense version from 02.10 on
 * take a few hundred kilobytes; others are read as a whole.  err: as hpcrun_read, and the visitor's */
int hpcrun_visit(const char *path, const struct hpcrun_visitor *visitor, struct error *err);

/* --- as text and JSON --- */

/* Profiles as text and as JSON, for people and for tests. Ordinary code. */

/* Appends the profile in the lines of HPCToolkit's own dump; what that leaves out follows in similar lines when it is
 * not zero. Sets out->failed when out of memory. */
void hpcrun_put_text(const struct hpcrun_profile *profile, struct buf *out);

/* Appends the profile as JSON from which the same file can be made again. */
void hpcrun_put_json(const struct hpcrun_profile *profile, struct buf *out);

/* Makes a profile of such JSON; *profile must be empty and is left empty on failure. Returns take->code. */
int hpcrun_take_json(struct json_take *take, const json_t *root, struct hpcrun_profile *profile);

/* --- private part --- */

/* The parts of a profile file that the dense and the sparse layout share; used by hpcrun-*.c only.
 * Each function takes its part at the cursor, adds it to the profile and returns in->code. Ordinary code. */

#define HPCRUN_MAGIC "HPCRUN-profile____"
#define HPCRUN_EPOCH_MAGIC "EPOCH___"
#define HPCRUN_EPOCH_FLAG_LOGICAL 1u /* nodes carry logical (LUSH) fields */

/* What differs between the versions. */
struct hpcrun_layout {
    const char *version;
    bool sparse;
    bool has_type;   /* nodes begin with node_type */
    bool may_be_old; /* metric entries may lack their last 20 bytes */
};

/* The layout of a version text of five characters, NULL when it is not one of ours. */
const struct hpcrun_layout *hpcrun_layout_of(const char *version);

/* Size of a node without its metric values, in bytes. */
size_t hpcrun_node_bytes(const struct hpcrun_layout *layout);

/* Magic, version, byte order and header pairs. The version must have been set. */
int hpcrun_get_header(struct wire_in *in, struct hpcrun_profile *profile);

/* Metric table, load map (both from their count on). */
int hpcrun_get_metrics(struct wire_in *in, struct hpcrun_profile *profile);
int hpcrun_get_modules(struct wire_in *in, struct hpcrun_profile *profile);

#endif
