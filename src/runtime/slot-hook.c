/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of one slot of the page map: 0, one record, a list, or a split granule. Readers look at any moment, so each
 * store leaves a slot that answers right for every block that is not being changed.
 * Runs inside the program's malloc under the lock of the slot's domain. */
#include "runtime/objmap-internal.h"

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

/* A list for n records, all positions to be filled; NULL when there is no memory or n is beyond all bounds. */
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

/* Readers that have begun their search by now, and find nothing, will know that they must search again. */
static void list_change(struct objmap_list *list)
{
    uint32_t version = atomic_load_explicit(&list->version, memory_order_relaxed);
    atomic_store_explicit(&list->version, version + 1, memory_order_release);
}

/* Overwrites all copies but one of a neighbour of position at with item, the side towards item first, so that the list
 * is in order after every store. False when the neighbours have no second copy. */
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
    return added;
}

/* A copy of list with item in its place, published in the slot. */
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

/* The slot's second record. */
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

enum objmap_result objmap_slot_add_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base,
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
    /* The neighbour below takes the positions from below, the one above from above: in order at every moment. */
    if (first > 0) {
        for (uint32_t i = first; i < after; i++)
            item_store(list, i, item_load(list, first - 1));
    } else {
        for (uint32_t i = after; i-- > 0;)
            item_store(list, i, item_load(list, after));
    }
    list->n--;
}

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

void objmap_slot_remove_hook(const struct objmap_edit *edit, _Atomic uintptr_t *slot, uintptr_t base, unsigned shift)
{
    uintptr_t present = slot_load(slot);
    if (present == (uintptr_t)edit->record)
        slot_store(slot, 0);
    else if ((present & OBJMAP_TAGS) == OBJMAP_TAG_LIST)
        list_remove(edit, slot, list_of(present));
    else if ((present & OBJMAP_TAGS) == OBJMAP_TAG_SPLIT)
        split_remove(edit, slot, (struct objmap_split *)(present - OBJMAP_TAG_SPLIT), base, shift);
}

bool objmap_slot_visit_hook(struct objmap_visitor *visitor, const _Atomic uintptr_t *slot, uintptr_t base,
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
