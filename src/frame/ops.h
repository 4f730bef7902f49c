/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on frames. Each makes a new frame, which is the caller's and shares with its operands what is the same;
 * these stay as they are. Values are computed when somebody asks for them; only conditions need theirs at once.
 * Everything is linear in nodes and edges where nothing else is said, and no depth is too deep. Ordinary code.
 *
 * Where several nodes become one, it takes kind, name and other attributes of the first; exclusive values are added,
 * and so are inclusive ones where nothing is counted twice; a value that does not add up (FRAME_PLAIN) stays where only
 * one of the nodes has one, and is missing otherwise. A formula is computed again from what became of its columns.
 *
 * err of all: ERR_MEMORY, ERR_IO and ERR_FORMAT where values are needed, ERR_USAGE and ERR_NOT_FOUND for mistakes in
 * an expression or in the name of a column. */
#ifndef LOCUS_FRAME_OPS_H
#define LOCUS_FRAME_OPS_H

#include "frame/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- fewer nodes, other columns --- */

/* Keeps the nodes with keep[node]: the nearest kept ancestor adopts; siblings of the same identity, and roots, become
 * one, and so do their children in turn. Inclusive values are computed anew: from the exclusive column beside it, in a
 * tree without one from what is left of the inclusive values themselves. Costs of nodes that go are gone. In a graph a
 * node may be adopted along several paths, and the time is that of a walk from each kept node through what goes;
 * inclusive columns without an exclusive one are added up there.  err: ERR_NOT_FOUND: no node is kept */
int frame_squash(const struct frame *frame, const bool *keep, struct frame **result, struct error *err);

/* Keeps the trees whose roots have keep[root], with their values.  err: ERR_NOT_FOUND: none, ERR_UNSUPPORTED: a graph
 */
int frame_trees(const struct frame *frame, const bool *keep, struct frame **result, struct error *err);

/* Of a database, which has two trees that hold the same costs, the one that "tree" names, "code" or "data"; other
 * frames as they are.  err: ERR_MEMORY */
int frame_choose_tree(const struct frame *frame, const char *tree, struct frame **result, struct error *err);

/* The same as frame_squash for the nodes for which a condition is true (liblocus(3)), with the values of a view (NULL:
 * sums). */
int frame_filter(const struct frame *frame, const char *condition, const struct frame_view *view, struct frame **result,
                 struct error *err);

/* The nodes for which a condition is true, as above: *found [n_nodes] is malloc'ed. */
int frame_test(const struct frame *frame, const char *condition, const struct frame_view *view, bool **found,
               struct error *err);

/* Removes the values of the nodes without keep[node]; the nodes stay. Inclusive values of the others do not change. */
int frame_mask(const struct frame *frame, const bool *keep, struct frame **result, struct error *err);

/* Adds a column that an expression computes; it replaces one of the same name. */
int frame_derive(const struct frame *frame, const char *name, const char *expression, struct frame **result,
                 struct error *err);

/* Adds a column with the values [n] of nodes in profiles, in any order; it replaces one of the same name. What is not
 * there is missing, and so is NAN; several values of a node in a profile are added.  err: ERR_RANGE: a node or profile
 * that the frame does not have */
int frame_put_column(const struct frame *frame, const char *name, enum frame_sums sums, const uint32_t *nodes,
                     const uint32_t *profiles, const double *values, size_t n, struct frame **result,
                     struct error *err);

/* Adds, or computes anew, the inclusive column of every exclusive one ("x (inc)" beside "x"): in a graph every node
 * that can be reached counts once. In a graph a circle takes no more time than a single node, but what several callers
 * share is walked once for each node above it. frame_take_apart does the reverse: it computes exclusive columns from
 * inclusive ones, in trees alone.  err: ERR_UNSUPPORTED for a graph */
int frame_sum_up(const struct frame *frame, struct frame **result, struct error *err);
int frame_take_apart(const struct frame *frame, struct frame **result, struct error *err);

/* --- profiles --- */

/* Keeps the profiles for which a condition on rank, thread, process, host, name, profile is true.
 * err: ERR_NOT_FOUND: it is true of none */
int frame_choose(const struct frame *frame, const char *condition, struct frame **result, struct error *err);

/* The same, as one profile with their sums: a cross-section of one rank is frame_section(frame, "rank = 3", ...). The
 * profile is named as the condition, a single one keeps its name. */
int frame_section(const struct frame *frame, const char *condition, struct frame **result, struct error *err);

/* The profiles for which such a condition is true, for a view: *profiles [*n] in order, malloc'ed.  err: as
 * frame_choose */
int frame_find_profiles(const struct frame *frame, const char *condition, uint32_t **profiles, size_t *n,
                        struct error *err);

/* Profiles with the same rank ("rank", "thread", "process", "host"), or all ("all"), become one; view says how their
 * values become one (its profiles are not used). With sums, formulas are computed of the sums. */
int frame_aggregate(const struct frame *frame, const char *by, const struct frame_view *view, struct frame **result,
                    struct error *err);

/* --- other shapes --- */

/* A root for each value of an attribute (name, file, module, kind, or a further one), in order of the first node that
 * has it. Inclusive values are those of the outermost nodes of each group, so that recursion counts once; in a graph,
 * the sums of the exclusive column over what the group reaches. how: instead of sums, one value of all that the nodes
 * of a group have in a profile (its profiles are not used); NULL: sums. */
int frame_group_by(const struct frame *frame, const char *attribute, const struct frame_view *how,
                   struct frame **result, struct error *err);

/* The same with an edge from group to group where a node of one is the parent of one of the other. */
int frame_group_graph(const struct frame *frame, const char *attribute, const struct frame_view *how,
                      struct frame **result, struct error *err);

/* The same as frame_group_by for functions: lines, loops and calls belong to the function around them, which is one
 * wherever it was called, but another one in another module where its file is not known. */
int frame_flat(const struct frame *frame, struct frame **result, struct error *err);

/* The same for lines: instructions belong to the line that they lie in. What is neither stays as it is. */
int frame_lines(const struct frame *frame, struct frame **result, struct error *err);

/* What belongs to what: levels are names, separated by blanks, each the parts of the one before. They are attributes,
 * as above; function: the function around a node; line: of statements, calls and instructions; instruction. "module
 * file function line", "class variable function". A node without a level is in that of the level before; one without
 * any is left out. An exclusive column becomes inclusive here: a level's value is the sum of all nodes in it. Inclusive
 * ones are as in groups, and do not add up. Formulas are inherited: at each level they are computed of the level's
 * sums. err: ERR_NOT_FOUND: no node has a level */
int frame_hierarchy(const struct frame *frame, const char *levels, struct frame **result, struct error *err);

/* Functions and who calls them: an edge for each pair of functions. Functions that call each other in a circle have the
 * number of their circle, from 1, as attribute "cycle"; with is_collapsed each circle is one node "<cycle N>". Values
 * are as in a flat profile. */
int frame_callgraph(const struct frame *frame, bool is_collapsed, struct frame **result, struct error *err);

/* Upside down: the roots are functions, below them their callers, and so on, for at most max_depth levels (0: all). An
 * exclusive column becomes the cost of the root's function along these callers (inclusive: a node's callers share its
 * cost); inclusive columns are left out. In a graph a chain goes through each node's first parent that was visited
 * before it. The result has a node for each chain of callers that occurs: ERR_RANGE beyond 2^25 steps. */
int frame_bottom_up(const struct frame *frame, uint32_t max_depth, struct frame **result, struct error *err);

/* --- several frames --- */

/* Brings frames into one shape: results [n] have the nodes of all, and values where their frame had some. Roots, and
 * children of the same node, of the same identity are the same, within a frame too. Inclusive values are kept (in a
 * tree), or computed anew. */
int frame_unify(struct frame *const *frames, size_t n, struct frame **results, struct error *err);

/* One frame with the profiles of all, one frame's behind the other's; columns of the same name are one. */
int frame_union(struct frame *const *frames, size_t n, struct frame **result, struct error *err);

enum frame_arithmetic { FRAME_ADD, FRAME_SUBTRACT, FRAME_MULTIPLY, FRAME_DIVIDE };

/* a + b and so on, column by column of the same name and profile by profile: those of the same rank and thread, or
 * where one frame does not know these, or has them twice, of the same number. What is missing on one side is as nothing
 * in sums and differences (missing - b = -b), and makes products and quotients missing, as division by zero does;
 * columns of one side alone are as if missing on the other, and left out of products and quotients. A column whose
 * enum frame_sums differs between the sides becomes FRAME_PLAIN. The sum over profiles of a product or quotient
 * is that of the sums. The result has number attribute "missing": 1 where only a has the node, 2 only b. */
int frame_arithmetic(const struct frame *a, const struct frame *b, enum frame_arithmetic operation,
                     struct frame **result, struct error *err);

/* Whether both have the same nodes (by identity), edges, profiles, columns, and values that differ by at most tolerance
 * of the larger one. *difference [1024 bytes], when not NULL, says the first one. Order does not matter. err as above.
 */
int frame_equal(const struct frame *a, const struct frame *b, double tolerance, bool *is_equal, char *difference,
                struct error *err);

/* Whether both have the same nodes and edges, whatever their values. Of siblings that are alike the first is the first.
 * err: ERR_MEMORY */
int frame_equal_graph(const struct frame *a, const struct frame *b, bool *is_equal, struct error *err);

/* Brings two frames into rows that can be compared: a root for all nodes of a name and place, the file, or the module
 * where no file is known. Places are the same that are equal, or else those that end alike (in three parts of the path,
 * two, one). What is left of a name on both sides then was moved, and becomes one row; what is left on one side alone
 * stays a row for each place. results [2] have equal identities where rows are about the same. err: ERR_MEMORY */
int frame_match(const struct frame *a, const struct frame *b, struct frame **results, struct error *err);

struct frame_difference {
    uint32_t node; /* of the result */
    double before, after;
};

/* The nodes whose value in a column differs by more than threshold percent of the total before (of the roots of an
 * inclusive column, of all nodes otherwise), largest first; a node that one side does not have counts as 0 there.
 * *result has the columns "NAME before", "NAME after" and "NAME change". *found [*n_found] is malloc'ed, NULL when
 * empty. */
int frame_diff(const struct frame *before, const struct frame *after, const char *column, double threshold,
               struct frame **result, struct frame_difference **found, size_t *n_found, struct error *err);

/* --- what stands out --- */

/* From a node (FRAME_NONE: the root with the largest value) to its child with the largest value, as long as that has at
 * least `share` of its parent's; the first child that has less ends the path and belongs to it, as in Hatchet. Of
 * equal children the first; a node that is on the path already ends it. *path [*n] is malloc'ed. */
int frame_hot_path(const struct frame *frame, size_t column, const struct frame_view *view, uint32_t from, double share,
                   uint32_t **path, size_t *n, struct error *err);

/* A frame of one profile with "NAME mean", "NAME max" and "NAME imbalance" (max / mean) over the profiles, where one
 * without a value counts as enum frame_aggregate says. The text attribute "outliers" names the profiles whose values
 * are above the mean, with these values, the largest first, at most max_outliers: "rank 3: 12.5, rank 0: 11". */
int frame_imbalance(const struct frame *frame, const char *column, size_t max_outliers, struct frame **result,
                    struct error *err);

/* The profiles of a node with the largest values, at most max of them, largest first: profiles [max]. Returns how many
 * in *n. */
int frame_outliers(struct frame *frame, size_t column, uint32_t node, size_t max, uint32_t *profiles, size_t *n,
                   struct error *err);

/* --- the table --- */

/* Operations by name, for a command line. */
struct frame_operation {
    const char *name;
    size_t n_frames;      /* operands that are frames; 0: one or more */
    const char *operands; /* names of the others, separated by blanks, [] around those that may be left out */
    const char *summary;
    /* frames [n], texts [n_texts] */
    int (*run)(struct frame *const *frames, size_t n, const char *const *texts, size_t n_texts, struct frame **result,
               struct error *err);
};

/* The operations in order; *n: how many. */
const struct frame_operation *frame_operations(size_t *n);

/* How many operands a text as frame_operation.operands names, at least and at most. */
void frame_count_operands(const char *operands, size_t *n_least, size_t *n_most);

/* Runs an operation by its name.  err: ERR_NOT_FOUND with the names there are, ERR_USAGE for a wrong number of operands
 */
int frame_run(const char *name, struct frame *const *frames, size_t n, const char *const *texts, size_t n_texts,
              struct frame **result, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
