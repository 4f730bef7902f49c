/* SPDX-License-Identifier: BSD-3-Clause */
/* Between thread.c and thread-sig.c: the list of live threads. */
#ifndef LOCUS_RUNTIME_THREAD_INTERNAL_H
#define LOCUS_RUNTIME_THREAD_INTERNAL_H

#include "runtime/thread.h"

/* Makes state (NULL: none) that of the calling thread.  ctx: ordinary */
void thread_set_self_sig(struct thread_state *state);

/* Adds a thread's stack to, or takes it from, the table that thread_of_stack_sig searches. A state keeps its place
 * there.  ctx: ordinary */
void thread_stack_add_sig(struct thread_state *state);
void thread_stack_remove_sig(const struct thread_state *state);
void thread_stack_reset_sig(void);

#endif
