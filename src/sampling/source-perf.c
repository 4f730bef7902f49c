/* SPDX-License-Identifier: BSD-3-Clause */
/* Any other perf event by name. It has no name of its own in the table: the plan asks it for every event that no other
 * source knows. Ordinary code of the launcher. */
#include "sampling/plan-parts.h"

#include <stdio.h>
#include <string.h>

#include "sampling/perf-names.h"
#include "sampling/pmu.h"

#define DEFAULT_HZ 300
#define FREQUENCY_MAX_HZ 100000

static void probe(struct source_probe *out)
{
    struct perf_event_attr attr;
    source_attr_init(&attr, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    source_probe_perf(&attr, false, out);
}

static int resolve(const char *event, struct perf_event_attr *attr, uint64_t *default_period,
                   struct source_plan *plan, struct error *err)
{
    const struct perf_name *name = perf_name_find(event);
    source_attr_init(attr, PERF_TYPE_SOFTWARE, 0);
    *default_period = name ? name->default_period : 0;
    if (name && name->is_in_kernel) {
        attr->exclude_kernel = 0;
        source_plan_warn(plan, "%s happens in the kernel: its signal may interrupt system calls.", event);
    }
    return pmu_encode(event, attr, err);
}

static int set_rate(const char *event, const struct source_threshold *threshold, uint64_t default_period,
                    struct source_event *row, struct error *err)
{
    uint64_t period = threshold->is_given && !threshold->is_frequency ? threshold->value : default_period;
    if (period && !(threshold->is_given && threshold->is_frequency)) {
        row->attr.sample_period = period;
        row->scale = (double)period;
        return 0;
    }
    uint64_t hz = threshold->is_given ? threshold->value : DEFAULT_HZ;
    if (hz > FREQUENCY_MAX_HZ)
        return error_set(err, ERR_RANGE, "%s: more than %d samples a second are impossible.", event,
                         FREQUENCY_MAX_HZ);
    row->attr.freq = 1;
    row->attr.sample_freq = hz;
    row->attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                             PERF_SAMPLE_PERIOD;
    row->flags |= SOURCE_RING | SOURCE_WEIGHTED;
    return 0;
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out,
                struct error *err)
{
    struct perf_event_attr attr;
    struct source_probe probed;
    uint64_t default_period;
    int status = resolve(event, &attr, &default_period, out, err);
    if (status != 0)
        return status;
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_PERF, event, event, err);
    if (!row)
        return ERR_RANGE;
    (void)snprintf(row->description, sizeof row->description, "perf event %.160s", event);
    row->attr = attr;
    status = set_rate(event, threshold, default_period, row, err);
    if (status != 0)
        return status;
    source_probe_perf(&row->attr, (row->flags & SOURCE_RING) != 0, &probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "%s cannot be sampled here: %s; %s.", event, probed.reason,
                         probed.fix);
    return 0;
}

const struct sample_source source_perf = {
    .name = "",
    .summary = "Any other perf event by name: software events, and the hardware's where there are counters",
    .probe = probe,
    .plan = plan,
};
