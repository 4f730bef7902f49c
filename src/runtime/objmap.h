/* SPDX-License-Identifier: BSD-3-Clause */
/* The object map: which recorded block holds an address. Two indexes over the same block records: splay trees (one
 * lock each, sharded by address, never touched by the signal handler) for the allocation side, and a wait-free page map
 * (radix over granules, immutable sorted arrays, epochs) for the handler. Records are private memory of the process,
 * not part of the arena; they come from an own mmap'ed pool, never from malloc. */
#ifndef LOCUS_RUNTIME_OBJMAP_H
#define LOCUS_RUNTIME_OBJMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct start_filter;

/* A live block or mapping. Immutable after publication, but for the flags. */
struct objmap_block {
    uintptr_t start, end;   /* [start, end) */
    uint64_t var;           /* variable key of arena/arena.h */
    _Atomic uint32_t flags; /* OBJMAP_* */
    uint32_t thread;        /* reference of the arena_thread that allocated it */
    uint64_t weight_bytes;  /* bytes it stands for: its size, or a multiple of it when it was sampled */
};
/* Blocks that a pool hands out lie inside recorded blocks (its slabs), and blocks of one layer do not overlap: a pool's
 * are entered at their address plus this one, in every call. */
#define OBJMAP_POOL_LAYER ((uintptr_t)1 << 48)

#define OBJMAP_RESIZING 1u /* a realloc is under way: the address may already belong to somebody else */

/* Statistics, for the log and the tests. */
struct objmap_stats {
    uint64_t n_live, n_retired_pending, n_retired_pending_max, bytes_memory;
    uint64_t n_refused;  /* blocks that could not be recorded for lack of memory */
    uint64_t n_replaced; /* blocks dropped because a new one took their range: their release was missed */
};

/* Prepares the map. granule_shift: 16 (64 KiB), or 14 when blocks below 1 KiB are recorded. Returns false when the
 * address space cannot be had.  ctx: ordinary or hook, once */
bool objmap_init_hook(unsigned granule_shift);

/* Records [start, start + n_bytes). A block that already holds part of the range is removed first (its release was
 * missed) and counted. Nothing is recorded for 0 bytes.
 * ctx: hook   err: false when there is no memory for it, or the range leaves the user half of the address space */
bool objmap_insert_hook(uintptr_t start, size_t n_bytes, uint64_t var, uint32_t thread, uint64_t weight_bytes);

/* Names who is told of blocks that are dropped because a new one takes their range; it is called under locks of the map
 * and must not call it.  ctx: ordinary, before the first block */
void objmap_on_drop(void (*dropped)(const struct objmap_block *block));

/* True when a recorded block may start at start; a filter of a few loads without a lock or an epoch. False positives
 * allowed, false negatives never.  ctx: any */
bool objmap_maybe_start_sig(uintptr_t start);

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

#define OBJMAP_READERS 65536 /* epoch slots; thread ids beyond share a counted slow path: lookups fail */

/* Whether a block was ever entered in the layer of pools.  ctx: any */
bool objmap_has_pools_sig(void);

/* Calls visit for every live block in address order; takes each shard's lock in turn: visit must not call the map.
 * ctx: hook */
void objmap_visit_hook(void (*visit)(const struct objmap_block *block, void *ctx), void *ctx);

/* Takes all locks before fork, but those of an operation that the calling thread itself has under way (a handler of the
 * program forks on top of it); releases them in the parent and in the child, where no other thread exists. The
 * operation then completes in both.  ctx: pthread_atfork handlers */
void objmap_fork_prepare_hook(void);
void objmap_fork_done_hook(void);

/* The calling thread will never go on with the operation that it has under way, if it has one: a handler of the program
 * has jumped out of it. Then the map is given up, as nobody knows in which state it is: true.  ctx: hook */
bool objmap_abandon_hook(void);

/* Current statistics.  ctx: any (values may be a moment old) */
struct objmap_stats objmap_stats_sig(void);

#endif
