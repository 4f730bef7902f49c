/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a heap block from its allocation path: which frame is the program's own (not an allocator wrapper), and
 * which variable that frame assigns the block to. Everything about naming stands behind heap_name_find.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_HEAP_NAME_H
#define LOCUS_ANALYSIS_HEAP_NAME_H

#include "analysis/symbolize.h"
#include "structure/source-text.h"

/* One function on an allocation path, inlined ones included. */
struct path_frame {
    struct code_frame code;
    uint32_t module; /* symbolizer id */
    uint64_t vaddr;  /* of the call instruction's last byte */
    bool inlined;    /* into the next frame of the path */
};

struct heap_name {
    char name[160];    /* variable, or "function (file:line)" */
    size_t site;       /* index in the path of the frame outside allocator wrappers */
    bool is_variable;  /* name is a variable's */
    char operand[160]; /* how the code at the site writes it, where that is not the name; else "" */
};

/* Whether this is a function by which a pool tells of its blocks (runtime/locus.h), ours or inlined from our header. */
bool heap_name_is_annotation(const char *function);

/* Names the blocks allocated on path [n], innermost frame (the caller of malloc, mmap, ...) first, n >= 1. */
void heap_name_find(struct symbolizer *symbolizer, struct source_text *source, const struct path_frame *path, size_t n,
                    struct heap_name *out);

#endif
