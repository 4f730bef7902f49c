/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the blocks below the threshold come from: their allocations write the number of their site into a shadow of the
 * heap, and a free does nothing. The tables belong to the sink; the types are here so that the wrappers can do it
 * inline: a call through a pointer would cost as much again.
 *
 * A cell of the shadow stands for a granule of 16 bytes, which no two blocks of glibc share. All cells of a block are
 * written: so they say of any address in it which block that is, whatever lay there before. */
#ifndef LOCUS_ALLOC_WRAP_SMALL_SITES_H
#define LOCUS_ALLOC_WRAP_SMALL_SITES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SMALL_BYTES_MAX 65536    /* blocks from this size on have no site, wherever the threshold is */
#define SMALL_GRANULE_SHIFT 4    /* bytes of a granule, log2 */
#define SMALL_REGION_SHIFT 20    /* bytes of the heap that have their shadow in one piece, log2 */
#define SMALL_REGIONS 16384      /* power of two */
#define SMALL_SLOT_BITS 16       /* slots, log2 */
#define SMALL_ID_BITS 15
#define SMALL_START 0x8000u      /* in the cell of a block's first granule, above the number of its site */
#define SMALL_KEY_SHIFT 16       /* of the key in a slot's word, above the number */

/* A site: callers whose blocks are of one kind. Open addressing by key, linear probing; a slot is never freed. */
struct small_slot {
    _Atomic uint64_t word; /* key << SMALL_KEY_SHIFT | number; 0: free. The key of a site is its return address */
    _Atomic uint32_t min_bytes, n_sizes; /* what the site may allocate without telling: [min, min + n). min is not 0 */
};

/* A piece of the heap that has a shadow. Open addressing by tag, linear probing; never freed. */
struct small_region {
    _Atomic uintptr_t tag;    /* address >> SMALL_REGION_SHIFT; 0: free. Published last */
    _Atomic uintptr_t biased; /* shadow of address a: biased + 2 * (a >> SMALL_GRANULE_SHIFT) */
};

struct small_sites {
    struct small_slot *_Atomic slots; /* [1 << SMALL_SLOT_BITS] */
    struct small_region *regions;     /* [SMALL_REGIONS] */
};

/* Where the search for a key begins.  ctx: any */
static inline size_t small_slot_index(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> (64 - SMALL_SLOT_BITS);
}

/* Bytes and site of one allocation in a word: all that its wrapper has to keep over the real call. */
#define SMALL_CALL_SHIFT 16
_Static_assert(SMALL_ID_BITS < SMALL_CALL_SHIFT && SMALL_CALL_SHIFT == SMALL_KEY_SHIFT, "the number in a word");

/* The call of a function at return address pc that allocates n_bytes < SMALL_BYTES_MAX: n_bytes << SMALL_CALL_SHIFT |
 * number of its site; 0 when the sink has to be asked.  ctx: any */
static inline __attribute__((always_inline)) uint64_t small_sites_find(const struct small_sites *sites, uintptr_t pc,
                                                                       size_t n_bytes)
{
    const struct small_slot *slots = atomic_load_explicit(&sites->slots, memory_order_relaxed);
    const struct small_slot *slot = &slots[small_slot_index(pc)];
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    uint32_t above = (uint32_t)n_bytes - atomic_load_explicit(&slot->min_bytes, memory_order_relaxed);
    if (__builtin_expect(word >> SMALL_KEY_SHIFT != pc, 0) ||
        __builtin_expect(above >= atomic_load_explicit(&slot->n_sizes, memory_order_relaxed), 0))
        return 0;
    return n_bytes << SMALL_CALL_SHIFT | (uint16_t)word;
}

/* Writes n_cells >= 1 cells of a block's shadow.  ctx: any */
static inline __attribute__((always_inline)) void small_cells_write(uint16_t *cells, size_t n_cells, unsigned id)
{
    uint64_t four = id * 0x0001000100010001u, first = four | SMALL_START;
    if (__builtin_expect(n_cells >= 4, 1)) {
        uint16_t *last = cells + n_cells - 4;
        for (uint16_t *at = cells + 4; at < last; at += 4)
            memcpy(at, &four, sizeof four);
        memcpy(last, &four, sizeof four);
        memcpy(cells, &first, sizeof first);
        return;
    }
    if (n_cells & 2)
        memcpy(cells + (n_cells & 1), &four, 2 * sizeof *cells);
    cells[0] = (uint16_t)first;
}

/* Notes for the result p of a call where it comes from. False when there is no shadow yet, or p is NULL: then the sink
 * has to be told.  ctx: any */
static inline __attribute__((always_inline)) bool small_sites_note(struct small_region *regions, const void *p,
                                                                   uint64_t call)
{
    uintptr_t start = (uintptr_t)p, end = start + (call >> SMALL_CALL_SHIFT);
    const struct small_region *region = &regions[start >> SMALL_REGION_SHIFT & (SMALL_REGIONS - 1)];
    uintptr_t tag = atomic_load_explicit(&region->tag, memory_order_acquire);
    if (__builtin_expect(tag != start >> SMALL_REGION_SHIFT, 0) ||
        __builtin_expect(tag != end >> SMALL_REGION_SHIFT, 0))
        return false;
    uintptr_t first = start >> SMALL_GRANULE_SHIFT;
    uintptr_t biased = atomic_load_explicit(&region->biased, memory_order_relaxed);
    small_cells_write((uint16_t *)(biased + first * sizeof(uint16_t)), ((end - 1) >> SMALL_GRANULE_SHIFT) - first + 1,
                      (uint16_t)call);
    return true;
}

#endif
