/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files that start, fork and end the process: process.c, process-fork.c, describe.c, attach.c. */
#ifndef LOCUS_RUNTIME_PROCESS_INTERNAL_H
#define LOCUS_RUNTIME_PROCESS_INTERNAL_H

#include <stdint.h>

#include "runtime/altstack.h"
#include "runtime/arch.h"
#include "runtime/control.h"
#include "runtime/process.h"
#include "runtime/sandbox.h"

/* Fills what the arena's header says of the process: names, ids, start, placeholders, rank.  ctx: ordinary */
void process_describe(void);

/* MPI says that this is process rank of a world of size; negative when it could not be asked. A world of one does not
 * count against a rank in the environment: so look programs whose MPI knows nothing of the launcher.  ctx: ordinary,
 * with an arena */
void process_take_rank(int rank, int size);

/* The program's name as it was started (argv[0]), NULL before the constructor ran.  ctx: ordinary */
const char *process_argument(void);

/* A static program that was started alone, with HPCRUN_EVENT_LIST or HPCRUN_OUT_PATH in its environment, is replaced by
 * the launcher, which starts it again, so that its measurement is made and written as any other; does not return then.
 * Otherwise, and in the preloaded library, nothing happens.  ctx: ordinary, single-threaded */
void process_find_launcher(int argc, char **arguments);

/* Makes this process the owner of the arena; false when the kernel cannot wipe the word in children.  ctx: ordinary */
bool process_own(void);

/* Profiling goes on (true) or has ended for good (false).  ctx: ordinary */
void process_set_running_sig(bool is_running);

/* The page with the owner's pid, which the kernel wipes in a child of fork; NULL before it was set.  ctx: ordinary */
void *process_owner_page_sig(void);
void process_set_owner_sig(void *page, uint32_t pid);

/* Registers the handlers that follow fork.  ctx: ordinary, once */
void process_follow_forks(void);

#endif
