/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcrun --collect: what a companion left on this node when it was killed, or when the measurement directory did not
 * take it, goes where it belongs. Ordinary code. */
#ifndef LOCUS_HPCRUN_RECOVER_H
#define LOCUS_HPCRUN_RECOVER_H

#include "hpcrun-options.h"

/* Turns arenas that were left behind into files and moves everything that belongs into options->collect there; says
 * on standard output what came of it.
 * Returns the exit status: 0, also when there was nothing, 1 when something remains. */
int recover_run(const struct hpcrun_options *options);

#endif
