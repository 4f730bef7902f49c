/* SPDX-License-Identifier: BSD-3-Clause */
/* The wait-free side of the object map: which block holds an address? The signal handler asks this. This file owns the
 * map's state, because a reader must reach everything without a lock. */
#include "runtime/objmap/objmap.h"

#include "base/sigsafe.h"

#define LIST_TRIES 64 /* a search is practically never disturbed this often */

static struct {
    struct objmap_state map;
    _Atomic uint8_t no_starts[2]; /* the filter until the map exists: a zero for every address */
} find = {.map = {.filter = {.counts = find.no_starts, .shift = 63}}};

struct objmap_state *objmap_state_sig(void)
{
    return &find.map;
}

/* Returns what the slot held: 0, or the epoch of the look-up in a malloc hook that this signal handler interrupted. */
static uint64_t enter_epoch(struct objmap_state *map, unsigned reader)
{
    uint64_t outer = atomic_load_explicit(&map->readers[reader].epoch, memory_order_relaxed);
    if (outer)
        return outer;
    _Atomic uint64_t *used = &map->readers_used[reader / 64];
    uint64_t bit = 1ull << (reader & 63);
    if (!(atomic_load_explicit(used, memory_order_relaxed) & bit)) {
        uint32_t end = atomic_load(&map->readers_end);
        while (end <= reader && !atomic_compare_exchange_weak(&map->readers_end, &end, reader + 1))
            continue;
        atomic_fetch_or(used, bit);
        atomic_fetch_or(&map->reader_groups[reader / 64 / 64], 1ull << (reader / 64 & 63));
    }
    /* Sequentially consistent on both sides: either the writer's scan sees this slot, or the loads below see that the
     * writer has unlinked the record. */
    atomic_store(&map->readers[reader].epoch, atomic_load(&map->epoch));
    return 0;
}

static void leave_epoch(struct objmap_state *map, unsigned reader, uint64_t outer)
{
    atomic_store_explicit(&map->readers[reader].epoch, outer, memory_order_release);
}

/* Last record of the list that starts at or below offset, NULL when there is none. Keeps the item that it compared and
 * not its position, because positions may be overwritten during the search. */
static struct objmap_record *list_floor(const struct objmap_list *list, unsigned offset)
{
    uint64_t best = 0;
    uint32_t low = 0, high = list->capacity;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        uint64_t item = atomic_load_explicit(&list->items[middle], memory_order_acquire);
        if (objmap_item_offset(item) <= offset) {
            best = item;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return objmap_item_record(best);
}

static bool holds(const struct objmap_record *record, uintptr_t address)
{
    return record && record->block.start <= address && address < record->block.end;
}

/* The record of the list that holds address. While one change is made, every state of the list, and every mixture of
 * states, gives the right answer; a search that overlapped with more than one change is repeated if it found nothing.
 */
static const struct objmap_record *find_in_list(const struct objmap_list *list, uintptr_t address, unsigned shift)
{
    unsigned offset = (unsigned)(address & ((1u << shift) - 1));
    for (int tries = 0; tries < LIST_TRIES; tries++) {
        uint32_t version = atomic_load_explicit(&list->version, memory_order_acquire);
        const struct objmap_record *record = list_floor(list, offset);
        if (holds(record, address))
            return record;
        if (atomic_load_explicit(&list->version, memory_order_acquire) == version)
            return NULL;
    }
    return NULL;
}

static const struct objmap_record *find_in_slot(uintptr_t slot, uintptr_t address, unsigned shift)
{
    if ((slot & OBJMAP_TAGS) == OBJMAP_TAG_SPLIT) {
        const struct objmap_split *split = (const void *)(slot - OBJMAP_TAG_SPLIT);
        uintptr_t sub = address >> OBJMAP_SUB_SHIFT & ((1u << (shift - OBJMAP_SUB_SHIFT)) - 1);
        slot = atomic_load(&split->slots[sub]);
        shift = OBJMAP_SUB_SHIFT;
    }
    if ((slot & OBJMAP_TAGS) == OBJMAP_TAG_LIST)
        return find_in_list((const void *)(slot - OBJMAP_TAG_LIST), address, shift);
    return (const void *)slot;
}

/* Searches from the top down. So a block that is being cut is always found: its remainders are entered before its own
 * entries are removed. */
static const struct objmap_record *find_record(const struct objmap_state *map, uintptr_t address)
{
    const struct objmap_record *found = NULL;
    const struct objmap_node *node = map->top;
    for (unsigned shift = map->granule_shift + OBJMAP_LEAF_BITS + map->node_bits;; shift -= map->node_bits) {
        const struct objmap_entry *entry = &node->entries[address >> shift & (((uintptr_t)1 << map->node_bits) - 1)];
        const struct objmap_record *whole = (const void *)atomic_load(&entry->whole);
        uintptr_t child = atomic_load(&entry->child);
        if (holds(whole, address))
            found = whole;
        if (!child)
            return found;
        if (shift == map->granule_shift + OBJMAP_LEAF_BITS) {
            const struct objmap_leaf *leaf = (const void *)child;
            uintptr_t slot = atomic_load(&leaf->slots[address >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1)]);
            const struct objmap_record *record = find_in_slot(slot, address, map->granule_shift);
            return holds(record, address) ? record : found;
        }
        node = (const void *)child;
    }
}

/* Finds the block of a table that holds address. A word is read again after what belongs to it. */
static bool find_near(const struct objmap_state *map, uintptr_t address, struct objmap_block *found)
{
    const struct objmap_near *near = objmap_near_of(map, address);
    uintptr_t base = address >> OBJMAP_NEAR_SHIFT << OBJMAP_NEAR_SHIFT;
    int unit = near ? objmap_near_below(near, objmap_near_unit(address)) : -1;
    for (int tries = 0; unit >= 0 && tries < LIST_TRIES; tries++) {
        uint64_t word = atomic_load_explicit(&near->units[unit].block, memory_order_acquire);
        uint64_t thread = atomic_load_explicit(&near->units[unit].thread, memory_order_acquire);
        uintptr_t start = objmap_near_start(base, unit, word);
        if (!word || start > address) { /* the one before, or the word has just gone */
            unit = unit ? objmap_near_below(near, (unsigned)unit - 1) : -1;
            continue;
        }
        if (atomic_load_explicit(&near->units[unit].block, memory_order_relaxed) != word)
            continue;
        objmap_near_copy(found, start, word, thread);
        return address < found->end;
    }
    return false;
}

bool objmap_find_sig(unsigned reader, uintptr_t address, struct objmap_block *found)
{
    struct objmap_state *map = &find.map;
    if (!atomic_load_explicit(&map->ready, memory_order_acquire) || reader >= OBJMAP_READERS ||
        address >> OBJMAP_ADDRESS_BITS)
        return false;
    if (find_near(map, address, found))
        return true;
    uint64_t outer = enter_epoch(map, reader);
    const struct objmap_record *record = find_record(map, address);
    if (record) {
        found->start = record->block.start;
        found->end = record->block.end;
        found->var = record->block.var;
        found->flags = atomic_load_explicit(&record->block.flags, memory_order_relaxed);
        found->thread = record->block.thread;
        found->weight_bytes = record->block.weight_bytes;
    }
    leave_epoch(map, reader, outer);
    return record != NULL;
}

/* --- warming --- */

/* The slot of 4 KiB of address in a granule that is split. The memory of a split is never unmapped, whatever it has
 * become. */
static const _Atomic uintptr_t *sub_slot(const struct objmap_state *map, uintptr_t split, uintptr_t address)
{
    uintptr_t sub = address >> OBJMAP_SUB_SHIFT & ((1u << (map->granule_shift - OBJMAP_SUB_SHIFT)) - 1);
    return &((const struct objmap_split *)(split - OBJMAP_TAG_SPLIT))->slots[sub];
}

const _Atomic uintptr_t *objmap_warm_sig(uintptr_t start, uintptr_t end)
{
    const struct objmap_state *map = &find.map;
    if (!atomic_load_explicit(&map->ready, memory_order_acquire) || start >> OBJMAP_ADDRESS_BITS)
        return NULL;
    const struct objmap_near *near = objmap_near_of(map, start);
    if (near) {
        int below = objmap_near_below(near, objmap_near_unit(end - 1)); /* what an insertion looks at */
        __builtin_prefetch(&near->units[objmap_near_unit(start)], 1);
        __builtin_prefetch(&near->units[below < 0 ? 0 : below]);
        return NULL; /* most blocks here are in the table */
    }
    const _Atomic uintptr_t *at = objmap_slot_at(map, start);
    if (!at)
        return NULL;
    uintptr_t slot = atomic_load_explicit(at, memory_order_relaxed);
    if ((slot & OBJMAP_TAGS) == OBJMAP_TAG_SPLIT) {
        __builtin_prefetch((const void *)sub_slot(map, slot, start), 1);
        __builtin_prefetch((const void *)sub_slot(map, slot, end - 1), 1);
    } else {
        __builtin_prefetch((const void *)(slot & ~(uintptr_t)OBJMAP_TAGS), 1);
    }
    const struct objmap_shard *shard = &map->shards[objmap_shard_index(map, start)];
    const struct objmap_record *const *tree = (const void *)&shard->trees[objmap_tree_index(map, start)];
    __builtin_prefetch(__atomic_load_n(tree, __ATOMIC_RELAXED), 1);
    return at;
}

void objmap_warm_more_sig(const _Atomic uintptr_t *at, uintptr_t start, uintptr_t end)
{
    const struct objmap_state *map = &find.map;
    uintptr_t slot = at ? atomic_load_explicit(at, memory_order_relaxed) : 0;
    if ((slot & OBJMAP_TAGS) != OBJMAP_TAG_SPLIT)
        return;
    const _Atomic uintptr_t *first = sub_slot(map, slot, start), *last = sub_slot(map, slot, end - 1);
    __builtin_prefetch((const void *)(atomic_load_explicit(first, memory_order_relaxed) & ~(uintptr_t)OBJMAP_TAGS), 1);
    __builtin_prefetch((const void *)(atomic_load_explicit(last, memory_order_relaxed) & ~(uintptr_t)OBJMAP_TAGS), 1);
}

bool objmap_has_pools_sig(void)
{
    return atomic_load_explicit(&find.map.has_pools, memory_order_relaxed);
}

enum start_filter_says objmap_maybe_start_sig(uintptr_t start)
{
    return start_filter_ask(&find.map.filter, start);
}

const struct start_filter *objmap_start_filter_sig(void)
{
    return &find.map.filter;
}

/* The number of blocks in the tables. */
static int64_t n_in_tables(const struct objmap_state *map)
{
    int64_t n = 0;
    for (size_t i = 0; map->near && i < OBJMAP_NEAR_REGIONS && atomic_load(&map->n_near); i++) {
        const struct objmap_near *near = objmap_near_of(map, atomic_load(&map->near[i].base));
        for (unsigned word = 0; near && word < OBJMAP_NEAR_UNITS / 64; word++)
            for (uint64_t bits = atomic_load(&near->bits[word]); bits; bits &= bits - 1)
                n++;
    }
    return n;
}

struct objmap_stats objmap_stats_sig(void)
{
    const struct objmap_state *map = &find.map;
    struct objmap_stats stats = {0};
    if (!map->caches)
        return stats;
    int64_t n_live = n_in_tables(map);
    for (unsigned i = 0; i < OBJMAP_CACHES; i++) {
        n_live += atomic_load_explicit(&map->caches[i].n_live, memory_order_relaxed);
        stats.n_refused += atomic_load_explicit(&map->caches[i].n_refused, memory_order_relaxed);
        stats.n_replaced += atomic_load_explicit(&map->caches[i].n_replaced, memory_order_relaxed);
    }
    stats.n_live = n_live < 0 ? 0 : (uint64_t)n_live;
    stats.n_retired_pending = atomic_load_explicit(&map->n_pending, memory_order_relaxed);
    stats.n_retired_pending_max = atomic_load_explicit(&map->n_pending_max, memory_order_relaxed);
    stats.bytes_memory = atomic_load_explicit(&map->bytes_memory, memory_order_relaxed);
    return stats;
}
