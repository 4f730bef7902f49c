/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PEBS record is asked to hold, and when the kernel lets the hardware collect many of them; see pebs-events.h.
 * Ordinary code of the launcher. */
#include "sampling/pebs-events.h"

#include <stdio.h>

#define PRECISE_WITH_TIME 3 /* cores of this level (Skylake on) write time stamps into their records */

/* Of a kernel, as major * 1000 + minor; 0 when it does not tell. */
static unsigned kernel_version(void)
{
    char release[128];
    unsigned major = 0, minor = 0;
    if (!machine_read("/proc/sys/kernel/osrelease", release, sizeof release) ||
        sscanf(release, "%u.%u", &major, &minor) != 2)
        return 0;
    return major * 1000 + minor;
}

static bool loses_time(const struct pebs_event *event)
{
    return event->max_precise < PRECISE_WITH_TIME;
}

static bool loses_weight(const struct pebs_event *event)
{
    return event->tells_source && kernel_version() < 6000;
}

void pebs_set_record(struct pebs_event *event, uint64_t weight, bool is_large)
{
    uint64_t type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                    PERF_SAMPLE_PERIOD;
    if (event->tells_source)
        type |= PERF_SAMPLE_DATA_SRC | weight;
    if (is_large)
        type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
    if (is_large && loses_time(event))
        type &= ~(uint64_t)PERF_SAMPLE_TIME;
    if (is_large && loses_weight(event))
        type &= ~(uint64_t)(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
    event->attr.sample_type = type;
}

const char *pebs_large_obstacle(const struct pebs_event *event, char *left_out, unsigned n_left_out)
{
    bool time = loses_time(event), weight = loses_weight(event);
    (void)snprintf(left_out, n_left_out, "%s%s%s", weight ? "latency (needs Linux 6.0)" : "",
                   weight && time ? ", " : "", time ? "time stamps (need Skylake or newer)" : "");
    if (kernel_version() < 4001)
        return "it does so since Linux 4.1";
    return NULL;
}

uint64_t pebs_load_period(uint64_t ldlat, uint64_t period)
{
    static const struct {
        uint64_t ldlat, period;
    } rows[] = {{512, 101}, {256, 503}, {128, 1009}, {64, 2003}, {32, 10007}, {16, 20011}, {8, 50021}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ldlat >= rows[i].ldlat)
            return rows[i].period < period ? rows[i].period : period;
    return period;
}
