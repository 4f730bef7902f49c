/* SPDX-License-Identifier: BSD-3-Clause */
/* The maker of recipes: one long-lived worker of the companion, the store's only writer. A process of its own, because
 * it reads mapped program files that may change under it: when it dies it is started again. Ordinary code. */
#ifndef LOCUS_HPCRUN_COMPANION_RECIPES_H
#define LOCUS_HPCRUN_COMPANION_RECIPES_H

#include "companion-state.h"

/* Starts the worker; without it requests stay unanswered, which a line in the log says. */
void companion_recipes_start(struct companion *c);

/* Hands one request to the worker. Returns false when it has too much to do: ask again later. */
bool companion_recipes_ask(struct companion *c, const struct companion_module *module, uint32_t func, const char *path);

/* Ends the worker for good, and waits for it: nobody's orphan is left.  ctx: once, at the companion's end */
void companion_recipes_end(struct companion *c);

/* To be called with every child that has ended: starts the worker again when it was the one, unless it keeps dying. */
void companion_recipes_reaped(struct companion *c, pid_t pid, int status);

#endif
