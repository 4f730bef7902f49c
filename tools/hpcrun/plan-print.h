/* SPDX-License-Identifier: BSD-3-Clause */
/* --print-plan: the resolved plan as text. Ordinary code. */
#ifndef LOCUS_HPCRUN_PLAN_PRINT_H
#define LOCUS_HPCRUN_PLAN_PRINT_H

#include <stdio.h>

#include "hpcrun-options.h"

/* Resolves the events of options and environment and prints choice and warnings, then for each event a line "[event N]"
 * (from 1, as leader counts) and NAME=VALUE lines: our own fields first, then every field of perf_event_attr in the
 * order of the struct. Behind " # " a line may explain its value.
 * err: as prepare_plan; nothing is printed then */
int plan_print(const struct hpcrun_options *options, FILE *out, struct error *err);

#endif
