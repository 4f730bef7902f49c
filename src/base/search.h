/* SPDX-License-Identifier: BSD-3-Clause */
/* Binary search in sorted arrays: how many items come before a key. Inline, no state: usable in any context, signal
 * handlers included. Callers give sizes and offsets as constants, so that the compiler makes a special loop for each
 * search. */
#ifndef LOCUS_BASE_SEARCH_H
#define LOCUS_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The key of an item, for search_below and search_upto: an unsigned integer of 4 or 8 bytes. */
struct search_key {
    size_t item_bytes, offset_bytes, size_bytes;
};

/* A member of a structure as the key. */
#define SEARCH_KEY(type, member)                                                                                       \
    ((struct search_key){sizeof(type), offsetof(type, member), sizeof(((const type *)NULL)->member)})

/* Item i's key. */
static inline uint64_t search_key_at(const void *items, size_t i, struct search_key key)
{
    const void *at = (const char *)items + i * key.item_bytes + key.offset_bytes;
    return key.size_bytes == sizeof(uint32_t) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

/* Number of the items [n], sorted by their keys, whose key is less than value: the index of the first that is not. */
static inline size_t search_below(const void *items, size_t n, struct search_key key, uint64_t value)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search_key_at(items, middle, key) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Number of the items [n], sorted by their keys, whose key is at most value: the one before is the last of them. */
static inline size_t search_upto(const void *items, size_t n, struct search_key key, uint64_t value)
{
    return value == UINT64_MAX ? n : search_below(items, n, key, value + 1);
}

/* Number of the indexes [0, n) for which is_before holds; those for which it does come first. */
static inline size_t search_where(size_t n, bool (*is_before)(const void *context, size_t i), const void *context)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(context, middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
