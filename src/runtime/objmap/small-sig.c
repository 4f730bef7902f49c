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

uint16_t *small_cell_sig(uintptr_t address)
{
    uintptr_t tag = address >> SMALL_REGION_SHIFT;
    for (uintptr_t i = 0; i < SMALL_PROBES && tag > 0; i++) {
        const struct small_region *region = &small.sites.regions[(tag + i) & (SMALL_REGIONS - 1)];
        uintptr_t found = atomic_load_explicit(&region->base, memory_order_acquire);
        if (found == tag << SMALL_REGION_SHIFT)
            return (uint16_t *)(atomic_load_explicit(&region->shadow, memory_order_relaxed) +
                                ((address - found) >> SMALL_GRANULE_SHIFT) * sizeof(uint16_t));
        if (!found)
            return NULL;
    }
    return NULL;
}

/* A cell may be written meanwhile; the result is then right for another moment. */
static unsigned cell_at(uintptr_t granule, uint16_t **cell)
{
    if (!*cell || ((granule + 1) << SMALL_GRANULE_SHIFT & (((uintptr_t)1 << SMALL_REGION_SHIFT) - 1)) == 0)
        *cell = small_cell_sig(granule << SMALL_GRANULE_SHIFT);
    else
        --*cell;
    return *cell ? __atomic_load_n(*cell, __ATOMIC_RELAXED) : 0;
}

bool small_find_sig(uintptr_t address, uintptr_t *start, unsigned *id)
{
    if (!atomic_load_explicit(&small.is_on, memory_order_acquire) ||
        !atomic_load_explicit(&small.n_regions, memory_order_relaxed))
        return false;
    uintptr_t granule = address >> SMALL_GRANULE_SHIFT;
    uint16_t *at = NULL;
    unsigned cell = cell_at(granule, &at);
    *id = cell & ~SMALL_START;
    if (!*id)
        return false;
    for (size_t n_bytes = 0; n_bytes < SMALL_BYTES_MAX && (cell & ~SMALL_START) == *id;
         n_bytes += (size_t)1 << SMALL_GRANULE_SHIFT) {
        if (cell & SMALL_START) {
            *start = granule << SMALL_GRANULE_SHIFT;
            return true;
        }
        cell = cell_at(--granule, &at);
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
