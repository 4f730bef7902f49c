/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU clock of EADDR and CPUTIME; see clock.h. exclude_kernel=1 is what makes it harmless: an overflow can
 * only fire in user mode, so no system call returns EINTR. Ordinary code of the launcher. */
#include "sampling/clock.h"

#include <inttypes.h>
#include <stdio.h>

void source_clock_attr(uint64_t period_ns, struct perf_event_attr *attr)
{
    source_attr_init(attr, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
    attr->sample_period = period_ns;
}

static void try_perf(struct source_probe *out)
{
    struct perf_event_attr attr;
    source_clock_attr(UINT64_C(1000000), &attr);
    source_probe_perf(&attr, false, out);
}

void source_clock_probe(struct source_probe *out)
{
    struct source_probe timer;
    try_perf(out);
    if (out->works)
        return;
    source_probe_timer(&timer);
    struct source_probe perf = *out;
    out->works = timer.works;
    (void)snprintf(out->reason, sizeof out->reason, "%.240s; instead: %.240s", perf.reason, timer.reason);
}

static void use_timer(struct source_event *event, uint64_t period_ns, const struct source_probe *perf,
                      struct source_plan *plan)
{
    unsigned tick_hz = source_tick_hz();
    uint64_t tick_ns = 1000000000u / tick_hz;
    event->flags |= SOURCE_TIMER | SOURCE_WEIGHTED;
    event->timer_interval_ns = period_ns > tick_ns ? period_ns : tick_ns;
    event->scale = 1e-3;
    source_plan_warn(plan, "%s: perf is refused here (%s): CPU-time timers, about %" PRIu64
                     " samples per CPU second instead of %" PRIu64 "%s%s.",
                     event->name, perf->reason, UINT64_C(1000000000) / event->timer_interval_ns,
                     UINT64_C(1000000000) / period_ns, perf->fix[0] ? "; better: " : "", perf->fix);
}

int source_clock_plan(const struct source_clock *clock, const char *event, const struct source_threshold *threshold,
                      struct source_plan *plan, struct error *err)
{
    struct source_probe perf, timer;
    uint64_t period_ns;
    int status = source_period_ns(event, threshold, clock->default_hz, &period_ns, err);
    if (status != 0)
        return status;
    try_perf(&perf);
    if (!perf.works) {
        source_probe_timer(&timer);
        if (!timer.works)
            return error_set(err, ERR_UNSUPPORTED, "%s cannot be sampled here: %s; %s.", event, perf.reason,
                             timer.reason);
    }
    struct source_event *row = source_plan_add(plan, clock->source, event, clock->metric, err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "%s", clock->description);
    row->flags = clock->flags;
    source_clock_attr(period_ns, &row->attr);
    row->scale = (double)period_ns / 1000;
    if (!perf.works)
        use_timer(row, period_ns, &perf, plan);
    return 0;
}
