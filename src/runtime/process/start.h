/* SPDX-License-Identifier: BSD-3-Clause */
/* How the process starts, forks and ends, and its conversation with the companion. What the rest of the runtime asks
 * of the process is in own/process.h. */
#ifndef LOCUS_RUNTIME_PROCESS_START_H
#define LOCUS_RUNTIME_PROCESS_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena/arena.h"
#include "runtime/events/events.h"
#include "runtime/own/arch.h"
#include "runtime/own/own-call.h"
#include "runtime/own/process.h"
#include "runtime/process/threads.h"

/* Fills what the arena's header says of the process: names, ids, start, placeholders, rank.  ctx: ordinary */
void process_describe(void);

/* MPI says that this is process rank of a world of size; negative when it could not be asked. A world of one does not
 * count against a rank in the environment: so look programs whose MPI knows nothing of the launcher.  ctx: ordinary,
 * with an arena */
void process_take_rank(int rank, int size);

/* A static program that was started alone, with HPCRUN_EVENT_LIST or HPCRUN_OUT_PATH in its environment, is replaced by
 * the launcher, which starts it again, so that its measurement is made and written as any other; does not return then.
 * Otherwise, and in the preloaded library, nothing happens.  ctx: ordinary, single-threaded */
void process_find_launcher(int argc, char **arguments);

/* --- the arena --- */

/* Getting an arena from the companion, and giving it back. */

/* Says HELLO, maps arena and recipe store, describes the process and registers its modules. False when there is no
 * companion, or it refused.  ctx: ordinary or the program's first malloc; uses no malloc */
bool attach_start(void);

/* In a child of fork: takes over a copy of the parent's arena, at the same address.  ctx: ordinary */
bool attach_fork_child(void);

/* Says that the process ends and waits for the files.  ctx: ordinary */
void attach_end(int exit_code);

/* --- placeholder functions: empty, but named, so that the original tools recognise the data-centric nodes --- */

/* Fills addresses[PLACEHOLDER_MAX] with the functions' run-time addresses.  ctx: ordinary */
void placeholders_fill(uint64_t addresses[PLACEHOLDER_MAX]);

#endif
