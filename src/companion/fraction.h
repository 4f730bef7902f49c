/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes are measured when only a part of them shall be. Ordinary code. */
#ifndef LOCUS_HPCRUN_FRACTION_H
#define LOCUS_HPCRUN_FRACTION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Reads a fraction, "0.1" or "1/10", above 0 and at most 1.  err: ERR_USAGE, with the option's name */
int fraction_parse(const char *option, const char *text, double *part, struct error *err);

/* Whether a process is measured. rank >= 0: rank 0 and every further one that brings the number of measured ranks to
 * part of all, so the choice is the same in every run; else by a number made of the process id. part 0 means all. */
bool fraction_chooses(double part, int rank, pid_t pid);

/* Why a process was not chosen, for the index; rank as above. */
void fraction_explain(char *text, size_t n_text, int rank);

/* The rank that this process's environment tells, -1 when it tells none. */
int fraction_rank(void);

#endif
