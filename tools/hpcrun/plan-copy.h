/* SPDX-License-Identifier: BSD-3-Clause */
/* From the plan of src/sampling to the companion's setup in terms of arena/arena.h. Ordinary code. */
#ifndef LOCUS_HPCRUN_PLAN_COPY_H
#define LOCUS_HPCRUN_PLAN_COPY_H

#include "companion/companion.h"
#include "hpcrun-options.h"
#include "sampling/source.h"

/* Copies events, thresholds of allocations (options and environment) and sizes into *setup. */
void plan_copy(const struct source_plan *plan, const struct hpcrun_options *options, struct companion_setup *setup);

#endif
