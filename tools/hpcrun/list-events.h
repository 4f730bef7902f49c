/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun -L. Ordinary code. */
#ifndef LOCUS_HPCRUN_LIST_EVENTS_H
#define LOCUS_HPCRUN_LIST_EVENTS_H

#include <stdio.h>

/* Prints the events that match one of the patterns (ended by NULL; none: all), those that open here with a plus sign;
 * why the others do not stands at the end. Returns their number. */
unsigned list_events(const char *const *patterns, FILE *out);

/* Prints the names of those that open here, one a line. Returns 0, or 1 when out cannot be written. */
int list_event_names(FILE *out);

#endif
