/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the sink that the wrappers read inline, because a call through a pointer would cost as much again: the
 * filter of block starts, and the sites of blocks below the threshold. */
#ifndef LOCUS_ALLOC_WRAP_SMALL_SITES_H
#define LOCUS_ALLOC_WRAP_SMALL_SITES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- filter of block starts --- */

/* Filter of block starts: a byte for so many addresses, which the sink keeps and every free reads. The type is defined
 * here so that free can read it inline: a call through a pointer would cost more than the look-up. */

#define START_FILTER_BITS 21      /* bytes, log2 */
#define START_FILTER_LOCAL_BITS 9 /* so many neighbouring bytes stay neighbours; above, the address is folded */

/* What a byte says: 0: no recorded block starts there. Up to START_FILTER_PLACES: one does, at this place. From there
 * on: 1, 2 and so on do, wherever; the last value stays, because the real number is no longer known. */
#define START_FILTER_PLACES 32 /* of 16 bytes each */

/* Readers load shift before counts, and writers store it after counts: a shift of 63 needs only the first two bytes. */
struct start_filter {
    _Atomic uint8_t *_Atomic counts; /* [1 << START_FILTER_BITS] */
    _Atomic unsigned shift;          /* addresses per byte, log2; up to 9 where there are places */
};

/* The byte of address start.  ctx: any */
static inline _Atomic uint8_t *start_filter_at(const struct start_filter *filter, uintptr_t start)
{
    const uintptr_t local = (1u << START_FILTER_LOCAL_BITS) - 1, all = (1u << START_FILTER_BITS) - 1;
    const unsigned fold = START_FILTER_BITS - START_FILTER_LOCAL_BITS;
    uintptr_t bin = start >> atomic_load_explicit(&filter->shift, memory_order_acquire);
    uintptr_t index = (bin ^ (bin >> fold & ~local)) & all;
    return &atomic_load_explicit(&filter->counts, memory_order_relaxed)[index];
}

/* True when a recorded block may start at start or near it; false is certain.  ctx: any */
static inline bool start_filter_has(const struct start_filter *filter, uintptr_t start)
{
    return atomic_load_explicit(start_filter_at(filter, start), memory_order_relaxed) != 0;
}

/* The place of address start among the addresses of its byte, from 1 on.  ctx: any */
static inline unsigned start_filter_place(const struct start_filter *filter, uintptr_t start)
{
    unsigned shift = atomic_load_explicit(&filter->shift, memory_order_relaxed);
    return (unsigned)((start & (((uintptr_t)1 << shift) - 1)) >> 4) + 1;
}

/* A byte's next value when a block starts at this place (start_filter_place).  ctx: any */
static inline uint8_t start_filter_with(uint8_t value, unsigned place)
{
    if (value == 0)
        return (uint8_t)place;
    return value == UINT8_MAX ? value : value <= START_FILTER_PLACES ? START_FILTER_PLACES + 2 : (uint8_t)(value + 1);
}

/* A byte's next value when one of the blocks that start at its addresses ends.  ctx: any */
static inline uint8_t start_filter_without(uint8_t value)
{
    if (value == UINT8_MAX || value == 0)
        return value;
    return value <= START_FILTER_PLACES + 1 ? 0 : (uint8_t)(value - 1);
}

/* How well the filter knows a block that starts at an address. */
enum start_filter_says {
    START_FILTER_NONE = 0, /* certainly none is recorded there */
    START_FILTER_NEAR,     /* one may be, as several are near */
    START_FILTER_ONE       /* very likely one is: it is the only one near, and starts at this place */
};

/* What a filter with places says of address start.  ctx: any */
static inline enum start_filter_says start_filter_ask(const struct start_filter *filter, uintptr_t start)
{
    uint8_t value = atomic_load_explicit(start_filter_at(filter, start), memory_order_relaxed);
    if (value == 0)
        return START_FILTER_NONE;
    if (value > START_FILTER_PLACES)
        return START_FILTER_NEAR;
    return value == start_filter_place(filter, start) ? START_FILTER_ONE : START_FILTER_NONE;
}

/* --- sites of small blocks --- */

/* Allocation sites of blocks below the threshold: each allocation writes the code of its site into a shadow of the
 * heap, and a free does nothing. The tables belong to the sink; the types are defined here so that the wrappers can use
 * them inline.
 *
 * A program that allocates much waits for the shadow's memory, not for the instructions that write it: so a cell is one
 * byte, and the sites that allocate most have a code that fits. Blocks of the other sites have SMALL_OTHER in their
 * cells, and the number of their site in a second shadow, whose cells have two bytes.
 *
 * A cell of the shadow stands for a granule of 16 bytes, which no two blocks of glibc share. All cells of a block are
 * written, so that they identify the block for every address in it, whatever lay there before. */

#define SMALL_BYTES_MAX 65536 /* blocks from this size on have no site, wherever the threshold is */
#define SMALL_GRANULE_SHIFT 4 /* bytes of a granule, log2 */
#define SMALL_REGION_SHIFT 20 /* bytes of the heap that have their shadow in one piece, log2 */
#define SMALL_REGIONS 16384   /* power of two */
#define SMALL_SLOT_BITS 17    /* slots, log2 */
#define SMALL_ID_BITS 15
#define SMALL_START 0x80u /* in the cell of a block's first granule, above the code of its site */
#define SMALL_OTHER 0x7fu /* a code: the site has none, its number stands elsewhere. Those of sites are smaller */
#define SMALL_UNCODED ((uint64_t)1 << 63) /* above the number of a site that has no code */
#define SMALL_PROBES 64                   /* after so many the table counts as full */
#define SMALL_DEPTH_MAX 12                /* most return addresses in the key of a site */

/* A site: callers whose blocks count as one kind. Open addressing by key, see small_slot_at; a slot is never freed. */
struct small_slot {
    _Atomic uint64_t key;   /* a return address, or several combined (small_key_deeper); 0: free. Published last */
    _Atomic uint64_t cells; /* the site's code in each of eight cells; or its number with SMALL_UNCODED */
    /* The sizes that the wrappers handle without asking the sink: [min, min + n), min is not 0. If n is 0, min is 0
     * too, or the site has a hop that needs only the stack pointer: min is then the distance from it to the canonical
     * frame address. At worst, a reader that sees one of the two too early or too late takes a word of the known stack
     * for a return address. */
    _Atomic uint32_t min_bytes, n_sizes;
    _Atomic uint64_t hop; /* not 0: the next return address outwards decides. SMALL_HOP_ bits, or SMALL_HOP_NESTED */
};

/* A hop, how to get from a frame to its caller: the canonical frame address is a register + the high 32 bits, and the
 * return address lies right below it; the frame pointer is unchanged or was saved at the canonical frame address + the
 * 16 bits below these, which are negative. Both are multiples of a word. If the register is the stack pointer, the
 * first is positive, and the frame pointer is not saved below the stack pointer. */
#define SMALL_HOP_CFA_SHIFT 32
#define SMALL_HOP_FP_SHIFT 16
#define SMALL_HOP 1u            /* always set */
#define SMALL_HOP_HAS_FP 2u     /* the frame pointer was saved */
#define SMALL_HOP_IS_FROM_FP 4u /* the register: frame pointer, else stack pointer */
#define SMALL_HOP_NESTED 8u     /* the only bit, no hop: the block goes to another wrapper, which notes it */

/* A frame on the way outwards, right after a return to pc. */
struct small_caller {
    uint64_t key;
    uintptr_t pc, sp, fp;
};

/* The part of a thread's stack that is known to be mapped; both 0: none. */
struct small_stack {
    uintptr_t low, high;
};

/* A piece of the heap that has a shadow. Open addressing by the number of the piece, linear probing; never freed. */
struct small_region {
    _Atomic uintptr_t base;   /* where the piece starts; 0: free. Published last */
    _Atomic uintptr_t shadow; /* address of the piece's first cell */
};

struct small_sites {
    struct small_slot *_Atomic slots; /* [1 << SMALL_SLOT_BITS] */
    struct small_region *regions;     /* [SMALL_REGIONS] */
};

/* Spreads a key over all bits.  ctx: any */
static inline uint64_t small_key_spread(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u;
}

/* Slot number i in the search for a key. The key's lower half distinguishes nearly all keys, and a factor of 32 bits
 * fits into the instruction.  slots: [1 << SMALL_SLOT_BITS], on a page's border  ctx: any */
static inline size_t small_slot_at(uint64_t key, size_t i)
{
    return ((uint32_t)key * 0x9e3779b1u) >> (32 - SMALL_SLOT_BITS) ^ i;
}

/* The key for the return addresses in key and the next one outwards: any number; only by bad luck is it a code address.
 * ctx: any */
static inline uint64_t small_key_deeper(uint64_t key, uintptr_t pc)
{
    return small_key_spread(key) ^ pc;
}

/* Goes one frame outwards; false if that would leave the known stack. Reads nothing outside it.  ctx: any */
static inline bool small_caller_next(struct small_caller *at, uint64_t hop, const struct small_stack *stack)
{
    uintptr_t cfa = (hop & SMALL_HOP_IS_FROM_FP ? at->fp : at->sp) + (uintptr_t)((int64_t)hop >> SMALL_HOP_CFA_SHIFT);
    if (at->sp < stack->low || cfa <= at->sp || cfa > stack->high || cfa % sizeof cfa)
        return false;
    if (hop & SMALL_HOP_HAS_FP) {
        uintptr_t fp_at = cfa + (uintptr_t)(intptr_t)(int16_t)(hop >> SMALL_HOP_FP_SHIFT);
        if (fp_at < at->sp)
            return false;
        at->fp = *(const uintptr_t *)fp_at;
    }
    at->pc = *(const uintptr_t *)(cfa - sizeof cfa);
    at->sp = cfa;
    at->key = small_key_deeper(at->key, at->pc);
    return true;
}

/* Whether the slot belongs to key; the likely case.  ctx: any */
static inline __attribute__((always_inline)) bool small_slot_has(const struct small_slot *slot, uint64_t key)
{
    return __builtin_expect(atomic_load_explicit(&slot->key, memory_order_relaxed) == key, 1);
}

/* Looks for the key in the first two slots where it may be and sets *slot. False when it is in neither.  ctx: any */
static inline __attribute__((always_inline)) bool small_slot_near(const struct small_slot *slots, uint64_t key,
                                                                  const struct small_slot **slot)
{
    *slot = &slots[small_slot_at(key, 0)];
    if (small_slot_has(*slot, key))
        return true;
    *slot = (const struct small_slot *)((uintptr_t)*slot ^ sizeof **slot); /* small_slot_at(key, 1) */
    return small_slot_has(*slot, key);
}

/* The same in the first eight slots.  ctx: any */
static inline bool small_slot_far(const struct small_slot *slots, uint64_t key, const struct small_slot **slot)
{
    for (size_t i = 0; i < 8; i++) {
        *slot = &slots[small_slot_at(key, i)];
        if (small_slot_has(*slot, key))
            return true;
    }
    return false;
}

/* Whether the wrappers handle this size at the slot's site without asking the sink; if so, sets its cells.  ctx: any
 */
static inline __attribute__((always_inline)) bool small_slot_takes(const struct small_slot *slot, size_t n_bytes,
                                                                   uint64_t *cells)
{
    size_t n_sizes = atomic_load_explicit(&slot->n_sizes, memory_order_acquire);
    if (n_bytes - atomic_load_explicit(&slot->min_bytes, memory_order_relaxed) >= n_sizes)
        return false;
    *cells = atomic_load_explicit(&slot->cells, memory_order_relaxed);
    return true;
}

/* What a wrapper does next. */
enum small_next {
    SMALL_NOTE = 0, /* call the real function, note the block */
    SMALL_PASS,     /* call the real function */
    SMALL_ASK       /* go the slow way, which asks the sink */
};

/* For a call that returns to pc, with the stack pointer then at sp, and allocates n_bytes: returns what to do next, and
 * sets what small_sites_note needs to know of the site. Goes outwards as far as the stack pointer alone leads; beyond
 * that, or beyond the end of *stack, small_sites_walk may find more. Reads only the tables and the stack.  ctx: any */
static inline __attribute__((always_inline)) enum small_next small_sites_find(const struct small_sites *sites,
                                                                              uintptr_t pc, uintptr_t sp,
                                                                              const struct small_stack *stack,
                                                                              size_t n_bytes, uint64_t *cells)
{
    const struct small_slot *slots = atomic_load_explicit(&sites->slots, memory_order_relaxed);
    const struct small_slot *slot;
    uint64_t key = pc;
    while (small_slot_near(slots, key, &slot)) { /* ends with the stack at the latest */
        size_t n_sizes = atomic_load_explicit(&slot->n_sizes, memory_order_acquire);
        size_t min_bytes = atomic_load_explicit(&slot->min_bytes, memory_order_relaxed);
        if (__builtin_expect(n_bytes - min_bytes < n_sizes, 1)) {
            *cells = atomic_load_explicit(&slot->cells, memory_order_relaxed);
            return SMALL_NOTE;
        }
        if (__builtin_expect(n_sizes != 0, 0) || __builtin_expect(min_bytes == 0, 0))
            return atomic_load_explicit(&slot->hop, memory_order_relaxed) & SMALL_HOP_NESTED ? SMALL_PASS : SMALL_ASK;
        uintptr_t cfa = sp + min_bytes;
        if (__builtin_expect(sp < stack->low, 0) || __builtin_expect(cfa > stack->high, 0))
            return SMALL_ASK;
        sp = cfa;
        key = small_key_deeper(key, *(const uintptr_t *)(cfa - sizeof cfa));
    }
    return SMALL_ASK;
}

/* The same, also following frame pointers, and where a key is not in one of its first slots, as happens where a program
 * has thousands of sites; at.fp is the caller's.  ctx: any */
static inline enum small_next small_sites_walk(const struct small_sites *sites, struct small_caller at,
                                               const struct small_stack *stack, size_t n_bytes, uint64_t *cells)
{
    const struct small_slot *slots = atomic_load_explicit(&sites->slots, memory_order_relaxed);
    at.key = at.pc;
    for (int depth = 0; depth < SMALL_DEPTH_MAX; depth++) {
        const struct small_slot *slot;
        if (!small_slot_far(slots, at.key, &slot))
            return SMALL_ASK;
        uint64_t hop = atomic_load_explicit(&slot->hop, memory_order_acquire);
        if (!hop)
            return small_slot_takes(slot, n_bytes, cells) ? SMALL_NOTE : SMALL_ASK;
        if (hop & SMALL_HOP_NESTED)
            return SMALL_PASS;
        if (!small_caller_next(&at, hop, stack))
            return SMALL_ASK;
    }
    return SMALL_ASK;
}

/* A code in each of eight cells.  ctx: any */
static inline uint64_t small_cells_of(unsigned code)
{
    return code * 0x0101010101010101u;
}

/* Writes the cells of a block's shadow, from granule first to last, which holds the block's last byte.  shadow: address
 * of cell 0; cells: small_cells_of  ctx: any */
static inline __attribute__((always_inline)) void small_cells_write(uintptr_t shadow, size_t first, size_t last,
                                                                    uint64_t cells)
{
    uint8_t *at = (uint8_t *)(shadow + first);
    const size_t n = last - first;
    const uint32_t four = (uint32_t)cells;
    if (__builtin_expect(n - 3 < 5, 1)) { /* two stores cover it from end to end */
        memcpy(at + n - 3, &four, sizeof four);
        memcpy(at, &four, sizeof four);
    } else if (n > 7) {
        for (size_t i = 8; i < n - 7; i += 8)
            memcpy(at + i, &cells, sizeof cells);
        memcpy(at + n - 7, &cells, sizeof cells);
        memcpy(at, &cells, sizeof cells);
    } else {
        at[n] = (uint8_t)cells;
        at[n / 2] = (uint8_t)cells;
    }
    *at = (uint8_t)cells | SMALL_START;
}

/* Notes the site of p, the result of a call for n_bytes > 0. False when there is no shadow yet, p is NULL, or the site
 * has no code: then the sink must be asked.  ctx: any */
static inline __attribute__((always_inline)) bool small_sites_note(struct small_region *regions, const void *p,
                                                                   size_t n_bytes, uint64_t cells)
{
    const struct small_region *region = &regions[(uintptr_t)p >> SMALL_REGION_SHIFT & (SMALL_REGIONS - 1)];
    uintptr_t first = (uintptr_t)p - atomic_load_explicit(&region->base, memory_order_acquire);
    uintptr_t last = first + n_bytes - 1;
    if (__builtin_expect((last >> SMALL_REGION_SHIFT | cells >> 63) != 0, 0)) /* it spans regions, or SMALL_UNCODED */
        return false;
    small_cells_write(atomic_load_explicit(&region->shadow, memory_order_relaxed), first >> SMALL_GRANULE_SHIFT,
                      last >> SMALL_GRANULE_SHIFT, cells);
    return true;
}

#endif
