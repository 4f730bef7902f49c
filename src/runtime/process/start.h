/* SPDX-License-Identifier: BSD-3-Clause */
/* How the process starts, forks and ends, and its messages to the companion. The functions that the rest of the runtime
 * needs are in own/process.h.
 *
 * The room: start.c begins, forks and ends the process, and may call all others: attach.c (the companion), threads.c
 * with threads-sig.c and thread-facts.c, placeholders.c, waits.c. */
#ifndef LOCUS_RUNTIME_PROCESS_START_H
#define LOCUS_RUNTIME_PROCESS_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc-wrap/alloc-wrap.h"
#include "arena/arena.h"
#include "runtime/events/events.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/process/threads.h"

/* Fills the arena's header with the description of the process: names, ids, start time, placeholders, rank.  ctx:
 * ordinary */
void process_describe(void);

/* MPI says that this is process number rank of size processes; negative when it could not be asked. A size of 1 does
 * not overrule a rank in the environment, because a program whose MPI does not work with the launcher looks like that.
 * ctx: ordinary, with an arena */
void process_take_rank(int rank, int size);

/* Replaces a static program that was started without hpcrun, but with HPCRUN_EVENT_LIST or HPCRUN_OUT_PATH in its
 * environment, by the launcher, which starts it again, so that it is measured like any other; does not return then.
 * Otherwise, and in the preloaded library, does nothing.  ctx: ordinary, single-threaded */
void process_find_launcher(int argc, char **arguments);

/* Registers a function that exit() calls after all handlers and destructors of the program. In a static program exit()
 * has no such place, and this does nothing.  ctx: ordinary, before the constructors of all other objects */
void process_at_exit_last(void (*function)(void));

/* Whether code of ours, or a handler of the program, is among the callers of a wrapper of ours, or may be, because the
 * path of its callers is not known to the end. site: of that wrapper.  ctx: ordinary; self is the calling thread's */
bool process_interrupts_us(struct thread_state *self, const struct alloc_site *site);

/* Ends the recording like process_end, before the process itself ends, and unmaps what was recorded and what is only
 * needed for recording. why: for the log.  ctx: ordinary code that interrupts none of ours, no handler of the program,
 * the only thread of the process, not on an alternate stack */
void process_withdraw(const char *why);

/* Ends the recording in a process that goes on, without waiting for the companion.  ctx: ordinary */
void process_leave(void);

/* In a program that is running: what its modules call of libc's allocation functions, pthread_create and dlopen is
 * ours from now on, and again what it was. Only what lies in their tables is changed.  ctx: ordinary, shielded */
void wrap_slots_take(void);
void wrap_slots_restore(void);

/* --- the arena --- */

/* Getting an arena from the companion, and handing it over at the end. */

/* Sends HELLO, maps arena and recipe store, describes the process and registers its modules. False when there is no
 * companion, or it refuses.  ctx: ordinary or the program's first malloc; uses no malloc */
bool attach_start(void);

/* What the launcher had used when it became this process, zeros in others. Programs that this one becomes find it, too.
 * ctx: ordinary, before the program can change its environment */
struct thread_usage attach_launcher_usage(void);

/* Tells the companion that this process cannot be measured, without a descriptor of its own; error: an errno, 0 = not
 * known.  ctx: ordinary */
void attach_give_up(int error);

/* In a child of fork: maps a copy of the parent's arena at the same address.  ctx: ordinary */
bool attach_fork_child(void);

/* The companion of this value of COMPANION_ENV, and not the one of the environment.  ctx: ordinary, before attach_start
 */
void attach_over(const char *companion);

/* Tells the companion that the recording ends and does not wait for its answer.  ctx: ordinary */
void attach_leave(void);

/* Tells the companion that the process ends and waits until the files are written.  ctx: ordinary */
void attach_end(int exit_code);

/* A thread or process could not be made: asks the companion to end its helpers, which count for the same limit. True:
 * they have ended, and it is worth another try. errno is kept.  ctx: ordinary */
bool attach_make_room(void);

/* --- placeholder functions: empty; by their names the original tools recognise the data-centric nodes --- */

/* Fills addresses[PLACEHOLDER_MAX] with the functions' run-time addresses.  ctx: ordinary */
void placeholders_fill(uint64_t addresses[PLACEHOLDER_MAX]);

/* Notes in state, of a thread that self, the calling one, is about to start with the function start, on which path that
 * happens, so that its own paths go on there.  ctx: ordinary, shielded */
void process_note_creator(struct thread_state *state, struct thread_state *self, uintptr_t start,
                          const struct alloc_site *site);

/* What whoever runs a task has to know that the calling thread makes at site now; pid 0: nothing, as
 * where it makes very many, or has used much of its stack.  ctx: ordinary */
struct thread_task process_make_task(const struct alloc_site *site);

#endif
