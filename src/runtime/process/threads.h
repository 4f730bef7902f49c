/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program: their beginning and end, the list of them, and the alternate stacks for their samples. What
 * is kept of each is in record/thread.h. */
#ifndef LOCUS_RUNTIME_PROCESS_THREADS_H
#define LOCUS_RUNTIME_PROCESS_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/record/sample-path.h"
#include "runtime/record/thread.h"

/* Memory for a thread about to start (pthread_create), NULL when there is none.  ctx: ordinary, shielded */
struct thread_state *thread_prepare(void);
void thread_discard(struct thread_state *state);

/* Registers the calling thread with state (thread_prepare) and starts its events. stack_bytes: size of its stack, 0
 * for the main thread. False when the arena is full or the process is ending: the thread then runs unprofiled.
 * ctx: ordinary, shielded */
bool thread_begin(struct thread_state *state, size_t stack_bytes);

/* Ends the calling thread's recording: events closed, pending samples resolved or counted. Where the end of the process
 * is just doing that, it is left alone.  ctx: ordinary, shielded */
void thread_end(struct thread_state *state);

/* At the start of the process: installs the signal handler and registers the calling thread as the first one.
 * is_active: sampling begins now. False when the arena is full.  ctx: ordinary, shielded */
bool thread_begin_first(bool is_active);

/* At the end of the process: sampling stops, and what all threads have recorded is closed, the calling one's last. The
 * others may go on running but take no further sample. Those that are beginning or ending just then are waited for, for
 * a while.  ctx: ordinary, shielded; also on top of any other code of ours on the same thread */
void thread_end_all(void);

/* In a child of fork: the calling thread's state starts a new record in the new arena; others are forgotten. Where the
 * fork came on top of code of ours that was changing the trees of the thread, that goes on with them when the handler
 * returns, and the thread has a new state.
 * ctx: ordinary, single-threaded, shielded */
void thread_fork_child(void);

/* --- private part: the list of live threads --- */

/* The lock of the lists of threads. _try_lock: false when it is held. _lock waits; false when the kernel must not be
 * asked to wait: then ordinary code tries again. _unlock also does the switching of the sampling that was asked for
 * meanwhile.  ctx: any; _lock: ordinary, shielded */
bool thread_lock_sig(void);
void thread_unlock_sig(void);

/* The registered threads, under the lock; _reset: none, and the lock is free (child of fork).  ctx: any */
struct thread_state *thread_live_sig(void);
void thread_live_add_sig(struct thread_state *state);
void thread_live_remove_sig(const struct thread_state *state);
void thread_live_reset_sig(void);

/* Before the first thread is registered: whether sampling begins at once.  ctx: ordinary */
void thread_switch_init_sig(bool is_active);

/* --- alternate signal stacks (wrap-altstack.c) --- */

/* Alternate signal stacks. The kernel writes the frame of a signal where the interrupted code has its stack pointer,
 * and below a coroutine's small stack may lie somebody's data. So each sampled thread has an alternate stack of ours
 * for its samples, as long as the program has not set one for that thread; the program is shown what it would see
 * without us. Its own stack takes the place of ours when it sets one, and then also takes the samples. */

/* Memory of n_bytes behind an alternate stack, which ends in *own_stack_bytes; all of it untouched and zero, NULL when
 * there is none.  ctx: ordinary */
void *altstack_map(size_t n_bytes, size_t *own_stack_bytes);

/* The calling thread has been registered: it gets its alternate stack, or the one that it has is looked at; and its
 * mask, which it has inherited, is translated (signals.h).  ctx: ordinary; no signal is blocked by us */
void altstack_begin(void);

/* The same for a thread that has just started, behind its shield, where one system call does it or none. False when
 * there is more to do: then altstack_begin does it.  ctx: ordinary, shielded */
bool altstack_begin_quickly(const struct shield *shield);

/* Takes it away again. A thread that ends on it keeps it: then the state has none any more.  ctx: ordinary, shielded */
void altstack_end(struct thread_state *self);

/* Whether the program has ever set an alternate stack, and whether one of them is so small that a sample within a
 * handler on it might not fit.  ctx: any */
bool altstack_is_used(void);
bool altstack_is_crowded(void);

#endif
