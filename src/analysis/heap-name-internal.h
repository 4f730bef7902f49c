/* SPDX-License-Identifier: BSD-3-Clause */
/* Between heap-name.c (where a block was allocated and what the statement there says), heap-owner.c (whose it is in
 * C++: members, containers, objects) and heap-argument.c (what a function was given to put it into). */
#ifndef LOCUS_ANALYSIS_HEAP_NAME_INTERNAL_H
#define LOCUS_ANALYSIS_HEAP_NAME_INTERNAL_H

#include "analysis/heap-name.h"
#include "structure/alloc-name.h"
#include "structure/assign-name.h"

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

/* The variable whose address the site hands to a function of the C library that stores a new block there, such as
 * posix_memalign and getline; false when it calls none. */
bool heap_argument_library(const struct search *search, size_t site, struct alloc_name *found);

/* Names the block by the Python code that asked for it, when that is known and says more than out, the name by native
 * code. */
void heap_python_name(const struct search *search, struct heap_name *out);

#endif
