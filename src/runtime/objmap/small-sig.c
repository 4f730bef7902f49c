/* SPDX-License-Identifier: BSD-3-Clause */
/* From an address to the small block that holds it: see small.h. Owns the tables, because a reader must reach
 * everything without a lock. */
#include "runtime/objmap/small.h"

#include "base/sigsafe.h"

static struct small_state small;

struct small_state *small_state_sig(void)
{
    return &small;
}

const struct small_sites *small_sites_sig(void)
{
    return atomic_load_explicit(&small.is_on, memory_order_acquire) ? &small.sites : NULL;
}

bool small_place_sig(uintptr_t address, struct small_place *place)
{
    uintptr_t tag = address >> SMALL_REGION_SHIFT;
    for (uintptr_t i = 0; i < SMALL_PROBES && tag > 0; i++) {
        uintptr_t index = (tag + i) & (SMALL_REGIONS - 1);
        const struct small_region *region = &small.sites.regions[index];
        uintptr_t found = atomic_load_explicit(&region->base, memory_order_acquire);
        if (found == tag << SMALL_REGION_SHIFT) {
            place->granule = (address - found) >> SMALL_GRANULE_SHIFT;
            place->cell = (uint8_t *)atomic_load_explicit(&region->shadow, memory_order_relaxed) + place->granule;
            place->wide = &small.wide[index];
            return true;
        }
        if (!found)
            return false;
    }
    return false;
}

uint64_t small_cells_sig(unsigned id)
{
    unsigned code = atomic_load_explicit(&small.codes[id & (SMALL_IDS - 1)], memory_order_acquire);
    return code || !id ? small_cells_of(code) : SMALL_UNCODED | id;
}

unsigned small_id_sig(uint64_t cells)
{
    if (cells & SMALL_UNCODED)
        return cells & (SMALL_IDS - 1);
    return atomic_load_explicit(&small.ids[(cells & SMALL_OTHER) % SMALL_OTHER], memory_order_acquire);
}

#define IS_START SMALL_IDS /* above the number of a site */

/* The site of a granule, with IS_START where its block starts; 0: none. *place: the next granule's, NULL cell: not
 * known. A cell may be written meanwhile; the result is then right for another moment. */
static unsigned site_at(uintptr_t granule, struct small_place *place)
{
    if (place->cell && place->granule) {
        place->cell--;
        place->granule--;
    } else if (!small_place_sig(granule << SMALL_GRANULE_SHIFT, place)) {
        place->cell = NULL;
        return 0;
    }
    unsigned cell = __atomic_load_n(place->cell, __ATOMIC_ACQUIRE), id = 0;
    if ((cell & SMALL_OTHER) != SMALL_OTHER) {
        id = small_id_sig(cell);
    } else {
        const uint16_t *wide = (const uint16_t *)atomic_load_explicit(place->wide, memory_order_acquire);
        id = wide ? __atomic_load_n(&wide[place->granule], __ATOMIC_RELAXED) : 0;
    }
    return id && cell & SMALL_START ? id | IS_START : id;
}

bool small_find_sig(uintptr_t address, uintptr_t *start, unsigned *id)
{
    if (!atomic_load_explicit(&small.is_on, memory_order_acquire) ||
        !atomic_load_explicit(&small.n_regions, memory_order_relaxed))
        return false;
    uintptr_t granule = address >> SMALL_GRANULE_SHIFT;
    struct small_place place = {0};
    unsigned site = site_at(granule, &place);
    *id = site & ~IS_START;
    if (!*id)
        return false;
    for (size_t n_bytes = 0; n_bytes < SMALL_BYTES_MAX && (site & ~IS_START) == *id;
         n_bytes += (size_t)1 << SMALL_GRANULE_SHIFT) {
        if (site & IS_START) {
            *start = granule << SMALL_GRANULE_SHIFT;
            return true;
        }
        site = site_at(--granule, &place);
    }
    return false;
}

uint32_t small_ref_sig(unsigned id)
{
    return atomic_load_explicit(&small.refs[id & (SMALL_IDS - 1)], memory_order_acquire);
}

void small_recheck_sig(void)
{
    if (atomic_load_explicit(&small.is_on, memory_order_relaxed))
        atomic_store_explicit(&small.sites.slots, small.empty, memory_order_relaxed);
}
