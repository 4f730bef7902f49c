/* SPDX-License-Identifier: BSD-3-Clause */
/* What the companion's workers do besides writing measurements. Each call runs in a process of its own and returns its
 * exit status. Ordinary code. */
#ifndef LOCUS_HPCRUN_COMPANION_WORK_H
#define LOCUS_HPCRUN_COMPANION_WORK_H

#include "companion-state.h"

/* Puts the table of the module at path into the cache. module: NULL for one that no process has told of. */
int companion_work_module(const struct companion *c, const struct companion_module *module, const char *path);

/* The same for another user's process, where that may read the result: of a module that everybody may read, and only
 * root or our user can change. */
int companion_work_foreign(const struct companion *c, const struct companion_module *module, const char *path);

/* Same for the executable at path and all libraries it needs, directly or not. */
int companion_work_prepare(const struct companion *c, const char *path);

/* Writes the hwloc XML of this host into the measurement directory, unless it is there. */
int companion_work_topology(const struct companion *c);

#endif
