/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation events on their way from the wrappers into the object map and the allocation trees. */
#ifndef LOCUS_RUNTIME_ALLOC_EVENTS_H
#define LOCUS_RUNTIME_ALLOC_EVENTS_H

#include <stdbool.h>

#include "alloc-wrap/alloc-wrap.h"

/* Makes the object map; false when there is no address space for it.  ctx: ordinary, once, with an arena attached */
bool alloc_events_prepare(void);

/* Connects the wrappers: from now on blocks are recorded.  ctx: ordinary, once */
void alloc_events_connect(void);

/* Leaves the final statistics in the arena.  ctx: ordinary */
void alloc_events_end(void);

#endif
