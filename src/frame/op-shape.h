/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operations share: nodes that become one, and columns in another shape. Ordinary code; for the files of this
 * folder. */
#ifndef LOCUS_FRAME_OP_SHAPE_H
#define LOCUS_FRAME_OP_SHAPE_H

#include "frame/make.h"

/* A growing list of edges. */
struct edge_list {
    struct frame_edge *items; /* [n] */
    size_t n, capacity;
};

/* Appends an edge; false when out of memory. */
bool edges_add(struct edge_list *edges, uint32_t parent, uint32_t child);

/* Finds nodes [n] that are one: of roots [n_roots], and of the children of a node, those with the same identity, and of
 * what becomes one the children in turn. class_of [n] gets their common number, classes counted from 0 in order of
 * their first nodes.  err: ERR_MEMORY */
int shape_merge(uint32_t n, const struct edge_list *edges, const uint32_t *identities, const uint32_t *roots,
                size_t n_roots, uint32_t *class_of, uint32_t *n_classes, struct error *err);

/* Makes the graph of classes and turns class_of [n] (FRAME_NONE: none) into numbers of its nodes. edges are of the n
 * nodes, and end as those of classes. *first_of [graph->n]: the first node of each. Both are the caller's.  err:
 * ERR_MEMORY */
int shape_graph(uint32_t n, struct edge_list *edges, uint32_t *class_of, uint32_t n_classes, struct frame_graph **graph,
                uint32_t **first_of, struct error *err);

/* The attribute of the nodes with this name and type, added when there is none: all texts "", all numbers NAN. NULL
 * when one of the name has the other type. *ok: false when out of memory, which is NULL, too. */
struct frame_attribute *shape_attribute(struct frame_nodes *nodes, const char *name, bool is_text, bool *ok);

/* op-group.c: the value of an attribute at each node, keys [n_nodes], as id of a text; 0 where it is not known.
 * err: ERR_NOT_FOUND with the attributes there are, ERR_MEMORY */
int shape_keys(const struct frame *frame, const char *attribute, uint32_t *keys, struct error *err);

/* op-group.c: a root for the nodes of each key, texts keys [n]; it has the name of its first node, of names [n]. how:
 * as in frame_group_by.  err: ERR_MEMORY */
int shape_group(const struct frame *frame, const uint32_t *keys, const uint32_t *names, const struct frame_view *how,
                struct frame **result, struct error *err);

/* op-group.c: for each node the function around it, or itself. */
void shape_owners(const struct frame *frame, uint32_t *owner_of);

/* outer_of [n] gets the groups (group_of, FRAME_NONE: none) of those nodes of a tree that have no ancestor of the same
 * group, FRAME_NONE of others.  err: ERR_MEMORY */
int shape_outermost(const struct frame_graph *graph, const uint32_t *group_of, uint32_t n_groups, uint32_t *outer_of,
                    struct error *err);

/* op-find.c: a frame of the nodes on the hot path alone (frame_hot_path), one below the other, with their values.
 * err: ERR_NOT_FOUND: no node has a value; ERR_MEMORY */
int shape_hot_path(const struct frame *frame, size_t column, double share, struct frame **result, struct error *err);

/* What becomes of inclusive columns. */
enum regroup_kind {
    REGROUP_ANEW, /* nodes went: they are computed anew */
    REGROUP_SAME, /* siblings became one: they are added, in a tree */
    REGROUP_FLAT  /* nodes of any place became one: those of the outermost ones are added */
};

struct regroup {
    struct column_change change; /* first: the callback gets it */
    const struct frame *from;
    struct node_groups *groups, *outer; /* outer: of REGROUP_FLAT */
    bool *has_several;                  /* of REGROUP_FLAT and a graph: [graph->n] groups of more than one function */
    enum regroup_kind kind;
};

/* Prepares the columns of `from` for a graph whose node is group_of[node] of each of its nodes. nodes: of the new
 * frame. Everything is borrowed for as long as the regroup lives.  err: ERR_MEMORY */
int regroup_init(struct regroup *regroup, const struct frame *from, const uint32_t *group_of, enum regroup_kind kind,
                 struct frame_graph *graph, struct frame_nodes *nodes, struct error *err);
void regroup_fini(struct regroup *regroup);

/* A frame of graph and nodes (which are taken over, also on failure) with all columns of `from`.  err: ERR_MEMORY */
int regroup_frame(const struct frame *from, const uint32_t *group_of, enum regroup_kind kind, struct frame_graph *graph,
                  struct frame_nodes *nodes, struct frame **result, struct error *err);

/* Gives the groups of `made`, which regroup_frame has made of `from`, values in columns as `how` makes one of those of
 * all members; NULL: they stay as they are.  err: ERR_MEMORY */
int regroup_columns(const struct frame *from, const uint32_t *group_of, const struct frame_view *how,
                    struct frame *made, struct error *err);

/* The same frame with other columns, none so far; NULL when out of memory. */
struct frame *frame_without_columns(const struct frame *frame);

#endif
