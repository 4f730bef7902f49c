/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds-checked big-endian fields: see wire.h. */
#include "fmt/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

int wire_fail(struct wire_in *in, int code, const char *format, ...)
{
    if (in->code)
        return in->code;
    char reason[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    in->code = error_set(in->err, code, "%.400s: offset %zu: %s", in->name, in->offset, reason);
    return in->code;
}

bool wire_has(struct wire_in *in, uint64_t n_bytes, const char *what)
{
    if (in->code)
        return false;
    size_t left_bytes = in->len_bytes - in->offset;
    if (n_bytes <= left_bytes)
        return true;
    wire_fail(in, ERR_FORMAT, "the file is truncated in %s: %" PRIu64 " bytes needed, %zu left", what, n_bytes,
              left_bytes);
    return false;
}

bool wire_has_items(struct wire_in *in, uint64_t n_items, uint64_t item_bytes, const char *what)
{
    if (in->code)
        return false;
    size_t left_bytes = in->len_bytes - in->offset;
    if (n_items <= left_bytes / item_bytes)
        return true;
    wire_fail(in, ERR_FORMAT,
              "the file is truncated or its count is wrong in %s: %" PRIu64 " entries of at least %" PRIu64
              " bytes announced, %zu bytes left",
              what, n_items, item_bytes, left_bytes);
    return false;
}

uint64_t wire_get(struct wire_in *in, unsigned n_bytes, const char *what)
{
    if (!wire_has(in, n_bytes, what))
        return 0;
    uint64_t value = bytes_get_be(in->bytes + in->offset, n_bytes);
    in->offset += n_bytes;
    return value;
}

void wire_get_bytes(struct wire_in *in, void *out, size_t n_bytes, const char *what)
{
    if (!wire_has(in, n_bytes, what))
        return;
    memcpy(out, in->bytes + in->offset, n_bytes);
    in->offset += n_bytes;
}

char *wire_get_text(struct wire_in *in, const char *what)
{
    uint64_t len_bytes = wire_get(in, 4, what);
    if (!wire_has(in, len_bytes, what))
        return NULL;
    if (len_bytes && memchr(in->bytes + in->offset, '\0', len_bytes)) {
        wire_fail(in, ERR_FORMAT, "a string of %s holds a NUL byte", what);
        return NULL;
    }
    char *text = malloc(len_bytes + 1);
    if (!text) {
        wire_fail(in, ERR_MEMORY, "out of memory in %s", what);
        return NULL;
    }
    wire_get_bytes(in, text, len_bytes, what);
    text[len_bytes] = '\0';
    return text;
}

bool wire_accept(struct wire_in *in, const char *text)
{
    size_t len_bytes = strlen(text);
    if (in->code || in->len_bytes - in->offset < len_bytes || memcmp(in->bytes + in->offset, text, len_bytes) != 0)
        return false;
    in->offset += len_bytes;
    return true;
}

void wire_put(struct buf *out, uint64_t value, unsigned n_bytes)
{
    unsigned char bytes[8];
    bytes_put_be(bytes, value, n_bytes);
    buf_append(out, bytes, n_bytes);
}

void wire_put_text(struct buf *out, const char *text)
{
    size_t len_bytes = text ? strlen(text) : 0;
    wire_put(out, len_bytes, 4);
    buf_append(out, text, len_bytes);
}

char *wire_put_room(struct buf *out, size_t n_bytes)
{
    if (out->failed || !vec_reserve(&out->data, &out->capacity, out->len_bytes + n_bytes + 1, 1)) {
        out->failed = true;
        return NULL;
    }
    char *room = out->data + out->len_bytes;
    out->len_bytes += n_bytes;
    out->data[out->len_bytes] = '\0';
    return room;
}
