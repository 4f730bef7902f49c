/* SPDX-License-Identifier: BSD-3-Clause */
/* How far hpcprof is, on a terminal; and the user's wish to stop. Ordinary code. */
#ifndef LOCUS_HPCPROF_PROGRESS_H
#define LOCUS_HPCPROF_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* From here on SIGINT, SIGTERM and SIGHUP are taken as the wish to stop: the work ends at its next step, or, when that
 * takes long or another signal comes, the process does, and removes what is noted (base/scratch.h).
 * with_times: progress_end tells how long each phase took. */
void progress_begin(bool with_times);

/* For struct job: shows a line on standard error when that is a terminal, at most some times a second. */
void progress_show(void *context, const char *phase, size_t n_done, size_t n_tasks);
bool progress_stopped(void *context);

/* Takes the line away. */
void progress_end(void);

/* Prints "TOOL SENTENCE." on standard error, with what comes from names escaped. */
void progress_tell(const char *tool, const char *what, const char *sentence);

/* Ends the program by the signal that was taken, if one was. */
void progress_die_if_stopped(void);

#endif
