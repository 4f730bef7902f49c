/* SPDX-License-Identifier: BSD-3-Clause */
/* huge-pages: blocks begin on a boundary of 2 MiB and are for huge pages before their first use; of variables and of
 * mappings, what lies between such boundaries. */
#include "runtime/actions/actions.h"

#include <sys/mman.h>
#include <sys/syscall.h>

/* A last page that is used for the most part is worth a whole huge one. */
#define HUGE_WORTH (ACTION_HUGE / 2)

static void huge_ready(uintptr_t start, size_t n_bytes)
{
    uintptr_t first = (start + ACTION_HUGE - 1) & ~(uintptr_t)(ACTION_HUGE - 1), end = start + n_bytes;
    uintptr_t last = end & ~(uintptr_t)(ACTION_HUGE - 1);
    bool is_ours = blocks_own_hook((const void *)start); /* what lies behind it is free */
    if (is_ours && end - last >= HUGE_WORTH)
        last += ACTION_HUGE;
    if (last > first)
        (void)action_allowed_hook(action_call(SYS_madvise, (long)first, (long)(last - first), MADV_HUGEPAGE, 0, 0, 0));
}

const struct action action_huge_pages = {
    .name = "huge-pages",
    .is_for_statics = true,
    .least_bytes = HUGE_WORTH,
    .ready = huge_ready,
    .look = look_at_huge_pages_hook,
};
