/* SPDX-License-Identifier: BSD-3-Clause */
/* Launching the program under the runtime. Ordinary code; the only part of a run that writes to the terminal. */
#ifndef LOCUS_HPCRUN_LAUNCH_H
#define LOCUS_HPCRUN_LAUNCH_H

#include <stddef.h>

#include "hpcrun-options.h"

/* Plans, checks, starts the companion and executes options->command. Returns only when hpcrun stayed as the parent
 * (the program's exit status; a signal that killed it has been raised again) or when the program could not be
 * executed (an exit status). */
int launch_run(const struct hpcrun_options *options);

/* hpcrun --collect: turns arenas that were left behind into files and moves everything that belongs into
 * options->collect there; says on standard output what came of it.
 * Returns the exit status: 0, also when there was nothing, 1 when something remains. */
int launch_collect(const struct hpcrun_options *options);

#endif
