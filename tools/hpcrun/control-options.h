/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the options that say when a program is sampled. Ordinary code of the launcher. */
#ifndef LOCUS_HPCRUN_CONTROL_OPTIONS_H
#define LOCUS_HPCRUN_CONTROL_OPTIONS_H

#include <stdint.h>

#include "base/error.h"

/* A time in seconds, decimals allowed, as nanoseconds; more than 0, at most ten years.  err: ERR_USAGE */
int control_parse_seconds(const char *option, const char *text, uint64_t *ns, struct error *err);

/* The same in whole seconds.  err: ERR_USAGE */
int control_parse_whole_seconds(const char *option, const char *text, uint32_t *seconds, struct error *err);

/* The number of a signal that may switch the sampling: a name with or without SIG, RTMIN+N, RTMAX-N, or a number.
 * Refused are those that cannot be caught, tell of errors of the program, or are needed by libc or by the sampling
 * itself.  err: ERR_USAGE */
int control_parse_signal(const char *option, const char *text, uint32_t *number, struct error *err);

#endif
