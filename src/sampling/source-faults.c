/* SPDX-License-Identifier: BSD-3-Clause */
/* FAULTS: page faults with their data address, that is first touches. Three forms: FAULTS, at a limited rate, with
 * call path; FAULTS@n, every n-th fault, with call path; FAULTS@ring, every fault, with only address and pc, by far the
 * cheapest. The kernel delivers the address in a ring of one page. Ordinary code of the launcher.
 *
 * The kernel counts page-faults before it handles the fault. The signal of a sample may then interrupt a fault that has
 * to wait: it happens, and is counted, once more, and who handles faults (userfaultfd) sees it twice. minor-faults and
 * major-faults are counted when the fault is done, so FAULTS@n is these two.
 * src: Linux mm/memory.c mm_account_fault, arch/x86/mm/fault.c do_user_addr_fault */
#include "sampling/probe.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_HZ 500 /* where pages are touched all the time a thousand cost a short compile 4 % of its time */

static void attr_init(struct perf_event_attr *attr)
{
    source_attr_init(attr, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    /* With PERF_SAMPLE_PERIOD the kernel would make a record of each fault, whatever the period. */
    attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;
    attr->sample_period = 1;
}

static void probe(struct source_probe *out)
{
    struct perf_event_attr attr;
    attr_init(&attr);
    source_probe_perf(&attr, true, out);
}

static int set_frequency(const char *event, const struct source_threshold *threshold, struct source_event *row,
                         struct error *err)
{
    uint64_t hz = threshold->is_given ? threshold->value : source_default_frequency(DEFAULT_HZ);
    int status = source_check_frequency(event, hz, err);
    row->attr.freq = 1;
    row->attr.sample_freq = hz;
    row->flags |= SOURCE_WEIGHTED;
    return status;
}

static struct source_event *add_row(struct source_plan *out, const char *name, struct error *err)
{
    struct source_event *row = source_plan_add(out, SOURCE_NUMBER_FAULTS, name, "FAULTS", err);
    if (!row)
        return NULL;
    (void)snprintf(row->description, sizeof row->description, "Page faults in user mode (first touches), by address");
    row->flags = SOURCE_RING | SOURCE_ADDRESS;
    attr_init(&row->attr);
    return row;
}

/* Every n-th fault that needed no disk, and every n-th that did. */
static int plan_each(const char *event, uint64_t period, struct source_plan *out, struct error *err)
{
    static const struct {
        uint64_t config;
        const char *suffix;
    } kinds[] = {{PERF_COUNT_SW_PAGE_FAULTS_MIN, ""}, {PERF_COUNT_SW_PAGE_FAULTS_MAJ, " (major)"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%.40s%s", event, kinds[i].suffix);
        struct source_event *row = add_row(out, name, err);
        if (!row)
            return ERR_RANGE;
        row->attr.config = kinds[i].config;
        row->attr.sample_period = period;
        row->scale = (double)period;
    }
    if (period == 1)
        source_plan_warn(out, "%s: every page fault is sampled, which costs several microseconds each.", event);
    return 0;
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    struct source_probe probed;
    bool is_ring = !strcasecmp(event, "FAULTS@ring");
    probe(&probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "FAULTS cannot be sampled here: %s; %s.", probed.reason, probed.fix);
    int status = source_check_count(event, threshold, err);
    if (status != 0)
        return status;
    if (!is_ring && threshold->is_given && !threshold->is_frequency)
        return plan_each(event, threshold->value, out, err);
    struct source_event *row = add_row(out, event, err);
    if (!row)
        return ERR_RANGE;
    if (!is_ring)
        return set_frequency(event, threshold, row, err);
    row->flags |= SOURCE_RING_ONLY | SOURCE_INTEGER;
    row->attr.write_backward = 0;
    /* When the record is read, the thread may be on another CPU. */
    row->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;
    row->attr.wakeup_events = 0; /* a wake-up for each record would cost several times the fault itself */
    return 0;
}

const struct sample_source source_faults = {
    .name = "FAULTS",
    .summary = "Page faults with data address and call path (FAULTS@1 every one, FAULTS@ring without call path)",
    .probe = probe,
    .plan = plan,
};
