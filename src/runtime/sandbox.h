/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the program has entered a sandbox, and what its filters allow. A seccomp filter may answer a system call that
 * it does not expect by killing, so from then on the runtime makes none that the filters would not allow (own-call.h),
 * and does without the usual ones: no events for new threads, no farewell to the companion, which sees the end by
 * itself. */
#ifndef LOCUS_RUNTIME_SANDBOX_H
#define LOCUS_RUNTIME_SANDBOX_H

#include <linux/filter.h>
#include <stdbool.h>

#include "runtime/own-call.h"
#include "runtime/shield.h"

/* True once the program has installed a filter (or was about to).  ctx: any */
bool sandbox_is_entered_sig(void);

/* The program is about to install a filter, which is copied; NULL: nobody knows which, and nothing is allowed.
 * ctx: any */
void sandbox_enter_sig(const struct sock_fprog *filter);

/* From now on the processor's clock must not be read, as that ends the program: times stay as they are. Seccomp's
 * strict mode takes it away, and PR_SET_TSC.  ctx: any */
void sandbox_stop_clocks_sig(void);

/* Whether the kernel would look at the program's filter at all.  ctx: any */
bool sandbox_is_filter_sig(const struct sock_fprog *filter);

/* Whether this filter allows a system call, whose arguments are all 0.  ctx: any */
bool sandbox_would_allow_sig(const struct sock_fprog *filter, long number);

/* Whether this filter would end a program for a system call that the start of the runtime makes.  ctx: any */
bool sandbox_would_end_start_sig(const struct sock_fprog *filter);

/* The program has installed such a filter. It outlives exec: what the program becomes must not be measured. Kept also
 * where no arena is ours, as in a child of a raw clone.  ctx: any */
void sandbox_set_deadly_sig(void);
bool sandbox_is_deadly_sig(void);

/* Whether all filters allow a system call with these arguments; true outside of a sandbox.  ctx: any */
bool sandbox_allows_sig(long number, const long arguments[6]);

#endif
