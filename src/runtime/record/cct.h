/* SPDX-License-Identifier: BSD-3-Clause */
/* Call trees in the arena: children of a node form a splay tree, sums hang on the nodes as hits. One thread owns a
 * tree; the sample tree is changed by its signal handler only, the allocation tree by its malloc hooks only. */
#ifndef LOCUS_RUNTIME_RECORD_CCT_H
#define LOCUS_RUNTIME_RECORD_CCT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/arena-writer.h"
#include "runtime/unwind/unwind.h"

/* A tree and where it grows. */
struct cct_tree {
    struct arena_cursor nodes, hits, places, sketches, offsets, lines;
    enum arena_kind kind;          /* ARENA_NODES or ARENA_ALLOC_NODES */
    uint32_t thread;               /* reference of the owner */
    uint32_t root, partial;        /* references; partial is 0 in an allocation tree */
    uint32_t below, below_partial; /* what paths hang below: these two, or nodes below them (sample-path.h) */
};

/* Creates the root (and, with_partial, the partial root below it). False when the arena is full.  ctx: any */
bool cct_init_sig(struct cct_tree *tree, enum arena_kind kind, uint32_t thread, bool with_partial);

/* The child of parent with this key, created when it is new; 0 when the arena is full.  ctx: owner */
uint32_t cct_child_sig(struct cct_tree *tree, uint32_t parent, uint64_t ip, uint32_t module);

/* Inserts the path of frames (innermost first; the outermost n_reused have their node already) and returns the leaf's
 * node, 0 when the arena is full. Every frame's node is filled. A path that did not stop at UNWIND_COMPLETE hangs below
 * below_partial, when the tree has a partial root.  ctx: owner */
uint32_t cct_insert_sig(struct cct_tree *tree, struct unwind_path *path);

/* The same for the frames from number first outwards alone: returns the node of that frame; with first = n_frames the
 * root that the path hangs below. Frames further inside that had no node get none (0).  ctx: owner */
uint32_t cct_insert_from_sig(struct cct_tree *tree, struct unwind_path *path, uint32_t first);

/* What a hit is keyed by, besides its node. */
struct cct_key {
    uint64_t var;
    uint8_t event, class;
    uint16_t flags;
    uint32_t metrics;
    uint64_t pattern;
};

/* Adds count and weight to the node's hit with this key, creating it; NULL when the arena is full.  ctx: owner */
struct arena_hit *cct_hit_sig(struct cct_tree *tree, uint32_t node, const struct cct_key *key, uint64_t count,
                              uint64_t weight);

/* Adds the offset of one of the hit's samples to those it keeps.  ctx: owner */
void cct_offset_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t offset_bytes);

/* The same for a hit with a pattern: adds the place of a sample at address, with its offset (or PATTERN_NO_OFFSET), and
 * its line.  ctx: owner */
void cct_line_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t address, uint64_t offset_bytes);

/* Adds one latency, by its bin, to the owner's histogram of an event on a variable; false when the arena is full.
 * ctx: owner */
bool cct_sketch_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned bin);

/* Adds one sample on cpu to the owner's record of places; false when the arena is full.  ctx: owner */
bool cct_place_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned cpu);

#endif
