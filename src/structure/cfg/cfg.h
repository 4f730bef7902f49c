/* SPDX-License-Identifier: BSD-3-Clause */
/* Control flow of one function from its machine code (x86-64): instructions, basic blocks with their jumps and jump
 * tables, loops. Ordinary code, untrusted input. */
#ifndef LOCUS_STRUCTURE_CFG_CFG_H
#define LOCUS_STRUCTURE_CFG_CFG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/elf/elf-file.h"
#include "structure/elf/symbols.h"

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

/* --- what an instruction makes of registers and of words in memory, as far as sums and products go --- */

#define CFG_RSP 4
#define CFG_RBP 5
#define CFG_RIP 16       /* its value is part of disp */
#define CFG_MEMORY 0xfe  /* the word at the memory operand */
#define CFG_NOWHERE 0xff /* no place, or none that is known */
/* What a called function may change (System V ABI): all but rbx, rsp, rbp, r12-r15. */
#define CFG_CALL_WRITES 0x0fc7u

/* Registers have the numbers of the x86 encoding. An index that wraps is out of bounds anyway: 32-bit sums count as
 * 64-bit ones. */
struct cfg_effect {
    bool is_known;    /* to = a + b * scale + value; or, is_product, a * b */
    bool is_product;  /* ... */
    bool is_equality; /* a conditional jump that tests for equality */
    bool is_tested;   /* the sum decides a conditional jump right behind it */
    uint8_t to, a, b; /* register, CFG_MEMORY, CFG_NOWHERE: of a and b, 0; of to, only flags are set */
    int64_t scale, value;
    uint16_t writes;     /* other registers that change, a bit each */
    uint16_t reads;      /* registers that the instruction uses */
    uint8_t base, index; /* memory operand: CFG_NOWHERE, register; or base CFG_RIP */
    uint8_t index_scale;
    uint16_t size_bytes; /* 0: there is none */
    int64_t disp;
    bool is_read, is_written;
    bool is_scattered; /* the address is more than that: lanes of a vector, thread-local storage */
};

/* Decodes the effect of one instruction in bytes [n_bytes, at least 1] at vaddr. Of invalid bytes there is none. */
void cfg_decode_effect(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                       struct cfg_effect *effect);

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

/* --- how a nest of loops walks through memory --- */

/* Of each access in a loop that lies in others: how far its address moves in a turn of each of these. Where the
 * innermost loop moves by cache lines and one around it by less, the loops are in the wrong order. */

#define NEST_LEVELS_MAX 5
#define NEST_NO_GROUP 0xff

enum nest_move {
    NEST_CONSTANT = 0, /* by so many bytes */
    NEST_VARIED,       /* by a value that stays in the loop, such as the width of a matrix */
    NEST_ROWS,         /* to where another pointer leads, which is loaded from the next place */
    NEST_UNKNOWN
};

struct nest_access {
    uint64_t vaddr; /* of the instruction */
    uint32_t loop;  /* the innermost one, index into struct loops */
    uint8_t n_levels, group;
    uint8_t kinds[NEST_LEVELS_MAX]; /* [n_levels] enum nest_move, from the innermost loop on; 0: nothing is known */
    int64_t bytes[NEST_LEVELS_MAX]; /* of NEST_CONSTANT: from one place that the loop visits to the next, at least 0 */
    bool is_far;                    /* steps that the verdict would make smaller */
};

/* NEST_SWAP: the loop outer, as the innermost one, would need fewer cache lines for all accesses of the loop together.
 * NEST_TILE: for some of them only, as in a transposition. Walks whose lines stay in the first-level cache, as in a
 * tile, are fine. NEST_VARIED and NEST_ROWS count as a line and more. */
enum nest_verdict { NEST_FINE = 0, NEST_SWAP, NEST_TILE };

struct nest {
    uint8_t verdict; /* enum nest_verdict */
    uint8_t level;   /* of outer: 1 is right around the loop */
    uint32_t outer;
};

/* All zero is empty. */
struct nests {
    struct nest_access *accesses; /* [n_accesses] by address */
    size_t n_accesses, cap_accesses;
    struct nest *of_loop; /* [n_loops] */
    size_t n_loops;
};

/* Fills *nests from a function's graph and its loops. The time that it takes is bounded; of what lies beyond, nothing
 * is known. The caller frees it with nests_fini. False when out of memory. */
bool nests_find(struct nests *nests, const struct cfg *cfg, const struct loops *loops, const struct code_image *image,
                const struct cfg_decoder *decoder);

/* Frees everything and makes it empty. */
void nests_fini(struct nests *nests);

/* --- functions that never return --- */

/* A function never returns if it has one of the well-known names, such as abort, or if no path through its code leads
 * to a return. Without this the code after a call of abort() would seem to continue the code before it. */

struct returns;

/* The name of the function that begins at vaddr, NULL when there is none. */
typedef const char *returns_name(void *context, uint64_t vaddr);

/* elf: the module, for the names of imported functions; everything is borrowed. NULL when out of memory. */
struct returns *returns_new(struct Elf *elf, const struct code_image *image, const struct cfg_decoder *decoder,
                            returns_name *name, void *context);
void returns_free(struct returns *returns);

/* True when the function at callee (by_slot: the function whose address is in the word at callee) is known not to
 * return. by_name: only its name is checked, which is quick. */
bool returns_never(struct returns *returns, uint64_t callee, bool by_slot, bool by_name);

/* --- the order of the calls on one line of source, where the code leaves no doubt --- */

/* Fortran's "allocate (a(n), b(n), c(n))" calls malloc once for each. */

/* Takes the call that returns to return_vaddr and counts the calls of the same callee on its line of the function;
 * *rank gets its place among them, from 0, in the order in which they are made. Returns 0 when they are not made one
 * after the other on all paths through the function, or when that is not known. */
size_t call_order_find(struct symbols *symbols, uint64_t return_vaddr, size_t *rank);

/* How many bytes the call instruction has that returns to return_vaddr; 0: none is known there. */
unsigned call_bytes(struct symbols *symbols, uint64_t return_vaddr);

/* --- private part --- */

/* cfg-usual.c: decodes the instruction in bytes [n_bytes] at vaddr if its encoding is a usual one, with the result that
 * cfg_decode_any would give. False when it is not; insn is undefined then. */
bool cfg_decode_usual(const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr, struct cfg_insn *insn);

/* cfg-insn.c: as cfg_decode, by the disassembler alone. */
void cfg_decode_any(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                    struct cfg_insn *insn);

#endif
