/* SPDX-License-Identifier: BSD-3-Clause */
/* All profiles merged by address: one tree whose nodes are (parent, load module, address), before any source is looked
 * at. Ordinary code. */
#ifndef LOCUS_ANALYSIS_RAWTREE_H
#define LOCUS_ANALYSIS_RAWTREE_H

#include "analysis/symbolize.h"
#include "fmt/hpcrun.h"

#define RAW_NONE UINT32_MAX

/* Node; node 0 is the root of all profiles. A parent has a lower index than its children. */
struct raw_node {
    uint64_t ip;
    uint32_t parent; /* RAW_NONE for node 0 */
    uint32_t module; /* symbolizer id */
    uint32_t type;   /* enum hpcrun_node_type bits, OR of all profiles */
    bool has_children, has_values;
    uint8_t role;        /* enum scope_role, set by roles_assign */
    bool in_data;        /* at or below the data-centric root */
    uint32_t variable;   /* index into the model's variables, RAW_NONE outside them */
    uint32_t inner, leaf; /* scopes that children hang under and that own values belong to; 0 = none */
};

struct raw_tree {
    struct raw_node *nodes; /* [n_nodes] */
    size_t n_nodes, cap_nodes;
    uint32_t *slots; /* [n_slots] hash of (parent, module, ip, version-4 placeholder); index + 1, 0 empty */
    size_t n_slots;
};

/* The nodes of one profile in the merged tree, for side files. Sorted by id. */
struct raw_id {
    uint32_t id;   /* absolute node id of the profile */
    uint32_t node; /* index in the merged tree */
};

/* Merges profile into tree; its values go to thread as cells whose scope is the raw node's index, and whose metric is
 * the model's. *ids [profile->n_nodes] is malloc'ed, the caller frees it. Metrics new to the model are added.
 * On failure nothing was merged.  err: ERR_FORMAT (the nodes are no tree), ERR_MEMORY */
int raw_merge(struct raw_tree *tree, struct symbolizer *symbolizer, struct model *model,
              const struct hpcrun_profile *profile, const char *name, struct thread *thread, struct raw_id **ids,
              struct error *err);

/* Index in the merged tree of the profile's node id, RAW_NONE when there is none. ids [n] from raw_merge. */
uint32_t raw_find_id(const struct raw_id *ids, size_t n, uint32_t id);

/* Frees everything and makes the tree empty. */
void raw_fini(struct raw_tree *tree);

#endif
