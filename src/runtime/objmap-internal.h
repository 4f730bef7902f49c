/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the object map: the shapes that its parts share. Nobody outside objmap*.c includes it.
 *
 * Page map: granules of 64 or 16 KiB, a leaf of 512 granule slots, two levels of nodes above. A slot is 0, a record,
 * a list of records (tag 1) or, when more than OBJMAP_SPLIT_ABOVE records share the granule, a split into 4 KiB slots
 * (tag 2). Node entries hold a record that covers their whole region beside the child. Nodes and leaves are never
 * freed; records, lists and splits retire by epochs.
 * Locks, in the order they are taken: a wide lock (only operations that leave a domain), one cache at a time, then the
 * lock of the huge entries or of the pool. A cache's lock guards its shards: their trees, counters and slots.
 * Where a lock cannot be had, because its owner is the thread itself or will never give it back, the operation is
 * refused, half-done if it must be; in the second case so is every later one, and readers find nothing any more. */
#ifndef LOCUS_RUNTIME_OBJMAP_INTERNAL_H
#define LOCUS_RUNTIME_OBJMAP_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/start-filter.h"
#include "runtime/objmap.h"

#pragma GCC visibility push(hidden)

#define OBJMAP_ADDRESS_BITS 49 /* 48 of user addresses and OBJMAP_POOL_LAYER */
#define OBJMAP_LEAF_BITS 9
#define OBJMAP_SUB_SHIFT 12  /* slots of a split granule */
#define OBJMAP_SPLIT_ABOVE 8 /* records in a granule */
#define OBJMAP_SHARDS 4096   /* a shard serves the domains (4 granules) that hash to it */
#define OBJMAP_DOMAIN_BITS 2 /* granules of a domain */
#define OBJMAP_TREE_BITS 6   /* splay trees of a domain: some records each, so that few are touched */
#define OBJMAP_FILTER_BITS 9 /* start counters of a shard */
#define OBJMAP_CACHES 128    /* locks, each with memory of its own; serves the shards that are equal to it modulo it */
#define OBJMAP_WIDE_LOCKS 16 /* of operations that take several caches one after the other */
#define OBJMAP_READER_GROUPS (OBJMAP_READERS / 64)
#define OBJMAP_PENDING_LIMIT 65536 /* retirements that may wait before new blocks are refused */

/* A handler of the program may come on top of whoever holds a lock, and fork, or enter another hook: then the same
 * thread must not wait for itself. The owner is known by an address that is the thread's own; while it is in fork, by
 * that address with OBJMAP_FORKING. */
struct objmap_lock {
    _Atomic uintptr_t owner; /* 0: free */
};

#define OBJMAP_FORKING 1u

/* A live block and its place in a splay tree. */
struct objmap_record {
    struct objmap_block block;
    struct objmap_record *left, *right;
};

/* Records of one slot in address order. An item is the offset of the record's start in the slot (0 when it starts
 * before) << 48 | its address. Every position is filled: unused ones repeat a neighbour, so that a removal and most
 * insertions are a store into a published list while readers search it. A reader may be held up over many such changes,
 * and then search positions of different times: it sees that by the version. */
struct objmap_list {
    uint16_t n, capacity;      /* different records; positions */
    _Atomic uint32_t version;  /* advanced before each change of a published list */
    _Atomic uint64_t items[];
};

struct objmap_split {
    _Atomic uintptr_t slots[16]; /* 0, record or list; 4 are used with 16 KiB granules */
};

struct objmap_leaf {
    _Atomic uintptr_t slots[1 << OBJMAP_LEAF_BITS];
};

struct objmap_entry {
    _Atomic uintptr_t whole; /* record that covers the entry's region */
    _Atomic uintptr_t child; /* node or leaf */
};

struct objmap_node {
    struct objmap_entry entries[1]; /* [1 << node_bits] */
};

#define OBJMAP_TAG_LIST 1u
#define OBJMAP_TAG_SPLIT 2u
#define OBJMAP_TAGS 3u

struct objmap_shard {
    struct objmap_record *trees[1 << OBJMAP_TREE_BITS];
};

/* Epoch slot of a reader: 0 outside, else the epoch it entered in. */
struct objmap_reader {
    _Alignas(64) _Atomic uint64_t epoch;
};

#define OBJMAP_CLASSES 15
#define OBJMAP_CLASS_RECORD 2
#define OBJMAP_CLASS_SPLIT 4
#define OBJMAP_CLASS_BATCH 8
#define OBJMAP_BATCH_ITEMS 61

/* Retired items that wait for the readers of their time to leave. */
struct objmap_batch {
    struct objmap_batch *next;
    uint64_t epoch; /* last epoch in which a reader may have seen them */
    uint64_t n;
    uintptr_t items[OBJMAP_BATCH_ITEMS]; /* address | class */
};

struct objmap_magazine {
    void *first; /* free items, linked through their first word */
    uint32_t n;
};

/* A lock with the memory and the counters that are used under it. */
struct objmap_cache {
    _Alignas(64) struct objmap_lock lock;
    struct objmap_magazine current[OBJMAP_CLASSES], previous[OBJMAP_CLASSES];
    struct objmap_batch *open, *oldest, *newest; /* being filled; closed, in order of their epochs */
    _Atomic int64_t n_live;
    _Atomic uint64_t n_refused, n_replaced;
};

/* The map. Owned by objmap-find-sig.c, because the reader must be self-contained. */
struct objmap_state {
    _Atomic bool ready, has_pools;
    _Atomic bool is_broken; /* and not ready: a lock was never given back, and what it guards may be half-way */
    unsigned granule_shift, domain_shift, node_bits;
    struct objmap_node *top;
    struct objmap_shard *shards;   /* [OBJMAP_SHARDS] */
    struct start_filter filter;    /* a shard has its own counters, changed under its lock */
    struct objmap_cache *caches;   /* [OBJMAP_CACHES] */
    struct objmap_reader *readers; /* [OBJMAP_READERS] */
    _Atomic uint64_t reader_groups[OBJMAP_READER_GROUPS / 64]; /* bit: some slot of the 64 was ever used */
    _Atomic uint64_t epoch;
    _Atomic uint64_t n_pending, n_pending_max, bytes_memory;
    struct objmap_lock huge; /* clearing and following objmap_entry.whole */
    struct objmap_lock wide[OBJMAP_WIDE_LOCKS];
};

/* The only instance.  ctx: any */
struct objmap_state *objmap_state_sig(void);

/* Waits until the lock is free and takes it: spins, then yields, then sleeps, for n_sleeps of 50 us at most. False when
 * it is the owner's already, when the map is broken, or after that time. errno is kept.  ctx: hook */
bool objmap_lock_wait_hook(struct objmap_lock *lock, uintptr_t owner, unsigned n_sleeps);

#define OBJMAP_SLEEPS 50000 /* a holder that was descheduled comes back before; then the map is broken */

/* False: the lock is not held, and the operation has to be given up.  ctx: hook */
static inline bool objmap_lock_hook(struct objmap_lock *lock, uintptr_t owner)
{
    uintptr_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&lock->owner, &nobody, owner, memory_order_acquire,
                                                   memory_order_relaxed) ||
           objmap_lock_wait_hook(lock, owner, OBJMAP_SLEEPS);
}

static inline void objmap_unlock_hook(struct objmap_lock *lock)
{
    atomic_store_explicit(&lock->owner, 0, memory_order_release);
}

static inline void objmap_break(struct objmap_state *map)
{
    atomic_store(&map->is_broken, true);
    atomic_store(&map->ready, false);
}

static inline unsigned objmap_shard_index(const struct objmap_state *map, uintptr_t address)
{
    uintptr_t domain = address >> map->domain_shift;
    return (unsigned)((domain ^ domain >> 12 ^ domain >> 24) & (OBJMAP_SHARDS - 1));
}

/* The filter folds addresses into shards as objmap_shard_index does. */
_Static_assert(OBJMAP_SHARDS << OBJMAP_FILTER_BITS == 1 << START_FILTER_BITS, "counters of all shards");
_Static_assert(OBJMAP_FILTER_BITS == START_FILTER_LOCAL_BITS, "counters of one shard");

static inline struct objmap_record *objmap_item_record(uint64_t item)
{
    return (struct objmap_record *)(uintptr_t)(item & 0xffffffffffffu);
}

static inline unsigned objmap_item_offset(uint64_t item)
{
    return (unsigned)(item >> 48);
}

/* What an operation holds: the cache of the domain it works on; never more than one. */
struct objmap_cursor {
    struct objmap_state *map;
    uintptr_t owner; /* of its locks */
    struct objmap_cache *cache; /* NULL: none */
};

/* The address's shard; -1 when it cannot be held: then none is. */
static inline int objmap_cursor_hold_hook(struct objmap_cursor *cursor, uintptr_t address)
{
    unsigned shard = objmap_shard_index(cursor->map, address);
    struct objmap_cache *cache = &cursor->map->caches[shard % OBJMAP_CACHES];
    if (__builtin_expect(cursor->cache != cache, 0)) {
        if (cursor->cache)
            objmap_unlock_hook(&cursor->cache->lock);
        cursor->cache = objmap_lock_hook(&cache->lock, cursor->owner) ? cache : NULL;
        if (!cursor->cache)
            return -1;
    }
    return (int)shard;
}

/* Who owns the locks of an operation that holds this cache. */
static inline uintptr_t objmap_cache_owner(const struct objmap_cache *cache)
{
    return atomic_load_explicit(&cache->lock.owner, memory_order_relaxed);
}

static inline void objmap_cursor_release_hook(struct objmap_cursor *cursor)
{
    if (cursor->cache)
        objmap_unlock_hook(&cursor->cache->lock);
    cursor->cache = NULL;
}

/* --- pool-hook.c: memory; every cache argument must be locked by the caller --- */

/* Zeroed pages of the map's own, never given back; NULL when there are none.  ctx: hook */
void *objmap_pages_hook(size_t len_bytes);

/* Zeroed memory of len_bytes (a multiple of 64) that lives as long as the process; NULL when there is none. owner: of
 * the operation's locks. */
void *objmap_carve_hook(size_t len_bytes, uintptr_t owner);

/* Smallest class that holds len_bytes, OBJMAP_CLASSES when none does; and the bytes of a class. */
unsigned objmap_class_of(size_t len_bytes);
size_t objmap_class_bytes(unsigned class);

/* An item of the class (content undefined), NULL when there is no memory; and back, when no reader ever saw it. */
void *objmap_take_hook(struct objmap_cache *cache, unsigned class);
void objmap_give_hook(struct objmap_cache *cache, void *item, unsigned class);

/* For tests: fill items with 0xDB when they are given back. */
void objmap_poison_hook(bool on);

/* --- retire-hook.c --- */

/* Gives the item back once no reader can hold it any more. It must already be unreachable for new readers. */
void objmap_retire_hook(struct objmap_cache *cache, void *item, unsigned class);

/* Closes the open batch and gives back all batches of the cache that no reader can hold. */
void objmap_reclaim_hook(struct objmap_cache *cache);

/* Clears all epoch slots: in a child after fork, where the readers do not exist. */
void objmap_forget_readers_hook(void);

/* --- splay-hook.c: ordered by block.start --- */

/* Adds record; returns the record of the same start that it replaced, or NULL. */
struct objmap_record *objmap_splay_insert_hook(struct objmap_record **root, struct objmap_record *record);

/* The record that starts at start (left in the tree, at its root), or NULL. */
struct objmap_record *objmap_splay_find_hook(struct objmap_record **root, uintptr_t start);

/* Takes the record that starts at start out of the tree, or NULL. */
struct objmap_record *objmap_splay_remove_hook(struct objmap_record **root, uintptr_t start);

/* --- slot-hook.c and pagemap-hook.c --- */

enum objmap_result { OBJMAP_OK = 0, OBJMAP_NO_MEMORY, OBJMAP_CONFLICT };

/* One change of the page map. */
struct objmap_edit {
    struct objmap_cursor *cursor;
    struct objmap_record *record;
    bool force;                           /* do not look for overlaps */
    const struct objmap_record *replaces; /* its entries are overwritten in slots that begin at or after ... */
    uintptr_t keep_below;                 /* ... this address */
};

/* Enters edit->record into the slot (its cache held) that begins at base and is 1 << shift bytes wide; a slot of
 * OBJMAP_SUB_SHIFT never splits. */
enum objmap_result objmap_slot_add_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base,
                                        unsigned shift);

/* Removes all entries of edit->record from the slot; does nothing when there are none; cannot fail. */
void objmap_slot_remove_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base, unsigned shift);

/* What to do with the records of a slot, with the bounds that the search of overlaps needs. */
struct objmap_visitor {
    bool (*visit)(struct objmap_visitor *visitor, struct objmap_record *record, uintptr_t base, uintptr_t end);
    uintptr_t start, end; /* for the search of overlaps */
    uintptr_t found_start, found_end;
    void (*call)(const struct objmap_block *block, void *ctx); /* for objmap_visit_hook */
    void *ctx;
};

/* Calls visit for the records of the slot in address order until it returns true; returns what it returned. base is
 * that of the (4 KiB) slot that holds the entry. */
bool objmap_slot_visit_hook(struct objmap_visitor *visitor, const _Atomic uintptr_t *slot, uintptr_t base,
                            unsigned shift);

/* Enters or removes edit->record in the whole page map. Adding stops at the first failure: the caller then removes. */
enum objmap_result objmap_pagemap_add_hook(const struct objmap_edit *edit);
void objmap_pagemap_remove_hook(const struct objmap_edit *edit);

/* Visits the entries of [start, end) in address order until visit returns true; a record may be visited once per slot
 * that it touches. */
bool objmap_pagemap_visit_hook(struct objmap_cursor *cursor, struct objmap_visitor *visitor, uintptr_t start,
                               uintptr_t end);

#pragma GCC visibility pop

#endif
