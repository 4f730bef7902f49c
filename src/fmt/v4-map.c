/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of values of version 4 files, found where they lie. */
#include "fmt/v4-map.h"

#include <endian.h>
#include <string.h>

#include "base/bytes.h"

/* Begins a call: its failures go to err, and what it takes does not count against those before. */
static void begin(struct v4_map *map, struct error *err)
{
    map->in.err = err;
    map->in.code = 0;
    map->in.budget_bytes = UINT64_MAX;
}

int v4_map_open(struct v4_map *map, enum v4_kind kind, const void *bytes, size_t len_bytes, const char *name,
                struct error *err)
{
    bool by_profile = kind == V4_PROFILE;
    *map = (struct v4_map){.in = {.bytes = bytes, .len_bytes = len_bytes, .name = name},
                           .major_bytes = by_profile ? 4 : 2,
                           .minor_bytes = by_profile ? 2 : 4};
    begin(map, err);
    v4_check_head(&map->in, kind);
    uint64_t at = v4_get_section(&map->in, 0, 13, by_profile ? "Profile Infos" : "Context Infos").offset;
    map->lists = v4_get_table(&map->in, at, at + 12, 1, by_profile ? 44 : 32, by_profile ? "profiles" : "contexts");
    return map->in.code;
}

int v4_map_profile(struct v4_map *map, size_t i, struct v4_profile *profile, struct error *err)
{
    begin(map, err);
    *profile = (struct v4_profile){0};
    v4_read_profile_info(&map->in, map->lists.offset + i * map->lists.stride_bytes, profile);
    return map->in.code;
}

int v4_map_list(struct v4_map *map, size_t i, struct v4_list *list, struct error *err)
{
    struct v4_in *in = &map->in;
    uint64_t at = map->lists.offset + i * map->lists.stride_bytes;
    begin(map, err);
    *list = (struct v4_list){v4_get(in, at, 8), v4_get(in, at + 8, 8),
                             v4_get(in, at + 16, map->minor_bytes == 2 ? 4 : 2), v4_get(in, at + 24, 8)};
    if (!v4_has(in, list->values, list->n_values, map->minor_bytes + 8, "values") ||
        !v4_has(in, list->indices, list->n_indices, map->major_bytes + 8, "the index of values"))
        *list = (struct v4_list){0};
    return in->code;
}

int v4_map_run(struct v4_map *map, const struct v4_list *list, uint64_t k, struct v4_run *run, struct error *err)
{
    struct v4_in *in = &map->in;
    uint64_t index_bytes = map->major_bytes + 8, at = list->indices + k * index_bytes;
    begin(map, err);
    run->major = (uint32_t)v4_get(in, at, map->major_bytes);
    run->from = v4_get(in, at + map->major_bytes, 8);
    run->to = k + 1 < list->n_indices ? v4_get(in, at + index_bytes + map->major_bytes, 8) : list->n_values;
    if (!in->code && (run->to < run->from || run->to > list->n_values))
        v4_fail(in, at, ERR_FORMAT, "the index of values is not in ascending order or leads beyond them");
    if (in->code)
        *run = (struct v4_run){0};
    return in->code;
}

int v4_map_find(struct v4_map *map, const struct v4_list *list, uint32_t major, struct v4_run *run, struct error *err)
{
    uint64_t low = 0, high = list->n_indices;
    begin(map, err);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t found = v4_get(&map->in, list->indices + middle * (map->major_bytes + 8), map->major_bytes);
        if (found == major)
            return v4_map_run(map, list, middle, run, err);
        if (found < major)
            low = middle + 1;
        else
            high = middle;
    }
    *run = (struct v4_run){.major = major};
    return map->in.code;
}

uint32_t v4_map_minor(const struct v4_map *map, const struct v4_list *list, uint64_t i)
{
    const unsigned char *at = map->in.bytes + list->values + i * (map->minor_bytes + 8);
    uint32_t low = at[0] | (uint32_t)at[1] << 8;
    return map->minor_bytes == 2 ? low : low | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

double v4_map_value(const struct v4_map *map, const struct v4_list *list, uint64_t i)
{
    uint64_t bits;
    memcpy(&bits, map->in.bytes + list->values + i * (map->minor_bytes + 8) + map->minor_bytes, sizeof bits);
    return bytes_double_of(le64toh(bits));
}
