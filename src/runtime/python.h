/* SPDX-License-Identifier: BSD-3-Clause */
/* Python frames above an allocation: what CPython's interpreter (3.11) is executing when a block is recorded. They
 * become nodes below the allocation's native path, outermost first, in the pseudo module PYTHON_MODULE; their ip is the
 * reference of a string "FUNCTION\nFILE\nLINE". The interpreter's structures are read and never changed; nothing of it
 * that allocates or locks is called. Never used in the signal handler.
 * src: Include/cpython/pystate.h, Include/cpython/code.h, Include/internal/pycore_frame.h and Objects/locations.md of
 * CPython 3.11. */
#ifndef LOCUS_RUNTIME_PYTHON_H
#define LOCUS_RUNTIME_PYTHON_H

#include <stdint.h>

struct thread_state;

/* Looks for an interpreter in the program. Unless HPCRUN_PYTHON is 0, and as far as its version is known,
 * python_path_hook reads it from then on.  ctx: ordinary, once, with an arena attached */
void python_find(void);

/* Adds the Python frames of the calling thread, the innermost ones where they are many, to self's allocation tree below
 * node. Returns the last one's node; node itself when the thread runs no Python code, and what was reached when the
 * arena is full.  ctx: hook, self is the calling thread's */
uint32_t python_path_hook(struct thread_state *self, uint32_t node);

#endif
