/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of the plan on this process's threads: perf descriptors with a thread-directed overflow signal, or POSIX
 * CPU-time timers, and the signal handler that receives them. */
#ifndef LOCUS_RUNTIME_EVENTS_H
#define LOCUS_RUNTIME_EVENTS_H

#include <signal.h>
#include <stdbool.h>

#include "runtime/moves.h"

#define EVENTS_SIGNAL SIGURG /* ignored by default: a pending one cannot kill a program after exec */

/* Installs the handler; the program's earlier one is kept for chaining.  ctx: ordinary, once per process */
void events_install_handler(void);

/* Opens all events of the plan for the calling thread; while the sampling waits for its time, also what tells that the
 * time has come.  ctx: ordinary */
void events_open(struct thread_state *self);

/* Stops and closes them; exact overflow counts go into the thread's record.  ctx: ordinary, calling thread */
void events_close(struct thread_state *self);

/* In a child of fork: closes the inherited descriptors without touching the parent's events.  ctx: ordinary */
void events_forget(struct thread_state *self);

/* Empties the rings that fill without signals: before a block disappears, its records must know it.
 * ctx: any but the handler; calling thread */
void events_drain_all_sig(struct thread_state *self);

/* Starts or stops a thread's events, but replays.  ctx: any; self is the calling thread or registered, with the lists
 * of threads locked */
void events_enable_sig(struct thread_state *self, bool enable);

/* Feeds replays to the calling thread, once.  ctx: ordinary */
void events_replay(struct thread_state *self);

#endif
