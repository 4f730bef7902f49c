/* SPDX-License-Identifier: BSD-3-Clause */
/* Trying an event by name without planning it. Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_SOURCE_PERF_H
#define LOCUS_SAMPLING_SOURCE_PERF_H

#include "sampling/source.h"

/* Whether -e EVENT would work for an event (no group) that belongs to no source of its own; reason and fix as in
 * struct source_probe, or why the name cannot be understood. */
void source_perf_try(const char *event, struct source_probe *out);

#endif
