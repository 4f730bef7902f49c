/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation sites of blocks below the threshold. Such blocks have no record of their own; a shadow of the heap (see
 * alloc-wrap/small-sites.h) holds the number of the site that allocated each, and a site has one call path. A site is
 * identified by its return address and, if it has different callers, by as many return addresses of theirs as are
 * needed to distinguish them. Nothing happens when a block is freed. */
#ifndef LOCUS_RUNTIME_OBJMAP_SMALL_H
#define LOCUS_RUNTIME_OBJMAP_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/small-sites.h"

struct alloc_site;
struct small_sites;
struct thread_state;

/* Maps the tables; false when there is no memory for them; then no site is known.  ctx: ordinary, once */
bool small_init_hook(void);

/* The part of the tables that the wrappers read; NULL when there are no tables.  ctx: any */
const struct small_sites *small_sites_sig(void);

/* Finds or makes the site of the new block [p, p + n_bytes), n_bytes < SMALL_BYTES_MAX, and notes it. self: the calling
 * thread's; NULL when its trees must not be touched: the block is then noted as of no known site.
 * ctx: hook */
void small_alloc_hook(struct thread_state *self, void *p, size_t n_bytes, const struct alloc_site *site);

/* Finds or makes the site of a new block of any size for which a record stands instead of a note. Returns the reference
 * of its arena_site, 0 when it has none. self: the calling thread's, with in_hook set.  ctx: hook */
uint32_t small_site_hook(struct thread_state *self, size_t n_bytes, const struct alloc_site *site);

/* Notes that the block comes from site id (0: not known); makes a shadow where there is none.  ctx: hook, any number of
 * threads */
void small_note_hook(void *p, size_t n_bytes, unsigned id);

/* The same for a site of whose slot the cells are.  ctx: hook, any number of threads */
void small_note_cells_hook(void *p, size_t n_bytes, uint64_t cells);

/* The same, and now and then it gives the site a code, if it has none. self: the calling thread's; NULL when the tables
 * must not be touched.  ctx: hook */
void small_known_hook(struct thread_state *self, void *p, size_t n_bytes, uint64_t cells);

/* What a site's slot has as its cells; and back, the number of the site.  ctx: any */
uint64_t small_cells_sig(unsigned id);
unsigned small_id_sig(uint64_t cells);

/* Gives the site a code, if it has none and fewer than n_most have one.  ctx: hook, one thread at a time */
void small_code_hook(unsigned id, unsigned n_most);

/* The memory [start, start + n_bytes) is new: forgets what was noted of it.  ctx: hook */
void small_forget_hook(uintptr_t start, size_t n_bytes);

/* Finds the block that holds address, if one was noted: its start and its site (> 0). False when there is none, also if
 * part of the noted memory has been used again since.  ctx: any, wait-free */
bool small_find_sig(uintptr_t address, uintptr_t *start, unsigned *id);

/* Reference of the site's arena_site.  ctx: any */
uint32_t small_ref_sig(unsigned id);

/* Asks that the call path of the next allocation be compared with the known path of its site. Called at each sample, so
 * that paths are checked now and then.  ctx: any */
void small_recheck_sig(void);

/* Modules have been unloaded: call paths of sites that led through them are compared again at the site's next
 * allocation, so that blocks of a new module at the same addresses do not get old names. self: the calling thread's.
 * ctx: hook */
void small_modules_gone_hook(struct thread_state *self);

/* _abandon: the thread will never finish what it was doing here. _fork_child: in a child of fork there are no other
 * threads.
 * ctx: hook */
void small_abandon_hook(const struct thread_state *self);
void small_fork_child_hook(void);

/* --- private part --- */

#define SMALL_IDS (1u << SMALL_ID_BITS) /* 0: not known */

/* Marks a region's slot that is being filled, or never will be. It is so far from any address that no address seems to
 * lie in the region, and it is the start of none. */
#define SMALL_BASE_BUSY ((uintptr_t)1 << 62 | 1)

/* The tables, all in the zone. Owned by small-sig.c. */
struct small_state {
    struct small_sites sites;
    struct small_slot *slots; /* the sites' slots; sites.slots is these or, now and then, empty */
    struct small_slot *empty; /* [1 << SMALL_SLOT_BITS] never written: a look-up there always goes to the slow half */
    _Atomic uint32_t *refs;   /* [SMALL_IDS] reference of each site's arena_site */
    _Atomic uint8_t *codes;   /* [SMALL_IDS] each site's code; 0: none */
    _Atomic uintptr_t *wide;  /* [SMALL_REGIONS] address of the second shadow of each region; 0: none */
    _Atomic uint16_t ids[SMALL_OTHER]; /* the site of each code; set before a cell has it, and never changed */
    unsigned n_codes;
    _Atomic uint32_t n_regions;
    _Atomic uintptr_t large; /* address of a large page + the number of pieces in it that are free, the lowest ones */
    _Atomic bool is_on;
};

/* The only instance.  ctx: any */
struct small_state *small_state_sig(void);

#define SMALL_PIECE_BYTES ((size_t)1 << (SMALL_REGION_SHIFT - SMALL_GRANULE_SHIFT))

/* Zeroed memory of SMALL_PIECE_BYTES on a page's border, for a piece of the shadow or for what else is read here and
 * there as the heap is: in a large page, once the heap is large. NULL when there is none.  ctx: hook */
void *small_piece_hook(void);

/* Maps the tables of the state; false when there is no memory.  ctx: ordinary */
bool small_shadow_init_hook(void);

/* The cells of an address in the shadows. Those of the addresses up to the next multiple of the region's size follow
 * them. */
struct small_place {
    uint8_t *cell;
    _Atomic uintptr_t *wide; /* the region's second shadow */
    size_t granule;          /* number of the cell in the region */
};

/* Finds the cells of address; false when there are none.  ctx: any */
bool small_place_sig(uintptr_t address, struct small_place *place);

#endif
