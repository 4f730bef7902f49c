/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries: patterns of paths from callers to callees. The answer is the set of all nodes on a path that matches; paths
 * begin and end anywhere. Two forms say the same:
 *
 *     ["*", {"name": "MPI_.*", "time": "> 5"}, [2, {"depth": "< 9"}], "+"]
 *     MATCH ("*")->(p)->(2, q)->("+") WHERE p."name" =~ "MPI_.*" AND p."time" > 5 AND q."depth" < 9
 *
 * An element is a quantifier, a condition, or both: "." one node, "*" none or more, "+" one or more, k this many nodes;
 * each of them fulfills the condition.
 *
 * Conditions of the object form: for a text a regular expression of the whole text; for a number a number, or a text of
 * < > <= >= == != and a number, nan or inf; null: missing; a list: all of its conditions; {"any": condition} and "all":
 * of any or all profiles (those without a value have cost 0); {"sum": condition} and "mean", "min", "max", "std",
 * "count": of this aggregate; {"at least": [k, condition]}: of at least k profiles. Those of an object are joined by
 * "and". Names are columns, then what liblocus(3) names. Sets: {"and": [q, ...]}, "or", "xor" (intersection, union,
 * symdifference), {"not": q}. Conditions of the text form: see liblocus(3); =~ matches at the start; p IS [NOT] LEAF.
 * Conditions on several parts are joined by AND; those on one part may be joined by anything. Sets: {MATCH ...} AND
 * {MATCH ...}, OR, XOR, NOT, (...); NOT binds strongest, then AND, XOR, OR.
 *
 * An automaton does it in O(nodes x states), states being the nodes that the pattern speaks of. In a graph a path may
 * go through a node again.
 *
 * What differs from Hatchet 1.4.0:
 * - "*" does not end at the first node that the next element matches: ["*" after main, then x] finds every x.
 * - "+" is one or more nodes: a leaf counts. [0] finds nothing, instead of crashing.
 * - Two "*" side by side are one, as there, but each with its own condition.
 * - A name that nobody knows is an error with the names there are, not a condition that is never true.
 * - Conditions are not run as Python; "<>" is "!=". != nan is "not missing"; a missing number fulfills no other
 * condition, nor does its negation.
 * - A text that is not known is "", and IS NONE of it is true; it is no error.
 * - With several profiles, conditions on numbers see the sums (or the view) where Hatchet raises an error.
 * - WHERE may be left out. There are parentheses. OR between conditions on two parts of a pattern is an error, as
 * Hatchet would read it as something else; write two queries joined by OR.
 *
 * Ordinary code. */
#ifndef LOCUS_FRAME_QUERY_H
#define LOCUS_FRAME_QUERY_H

#include "frame/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Finds the nodes that a query names, in either form, with the values of a view (NULL: the sums). *found [n_nodes] is
 * malloc'ed.  err: ERR_USAGE with the place of what is wrong, ERR_NOT_FOUND for an unknown name, and as frame_values */
int query_run(const struct frame *frame, const char *text, const struct frame_view *view, bool **found,
              struct error *err);

/* A path that matches, from caller to callee: nodes[first]... */
struct query_path {
    size_t first, n;
};

/* All zero is empty. */
struct query_paths {
    uint32_t *nodes; /* [n_nodes] */
    size_t n_nodes, cap_nodes;
    struct query_path *items; /* [n] */
    size_t n, cap_items;
    bool is_cut; /* there are more */
};

/* Finds the paths that a query matches, which is one pattern, no set: at most max of them, in pre-order of their first
 * nodes, each before those that it is the beginning of. is_longest: those that go on to another match are left out. In
 * a graph a path has each node once here. Very long or very many paths are cut short (2^25 nodes in all, or steps to
 * find them). *paths must be empty; query_paths_fini frees it.  err: as query_run */
int query_paths(const struct frame *frame, const char *text, const struct frame_view *view, size_t max, bool is_longest,
                struct query_paths *paths, struct error *err);
void query_paths_fini(struct query_paths *paths);

/* How a query names nodes. */
enum query_by {
    QUERY_BY_PATH, /* by what the nodes on the way to them are called: finds them in another measurement, too */
    QUERY_BY_NODE  /* by their numbers, in this frame alone */
};

/* Writes a query that finds the nodes [n], in any order, and no others. By path, a node that another one is like (of
 * the same name, kind and place below the same callers) is named by its number, as is what lies deeper than 1000 nodes
 * or has several ways to it; more than 100 nodes are all named by number. *text is malloc'ed. err: ERR_RANGE (no nodes,
 * or numbers beyond those of the frame), ERR_MEMORY, and as query_run */
int query_select(const struct frame *frame, const uint32_t *nodes, size_t n, enum query_by by, char **text,
                 struct error *err);

#ifdef __cplusplus
}
#endif

#endif
