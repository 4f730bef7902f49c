/* SPDX-License-Identifier: BSD-3-Clause */
/* The object map: which recorded block holds an address. Two indexes over the same block records: splay trees (one
 * lock each, sharded by address, never touched by the signal handler) for the allocation side, and a wait-free page map
 * (radix over granules, sorted lists, epochs) for the handler. Records are private memory of the process,
 * not part of the arena; they come from the map's own mmapped memory, never from malloc.
 *
 *   an address (48 bits, and one more for the layer of pools)
 *   |  top node  |  node ...  |  leaf: 9 bits  |  inside the granule: 16 bits (64 KiB) or 14  |
 *        |             |              |
 *        v             v              v
 *   objmap_entry   objmap_entry   slot of the granule: nothing | one record | a list | split into slots of 4 KiB
 *   whole: a record that covers all below                       |
 *   child: node or leaf                                         v
 *                                           objmap_record: start, end, var, flags  <-- the splay trees hold the same
 *
 * The handler goes down from the top within its epoch; the lowest record on the way that holds the address is the
 * answer. While a list is changed, each of its states gives the right answer.
 *
 * The room: objmap-hook.c may call all others, when blocks come and go: near-hook.c (most blocks of the heap, without
 * any of the above), pagemap-hook.c (the page map), memory-hook.c and retire-hook.c (records, and when they are used
 * again). The handler calls objmap-find-sig.c, which changes
 * nothing. Small blocks without a record: small-sig.c, small-shadow-hook.c. */
#ifndef LOCUS_RUNTIME_OBJMAP_OBJMAP_H
#define LOCUS_RUNTIME_OBJMAP_OBJMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/small-sites.h"
#include "arena/arena.h"

/* Of the C library from 2.32 on: whether the process has one thread only, as malloc itself takes it. */
extern char __libc_single_threaded __attribute__((weak));

struct start_filter;

/* A live block or mapping. Immutable after publication, except for the flags. */
struct objmap_block {
    uintptr_t start, end;   /* [start, end) */
    uint64_t var;           /* variable key of arena/arena.h */
    _Atomic uint32_t flags; /* OBJMAP_* */
    uint32_t thread;        /* reference of the arena_thread that allocated it */
    uint64_t weight_bytes;  /* bytes it stands for: its size, or a multiple of it when it was sampled */
};
/* Blocks that a pool hands out lie inside recorded blocks (its slabs), but blocks of one layer must not overlap. So
 * pools have a layer of their own: every call takes a pool's block at its address plus this number. */
#define OBJMAP_POOL_LAYER ((uintptr_t)1 << 48)

#define OBJMAP_RESIZING 1u /* a realloc is under way: the address may already belong to another block */

/* Statistics, for the log and the tests. */
struct objmap_stats {
    uint64_t n_live, n_retired_pending, n_retired_pending_max, bytes_memory;
    uint64_t n_refused;  /* blocks that could not be recorded for lack of memory */
    uint64_t n_replaced; /* blocks dropped because a new one took their range: their release was missed */
};

/* Prepares the map. granule_shift: 16 (64 KiB), or 14 when blocks below 1 KiB are recorded. Returns false when there is
 * not enough address space.  ctx: ordinary or hook, once */
bool objmap_init_hook(unsigned granule_shift);

/* Records [start, start + n_bytes). A block that already holds part of the range is removed first and counted: its
 * release was missed. Nothing is recorded for 0 bytes.
 * ctx: hook   err: false when there is no memory for it, or the range leaves the user half of the address space */
bool objmap_insert_hook(uintptr_t start, size_t n_bytes, uint64_t var, uint32_t thread, uint64_t weight_bytes);

/* Sets the function that is called for each block that is dropped because a new one takes its range. It is called under
 * locks of the map and must not call the map.  ctx: ordinary, before the first block */
void objmap_on_drop(void (*dropped)(const struct objmap_block *block));

/* Whether a recorded block may start at start; a filter of a few loads without a lock or an epoch. There may be false
 * positives, but never false negatives.  ctx: any */
enum start_filter_says objmap_maybe_start_sig(uintptr_t start);

/* The filter behind objmap_maybe_start_sig, for callers that inline it; static storage.  ctx: any */
const struct start_filter *objmap_start_filter_sig(void);

/* Removes the block that starts at start and copies it to *removed (may be NULL). False when there is none.
 * ctx: hook */
bool objmap_remove_hook(uintptr_t start, struct objmap_block *removed);

/* Removes [start, end) from all blocks that overlap it: blocks inside disappear, others are shortened or split in two
 * (same variable). For every overlapped block gone(block, bytes_removed, ctx) is called, under a lock of the map: it
 * must not call the map. gone may be NULL.  ctx: hook */
void objmap_cut_hook(uintptr_t start, uintptr_t end,
                     void (*gone)(const struct objmap_block *block, uint64_t bytes_removed, void *ctx), void *ctx);

/* Sets or clears OBJMAP_RESIZING of the block that starts at start; false when there is none.  ctx: hook */
bool objmap_flag_hook(uintptr_t start, bool resizing);

/* Copies the block that contains address to *found; false when there is none. Enters and leaves an epoch slot of
 * reader (0 <= reader < OBJMAP_READERS; one slot per thread, no two concurrent users).
 * ctx: signal handler, wait-free */
bool objmap_find_sig(unsigned reader, uintptr_t address, struct objmap_block *found);

/* Asks the processor for the memory that an insertion or the removal of the block [start, end) will read, so that it
 * comes while other work is done, and at once, not one part after the other. end may be unknown: start + 1. Returns
 * what _warm_more_ needs, which asks a little later for the parts behind the first ones. Both read without a lock or an
 * epoch, and follow nothing that could be gone.  ctx: any */
const _Atomic uintptr_t *objmap_warm_sig(uintptr_t start, uintptr_t end);
void objmap_warm_more_sig(const _Atomic uintptr_t *slot, uintptr_t start, uintptr_t end);

#define OBJMAP_READERS 65536 /* epoch slots; for readers beyond these, lookups fail and are counted */

/* Whether a block has ever been entered in the layer of pools.  ctx: any */
bool objmap_has_pools_sig(void);

/* Calls visit for every live block in address order; takes each shard's lock in turn: visit must not call the map.
 * ctx: hook */
void objmap_visit_hook(void (*visit)(const struct objmap_block *block, void *ctx), void *ctx);

/* _prepare takes all locks before fork, except those of an operation that the calling thread itself has under way (when
 * a handler of the program interrupted it and forks). _done releases them in the parent and in the child, where no
 * other thread exists. The operation then completes in both.  ctx: pthread_atfork handlers */
void objmap_fork_prepare_hook(void);
void objmap_fork_done_hook(void);

/* The calling thread will never finish the operation that it has under way, if it has one, because a handler of the
 * program has jumped out of it. The map is then given up, since its state is unknown, and the result is true.  ctx:
 * hook */
bool objmap_abandon_hook(void);

/* Current statistics.  ctx: any (values may be a moment old) */
struct objmap_stats objmap_stats_sig(void);

/* --- private part --- */

/* The structures that the parts of the object map share. Not used outside this folder.
 *
 * Page map: granules of 64 or 16 KiB, a leaf of 512 granule slots, two levels of nodes above. A slot is 0, a record,
 * a list of records (tag 1) or, when more than OBJMAP_SPLIT_ABOVE records share the granule, a split into 4 KiB slots
 * (tag 2). Node entries hold a child and a record that covers their whole region. Nodes and leaves are never freed;
 * records, lists and splits retire by epochs.
 * Locks, in the order in which they are taken: a wide lock (only operations that leave a domain), one cache at a time,
 * then the lock of the huge entries or of the memory. A cache's lock guards its shards: their trees, counters and
 * slots.
 * If a lock cannot be taken, because its owner is the thread itself or will never release it, the operation is refused,
 * even if it is then half done; in the second case every later operation is refused, too, and readers find nothing any
 * more. */

#pragma GCC visibility push(hidden)

#define OBJMAP_ADDRESS_BITS 49 /* 48 of user addresses and OBJMAP_POOL_LAYER */
#define OBJMAP_LEAF_BITS 9
#define OBJMAP_SUB_SHIFT 12  /* slots of a split granule */
#define OBJMAP_SPLIT_ABOVE 8 /* records in a granule */
#define OBJMAP_SHARDS 4096   /* a shard serves the domains (4 granules) that hash to it */
#define OBJMAP_DOMAIN_BITS 2 /* granules of a domain */
#define OBJMAP_TREE_BITS 6   /* splay trees of a domain: some records each, so that few are touched */
#define OBJMAP_FILTER_BITS 9 /* bytes of a shard in the filter of starts */
#define OBJMAP_CACHES 128    /* each has a lock and memory; number i serves the shards that are i modulo this */
#define OBJMAP_WIDE_LOCKS 16 /* for operations that take several caches one after the other */
#define OBJMAP_READER_GROUPS (OBJMAP_READERS / 64)
#define OBJMAP_PENDING_LIMIT 65536 /* retirements that may wait before new blocks are refused */

/* A handler of the program may interrupt a thread that holds a lock, and fork or enter another hook: the thread must
 * not wait for itself then. The owner is marked by an address that is unique to the thread, combined with
 * OBJMAP_FORKING while the thread is in fork. */
struct objmap_lock {
    _Atomic uintptr_t owner;    /* 0: free */
    _Atomic uint32_t bed;       /* a futex: where threads sleep until the lock is free; counts those woken */
    _Atomic uint32_t n_waiting; /* threads that sleep */
    _Atomic uint8_t is_waking;  /* one of them is woken and has not come yet: no need to wake another */
};

#define OBJMAP_FORKING 1u

/* A live block and its place in a splay tree. */
struct objmap_record {
    struct objmap_block block;
    struct objmap_record *left, *right;
};

/* Records of one slot in address order. An item is the offset of the record's start in the slot (0 when it starts
 * before) << 48 | its address. Every position is filled: unused ones repeat a neighbour, so that a removal and most
 * insertions can be made by stores into a published list while readers search it. A reader may be interrupted for the
 * length of many such changes and then compare positions of different times; the version shows that. */
struct objmap_list {
    uint16_t n, capacity;     /* different records; positions */
    _Atomic uint32_t version; /* advanced before each change of a published list */
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
#define OBJMAP_CLASS_BATCH 5
#define OBJMAP_BATCH_ITEMS 21 /* few: what waits is cold when it is used again */

/* Retired items that wait until the readers that may still see them have left. */
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
    uint32_t n_readers, n_closed; /* readers that were asked when batches were last given back; batches since then */
    _Atomic uint32_t n_retired;   /* all, modulo 2^32 */
    _Atomic int64_t n_live;
    _Atomic uint64_t n_refused, n_replaced;
};

/* --- blocks near the threshold (near-hook.c) --- */

/* Blocks of the heap from 1 to 64 KiB, one start in a KiB at most, as none is smaller: a table for each MiB of
 * addresses that has such blocks. A unit's word holds the path's node << 32 | size << 16 | start in the unit / 16 << 1
 * | flag; 0: none starts there. The word is written by whoever owns the memory: after malloc, and before free. The
 * reader looks for the last block that starts at or below an address, in the bits. Tables are never freed. */
#define OBJMAP_NEAR_SHIFT 20      /* bytes of a table's addresses, log2 */
#define OBJMAP_NEAR_UNIT_SHIFT 10 /* of a unit's */
#define OBJMAP_NEAR_UNITS (1u << (OBJMAP_NEAR_SHIFT - OBJMAP_NEAR_UNIT_SHIFT))
#define OBJMAP_NEAR_MIN ((size_t)1 << OBJMAP_NEAR_UNIT_SHIFT)
#define OBJMAP_NEAR_MAX 65536
#define OBJMAP_NEAR_REGIONS 16384
#define OBJMAP_NEAR_PROBES 64
#define OBJMAP_NEAR_PLACE 1     /* shift of the start in a word */
#define OBJMAP_NEAR_RESIZING UINT64_C(1) /* in a word */
#define OBJMAP_NEAR_BUSY 1u     /* a region's slot is being filled */

struct objmap_near {
    struct {
        _Atomic uint64_t block;
        _Atomic uint64_t thread; /* reference of the arena_thread that allocated it; written before the word */
    } units[OBJMAP_NEAR_UNITS];
    _Atomic uint64_t bits[OBJMAP_NEAR_UNITS / 64]; /* a set bit: the unit has a word */
};

/* Open addressing by the number of the MiB, linear probing. */
struct objmap_near_region {
    _Atomic uintptr_t base; /* of its addresses; 0: free. Published last */
    _Atomic uintptr_t near; /* address of the table */
};

/* The map. Owned by objmap-find-sig.c, because the reader must be self-contained. */
struct objmap_state {
    _Atomic bool ready, has_pools;
    _Atomic bool is_broken; /* (then not ready) a lock was never given back, and its data may be half changed */
    unsigned granule_shift, domain_shift, node_bits;
    struct objmap_node *top;
    struct objmap_near_region *near; /* [OBJMAP_NEAR_REGIONS]; NULL where smaller blocks are recorded, too */
    _Atomic uint32_t n_near;
    _Atomic uintptr_t near_rest;                               /* memory for more of them */
    struct objmap_shard *shards;                               /* [OBJMAP_SHARDS] */
    struct start_filter filter;                                /* a shard has its own bytes, changed under its lock */
    struct objmap_cache *caches;                               /* [OBJMAP_CACHES] */
    struct objmap_reader *readers;                             /* [OBJMAP_READERS] */
    _Atomic uint64_t reader_groups[OBJMAP_READER_GROUPS / 64]; /* a set bit: one of the 64 slots has been used */
    _Atomic uint64_t readers_used[OBJMAP_READER_GROUPS];       /* which of them; set before the group's bit */
    _Atomic uint32_t readers_end;                              /* all that have been used are below; set before those */
    _Atomic uint64_t epoch;
    _Atomic uint64_t n_pending, n_pending_max, bytes_memory;
    struct objmap_lock huge; /* clearing and following objmap_entry.whole */
    struct objmap_lock wide[OBJMAP_WIDE_LOCKS];
};

/* The only instance.  ctx: any */
struct objmap_state *objmap_state_sig(void);

/* Whether no other thread can come between a load and a store: then no locked instruction is needed. A handler of the
 * program that interrupts this thread changes nothing.  ctx: hook */
static inline bool objmap_is_alone(void)
{
    return &__libc_single_threaded && __libc_single_threaded;
}

/* The table of an address, NULL when there is none.  ctx: any */
static inline struct objmap_near *objmap_near_of(const struct objmap_state *map, uintptr_t address)
{
    uintptr_t tag = address >> OBJMAP_NEAR_SHIFT;
    for (uintptr_t i = 0; map->near && i < OBJMAP_NEAR_PROBES && tag; i++) {
        const struct objmap_near_region *region = &map->near[(tag + i) & (OBJMAP_NEAR_REGIONS - 1)];
        uintptr_t base = atomic_load_explicit(&region->base, memory_order_acquire);
        if (__builtin_expect(base == tag << OBJMAP_NEAR_SHIFT, 1))
            return (struct objmap_near *)atomic_load_explicit(&region->near, memory_order_relaxed);
        if (!base)
            return NULL;
    }
    return NULL;
}

/* Number of an address's unit in its table.  ctx: any */
static inline unsigned objmap_near_unit(uintptr_t address)
{
    return (unsigned)(address >> OBJMAP_NEAR_UNIT_SHIFT) & (OBJMAP_NEAR_UNITS - 1);
}

/* The last unit up to this one that has a word, not further away than the largest block is long; -1 when there is none.
 * ctx: any */
static inline int objmap_near_below(const struct objmap_near *near, unsigned unit)
{
    unsigned i = unit / 64;
    uint64_t bits = atomic_load_explicit(&near->bits[i], memory_order_acquire) << (63 - unit % 64);
    if (bits)
        return (int)unit - __builtin_clzll(bits);
    bits = i ? atomic_load_explicit(&near->bits[i - 1], memory_order_acquire) : 0;
    return bits ? (int)(i * 64 - 1) - __builtin_clzll(bits) : -1;
}

/* Start of the block of a unit's word, in the table of the addresses from base on.  ctx: any */
static inline uintptr_t objmap_near_start(uintptr_t base, int unit, uint64_t word)
{
    return base + ((uintptr_t)unit << OBJMAP_NEAR_UNIT_SHIFT) + ((word >> OBJMAP_NEAR_PLACE & 63) << 4);
}

/* Size of the block of a unit's word, in bytes.  ctx: any */
static inline size_t objmap_near_bytes(uint64_t word)
{
    return word >> 16 & 0xffff;
}

/* The block of a unit's word.  ctx: any */
static inline void objmap_near_copy(struct objmap_block *to, uintptr_t start, uint64_t word, uint64_t thread)
{
    to->start = start;
    to->weight_bytes = objmap_near_bytes(word);
    to->end = start + to->weight_bytes;
    to->var = var_key(VAR_HEAP, 0, (uint32_t)(word >> 32));
    to->thread = (uint32_t)thread;
    atomic_store_explicit(&to->flags, word & OBJMAP_NEAR_RESIZING ? OBJMAP_RESIZING : 0, memory_order_relaxed);
}

/* Enters a block into its table; false when it is none for a table: nothing has been done then. _remove and _flag: as
 * objmap_remove_hook and objmap_flag_hook for blocks in tables.  ctx: hook */
bool objmap_near_insert_hook(uintptr_t start, size_t n_bytes, uint64_t var, uint32_t thread, uint64_t weight_bytes);
bool objmap_near_remove_hook(uintptr_t start, struct objmap_block *removed);
bool objmap_near_flag_hook(uintptr_t start, bool resizing);

/* Whether the page map has a block that overlaps [start, end), also when that cannot be found out.  ctx: hook, no lock
 * held */
bool objmap_overlaps_hook(uintptr_t start, uintptr_t end);

/* Gives the blocks that overlap [start, end) to insert, which enters them into the page map, and takes them out of
 * their tables: readers find each all the time.  ctx: hook, no lock held */
void objmap_near_move_hook(uintptr_t start, uintptr_t end, bool (*insert)(const struct objmap_block *block));

/* Enters a block's start into the filter, or takes it out. is_alone: objmap_is_alone().  ctx: hook */
static inline void objmap_filter_change(const struct objmap_state *map, uintptr_t start, bool begins, bool is_alone)
{
    _Atomic uint8_t *byte = start_filter_at(&map->filter, start);
    uint8_t value = atomic_load_explicit(byte, memory_order_relaxed);
    for (;;) {
        uint8_t next =
            begins ? start_filter_with(value, start_filter_place(&map->filter, start)) : start_filter_without(value);
        if (is_alone)
            atomic_store_explicit(byte, next, memory_order_relaxed);
        else if (!atomic_compare_exchange_weak(byte, &value, next))
            continue;
        return;
    }
}

/* Waits until the lock is free and takes it: spins, then sleeps until it is given back, until that has not happened for
 * wait_ms. False when owner already holds it, when the map is broken, or after that time. errno is kept.  ctx: hook */
bool objmap_lock_wait_hook(struct objmap_lock *lock, uintptr_t owner, unsigned wait_ms);

/* Wakes a thread that waits for the lock.  ctx: hook */
void objmap_lock_wake_hook(struct objmap_lock *lock);

#define OBJMAP_WAIT_MS 40000 /* a descheduled holder comes back sooner; after that the map is broken */

/* False: the lock is not held, and the operation has to be given up.  ctx: hook */
static inline bool objmap_lock_hook(struct objmap_lock *lock, uintptr_t owner)
{
    uintptr_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&lock->owner, &nobody, owner, memory_order_acquire,
                                                   memory_order_relaxed) ||
           objmap_lock_wait_hook(lock, owner, OBJMAP_WAIT_MS);
}

/* Gives back a lock. A thread that goes to sleep at this very moment may not be seen: it wakes by itself.  ctx: hook */
static inline void objmap_unlock_hook(struct objmap_lock *lock)
{
    atomic_store_explicit(&lock->owner, 0, memory_order_release);
    if (__builtin_expect(atomic_load_explicit(&lock->n_waiting, memory_order_relaxed) != 0, 0))
        objmap_lock_wake_hook(lock);
}

/* From now on the map is not changed any more, and readers find nothing.  ctx: any */
static inline void objmap_break(struct objmap_state *map)
{
    atomic_store(&map->is_broken, true);
    atomic_store(&map->ready, false);
}

/* The shard (of OBJMAP_SHARDS) of an address; all addresses of one domain have the same shard.  ctx: any */
static inline unsigned objmap_shard_index(const struct objmap_state *map, uintptr_t address)
{
    uintptr_t domain = address >> map->domain_shift;
    return (unsigned)((domain ^ domain >> 12 ^ domain >> 24) & (OBJMAP_SHARDS - 1));
}

/* The splay tree (of 1 << OBJMAP_TREE_BITS) of a shard for the blocks that start at start.  ctx: any */
static inline unsigned objmap_tree_index(const struct objmap_state *map, uintptr_t start)
{
    return (unsigned)(start >> (map->domain_shift - OBJMAP_TREE_BITS)) & ((1u << OBJMAP_TREE_BITS) - 1);
}

/* The filter folds addresses into shards as objmap_shard_index does. */
_Static_assert(OBJMAP_SHARDS << OBJMAP_FILTER_BITS == 1 << START_FILTER_BITS, "bytes of all shards");
_Static_assert(OBJMAP_FILTER_BITS == START_FILTER_LOCAL_BITS, "bytes of one shard");

/* The slot of the granule of address, in the two levels of nodes and the leaf below. NULL where there is none yet, or
 * where a record covers the whole region of a node's entry.  ctx: any */
static inline _Atomic uintptr_t *objmap_slot_at(const struct objmap_state *map, uintptr_t address)
{
    const uintptr_t mask = ((uintptr_t)1 << map->node_bits) - 1;
    const uintptr_t leaf_number = address >> (map->granule_shift + OBJMAP_LEAF_BITS);
    const struct objmap_entry *entry = &map->top->entries[leaf_number >> map->node_bits];
    const struct objmap_node *node = (const void *)atomic_load_explicit(&entry->child, memory_order_acquire);
    if (!node || atomic_load_explicit(&entry->whole, memory_order_relaxed))
        return NULL;
    entry = &node->entries[leaf_number & mask];
    struct objmap_leaf *leaf = (void *)atomic_load_explicit(&entry->child, memory_order_acquire);
    if (!leaf || atomic_load_explicit(&entry->whole, memory_order_relaxed))
        return NULL;
    return &leaf->slots[address >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1)];
}

/* The slot of a block that lies in one granule, when the way to it exists and no whole entry is on it; else NULL. */
static inline _Atomic uintptr_t *objmap_slot_of_small(const struct objmap_state *map, const struct objmap_block *block)
{
    if ((block->start ^ (block->end - 1)) >> map->granule_shift)
        return NULL;
    return objmap_slot_at(map, block->start);
}

/* The record that a list's item points to.  ctx: any */
static inline struct objmap_record *objmap_item_record(uint64_t item)
{
    return (struct objmap_record *)(uintptr_t)(item & 0xffffffffffffu);
}

/* The item's offset: where the record starts in the slot.  ctx: any */
static inline unsigned objmap_item_offset(uint64_t item)
{
    return (unsigned)(item >> 48);
}

/* What an operation holds: the cache of the domain it works on; never more than one. */
struct objmap_cursor {
    struct objmap_state *map;
    uintptr_t owner;            /* of its locks */
    struct objmap_cache *cache; /* NULL: none */
    uintptr_t domain;           /* the last one it was taken for */
    unsigned shard;             /* of that domain */
};

/* Takes the lock of the address's shard and returns the shard; -1 when it cannot be taken: then no lock is held. */
static inline int objmap_cursor_hold_hook(struct objmap_cursor *cursor, uintptr_t address)
{
    uintptr_t domain = address >> cursor->map->domain_shift;
    if (__builtin_expect(cursor->cache && cursor->domain == domain, 1))
        return (int)cursor->shard;
    unsigned shard = objmap_shard_index(cursor->map, address);
    struct objmap_cache *cache = &cursor->map->caches[shard % OBJMAP_CACHES];
    if (__builtin_expect(cursor->cache != cache, 0)) {
        if (cursor->cache)
            objmap_unlock_hook(&cursor->cache->lock);
        cursor->cache = objmap_lock_hook(&cache->lock, cursor->owner) ? cache : NULL;
        if (!cursor->cache)
            return -1;
    }
    cursor->domain = domain;
    cursor->shard = shard;
    return (int)shard;
}

/* The owner of the locks of an operation that holds this cache. */
static inline uintptr_t objmap_cache_owner(const struct objmap_cache *cache)
{
    return atomic_load_explicit(&cache->lock.owner, memory_order_relaxed);
}

/* Gives back the lock that the operation holds, if any.  ctx: hook */
static inline void objmap_cursor_release_hook(struct objmap_cursor *cursor)
{
    if (cursor->cache)
        objmap_unlock_hook(&cursor->cache->lock);
    cursor->cache = NULL;
}

/* --- memory (memory-hook.c); the caller must have locked every cache that it passes --- */

/* Zeroed pages for the map, never given back; NULL when there are none.  ctx: hook */
void *objmap_pages_hook(size_t len_bytes);

/* Zeroed memory of len_bytes (a multiple of 64) that lives as long as the process; NULL when there is none. owner: that
 * of the operation's locks. */
void *objmap_carve_hook(size_t len_bytes, uintptr_t owner);

/* The smallest class for len_bytes, OBJMAP_CLASSES when there is none; and the size of a class in bytes. */
unsigned objmap_class_of(size_t len_bytes);
size_t objmap_class_bytes(unsigned class);

/* _take: an item of the class (content undefined), NULL when there is no memory. _give: gives it back; only for items
 * that no reader has seen. */
void *objmap_take_hook(struct objmap_cache *cache, unsigned class);
void objmap_give_hook(struct objmap_cache *cache, void *item, unsigned class);

/* For tests: fill items with 0xDB when they are given back. */
void objmap_poison_hook(bool on);

/* --- retiring (retire-hook.c) --- */

/* Gives the item back once no reader can be using it, which may be at once. It must already be unreachable for new
 * readers, and the caller does not use it any more. */
void objmap_retire_hook(struct objmap_cache *cache, void *item, unsigned class);

/* Closes the open batch and gives back all batches of the cache that no reader can be using. */
void objmap_reclaim_hook(struct objmap_cache *cache);

/* Clears all epoch slots, in a child of fork, where the readers do not exist. */
void objmap_forget_readers_hook(void);

/* --- splay trees, ordered by block.start --- */

/* --- page map (pagemap-hook.c) --- */

enum objmap_result { OBJMAP_OK = 0, OBJMAP_NO_MEMORY, OBJMAP_CONFLICT };

/* One change of the page map. */
struct objmap_edit {
    struct objmap_cursor *cursor;
    struct objmap_record *record;
    bool force;                           /* do not look for overlaps */
    const struct objmap_record *replaces; /* its entries are overwritten in slots that begin at or after ... */
    uintptr_t keep_below;                 /* ... this address */
};

/* What to do with the records of a slot, and the bounds for a search for overlaps. */
struct objmap_visitor {
    bool (*visit)(struct objmap_visitor *visitor, struct objmap_record *record, uintptr_t base, uintptr_t end);
    uintptr_t start, end; /* for the search for overlaps */
    uintptr_t found_start, found_end;
    void (*call)(const struct objmap_block *block, void *ctx); /* for objmap_visit_hook */
    void *ctx;
};

/* Enters or removes edit->record in the whole page map. Adding stops at the first failure; the caller then removes what
 * was entered. */
enum objmap_result objmap_pagemap_add_hook(const struct objmap_edit *edit);
void objmap_pagemap_remove_hook(const struct objmap_edit *edit);

/* Visits the entries of [start, end) in address order until visit returns true; a record may be visited once per slot
 * that it touches. */
bool objmap_pagemap_visit_hook(struct objmap_cursor *cursor, struct objmap_visitor *visitor, uintptr_t start,
                               uintptr_t end);

#pragma GCC visibility pop

#endif
