/* SPDX-License-Identifier: BSD-3-Clause */
/* The radix tree above the slots of the page map: which slots and whole regions a block covers. A block that covers
 * the region of an entry wholly is written into the entry itself, so that 100 GiB cost some thousand stores and not a
 * million. Runs inside the program's malloc. */
#include "runtime/objmap-internal.h"

/* One level: entries of 1 << shift bytes. */
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
    uintptr_t made =
        (uintptr_t)objmap_carve_hook(is_above_leaves(map, level) ? sizeof(struct objmap_leaf) : node_bytes,
                                     cursor->owner);
    /* Who comes second wastes a few zero pages, once. */
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

/* The slot of a block that lies in one granule, when the way to it exists and no whole entry is on it; else NULL. */
static _Atomic uintptr_t *slot_of_small(const struct objmap_state *map, const struct objmap_block *block)
{
    if (block->start >> map->granule_shift != (block->end - 1) >> map->granule_shift)
        return NULL;
    for (struct level level = top_level(map);;) {
        const struct objmap_entry *entry = entry_at(map, level, block->start);
        uintptr_t child = child_load(entry);
        if (!child || atomic_load_explicit(&entry->whole, memory_order_relaxed))
            return NULL;
        if (is_above_leaves(map, level))
            return &((struct objmap_leaf *)child)
                        ->slots[block->start >> map->granule_shift & ((1u << OBJMAP_LEAF_BITS) - 1)];
        level = level_below(map, level, child);
    }
}

static uintptr_t granule_base(const struct objmap_state *map, uintptr_t address)
{
    return address >> map->granule_shift << map->granule_shift;
}

enum objmap_result objmap_pagemap_add_hook(const struct objmap_edit *edit)
{
    const struct objmap_state *map = edit->cursor->map;
    const struct objmap_block *block = &edit->record->block;
    _Atomic uintptr_t *slot = slot_of_small(map, block);
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

/* Clears the whole entries of [low, high) that belong to the record: under the lock, so that who holds it may follow
 * any such entry. */
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
    _Atomic uintptr_t *slot = slot_of_small(map, block);
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
