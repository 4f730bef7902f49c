/* SPDX-License-Identifier: BSD-3-Clause */
/* Alternate signal stacks. The kernel writes the frame of a signal where the interrupted code has its stack pointer,
 * and below a coroutine's small stack may lie somebody's data. So each sampled thread has an alternate stack of ours
 * for its samples, as long as the program has not set one for that thread; the program is shown what it would see
 * without us. Its own stack takes the place of ours when it sets one, and then also takes the samples. */
#ifndef LOCUS_RUNTIME_ALTSTACK_H
#define LOCUS_RUNTIME_ALTSTACK_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/shield.h"
#include "runtime/thread.h"

/* Memory of n_bytes behind an alternate stack, which ends in *own_stack_bytes; all of it untouched and zero, NULL when
 * there is none.  ctx: ordinary */
void *altstack_map(size_t n_bytes, size_t *own_stack_bytes);

/* The calling thread has been registered: it gets its alternate stack, or the one that it has is looked at; and its
 * mask, which it has inherited, is translated (mask.h).  ctx: ordinary; no signal is blocked by us */
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
