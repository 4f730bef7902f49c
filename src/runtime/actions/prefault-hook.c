/* SPDX-License-Identifier: BSD-3-Clause */
/* prefault: the pages of a block are there before the program touches them, at one system call instead of a page fault
 * each. */
#include "runtime/actions/actions.h"

#include <sys/syscall.h>

#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, since Linux 5.14 */

static void prefault_ready(uintptr_t start, size_t n_bytes)
{
    uintptr_t first = start & ~(uintptr_t)(ACTION_PAGE - 1);
    uintptr_t end = (start + n_bytes + ACTION_PAGE - 1) & ~(uintptr_t)(ACTION_PAGE - 1);
    long result = action_call(SYS_madvise, (long)first, (long)(end - first), POPULATE_WRITE, 0, 0, 0);
    if (result < 0) /* an older kernel: a write that changes nothing, in each page */
        for (uintptr_t at = start; at < start + n_bytes; at = (at & ~(uintptr_t)(ACTION_PAGE - 1)) + ACTION_PAGE)
            (void)__atomic_fetch_or((unsigned char *)at, 0, __ATOMIC_RELAXED);
    action_count(&action_effect_hook()->n_touched, (end - first) / ACTION_PAGE);
}

const struct action action_prefault = {
    .name = "prefault",
    .is_for_statics = true,
    .least_bytes = 4 * ACTION_PAGE,
    .ready = prefault_ready,
};
