/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading by place, not by a mapping, whose pages stay with the process for as long as others need the file. */
#include "export/v4-slice.h"

#include <stdlib.h>
#include <string.h>

enum {
    VALUE_BYTES = 10,
    INDEX_BYTES = 12,
    SEARCH_ENTRIES = 256, /* a search ends with reading as many at once */
    PIECE_ENTRIES = 4096,
    PIECE_VALUES = 16384 /* unless one context has more */
};

static uint32_t context_of(const char *entry)
{
    uint32_t id;
    memcpy(&id, entry, 4);
    return id;
}

static uint64_t start_of(const char *entry)
{
    uint64_t start;
    memcpy(&start, entry + 4, 8);
    return start;
}

static int read_index(struct v4_slices *slices, const struct v4_place *place, uint32_t first, uint32_t n,
                      struct error *err)
{
    if (!vec_reserve(&slices->index, &slices->cap_index, (size_t)(n + 1) * INDEX_BYTES, 1))
        return error_set(err, ERR_MEMORY, "out of memory");
    return spill_read_at(slices->fd, slices->path, place->indices + (uint64_t)INDEX_BYTES * first, slices->index,
                         (size_t)n * INDEX_BYTES, err);
}

int v4_slice_find(struct v4_slices *slices, const struct v4_place *place, uint32_t from, uint32_t id, uint32_t *found,
                  struct error *err)
{
    uint32_t low = from, high = place->n_indices;
    int code = 0;
    while (code == 0 && high - low > SEARCH_ENTRIES) {
        uint32_t middle = low + (high - low) / 2;
        code = read_index(slices, place, middle, 1, err);
        if (code == 0 && context_of(slices->index) < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (code == 0)
        code = read_index(slices, place, low, high - low, err);
    const char *entry = slices->index;
    for (; code == 0 && low < high && context_of(entry) < id; entry += INDEX_BYTES)
        low++;
    *found = low;
    return code;
}

/* How many of the n entries that were read go into one piece, at least 1; an entry behind them says where they end. */
static uint32_t fit_values(const struct v4_slices *slices, uint32_t n)
{
    uint64_t end = start_of(slices->index) + PIECE_VALUES;
    while (n > 1 && start_of(slices->index + (size_t)n * INDEX_BYTES) > end)
        n--;
    return n;
}

/* The places of values ascend, and end with the profile's. */
static bool is_sound(const struct v4_slices *slices, const struct v4_place *place, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (start_of(slices->index + (size_t)i * INDEX_BYTES) > start_of(slices->index + (i + 1ul) * INDEX_BYTES))
            return false;
    return start_of(slices->index + (size_t)n * INDEX_BYTES) <= place->n_values;
}

int v4_slice_next(struct v4_slices *slices, const struct v4_place *place, uint32_t *at, uint32_t end,
                  struct v4_piece *piece, struct error *err)
{
    uint32_t n = end - *at < PIECE_ENTRIES ? end - *at : PIECE_ENTRIES;
    bool is_last = *at + n == place->n_indices;
    int code = read_index(slices, place, *at, is_last ? n : n + 1, err);
    if (code != 0)
        return code;
    if (is_last)
        memcpy(slices->index + (size_t)n * INDEX_BYTES + 4, &place->n_values, 8);
    if (!is_sound(slices, place, n))
        return error_set(err, ERR_FORMAT, "%.600s: the index at byte %llu is not the one that was written",
                         slices->path, (unsigned long long)(place->indices + (uint64_t)INDEX_BYTES * *at));
    n = fit_values(slices, n);
    uint64_t first = start_of(slices->index), n_values = start_of(slices->index + (size_t)n * INDEX_BYTES) - first;
    if (!vec_reserve(&slices->values, &slices->cap_values, n_values * VALUE_BYTES + 1, 1))
        return error_set(err, ERR_MEMORY, "out of memory for %llu values", (unsigned long long)n_values);
    *piece = (struct v4_piece){slices->index, slices->values, n};
    *at += n;
    return spill_read_at(slices->fd, slices->path, place->values + VALUE_BYTES * first, slices->values,
                         n_values * VALUE_BYTES, err);
}

struct v4_run v4_piece_run(const struct v4_piece *piece, uint32_t i)
{
    const char *entry = piece->index + (size_t)i * INDEX_BYTES;
    uint64_t start = start_of(entry);
    return (struct v4_run){.context = context_of(entry),
                           .values = piece->values + VALUE_BYTES * (start - start_of(piece->index)),
                           .n = start_of(entry + INDEX_BYTES) - start};
}

void v4_slices_fini(struct v4_slices *slices)
{
    free(slices->index);
    free(slices->values);
}
