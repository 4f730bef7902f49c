/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation events on their way from the wrappers into the object map and the allocation trees. */
#ifndef LOCUS_RUNTIME_ALLOC_EVENTS_H
#define LOCUS_RUNTIME_ALLOC_EVENTS_H

#include <stdbool.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/python.h"
#include "runtime/small.h"

struct thread_state;

/* Makes the object map; false when there is no address space for it.  ctx: ordinary, once, with an arena attached */
bool alloc_events_prepare(void);

/* Connects the wrappers: from now on blocks are recorded.  ctx: ordinary, once */
void alloc_events_connect(void);

/* Walks the call path of an allocation into self->alloc_path.  ctx: hook, self is the calling thread's */
void alloc_events_walk_hook(struct thread_state *self, const struct alloc_site *site);

/* Leaves the final statistics in the arena.  ctx: ordinary */
void alloc_events_end(void);

#endif
