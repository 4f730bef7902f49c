/* SPDX-License-Identifier: BSD-3-Clause */
/* The program marks what is live: locus.h. Plain loads and stores and a clock, so that it may do so anywhere. */
#include <time.h>

#include "fmt/arena-mark.h"
#include "runtime/arena-writer.h"
#include "runtime/locus.h"
#include "runtime/process.h"
#include "runtime/wrap.h"

WRAP_EXPORT void locus_mark_live_event(void)
{
    struct timespec now;
    if (!process_is_ours_sig())
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    arena_mark_live(arena_header_sig(), (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}
