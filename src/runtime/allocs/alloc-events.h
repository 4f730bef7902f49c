/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation events on their way from the wrappers into the object map and the allocation trees.
 *
 * The room: alloc-events-hook.c is the sink of alloc-wrap and may call all others: small-hook.c (sites of small
 * blocks), python-hook.c with python-find.c (frames of Python). */
#ifndef LOCUS_RUNTIME_ALLOCS_ALLOC_EVENTS_H
#define LOCUS_RUNTIME_ALLOCS_ALLOC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc-wrap/alloc-wrap.h"
#include "runtime/objmap/small.h"

struct thread_state;

/* Makes the object map; false when there is no address space for it.  ctx: ordinary, once, with an arena attached */
bool alloc_events_prepare(void);

/* Connects the wrappers: from now on blocks are recorded.  ctx: ordinary, once */
void alloc_events_connect(void);

/* Walks the call path of an allocation into self->alloc_path.  ctx: hook, self is the calling thread's */
void alloc_events_walk_hook(struct thread_state *self, const struct alloc_site *site);

/* Node in self's allocation tree of the call path at site, with a mark that what begins there is a thread; 0: the path
 * is not known to the end, or a hook is at work.  ctx: ordinary code of self, the calling thread, shielded */
uint32_t alloc_events_creator(struct thread_state *self, const struct alloc_site *site);

/* The same for a task, without a mark. It stands below the path on which the task was made that makes it, if there is
 * one. Of tasks that make tasks at one place, and where there are very many paths, the outer one's path is all that is
 * known.
 * ctx: ordinary code of self, the calling thread */
uint32_t alloc_events_task_creator(struct thread_state *self, const struct alloc_site *site);

/* Leaves the final statistics in the arena.  ctx: ordinary */
void alloc_events_end(void);

/* Looks for an interpreter of Python in the program. From then on its frames are read (record/python.h), if its version
 * is known and HPCRUN_PYTHON is not 0.  ctx: ordinary, once, with an arena attached */
void python_find(void);

/* Adds the Python frames of the calling thread (if there are too many, the innermost ones) to self's allocation tree
 * below node. Returns the last one's node; node itself when the thread runs no Python code; the last node that could be
 * made when the arena is full.  ctx: hook, self is the calling thread's */
uint32_t python_path_hook(struct thread_state *self, uint32_t node);

#endif
