/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the program has entered a sandbox. A seccomp filter may answer a system call that it does not expect by
 * killing, so from then on the runtime makes none that it could do without: no events for new threads, no farewell to
 * the companion, which sees the end by itself. */
#ifndef LOCUS_RUNTIME_SANDBOX_H
#define LOCUS_RUNTIME_SANDBOX_H

#include <stdbool.h>

#include "runtime/shield.h"

/* True once the program has installed a filter (or was about to).  ctx: any */
bool sandbox_is_entered_sig(void);

#endif
