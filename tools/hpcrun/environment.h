/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of the launched program. Ordinary code. */
#ifndef LOCUS_HPCRUN_ENVIRONMENT_H
#define LOCUS_HPCRUN_ENVIRONMENT_H

#include "prepare.h"

/* Sets LD_PRELOAD (ours in front of what is there; a sanitizer's library before ours), the companion's address and the
 * HPCRUN_* variables in this process's environment. False when there is no memory
 * for all of them: then the program will not be measured. */
bool environment_set(const struct hpcrun_options *options, const struct prepared *prepared);

#endif
