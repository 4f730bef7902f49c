/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a heap block from its allocation path: which frame is the program's own (not an allocator wrapper), and
 * which variable that frame assigns the block to. heap_name_find is the entry to all naming.
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

#define HEAP_PLACE "+0x" /* between a function and the place in it that the call of the allocator returns to */

struct heap_name {
    char name[160];    /* variable, "function (file:line)", or without lines "function+0x4f0" */
    size_t site;       /* index in the path of the frame outside the allocator wrappers */
    bool is_variable;  /* name is a variable's */
    char operand[160]; /* how the code at the site writes it, if that differs from the name; else "" */
};

/* Whether a pool reports its blocks by calling this function (runtime/locus.h): in our library, or inlined from our
 * header. */
bool heap_name_is_annotation(const char *function);

/* Names the blocks allocated on path [n], innermost frame (the caller of malloc, mmap, ...) first, n >= 1. */
void heap_name_find(struct symbolizer *symbolizer, struct source_text *source, const struct path_frame *path, size_t n,
                    struct heap_name *out);

/* heap-python.c: what blocks that were mapped on a path are where the interpreter maps them for itself, by their size:
 * arenas of its allocator for objects up to 512 bytes, from which all of the program's code gets its own, or pieces of
 * its stack of frames; NULL: something else. Static text.
 * src: CPython Objects/obmalloc.c (ARENA_BITS; 256 KiB before 3.10), Python/pystate.c (DATA_STACK_CHUNK_SIZE) */
const char *heap_python_memory(struct symbolizer *symbolizer, const struct path_frame *path, uint64_t block_bytes);

/* --- types --- */

/* What the blocks of an allocation path hold: the type of their elements, from the allocation site or, if that says
 * nothing, from the code that accesses them. Ordinary code. */

struct heap_type {
    struct symbols *symbols; /* of the module that has the types; NULL = not known */
    uint32_t type;           /* id in symbols: of an element */
    uint32_t trailing_type;  /* id: one element is followed by an array of these; 0 = none */
    uint64_t header_bytes;   /* before the first element */
    enum type_source source;
};

/* The type of blocks allocated on path and named name (by heap_name_find). block_bytes: their mean size, 0 = not known.
 * When the type is not known, source is TYPE_FROM_NOTHING. */
void heap_type_find(struct symbolizer *symbolizer, struct source_text *source, const struct path_frame *path,
                    const struct heap_name *name, uint64_t block_bytes, struct heap_type *out);

/* The type of a block from the source text of its accesses: of the pointers that are dereferenced or subscripted. Fills
 * out when more than half of the samples with an answer agree. */
void heap_type_by_accesses(struct symbolizer *symbolizer, struct source_text *source,
                           const struct node_access *accesses, size_t n, uint64_t block_bytes, struct heap_type *out);

/* --- private part --- */

/* Shared by heap-name.c (where a block was allocated, what the statement there says, what a function was given to put
 * it into), heap-owner.c (what owns it in C++: members, containers, objects) and heap-python.c. */

/* What all steps of naming one block share. */
struct heap_search {
    struct symbolizer *symbolizer;
    struct source_text *source;
    const struct path_frame *path; /* [n] innermost first */
    size_t n;
};

/* Reads the statement of frame i and what it says about the memory that its call yields; the caller frees statement. */
enum assign_kind heap_name_statement(const struct heap_search *search, size_t i, struct buf *statement, char *name,
                                     size_t size);

/* Index of the innermost frame from first on that is outside wrappers; first itself when all are wrappers. */
size_t heap_name_site(const struct heap_search *search, size_t first);

/* True when a name that was read from the text of a constructor is wrong: that of the class, because the constructor's
 * head was read, or that of another member than the one being initialised. */
bool heap_owner_is_wrong(const struct heap_search *search, size_t site, const char *name);

/* True when the machine code seems to give a block of a C++ library container to a variable of the site that is no
 * container: compilers let variables and temporaries share a place. */
bool heap_owner_is_other(const struct heap_search *search, size_t site, const char *name);

/* The member that a constructor's initialiser list makes at the site. has_code: found already has a name, which is kept
 * if it says more. False when there is none. */
bool heap_owner_initialiser(const struct heap_search *search, size_t site, bool has_code, struct alloc_name *found);

/* Reduces an expression, out->name, to the container that owns the block, and puts that into found, which names members
 * with their class. */
void heap_owner_clean(const struct heap_search *search, const struct heap_name *out, struct alloc_name *found);

/* Sets the name of out from found: with the object's own name if only a caller knows that, and with the part of a
 * container that the block is, "cells (nodes)", or "cells[]" when an element of the container points to it. */
void heap_owner_finish(const struct heap_search *search, struct alloc_name *found, struct heap_name *out);

/* A function that fills what it was given by reference, or by the address of a pointer, does not show who owns the
 * block. Its callers do, if they pass a variable, or else their own callers. Puts the outermost name known into found
 * and returns the frame that has it. is_fortran: all parameters are references. */
size_t heap_argument_follow(const struct heap_search *search, size_t site, bool is_fortran, struct alloc_name *found);

/* Names the block by the Python code that asked for it, if that is known and says more than out, the name from native
 * code. */
void heap_python_name(const struct heap_search *search, struct heap_name *out);

#endif
