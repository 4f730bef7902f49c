/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree that all threads merge their profiles into: nodes are found or added by (parent, load module, address) in
 * shards with a lock each. The ids that nodes get depend on who was first; rawtree.h puts them into an order that does
 * not. Ordinary code, any number of threads. */
#ifndef LOCUS_ANALYSIS_RAWSTORE_H
#define LOCUS_ANALYSIS_RAWSTORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define RAW_NONE UINT32_MAX
#define RAW_SHARDS 64u
#define RAW_BLOCKS 18u
#define RAW_FIRST_BLOCK 1024u /* nodes in the first block of a shard; each next one has twice as many */

/* What is known of a node, OR-ed from all profiles: node types in the low 16 bits, and these. */
enum raw_flag {
    RAW_IS_LIVE = 1 << 16, /* some profile that was read to its end has it */
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
    struct strtab modules; /* paths, in the order in which threads met them */
};

/* NULL when out of memory. */
struct raw_store *raw_store_new(void);
void raw_store_free(struct raw_store *store);

/* Index + 1 of a load module; 0 when out of memory. */
uint32_t raw_store_module(struct raw_store *store, const char *path);

/* The child of parent (RAW_NONE: the root) with this key, added when new; RAW_NONE when out of memory. */
uint32_t raw_store_child(struct raw_store *store, uint32_t parent, uint32_t module, uint64_t ip);

/* The node with this id, which is one that raw_store_child returned to this thread, or all threads are done. */
struct raw_entry *raw_store_entry(const struct raw_store *store, uint32_t id);

/* Adds to a node's flags. */
void raw_store_mark(struct raw_store *store, uint32_t id, uint32_t flags);

/* Number of nodes of a shard; their ids are shard + RAW_SHARDS * (0, 1, ...). Not while others add. */
static inline uint32_t raw_store_count(const struct raw_store *store, uint32_t shard)
{
    return store->shards[shard].n_nodes;
}

#endif
