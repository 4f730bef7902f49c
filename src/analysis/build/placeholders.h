/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes of the merged tree are not code: the partial root and the placeholders of the data-centric tree, by name
 * if the runtime library is known, else by node type and shape. And what functions
 * of allocators are, by name. Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_PLACEHOLDERS_H
#define LOCUS_ANALYSIS_BUILD_PLACEHOLDERS_H

#include "analysis/load/ingest.h"

/* Fills role and in_data of all nodes. */
void placeholders_assign(struct raw_tree *tree, struct symbolizer *symbolizer);

/* Name under which a role is shown, such as "<heap allocation>"; NULL for roles without one. */
const char *placeholders_title(enum scope_role role);

/* Procedure code of the role in experiment.xml: 0 none, 1 placeholder, 2 root of a tree of its own. */
int placeholders_code(enum scope_role role);

/* Class and readable reason of a placeholder below <unknown attribute>, by its function's name:
 * "DATACENTRIC_No_Compute" gives "unattributed" and "compute". reason[size]. */
enum variable_class placeholders_reason(const char *placeholder, char *reason, size_t size);

/* --- what a function is to an allocator --- */

/* What a function is to an allocator, by its name alone. */
enum allocator_role {
    ALLOCATOR_NONE = 0,
    ALLOCATOR_ENTRY,  /* libc's malloc, free, ... */
    ALLOCATOR_INNER,  /* inside libc's */
    ALLOCATOR_BLOCK,  /* fills or copies a block */
    ALLOCATOR_LIBRARY /* of C++, between the program and the allocator */
};

/* The role of a function with this name.  ctx: ordinary */
enum allocator_role allocator_role_of(const char *function);

/* The name of a function up to its arguments, without its type; *n: its length. */
const char *allocator_bare_name(const char *name, size_t *n);

/* Whether a function of a container makes room for more elements. */
bool allocator_grows(const char *name);

#endif
