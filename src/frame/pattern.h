/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns: what a query says of the nodes of a path, one after the other. query.c makes them from text. Ordinary code;
 * for the files of this folder. */
#ifndef LOCUS_FRAME_PATTERN_H
#define LOCUS_FRAME_PATTERN_H

#include "frame/formula.h"
#include "frame/query.h"

#define PATTERN_MAX_STATES 4096

/* A node that the pattern speaks of. */
struct pattern_state {
    bool is_star;
    size_t element;
};

/* An element with its conditions, all of which must be true. */
struct pattern_element {
    char *variable; /* NULL: none */
    struct formula **conditions;
    size_t n_conditions, cap_conditions;
    bool *is_true; /* [n_nodes] of all conditions; NULL: there are none */
};

/* All zero is empty. */
struct pattern {
    struct pattern_state *states;
    size_t n_states, cap_states;
    struct pattern_element *elements;
    size_t n_elements, cap_elements;
};

/* Adds an element: quantifier is '.', '*', '+', or 0 for `times` nodes.  err: ERR_USAGE (too many), ERR_MEMORY */
int pattern_add(struct pattern *pattern, char quantifier, uint64_t times, struct error *err);

/* Gives an element one more condition, which it takes over, also on failure.  err: ERR_MEMORY */
int pattern_add_condition(struct pattern_element *element, struct formula *condition, struct error *err);

/* The nodes of a frame on paths that match, with the values of a view. *found [n_nodes] is malloc'ed.  err: as
 * frame_values */
int pattern_run(struct pattern *pattern, const struct frame *frame, const struct frame_view *view, bool **found,
                struct error *err);

/* The paths themselves, added to *paths, as query_paths has them. */
int pattern_paths(struct pattern *pattern, const struct frame *frame, const struct frame_view *view, size_t max,
                  bool is_longest, struct query_paths *paths, struct error *err);

/* Frees what the pattern holds. */
void pattern_fini(struct pattern *pattern);

#endif
