/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of small.h share. */
#ifndef LOCUS_RUNTIME_SMALL_INTERNAL_H
#define LOCUS_RUNTIME_SMALL_INTERNAL_H

#include "alloc-wrap/small-sites.h"
#include "runtime/small.h"

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
