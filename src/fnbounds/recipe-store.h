/* SPDX-License-Identifier: BSD-3-Clause */
/* Writer's side of the recipe store: room for a block, and its publication. Ordinary code, one writer at a time. */
#ifndef LOCUS_FNBOUNDS_RECIPE_STORE_H
#define LOCUS_FNBOUNDS_RECIPE_STORE_H

#include "fnbounds/recipe.h"

/* Unpublished block with room for n_recipes recipes and n_entries recipes of loop entries at the end of the store, NULL
 * when it does not fit. Abandoned when it is not published before the next call. */
struct recipe_block *recipe_store_reserve(struct recipe_store *store, uint64_t module_id, uint32_t func,
                                          uint32_t n_recipes, uint32_t n_entries);

/* Makes the filled block visible to readers and counts its bytes as used; false when there is no free slot. */
int recipe_store_publish(struct recipe_store *store, struct recipe_block *block);

#endif
