/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of the heap that are recorded and not large, which come and go most often, have no record in the page map, no
 * tree and no lock: a table with a word for each KiB of the heap says which block starts there (objmap.h). Whatever
 * does not fit goes to the page map: blocks that cross the end of a table, sampled ones, and those that overlap
 * one there. A block that is overlapped or cut moves to the page map first, which knows how to do that. Runs inside the
 * program's malloc; wait-free except where the page map has something near, and for the system call that maps a table.
 */
#include "runtime/objmap/objmap.h"
#include "runtime/objmap/small.h"

#define AT_ONCE (SMALL_PIECE_BYTES / sizeof(struct objmap_near)) /* so many tables are made */
#define PAGE_BYTES 4096
#define HEAP_VAR ((uint64_t)VAR_HEAP << 24) /* the upper half of a heap block's variable key */

/* Memory for a table; NULL when there is none. near_rest: the address of a piece + the number of tables that are free
 * in it, the lowest ones. */
static struct objmap_near *table(struct objmap_state *map)
{
    uintptr_t rest = atomic_load(&map->near_rest);
    while (rest % PAGE_BYTES)
        if (atomic_compare_exchange_weak(&map->near_rest, &rest, rest - 1))
            return (struct objmap_near *)(rest / PAGE_BYTES * PAGE_BYTES) + rest % PAGE_BYTES - 1;
    struct objmap_near *made = small_piece_hook();
    if (!made)
        return NULL;
    /* what another thread has put there meanwhile is given up: address space that nobody has touched, once */
    atomic_store(&map->near_rest, (uintptr_t)made + AT_ONCE - 1);
    atomic_fetch_add_explicit(&map->bytes_memory, SMALL_PIECE_BYTES, memory_order_relaxed);
    return made + AT_ONCE - 1;
}

/* Gives the free slot to the table of the addresses with this tag. NULL when another thread, or the code that this
 * thread was interrupted in, is filling the slot: the block goes to the page map. */
static struct objmap_near *fill(struct objmap_near_region *region, uintptr_t tag)
{
    struct objmap_state *map = objmap_state_sig();
    uintptr_t none = 0;
    struct objmap_near *near = table(map);
    if (!near || !atomic_compare_exchange_strong(&region->base, &none, OBJMAP_NEAR_BUSY))
        return NULL;
    atomic_store_explicit(&region->near, (uintptr_t)near, memory_order_relaxed);
    atomic_store_explicit(&region->base, tag << OBJMAP_NEAR_SHIFT, memory_order_release);
    atomic_fetch_add(&map->n_near, 1);
    return near;
}

/* The table of an address; made when there is none; NULL when there is no room. */
static struct objmap_near *need(const struct objmap_state *map, uintptr_t address)
{
    struct objmap_near *near = objmap_near_of(map, address);
    uintptr_t tag = address >> OBJMAP_NEAR_SHIFT;
    for (uintptr_t i = 0; i < OBJMAP_NEAR_PROBES && !near && tag; i++) {
        struct objmap_near_region *region = &map->near[(tag + i) & (OBJMAP_NEAR_REGIONS - 1)];
        if (!atomic_load_explicit(&region->base, memory_order_acquire))
            return fill(region, tag);
    }
    return near;
}

/* The start of the last block of the table that starts before end, as far as it can overlap [start, end); 0 when there
 * is none. *n_bytes: its size. */
static uintptr_t last_before(const struct objmap_near *near, uintptr_t start, uintptr_t end, size_t *n_bytes)
{
    uintptr_t base = start >> OBJMAP_NEAR_SHIFT << OBJMAP_NEAR_SHIFT, at = end - 1;
    for (int unit; (unit = objmap_near_below(near, objmap_near_unit(at))) >= 0 || at > start;) {
        uint64_t word = unit < 0 ? 0 : atomic_load_explicit(&near->units[unit].block, memory_order_acquire);
        uintptr_t found = objmap_near_start(base, unit, word);
        *n_bytes = objmap_near_bytes(word);
        if (word && found < end)
            return found;
        if (unit == 0)
            break;
        at = unit < 0 ? start : base + ((uintptr_t)unit << OBJMAP_NEAR_UNIT_SHIFT) - 1; /* farther down */
    }
    return 0;
}

/* Whether the table has no block that overlaps [start, end). */
static bool is_free(const struct objmap_near *near, uintptr_t start, uintptr_t end)
{
    unsigned first = objmap_near_unit(start), final = objmap_near_unit(end - 1);
    int below = objmap_near_below(near, final);
    below = below < 0 ? objmap_near_below(near, first) : below;
    if (below < 0)
        return true;
    uint64_t word = atomic_load_explicit(&near->units[below].block, memory_order_acquire);
    uintptr_t base = start >> OBJMAP_NEAR_SHIFT << OBJMAP_NEAR_SHIFT;
    if (__builtin_expect(word && below < (int)first, 1))
        return objmap_near_start(base, below, word) + objmap_near_bytes(word) <= start;
    size_t n_bytes;
    uintptr_t last = last_before(near, start, end, &n_bytes);
    return !last || last + n_bytes <= start;
}

static inline bool is_covered(const struct objmap_entry *entry)
{
    return atomic_load_explicit(&entry->whole, memory_order_acquire) != 0;
}

static inline const void *child_of(const struct objmap_entry *entry)
{
    return (const void *)atomic_load_explicit(&entry->child, memory_order_acquire);
}

/* Whether the page map has nothing in the granule of address, as far as can be seen without a lock. Where all blocks
 * are in tables, it has not even a leaf there. What is left of a record that is cut is entered below before the record
 * goes, so the record is asked for first. */
static inline bool is_granule_free(const struct objmap_state *map, uintptr_t address)
{
    const uintptr_t leaf_number = address >> (map->granule_shift + OBJMAP_LEAF_BITS);
    const struct objmap_entry *entry = &map->top->entries[leaf_number >> map->node_bits];
    if (is_covered(entry))
        return false;
    const struct objmap_node *node = child_of(entry);
    if (!node)
        return true;
    entry = &node->entries[leaf_number & (((uintptr_t)1 << map->node_bits) - 1)];
    if (is_covered(entry))
        return false;
    const struct objmap_leaf *leaf = child_of(entry);
    unsigned slot = address >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1);
    return !leaf || !atomic_load_explicit(&leaf->slots[slot], memory_order_relaxed);
}

/* is_alone: objmap_is_alone(), which is asked once for all that follows. */
static inline void set_bit(_Atomic uint64_t *bits, unsigned unit, bool is_set, bool is_alone)
{
    uint64_t bit = UINT64_C(1) << unit % 64;
    bits += unit / 64;
    if (is_alone)
        atomic_store_explicit(bits,
                              is_set ? atomic_load_explicit(bits, memory_order_relaxed) | bit
                                     : atomic_load_explicit(bits, memory_order_relaxed) & ~bit,
                              memory_order_release);
    else if (is_set)
        atomic_fetch_or(bits, bit);
    else
        atomic_fetch_and(bits, ~bit);
}

/* Replaces the word of a unit; false when another thread has changed it. */
static inline bool replace(_Atomic uint64_t *at, uint64_t from, uint64_t to, bool is_alone)
{
    if (is_alone) {
        atomic_store_explicit(at, to, memory_order_release);
        return true;
    }
    return atomic_compare_exchange_strong(at, &from, to);
}

bool objmap_near_insert_hook(uintptr_t start, size_t n_bytes, uint64_t var, uint32_t thread, uint64_t weight_bytes)
{
    struct objmap_state *map = objmap_state_sig();
    uintptr_t end = start + n_bytes;
    if (!map->near || n_bytes - OBJMAP_NEAR_MIN >= OBJMAP_NEAR_MAX - OBJMAP_NEAR_MIN || start % 16 ||
        (start ^ (end - 1)) >> OBJMAP_NEAR_SHIFT || start >= OBJMAP_POOL_LAYER || weight_bytes != n_bytes ||
        var >> 32 != HEAP_VAR || !atomic_load_explicit(&map->ready, memory_order_acquire))
        return false;
    bool is_one = (start ^ (end - 1)) >> map->granule_shift == 0; /* granule */
    if ((!is_granule_free(map, start) || (!is_one && !is_granule_free(map, end - 1))) &&
        objmap_overlaps_hook(start, end))
        return false;
    struct objmap_near *near = need(map, start);
    if (!near || !is_free(near, start, end))
        return false;
    bool is_alone = objmap_is_alone();
    unsigned unit = objmap_near_unit(start);
    uint64_t word = var << 32 | (uint64_t)n_bytes << 16 | (start >> 4 & 63) << OBJMAP_NEAR_PLACE;
    atomic_store_explicit(&near->units[unit].thread, thread, memory_order_relaxed);
    if (!replace(&near->units[unit].block, 0, word, is_alone))
        return false;
    set_bit(near->bits, unit, true, is_alone);
    objmap_filter_change(map, start, true, is_alone);
    return true;
}

bool objmap_near_remove_hook(uintptr_t start, struct objmap_block *removed)
{
    struct objmap_state *map = objmap_state_sig();
    unsigned unit = objmap_near_unit(start);
    struct objmap_near *near = objmap_near_of(map, start);
    uint64_t word = near ? atomic_load_explicit(&near->units[unit].block, memory_order_acquire) : 0;
    if (!word || objmap_near_start(start >> OBJMAP_NEAR_SHIFT << OBJMAP_NEAR_SHIFT, (int)unit, word) != start ||
        !atomic_load_explicit(&map->ready, memory_order_acquire))
        return false;
    if (removed)
        objmap_near_copy(removed, start, word, atomic_load_explicit(&near->units[unit].thread, memory_order_relaxed));
    bool is_alone = objmap_is_alone();
    set_bit(near->bits, unit, false, is_alone);
    if (!replace(&near->units[unit].block, word, 0, is_alone)) {
        if (atomic_load(&near->units[unit].block))
            set_bit(near->bits, unit, true, is_alone);
        return false;
    }
    objmap_filter_change(map, start, false, is_alone);
    return true;
}

bool objmap_near_flag_hook(uintptr_t start, bool resizing)
{
    struct objmap_state *map = objmap_state_sig();
    unsigned unit = objmap_near_unit(start);
    struct objmap_near *near = objmap_near_of(map, start);
    uint64_t word = near ? atomic_load_explicit(&near->units[unit].block, memory_order_acquire) : 0;
    if (!word || objmap_near_start(start >> OBJMAP_NEAR_SHIFT << OBJMAP_NEAR_SHIFT, (int)unit, word) != start)
        return false;
    return replace(&near->units[unit].block, word,
                   resizing ? word | OBJMAP_NEAR_RESIZING : word & ~OBJMAP_NEAR_RESIZING, objmap_is_alone());
}

/* Moves the blocks of one table that overlap [start, end). */
static void move_some(struct objmap_near *near, uintptr_t base, uintptr_t start, uintptr_t end,
                      bool (*insert)(const struct objmap_block *block))
{
    const uintptr_t region_bytes = (uintptr_t)1 << OBJMAP_NEAR_SHIFT;
    unsigned first = start > base + OBJMAP_NEAR_MAX ? objmap_near_unit(start - OBJMAP_NEAR_MAX) : 0;
    unsigned last = end < base + region_bytes ? objmap_near_unit(end - 1) : OBJMAP_NEAR_UNITS - 1;
    for (unsigned unit = first; unit <= last; unit++) {
        struct objmap_block block;
        if (!(atomic_load_explicit(&near->bits[unit / 64], memory_order_relaxed) >> unit % 64)) {
            unit |= 63; /* none in the rest of this word */
            continue;
        }
        uint64_t word = atomic_load_explicit(&near->units[unit].block, memory_order_acquire);
        uintptr_t at = objmap_near_start(base, (int)unit, word);
        if (!word || at >= end || at + objmap_near_bytes(word) <= start)
            continue;
        objmap_near_copy(&block, at, word, atomic_load_explicit(&near->units[unit].thread, memory_order_relaxed));
        if (insert(&block) && !objmap_near_remove_hook(at, NULL))
            (void)objmap_remove_hook(at, NULL); /* it was freed meanwhile */
    }
}

void objmap_near_move_hook(uintptr_t start, uintptr_t end, bool (*insert)(const struct objmap_block *block))
{
    const struct objmap_state *map = objmap_state_sig();
    uint32_t n_left = atomic_load_explicit(&map->n_near, memory_order_relaxed);
    if (!n_left || start >= end)
        return;
    uintptr_t first = start >> OBJMAP_NEAR_SHIFT, last = (end - 1) >> OBJMAP_NEAR_SHIFT;
    bool is_short = last - first < OBJMAP_NEAR_REGIONS / 16;
    for (uintptr_t i = 0; n_left && i < OBJMAP_NEAR_REGIONS && (!is_short || i <= last - first); i++) {
        const struct objmap_near_region *region = &map->near[i];
        uintptr_t base = is_short ? (first + i) << OBJMAP_NEAR_SHIFT : atomic_load(&region->base);
        struct objmap_near *near = objmap_near_of(map, base);
        if (!near || base >> OBJMAP_NEAR_SHIFT < first || base >> OBJMAP_NEAR_SHIFT > last)
            continue;
        move_some(near, base, start, end, insert);
        n_left--;
    }
}
