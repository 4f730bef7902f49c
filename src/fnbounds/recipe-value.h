/* SPDX-License-Identifier: BSD-3-Clause */
/* Where an old address is now: follows the values of registers along a path of instructions and rewrites the operand
 * of an earlier instruction in terms of the registers at its end. Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_VALUE_H
#define LOCUS_FNBOUNDS_RECIPE_VALUE_H

#include "fnbounds/recipe-flow.h"

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
