/* SPDX-License-Identifier: BSD-3-Clause */
/* From the merged tree of addresses to the source-level tree and its variables. Ordinary code.
 *
 * The room: build.c makes one pass over the merged tree and may call all others: symbolize.c (code), scopes.c (the
 * source-level tree), placeholders.c, variables.c with frame-parts.c and heap-*.c (names of data), causes.c, nests.c
 * and waits.c (what its time went into). */
#ifndef LOCUS_ANALYSIS_BUILD_BUILD_H
#define LOCUS_ANALYSIS_BUILD_BUILD_H

#include "analysis/build/causes.h"
#include "analysis/build/symbolize.h"
#include "analysis/load/ingest.h"
#include "structure/names/source-text.h"

/* What all side files say about a node of the merged tree before its variable is made. Sorted by node when building. */
struct side_row {
    bool is_short; /* part of it is missing: out of memory */
    uint32_t node; /* while side files are read: id in the store; then: merged tree */
    uint32_t kind; /* enum var_kind of arena/arena.h */
    uint32_t name; /* string id, 0 = none */
    uint64_t n_blocks, bytes, n_blocks_freed, bytes_freed, max_block_bytes, n_inexact;
    uint64_t min_small_bytes, max_small_bytes; /* as in struct objects_variable */
    uint64_t most_bytes;                       /* the most that one side file gives, while bytes is the sum */
    uint64_t n_blocks_marked, bytes_marked;
    struct side_place {
        uint32_t metric, numa_node;
        uint64_t count;
    } * places; /* [n_places] owned */
    size_t n_places, cap_places;
    int64_t *stack_offsets; /* [n_stack_offsets][2] distance below the CFA, samples; by distance; owned */
    size_t n_stack_offsets, cap_stack_offsets;
    struct side_samples {
        uint32_t metric;
        uint64_t count;
    } * samples; /* [n_samples] owned */
    size_t n_samples, cap_samples;
    struct variable_latency *latencies; /* [n_latencies] owned */
    size_t n_latencies, cap_latencies;
};

struct side_rows {
    struct side_row *rows; /* [n] */
    size_t n, capacity;
};

struct prior_database;
struct value_splits;
struct typed_node;

struct build {
    struct model *model;
    struct raw_tree *tree;
    struct symbolizer *symbolizer;
    struct source_text *source;
    struct side_rows *sides;
    struct access_table *accesses;
    struct cause_table *causes;
    struct scope_builder builder;
    struct strtab keys; /* of variables; index = variable */
    const struct prior_database *prior;
    bool keeps_instructions;  /* below the statements of code that lies in files */
    bool shows_interpreter;   /* frames of Python's interpreter, too */
    struct typed_node *typed; /* [n_typed] types from the allocation sites of heap nodes, by node */
    size_t n_typed, cap_typed;
    uint8_t *elided; /* [n_nodes] start-up frames that <program root> or <thread root> stands for */
    struct called_from {
        uint32_t scope;   /* 0: it would not stand elsewhere */
        bool is_parallel; /* the node is such a library's code, or the profiler's called by it */
    } * called_from;      /* [n_nodes] where code stands that a library for parallel work calls back */
    uint8_t *hidden;      /* [n_nodes] frames of Python's interpreter that the frames of Python stand for */
};

/* Scopes [n_nodes] of the nodes of the tree, freed by the caller: the scope that a node's own values belong to, and the
 * one in which a thread is whose trace refers to the node (0: none). */
struct build_scopes {
    uint32_t *own, *traced;
    uint32_t *prior;             /* [prior->n_scopes] new numbers of the scopes that were there before */
    struct value_splits *splits; /* receives how the nodes' values are split */
};

/* Makes scopes and variables. sides are sorted here.  err: ERR_MEMORY */
int build_model(struct build *build, struct build_scopes *scopes, struct error *err);

/* Computes inclusive values and the value of one sample, once own has the sums of all threads.  err: ERR_MEMORY */
int build_sums(struct model *model, struct error *err);

struct code_frame;
/* build.c: the scope of a call in a module below parent, at the innermost frame there. Where instructions are kept,
 * each call instruction has its own. vaddr: return address - 1 */
uint32_t build_add_call(struct build *build, uint32_t module, uint32_t parent, const struct code_frame *frame,
                        uint64_t vaddr);

/* variables.c: the row of a variable node (role ROLE_VARIABLE or ROLE_REASON) and its scope below parent. Sets
 * node->variable. Returns the scope. */
uint32_t variables_add(struct build *build, uint32_t node, uint32_t parent);

/* variables.c: row for samples below <unknown attribute> without a variable of their own. */
uint32_t variables_add_unknown(struct build *build, uint32_t parent);

/* variables.c: turns the accesses of all variables into fields, once all variables have been made. */
void fields_apply(struct build *build);

/* nests.c: counts the samples at accesses whose loops are in the wrong order, once the causes have been applied. */
void nests_apply(struct build *build);

struct path_frame;
struct heap_name;
/* frame-parts.c: splits the variable that stands for the stack frame of a node into the locals that its samples lie in;
 * true when all, or nearly all, lie in one local, which the variable then becomes. */
bool frame_parts_collect(struct build *build, uint32_t node, struct symbols *symbols, struct variable *proto);

/* frame-parts.c: adds the parts of the same frame elsewhere; shares are then those of the samples of both. If the lines
 * of either are not known, the variable keeps its own. */
void frame_parts_merge(struct variable *variable, const struct variable *other);

/* A local variable and a place in it. */
struct frame_spot {
    struct variable_part part; /* without element size and fraction */
    uint32_t type;             /* id in the symbols of the node's module */
    uint64_t offset_bytes;     /* UINT64_MAX: not known */
    uint64_t slack_bytes;      /* the offset may be larger by a multiple of 16 up to that */
};

/* frame-parts.c: the local for a sample of the frame of a node at this distance below its CFA; false when none is known
 * there. access: the code that took it. */
bool frame_parts_find(struct build *build, uint32_t node, const struct node_access *access, uint64_t distance_bytes,
                      struct frame_spot *spot);

/* variables.c: first of the side rows [*n] of a node; NULL when there are none. */
const struct side_row *variables_side(const struct build *build, uint32_t node, size_t *n);

/* variables.c: adds the side rows to the variables. */
void variables_apply_sides(struct build *build);

#endif
