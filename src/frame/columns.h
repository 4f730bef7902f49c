/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns: where the values of a frame come from. A column knows how to make the cells of a node, and nothing is made
 * before it is asked for: a column of an operation's result holds on to the columns that it is computed from.
 * Ordinary code; for the files of this folder. */
#ifndef LOCUS_FRAME_COLUMNS_H
#define LOCUS_FRAME_COLUMNS_H

#include "base/vec.h"
#include "frame/frame.h"
#include "frame/graph.h"

/* The cells of a node, by profile in ascending order, none of them NAN. All zero is empty. */
struct cells {
    struct frame_cell *items; /* [n] */
    size_t n, capacity;
};

struct column_change;
struct frame_nodes;
struct frame_profiles;

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

/* How the columns of a frame become those of another one. Fill all but the memory. */
struct column_change {
    /* What becomes of a column that is no formula. NULL when out of memory. */
    struct frame_column *(*of)(struct column_change *change, struct frame_column *column);
    struct frame_graph *graph;       /* of the new frame, borrowed; NULL: as it was */
    struct frame_nodes *nodes;       /* the same */
    struct frame_profiles *profiles; /* the same */
    struct changed_column {
        struct frame_column *from, *to;
    } * known; /* [n_known] what became of columns so far */
    size_t n_known, cap_known;
};

/* What becomes of a column: one owner more of it. The same column is changed once. NULL when out of memory. */
struct frame_column *column_changed(struct column_change *change, struct frame_column *column);
void change_fini(struct column_change *change);

/* What every column has; a class puts more behind it. */
struct frame_column {
    unsigned n_owners;
    const struct column_class *class;
    char *name, *description; /* description: "" = none */
    enum frame_sums sums;
    bool is_hidden;
    uint32_t n_nodes, n_profiles;
    /* The same formula over columns that are changed; NULL: the column is no formula. Only asked of columns that do not
     * add up (FRAME_PLAIN). NULL when out of memory. */
    struct frame_column *(*remake)(struct frame_column *column, struct column_change *change);
    struct column_cache *caches;  /* values by view */
    struct cells row;             /* of frame_cells */
    unsigned depth;               /* length of the chain of columns that it is computed from */
    struct frame_column *settled; /* its cells, when they have been computed */
};

/* Says that the column is computed from source: one step more. */
void column_deepen(struct frame_column *column, const struct frame_column *source);

/* Ends a long chain of columns that are computed one from the other, as every read, and freeing, would go through all
 * of it: computes all cells of the last one, which then needs the others no more. Short chains stay. A formula that
 * does not add up is computed anew by each operation, so it stays as well, and is refused when its chain is too long.
 * err: as frame_values, and ERR_UNSUPPORTED */
int column_settle(struct frame_column *column, struct error *err);

/* Makes a column of a class, column_bytes large, all zero behind the common part. NULL when out of memory. */
struct frame_column *column_new(const struct column_class *class, size_t column_bytes, const char *name,
                                enum frame_sums sums, uint32_t n_nodes, uint32_t n_profiles);
struct frame_column *column_keep(struct frame_column *column);
void column_drop(struct frame_column *column);

/* A column with the description of its source, from which it is computed; sums and n_profiles may be set before it is
 * shown to anybody. */
struct frame_column *column_like(const struct column_class *class, size_t column_bytes,
                                 const struct frame_column *source, const char *name, enum frame_sums sums,
                                 uint32_t n_nodes);

/* As frame_values and frame_cells. */
int column_values(struct frame_column *column, const struct frame_view *view, const double **values, struct error *err);
int column_cells(struct frame_column *column, uint32_t node, const struct frame_cell **cells, size_t *n,
                 struct error *err);

/* *value: one value of cells [n], of those profiles that the view names; NAN when there is none. Where there are some,
 * the profiles without a cell count as 0: n_profiles is how many there are with these; 0: they are left out. scratch
 * is room for the cells that are wanted. False when out of memory. */
bool cells_aggregate(const struct frame_cell *cells, size_t n, const struct frame_view *view, size_t n_profiles,
                     struct cells *scratch, double *value);

/* The n_profiles of cells_aggregate for values of a column in n_profiles: all, or none of a column that does not add
 * up. */
size_t column_n_counted(const struct frame_column *column, size_t n_profiles);

/* Appends a cell; false when out of memory. */
bool cells_add(struct cells *cells, uint32_t profile, double value);
/* Adds the values of cells [n] to those of the same profiles in sum, which stays in order; scratch is the caller's. */
bool cells_merge(struct cells *sum, const struct frame_cell *cells, size_t n, struct cells *scratch);
void cells_fini(struct cells *cells);

/* Cells in memory: node's are cells[starts[node]] up to starts[node + 1]. Takes both arrays over, also on failure
 * (NULL). starts [n_nodes + 1], malloc'ed. */
struct frame_column *column_stored(const char *name, enum frame_sums sums, uint32_t n_nodes, uint32_t n_profiles,
                                   uint64_t *starts, struct frame_cell *cells);

/* Groups of nodes of another column: the members of group i are members[starts[i]] up to starts[i + 1]. */
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
/* Groups with the members of several sets of the same groups; no node is in two sets of a group. NULL when out of
 * memory.
 */
struct node_groups *groups_joined(struct node_groups *const *parts, size_t n);
/* The group of each node: those of its children that is_member [n] names, NULL: all. NULL when out of memory. */
struct node_groups *groups_of_children(const struct frame_graph *graph, const bool *is_member);
/* The sums of a column over groups of its nodes. */
struct frame_column *column_grouped(struct frame_column *source, struct node_groups *groups);

/* The same for a column that does not add up: the value of the only member that has one in a profile, and none where
 * several do. */
struct frame_column *column_sole(struct frame_column *source, struct node_groups *groups);

/* One value in each profile of those that the members of a group have there, as view says (its profiles are not used).
 */
struct frame_column *column_pooled(struct frame_column *source, struct node_groups *groups,
                                   const struct frame_view *view);

/* The cells of one column, or of the other at nodes where is_other [n_nodes] says so. Takes both over, also on failure;
 * NULL columns are one. */
struct frame_column *column_either(struct frame_column *one, struct frame_column *other, const bool *is_other);

/* What is left of a column at each node without the members of its group; what is left by rounding alone is no value.
 * The column is not hidden. */
struct frame_column *column_own(struct frame_column *source, struct node_groups *parts, const char *name);

/* The sums over the children of each node. */
struct frame_column *column_children(struct frame_column *source, struct frame_graph *graph);

/* --- what lies below: columns-below.c --- */

/* Sums of an exclusive column over each node and all that can be reached from it, every node once. */
struct frame_column *column_inclusive(struct frame_column *source, struct frame_graph *graph, const char *name);

/* What is left of an inclusive column at each node without its children; of a tree. */
struct frame_column *column_exclusive(struct frame_column *source, struct frame_graph *graph, const char *name);

/* Sums of a column of the nodes of `graph` over each group and all that can be reached from it, every node once. */
struct frame_column *column_reached(struct frame_column *source, struct frame_graph *graph, struct node_groups *groups,
                                    const char *name);

/* --- other profiles: columns-profiles.c --- */

/* The numbers that profiles get: new_of[old], FRAME_NONE for those that are left out. */
struct profile_map {
    unsigned n_owners;
    uint32_t n_old, n_new;
    uint32_t new_of[]; /* [n_old] */
};
/* A map that leaves all out so far, and one owner more or less of it. NULL when out of memory. */
struct profile_map *profile_map_new(uint32_t n_old, uint32_t n_new);
struct profile_map *profile_map_keep(struct profile_map *map);
void profile_map_drop(struct profile_map *map);

/* The cells of a column in other profiles; no two profiles become one. A formula is one over such cells. */
struct frame_column *column_moved(struct frame_column *source, struct profile_map *map);

/* The same where several profiles become one, whose value is an aggregate. */
struct frame_column *column_aggregated(struct frame_column *source, struct profile_map *map,
                                       enum frame_aggregate aggregate, double percentile, const char *name);

/* The cells of several columns [n] of the same nodes, all of other profiles. NULL sources are left out. */
struct frame_column *column_appended(struct frame_column *const *sources, size_t n);

#endif
