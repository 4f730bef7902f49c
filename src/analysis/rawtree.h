/* SPDX-License-Identifier: BSD-3-Clause */
/* All profiles merged by address: one tree whose nodes are (parent, load module, address), before any source is looked
 * at. Its order follows from the keys alone, whatever threads or ranks merged it in which order. Ordinary code. */
#ifndef LOCUS_ANALYSIS_RAWTREE_H
#define LOCUS_ANALYSIS_RAWTREE_H

#include "analysis/rawstore.h"
#include "analysis/symbolize.h"
#include "fmt/hpcrun.h"

/* Node; node 0 is the root of all profiles. A parent has a lower index than its children, which follow each other by
 * the path of the module and the address. */
struct raw_node {
    uint64_t ip;
    uint32_t parent; /* RAW_NONE for node 0 */
    uint32_t module; /* symbolizer id */
    uint32_t type;   /* enum hpcrun_node_type bits, OR of all profiles */
    bool has_children, has_values;
    bool is_traced;      /* some trace refers to it */
    uint8_t role;        /* enum scope_role, set by roles_assign */
    bool in_data;        /* at or below the data-centric root */
    uint32_t variable;   /* index into the model's variables, RAW_NONE outside them */
    uint32_t inner, leaf; /* scopes that children hang under and that own values belong to; 0 = none */
    uint32_t traced;      /* scope that traces mean by it; 0 = none */
};

struct raw_tree {
    struct raw_node *nodes; /* [n_nodes] */
    size_t n_nodes;
    uint32_t *index_of; /* [n_ids] by id in the store; RAW_NONE for nodes that do not count */
    size_t n_ids;
};

/* Puts the live nodes of the store into order. Modules new to the symbolizer are added.  err: ERR_MEMORY */
int raw_tree_make(const struct raw_store *store, struct symbolizer *symbolizer, struct raw_tree *tree,
                  struct error *err);

/* Frees everything and makes the tree empty. */
void raw_tree_fini(struct raw_tree *tree);

#endif
