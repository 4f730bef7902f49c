/* SPDX-License-Identifier: BSD-3-Clause */
/* Between thread.c, thread-sig.c and thread-switch-sig.c: the list of live threads. */
#ifndef LOCUS_RUNTIME_THREAD_INTERNAL_H
#define LOCUS_RUNTIME_THREAD_INTERNAL_H

#include "runtime/altstack.h"
#include "runtime/own-call.h"
#include "runtime/regions.h"
#include "runtime/shield.h"
#include "runtime/thread.h"
#include "runtime/zone.h"

/* Makes state (NULL: none) that of the calling thread.  ctx: ordinary */
void thread_set_self_sig(struct thread_state *state);

/* Adds a thread's stack to, or takes it from, the table that thread_of_stack_sig searches. A state keeps its place
 * there.  ctx: ordinary */
void thread_stack_add_sig(struct thread_state *state);
void thread_stack_remove_sig(const struct thread_state *state);
void thread_stack_reset_sig(void);

/* The lock of the lists of threads. _try_lock: false when it is held. _lock waits; false when the kernel must not be
 * asked to wait: then ordinary code tries again. _unlock also does the switching of the sampling that was asked for
 * meanwhile.  ctx: any; _lock: ordinary, shielded */
bool thread_try_lock_sig(void);
bool thread_lock_sig(void);
void thread_unlock_sig(void);

/* The registered threads, under the lock; _reset: none, and the lock is free (child of fork).  ctx: any */
struct thread_state *thread_live_sig(void);
void thread_live_add_sig(struct thread_state *state);
void thread_live_remove_sig(const struct thread_state *state);
void thread_live_reset_sig(void);

/* Before the first thread is registered: whether sampling begins at once.  ctx: ordinary */
void thread_switch_init_sig(bool is_active);

/* Writes down what the CPU time of the thread, the calling one or another, went on: in the program and in the kernel.
 * ctx: ordinary, at the end of the thread or of the process */
void thread_times_record(struct thread_state *state);

#endif
