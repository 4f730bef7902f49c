/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of offsets. Too long ones are thinned out in the order of a hash of the offsets: in the order of the offsets
 * themselves every second one could be the same field of a structure. */
#include "fmt/spread.h"

#include <stdlib.h>

#include "base/vec.h"

static uint64_t hash(uint64_t offset)
{
    offset = (offset ^ offset >> 31) * 0x9e3779b97f4a7c15u;
    return (offset ^ offset >> 29) * 0xbf58476d1ce4e5b9u;
}

bool spread_add(struct spread *spread, uint64_t offset, uint64_t count)
{
    for (size_t i = 0; i < spread->n; i++)
        if (spread->entries[i].offset == offset) {
            spread->entries[i].count += count;
            return true;
        }
    if (spread->n >= 2 * (size_t)SPREAD_MAX)
        spread_reduce(spread);
    if (!vec_reserve(&spread->entries, &spread->capacity, spread->n + 1, sizeof *spread->entries))
        return false;
    spread->entries[spread->n++] = (struct spread_entry){offset, count};
    return true;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = hash(((const struct spread_entry *)a)->offset), y = hash(((const struct spread_entry *)b)->offset);
    return x < y ? -1 : x > y;
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = ((const struct spread_entry *)a)->offset, y = ((const struct spread_entry *)b)->offset;
    return x < y ? -1 : x > y;
}

uint64_t spread_total(const struct spread *spread)
{
    uint64_t total = 0;
    for (size_t i = 0; i < spread->n; i++)
        total += spread->entries[i].count;
    return total;
}

/* Cuts the samples, laid side by side in the list's order, into SPREAD_MAX pieces of equal length; the entry in the
 * middle of each piece stands for it. Entries that are chosen several times become one. */
static void thin_out(struct spread *spread)
{
    uint64_t total = spread_total(spread), end = spread->entries[0].count;
    size_t from = 0, to = 0;
    for (uint64_t piece = 0; piece < SPREAD_MAX; piece++) {
        uint64_t low = total / SPREAD_MAX * piece + total % SPREAD_MAX * piece / SPREAD_MAX;
        uint64_t high = total / SPREAD_MAX * (piece + 1) + total % SPREAD_MAX * (piece + 1) / SPREAD_MAX;
        while (end <= low + (high - low) / 2 && from + 1 < spread->n)
            end += spread->entries[++from].count;
        uint64_t offset = spread->entries[from].offset;
        if (to > 0 && spread->entries[to - 1].offset == offset)
            spread->entries[to - 1].count += high - low;
        else if (high > low)
            spread->entries[to++] = (struct spread_entry){offset, high - low};
    }
    spread->n = to;
}

void spread_reduce(struct spread *spread)
{
    if (spread->n > SPREAD_MAX) {
        qsort(spread->entries, spread->n, sizeof *spread->entries, compare_hashes);
        thin_out(spread);
    }
    if (spread->n)
        qsort(spread->entries, spread->n, sizeof *spread->entries, compare_offsets);
}

void spread_fini(struct spread *spread)
{
    free(spread->entries);
    *spread = (struct spread){0};
}
