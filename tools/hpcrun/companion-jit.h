/* SPDX-License-Identifier: BSD-3-Clause */
/* The files in which a process describes the code that it generates: /tmp/perf-PID.map and a jitdump. The companion
 * opens them while the process lives, because many programs remove them at their end. Ordinary code. */
#ifndef LOCUS_HPCRUN_COMPANION_JIT_H
#define LOCUS_HPCRUN_COMPANION_JIT_H

#include "companion-state.h"
#include "symnames/symnames.h"

/* Opens what has appeared since the last time, or has been replaced.  process: with its arena */
void companion_jit_look(struct companion_process *process);

/* The names in the files, those of earlier processes of the same pid left out; NULL when there are none. c: for
 * messages.  To be freed with jit_names_free. */
struct jit_names *companion_jit_read(const struct companion *c, const struct companion_process *process);

/* Closes the files. */
void companion_jit_close(struct companion_process *process);

#endif
