/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree as people read it: functions and statements, without the call sites and places between them, children by
 * cost. Ordinary code. */
#ifndef LOCUS_EXPORT_TREE_WALK_H
#define LOCUS_EXPORT_TREE_WALK_H

#include "export/exporters.h"

/* One visible node. */
struct tree_node {
    uint32_t scope, parent; /* parent: visible scope, 0 = none */
    uint32_t depth;
    double inclusive, own; /* own: of the statements directly in a function */
    uint32_t call_file, call_line; /* where it was called, 0 = not known */
};

/* All visible nodes in depth-first order, siblings by inclusive value, highest first; nodes below least are left out.
 * *nodes is malloc'ed, the caller frees it.  err: ERR_MEMORY */
int tree_walk(const struct export_job *job, double least, struct tree_node **nodes, size_t *n_nodes,
              struct error *err);

/* Total that percentages refer to. */
double tree_total(const struct export_job *job);

#endif
