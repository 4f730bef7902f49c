/* SPDX-License-Identifier: BSD-3-Clause */
/* How the instructions of a function walk through memory: the innermost loop around each, by how much its address moves
 * in a turn of that loop, and which others walk along with it. Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_STRIDE_H
#define LOCUS_FNBOUNDS_RECIPE_STRIDE_H

#include "fnbounds/recipe-flow.h"

/* Fills flow->patterns [n_insns] (base/access-pattern.h): of each instruction's first operand, 0 where there is none.
 * Address registers count as moving when their only write in the loop adds a constant, or makes them from ones that
 * move or stay (mov, movsxd, lea, shl); a register that is loaded anew in every turn stays when nothing in the loop
 * stores to where it is loaded from. Time is linear in the instructions times the depth of loops; what lies beyond a
 * fixed amount of work, in functions of very many loops, stays 0.
 * err: none, returns false when out of memory. */
bool stride_build(struct flow *flow);

#endif
