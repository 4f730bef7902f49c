/* SPDX-License-Identifier: BSD-3-Clause */
/* Call paths as other tools have them: the tree of a frame in which lines, calls and instructions belong to the
 * function or loop around them, and siblings of the same identity are one. The tree of data in a database repeats the
 * costs of the code; it is left out where there is another one. Ordinary code; for the forms of this folder. */
#ifndef LOCUS_EXPORT_FRAMES_STACKS_H
#define LOCUS_EXPORT_FRAMES_STACKS_H

#include "export/frames/forms.h"

struct stack {
    uint32_t node;      /* of the frame: the first of those that it stands for */
    uint32_t parent;    /* FRAME_NONE: none */
    uint32_t end;       /* the first one behind its subtree */
    double self, total; /* its own cost; with that of all below */
};

/* All zero is empty. */
struct stacks {
    struct stack *items; /* [n] in pre-order */
    uint32_t n;
    uint32_t *of;  /* [n_nodes] the item that has the cost of each node of the frame; FRAME_NONE: none has */
    size_t column; /* of the nodes' own costs; SIZE_MAX: they are differences of inclusive ones */
    double total;  /* of all roots */
    bool is_whole; /* all costs are whole numbers */
};

/* The call paths with costs in the job's column and view. An inclusive column stands for the exclusive one beside it;
 * costs below zero count as zero. Items without a cost, or below job->min_percent, are left out: their cost is that of
 * the item above them.
 * err: ERR_UNSUPPORTED (no tree, or a column that does not add up), ERR_NOT_FOUND (no costs), errors of frame_values */
int stacks_make(const struct frame_job *job, struct stacks *stacks, struct error *err);

/* Frees what stacks_make has made, also after it has failed. */
void stacks_fini(struct stacks *stacks);

/* A cost of an item. */
struct stack_cost {
    uint32_t item;
    double value;
};

/* All items with a cost of their own: [*n], ascending, malloc'ed.  err: ERR_MEMORY */
int stacks_costs(const struct stacks *stacks, struct stack_cost **costs, size_t *n, struct error *err);

/* The same for each profile of the job's view: those of profile i are costs[starts[i]] up to starts[i + 1]. Both are
 * malloc'ed. *costs is NULL where profiles cannot be told apart: there is one, the view does not add up, or there are
 * only inclusive costs.  err: errors of frame_cells */
int stacks_costs_by_profile(const struct frame_job *job, const struct stacks *stacks, struct stack_cost **costs,
                            size_t **starts, struct error *err);

/* When items begin and end where costs are spent one after the other, in the order of the items: an item's own cost,
 * then what is below. Items of which no part has a cost are not there. */
struct stack_span {
    uint32_t item;
    double start, end;
};

/* The spans of n costs, in the order in which they begin: [*n_spans], malloc'ed.  err: ERR_MEMORY */
int stacks_spans(const struct stacks *stacks, const struct stack_cost *costs, size_t n, struct stack_span **spans,
                 size_t *n_spans, struct error *err);

/* Fails when whole paths of all items with a cost come to so many frames that nobody could use them: a form that
 * repeats each path grows with depth times paths.  err: ERR_RANGE */
int stacks_check_length(const struct stacks *stacks, struct error *err);

/* --- what forms have in common --- */

/* Whether a form that shows several columns shows this one: all that are not hidden, or what the user has named and the
 * same costs summed the other way. */
bool stacks_shows(const struct frame_job *job, size_t column);

/* The nodes [n_nodes] of the tree of data, malloc'ed: those below a root "<datacentric>". *has_code: whether there are
 * others as well. NULL when out of memory. */
bool *stacks_data_nodes(const struct frame *frame, bool *has_code);

/* Whether a node is a place within the function or loop around it: a line, a call, an instruction. */
bool stacks_is_place(const struct frame *frame, uint32_t node);

/* The number of a node in an attribute of addresses, or of lines; 0: none is known. offset: SIZE_MAX: there is none */
uint64_t stacks_address(const struct frame *frame, size_t offset, uint32_t node);

/* The lowest address below each node of a tree in the same machine code: malloc'ed, NULL when out of memory. */
uint64_t *stacks_lowest(const struct frame *frame, size_t offset);

/* A name, "?" where there is none (NULL or empty); control characters and bytes that are not UTF-8 are \xNN. */
void stacks_put_name(struct buf *out, const char *name);

/* Appends a name as stacks_put_name, at most max characters of it and an ellipsis where more follow. put: appends one
 * character of len_bytes bytes in the way of the format; the text goes on behind it. */
void stacks_put_cut(struct buf *out, const char *name, size_t max,
                    void (*put)(struct buf *out, const char *at, size_t len_bytes));

/* How a column's values become whole numbers, for formats that know no others: value * factor, rounded. factor is 1
 * where all are whole, otherwise the power of ten that keeps nine digits of their sum. */
double stacks_scale(const double *values, size_t n);

/* What a column counts, as far as its name says: "seconds", "microseconds", "bytes" or "count". "time" is seconds in
 * databases; whole numbers, as a literal may have them, are only counts. */
const char *stacks_unit(const char *column, bool is_whole);

#endif
