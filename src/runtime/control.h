/* SPDX-License-Identifier: BSD-3-Clause */
/* When the process is sampled, besides the calls of the program itself: after a delay, for a time, and as signals of
 * the user tell. */
#ifndef LOCUS_RUNTIME_CONTROL_H
#define LOCUS_RUNTIME_CONTROL_H

#include <signal.h>
#include <stdbool.h>

#include "runtime/chain.h"

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
void control_end_sig(void);

/* The handler of the signals that start and stop the sampling; afterwards the program's own runs.  ctx: signal */
void control_handler_sig(int number, siginfo_t *info, void *context);

/* The program sets its action for one of them: ours stays in front, with the flags that the program chose, so that its
 * system calls are interrupted or go on as it expects.  ctx: any */
void control_set_action(int number, const struct sigaction *action, struct sigaction *old);

#endif
