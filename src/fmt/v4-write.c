/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing version 4 files: frame and fields. */
#include "fmt/v4-write.h"

#include <string.h>

static const struct write_row {
    const char *begin, *footer;
    unsigned n_sections;
} kinds[V4_KINDS] = {
    [V4_META] = {V4_BEGINS "meta\4", "_meta.db", 8},
    [V4_PROFILE] = {V4_BEGINS "prof\4", "_prof.db", 2},
    [V4_CCT] = {V4_BEGINS "ctxt\4", "__ctx.db", 1},
    [V4_TRACE] = {V4_BEGINS "trce\4", "trace.db", 1},
};

void v4_put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    buf_append(out, bytes, n_bytes);
}

uint64_t v4_align(struct buf *out)
{
    buf_append(out, "\0\0\0\0\0\0\0", -out->len_bytes % 8);
    return out->len_bytes;
}

void v4_patch(struct buf *out, uint64_t offset, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; !out->failed && i < n_bytes; i++)
        out->data[offset + i] = (char)(unsigned char)(value >> (8 * i));
}

void v4_put_section(struct buf *out, unsigned i, uint64_t offset)
{
    v4_patch(out, 16 + 16 * (uint64_t)i, out->len_bytes - offset, 8);
    v4_patch(out, 24 + 16 * (uint64_t)i, offset, 8);
}

int v4_write(const struct v4_file *file, struct buf *out, struct error *err)
{
    const struct write_row *row = &kinds[file->kind];
    buf_append(out, row->begin, 16);
    for (unsigned i = 0; i < 2 * row->n_sections; i++)
        v4_put(out, 0, 8);
    int code = file->kind == V4_META      ? v4_write_meta(&file->meta, out, err)
               : file->kind == V4_PROFILE ? v4_write_profiles(file, out, err)
               : file->kind == V4_CCT     ? v4_write_blocks(file, out, err)
                                          : v4_write_traces(file, out, err);
    v4_align(out);
    buf_append(out, row->footer, 8);
    if (code == 0 && out->failed)
        code = error_set(err, ERR_MEMORY, "out of memory while writing a %s", v4_file_name(file->kind));
    return code;
}
