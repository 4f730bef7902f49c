/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the cfg*.c files. */
#ifndef LOCUS_STRUCTURE_CFG_INTERNAL_H
#define LOCUS_STRUCTURE_CFG_INTERNAL_H

#include "structure/cfg.h"

/* The targets of a jump table: indexes of instructions. */
struct cfg_targets {
    uint32_t *items; /* [n] */
    size_t n, capacity;
};

/* Finds the table of the indirect jump insns[jump] and fills targets; none found: n is 0.
 * Returns false when out of memory. */
bool cfg_table_find(struct cfg *cfg, const struct code_image *image, uint32_t jump, struct cfg_targets *targets);

/* cfg-usual.c: decodes the instruction in bytes [n_bytes] at vaddr when its encoding is a usual one: fills in what
 * cfg_decode_any would. False when that has to be asked; insn is undefined then. */
bool cfg_decode_usual(const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr, struct cfg_insn *insn);

/* cfg-insn.c: as cfg_decode, by the disassembler alone. */
void cfg_decode_any(const struct cfg_decoder *decoder, const uint8_t *bytes, uint64_t n_bytes, uint64_t vaddr,
                    struct cfg_insn *insn);

#endif
