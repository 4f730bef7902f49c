/* SPDX-License-Identifier: BSD-3-Clause */
/* The trigger that EADDR and CPUTIME share: a per-thread CPU clock by perf, or by a timer where perf is refused.
 * Ordinary code of the launcher. */
#ifndef LOCUS_SAMPLING_CLOCK_H
#define LOCUS_SAMPLING_CLOCK_H

#include "sampling/plan-parts.h"

/* A source on this clock. */
struct source_clock {
    enum source_number source;
    uint32_t flags; /* SOURCE_*, besides those of the trigger */
    const char *metric, *description;
    unsigned default_hz;
};

/* perf_event_attr of the clock with this period.  src: perf_event_open(2) */
void source_clock_attr(uint64_t period_ns, struct perf_event_attr *attr);

/* Works by perf, or else by timers (out->reason then says why not perf, out->fix how to get it). */
void source_clock_probe(struct source_probe *out);

/* Appends the clock's event.  err: ERR_RANGE impossible period, ERR_UNSUPPORTED neither perf nor timers */
int source_clock_plan(const struct source_clock *clock, const char *event, const struct source_threshold *threshold,
                      struct source_plan *plan, struct error *err);

#endif
