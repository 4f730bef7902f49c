/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of the plan on this process's threads: perf descriptors with a thread-directed overflow signal, or POSIX
 * CPU-time timers, and the signal handler that receives them. */
#ifndef LOCUS_RUNTIME_EVENTS_H
#define LOCUS_RUNTIME_EVENTS_H

#include <signal.h>
#include <stdbool.h>

#include "runtime/moves.h"

#define EVENTS_SIGNAL SIGURG /* ignored by default: a pending one cannot kill a program after exec */

/* Installs the handler; the program's earlier one is kept for chaining. From then on masks are translated (mask.h).
 * ctx: ordinary, once per process */
void events_install_handler(void);

/* The program sets its action for our signal (NULL: not changed); old (may be NULL) gets the one before. Where it has
 * a handler, signals arrive as that asks for: on the stack and with the restart of system calls that it chose.
 * ctx: any */
void events_set_action(const struct sigaction *action, struct sigaction *old);

/* Says in the log when the handler is no more in its place; a program can replace it by system calls of its own.
 * ctx: any */
void events_check_handler(void);

/* Whether a signal of our number comes from an event of ours, also one that has been closed since.  ctx: any */
bool events_is_ours_sig(const siginfo_t *info);

/* Opens all events of the plan for the calling thread; while the sampling waits for its time, also what tells that the
 * time has come.  ctx: ordinary */
void events_open(struct thread_state *self);

/* Stops them; exact overflow counts go into the thread's record. _close also closes them.  ctx: ordinary, shielded;
 * who has the right to (thread_state.is_taken), _close on the calling thread only */
void events_stop(struct thread_state *self);
void events_close(struct thread_state *self);

/* In a child of fork: closes the inherited descriptors without touching the parent's events; keep: the rest of what
 * self says of them stays.  ctx: ordinary */
void events_forget(struct thread_state *self, bool keep);

/* In a child of fork, which inherits no rings: makes empty ones in their places, as code of ours that fork came on top
 * of may be reading them.  ctx: ordinary */
void events_keep_rings(const struct thread_state *state);

/* Empties the rings that fill without signals: before a block disappears, its records must know it.
 * ctx: any but the handler; calling thread */
void events_drain_all_sig(struct thread_state *self);

/* Whether anything that was opened for self can send it a signal.  ctx: any */
bool events_send_signals_sig(const struct thread_state *self);

/* Starts or stops a thread's events, but replays.  ctx: any; self is the calling thread or registered, with the lists
 * of threads locked */
void events_enable_sig(struct thread_state *self, bool enable);

/* Feeds replays to the calling thread, once.  ctx: ordinary */
void events_replay(struct thread_state *self);

#endif
