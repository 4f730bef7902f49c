/* SPDX-License-Identifier: BSD-3-Clause */
/* "Did you mean": the known event names nearest to an unknown one. Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_NEAR_NAME_H
#define LOCUS_SAMPLING_NEAR_NAME_H

#include <stddef.h>

#include "sampling/pmu.h"

/* Number of single-letter changes that turn a into b, without regard to case; at most limit + 1 is told. Names longer
 * than 64 bytes are always limit + 1 apart. */
unsigned near_name_distance(const char *a, const char *b, unsigned limit);

/* Fills text [n] with the known event names near name ("EADDR, FAULTS"); empty when none is. */
void near_name_list(const char *name, char *text, size_t n);

/* The same among the events and terms of one PMU. */
void near_name_of_pmu(const struct pmu *pmu, const char *name, char *text, size_t n);

#endif
