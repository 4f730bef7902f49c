/* SPDX-License-Identifier: BSD-3-Clause */
/* Recipes as the handler finds them: by pc, through a cache, asked for when missing. */
#ifndef LOCUS_RUNTIME_RECIPES_H
#define LOCUS_RUNTIME_RECIPES_H

#include <stdint.h>

#include "fnbounds/recipe.h"

enum recipes_result {
    RECIPES_FOUND = 0,
    RECIPES_LATER, /* asked for; try again */
    RECIPES_NEVER  /* pc lies in no analysable function, or is no instruction boundary */
};

/* The recipe of a sampled pc.  ctx: signal handler */
enum recipes_result recipes_find_sig(uintptr_t pc, const struct recipe **recipe);

/* Maps the companion's store from its memory file; fd -1: there is none, every answer is NEVER.
 * ctx: ordinary, at start */
void recipes_map_store_sig(int fd, uint64_t n_bytes);

/* In a child of fork: what its parent has asked for may never be answered, so it asks again.  ctx: ordinary */
void recipes_fork_child_sig(void);

#endif
