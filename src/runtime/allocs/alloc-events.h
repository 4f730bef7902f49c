/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation events on their way from the wrappers into the object map and the allocation trees. */
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

/* Leaves the final statistics in the arena.  ctx: ordinary */
void alloc_events_end(void);

/* --- frames of Python --- */

/* Python frames above an allocation: what CPython's interpreter (3.11) is executing when a block is recorded. They
 * become nodes below the allocation's native path, outermost first, in the pseudo module PYTHON_MODULE; their ip is the
 * reference of a string "FUNCTION\nFILE\nLINE". The interpreter's structures are read and never changed; nothing of it
 * that allocates or locks is called. Never used in the signal handler.
 * src: Include/cpython/pystate.h, Include/cpython/code.h, Include/internal/pycore_frame.h and Objects/locations.md of
 * CPython 3.11. */

struct thread_state;

/* Looks for an interpreter in the program. Unless HPCRUN_PYTHON is 0, and as far as its version is known,
 * python_path_hook reads it from then on.  ctx: ordinary, once, with an arena attached */
void python_find(void);

/* Adds the Python frames of the calling thread, the innermost ones where they are many, to self's allocation tree below
 * node. Returns the last one's node; node itself when the thread runs no Python code, and what was reached when the
 * arena is full.  ctx: hook, self is the calling thread's */
uint32_t python_path_hook(struct thread_state *self, uint32_t node);

/* --- private part: finding and reading the interpreter --- */

/* What an interpreter exports. */
struct python_api {
    uintptr_t (*current)(void); /* state of the thread that holds the interpreter's lock */
    uintptr_t (*own)(void);     /* of the calling thread */
    uintptr_t code_type, text_type, bytes_type;
};

/* From now on the interpreter is read.  ctx: ordinary, once */
void python_use(const struct python_api *api);

#endif
