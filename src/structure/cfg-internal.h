/* SPDX-License-Identifier: BSD-3-Clause */
/* Between cfg.c and cfg-table.c. */
#ifndef LOCUS_STRUCTURE_CFG_INTERNAL_H
#define LOCUS_STRUCTURE_CFG_INTERNAL_H

#include "structure/cfg.h"

/* The targets of a jump table: indexes of instructions. */
struct cfg_targets {
    uint32_t *items; /* [n] */
    size_t n, capacity;
};

/* Finds the table of the indirect jump insns[jump] and fills targets; none found: n is 0.
 * Returns false when out of memory. */
bool cfg_table_find(struct cfg *cfg, const struct code_image *image, uint32_t jump, struct cfg_targets *targets);

#endif
