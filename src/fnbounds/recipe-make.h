/* SPDX-License-Identifier: BSD-3-Clause */
/* Making recipes: decodes functions of one load module and publishes their recipes in a recipe store. Ordinary code,
 * outside the profiled program (companion, linker tool, tests). */
#ifndef LOCUS_FNBOUNDS_RECIPE_MAKE_H
#define LOCUS_FNBOUNDS_RECIPE_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fnbounds/modtab.h"
#include "fnbounds/recipe.h"

#define RECIPE_VDSO "[vdso]"

/* A longer function gets no recipes. It is code without unwind tables and symbols, all of it behind the last function
 * that has them: up to 67 MiB in a web browser, whose instructions would take seconds and 2 GB. */
#define RECIPE_FUNC_BYTES_MAX (1u << 20)

/* Lays out an empty store in zeroed memory [size_bytes], 8-byte aligned, with n_slots slots (a power of two).
 * err: ERR_RANGE when the slots do not fit or a number is not usable. */
int recipe_store_init(void *memory, size_t size_bytes, uint32_t n_slots);

/* Publishes that a place of a module has no recipe and will get none, unless it has one. Nothing happens when
 * the store is full.  ctx: the store's one writer */
void recipe_store_refuse(struct recipe_store *store, uint64_t module_id, uint32_t pc);

struct recipe_maker; /* one load module, opaque */

/* Opens the code of the module that table describes, at elf_path or, for RECIPE_VDSO, the calling process's own vdso.
 * table is borrowed until recipe_maker_close(). The caller closes *maker.
 * err: ERR_IO, ERR_FORMAT not an ELF file or damaged, ERR_UNSUPPORTED not x86-64, ERR_MEMORY */
int recipe_maker_open(const struct modtab_header *table, const char *elf_path, struct recipe_maker **maker,
                      struct error *err);

/* Publishes the recipe of pc (relative to base_vaddr) in the store, unless it is there already. One writer at a time;
 * readers need no lock. Time is linear in the function's size; the maker keeps the last functions, of which further
 * places take less.
 * err: ERR_RANGE no function is there, it is longer than RECIPE_FUNC_BYTES_MAX, or the store is full; ERR_NOT_FOUND the
 * file holds no code, or no instruction begins, there; ERR_MEMORY */
int recipe_maker_place(struct recipe_maker *maker, struct recipe_store *store, uint32_t pc, struct error *err);

/* Closes the maker (NULL allowed). What it has published stays. */
void recipe_maker_close(struct recipe_maker *maker);

/* --- instructions --- */

/* Decoded machine code as the recipe rules need it: for each instruction its kind, data operands, registers read and
 * written, and those changes of general registers that can be undone. The only part that knows the disassembler is
 * recipe-insn.c. Ordinary code, outside the profiled program. */

#define INSN_NONE UINT32_MAX
#define INSN_BYTES_MAX 15

/* Bits of insn.reads and insn.writes: 0-15 general registers, then these, 32-63 vector registers. */
#define INSN_BIT(reg) (UINT64_C(1) << (reg))
#define INSN_FLAGS INSN_BIT(16)
#define INSN_X87 INSN_BIT(25)
#define INSN_GPRS UINT64_C(0xffff)
#define INSN_VECS (UINT64_C(0xffffffff) << 32)
/* What a called function may change (System V ABI): all but rbx, rsp, rbp, r12-r15. */
#define INSN_CALL_CLOBBERS (~UINT64_C(0) & ~UINT64_C(0xf038))

enum insn_kind {
    INSN_PLAIN = 0,
    INSN_NOP,
    INSN_JCC,
    INSN_JMP,          /* direct */
    INSN_JMP_INDIRECT, /* through a register or memory */
    INSN_CALL,
    INSN_RET,
    INSN_SYSCALL,
    INSN_REP,  /* repeated string operation */
    INSN_STOP, /* undecodable, ud2, hlt, int3: nothing follows it */
};

enum insn_effect_kind {
    EFFECT_NONE = 0,
    EFFECT_ADD,      /* reg = reg + source * scale + value; source may be RECIPE_NO_REG */
    EFFECT_COPY,     /* reg = source + value */
    EFFECT_SUM,      /* reg = source + other * scale + value */
    EFFECT_SCALE,    /* reg = other * scale + value */
    EFFECT_EXTEND,   /* reg = lower 32 bits of other, extended */
    EFFECT_LOAD,     /* reg = 64-bit word at the first operand */
    EFFECT_CONSTANT, /* reg = value */
    EFFECT_NARROW,   /* reg = lower 32 bits of source + value */
    EFFECT_MASK,     /* reg = reg & source */
    EFFECT_FIELD,    /* reg = the field value (recipe_field_unpack) of source */
    EFFECT_STORE     /* 64-bit word at the first operand = source */
};

/* A change of a general register that is known symbolically; every other written register is lost. */
struct insn_effect {
    uint8_t kind; /* enum insn_effect_kind */
    uint8_t reg, source, other;
    int8_t scale;
    int32_t value;
};

struct insn {
    uint32_t pc;     /* relative to base_vaddr */
    uint32_t target; /* direct branches: target pc relative to base_vaddr, else INSN_NONE */
    uint32_t table;  /* lea of a pc-relative address: that address, relative to base_vaddr, else INSN_NONE */
    uint8_t len_bytes;
    uint8_t kind; /* enum insn_kind */
    uint8_t n_operands;
    uint8_t n_effects;
    bool is_skimmed;          /* the fields up to kind are valid, the others not yet: see insn_skim() */
    bool is_pause;            /* tells the processor that the loop around it waits */
    bool is_slow;             /* computes for three cycles or more: floating point, multiplication, division */
    bool is_fusible;          /* cmp, test and the like: retires together with a conditional jump right after it */
    bool is_compare_exchange; /* fails when another thread was faster, and is then mostly tried again */
    uint64_t reads;           /* registers read as data (address registers of memory operands are not in here) */
    uint64_t writes;
    struct recipe_operand operands[2]; /* registers as before the instruction, rip = its own pc */
    struct insn_effect effects[2];
};

struct insn_decoder; /* opaque: the disassembler's state */

/* New decoder for x86-64, NULL when out of memory; closed by insn_decoder_close(). */
struct insn_decoder *insn_decoder_open(void);
void insn_decoder_close(struct insn_decoder *decoder);

/* Decodes one instruction at bytes [n_bytes, at least 1], whose address is pc. Bytes that are no instruction become an
 * INSN_STOP of one byte, so that decoding goes on. */
void insn_decode(const struct insn_decoder *decoder, const uint8_t *bytes, size_t n_bytes, uint32_t pc,
                 struct insn *out);

/* Fills in pc, target, table, len_bytes and kind as insn_decode would, and is_skimmed. Returns
 * false for the less common instructions, of which it does not know enough; *out is then undefined. */
bool insn_skim(const uint8_t *bytes, size_t n_bytes, uint32_t pc, struct insn *out);

/* Whether the instruction at code [n_bytes, its length], which insn_skim knows, may change or save rsp, rbp or rbx;
 * calls and returns do not count. False only when it does not. */
bool insn_may_move_frame(const uint8_t *code, size_t n_bytes);

/* --- flow --- */

/* Control flow of one function: its instructions in address order and, for each, where control may come from.
 * Predecessors decide which instruction a sampled pc waited for. Ordinary code, outside the profiled program. */

#define FLOW_PREDS_MAX 8
#define FLOW_MARK_BYTES 16

/* Bytes of a module in memory: [pc, pc + n_bytes), pc relative to base_vaddr; NULL when the file does not hold them. */
struct flow_image {
    const uint8_t *(*bytes)(const void *image, uint64_t pc, size_t n_bytes);
    const void *image;
};

/* A basic block. Blocks are numbered in the order of their addresses. */
struct flow_block {
    uint32_t start;      /* its first instruction */
    uint32_t first, end; /* its span in the tree of dominators, INSN_NONE: nothing is known to lead here */
    uint32_t dominator;  /* the last block that every way here comes by, INSN_NONE */
};

struct strides;

/* One function, decoded. All zero is empty; reused from function to function, freed by flow_fini(). */
struct flow {
    uint32_t start, end; /* relative to base_vaddr */
    struct insn *insns;  /* [n_insns] those that nobody has asked for with flow_insn() are skimmed */
    const struct insn_decoder *decoder;
    const uint8_t *bytes; /* [end - start] */
    size_t n_insns, capacity;
    uint32_t *marks; /* the first instruction that begins in each FLOW_MARK_BYTES of the function, or after them */
    size_t marks_capacity;
    uint32_t *first_source; /* [n_insns + 1] index into sources of the jumps to each instruction */
    size_t first_capacity;
    uint32_t *sources; /* [n_sources] index of the jump */
    size_t n_sources, sources_capacity;
    uint32_t last_indirect; /* the function's only indirect jump, INSN_NONE when there is none or several */
    uint32_t n_indirect, n_pauses, n_exchanges;
    uint32_t *block_of; /* [n_insns] number of the basic block; this and blocks by flow_find_order() */
    size_t block_of_capacity;
    struct flow_block *blocks; /* [n_blocks], and one more that starts at n_insns */
    uint32_t n_blocks;
    size_t blocks_capacity;
    struct strides *strides; /* by stride_begin(), NULL before */
};

/* Index of the instruction to go to when walking back from instruction i: round the loop at a loop head, else the one
 * before where control falls through, else the nearest jump to it; INSN_NONE when unknown. */
uint32_t flow_pred(const struct flow *flow, uint32_t i);

/* Decodes bytes [end - start] of one function and finds its branch targets, jump tables included where the table is
 * found in the image. The decoder and the bytes are borrowed until the last call of flow_insn().
 * err: none, returns false when out of memory. */
bool flow_build(struct flow *flow, const struct insn_decoder *decoder, const struct flow_image *image,
                const uint8_t *bytes, uint32_t start, uint32_t end);

/* Frees what flow_build made, also after it failed. */
void flow_fini(struct flow *flow);

/* Index of the instruction at pc (relative to base_vaddr), INSN_NONE when pc is no boundary of this function. */
uint32_t flow_find(const struct flow *flow, uint32_t pc);

/* Decodes instruction i in full. */
void flow_decode(const struct flow *flow, uint32_t i);

/* Instruction i in full. */
static inline const struct insn *flow_insn(const struct flow *flow, uint32_t i)
{
    if (flow->insns[i].is_skimmed)
        flow_decode(flow, i);
    return &flow->insns[i];
}

/* Finds the basic blocks and their order. Time is linear in the function but for a logarithm, memory is linear.
 * err: none, returns false when out of memory. */
bool flow_find_order(struct flow *flow);

/* True when every path from the function's start to a block comes by block head; also when no path is known.  Needs
 * flow_find_order(). */
bool flow_is_always_before(const struct flow *flow, uint32_t head, uint32_t block);

/* True when control can go from instruction i to i + 1. */
static inline bool flow_falls_through(const struct flow *flow, uint32_t i)
{
    switch (flow->insns[i].kind) {
    case INSN_JMP:
    case INSN_JMP_INDIRECT:
    case INSN_RET:
    case INSN_STOP:
        return false;
    default:
        return true;
    }
}

/* True when instruction i is the target of a jump inside the function. */
bool flow_is_target(const struct flow *flow, uint32_t i);

/* The instructions that may have run right before instruction i: those on the way round the innermost loop when i is
 * the head of one, else the fallthrough and all jumps. Returns their number (<= FLOW_PREDS_MAX), 0 when unknown. */
unsigned flow_preds(const struct flow *flow, uint32_t i, uint32_t preds[FLOW_PREDS_MAX]);

/* True when instruction i lies in a loop that only waits: a short one without calls in which every turn pauses
 * (PAUSE). */
bool flow_is_waiting(const struct flow *flow, uint32_t i);

/* When instruction i is the head of a loop that is entered in one way only: the instruction before the entry, and the
 * jump round its innermost loop; else INSN_NONE. */
uint32_t flow_loop_entry(const struct flow *flow, uint32_t i, uint32_t *back_edge);

/* --- guards --- */

/* Telling the first pass of a loop from the later ones at the head of the loop, where control comes from two sides: a
 * register that is set before the loop and counted in it still has its first value. Ordinary code. */

/* True at the head exactly when control came in from before the loop. */
struct recipe_guard {
    uint8_t reg;    /* counted register */
    uint8_t other;  /* register it was copied from, RECIPE_NO_REG: compare with value */
    uint32_t value; /* lower 32 bits of the first value */
};

/* Finds a guard for the loop from head to the jump back_edge, entered from instruction entry. False when no register
 * tells the two ways apart. */
bool recipe_guard_find(const struct flow *flow, uint32_t head, uint32_t back_edge, uint32_t entry,
                       struct recipe_guard *guard);

/* --- the code --- */

/* The bytes of a load module by virtual address, from its file or from the mapped vdso. Read-only; every offset of the
 * file is checked, because modules may be damaged or replaced. Ordinary code, outside the profiled program. */

struct recipe_image {
    const uint8_t *bytes; /* [n_bytes] the ELF file */
    size_t n_bytes;
    bool is_mapped; /* munmap on close */
};

/* --- rules --- */

/* The rules that turn a sampled pc into the data address of the instruction it waited for (see recipe.h for what
 * they rest on). Ordinary code, outside the profiled program. */

/* Fills *out with the recipe for samples at instruction i of the function. */
void recipe_rules_apply(const struct flow *flow, uint32_t i, struct recipe *out);

/* When instruction i is the head of a loop, control that enters the loop may wait for something other than control that
 * repeats it. Fills *out with the recipe of the entry and its guard; false when the two need not or cannot be told
 * apart. */
bool recipe_rules_entry(const struct flow *flow, uint32_t i, struct recipe *out);

/* --- strides --- */

/* How the instructions of a function walk through memory: the innermost loop around each, by how much its address moves
 * in a turn of that loop, and which others walk along with it. Ordinary code, outside the profiled program. */

/* Makes ready for a function that flow_build() has made; its loops are looked for when an instruction that may lie in
 * one is asked for. Frees nothing; what an earlier function took is used again.
 * err: none, returns false when out of memory. */
bool stride_begin(struct flow *flow);

/* The pattern (base/access-pattern.h) of instruction i's first operand, 0 where there is none. Address registers count
 * as moving when their only write in the loop adds a constant, or makes them from ones that move or stay (mov, movsxd,
 * lea, shl); a register that is loaded anew in every turn stays when nothing in the loop stores to where it is loaded
 * from. What lies beyond a fixed amount of work, in functions of very many loops, stays 0.  Needs stride_begin(). */
uint64_t stride_pattern(const struct flow *flow, uint32_t i);

/* Of an address that moves on by a register's value, which nothing in the loop changes: step and step_scale of struct
 * recipe. */
struct stride_step {
    uint8_t step;
    int8_t scale; /* 0: it moves in another way */
};

/* The step of instruction i's first operand, after stride_pattern(). The instructions of its loop that step by the same
 * register may be one access, whose loop was unrolled. */
struct stride_step stride_step(const struct flow *flow, uint32_t i);

/* Frees what stride_begin() made; flow_fini() calls it. */
void stride_end(struct flow *flow);

/* --- values --- */

/* Where an old address is now: follows the values of registers along a path of instructions and rewrites the operand
 * of an earlier instruction in terms of the registers at its end. Ordinary code, outside the profiled program. */

#define VALUE_PATH_MAX 48

/* Instructions of the function in the order of execution, as indexes. The last one ran right before the sampled pc. */
struct value_path {
    uint32_t insns[VALUE_PATH_MAX];
    unsigned n;
};

/* Writes to *out the operand insn.operands[which] of the first instruction of the path, as computed from the registers
 * at the end of the path, where the pc is pc (relative to base_vaddr). Returns false when its address is lost; a load
 * that overwrote its own base gives a proxy (RECIPE_OP_INEXACT) where the rules allow one. */
bool value_solve(const struct flow *flow, const struct value_path *path, unsigned which, uint32_t pc,
                 struct recipe_operand *out);

#endif
