/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a heap block from its allocation path: which frame is the program's own (not an allocator wrapper), and
 * which variable that frame assigns the block to. Everything about naming stands behind heap_name_find.
 * Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_HEAP_NAME_H
#define LOCUS_ANALYSIS_BUILD_HEAP_NAME_H

#include "analysis/build/causes.h"
#include "analysis/build/symbolize.h"
#include "structure/names/alloc-name.h"
#include "structure/names/assign-name.h"
#include "structure/names/source-text.h"

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

/* --- types --- */

/* What the blocks of an allocation path hold: the type of their elements, from the allocation site or, where that says
 * nothing, from the code that accesses them. Ordinary code. */

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

/* --- private part --- */

/* Between heap-name.c (where a block was allocated and what the statement there says), heap-owner.c (whose it is in
 * C++: members, containers, objects) and heap-name.c (what a function was given to put it into). */

/* What a walk along an allocation path carries with it. */
struct search {
    struct symbolizer *symbolizer;
    struct source_text *source;
    const struct path_frame *path; /* [n] innermost first */
    size_t n;
};

/* Reads the statement of frame i and what it says about the memory that its call yields; the caller frees statement. */
enum assign_kind heap_name_statement(const struct search *search, size_t i, struct buf *statement, char *name,
                                     size_t size);

/* Index of the innermost frame from first on that is outside wrappers; first itself when all are wrappers. */
size_t heap_name_site(const struct search *search, size_t first);

/* True when a name that was read from the text of a constructor is none: that of the class, since the constructor's
 * head was read, or of another member than the one that is made. */
bool heap_owner_is_wrong(const struct search *search, size_t site, const char *name);

/* True when the machine code seems to give a block of a container of the C++ library to a variable of the site that is
 * none: compilers let variables and nameless objects share a place. */
bool heap_owner_is_other(const struct search *search, size_t site, const char *name);

/* The member that a constructor's list of initialisers makes at the site. has_code: found has a name already, which is
 * kept when it says more. False when there is none. */
bool heap_owner_initialiser(const struct search *search, size_t site, bool has_code, struct alloc_name *found);

/* Reduces an expression, out->name, to the container that owns the block, and puts that into found, which tells members
 * by their class. */
void heap_owner_clean(const struct search *search, const struct heap_name *out, struct alloc_name *found);

/* Sets the name of out from found: with the object's own name where only a caller knows that, and with the part of a
 * container that the block is, "cells (nodes)". */
void heap_owner_finish(const struct search *search, struct alloc_name *found, struct heap_name *out);

/* A function that fills what it was given by reference, or by the address of a pointer, says nothing of whose the block
 * is: its callers do, as far as they hand over a variable, and what they were handed themselves. Puts their name for it
 * into found, as far as one is known, and returns the frame that knows. is_fortran: all parameters are references. */
size_t heap_argument_follow(const struct search *search, size_t site, bool is_fortran, struct alloc_name *found);

/* Names the block by the Python code that asked for it, when that is known and says more than out, the name by native
 * code. */
void heap_python_name(const struct search *search, struct heap_name *out);

#endif
