/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields of version 4 files: see v4-wire.h. */
#include "fmt/v4-wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

int v4_fail(struct v4_in *in, uint64_t offset, int code, const char *format, ...)
{
    if (in->code)
        return in->code;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    in->code = error_set(in->err, code, "%.600s: offset %" PRIu64 ": %s", in->name, offset, text);
    return in->code;
}

bool v4_has(struct v4_in *in, uint64_t offset, uint64_t n_items, uint64_t item_bytes, const char *what)
{
    uint64_t room = offset <= in->len_bytes ? in->len_bytes - offset : 0;
    if (in->code)
        return false;
    if (offset > in->len_bytes || (item_bytes && n_items > room / item_bytes)) {
        v4_fail(in, offset, ERR_FORMAT, "%s: %" PRIu64 " of %" PRIu64 " bytes each are not in a file of %zu bytes",
                what, n_items, item_bytes, in->len_bytes);
        return false;
    }
    if (n_items * item_bytes > in->budget_bytes) {
        v4_fail(in, offset, ERR_FORMAT, "%s: too many parts of the file lie at the same place", what);
        return false;
    }
    in->budget_bytes -= n_items * item_bytes;
    return true;
}

uint64_t v4_get(struct v4_in *in, uint64_t offset, unsigned n_bytes)
{
    uint64_t value = 0;
    if (in->code)
        return 0;
    if (offset > in->len_bytes || in->len_bytes - offset < n_bytes) {
        v4_fail(in, offset, ERR_FORMAT, "a field lies beyond the end of the file (%zu bytes)", in->len_bytes);
        return 0;
    }
    for (unsigned i = 0; i < n_bytes; i++)
        value |= (uint64_t)in->bytes[offset + i] << (8 * i);
    return value;
}

double v4_get_double(struct v4_in *in, uint64_t offset)
{
    return bytes_double_of(v4_get(in, offset, 8));
}

const char *v4_get_text(struct v4_in *in, uint64_t offset, const char *what)
{
    if (in->code || offset == 0)
        return NULL;
    const char *text = offset < in->len_bytes ? (const char *)in->bytes + offset : NULL;
    const char *end = text ? memchr(text, '\0', in->len_bytes - offset) : NULL;
    if (!end) {
        v4_fail(in, offset, ERR_FORMAT, "%s: no text that ends is there", what);
        return NULL;
    }
    return v4_has(in, offset, (uint64_t)(end - text) + 1, 1, what) ? text : NULL;
}

struct v4_section v4_get_section(struct v4_in *in, unsigned i, uint64_t least_bytes, const char *what)
{
    uint64_t at = 16 + 16 * (uint64_t)i;
    struct v4_section section = {.len_bytes = v4_get(in, at, 8), .offset = v4_get(in, at + 8, 8)};
    if (in->code)
        return (struct v4_section){0};
    if (section.offset > in->len_bytes || section.len_bytes > in->len_bytes - section.offset)
        v4_fail(in, at, ERR_FORMAT, "section %s (%" PRIu64 " bytes at %" PRIu64 ") is not in a file of %zu bytes", what,
                section.len_bytes, section.offset, in->len_bytes);
    else if (section.len_bytes < least_bytes)
        v4_fail(in, at, ERR_FORMAT, "section %s has %" PRIu64 " bytes, at least %" PRIu64 " are needed", what,
                section.len_bytes, least_bytes);
    return section;
}

struct v4_table v4_get_table(struct v4_in *in, uint64_t offset, uint64_t stride_at, unsigned n_stride,
                             uint64_t least_bytes, const char *what)
{
    struct v4_table table = {.offset = v4_get(in, offset, 8), .stride_bytes = v4_get(in, stride_at, n_stride)};
    uint64_t n = v4_get(in, offset + 8, 4);
    if (!in->code && n && table.stride_bytes < least_bytes)
        v4_fail(in, stride_at, ERR_FORMAT, "%s: elements of %" PRIu64 " bytes, at least %" PRIu64 " are needed", what,
                table.stride_bytes, least_bytes);
    if (n && v4_has(in, table.offset, n, table.stride_bytes, what))
        table.n = n;
    return table;
}

uint32_t v4_get_index(struct v4_in *in, uint64_t pointer, const struct v4_table *table, const char *what)
{
    if (in->code || pointer == 0)
        return 0;
    uint64_t distance = pointer - table->offset;
    if (pointer < table->offset || !table->n || distance % table->stride_bytes ||
        distance / table->stride_bytes >= table->n) {
        v4_fail(in, pointer, ERR_FORMAT, "%s: the pointer leads to no element of its table", what);
        return 0;
    }
    return (uint32_t)(distance / table->stride_bytes) + 1;
}

void *v4_alloc(struct v4_in *in, size_t n_items, size_t item_bytes)
{
    if (in->code || n_items == 0)
        return NULL;
    void *memory = calloc(n_items, item_bytes);
    if (!memory)
        v4_fail(in, 0, ERR_MEMORY, "out of memory for %zu items", n_items);
    return memory;
}
