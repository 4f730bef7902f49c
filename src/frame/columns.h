/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns: where the values of a frame come from. A column knows how to make the cells of a node, and nothing is made
 * before it is asked for: a column of an operation's result holds on to the columns that it is computed from.
 * Ordinary code; for the files of this folder. */
#ifndef LOCUS_FRAME_COLUMNS_H
#define LOCUS_FRAME_COLUMNS_H

#include "base/vec.h"
#include "frame/frame.h"
#include "frame/graph.h"

/* The cells of a node, by profile in ascending order. All zero is empty. */
struct cells {
    struct frame_cell *items; /* [n] */
    size_t n, capacity;
};

struct column_class {
    /* Appends the cells of a node to row, which is empty.  err: ERR_IO, ERR_FORMAT, ERR_MEMORY */
    int (*row)(struct frame_column *column, uint32_t node, struct cells *row, struct error *err);
    /* Fills values [n_nodes] for a view when that is cheaper than by rows, or means something else (a ratio of sums);
     * *done says whether it did. NULL: by rows.  err: as row */
    int (*values)(struct frame_column *column, const struct frame_view *view, double *values, bool *done,
                  struct error *err);
    /* Frees what the class has put behind the column. */
    void (*fini)(struct frame_column *column);
};

/* What every column has; a class puts more behind it. */
struct frame_column {
    unsigned n_owners;
    const struct column_class *class;
    char *name, *description; /* description: "" = none */
    enum frame_sums sums;
    bool is_hidden;
    uint32_t n_nodes, n_profiles;
    struct column_cache *caches; /* values by view */
    struct cells row;            /* of frame_cells */
};

/* Makes a column of a class, column_bytes large, all zero behind the common part. NULL when out of memory. */
struct frame_column *column_new(const struct column_class *class, size_t column_bytes, const char *name,
                                enum frame_sums sums, uint32_t n_nodes, uint32_t n_profiles);
struct frame_column *column_keep(struct frame_column *column);
void column_drop(struct frame_column *column);

/* As frame_values and frame_cells. */
int column_values(struct frame_column *column, const struct frame_view *view, const double **values, struct error *err);
int column_cells(struct frame_column *column, uint32_t node, const struct frame_cell **cells, size_t *n,
                 struct error *err);

/* One value of cells [n], of those profiles that the view names; NAN when there is none. scratch: for percentiles. */
double cells_aggregate(const struct frame_cell *cells, size_t n, const struct frame_view *view, struct cells *scratch);

/* Appends a cell; false when out of memory. */
bool cells_add(struct cells *cells, uint32_t profile, double value);
/* Adds the values of cells [n] to those of the same profiles in sum, which stays in order; scratch is the caller's. */
bool cells_merge(struct cells *sum, const struct frame_cell *cells, size_t n, struct cells *scratch);
void cells_fini(struct cells *cells);

/* Cells in memory: node's are cells[starts[node]] up to starts[node + 1]. Takes both arrays over, also on failure
 * (NULL). starts [n_nodes + 1], malloc'ed. */
struct frame_column *column_stored(const char *name, enum frame_sums sums, uint32_t n_nodes, uint32_t n_profiles,
                                   uint64_t *starts, struct frame_cell *cells);

/* The sums over groups of nodes of another column: the members of node are members[starts[node]...]. */
struct node_groups {
    unsigned n_owners;
    uint32_t n_nodes;
    uint32_t *starts, *members; /* [n_nodes + 1], [starts[n_nodes]] nodes of the other column */
};
/* One owner more, and one less. */
struct node_groups *groups_keep(struct node_groups *groups);
void groups_drop(struct node_groups *groups);
/* The groups of n_groups that group_of [n_nodes] names for each node (FRAME_NONE: in none). NULL when out of memory. */
struct node_groups *groups_of(const uint32_t *group_of, uint32_t n_nodes, uint32_t n_groups);
struct frame_column *column_grouped(struct frame_column *source, struct node_groups *groups);

/* Sums of an exclusive column over each node and all that can be reached from it, every node once. */
struct frame_column *column_inclusive(struct frame_column *source, struct frame_graph *graph, const char *name);

/* What is left of an inclusive column at each node without its children; of a tree. */
struct frame_column *column_exclusive(struct frame_column *source, struct frame_graph *graph, const char *name);

#endif
