/* SPDX-License-Identifier: BSD-3-Clause */
/* Where blocks below the threshold come from. They have no record of their own; a shadow of the heap (see
 * alloc-wrap/small-sites.h) holds the number of the site that allocated them, and a site has one call path. A site is
 * told by its return address, and where different callers turn up behind it, by as many of theirs as are needed to tell
 * them apart. Nothing happens when a block is freed. */
#ifndef LOCUS_RUNTIME_OBJMAP_SMALL_H
#define LOCUS_RUNTIME_OBJMAP_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/small-sites.h"

struct alloc_site;
struct small_sites;
struct thread_state;

/* Maps the tables; false when there is no memory for them: then no site is known.  ctx: ordinary, once */
bool small_init_hook(void);

/* What the wrappers go by; NULL when there are no tables.  ctx: any */
const struct small_sites *small_sites_sig(void);

/* The site of the new block [p, p + n_bytes), n_bytes < SMALL_BYTES_MAX, is found, or made, and noted. self: the
 * calling thread's, NULL when its trees must not be touched: then the block is noted to be of no known site.
 * ctx: hook */
void small_alloc_hook(struct thread_state *self, void *p, size_t n_bytes, const struct alloc_site *site);

/* Notes that the block is of site id (0: none that is known), making a shadow where there is none.  ctx: hook, any
 * number of threads */
void small_note_hook(void *p, size_t n_bytes, unsigned id);

/* The memory [start, start + n_bytes) is new: what was noted of it is forgotten.  ctx: hook */
void small_forget_hook(uintptr_t start, size_t n_bytes);

/* The block that holds address, as far as one was noted: its start and its site (> 0). False when there is none: also
 * for what remains of a note when part of the memory has been used anew.  ctx: any, wait-free */
bool small_find_sig(uintptr_t address, uintptr_t *start, unsigned *id);

/* Reference of the arena_site of the site.  ctx: any */
uint32_t small_ref_sig(unsigned id);

/* Asks that the call path of the next allocation be compared with what is known of its site. Called with each sample:
 * so it happens now and then.  ctx: any */
void small_recheck_sig(void);

/* Modules have been unloaded: call paths of sites that led through them are compared again at the next allocation
 * there, before blocks of a module at the same addresses get their names. self: the calling thread's.  ctx: hook */
void small_modules_gone_hook(struct thread_state *self);

/* The thread will never go on with what it was doing here; and: in a child of fork there are no other threads.
 * ctx: hook */
void small_abandon_hook(const struct thread_state *self);
void small_fork_child_hook(void);

/* --- private part --- */

#define SMALL_IDS (1u << SMALL_ID_BITS) /* 0: not known */

/* A region's slot that is being filled, or never will be: so far from any address that none seems to lie in it, and the
 * start of none. */
#define SMALL_BASE_BUSY ((uintptr_t)1 << 62 | 1)

/* The tables, all in the zone. Owned by small-sig.c. */
struct small_state {
    struct small_sites sites;
    struct small_slot *slots; /* those of sites, but for the moments when it has the empty ones */
    struct small_slot *empty; /* [1 << SMALL_SLOT_BITS] never written: whoever looks there asks the slow half */
    _Atomic uint32_t *refs;   /* [SMALL_IDS] reference of each site's arena_site */
    _Atomic uint32_t n_regions;
    _Atomic bool is_on;
};

/* The only instance.  ctx: any */
struct small_state *small_state_sig(void);

/* Maps the tables of the state; false when there is no memory.  ctx: ordinary */
bool small_shadow_init_hook(void);

/* Shadow of address, NULL when there is none. The cells up to the next multiple of the region's size follow.
 * ctx: any */
uint16_t *small_cell_sig(uintptr_t address);

#endif
