/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal masks and actions: our signal stays deliverable, and the program reads back what it set. */
#ifndef LOCUS_RUNTIME_WRAP_SIGNAL_H
#define LOCUS_RUNTIME_WRAP_SIGNAL_H

#include <signal.h>

/* The real sigaction.  ctx: any */
int wrap_real_sigaction(int number, const struct sigaction *action, struct sigaction *old);

#endif
