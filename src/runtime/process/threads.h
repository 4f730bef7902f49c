/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program: their beginning and end, the list of them, and the alternate stacks for their samples. The
 * state of each is in record/thread.h. */
#ifndef LOCUS_RUNTIME_PROCESS_THREADS_H
#define LOCUS_RUNTIME_PROCESS_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/own/own-call.h"
#include "runtime/own/zone.h"
#include "runtime/record/sample-path.h"
#include "runtime/record/thread.h"

/* The state of a thread that is about to start (pthread_create), with its number, the next one; NULL when there
 * is no memory. It is the thread's until thread_end.  ctx: ordinary, shielded */
struct thread_state *thread_prepare(void);

/* Takes back the state of a thread that has ended or did not begin, and the number of one that did not. The state must
 * not be used any more.  ctx: ordinary, shielded */
void thread_discard(struct thread_state *state);

/* thread-facts.c: records the CPU time of the thread (the calling one or another) in the program and in the kernel, and
 * its name.  ctx: ordinary, at the end of the thread or of the process, not in a sandbox */
void thread_facts_record(struct thread_state *state);

/* CPU clock of any thread of the process.  ctx: any */
clockid_t thread_facts_clock(const struct thread_state *state);

/* What the kernel has counted of a thread. */
struct thread_usage {
    uint64_t cpu_ns, user_ns, system_ns, n_page_faults;
};

/* The same of the calling thread until now, cpu_ns by its clock; zeros where the kernel does not say.
 * ctx: ordinary, not in a sandbox */
struct thread_usage thread_facts_now(void);

/* Takes that off what is recorded of the calling thread: it was the profiler's. Does nothing in a thread that is not
 * registered.  ctx: ordinary, at the start of the process */
void thread_leave_out(const struct thread_usage *usage);

/* What the kernel has counted of a thread so far is not of the measurement.  ctx: ordinary, before its first sample */
void thread_facts_leave_out(struct thread_state *state);

/* From now on what the process's CPU clock shows beyond its measured threads is of threads that are not; in a forked
 * child from the begin of its clock.  ctx: ordinary, before a second thread begins */
void thread_unmeasured_begin(bool is_forked);

/* Records that time, where it is more than how clocks are read and threads end explains. process_ns: the process's
 * clock before the last records were closed.  ctx: ordinary, when they are */
void thread_unmeasured_record(uint64_t process_ns);

/* Registers the calling thread with state (thread_prepare) and opens its events. stack_bytes: size of its stack, 0
 * for the main thread. False when the arena is full or the process is ending: the thread then runs unprofiled.
 * ctx: ordinary, shielded */
bool thread_begin(struct thread_state *state, size_t stack_bytes);

/* The same for another thread, tid, which runs already: it meets the runtime later (thread_adopt_sig). Its events are
 * not started.  ctx: ordinary, shielded */
bool thread_begin_absent(struct thread_state *state, uint32_t tid);

/* Starts the events of the calling thread, if sampling is on: the last act of what begins a thread, a process or a
 * child of fork. Until then nothing of ours is interrupted by our own samples, whatever a sample costs here. Does
 * nothing in a thread that is not registered.  ctx: ordinary; shielded, or _unshielded */
void thread_start_events(void);
void thread_start_events_unshielded(void);

/* Ends the calling thread's recording: events closed, pending samples resolved or counted. Does nothing when the end of
 * the process is already doing that.  ctx: ordinary, shielded */
void thread_end(struct thread_state *state);

/* At the start of the process: installs the signal handler and registers the calling thread as the first one, without
 * starting its events. is_active: sampling begins now. False when the arena is full.  ctx: ordinary, shielded */
bool thread_begin_first(bool is_active);

/* At the end of the process: sampling stops, and the records of all threads are closed, that of the calling thread
 * last. The other threads stand still from the beginning on, until thread_release_others_sig; those that cannot be
 * reached by a signal go on running but take no further samples. Waits a while for threads that are just beginning or
 * ending.  ctx: ordinary, shielded; also in a handler that interrupted any code of the runtime on the same
 * thread */
void thread_end_all(void);

/* Ends the recording in a process that goes on: like thread_end_all, but no thread stands still, and all events are
 * closed.  ctx: ordinary, shielded */
void thread_leave_all(void);

/* The other threads of the process go on, after thread_end_all.  ctx: any */
void thread_release_others_sig(void);

/* In a child of fork: the calling thread's state starts a new record in the new arena; other threads are forgotten. If
 * the fork interrupted code of the runtime that was changing the thread's trees, that code continues with them when the
 * handler returns, and the thread gets a new state.
 * ctx: ordinary, single-threaded, shielded */
void thread_fork_child(void);

/* --- private part: the list of live threads --- */

/* Walks the registered threads; a thread that begins or ends meanwhile is in the walk or not. NULL at the end.  ctx:
 * any
 */
struct thread_state *thread_live_sig(void);
struct thread_state *thread_live_next_sig(const struct thread_state *state);

/* _add: the thread is registered from now on. _remove: no longer; false when its events are being switched just now,
 * and its state must not be used again. _reset: there are none (child of fork).  ctx: any */
void thread_live_add_sig(struct thread_state *state);
bool thread_live_remove_sig(struct thread_state *state);
void thread_live_reset_sig(void);

/* At the end of the process the other threads stand still, as they would be gone by now without us. In code of ours and
 * in an allocator they do so only when all records are closed: until then somebody may wait for what they do there. */
enum thread_stop { STOP_NONE = 0, STOP_OUTSIDE_OURS = 1, STOP_ANYWHERE = 2 };

/* Sends the other threads the signal for it. Those that it would not reach, or whose wait for a signal it would end,
 * run on. No thread stands for longer than the end may take.  ctx: any, no sandbox, our handler is installed */
void thread_stop_others_sig(enum thread_stop stop);

/* The calling thread, registered, has opened its events: starts them if the sampling is on, and stops them again if it
 * is switched off meanwhile.  ctx: ordinary, shielded */
void thread_switch_new_sig(struct thread_state *state);

/* Sets, before the first thread is registered, whether sampling begins at once.  ctx: ordinary */
void thread_switch_init_sig(bool is_active);

/* --- alternate signal stacks (wrap-altstack.c) --- */

/* Alternate signal stacks. The kernel writes the frame of a signal below the interrupted code's stack pointer, and
 * below a coroutine's small stack there may be other data. So the runtime gives each sampled thread an alternate stack
 * for its samples, unless the program has set one for that thread; the program is shown what it would see without us.
 * When the program sets one, that replaces ours and is used for the samples, too. */

/* Maps memory for *n states of n_bytes each, or for fewer and then changes *n: the first state, the others each
 * *stride_bytes behind the one before. Below each lies an alternate stack of *own_stack_bytes, which ends at the state,
 * below that a page that nobody may touch. All is untouched and zero. NULL when there is no
 * memory.  ctx: ordinary */
char *altstack_map(size_t n_bytes, unsigned *n, size_t *own_stack_bytes, size_t *stride_bytes);

/* Touches what every sample needs of a new state and of the stack below it, where the thread's own faults would be
 * events that are sampled.  ctx: ordinary */
void altstack_touch(struct thread_state *state);

/* The calling thread has been registered: gives it an alternate stack, or checks the one that it has, and translates
 * the signal mask that it has inherited (signals.h).  ctx: ordinary; no signal is blocked by us */
void altstack_begin(void);

/* The same for a thread that has just started, under its shield, if at most one system call is needed. False when there
 * is more to do: then call altstack_begin.  ctx: ordinary, shielded */
bool altstack_begin_quickly(const struct shield *shield);

/* Takes the alternate stack away again. A thread that ends while it runs on it keeps it, and the state then has none.
 * ctx: ordinary, shielded */
void altstack_end(struct thread_state *self);

/* _is_used: whether the program has ever set an alternate stack. _is_small: whether one of them is so small that a
 * sample within a handler on it might not fit.  ctx: any */
bool altstack_is_used(void);
bool altstack_is_small(void);

#endif
