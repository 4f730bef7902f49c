/* SPDX-License-Identifier: BSD-3-Clause */
/* Between events.c (opening, ordinary code) and events-sig.c (handler and rings). */
#ifndef LOCUS_RUNTIME_EVENTS_INTERNAL_H
#define LOCUS_RUNTIME_EVENTS_INTERNAL_H

#include "runtime/events.h"

/* The overflow handler.  ctx: signal handler */
void events_handler_sig(int number, siginfo_t *info, void *context);

/* Takes all records out of an event's ring as samples; context: of the interrupted code for the newest record, NULL
 * when there is none.  ctx: signal handler, or ordinary code of self with tree_busy handled by the caller */
void events_drain_sig(struct thread_state *self, unsigned index, const ucontext_t *context);

#endif
