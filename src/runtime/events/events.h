/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of a thread: opening, starting, draining and closing them; when the sampling is on; and blocks that come
 * and go while records wait in rings. */
#ifndef LOCUS_RUNTIME_EVENTS_EVENTS_H
#define LOCUS_RUNTIME_EVENTS_EVENTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/events/signals.h"
#include "runtime/record/ring.h"
#include "runtime/record/thread.h"

/* --- blocks that come and go --- */

/* Blocks that come and go while records of other threads still lie in their rings: a record must be attributed to the
 * block that was there when it was written. Who frees or records a block tells all threads whose rings are drained what
 * the range was until then; they ask when they drain. */

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

/* --- when the sampling is on --- */

/* When the process is sampled, besides the calls of the program itself: after a delay, for a time, and as signals of
 * the user tell. */

#define CONTROL_WATCH_NS 10000000 /* of a thread's computing between two looks at the clock, while a delay lasts */

/* Takes over the signals of the plan and limits the life of the process as it says.  ctx: ordinary, once */
void control_init(void);

/* In a child of fork, which has no alarm of its own.  ctx: ordinary */
void control_fork_child(void);

/* Whether a new process is sampled from its start on.  ctx: ordinary */
bool control_begins_active_sig(void);

/* Whether the sampling waits for the end of a delay.  ctx: any */
bool control_is_waiting_sig(void);

/* Starts the sampling at once, unless its time is over.  ctx: any */
void control_start_sig(void);

/* Begins, or ends for good, the sampling when its time has come.  ctx: any */
void control_begin_sig(void);

/* The handler of the signals that start and stop the sampling; afterwards the program's own runs.  ctx: signal */
void control_handler_sig(int number, siginfo_t *info, void *context);

/* The program sets its action for one of them: ours stays in front, with the flags that the program chose, so that its
 * system calls are interrupted or go on as it expects.  ctx: any */
void control_set_action(int number, const struct sigaction *action, struct sigaction *old);

/* --- events of a thread --- */

/* The events of the plan on this process's threads: perf descriptors with a thread-directed overflow signal, or POSIX
 * CPU-time timers, and the signal handler that receives them. */

/* Installs the handler; the program's earlier one is kept for chaining. From then on masks are translated (signals.h).
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

/* --- private part --- */

#define EVENT_DRAINED (EVENT_RING_ONLY | EVENT_BATCH | EVENT_AUX) /* the reader empties its ring */

/* The overflow handler.  ctx: signal handler */
void events_handler_sig(int number, siginfo_t *info, void *context);

/* A descriptor of ours, or a timer, is to send our signal: remembered, so that what it sends is known for ours. The
 * timer's signals carry the value.  ctx: any */
void events_note_descriptor_sig(int fd);
void *events_timer_value_sig(void);

/* Takes all records out of an event's ring as samples, each with its pc alone.
 * ctx: signal handler of self, or ordinary code with tree_busy set */
void events_drain_sig(struct thread_state *self, unsigned index);

/* Reads what came into an event's overwritten ring since the last time, counts it, and finds the newest sample. pc: of
 * the interrupted code, 0 when there is none.  ctx: signal handler of self, or any code while that cannot come */
void events_read_news_sig(struct thread_state *self, unsigned index, uintptr_t pc, struct ring_news *news);

/* Starts or stops the clock that waits for the end of a delay.  ctx: any */
void events_enable_watch_sig(struct thread_state *self, bool enable);

/* The descriptor of an event, or of what drains it, if it still is that: -1 when the program has closed it, whatever
 * has its number by now.  ctx: any */
int event_fd_sig(const struct thread_event *event);
int event_drain_fd_sig(const struct thread_event *event);

/* Whether an event of the plan is a clock that a CPU-time timer can stand in for; its period then, else 0.  ctx: any */
uint64_t event_clock_period_sig(const struct arena_event *plan);

#endif
