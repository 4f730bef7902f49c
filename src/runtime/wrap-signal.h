/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal actions and masks: our signal stays deliverable, and the program reads back what it set. */
#ifndef LOCUS_RUNTIME_WRAP_SIGNAL_H
#define LOCUS_RUNTIME_WRAP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/wrap.h"

/* The real sigaction.  ctx: any */
int wrap_real_sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* The program has set its first alternate stack, or one that is small: what was kept back of its actions is set now.
 * ctx: ordinary */
void wrap_signal_refit(void);

/* The real state of signals in the calling thread as it was before wrap_signal_show. */
struct wrap_signal_state {
    uint64_t mask;
    bool has_mask, is_ignored;
};

/* Another program is about to be started, by exec or by a function of libc that makes a process: until
 * wrap_signal_hide, the mask and what is ignored are really what the program set, as they are inherited. In a child of
 * vfork, too.  ctx: any */
void wrap_signal_show(struct wrap_signal_state *before);
void wrap_signal_hide(const struct wrap_signal_state *before);

/* sigprocmask of libc as the program sees it: 0, or the error's number.  ctx: any */
int wrap_mask_change(int how, const sigset_t *set, sigset_t *old);

#endif
