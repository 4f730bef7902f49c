/* SPDX-License-Identifier: BSD-3-Clause */
/* Which load modules a measurement directory has samples in. */
#ifndef LOCUS_TOOLS_HPCSTRUCT_SAMPLED_H
#define LOCUS_TOOLS_HPCSTRUCT_SAMPLED_H

#include "base/error.h"
#include "base/vec.h"

/* Adds the paths of the modules that any node of a profile in directory lies in, sorted as they are found. Profiles
 * that cannot be read are left out and counted in *n_bad, the last one's error in *err.
 * err: ERR_IO when the directory cannot be read, ERR_NOT_FOUND when it holds no profile */
int sampled_modules(const char *directory, struct strtab *paths, size_t *n_bad, struct error *err);

#endif
