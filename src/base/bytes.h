/* SPDX-License-Identifier: BSD-3-Clause */
/* Big-endian integers and doubles in byte buffers, as HPCToolkit's files hold them; hashes; packed fields.
 * Inline, no state: usable in any context, signal handlers included. */
#ifndef LOCUS_BASE_BYTES_H
#define LOCUS_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/vec.h"

/* Reads an unsigned big-endian integer of n_bytes (1-8) at p. */
static inline uint64_t bytes_get_be(const void *p, unsigned n_bytes)
{
    uint64_t word = 0;
    if (n_bytes == 8) { /* one load where the size is a constant */
        memcpy(&word, p, 8);
        return be64toh(word);
    }
    const unsigned char *b = p;
    for (unsigned i = 0; i < n_bytes; i++)
        word = word << 8 | b[i];
    return word;
}

/* Writes the low n_bytes (1-8) of value at p, big-endian. */
static inline void bytes_put_be(void *p, uint64_t value, unsigned n_bytes)
{
    uint64_t word = htobe64(value);
    if (n_bytes == 8) {
        memcpy(p, &word, 8);
        return;
    }
    unsigned char *b = p;
    for (unsigned i = n_bytes; i-- > 0; value >>= 8)
        b[i] = (unsigned char)value;
}

/* The IEEE 754 double whose bit pattern is bits. */
static inline double bytes_double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The bit pattern of an IEEE 754 double. */
static inline uint64_t bytes_bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* --- hashes --- */

#define BYTES_HASH_START UINT64_C(0xcbf29ce484222325)

/* Continues a hash (FNV-1a, 64 bits) over n bytes, or over a text without its 0; begin with BYTES_HASH_START.
 * src: http://www.isthe.com/chongo/tech/comp/fnv/ */
static inline uint64_t bytes_hash(uint64_t hash, const void *bytes, uint64_t n)
{
    const unsigned char *b = (const unsigned char *)bytes;
    for (uint64_t i = 0; i < n; i++)
        hash = (hash ^ b[i]) * 0x100000001b3u;
    return hash;
}
static inline uint64_t bytes_hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* Continues a hash with a word: each bit of both reaches the lower half. */
static inline uint64_t bytes_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* The hash of n bytes where there is room for 32 bits only. src: the same */
static inline uint32_t bytes_hash_32(const void *bytes, uint64_t n)
{
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t hash = 0x811c9dc5u;
    for (uint64_t i = 0; i < n; i++)
        hash = (hash ^ b[i]) * 0x01000193u;
    return hash;
}

/* --- packed fields --- */

/* Numbers and strings one after the other in a byte string, in the machine's own format: for messages between processes
 * of the same program, never for files. They must be taken in the order in which they were put; nothing is checked.
 * Ordinary code. */

/* Appends a number (8 bytes); out->failed when out of memory. */
static inline void pack_number(struct buf *out, uint64_t value)
{
    buf_append(out, &value, sizeof value);
}

/* Appends a text and its terminating 0; out->failed when out of memory. */
static inline void pack_text(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text) + 1);
}

/* Takes the number at *at, which need not be aligned, and moves *at past it. */
static inline uint64_t unpack_number(const char **at)
{
    uint64_t value;
    memcpy(&value, *at, sizeof value);
    *at += sizeof value;
    return value;
}

/* Takes the text at *at and moves *at past its 0; the text is borrowed from the bytes. */
static inline const char *unpack_text(const char **at)
{
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

#endif
