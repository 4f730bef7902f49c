/* SPDX-License-Identifier: BSD-3-Clause */
/* The page map of the object map: changes of one slot, and of all slots that a block covers. Runs inside the program's
 * malloc under the locks of the slots' domains. */
#include "runtime/objmap/objmap.h"

#include "base/invariant.h"

/* --- one slot --- */

/* Changes of one slot of the page map: 0, one record, a list, or a split granule. Readers may look at any moment, so
 * after each store the slot gives the right answer for every block that is not being changed.
 * Runs inside the program's malloc under the lock of the slot's domain. */

static uintptr_t slot_load(const _Atomic uintptr_t *slot)
{
    return atomic_load_explicit(slot, memory_order_relaxed);
}

static void slot_store(_Atomic uintptr_t *slot, uintptr_t value)
{
    atomic_store_explicit(slot, value, memory_order_release);
}

static uint64_t item_load(const struct objmap_list *list, uint32_t i)
{
    return atomic_load_explicit(&list->items[i], memory_order_relaxed);
}

static void item_store(struct objmap_list *list, uint32_t i, uint64_t item)
{
    atomic_store_explicit(&list->items[i], item, memory_order_release);
}

static uint64_t item_of(const struct objmap_record *record, uintptr_t base)
{
    uint64_t offset = record->block.start > base ? record->block.start - base : 0;
    return offset << 48 | (uint64_t)(uintptr_t)record;
}

static struct objmap_list *list_of(uintptr_t slot)
{
    return (struct objmap_list *)(slot - OBJMAP_TAG_LIST);
}

static size_t list_bytes(uint32_t capacity)
{
    return sizeof(struct objmap_list) + (size_t)capacity * sizeof(uint64_t);
}

static void list_retire(struct objmap_cache *cache, struct objmap_list *list)
{
    objmap_retire_hook(cache, list, objmap_class_of(list_bytes(list->capacity)));
}

/* A list for n records, whose positions the caller fills; NULL when there is no memory or n is too large. */
static struct objmap_list *list_new(struct objmap_cache *cache, uint32_t n)
{
    unsigned class = objmap_class_of(list_bytes(n));
    struct objmap_list *list = class < OBJMAP_CLASSES ? objmap_take_hook(cache, class) : NULL;
    if (!list)
        return NULL;
    list->n = (uint16_t)n;
    atomic_store_explicit(&list->version, 0, memory_order_relaxed);
    list->capacity = (uint16_t)((objmap_class_bytes(class) - sizeof *list) / sizeof(uint64_t));
    return list;
}

static void list_fill_rest(struct objmap_list *list, uint32_t from)
{
    for (uint32_t i = from; i < list->capacity; i++)
        atomic_store_explicit(&list->items[i], item_load(list, from - 1), memory_order_relaxed);
}

/* First position whose record starts above offset. */
static uint32_t list_position(const struct objmap_list *list, unsigned offset)
{
    uint32_t low = 0, high = list->capacity;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (objmap_item_offset(item_load(list, middle)) <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether the items are in order, and as many different ones as the list says: what the readers' search rests on. */
static bool list_is_sound(const struct objmap_list *list)
{
    uint32_t n = 1;
    for (uint32_t i = 1; i < list->capacity; i++) {
        if (objmap_item_offset(item_load(list, i - 1)) > objmap_item_offset(item_load(list, i)))
            return false;
        n += item_load(list, i - 1) != item_load(list, i);
    }
    return n == list->n;
}

/* Readers that have already begun their search and find nothing see by this that they must search again. */
static void list_change(struct objmap_list *list)
{
    uint32_t version = atomic_load_explicit(&list->version, memory_order_relaxed);
    atomic_store_explicit(&list->version, version + 1, memory_order_release);
}

/* Overwrites all but one copy of a neighbour of position at with item, beginning at the side towards at, so that the
 * list is in order after every store. False when no neighbour has a second copy. */
static bool list_add_in_place(struct objmap_list *list, uint32_t at, uint64_t item)
{
    bool added = false;
    list_change(list);
    if (at >= 2) {
        uint64_t below = item_load(list, at - 1);
        for (uint32_t i = at - 1; i > 0 && item_load(list, i - 1) == below; i--, added = true)
            item_store(list, i, item);
    }
    if (!added && at + 1 < list->capacity) {
        uint64_t above = item_load(list, at);
        for (uint32_t i = at; i + 1 < list->capacity && item_load(list, i + 1) == above; i++, added = true)
            item_store(list, i, item);
    }
    if (added)
        list->n++;
    INVARIANT(list_is_sound(list));
    return added;
}

/* Publishes in the slot a copy of list that also has item. */
static bool list_add_copy(struct objmap_cache *cache, _Atomic uintptr_t *slot, struct objmap_list *list, uint32_t at,
                          uint64_t item)
{
    struct objmap_list *copy = list_new(cache, list->n + 1);
    if (!copy)
        return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < list->capacity; i++) {
        if (i == at)
            atomic_store_explicit(&copy->items[n++], item, memory_order_relaxed);
        if (i == 0 || item_load(list, i) != item_load(list, i - 1))
            atomic_store_explicit(&copy->items[n++], item_load(list, i), memory_order_relaxed);
    }
    if (at == list->capacity)
        atomic_store_explicit(&copy->items[n++], item, memory_order_relaxed);
    list_fill_rest(copy, n);
    INVARIANT(list_is_sound(copy));
    slot_store(slot, (uintptr_t)copy + OBJMAP_TAG_LIST);
    list_retire(cache, list);
    return true;
}

static bool list_conflicts(const struct objmap_list *list, uint32_t at, uintptr_t base,
                           const struct objmap_record *record)
{
    if (at > 0 && objmap_item_record(item_load(list, at - 1))->block.end > record->block.start)
        return true;
    return at < list->capacity && base + objmap_item_offset(item_load(list, at)) < record->block.end;
}

/* Overwrites the entries of edit->replaces; false when it has none. */
static bool list_replace(const struct objmap_edit *edit, struct objmap_list *list, uint64_t item)
{
    bool replaced = false;
    list_change(list);
    for (uint32_t i = list->capacity; i-- > 0;) {
        if (objmap_item_record(item_load(list, i)) == edit->replaces) {
            item_store(list, i, item);
            replaced = true;
        }
    }
    return replaced;
}

static enum objmap_result list_add(const struct objmap_edit *edit, _Atomic uintptr_t *slot, struct objmap_list *list,
                                   uintptr_t base)
{
    uint64_t item = item_of(edit->record, base);
    if (edit->replaces && base >= edit->keep_below && list_replace(edit, list, item))
        return OBJMAP_OK;
    uint32_t at = list_position(list, objmap_item_offset(item));
    if (!edit->force && list_conflicts(list, at, base, edit->record))
        return OBJMAP_CONFLICT;
    if (list_add_in_place(list, at, item))
        return OBJMAP_OK;
    return list_add_copy(edit->cursor->cache, slot, list, at, item) ? OBJMAP_OK : OBJMAP_NO_MEMORY;
}

/* Adds the slot's second record. */
static enum objmap_result pair_add(const struct objmap_edit *edit, _Atomic uintptr_t *slot,
                                   struct objmap_record *present, uintptr_t base)
{
    const struct objmap_block *old = &present->block, *new = &edit->record->block;
    if (!edit->force && old->start < new->end &&new->start < old->end)
        return OBJMAP_CONFLICT;
    struct objmap_list *list = list_new(edit->cursor->cache, 2);
    if (!list)
        return OBJMAP_NO_MEMORY;
    uint64_t first = item_of(present, base), second = item_of(edit->record, base);
    bool swap = objmap_item_offset(second) < objmap_item_offset(first);
    atomic_store_explicit(&list->items[0], swap ? second : first, memory_order_relaxed);
    atomic_store_explicit(&list->items[1], swap ? first : second, memory_order_relaxed);
    list_fill_rest(list, 2);
    INVARIANT(list_is_sound(list));
    slot_store(slot, (uintptr_t)list + OBJMAP_TAG_LIST);
    return OBJMAP_OK;
}

static unsigned n_subs(unsigned shift)
{
    return 1u << (shift - OBJMAP_SUB_SHIFT);
}

/* The 4 KiB slots of the granule that the record touches: [first, last]. */
static void sub_range(const struct objmap_record *record, uintptr_t base, unsigned shift, unsigned *first,
                      unsigned *last)
{
    uintptr_t from = record->block.start > base ? record->block.start - base : 0;
    uintptr_t to = record->block.end - base;
    *first = (unsigned)(from >> OBJMAP_SUB_SHIFT);
    *last = to >= (uintptr_t)1 << shift ? n_subs(shift) - 1 : (unsigned)((to - 1) >> OBJMAP_SUB_SHIFT);
}

static enum objmap_result objmap_slot_add_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base,
                                               unsigned shift);

static enum objmap_result split_add(const struct objmap_edit *edit, struct objmap_split *split, uintptr_t base,
                                    unsigned shift)
{
    unsigned first, last;
    sub_range(edit->record, base, shift, &first, &last);
    for (unsigned i = first; i <= last; i++) {
        enum objmap_result result =
            objmap_slot_add_hook(edit, &split->slots[i], base + ((uintptr_t)i << OBJMAP_SUB_SHIFT), OBJMAP_SUB_SHIFT);
        if (result != OBJMAP_OK)
            return result;
    }
    return OBJMAP_OK;
}

/* A split that was never published, with its lists. */
static void split_give(struct objmap_cache *cache, struct objmap_split *split)
{
    for (unsigned i = 0; i < 16; i++) {
        uintptr_t slot = slot_load(&split->slots[i]);
        if (slot & OBJMAP_TAG_LIST)
            objmap_give_hook(cache, list_of(slot), objmap_class_of(list_bytes(list_of(slot)->capacity)));
    }
    objmap_give_hook(cache, split, OBJMAP_CLASS_SPLIT);
}

static struct objmap_split *split_new(struct objmap_cursor *cursor, const struct objmap_list *list, uintptr_t base,
                                      unsigned shift)
{
    struct objmap_split *split = objmap_take_hook(cursor->cache, OBJMAP_CLASS_SPLIT);
    if (!split)
        return NULL;
    for (unsigned i = 0; i < 16; i++)
        atomic_store_explicit(&split->slots[i], 0, memory_order_relaxed);
    for (uint32_t i = 0; i < list->capacity; i++) {
        if (i > 0 && item_load(list, i) == item_load(list, i - 1))
            continue;
        struct objmap_edit copy = {.cursor = cursor, .record = objmap_item_record(item_load(list, i)), .force = true};
        if (split_add(&copy, split, base, shift) != OBJMAP_OK) {
            split_give(cursor->cache, split);
            return NULL;
        }
    }
    return split;
}

static enum objmap_result full_list_add(const struct objmap_edit *edit, _Atomic uintptr_t *slot,
                                        struct objmap_list *list, uintptr_t base, unsigned shift)
{
    struct objmap_split *split = split_new(edit->cursor, list, base, shift);
    if (!split)
        return OBJMAP_NO_MEMORY;
    slot_store(slot, (uintptr_t)split + OBJMAP_TAG_SPLIT);
    list_retire(edit->cursor->cache, list);
    return split_add(edit, split, base, shift);
}

/* Enters edit->record into the slot (its cache held) that begins at base and is 1 << shift bytes wide; a slot of
 * OBJMAP_SUB_SHIFT never splits. */
static enum objmap_result objmap_slot_add_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base,
                                               unsigned shift)
{
    uintptr_t present = slot_load(slot);
    bool replaced = edit->replaces && present == (uintptr_t)edit->replaces && base >= edit->keep_below;
    if (!present || replaced) {
        slot_store(slot, (uintptr_t)edit->record);
        return OBJMAP_OK;
    }
    if ((present & OBJMAP_TAGS) == OBJMAP_TAG_SPLIT)
        return split_add(edit, (struct objmap_split *)(present - OBJMAP_TAG_SPLIT), base, shift);
    if ((present & OBJMAP_TAGS) == 0)
        return pair_add(edit, slot, (struct objmap_record *)present, base);
    if (shift > OBJMAP_SUB_SHIFT && list_of(present)->n >= OBJMAP_SPLIT_ABOVE)
        return full_list_add(edit, slot, list_of(present), base, shift);
    return list_add(edit, slot, list_of(present), base);
}

static void list_remove(const struct objmap_edit *edit, _Atomic uintptr_t *slot, struct objmap_list *list)
{
    uint32_t first = 0;
    while (first < list->capacity && objmap_item_record(item_load(list, first)) != edit->record)
        first++;
    if (first == list->capacity)
        return;
    if (list->n == 1) {
        slot_store(slot, 0);
        list_retire(edit->cursor->cache, list);
        return;
    }
    list_change(list);
    uint64_t item = item_load(list, first);
    uint32_t after = first + 1;
    while (after < list->capacity && item_load(list, after) == item)
        after++;
    /* The lower neighbour fills the positions from below and the upper one from above: the list is in order at every
     * moment. */
    if (first > 0) {
        for (uint32_t i = first; i < after; i++)
            item_store(list, i, item_load(list, first - 1));
    } else {
        for (uint32_t i = after; i-- > 0;)
            item_store(list, i, item_load(list, after));
    }
    list->n--;
    INVARIANT(list_is_sound(list));
}

static void objmap_slot_remove_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base,
                                    unsigned shift);

static void split_remove(const struct objmap_edit *edit, _Atomic uintptr_t *slot, struct objmap_split *split,
                         uintptr_t base, unsigned shift)
{
    unsigned first, last;
    sub_range(edit->record, base, shift, &first, &last);
    for (unsigned i = first; i <= last; i++)
        objmap_slot_remove_hook(edit, &split->slots[i], base + ((uintptr_t)i << OBJMAP_SUB_SHIFT), OBJMAP_SUB_SHIFT);
    for (unsigned i = 0; i < n_subs(shift); i++) {
        if (slot_load(&split->slots[i]))
            return;
    }
    slot_store(slot, 0);
    objmap_retire_hook(edit->cursor->cache, split, OBJMAP_CLASS_SPLIT);
}

/* Removes all entries of edit->record from the slot; does nothing when there are none; cannot fail. */
static void objmap_slot_remove_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base,
                                    unsigned shift)
{
    uintptr_t present = slot_load(slot);
    if (present == (uintptr_t)edit->record)
        slot_store(slot, 0);
    else if ((present & OBJMAP_TAGS) == OBJMAP_TAG_LIST)
        list_remove(edit, slot, list_of(present));
    else if ((present & OBJMAP_TAGS) == OBJMAP_TAG_SPLIT)
        split_remove(edit, slot, (struct objmap_split *)(present - OBJMAP_TAG_SPLIT), base, shift);
}

/* Calls visit for the records of the slot in address order until it returns true; returns what it returned. base: start
 * of the (4 KiB) slot that holds the entry. */
static bool objmap_slot_visit_hook(struct objmap_visitor *visitor, const _Atomic uintptr_t *slot, uintptr_t base,
                                   unsigned shift)
{
    uintptr_t present = slot_load(slot);
    uintptr_t end = base + ((uintptr_t)1 << shift);
    if (!present)
        return false;
    if ((present & OBJMAP_TAGS) == 0)
        return visitor->visit(visitor, (struct objmap_record *)present, base, end);
    if ((present & OBJMAP_TAGS) == OBJMAP_TAG_SPLIT) {
        const struct objmap_split *split = (const void *)(present - OBJMAP_TAG_SPLIT);
        for (unsigned i = 0; i < n_subs(shift); i++) {
            uintptr_t sub_base = base + ((uintptr_t)i << OBJMAP_SUB_SHIFT);
            if (objmap_slot_visit_hook(visitor, &split->slots[i], sub_base, OBJMAP_SUB_SHIFT))
                return true;
        }
        return false;
    }
    const struct objmap_list *list = list_of(present);
    for (uint32_t i = 0; i < list->capacity; i++) {
        uint64_t item = item_load(list, i);
        if ((i == 0 || item != item_load(list, i - 1)) && visitor->visit(visitor, objmap_item_record(item), base, end))
            return true;
    }
    return false;
}

/* --- a range of slots --- */

/* The radix tree above the slots of the page map: which slots and whole regions a block covers. A block that covers the
 * whole region of an entry is written into the entry itself, so that 100 GiB take some thousand stores and not a
 * million. Runs inside the program's malloc. */

/* One level, with entries of 1 << shift bytes. */
struct level {
    struct objmap_node *node;
    unsigned shift;
};

static struct level top_level(const struct objmap_state *map)
{
    return (struct level){map->top, map->granule_shift + OBJMAP_LEAF_BITS + map->node_bits};
}

static struct level level_below(const struct objmap_state *map, struct level level, uintptr_t child)
{
    return (struct level){(struct objmap_node *)child, level.shift - map->node_bits};
}

static bool is_above_leaves(const struct objmap_state *map, struct level level)
{
    return level.shift == map->granule_shift + OBJMAP_LEAF_BITS;
}

static struct objmap_entry *entry_at(const struct objmap_state *map, struct level level, uintptr_t address)
{
    return &level.node->entries[address >> level.shift & (((uintptr_t)1 << map->node_bits) - 1)];
}

static uintptr_t region_end(uintptr_t address, unsigned shift)
{
    return ((address >> shift) + 1) << shift;
}

static uintptr_t lesser(uintptr_t a, uintptr_t b)
{
    return a < b ? a : b;
}

static uintptr_t child_load(const struct objmap_entry *entry)
{
    return atomic_load_explicit(&entry->child, memory_order_acquire);
}

/* The child of an entry, made when it does not exist yet; 0 when there is no memory. */
static uintptr_t child_need(const struct objmap_cursor *cursor, struct level level, struct objmap_entry *entry)
{
    const struct objmap_state *map = cursor->map;
    uintptr_t child = child_load(entry);
    if (child)
        return child;
    size_t node_bytes = sizeof(struct objmap_entry) << map->node_bits;
    uintptr_t made = (uintptr_t)objmap_carve_hook(is_above_leaves(map, level) ? sizeof(struct objmap_leaf) : node_bytes,
                                                  cursor->owner);
    /* The thread that comes second wastes a few zero pages, once. */
    if (!made || atomic_compare_exchange_strong(&entry->child, &child, made))
        return made;
    return child;
}

static bool leaf_is_used(const struct objmap_leaf *leaf)
{
    for (unsigned i = 0; i < 1u << OBJMAP_LEAF_BITS; i++) {
        if (atomic_load_explicit(&leaf->slots[i], memory_order_relaxed))
            return true;
    }
    return false;
}

/* Whether anything is recorded below an entry of the level. */
static bool child_is_used(const struct objmap_state *map, struct level level, uintptr_t child)
{
    if (!child)
        return false;
    if (is_above_leaves(map, level))
        return leaf_is_used((const struct objmap_leaf *)child);
    struct level below = level_below(map, level, child);
    for (size_t i = 0; i < (size_t)1 << map->node_bits; i++) {
        const struct objmap_entry *entry = &below.node->entries[i];
        if (atomic_load_explicit(&entry->whole, memory_order_relaxed) || child_is_used(map, below, child_load(entry)))
            return true;
    }
    return false;
}

static enum objmap_result whole_add(const struct objmap_state *map, const struct objmap_edit *edit, struct level level,
                                    struct objmap_entry *entry)
{
    if (!edit->force && child_is_used(map, level, child_load(entry)))
        return OBJMAP_CONFLICT;
    atomic_store_explicit(&entry->whole, (uintptr_t)edit->record, memory_order_release);
    return OBJMAP_OK;
}

static enum objmap_result leaf_add(const struct objmap_state *map, const struct objmap_edit *edit,
                                   struct objmap_leaf *leaf, uintptr_t low, uintptr_t high)
{
    uintptr_t granule_bytes = (uintptr_t)1 << map->granule_shift;
    for (uintptr_t base = low & ~(granule_bytes - 1); base < high; base += granule_bytes) {
        if (objmap_cursor_hold_hook(edit->cursor, base) < 0)
            return OBJMAP_NO_MEMORY;
        _Atomic uintptr_t *slot = &leaf->slots[base >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1)];
        enum objmap_result result = objmap_slot_add_hook(edit, slot, base, map->granule_shift);
        if (result != OBJMAP_OK)
            return result;
    }
    return OBJMAP_OK;
}

static enum objmap_result level_add(const struct objmap_state *map, const struct objmap_edit *edit, struct level level,
                                    uintptr_t low, uintptr_t high);

static enum objmap_result entry_add(const struct objmap_state *map, const struct objmap_edit *edit, struct level level,
                                    uintptr_t low, uintptr_t high)
{
    struct objmap_entry *entry = entry_at(map, level, low);
    if (!edit->force && atomic_load_explicit(&entry->whole, memory_order_relaxed))
        return OBJMAP_CONFLICT;
    if (high - low == (uintptr_t)1 << level.shift)
        return whole_add(map, edit, level, entry);
    uintptr_t child = child_need(edit->cursor, level, entry);
    if (!child)
        return OBJMAP_NO_MEMORY;
    if (is_above_leaves(map, level))
        return leaf_add(map, edit, (struct objmap_leaf *)child, low, high);
    return level_add(map, edit, level_below(map, level, child), low, high);
}

static enum objmap_result level_add(const struct objmap_state *map, const struct objmap_edit *edit, struct level level,
                                    uintptr_t low, uintptr_t high)
{
    for (uintptr_t end; low < high; low = end) {
        end = lesser(high, region_end(low, level.shift));
        enum objmap_result result = entry_add(map, edit, level, low, end);
        if (result != OBJMAP_OK)
            return result;
    }
    return OBJMAP_OK;
}

static uintptr_t granule_base(const struct objmap_state *map, uintptr_t address)
{
    return address >> map->granule_shift << map->granule_shift;
}

enum objmap_result objmap_pagemap_add_hook(const struct objmap_edit *edit)
{
    const struct objmap_state *map = edit->cursor->map;
    const struct objmap_block *block = &edit->record->block;
    _Atomic uintptr_t *slot = objmap_slot_of_small(map, block);
    if (slot) {
        if (objmap_cursor_hold_hook(edit->cursor, block->start) < 0)
            return OBJMAP_NO_MEMORY;
        return objmap_slot_add_hook(edit, slot, granule_base(map, block->start), map->granule_shift);
    }
    return level_add(map, edit, top_level(map), edit->record->block.start, edit->record->block.end);
}

static void leaf_remove(const struct objmap_state *map, const struct objmap_edit *edit, struct objmap_leaf *leaf,
                        uintptr_t low, uintptr_t high)
{
    uintptr_t granule_bytes = (uintptr_t)1 << map->granule_shift;
    for (uintptr_t base = low & ~(granule_bytes - 1); base < high; base += granule_bytes) {
        if (objmap_cursor_hold_hook(edit->cursor, base) < 0)
            return;
        _Atomic uintptr_t *slot = &leaf->slots[base >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1)];
        objmap_slot_remove_hook(edit, slot, base, map->granule_shift);
    }
}

/* Clears the `whole` entries of [low, high) that belong to the record. Done under the lock, so that a thread that holds
 * the lock may follow any such entry. */
static void wholes_remove(struct objmap_state *map, const struct objmap_edit *edit, struct level level, uintptr_t low,
                          uintptr_t high)
{
    if (!objmap_lock_hook(&map->huge, edit->cursor->owner))
        return;
    for (; low < high; low += (uintptr_t)1 << level.shift) {
        uintptr_t expected = (uintptr_t)edit->record;
        atomic_compare_exchange_strong(&entry_at(map, level, low)->whole, &expected, 0);
    }
    objmap_unlock_hook(&map->huge);
}

static void level_remove(struct objmap_state *map, const struct objmap_edit *edit, struct level level, uintptr_t low,
                         uintptr_t high)
{
    uintptr_t region_bytes = (uintptr_t)1 << level.shift;
    for (uintptr_t end; low < high; low = end) {
        end = lesser(high, region_end(low, level.shift));
        if (end - low == region_bytes) {
            end = high & ~(region_bytes - 1);
            wholes_remove(map, edit, level, low, end);
            continue;
        }
        uintptr_t child = child_load(entry_at(map, level, low));
        if (child && is_above_leaves(map, level))
            leaf_remove(map, edit, (struct objmap_leaf *)child, low, end);
        else if (child)
            level_remove(map, edit, level_below(map, level, child), low, end);
    }
}

void objmap_pagemap_remove_hook(const struct objmap_edit *edit)
{
    struct objmap_state *map = edit->cursor->map;
    const struct objmap_block *block = &edit->record->block;
    _Atomic uintptr_t *slot = objmap_slot_of_small(map, block);
    if (slot) {
        if (objmap_cursor_hold_hook(edit->cursor, block->start) >= 0)
            objmap_slot_remove_hook(edit, slot, granule_base(map, block->start), map->granule_shift);
        return;
    }
    level_remove(map, edit, top_level(map), edit->record->block.start, edit->record->block.end);
}

static bool leaf_visit(const struct objmap_state *map, struct objmap_cursor *cursor, struct objmap_visitor *visitor,
                       const struct objmap_leaf *leaf, uintptr_t low, uintptr_t high)
{
    uintptr_t granule_bytes = (uintptr_t)1 << map->granule_shift;
    for (uintptr_t base = low & ~(granule_bytes - 1); base < high; base += granule_bytes) {
        const _Atomic uintptr_t *slot = &leaf->slots[base >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1)];
        if (!atomic_load_explicit(slot, memory_order_relaxed))
            continue;
        if (objmap_cursor_hold_hook(cursor, base) < 0)
            return false;
        if (objmap_slot_visit_hook(visitor, slot, base, map->granule_shift))
            return true;
    }
    return false;
}

static bool whole_visit(const struct objmap_cursor *cursor, struct objmap_visitor *visitor,
                        const struct objmap_entry *entry, uintptr_t base, uintptr_t end)
{
    struct objmap_state *map = cursor->map;
    if (!atomic_load_explicit(&entry->whole, memory_order_relaxed) || !objmap_lock_hook(&map->huge, cursor->owner))
        return false;
    struct objmap_record *record = (struct objmap_record *)atomic_load_explicit(&entry->whole, memory_order_acquire);
    bool stop = record && visitor->visit(visitor, record, base, end);
    objmap_unlock_hook(&map->huge);
    return stop;
}

static bool level_visit(struct objmap_state *map, struct objmap_cursor *cursor, struct objmap_visitor *visitor,
                        struct level level, uintptr_t low, uintptr_t high)
{
    for (uintptr_t end; low < high; low = end) {
        end = lesser(high, region_end(low, level.shift));
        const struct objmap_entry *entry = entry_at(map, level, low);
        uintptr_t base = low & ~(((uintptr_t)1 << level.shift) - 1);
        uintptr_t child = child_load(entry);
        if (whole_visit(cursor, visitor, entry, base, region_end(low, level.shift)))
            return true;
        if (!child)
            continue;
        if (is_above_leaves(map, level) ? leaf_visit(map, cursor, visitor, (const struct objmap_leaf *)child, low, end)
                                        : level_visit(map, cursor, visitor, level_below(map, level, child), low, end))
            return true;
    }
    return false;
}

bool objmap_pagemap_visit_hook(struct objmap_cursor *cursor, struct objmap_visitor *visitor, uintptr_t start,
                               uintptr_t end)
{
    struct objmap_state *map = cursor->map;
    return level_visit(map, cursor, visitor, top_level(map), start, end);
}
