/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared pieces of the sources of hardware address sampling; see address-event.h. Ordinary code of the launcher. */
#include "sampling/address-event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_RATE_FILE "/proc/sys/kernel/perf_event_max_sample_rate"
#define MAX_RATE_DEFAULT_HZ 100000
#define LARGE_RING_BYTES 65536

void address_attr_init(struct perf_event_attr *attr, uint32_t type)
{
    source_attr_init(attr, type, 0);
    attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                        PERF_SAMPLE_PERIOD | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT;
    attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
}

void address_probe(struct perf_event_attr *attr, struct source_probe *out)
{
    source_probe_perf(attr, true, out);
    if (out->works || out->error != EINVAL || !(attr->sample_type & PERF_SAMPLE_WEIGHT_STRUCT))
        return;
    attr->sample_type ^= PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_WEIGHT;
    source_probe_perf(attr, true, out);
}

void address_set_large(struct source_event *row)
{
    row->flags |= SOURCE_BATCH;
    row->ring_bytes = LARGE_RING_BYTES;
    row->attr.write_backward = 0;
    row->attr.watermark = 1;
    row->attr.wakeup_watermark = LARGE_RING_BYTES / 2;
}

void address_say_rate(const struct address_rate *rate, const struct source_event *row, char *text, size_t n)
{
    if (row->attr.freq)
        (void)snprintf(text, n, "%" PRIu64 " samples a second", (uint64_t)row->attr.sample_freq);
    else
        (void)snprintf(text, n, "one sample every %" PRIu64 " %s", (uint64_t)row->attr.sample_period, rate->unit);
}

struct source_event *address_plan_add(struct source_plan *plan, const char *name, const char *metric,
                                      const struct perf_event_attr *attr, struct error *err)
{
    struct source_event *row = source_plan_add(plan, SOURCE_NUMBER_PMU_ADDR, name, metric, err);
    if (!row)
        return NULL;
    row->attr = *attr;
    row->flags = SOURCE_RING | SOURCE_ADDRESS | SOURCE_DATA_SRC | SOURCE_INTEGER;
    return row;
}

static int set_frequency(const struct address_rate *rate, const char *event, uint64_t hz, struct source_event *row,
                         struct error *err)
{
    long max_hz = machine_read_number(MAX_RATE_FILE, MAX_RATE_DEFAULT_HZ);
    if (rate->is_fixed)
        return error_set(err, ERR_RANGE,
                         "%s: this unit samples at a fixed period only, not at a frequency; write for example "
                         "%s@%" PRIu64 " for one sample every %" PRIu64 " %s.",
                         event, event, rate->period, rate->period, rate->unit);
    if (hz > (uint64_t)max_hz)
        return error_set(err, ERR_RANGE,
                         "%s: more than %ld samples a second are refused here (kernel.perf_event_max_sample_rate).",
                         event, max_hz);
    row->attr.freq = 1;
    row->attr.sample_freq = hz;
    row->flags |= SOURCE_WEIGHTED;
    row->scale = 1;
    return 0;
}

static int set_period(const struct address_rate *rate, const char *event, uint64_t period, struct source_event *row,
                      struct source_plan *plan, struct error *err)
{
    if (period < rate->period_min || period > rate->period_max)
        return error_set(err, ERR_RANGE,
                         "%s: a period of %" PRIu64 " is impossible: this unit takes %" PRIu64 " to %" PRIu64 " %s.",
                         event, period, rate->period_min, rate->period_max, rate->unit);
    uint64_t rounded = period - period % rate->period_step;
    if (rounded != period)
        source_plan_warn(plan, "%.*s counts in steps of %u: a period of %" PRIu64 " becomes %" PRIu64 ".",
                         (int)strcspn(event, ","), event, rate->period_step, period, rounded);
    row->attr.sample_period = rounded;
    row->scale = (double)rounded;
    return 0;
}

int address_set_rate(const struct address_rate *rate, const char *event, const struct source_threshold *threshold,
                     struct source_event *row, struct source_plan *plan, struct error *err)
{
    bool has_frequency = threshold->is_given && threshold->is_frequency;
    if (has_frequency && rate->is_fixed && threshold->is_standard) {
        source_plan_warn(plan, "%.*s knows no frequencies: one sample every %" PRIu64 " %s.",
                         (int)strcspn(event, ","), event, rate->period, rate->unit);
        has_frequency = false;
    } else if (threshold->is_given && !has_frequency) {
        return set_period(rate, event, threshold->value, row, plan, err);
    }
    if (has_frequency || !rate->period)
        return set_frequency(rate, event, has_frequency ? threshold->value : rate->default_hz, row, err);
    return set_period(rate, event, rate->period, row, plan, err);
}
