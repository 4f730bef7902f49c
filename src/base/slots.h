/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the items of an array by their keys: a hash table beside the array, which its owner goes on appending to.
 * Ordinary code. */
#ifndef LOCUS_BASE_SLOTS_H
#define LOCUS_BASE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What kind of items the array has. is_same: with the same key, which is what hash is computed from. */
struct slots_kind {
    size_t item_bytes;
    uint64_t (*hash)(const void *item);
    bool (*is_same)(const void *a, const void *b);
};

/* All zero is empty. */
struct slots {
    uint32_t *at; /* [n] index of an item + 1, 0 empty */
    size_t n;
};

#define SLOTS_NONE SIZE_MAX

/* Makes room for one item more than the n_items in items, all of which are in the table unless it is empty: then they
 * are entered. False when out of memory. */
bool slots_reserve(struct slots *slots, const struct slots_kind *kind, const void *items, size_t n_items);

/* Index of the item with the same key, SLOTS_NONE when there is none. */
size_t slots_find(const struct slots *slots, const struct slots_kind *kind, const void *items, const void *like);

/* Enters items[index], whose key is not in the table, and for which there is room. */
void slots_add(struct slots *slots, const struct slots_kind *kind, const void *items, size_t index);

/* Frees the table and makes it empty; the items are not touched. */
void slots_fini(struct slots *slots);

#endif
