/* SPDX-License-Identifier: BSD-3-Clause */
/* Control flow of one function from its machine code (x86-64): instructions, basic blocks with their jumps and jump
 * tables, loops. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_CFG_CFG_H
#define LOCUS_STRUCTURE_CFG_CFG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/elf/elf-file.h"

/* --- what control flow needs to know about one instruction --- */

/* Only cfg-insn.c knows the disassembler. */

enum cfg_insn_kind {
    CFG_PLAIN = 0,
    CFG_LEA,      /* value is the address that it loads (lea), or that of an indexed table (mov) */
    CFG_COMPARE,  /* compares with the constant value */
    CFG_CALL,     /* value is the target, 0 when not known */
    CFG_BRANCH,   /* conditional jump: value is the target */
    CFG_JUMP,     /* value is the target */
    CFG_INDIRECT, /* jump through a register or memory: value is the table's address when the operand has one, else 0 */
    CFG_RETURN,
    CFG_END /* trap, undecodable, call that does not return: nothing follows */
};

struct cfg_insn {
    uint64_t vaddr, value;
    uint8_t len_bytes, kind; /* enum cfg_insn_kind */
    bool by_slot;            /* CFG_JUMP, CFG_CALL: value is the address of the word that holds the target */
    bool is_call;            /* a call, also one that does not return */
};

struct cfg_decoder; /* opaque: the disassembler's state */

/* New decoder for x86-64, NULL when out of memory; freed by free(). */
struct cfg_decoder *cfg_decoder_new(void);

/* Decodes the instruction in bytes [n_bytes, at least 1] at vaddr. Invalid bytes become a CFG_END of one byte. */
void cfg_decode(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                struct cfg_insn *insn);

/* --- the graph of blocks and jumps --- */

/* Calls return unless the callee is known not to; indirect jumps whose table is not found lead out of the function.
 * Code that only an exception or an unknown indirect jump reaches has no predecessor. */

#define CFG_NONE UINT32_MAX
#define CFG_INSNS_MAX (UINT32_C(1) << 22) /* of one function; further ones are left out */

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

/* What cfg_build needs of the module. */
struct cfg_module {
    const struct code_image *image;
    const struct cfg_decoder *decoder;
    /* whether a called function never returns: callee is its address or, by_slot, that of the word with it; by_name:
     * asked for every call, so only the name is checked, which is quick */
    bool (*never_returns)(void *context, uint64_t callee, bool by_slot, bool by_name);
    void *context;
};

/* Builds the graph of the function whose code is in ranges [n_ranges] (sorted, disjoint) and begins at entry. Without a
 * jump back there are no loops to find: the graph has no blocks then.
 * Returns false when out of memory. */
bool cfg_build(struct cfg *cfg, const struct cfg_module *module, const struct cfg_range *ranges, size_t n_ranges,
               uint64_t entry);

/* Frees what cfg_build made, even when it failed. */
void cfg_fini(struct cfg *cfg);

/* Index of the instruction at vaddr, CFG_NONE when none begins there. */
uint32_t cfg_find_insn(const struct cfg *cfg, uint64_t vaddr);

/* --- its loops and how they are nested --- */

/* A loop is a strongly connected part; with one entry, its
 * header, it is the natural loop of that header, which dominates it; with several it is irreducible and the first of
 * them counts as its header. What remains connected without the header are the loops inside. */

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

/* True when block can be reached from the function's entry, in the graph last given to loops_find. */
bool loops_reach(const struct loops *loops, uint32_t block);

/* True when inner is outer or lies in it; CFG_NONE lies in none, and everything in CFG_NONE. */
bool loops_contain(const struct loops *loops, uint32_t outer, uint32_t inner);

/* --- private part --- */

/* cfg-usual.c: decodes the instruction in bytes [n_bytes] at vaddr if its encoding is a usual one, with the result that
 * cfg_decode_any would give. False when it is not; insn is undefined then. */
bool cfg_decode_usual(const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr, struct cfg_insn *insn);

/* cfg-insn.c: as cfg_decode, by the disassembler alone. */
void cfg_decode_any(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                    struct cfg_insn *insn);

#endif
