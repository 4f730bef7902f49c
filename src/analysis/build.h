/* SPDX-License-Identifier: BSD-3-Clause */
/* From the merged tree of addresses to the source-level tree and its variables. Ordinary code. */
#ifndef LOCUS_ANALYSIS_BUILD_H
#define LOCUS_ANALYSIS_BUILD_H

#include "analysis/rawtree.h"
#include "analysis/scopes.h"
#include "structure/source-text.h"

/* What all side files tell of a node of the merged tree before its variable is made. Sorted by node when building. */
struct side_row {
    uint32_t node; /* while side files are read: id in the store; then: merged tree */
    uint32_t kind; /* enum var_kind of fmt/arena.h */
    uint32_t name; /* string id, 0 = none */
    uint64_t n_blocks, bytes, n_blocks_freed, bytes_freed, max_block_bytes, n_inexact;
    uint64_t most_bytes; /* that one side file tells, while bytes is the sum */
    uint64_t n_blocks_marked, bytes_marked;
    struct side_place {
        uint32_t metric, numa_node;
        uint64_t count;
    } *places; /* [n_places] owned */
    size_t n_places, cap_places;
    int64_t *stack_offsets; /* [n_stack_offsets][2] distance below the CFA, samples; by distance; owned */
    size_t n_stack_offsets, cap_stack_offsets;
    struct side_samples {
        uint32_t metric;
        uint64_t count;
    } *samples; /* [n_samples] owned */
    size_t n_samples, cap_samples;
    struct variable_latency *latencies; /* [n_latencies] owned */
    size_t n_latencies, cap_latencies;
};

struct side_rows {
    struct side_row *rows; /* [n] */
    size_t n, capacity;
};

struct older;

struct build {
    struct model *model;
    struct raw_tree *tree;
    struct symbolizer *symbolizer;
    struct source_text *source;
    struct side_rows *sides;
    struct scope_builder builder;
    struct strtab keys; /* of variables; index = variable */
    const struct older *older;
    uint8_t *elided;    /* [n_nodes] start-up frames that <program root> or <thread root> stands for */
};

/* Scopes [n_nodes] of the nodes of the tree, freed by the caller: what their own values belong to, and where a thread
 * is whose trace refers to them (0: nowhere). */
struct build_leaves {
    uint32_t *own, *traced;
    uint32_t *older; /* [older->n_scopes] what the numbers of the scopes that were there became */
};

/* Makes scopes and variables. sides are sorted here.  err: ERR_MEMORY */
int build_model(struct build *build, struct build_leaves *leaves, struct error *err);

/* When own has the sums of all threads: inclusive values, and what one sample is worth.  err: ERR_MEMORY */
int build_sums(struct model *model, struct error *err);

/* variables.c: the row of a variable node (role ROLE_VARIABLE or ROLE_REASON) and its scope below parent. Sets
 * node->variable. Returns the scope. */
uint32_t variables_add(struct build *build, uint32_t node, uint32_t parent);

/* variables.c: row for what has no variable of its own below <unknown attribute>. */
uint32_t variables_add_unknown(struct build *build, uint32_t parent);

/* variables.c: adds the side rows to the variables. */
void variables_apply_sides(struct build *build);

#endif
