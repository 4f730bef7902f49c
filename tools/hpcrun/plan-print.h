/* SPDX-License-Identifier: BSD-3-Clause */
/* --print-plan: the resolved plan as text. Ordinary code. */
#ifndef LOCUS_HPCRUN_PLAN_PRINT_H
#define LOCUS_HPCRUN_PLAN_PRINT_H

#include <stdio.h>

#include "sampling/source.h"

/* Prints choice and warnings, then for each event a line "[event N]" (from 1, as leader counts) and NAME=VALUE lines:
 * our own fields first, then every field of perf_event_attr in the order of the struct. Behind " # " a line may
 * explain its value. */
void plan_print(const struct source_plan *plan, FILE *out);

#endif
