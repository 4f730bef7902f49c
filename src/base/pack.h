/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and strings one after the other in a byte string, as the machine has them: for messages between processes
 * that run the same program, never for files. Who takes must take in the order of putting; nothing is checked. Ordinary
 * code. */
#ifndef LOCUS_BASE_PACK_H
#define LOCUS_BASE_PACK_H

#include <stdint.h>
#include <string.h>

#include "base/vec.h"

/* Appends a number (8 bytes); out->failed when out of memory. */
static inline void pack_number(struct buf *out, uint64_t value)
{
    buf_append(out, &value, sizeof value);
}

/* Appends a text with the 0 behind it; out->failed when out of memory. */
static inline void pack_text(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text) + 1);
}

/* Takes the number at *at, which need not be aligned, and moves *at behind it. */
static inline uint64_t unpack_number(const char **at)
{
    uint64_t value;
    memcpy(&value, *at, sizeof value);
    *at += sizeof value;
    return value;
}

/* Takes the text at *at and moves *at behind its 0; the text is borrowed from the bytes. */
static inline const char *unpack_text(const char **at)
{
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

#endif
