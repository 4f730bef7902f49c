/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules that turn a sampled pc into the data address of the instruction it waited for (see recipe.h for the law
 * behind them). Ordinary code, outside the profiled program. */
#ifndef LOCUS_FNBOUNDS_RECIPE_RULES_H
#define LOCUS_FNBOUNDS_RECIPE_RULES_H

#include "fnbounds/recipe-flow.h"

/* Fills *out with the recipe for samples at instruction i of the function. */
void recipe_rules_apply(const struct flow *flow, uint32_t i, struct recipe *out);

#endif
