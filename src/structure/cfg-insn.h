/* SPDX-License-Identifier: BSD-3-Clause */
/* What control flow needs to know of one x86-64 instruction. The only part of the flow graph that knows the
 * disassembler is cfg-insn.c. Ordinary code. */
#ifndef LOCUS_STRUCTURE_CFG_INSN_H
#define LOCUS_STRUCTURE_CFG_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cfg_insn_kind {
    CFG_PLAIN = 0,
    CFG_LEA,      /* value is an address that it loads (lea) or that an indexed table has (mov) */
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
    bool is_call;            /* a call, also of what does not return */
};

struct cfg_decoder; /* opaque: the disassembler's state */

/* New decoder for x86-64, NULL when out of memory; freed by free(). */
struct cfg_decoder *cfg_decoder_new(void);

/* Decodes the instruction in bytes [n_bytes, at least 1] at vaddr. Bytes that are none become a CFG_END of one byte. */
void cfg_decode(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                struct cfg_insn *insn);

#endif
