/* SPDX-License-Identifier: BSD-3-Clause */
/* The program marks what is live: locus.h. Plain loads and stores and a clock, so that it may do so anywhere. */
#include <time.h>

#include "arena/arena.h"
#include "runtime/arena-writer.h"
#include "runtime/locus.h"
#include "runtime/own-call.h"
#include "runtime/process.h"
#include "runtime/wrap.h"

WRAP_EXPORT void locus_mark_live_event(void)
{
    if (!process_is_ours_sig())
        return;
    arena_mark_live(arena_header_sig(), own_clock_ns_sig(CLOCK_REALTIME));
}
