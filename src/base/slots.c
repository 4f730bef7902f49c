/* SPDX-License-Identifier: BSD-3-Clause */
/* Open addressing, at most half full; see slots.h. */
#include "base/slots.h"

#include <stdlib.h>

#define SLOTS_LEAST 256

/* The slot of the item with this key, or the empty one where it would be. */
static size_t slot_of(const struct slots *slots, const struct slots_kind *kind, const char *items, const void *like)
{
    size_t slot = (size_t)(kind->hash(like) * 0x9e3779b97f4a7c15u >> 24) & (slots->n - 1);
    while (slots->at[slot] && !kind->is_same(items + (slots->at[slot] - 1) * kind->item_bytes, like))
        slot = (slot + 1) & (slots->n - 1);
    return slot;
}

bool slots_reserve(struct slots *slots, const struct slots_kind *kind, const void *items, size_t n_items)
{
    size_t n = slots->n ? slots->n : SLOTS_LEAST;
    if (n_items * 2 < slots->n)
        return true;
    while (n_items * 2 >= n)
        n *= 2;
    uint32_t *at = calloc(n, sizeof *at);
    if (!at)
        return false;
    free(slots->at);
    *slots = (struct slots){at, n};
    for (size_t i = 0; i < n_items; i++)
        slots_add(slots, kind, items, i);
    return true;
}

size_t slots_find(const struct slots *slots, const struct slots_kind *kind, const void *items, const void *like)
{
    uint32_t found = slots->n ? slots->at[slot_of(slots, kind, items, like)] : 0;
    return found ? found - 1 : SLOTS_NONE;
}

void slots_add(struct slots *slots, const struct slots_kind *kind, const void *items, size_t index)
{
    const char *item = (const char *)items + index * kind->item_bytes;
    slots->at[slot_of(slots, kind, items, item)] = (uint32_t)index + 1;
}

void slots_fini(struct slots *slots)
{
    free(slots->at);
    *slots = (struct slots){0};
}
