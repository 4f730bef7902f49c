/* SPDX-License-Identifier: BSD-3-Clause */
/* The shadow of the heap: it is made piece by piece where small blocks lie, in the zone, so that it adds at most a
 * sixteenth of their size to the address space and to locked memory, and an eighth more where there are blocks of sites
 * that have no code; in a large heap without limits up to 2 MiB more. Runs
 * inside the program's malloc; wait-free except for the system call that maps a piece. */
#include "runtime/objmap/small.h"
#include "runtime/own/zone.h"

#define REGION_BYTES ((size_t)1 << SMALL_REGION_SHIFT)
#define SHADOW_BYTES SMALL_PIECE_BYTES
#define WIDE_PIECES sizeof(uint16_t) /* of a second shadow */
#define LARGE_FROM 4 /* pieces; those of a larger heap lie in large pages, as notes are written here and there */
#define LARGE_PIECES (ZONE_LARGE_BYTES / SHADOW_BYTES)

bool small_shadow_init_hook(void)
{
    struct small_state *small = small_state_sig();
    size_t n_slots = (size_t)1 << SMALL_SLOT_BITS;
    small->slots = zone_pages_sig(n_slots * sizeof *small->slots);
    small->empty = zone_pages_sig(n_slots * sizeof *small->slots);
    small->refs = zone_pages_sig(SMALL_IDS * sizeof *small->refs);
    small->codes = zone_pages_sig(SMALL_IDS * sizeof *small->codes);
    small->wide = zone_pages_sig(SMALL_REGIONS * sizeof *small->wide);
    small->sites.regions = zone_pages_sig(SMALL_REGIONS * sizeof *small->sites.regions);
    if (!small->slots || !small->empty || !small->refs || !small->codes || !small->wide || !small->sites.regions)
        return false;
    /* the slot of a null pointer matches nothing, so that null needs no test */
    atomic_store(&small->sites.regions[0].base, SMALL_BASE_BUSY);
    atomic_store(&small->sites.slots, small->slots);
    atomic_store(&small->is_on, true);
    return true;
}

/* So many pieces side by side. */
static void *pieces(unsigned n)
{
    struct small_state *small = small_state_sig();
    uintptr_t large = atomic_load(&small->large);
    if (atomic_load_explicit(&small->n_regions, memory_order_relaxed) < LARGE_FROM)
        return zone_pages_sig(n * SHADOW_BYTES);
    while (large % ZONE_LARGE_BYTES >= n)
        if (atomic_compare_exchange_weak(&small->large, &large, large - n))
            return (void *)(large / ZONE_LARGE_BYTES * ZONE_LARGE_BYTES +
                            (large % ZONE_LARGE_BYTES - n) * SHADOW_BYTES);
    uintptr_t made = (uintptr_t)zone_large_sig();
    if (!made)
        return zone_pages_sig(n * SHADOW_BYTES);
    /* what another thread has put there meanwhile is given up: address space that nobody has touched, once */
    atomic_store(&small->large, made + LARGE_PIECES - n);
    return (char *)made + (LARGE_PIECES - n) * SHADOW_BYTES;
}

void *small_piece_hook(void)
{
    return pieces(1);
}

/* Gives the slot to the piece with this tag. False when another thread, or the code that this thread was interrupted
 * in, is filling the slot: the next block tries again. */
static bool fill_region(struct small_region *region, uintptr_t tag)
{
    struct small_state *small = small_state_sig();
    uintptr_t none = 0;
    void *shadow = small_piece_hook();
    if (!shadow || !atomic_compare_exchange_strong(&region->base, &none, SMALL_BASE_BUSY))
        return false;
    atomic_store_explicit(&region->shadow, (uintptr_t)shadow, memory_order_relaxed);
    atomic_store_explicit(&region->base, tag << SMALL_REGION_SHIFT, memory_order_release);
    atomic_fetch_add(&small->n_regions, 1);
    return true;
}

static bool make_region(uintptr_t tag)
{
    struct small_state *small = small_state_sig();
    for (uintptr_t i = 0; i < SMALL_PROBES && tag > 0; i++) {
        struct small_region *region = &small->sites.regions[(tag + i) & (SMALL_REGIONS - 1)];
        uintptr_t found = atomic_load_explicit(&region->base, memory_order_acquire);
        if (found == tag << SMALL_REGION_SHIFT)
            return true;
        if (!found)
            return fill_region(region, tag);
    }
    return false;
}

void small_code_hook(unsigned id, unsigned n_most)
{
    struct small_state *small = small_state_sig();
    if (!id || small->n_codes >= n_most || small->n_codes + 1 >= SMALL_OTHER || atomic_load(&small->codes[id]))
        return;
    unsigned code = ++small->n_codes;
    atomic_store_explicit(&small->ids[code], (uint16_t)id, memory_order_release);
    atomic_store_explicit(&small->codes[id], (uint8_t)code, memory_order_release);
}

/* Writes the site's number into so many cells of the second shadow, which is made where there is none; false when there
 * is no memory. */
static bool write_wide(const struct small_place *place, size_t n_cells, unsigned id)
{
    uintptr_t wide = atomic_load_explicit(place->wide, memory_order_acquire), none = 0;
    if (!wide) {
        wide = (uintptr_t)pieces(WIDE_PIECES);
        /* what another thread has made meanwhile stands; ours is given up: address space that nobody has touched */
        if (!wide || !atomic_compare_exchange_strong(place->wide, &none, wide))
            wide = none;
    }
    uint16_t *at = (uint16_t *)wide + place->granule;
    for (size_t i = 0; wide && i < n_cells; i++)
        __atomic_store_n(&at[i], (uint16_t)id, __ATOMIC_RELAXED);
    return wide != 0;
}

void small_note_hook(void *p, size_t n_bytes, unsigned id)
{
    uintptr_t start = (uintptr_t)p, end = start + (n_bytes ? n_bytes : 1);
    if (!small_sites_sig())
        return;
    unsigned code = id ? atomic_load_explicit(&small_state_sig()->codes[id], memory_order_relaxed) : 0;
    for (uintptr_t at = start, next; at < end; at = next) {
        struct small_place place;
        next = (at | (REGION_BYTES - 1)) + 1;
        bool is_there = small_place_sig(at, &place);
        if (!is_there && id && make_region(at >> SMALL_REGION_SHIFT))
            is_there = small_place_sig(at, &place);
        if (!is_there)
            continue;
        uintptr_t last = ((next < end ? next : end) - 1) >> SMALL_GRANULE_SHIFT;
        size_t n_more = last - (at >> SMALL_GRANULE_SHIFT);
        unsigned cell = code || !id ? code : write_wide(&place, n_more + 1, id) ? SMALL_OTHER : 0;
        __atomic_thread_fence(__ATOMIC_RELEASE);
        small_cells_write((uintptr_t)place.cell, 0, n_more, small_cells_of(cell));
        if (at != start)
            __atomic_store_n(place.cell, (uint8_t)cell, __ATOMIC_RELAXED);
    }
}

void small_note_cells_hook(void *p, size_t n_bytes, uint64_t cells)
{
    small_note_hook(p, n_bytes, small_id_sig(cells));
}

/* Writes only cells that hold something, because a page that is only read takes no memory. */
static void clear_cells(uint8_t *cells, size_t n_cells)
{
    for (size_t i = 0; i < n_cells; i++)
        if (__atomic_load_n(&cells[i], __ATOMIC_RELAXED))
            __atomic_store_n(&cells[i], 0, __ATOMIC_RELAXED);
}

void small_forget_hook(uintptr_t start, size_t n_bytes)
{
    const struct small_state *small = small_state_sig();
    uintptr_t end = start + n_bytes, at = start;
    if (!small_sites_sig() || !atomic_load_explicit(&small->n_regions, memory_order_relaxed))
        return;
    /* if the mapping has more pieces than can have a shadow, a stale note in one of them does not matter */
    for (size_t i = 0; i < SMALL_REGIONS && at < end; i++) {
        uintptr_t next = (at | (REGION_BYTES - 1)) + 1, last = (next < end ? next : end) - 1;
        struct small_place place;
        if (small_place_sig(at, &place))
            clear_cells(place.cell, (last >> SMALL_GRANULE_SHIFT) - (at >> SMALL_GRANULE_SHIFT) + 1);
        at = next;
    }
}
