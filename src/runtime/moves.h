/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that come and go while records of other threads still lie in their rings: a record must be attributed to the
 * block that was there when it was written. Who frees or records a block tells all threads whose rings are drained what
 * the range was until then; they ask when they drain. */
#ifndef LOCUS_RUNTIME_MOVES_H
#define LOCUS_RUNTIME_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/thread.h"

/* From now on (no longer) the calling thread wants to be told; its events are open.  ctx: ordinary */
void moves_register_hook(struct thread_state *self);
void moves_unregister_hook(struct thread_state *self);

/* The calling thread will never go on with what it tells at this moment, if it does.  ctx: hook */
void moves_abandon_hook(void);

/* In a child of fork: nobody does.  ctx: ordinary, single-threaded */
void moves_forget_hook(void);

/* True when a thread has a ring that is drained later: only then does moves_announce_hook do anything, and its caller
 * need to know what a block was.  ctx: hook */
bool moves_are_wanted_hook(void);

/* Tells all threads but self: until now [start, end) was var.  ctx: hook, before the change is made */
void moves_announce_hook(const struct thread_state *self, uintptr_t start, uintptr_t end, uint64_t var);

/* What address was when the record at position was written to the ring of an event of self; 0 when that has not
 * changed since.  ctx: where self drains */
uint64_t moves_find_sig(const struct thread_state *self, unsigned event, uint64_t position, uintptr_t address);

/* The ring of the event has been read up to position; n_known: moves_count_sig when that began.  ctx: likewise */
uint32_t moves_count_sig(const struct thread_state *self);
void moves_done_sig(struct thread_state *self, unsigned event, uint64_t position, uint32_t n_known);

#endif
