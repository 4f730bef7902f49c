/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the events: events.c (all of a thread's), event-open.c (one of them), events-sig.c (handler),
 * events-enable-sig.c, drain-sig.c (rings that the reader empties) and replay.c. */
#ifndef LOCUS_RUNTIME_EVENTS_INTERNAL_H
#define LOCUS_RUNTIME_EVENTS_INTERNAL_H

#include "runtime/control.h"
#include "runtime/mask.h"
#include "runtime/ring.h"

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

/* Takes the samples of a part of an event's AUX area, from position offset of all that was written to it.
 * ctx: as events_drain_sig */
void aux_drain_sig(struct thread_state *self, unsigned index, uint64_t offset, uint64_t n_bytes);

/* Reads what came into an event's overwritten ring since the last time, counts it, and finds the newest sample. pc: of
 * the interrupted code, 0 when there is none.  ctx: signal handler of self, or any code while that cannot come */
void events_read_news_sig(struct thread_state *self, unsigned index, uintptr_t pc, struct ring_news *news);

/* Stores how long the event was wanted and really counted.  ctx: any, while its descriptor is open */
void events_read_times_sig(struct thread_state *self, unsigned index);

/* Opens one event of the plan for the calling thread; the thread's earlier ones are open already.  ctx: ordinary */
bool event_open(struct thread_state *self, unsigned index);

/* Opens a clock that signals the calling thread every few milliseconds of its own computing.  ctx: ordinary */
bool event_open_clock(const struct thread_state *self, struct thread_event *event);

/* Starts or stops the clock that waits for the end of a delay.  ctx: any */
void events_enable_watch_sig(struct thread_state *self, bool enable);

/* The descriptor of an event, or of what drains it, if it still is that: -1 when the program has closed it, whatever
 * has its number by now.  ctx: any */
int event_fd_sig(const struct thread_event *event);
int event_drain_fd_sig(const struct thread_event *event);

/* Whether an event of the plan is a clock that a CPU-time timer can stand in for; its period then, else 0.  ctx: any */
uint64_t event_clock_period_sig(const struct arena_event *plan);

/* How often the timer of an event ticks, ns.  ctx: any */
uint64_t event_timer_interval_sig(const struct arena_event *plan);

/* Closes it.  ctx: ordinary */
void event_close(struct thread_event *event);

/* Closes its descriptors only (child of fork), unless the program has done so and uses their numbers for something
 * else.  ctx: ordinary */
void event_close_own(const struct thread_event *event);

/* One call of perf_event_open for the calling thread, with the descriptor out of the program's way; -1.
 * ctx: ordinary */
int event_open_attr(const struct perf_event_attr *attr, int group_fd);

/* Makes a ring out of private memory for a replay, and feeds the file's pieces into it as the kernel would.
 * ctx: ordinary, calling thread */
bool replay_open(struct thread_event *event, const struct arena_event *plan);
void replay_run(struct thread_state *self, unsigned index);

#endif
