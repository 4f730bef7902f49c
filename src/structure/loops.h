/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of a control-flow graph and how they are nested. A loop is a strongly connected part; with one entry, its
 * header, it is the natural loop of that header, which dominates it; with several it is irreducible and the first of
 * them counts as its header. What remains connected without the header are the loops inside. Ordinary code. */
#ifndef LOCUS_STRUCTURE_LOOPS_H
#define LOCUS_STRUCTURE_LOOPS_H

#include "structure/cfg.h"

#define LOOPS_DEPTH_MAX 64 /* deeper ones belong to the one at this depth */

struct loop {
    uint32_t parent; /* index of the loop around it, CFG_NONE: none. A parent precedes its children. */
    uint32_t header; /* block */
    uint32_t depth;  /* 0: outermost */
    bool is_irreducible;
};

/* All zero is empty; reused from graph to graph, freed by loops_fini(). */
struct loops {
    struct loop *items; /* [n] */
    size_t n, capacity;
    uint32_t *loop_of; /* [n_blocks] the innermost loop of each block, CFG_NONE: none */
    size_t cap_loop_of;
    uint32_t *scratch; /* [7 n_blocks], first the ranks of the blocks that are reached */
    size_t cap_scratch;
};

/* Finds the loops of cfg. Returns false when out of memory. */
bool loops_find(struct loops *loops, const struct cfg *cfg);

/* Frees what loops_find made. */
void loops_fini(struct loops *loops);

/* True when the function's entry leads to block, by the graph that loops_find was last given. */
bool loops_reach(const struct loops *loops, uint32_t block);

/* True when inner is outer or lies in it; CFG_NONE lies in none, and everything in CFG_NONE. */
bool loops_contain(const struct loops *loops, uint32_t outer, uint32_t inner);

#endif
