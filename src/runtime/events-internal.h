/* SPDX-License-Identifier: BSD-3-Clause */
/* Between events.c (opening, ordinary code) and events-sig.c (handler and rings). */
#ifndef LOCUS_RUNTIME_EVENTS_INTERNAL_H
#define LOCUS_RUNTIME_EVENTS_INTERNAL_H

#include "runtime/events.h"

/* The overflow handler.  ctx: signal handler */
void events_handler_sig(int number, siginfo_t *info, void *context);

/* Takes all records out of an event's silent ring as samples, each with its pc alone.
 * ctx: signal handler of self, or ordinary code with tree_busy set */
void events_drain_sig(struct thread_state *self, unsigned index);

#endif
