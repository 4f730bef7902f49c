/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling the first pass of a loop from the later ones at the head of the loop, where control comes from two sides: a
 * register that is set before the loop and counted in it still has its first value. Ordinary code. */
#ifndef LOCUS_FNBOUNDS_RECIPE_GUARD_H
#define LOCUS_FNBOUNDS_RECIPE_GUARD_H

#include <stdbool.h>

#include "fnbounds/recipe-flow.h"

/* True at the head exactly when control came in from before the loop. */
struct recipe_guard {
    uint8_t reg;   /* counted register */
    uint8_t other; /* register it was copied from, RECIPE_NO_REG: compare with value */
    uint32_t value; /* lower 32 bits of the first value */
};

/* Finds a guard for the loop from head to the jump back_edge, entered from instruction entry. False when no register
 * tells the two ways apart. */
bool recipe_guard_find(const struct flow *flow, uint32_t head, uint32_t back_edge, uint32_t entry,
                       struct recipe_guard *guard);

#endif
