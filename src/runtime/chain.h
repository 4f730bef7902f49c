/* SPDX-License-Identifier: BSD-3-Clause */
/* The signals that have a handler of ours, and what the program wants done with them. */
#ifndef LOCUS_RUNTIME_CHAIN_H
#define LOCUS_RUNTIME_CHAIN_H

#include <signal.h>
#include <stdbool.h>

/* Takes a signal over from action, the program's. False when there are too many.  ctx: ordinary, at the start */
bool chain_add_sig(int number, const struct sigaction *action);

/* Whether a signal was taken over.  ctx: any */
bool chain_holds_sig(int number);

/* The program's own action for such a signal; false when it was not taken over.  ctx: any */
bool chain_get_sig(int number, struct sigaction *action);

/* The program's own action for such a signal, as set by its sigaction (NULL: not changed); old (may be NULL) gets the
 * one before.  ctx: any */
void chain_set_sig(int number, const struct sigaction *action, struct sigaction *old);

/* Does what the program wants done with a signal, but for default actions.  ctx: signal handler of that signal */
void chain_call_sig(int number, siginfo_t *info, void *context);

#endif
