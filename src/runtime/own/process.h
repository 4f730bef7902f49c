/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, fork and end of the profiled process. */
#ifndef LOCUS_RUNTIME_OWN_PROCESS_H
#define LOCUS_RUNTIME_OWN_PROCESS_H

#include <stdbool.h>

#include "runtime/own/own-call.h"

/* True in the process that owns the arena: false before the start, after the end, and in a child of a raw clone or
 * _Fork, whose copy of this word the kernel has wiped.  ctx: any */
bool process_is_ours_sig(void);

/* True in a child of vfork, which has a mask and actions of its own, but its parent's memory.  ctx: any */
bool process_is_vfork_child_sig(void);

/* Says whether profiling goes on (true) or has ended for good (false).  ctx: ordinary */
void process_set_running_sig(bool is_running);

/* 1 in the library that the launcher loads into a running program (src/runtime/Makefile.am). */
#ifndef RUNTIME_IS_LATE
#define RUNTIME_IS_LATE 0
#endif

/* Whether the runtime comes into a program that is running already (hpcrun --unsafe-attach): then nothing of what the
 * program did before is known, its signal masks stay as they are, and it has more threads than have met the runtime.
 * ctx: any */
static inline bool process_is_attached_sig(void)
{
    return RUNTIME_IS_LATE;
}

/* The page with the owner's pid, which the kernel wipes in a child of fork; NULL before it is set.  ctx: ordinary */
void *process_owner_page_sig(void);
void process_set_owner_sig(void *page, uint32_t pid);

/* Starts the runtime; calls after the first return at once. True when the process is being profiled.
 * ctx: ordinary or a malloc hook (own allocations are guarded) */
bool process_start_hook(void);

/* Value of an environment variable as the process started with it, NULL when it is not set. Works before libc has
 * initialised its own environ, because our constructor runs first.  ctx: ordinary */
const char *process_environment(const char *name);

/* Why the process should not be measured, in words that follow "not measured:"; NULL when there is no reason.
 * *is_of_samples: only samples are affected, and allocations can still be recorded.  ctx: ordinary */
const char *process_reason_not_to_measure(bool *is_of_samples);

/* The MPI rank of the process, from MPI itself or else from the environment; -1 when there is none.  ctx: ordinary */
int process_rank(void);

/* Ends the recording and waits until the companion has written the measurement (at most COMPANION_END_WAIT_MS).
 * Idempotent: if another thread is already doing it, waits for that thread. Does nothing in a process other than the
 * one that started (vfork).  ctx: ordinary; also in a signal handler that interrupted any code of the runtime */
void process_end(int exit_code);

/* The same, but the caller ends the process at once, and the other threads stand still until then.  ctx: likewise */
void process_end_for_good(int exit_code);

#endif
