/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of a frame: nodes and edges, numbered in pre-order of the first visit. Shared by all frames with the same
 * shape. Ordinary code; for the files of this folder. */
#ifndef LOCUS_FRAME_GRAPH_H
#define LOCUS_FRAME_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct frame_graph {
    unsigned n_owners;
    uint32_t n;
    uint32_t *child_starts, *children; /* [n + 1], [n_edges]: node's are children[child_starts[node]...] */
    uint32_t *parent_starts, *parents; /* the same */
    uint32_t *roots;                   /* [n_roots] */
    size_t n_roots;
    bool is_tree;
    uint32_t *post_order, *depths; /* [n], NULL until asked for */
};

struct frame_edge {
    uint32_t parent, child;
};

/* Makes the graph of n nodes with these edges, which may come in any order and more than once. The children of a node
 * keep the order of the edges. Nodes get new numbers: (*old_of)[new] is the old one, malloc'ed, the caller's. A cycle
 * that no edge leads into begins at its node with the least old number, which is a root then.  err: ERR_MEMORY */
int graph_make(uint32_t n, const struct frame_edge *edges, size_t n_edges, struct frame_graph **graph,
               uint32_t **old_of, struct error *err);

/* Makes the tree in which parents[i] < i is the parent of node i, FRAME_NONE for a root; nodes are in pre-order
 * already. err: ERR_MEMORY */
int graph_make_tree(uint32_t n, const uint32_t *parents, struct frame_graph **graph, struct error *err);

/* One owner more, and one less: the last one frees it. NULL is allowed in the second. */
struct frame_graph *graph_keep(struct frame_graph *graph);
void graph_drop(struct frame_graph *graph);

/* First node behind the subtree of a node of a tree. */
uint32_t graph_subtree_end(const struct frame_graph *graph, uint32_t node);

/* The strongly connected component of each node, component_of [n]: what can be reached from each other. They are
 * counted in the order in which Tarjan's search completes them, so that an edge between two leads to the smaller
 * number. Returns how many there are, FRAME_NONE when out of memory.  src: Tarjan, Depth-first search and linear graph
 * algorithms, 1972
 */
uint32_t graph_components(const struct frame_graph *graph, uint32_t *component_of);

/* As frame_post_order and frame_depths. */
const uint32_t *graph_post_order(struct frame_graph *graph);
const uint32_t *graph_depths(struct frame_graph *graph);

#endif
