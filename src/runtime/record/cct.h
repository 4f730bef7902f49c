/* SPDX-License-Identifier: BSD-3-Clause */
/* Call trees in the arena: the children of a node form a splay tree, and a node's sums are a list of hits. One thread
 * owns a tree; the sample tree is changed by its signal handler only, the allocation tree by its malloc hooks only. */
#ifndef LOCUS_RUNTIME_RECORD_CCT_H
#define LOCUS_RUNTIME_RECORD_CCT_H

#include <stdbool.h>
#include <stdint.h>

#include "arena/reach.h"
#include "runtime/record/arena-writer.h"
#include "runtime/unwind/unwind.h"

/* A call tree and the cursor by which it grows. */
struct cct_tree {
    struct arena_cursor nodes, hits, places, sketches, offsets, lines, pages, reaches, meetings;
    enum arena_kind kind;          /* ARENA_NODES or ARENA_ALLOC_NODES */
    uint32_t thread;               /* reference of the owner */
    uint32_t root, partial;        /* references; partial is 0 in an allocation tree */
    uint32_t below, below_partial; /* paths are entered below these: the two, or nodes below them (sample-path.h) */
};

/* Creates the root and, if with_partial, the partial root below it. False when the arena is full. _in: the first
 * records go into chunks (arena_take_sig): CCT_CHUNKS of them with a partial root, and one less without.
 * ctx: any */
bool cct_init_sig(struct cct_tree *tree, enum arena_kind kind, uint32_t thread, bool with_partial);
bool cct_init_in_sig(struct cct_tree *tree, enum arena_kind kind, uint32_t thread, bool with_partial,
                     struct arena_cursor *chunks);
#define CCT_CHUNKS 3

/* The child of parent with this key, created when it is new; 0 when the arena is full.  ctx: owner */
uint32_t cct_child_sig(struct cct_tree *tree, uint32_t parent, uint64_t ip, uint32_t module);

/* The child of parent that says where paths below it go on: at node creator of an allocation tree, or NODE_NOWHERE
 * (NODE_CREATED); 0 when the arena is full.  ctx: owner */
uint32_t cct_created_sig(struct cct_tree *tree, uint32_t parent, uint64_t creator);

/* Inserts the path of frames (innermost first; the outermost n_reused have their node already) and returns the leaf's
 * node, 0 when the arena is full. Every frame's node is filled. A path that did not stop at UNWIND_COMPLETE goes below
 * below_partial, if the tree has a partial root.  ctx: owner */
uint32_t cct_insert_sig(struct cct_tree *tree, struct unwind_path *path);

/* The same for frame number first and those outwards of it only: returns the node of that frame, or, if first =
 * n_frames, the root that the path goes below. Frames further inwards that had no node get none (0).  ctx: owner */
uint32_t cct_insert_from_sig(struct cct_tree *tree, struct unwind_path *path, uint32_t first);

/* The key of a hit within its node. */
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

/* Adds the offset of one of the hit's samples to the offsets that it keeps.  ctx: owner */
void cct_offset_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t offset_bytes);

/* The same for a hit with a pattern: adds the place of a sample at address, with its offset (or PATTERN_NO_OFFSET), and
 * its line.  ctx: owner */
void cct_line_sig(struct cct_tree *tree, struct arena_hit *hit, uint64_t address, uint64_t offset_bytes);

/* Adds one latency, as its bin, to the owner's histogram of an event on a variable; false when the arena is full.
 * ctx: owner */
bool cct_sketch_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned bin);

#define CCT_REACH_LEAST 4 /* samples of a call path that begin a record of reach */

/* Adds a sample to the owner's record of where in a variable its samples lie. block_bytes: size of the block or symbol,
 * 0: not known. A record is begun once a call path has hit->count >= CCT_REACH_LEAST samples, so that the many
 * variables that are hardly used have none. False when the arena is full.  ctx: owner */
bool cct_reach_sig(struct cct_tree *tree, const struct arena_hit *hit, const struct reach_sample *sample,
                   uint64_t block_bytes);

/* Adds one sample on cpu to the owner's record of places, which is returned; NULL when the arena is full.  ctx: owner
 */
struct arena_place *cct_place_sig(struct cct_tree *tree, uint64_t var, uint8_t event, unsigned cpu);

/* Notes the page of a sample that was added to place, for the companion to ask on which node it is; page->place is
 * filled in. Only where the header's n_homes is not 0.  ctx: owner */
void cct_page_sig(struct cct_tree *tree, const struct arena_place *place, const struct arena_page *page);

#endif
