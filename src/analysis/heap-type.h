/* SPDX-License-Identifier: BSD-3-Clause */
/* What the blocks of an allocation path hold: the type of their elements, from the allocation site or, where that says
 * nothing, from the code that accesses them. Ordinary code. */
#ifndef LOCUS_ANALYSIS_HEAP_TYPE_H
#define LOCUS_ANALYSIS_HEAP_TYPE_H

#include "analysis/accesses.h"
#include "analysis/heap-name.h"

struct heap_type {
    struct symbols *symbols;  /* of the module that knows the types; NULL = not known */
    uint32_t type;            /* id in symbols: of an element */
    uint32_t tail;            /* id: one element, and behind it an array of these; 0 = no tail */
    uint64_t header_bytes;    /* before the first element */
    enum type_source source;
};

/* The type of blocks allocated on path and named name (by heap_name_find). block_bytes: their mean size, 0 = not known.
 * source TYPE_FROM_NOTHING: not known. */
void heap_type_find(struct symbolizer *symbolizer, struct source_text *source, const struct path_frame *path,
                    const struct heap_name *name, uint64_t block_bytes, struct heap_type *out);

/* The type that most accesses take a block for, by their source text: pointers that are followed or subscripted. Fills
 * out when more than half of the samples with an answer agree. */
void heap_type_by_accesses(struct symbolizer *symbolizer, struct source_text *source, const struct access *accesses,
                           size_t n, uint64_t block_bytes, struct heap_type *out);

#endif
