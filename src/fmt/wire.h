/* SPDX-License-Identifier: BSD-3-Clause */
/* Big-endian fields with bounds checks: a cursor over bytes that remembers its first failure, and the matching appends.
 * Every reader of this folder goes through it, so no field is taken and no memory asked for before the bytes are known
 * to be there. Ordinary code. */
#ifndef LOCUS_FMT_WIRE_H
#define LOCUS_FMT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

/* A cursor. Fill bytes, len_bytes, name (for messages) and err; the rest zero. Once code is not 0 every read returns
 * zero and moves nothing, so callers may check it once per group of fields. */
struct wire_in {
    const unsigned char *bytes;
    size_t len_bytes, offset;
    const char *name;
    struct error *err;
    int code; /* enum error_code of the first failure */
};

/* Remembers a failure: "<name>: offset <n>: <text>". Only the first one counts. Returns in->code. */
int wire_fail(struct wire_in *in, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* True when n_bytes more bytes are there; otherwise fails with "truncated in <what>". */
bool wire_has(struct wire_in *in, uint64_t n_bytes, const char *what);

/* True when n_items of at least item_bytes each can still be there; otherwise fails, naming the count. */
bool wire_has_items(struct wire_in *in, uint64_t n_items, uint64_t item_bytes, const char *what);

/* The next big-endian integer of 1-8 bytes; 0 after a failure. */
uint64_t wire_get(struct wire_in *in, unsigned n_bytes, const char *what);

/* Copies the next n_bytes to out; nothing after a failure. */
void wire_get_bytes(struct wire_in *in, void *out, size_t n_bytes, const char *what);

/* The next string (four bytes of length, then that many bytes without NUL), malloc'ed; NULL after a failure. */
char *wire_get_text(struct wire_in *in, const char *what);

/* True when the next bytes are text; they are then passed over. Does not fail. */
bool wire_accept(struct wire_in *in, const char *text);

/* Appends the low n_bytes of value, big-endian; a string with its length (NULL as an empty one). */
void wire_put(struct buf *out, uint64_t value, unsigned n_bytes);
void wire_put_text(struct buf *out, const char *text);

/* Appends n_bytes for the caller to fill at once; NULL when out of memory (out->failed is then set). */
char *wire_put_room(struct buf *out, size_t n_bytes);

#endif
