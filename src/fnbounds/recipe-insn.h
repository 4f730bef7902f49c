/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoded machine code as the recipe rules need it: for each instruction its kind, data operands, registers read and
 * written, and those changes of general registers that can be undone. The only part that knows the disassembler is
 * recipe-insn.c. Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_INSN_H
#define LOCUS_FNBOUNDS_RECIPE_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fnbounds/recipe.h"

#define INSN_NONE UINT32_MAX

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
    EFFECT_ADD,    /* reg = reg + source * scale + value; source may be RECIPE_NO_REG */
    EFFECT_COPY,   /* reg = source + value */
    EFFECT_SUM,    /* reg = source + other * scale + value */
    EFFECT_SCALE,  /* reg = other * scale + value */
    EFFECT_EXTEND, /* reg = lower 32 bits of other, extended */
    EFFECT_LOAD,   /* reg = 64-bit word at the first operand */
    EFFECT_CONSTANT, /* reg = value */
    EFFECT_NARROW,   /* reg = lower 32 bits of source + value */
    EFFECT_MASK,     /* reg = reg & source */
    EFFECT_STORE   /* 64-bit word at the first operand = source */
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
    uint32_t pred;   /* index of the predecessor to follow when walking back, INSN_NONE when unknown (see flow) */
    uint32_t table;  /* lea of a pc-relative address: that address, relative to base_vaddr, else INSN_NONE */
    uint8_t len_bytes;
    uint8_t kind; /* enum insn_kind */
    uint8_t n_operands;
    uint8_t n_effects;
    bool is_pause;   /* tells the processor that the loop around it waits */
    bool is_slow;    /* computes for three cycles or more: floating point, multiplication, division */
    bool is_fusible; /* cmp, test and the like: retires together with a conditional jump right after it */
    uint64_t reads;  /* registers read as data (address registers of memory operands are not in here) */
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

#endif
