/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing the source-level tree: children are found or added by what they are; at the end the tree is put into its
 * canonical order, which does not depend on the order of the profiles. Ordinary code. */
#ifndef LOCUS_ANALYSIS_SCOPES_H
#define LOCUS_ANALYSIS_SCOPES_H

#include "analysis/symbolize.h"

struct scope_builder {
    struct model *model;
    uint32_t *slots; /* [n_slots] hash; index + 1, 0 empty */
    size_t n_slots;
    bool failed; /* out of memory; scope 0 was returned */
};

/* The child of parent equal to proto in kind, role, name, file, module and line (PROC: line is not compared), added
 * when new. Returns 0 and sets failed when out of memory. */
uint32_t scopes_child(struct scope_builder *builder, uint32_t parent, const struct scope *proto);

/* Adds the functions at an address, frames [n] outermost first, and their loops below parent; returns the scope in
 * which the position of the innermost lies: its function or loop, or a PLACE when that is in another file. */
uint32_t scopes_add_frames(struct scope_builder *builder, uint32_t parent, const struct code_frame *frames, size_t n,
                           uint32_t module_name);

/* Sorts the tree and renumbers it in pre-order. *renumber [n_scopes] (old index to new) is malloc'ed; the caller
 * applies it to everything that names scopes and frees it.  err: ERR_MEMORY */
int scopes_sort(struct model *model, uint32_t **renumber, struct error *err);

/* Sets first_child and next_sibling from parent, for scopes that are in order already. */
void scopes_link(struct model *model);

/* Frees the hash table; the scopes stay with the model. */
void scopes_builder_fini(struct scope_builder *builder);

#endif
