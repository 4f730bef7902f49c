/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules that turn a sampled pc into the data address of the instruction it waited for (see recipe.h for the law
 * behind them). Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_RULES_H
#define LOCUS_FNBOUNDS_RECIPE_RULES_H

#include "fnbounds/recipe-flow.h"

/* Fills *out with the recipe for samples at instruction i of the function. */
void recipe_rules_apply(const struct flow *flow, uint32_t i, struct recipe *out);

/* When instruction i is the head of a loop, control that enters the loop may wait for something else than control that
 * repeats it. Fills *out with the recipe of the entry and its guard; false when the two need not or cannot be told
 * apart. */
bool recipe_rules_entry(const struct flow *flow, uint32_t i, struct recipe *out);

#endif
