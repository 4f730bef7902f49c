/* SPDX-License-Identifier: BSD-3-Clause */
/* PEBS: loads with their latency and stores, by data address, from the hardware of Intel processors. Each sample is one
 * access that really happened, with the level of memory that served it. Two forms: a signal and call path for each
 * sample, or large buffers, which cost a fraction and know no call paths. Ordinary code of the launcher. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/pebs-events.h"
#include "sampling/plan-parts.h"

#define LDLAT_MIN 3 /* core cycles: what the hardware takes */
#define LDLAT_MAX UINT16_MAX
#define LDLAT_NOT_GIVEN UINT64_MAX
#define RING_BYTES 65536 /* large-buffer mode: some 900 records */
#define FREQUENCY_MAX_HZ 100000
#define PERIOD_COSTLY 1000 /* below, signals take more time than the program where all accesses count */

static void probe(struct source_probe *out)
{
    const struct pebs_request request = {.wants_loads = true, .wants_stores = true};
    struct pebs_found found;
    pebs_events_find(&request, &found, out);
    if (found.complaints[0]) {
        size_t len = strlen(out->reason);
        (void)snprintf(out->reason + len, sizeof out->reason - len, ". %s", found.complaints);
    }
}

static int take_terms(const char *event, const struct source_threshold *threshold, struct pebs_request *request,
                      struct error *err)
{
    uint64_t ldlat = LDLAT_NOT_GIVEN, loads = 0, stores = 0, large = 0;
    const struct source_term known[] = {{"ldlat", true, &ldlat}, {"loads", false, &loads}, {"stores", false, &stores},
                                        {"large", false, &large}, {NULL, false, NULL}};
    int status = source_parse_terms(event, known, err);
    if (status != 0)
        return status;
    if (ldlat != LDLAT_NOT_GIVEN && (ldlat < LDLAT_MIN || ldlat > LDLAT_MAX))
        return error_set(err, ERR_RANGE, "%s: the latency threshold is a number of core cycles from %d to %d.", event,
                         LDLAT_MIN, LDLAT_MAX);
    if (large && threshold->is_given && threshold->is_frequency)
        return error_set(err, ERR_USAGE,
                         "%s: large buffers need a fixed period, since with a frequency (f%" PRIu64
                         ") the kernel looks at every record: write %s@100003, or leave the frequency out.",
                         event, threshold->value, event);
    request->ldlat = ldlat == LDLAT_NOT_GIVEN ? 0 : ldlat;
    request->wants_loads = loads || !stores;
    request->wants_stores = stores || !loads;
    request->wants_large = large;
    return 0;
}

static int set_rate(const char *name, const struct pebs_event *found, const struct source_threshold *threshold,
                    struct source_event *row, struct error *err)
{
    if (!threshold->is_given || !threshold->is_frequency) {
        row->attr.sample_period = threshold->is_given ? threshold->value : found->period;
        row->scale = (double)row->attr.sample_period;
        return 0;
    }
    long max_hz = machine_read_number("/proc/sys/kernel/perf_event_max_sample_rate", FREQUENCY_MAX_HZ);
    if (threshold->value > (uint64_t)max_hz)
        return error_set(err, ERR_RANGE,
                         "%s: this kernel takes at most %ld samples a second (kernel.perf_event_max_sample_rate).",
                         name, max_hz);
    row->attr.freq = 1;
    row->attr.sample_freq = threshold->value;
    row->flags |= SOURCE_WEIGHTED;
    return 0;
}

static int add_leader(const char *name, const struct pebs_event *found, struct source_plan *out, struct error *err)
{
    char metric[64];
    (void)snprintf(metric, sizeof metric, "leader of %.50s", found->text);
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_PMU_ADDR, name, metric, err);
    if (!row)
        return ERR_RANGE;
    row->flags = SOURCE_SILENT;
    row->attr = found->leader;
    (void)snprintf(row->description, sizeof row->description,
                   "Auxiliary event that this CPU wants beside its load latency; it only counts");
    return 0;
}

static void describe(const struct pebs_event *found, struct source_event *row)
{
    const char *weight = found->attr.sample_type & PERF_SAMPLE_WEIGHT_STRUCT ? ", latency in parts"
                         : found->attr.sample_type & PERF_SAMPLE_WEIGHT      ? ", latency as a whole"
                                                                             : "";
    (void)snprintf(row->description, sizeof row->description, "%s by data address (%.60s, precise level %u%s)",
                   found->is_load ? "Loads" : "Stores", found->origin, (unsigned)found->attr.precise_ip, weight);
}

static int add_event(const char *name, const struct pebs_event *found, const struct source_threshold *threshold,
                     struct source_plan *out, struct error *err)
{
    uint32_t leader = out->n_events + 1;
    int status = found->has_leader ? add_leader(name, found, out, err) : 0;
    if (status != 0)
        return status;
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_PMU_ADDR, name, found->text, err);
    if (!row)
        return ERR_RANGE;
    row->flags = SOURCE_RING | SOURCE_ADDRESS;
    if (found->tells_source) {
        row->flags |= SOURCE_DATA_SRC;
        row->decode = MEM_DECODE_DATA_SRC;
    }
    row->attr = found->attr;
    row->leader = found->has_leader ? leader : 0;
    if (row->attr.watermark) {
        row->flags |= SOURCE_BATCH;
        row->ring_bytes = RING_BYTES;
        row->attr.wakeup_watermark = RING_BYTES / 2;
    }
    describe(found, row);
    return set_rate(name, found, threshold, row, err);
}

/* Which form is on, and what it lacks. */
static void say_form(const struct pebs_found *found, struct source_plan *out)
{
    char left_out[96];
    size_t len = strlen(out->choice), n = sizeof out->choice - len;
    if (!found->events[0].attr.watermark) {
        (void)snprintf(out->choice + len, n, "; a signal and a call path for each sample");
        return;
    }
    const char *obstacle = pebs_large_obstacle(&found->events[0], left_out, sizeof left_out);
    if (obstacle)
        (void)snprintf(out->choice + len, n,
                       "; large-buffer mode, no call paths, but the kernel does not let the hardware's buffer fill: %s",
                       obstacle);
    else
        (void)snprintf(out->choice + len, n,
                       "; large-buffer mode: the hardware collects records between interrupts, no call paths%s%s",
                       left_out[0] ? "; left out: " : "", left_out);
}

static void say_choice(const struct pebs_found *found, uint32_t from, struct source_plan *out)
{
    size_t len = (size_t)snprintf(out->choice, sizeof out->choice, "PEBS, ");
    for (uint32_t i = from; i < out->n_events && len < sizeof out->choice; i++) {
        const struct source_event *row = &out->events[i];
        if (row->flags & SOURCE_SILENT)
            continue;
        len += (size_t)snprintf(out->choice + len, sizeof out->choice - len, "%s%s %s %" PRIu64 "%s",
                                len > strlen("PEBS, ") ? ", " : "", row->metric, row->attr.freq ? "at" : "every",
                                (uint64_t)row->attr.sample_period, row->attr.freq ? " a second" : "");
    }
    say_form(found, out);
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out,
                struct error *err)
{
    struct pebs_request request = {0};
    struct pebs_found found;
    struct source_probe probed;
    uint32_t from = out->n_events;
    int status = take_terms(event, threshold, &request, err);
    if (status != 0)
        return status;
    pebs_events_find(&request, &found, &probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "%s cannot be sampled here: %s%s%s.%s%s", event, probed.reason,
                         probed.fix[0] ? "; " : "", probed.fix, found.complaints[0] ? " " : "", found.complaints);
    for (unsigned i = 0; status == 0 && i < found.n_events; i++)
        status = add_event(event, &found.events[i], threshold, out, err);
    if (status != 0)
        return status;
    if (found.complaints[0])
        source_plan_warn(out, "%s", found.complaints);
    if (threshold->is_given && !threshold->is_frequency && threshold->value < PERIOD_COSTLY && !request.ldlat)
        source_plan_warn(out, "%s: a sample every %" PRIu64 " accesses costs more than the program itself; the kernel "
                              "will hold samples back.",
                         event, threshold->value);
    say_choice(&found, from, out);
    return 0;
}

const struct sample_source source_pebs = {
    .name = "PEBS",
    .summary = "Loads with latency, and stores, by data address, from Intel hardware (terms: ldlat=N, loads, stores, "
               "large)",
    .datacentric_rank = 100,
    .takes_terms = true,
    .probe = probe,
    .plan = plan,
};
