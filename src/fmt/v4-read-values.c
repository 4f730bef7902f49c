/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the values: profile.db, cct.db, which hold the same ones in two orders, and trace.db. */
#include <stdlib.h>

#include "fmt/v4-wire.h"

/* A list of values and its index, of either order. In profile.db a value is (metric, value), an index (context, start);
 * in cct.db a value is (profile, value), an index (metric, start). */
struct list {
    uint64_t n_values, values, n_indices, indices;
    unsigned major_bytes, minor_bytes; /* of the ids in an index and in a value */
};

/* Fills cells of one index entry; false when the ids do not ascend. */
static void read_run(struct v4_in *in, const struct list *list, uint64_t major, uint64_t from, uint64_t to,
                     struct v4_cell *cells)
{
    unsigned value_bytes = list->minor_bytes + 8;
    uint64_t before = 0;
    for (uint64_t i = from; !in->code && i < to; i++) {
        uint64_t at = list->values + i * value_bytes, minor = v4_get(in, at, list->minor_bytes);
        bool by_profile = list->minor_bytes == 2;
        if (i > from && minor <= before)
            v4_fail(in, at, ERR_FORMAT, "the values are not in ascending order");
        before = minor;
        cells[i].id = (uint32_t)(by_profile ? major : minor);
        cells[i].metric_id = (uint16_t)(by_profile ? minor : major);
        cells[i].value = v4_get_double(in, at + list->minor_bytes);
    }
}

static struct v4_cell *read_cells(struct v4_in *in, const struct list *list)
{
    unsigned value_bytes = list->minor_bytes + 8, index_bytes = list->major_bytes + 8;
    if (!v4_has(in, list->values, list->n_values, value_bytes, "values") ||
        !v4_has(in, list->indices, list->n_indices, index_bytes, "the index of values"))
        return NULL;
    if (list->n_values && !list->n_indices)
        v4_fail(in, list->indices, ERR_FORMAT, "there are values, but no index of them");
    struct v4_cell *cells = v4_alloc(in, list->n_values, sizeof *cells);
    uint64_t before = 0, major_before = 0;
    for (uint64_t i = 0; !in->code && i < list->n_indices; i++) {
        uint64_t at = list->indices + i * index_bytes, major = v4_get(in, at, list->major_bytes);
        uint64_t from = v4_get(in, at + list->major_bytes, 8);
        uint64_t to = i + 1 < list->n_indices ? v4_get(in, at + index_bytes + list->major_bytes, 8) : list->n_values;
        if (from != before || to < from || to > list->n_values || (i && major <= major_before))
            v4_fail(in, at, ERR_FORMAT, "the index of values is not in ascending order or leads beyond them");
        else
            read_run(in, list, major, from, to, cells);
        before = to;
        major_before = major;
    }
    return cells;
}

static void read_ids(struct v4_in *in, uint64_t at, struct v4_profile *profile)
{
    uint64_t n = at ? v4_get(in, at, 2) : 0;
    if (v4_has(in, at + 8, n, 16, "the identifiers of a profile") && n)
        profile->ids = v4_alloc(in, n, sizeof *profile->ids);
    profile->n_ids = profile->ids ? (uint16_t)n : 0;
    for (size_t i = 0; i < profile->n_ids; i++) {
        uint64_t one = at + 8 + 16 * i;
        profile->ids[i].kind = (uint8_t)v4_get(in, one, 1);
        profile->ids[i].flags = (uint16_t)v4_get(in, one + 2, 2);
        profile->ids[i].logical = (uint32_t)v4_get(in, one + 4, 4);
        profile->ids[i].physical = v4_get(in, one + 8, 8);
    }
}

void v4_read_profiles(struct v4_in *in)
{
    struct v4_file *file = in->file;
    uint64_t at = v4_get_section(in, 0, 13, "Profile Infos").offset;
    (void)v4_get_section(in, 1, 0, "Identifier Tuples");
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 44, "profiles");
    file->profiles = v4_alloc(in, table.n, sizeof *file->profiles);
    file->n_profiles = file->profiles ? table.n : 0;
    for (size_t i = 0; i < file->n_profiles && !in->code; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        struct list list = {v4_get(in, one, 8), v4_get(in, one + 8, 8), v4_get(in, one + 16, 4),
                            v4_get(in, one + 24, 8), 4, 2};
        read_ids(in, v4_get(in, one + 32, 8), &file->profiles[i]);
        file->profiles[i].flags = (uint32_t)v4_get(in, one + 40, 4);
        file->profiles[i].cells = read_cells(in, &list);
        file->profiles[i].n_cells = file->profiles[i].cells ? list.n_values : 0;
    }
}

void v4_read_blocks(struct v4_in *in)
{
    struct v4_file *file = in->file;
    uint64_t at = v4_get_section(in, 0, 13, "Context Infos").offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 32, "contexts");
    file->blocks = v4_alloc(in, table.n, sizeof *file->blocks);
    file->n_blocks = file->blocks ? table.n : 0;
    for (size_t i = 0; i < file->n_blocks && !in->code; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        struct list list = {v4_get(in, one, 8), v4_get(in, one + 8, 8), v4_get(in, one + 16, 2),
                            v4_get(in, one + 24, 8), 2, 4};
        file->blocks[i].cells = read_cells(in, &list);
        file->blocks[i].n_cells = file->blocks[i].cells ? list.n_values : 0;
    }
}

static void read_events(struct v4_in *in, uint64_t from, uint64_t to, struct v4_trace *trace)
{
    if (!in->code && (to < from || (to - from) % 12))
        v4_fail(in, from, ERR_FORMAT, "a trace ends where none of its records does");
    uint64_t n = in->code ? 0 : (to - from) / 12;
    if (v4_has(in, from, n, 12, "the records of a trace"))
        trace->events = v4_alloc(in, n, sizeof *trace->events);
    trace->n_events = trace->events ? n : 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        trace->events[i].time_ns = v4_get(in, from + 12 * i, 8);
        trace->events[i].ctx_id = (uint32_t)v4_get(in, from + 12 * i + 8, 4);
    }
}

void v4_read_traces(struct v4_in *in)
{
    struct v4_file *file = in->file;
    uint64_t at = v4_get_section(in, 0, 32, "Context Trace Headers").offset;
    struct v4_table table = v4_get_table(in, at, at + 12, 1, 24, "traces");
    file->min_time_ns = v4_get(in, at + 16, 8);
    file->max_time_ns = v4_get(in, at + 24, 8);
    file->traces = v4_alloc(in, table.n, sizeof *file->traces);
    file->n_traces = file->traces ? table.n : 0;
    for (size_t i = 0; i < file->n_traces && !in->code; i++) {
        uint64_t one = table.offset + i * table.stride_bytes;
        file->traces[i].profile = (uint32_t)v4_get(in, one, 4);
        read_events(in, v4_get(in, one + 8, 8), v4_get(in, one + 16, 8), &file->traces[i]);
    }
}
