/* SPDX-License-Identifier: BSD-3-Clause */
/* Control-flow graph of one function from its machine code (x86-64): basic blocks, jumps, jump tables. Calls return
 * unless the callee is known not to; indirect jumps whose table is not found lead out of the function. Code that
 * only an exception or an unknown indirect jump reaches has no predecessor. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_CFG_H
#define LOCUS_STRUCTURE_CFG_H

#include <stdbool.h>

#include "structure/cfg-insn.h"
#include "structure/code-image.h"

#define CFG_NONE UINT32_MAX
#define CFG_INSNS_MAX (UINT32_C(1) << 22) /* of one function; the rest is left out */

struct cfg_range {
    uint64_t start, end;
};

struct cfg_block {
    uint64_t start, end;
    uint64_t last; /* its last instruction */
};

/* All zero is empty; reused from function to function, freed by cfg_fini(). */
struct cfg {
    struct cfg_insn *insns; /* [n_insns] by address */
    size_t n_insns, cap_insns;
    uint32_t *transfers; /* [n_transfers] indexes of the instructions that are calls or jumps or end something */
    size_t n_transfers, cap_transfers;
    uint32_t *block_of; /* [n_insns] */
    size_t cap_block_of;
    struct cfg_block *blocks; /* [n_blocks] by address */
    size_t n_blocks, cap_blocks;
    uint64_t *jumps; /* [n_jumps] between instructions: from << 32 | to, sorted by from */
    size_t n_jumps, cap_jumps;
    uint64_t *edges; /* [n_edges] from << 32 | to, sorted, each once */
    size_t n_edges, cap_edges;
    uint32_t *first; /* [n_blocks + 1] index of each block's first edge */
    size_t cap_first;
    uint32_t entry;        /* block */
    unsigned n_unresolved; /* indirect jumps whose targets are not known */
    unsigned n_tables;     /* jump tables found */
    size_t n_tries;        /* spent on finding them */
};

/* What the builder asks about the module. */
struct cfg_module {
    const struct code_image *image;
    const struct cfg_decoder *decoder;
    /* whether a called function does not return: callee is its address or, by_slot, that of the word with it; by_name:
     * asked for every call, so only what is quick to tell */
    bool (*never_returns)(void *context, uint64_t callee, bool by_slot, bool by_name);
    void *context;
};

/* Builds the graph of the function whose code is in ranges [n_ranges] (sorted, disjoint) and begins at entry. Without
 * any jump back in it there is nothing to be found in a graph: it has no blocks then.
 * Returns false when out of memory. */
bool cfg_build(struct cfg *cfg, const struct cfg_module *module, const struct cfg_range *ranges, size_t n_ranges,
               uint64_t entry);

/* Frees what cfg_build made, also after it failed. */
void cfg_fini(struct cfg *cfg);

/* Index of the instruction at vaddr, CFG_NONE when none begins there. */
uint32_t cfg_find_insn(const struct cfg *cfg, uint64_t vaddr);

/* The block that holds vaddr, CFG_NONE when none does. */
uint32_t cfg_find_block(const struct cfg *cfg, uint64_t vaddr);

#endif
