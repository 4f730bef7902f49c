/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing profile.db, cct.db and trace.db: first the table of all profiles, contexts or traces, then their lists. */
#include "base/bytes.h"
#include "fmt/v4-write.h"

/* Appends the values of a list and their index, and fills the row of the table: number and place of the values, number
 * and place of the index. major_bytes: 4 in profile.db (context before metric), 2 in cct.db (metric before profile). */
static int write_cells(const struct v4_cell *cells, size_t n_cells, unsigned major_bytes, uint64_t row, struct buf *out,
                       struct error *err)
{
    unsigned minor_bytes = 6 - major_bytes;
    uint64_t values = v4_align(out), n_indices = 0, before = 0;
    for (size_t i = 0; i < n_cells; i++) {
        uint64_t minor = major_bytes == 4 ? cells[i].metric_id : cells[i].id;
        uint64_t major = major_bytes == 4 ? cells[i].id : cells[i].metric_id;
        if (i && (major << 32 | minor) <= before)
            return error_set(err, ERR_RANGE, "The values of a database are not in ascending order");
        n_indices += i == 0 || major != before >> 32;
        before = major << 32 | minor;
        v4_put(out, minor, minor_bytes);
        v4_put(out, bytes_bits_of(cells[i].value), 8);
    }
    v4_patch(out, row, n_cells, 8);
    v4_patch(out, row + 8, values, 8);
    v4_patch(out, row + 16, n_indices, major_bytes == 4 ? 4 : 2);
    v4_patch(out, row + 24, v4_align(out), 8);
    for (size_t i = 0; i < n_cells; i++) {
        uint32_t major = major_bytes == 4 ? cells[i].id : cells[i].metric_id;
        if (i && major == (major_bytes == 4 ? cells[i - 1].id : cells[i - 1].metric_id))
            continue;
        v4_put(out, major, major_bytes);
        v4_put(out, i, 8);
    }
    return 0;
}

/* Header of a section and room for its rows, to be filled later; returns where the first row is. */
static uint64_t put_rows(struct buf *out, size_t n, unsigned stride_bytes)
{
    uint64_t at = v4_align(out);
    v4_put(out, at + 16, 8);
    v4_put(out, n, 4);
    v4_put(out, stride_bytes, 4);
    for (size_t i = 0; i < n * (stride_bytes / 8); i++)
        v4_put(out, 0, 8);
    v4_put_section(out, 0, at);
    return at + 16;
}

static void put_ids(const struct v4_profile *profile, struct buf *out)
{
    v4_put(out, profile->n_ids, 8);
    for (size_t i = 0; i < profile->n_ids; i++) {
        v4_put(out, profile->ids[i].kind, 2);
        v4_put(out, profile->ids[i].flags, 2);
        v4_put(out, profile->ids[i].logical, 4);
        v4_put(out, profile->ids[i].physical, 8);
    }
}

int v4_write_profiles(const struct v4_file *file, struct buf *out, struct error *err)
{
    enum { ROW_BYTES = 48 };
    if (file->n_profiles > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A profile.db cannot hold %zu profiles", file->n_profiles);
    uint64_t rows = put_rows(out, file->n_profiles, ROW_BYTES), ids = v4_align(out);
    for (size_t i = 0; i < file->n_profiles; i++) {
        const struct v4_profile *profile = &file->profiles[i];
        v4_patch(out, rows + i * ROW_BYTES + 32, profile->n_ids ? out->len_bytes : 0, 8);
        v4_patch(out, rows + i * ROW_BYTES + 40, profile->flags, 4);
        if (profile->n_ids)
            put_ids(profile, out);
    }
    v4_put_section(out, 1, ids);
    int code = 0;
    /* the summary of all comes last: it is complete when all others are */
    for (uint32_t is_summary = 0; is_summary < 2; is_summary++)
        for (size_t i = 0; code == 0 && i < file->n_profiles; i++)
            if ((file->profiles[i].flags & 1) == is_summary)
                code = write_cells(file->profiles[i].cells, file->profiles[i].n_cells, 4, rows + i * ROW_BYTES, out,
                                   err);
    return code;
}

int v4_write_blocks(const struct v4_file *file, struct buf *out, struct error *err)
{
    enum { ROW_BYTES = 32 };
    if (file->n_blocks > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A cct.db cannot hold %zu contexts", file->n_blocks);
    uint64_t rows = put_rows(out, file->n_blocks, ROW_BYTES);
    int code = 0;
    for (size_t i = 0; code == 0 && i < file->n_blocks; i++)
        if (file->blocks[i].n_cells)
            code = write_cells(file->blocks[i].cells, file->blocks[i].n_cells, 2, rows + i * ROW_BYTES, out, err);
    return code;
}

int v4_write_traces(const struct v4_file *file, struct buf *out, struct error *err)
{
    enum { ROW_BYTES = 24 };
    uint64_t at = v4_align(out), rows = at + 32;
    if (file->n_traces > UINT32_MAX)
        return error_set(err, ERR_RANGE, "A trace.db cannot hold %zu traces", file->n_traces);
    v4_put(out, rows, 8);
    v4_put(out, file->n_traces, 4);
    v4_put(out, ROW_BYTES, 4);
    v4_put(out, file->min_time_ns, 8);
    v4_put(out, file->max_time_ns, 8);
    for (size_t i = 0; i < file->n_traces * (ROW_BYTES / 8); i++)
        v4_put(out, 0, 8);
    v4_put_section(out, 0, at);
    for (size_t i = 0; i < file->n_traces; i++) {
        const struct v4_trace *trace = &file->traces[i];
        v4_patch(out, rows + i * ROW_BYTES, trace->profile, 4);
        v4_patch(out, rows + i * ROW_BYTES + 8, v4_align(out), 8);
        for (size_t k = 0; k < trace->n_events; k++) {
            v4_put(out, trace->events[k].time_ns, 8);
            v4_put(out, trace->events[k].ctx_id, 4);
        }
        v4_patch(out, rows + i * ROW_BYTES + 16, out->len_bytes, 8);
    }
    return 0;
}
