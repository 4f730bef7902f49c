/* SPDX-License-Identifier: BSD-3-Clause */
/* From an offset in an object to the field that lies there, spelled as one would write it: ".vel.x", "[].mass".
 * Ordinary code. */
#ifndef LOCUS_STRUCTURE_TYPES_PATH_H
#define LOCUS_STRUCTURE_TYPES_PATH_H

#include "structure/types.h"

#define TYPES_PATH_BYTES 256

enum spot_kind {
    SPOT_NONE = 0, /* the type says nothing about this offset */
    SPOT_WHOLE,    /* the object is a scalar: path is "" */
    SPOT_FIELD,    /* in a field */
    SPOT_PADDING   /* between fields: path ends in "<padding>" */
};

/* One field of a structure, as far as an offset tells: alternatives of a union and neighbouring bit fields share
 * theirs. */
struct type_spot {
    enum spot_kind kind;
    char path[TYPES_PATH_BYTES]; /* relative to the object, e.g. ".vel.x", ".<i|d>" where fields share a place */
    uint64_t offset_bytes;       /* of the field in the structure that is looked at: subscripts count as 0 */
    uint64_t size_bytes;         /* of the field, of all its elements together */
    uint32_t type;               /* of what lies there: a scalar's, or the field's where several share the place */
};

/* The field at offset_bytes of an object of the type. Arrays are passed with "[]" whatever the element. text: source
 * code of the access, or NULL: where several fields share a place, those that it mentions are meant. */
void types_spot(struct symbols *symbols, uint32_t id, uint64_t offset_bytes, const char *text, struct type_spot *spot);

/* The same in a block of block_bytes (0: not known), of which the type is the element: an array of structures, or one
 * structure whose last field takes the rest. The path begins with "[]" where the block holds several elements and with
 * nothing where it holds one. header_bytes lie before the first element (array cookies of C++). */
void types_spot_in_block(struct symbols *symbols, uint32_t id, uint64_t block_bytes, uint64_t header_bytes,
                         uint64_t offset_bytes, const char *text, struct type_spot *spot);

/* Whether the structure's last field is open-ended; then its offset. */
bool types_flexible(struct symbols *symbols, uint32_t id, uint64_t *offset_bytes);

#endif
