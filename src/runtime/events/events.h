/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of a thread: opening, starting, draining and closing them; when the sampling is on; and announcements of
 * blocks that come and go while records wait in rings.
 *
 * The room: events.c opens and closes a thread's events and may call all others: events-sig.c has the handler, where
 * each sample begins, watch-sig.c counted events and watchpoints, signals-sig.c the program's own actions and masks,
 * block-changes-hook.c what other threads must hear of blocks. */
#ifndef LOCUS_RUNTIME_EVENTS_EVENTS_H
#define LOCUS_RUNTIME_EVENTS_EVENTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/events/signals.h"
#include "runtime/record/ring.h"
#include "runtime/record/thread.h"

/* A handler: an emulator may call it with a stack that is not aligned as a function expects (qemu-user 7.2). */
#if defined __x86_64__
#define EVENTS_HANDLER __attribute__((force_align_arg_pointer))
#else
#define EVENTS_HANDLER
#endif

/* --- block changes --- */

/* Block changes: blocks come and go while records of other threads still lie in their rings. A record must be
 * attributed to the block that was there when it was written. A thread that frees or records a block announces to all
 * threads with drained rings what the range was until then; they look it up when they drain. */

/* From now on the calling thread gets announcements (or no longer); its events are open.  ctx: ordinary */
void block_changes_register_hook(struct thread_state *self);
void block_changes_unregister_hook(struct thread_state *self);

/* The calling thread will never finish the announcement that it is making, if it is making one: its lock is released.
 * ctx: hook */
void block_changes_abandon_hook(void);

/* In a child of fork: no thread gets announcements, and the lock is free.  ctx: ordinary, single-threaded */
void block_changes_forget_hook(void);

/* True when some thread has a ring that is drained later: only then does block_changes_announce_hook do anything, and
 * its caller has to find out what the block was.  ctx: hook */
bool block_changes_are_wanted_hook(void);

/* Announces to all threads except self: until now [start, end) was var.  ctx: hook, before the change is made */
void block_changes_announce_hook(const struct thread_state *self, uintptr_t start, uintptr_t end, uint64_t var);

/* --- when the sampling is on --- */

/* When the process is sampled, apart from calls by the program itself: after a delay, for a limited time, and by
 * signals of the user. */

#define CONTROL_WATCH_NS 10000000 /* of a thread's CPU time between two checks of the clock, while a delay lasts */

/* Takes over the signals named in the plan and sets the alarm that limits the life of the process, if the plan has one.
 * ctx: ordinary, once */
void control_init(void);

/* Sets the alarm again in a child of fork, which does not inherit it.  ctx: ordinary */
void control_fork_child(void);

/* Whether a new process is sampled from its start.  ctx: ordinary */
bool control_begins_active_sig(void);

/* Whether the sampling waits for the end of a delay.  ctx: any */
bool control_is_waiting_sig(void);

/* Starts the sampling at once, unless its time is over.  ctx: any */
void control_start_sig(void);

/* Starts the sampling, or ends it for good, when the time for it has come.  ctx: any */
void control_begin_sig(void);

/* The handler of the signals that start and stop the sampling; afterwards the program's own runs.  ctx: signal */
EVENTS_HANDLER void control_handler_sig(int number, siginfo_t *info, void *context);

/* The program sets its action for one of these signals: our handler stays installed, with the flags that the program
 * chose, so that its system calls are interrupted or restarted as it expects.  ctx: any */
void control_set_action(int number, const struct sigaction *action, struct sigaction *old);

/* --- events of a thread --- */

/* The events of the plan on this process's threads: perf descriptors with a thread-directed overflow signal, or POSIX
 * CPU-time timers, and the signal handler that receives them. */

/* Installs the handler; the program's earlier one is kept for chaining. From then on masks are translated (signals.h).
 * ctx: ordinary, once per process */
void events_install_handler(void);

/* Gives our signal back the action that it had, unless the program has set another.  ctx: ordinary; no event of ours
 * can signal any more */
void events_remove_handler(void);

/* The program sets its action for our signal (NULL: not changed); old (may be NULL) gets the one before. If the program
 * has a handler, signals arrive as it asked: on the stack and with the restart of system calls that it chose.
 * ctx: any */
void events_set_action(const struct sigaction *action, struct sigaction *old);

/* Whether our handler is still installed; writes to the log if not. A program can replace it by making the system call
 * itself.  ctx: any */
bool events_check_handler(void);

/* Whether a signal with our number comes from one of our events, also one that has been closed since.  ctx: any */
bool events_is_ours_sig(const siginfo_t *info);

/* Opens all events of the plan for the calling thread; while a delay lasts, also the event that shows its end.  ctx:
 * ordinary */
void events_open(struct thread_state *self);

/* Stops the events and puts exact overflow counts into the thread's record. _close also closes them.  ctx: ordinary,
 * shielded; the caller has taken the state (thread_state.is_taken); _close only for the calling thread */
void events_stop(struct thread_state *self);
void events_close(struct thread_state *self);

/* In a child of fork: closes the inherited descriptors without touching the parent's events. keep: the rest of self's
 * data about them stays.  ctx: ordinary */
void events_forget(struct thread_state *self, bool keep);

/* In a child of fork, which inherits no rings: maps empty ones in their place, because code of the runtime that the
 * fork interrupted may be reading them.  ctx: ordinary */
void events_keep_rings(const struct thread_state *state);

/* Empties the rings that fill without signals: records must be attributed to a block before it disappears.
 * ctx: any but the handler; calling thread */
void events_drain_all_sig(struct thread_state *self);

/* Whether one of the events that were opened for self counts its page faults.  ctx: any */
bool events_see_faults_sig(const struct thread_state *self);

/* Whether any event or timer that was opened for self can send it a signal.  ctx: any */
bool events_can_signal_sig(const struct thread_state *self);

/* Starts or stops a thread's events, except replays.  ctx: any; self is the calling thread or registered, with the
 * lists of threads locked */
void events_enable_sig(struct thread_state *self, bool enable);

/* Feeds replays to the calling thread, once.  ctx: ordinary */
void events_replay(struct thread_state *self);

/* --- watchpoints --- */

/* The watchpoints of a thread, by which it finds out whether it meets others at a cache line (record/meeting.h): perf
 * events on data breakpoints, each of which the kernel stops after one access. Only the thread itself aims them. */

/* The program sets breakpoints of its own: ours make room for them, and there are none from now on. Another thread
 * gives up its own when it is sampled next; true: some may still be held.  ctx: any */
bool watchpoints_release_sig(void);

/* --- private part --- */

/* Whether threads that begin are to have watchpoints.  ctx: any */
bool watchpoints_are_wanted_sig(void);

/* How a watchpoint is opened, and what it is changed to.  ctx: any */
struct perf_event_attr watchpoint_attr_sig(const struct meeting_watch *watch);

/* Closes the watchpoints of a thread.  ctx: handler or ordinary code of self, or a child of fork */
void watchpoints_close_sig(struct thread_state *self);

/* Ends a watch whose time is over, or begins one.  ctx: signal handler of self */
void watchpoints_step_sig(struct thread_state *self);

/* Takes what a watchpoint has seen.  ctx: signal handler of self */
void watchpoint_take_sig(struct thread_state *self, unsigned index, const ucontext_t *context);

/* Nothing is watched any more.  ctx: as events_enable_sig */
void watchpoints_stop_sig(struct thread_state *self);

#define EVENT_DRAINED (EVENT_RING_ONLY | EVENT_BATCH | EVENT_AUX) /* the reader empties its ring */

/* The overflow handler.  ctx: signal handler */
EVENTS_HANDLER void events_handler_sig(int number, siginfo_t *info, void *context);

#define EVENTS_TIMER_OF_WATCH ARENA_EVENTS_MAX
#define EVENTS_TIMERS_MAX (EVENTS_TIMER_OF_WATCH + 1)

/* Notes that a descriptor or a timer will send our signal, so that its signals are recognised as ours. A timer's
 * signals carry the value for its index: that of its event, or EVENTS_TIMER_OF_WATCH.  ctx: any */
void events_note_descriptor_sig(int fd);
void *events_timer_value_sig(unsigned index);

/* Takes all records out of an event's ring as samples, each with only a pc.
 * ctx: signal handler of self, or ordinary code with tree_busy set */
void events_drain_sig(struct thread_state *self, unsigned index);

/* Reads and counts what was written to an event's overwritten ring since the last time, and finds the newest sample.
 * pc: of the interrupted code, 0 when there is none.  ctx: signal handler of self, or any code while the handler cannot
 * run */
void events_read_news_sig(struct thread_state *self, unsigned index, uintptr_t pc, struct ring_news *news);

/* Starts or stops what shows pages that came from a disk.  ctx: any */
void events_enable_page_ins_sig(struct thread_state *self, bool enable);

/* Takes the page-in if it has raised the signal.  ctx: signal handler of self */
void events_take_page_in_sig(struct thread_state *self, const siginfo_t *info, const ucontext_t *context);

/* Starts or stops the clock that waits for the end of a delay.  ctx: any */
void events_enable_watch_sig(struct thread_state *self, bool enable);

/* A random number for an event of self: of the length of its first period. A thread that lives for less than a period
 * is then sampled as often as its share of a period demands, and threads that begin alike are not sampled at the same
 * places.  ctx: any */
uint64_t events_random_sig(const struct thread_state *self);

/* The random number that belongs to x.  ctx: any */
uint64_t events_mixed_sig(uint64_t x);

/* What the governor must know of an event of the plan.  ctx: any */
struct governor_plan events_governed_sig(const struct arena_event *plan);

/* How slow the event was made on the thread that changed that last: what new threads begin with.  ctx: any */
unsigned events_slow_hint_sig(unsigned index);

/* Whether the kernel makes a sample of every single event, whatever the period: so it does for software events whose
 * records hold the period.  ctx: any */
bool events_has_each_sig(const struct arena_event *plan);

/* The only place that gives a running event another period; value: of governor_*_sig. False when the kernel, or a
 * sandbox, refuses.  ctx: handler or ordinary code of the event's thread */
bool event_period_set_sig(const struct thread_event *event, uint64_t value);

/* Counted events: those that the kernel counts down to the next sample, as page faults. They have fixed periods, also
 * where the plan has a frequency: what the kernel says of a frequency, that a sample stands for so many events, is far
 * too much in threads that are short. The runtime then chooses the periods, and a sample stands for one. */

/* Whether the event is a counted one.  ctx: any */
bool event_is_counted_sig(const struct arena_event *plan);

/* Begins counting, before the event is opened; returns the first period, a random one.  ctx: ordinary */
uint64_t event_count_begin_sig(const struct thread_state *self, struct thread_event *event, unsigned index);

/* Reads the count of an event when it has one and it is not known yet.  ctx: signal handler of the event's thread */
void event_count_enter_sig(struct thread_event *event);

/* Counts the overflow that the handler runs for; true when it is a sample. What the profiler itself has caused is none.
 * ctx: after event_count_enter_sig */
bool event_count_overflow_sig(struct thread_event *event);

/* The handler ends: decides on the next samples of those events whose counts were read, without what the handler itself
 * has caused.  ctx: signal handler of self */
void events_count_leave_sig(struct thread_state *self);

/* The samples that should have come by now.  ctx: the event is stopped */
uint64_t event_count_due_sig(const struct thread_event *event);

/* From now on no system call is needed for the event of self to go on at its period. Events that are off stay so.
 * ctx: calling thread */
void event_count_settle_sig(const struct thread_state *self, struct thread_event *event);

/* Ends the first periods of self's events now, because their ends need system calls that may soon be forbidden.
 * ctx: calling thread */
void events_settle_sig(struct thread_state *self);

/* The descriptor of an event, or of the one that drains it; -1 if the program has closed it, even if its number is in
 * use again.  ctx: any */
int event_fd_sig(const struct thread_event *event);
int event_drain_fd_sig(const struct thread_event *event);

/* The period of an event of the plan if it is a clock that a CPU-time timer can replace, else 0.  ctx: any */
uint64_t event_clock_period_sig(const struct arena_event *plan);

#endif
