/* SPDX-License-Identifier: BSD-3-Clause */
/* MRK: marked events of POWER. The processor marks instructions at random and keeps instruction and data address of
 * each (SIAR, SDAR) until it completes; the kernel drops samples whose instruction address is not valid and leaves out
 * data addresses that are not. Events: the kernel's mem-loads and mem-stores if it has them, else those of the
 * original's table. Ordinary code of the launcher. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/event.h"
#include "sampling/pmu.h"
#include "sampling/probe.h"

#define PMU "cpu"
#define EVENTS_MAX 2
#define COMPLETED 0x401e0 /* PM_MRK_INST_CMPL; the bits above choose which instructions are marked */
#define COMPLETED_BITS 20

static const struct address_rate rate = {
    .default_hz = 1000,
    .period_min = 100,
    .period_max = UINT64_C(1) << 40,
    .period_step = 1,
    .unit = "marked instructions",
};

/* Names in sysfs for marked loads, stores, or both. */
static const char *const sysfs_events[] = {"mem-loads", "mem-stores", "mem_access"};

struct found {
    unsigned n;
    bool tells_source;
    char origin[64];
    char complaints[256]; /* about rows of the event table */
    struct {
        char event[192];
        struct perf_event_attr attr;
    } events[EVENTS_MAX];
};

/* Gives metrics the original's names: PM_MRK_INST_CMPL/0x34340 if the kernel's mem-loads is 0x34340401e0. */
static void name_metric(const char *event, const struct perf_event_attr *attr, char *metric, size_t n_metric)
{
    if ((attr->config & ((1u << COMPLETED_BITS) - 1)) == COMPLETED)
        (void)snprintf(metric, n_metric, "PM_MRK_INST_CMPL/0x%" PRIx64, (uint64_t)attr->config >> COMPLETED_BITS);
    else
        (void)snprintf(metric, n_metric, "%.60s", event);
}

static void take(const char *event, const struct pmu *pmu, struct found *found)
{
    struct perf_event_attr attr;
    address_attr_init(&attr, pmu->type);
    attr.freq = 1;
    attr.sample_freq = rate.default_hz;
    if (!found->tells_source)
        attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT_STRUCT);
    if (!event[0] || found->n == EVENTS_MAX || pmu_encode(event, &attr, NULL) != 0)
        return;
    (void)snprintf(found->events[found->n].event, sizeof found->events[0].event, "%s", event);
    found->events[found->n++].attr = attr;
}

static void find_events(const struct machine_cpu *cpu, const struct pmu *pmu, struct found *found)
{
    struct event_row row;
    *found = (struct found){.tells_source = true};
    for (size_t i = 0; i < sizeof sysfs_events / sizeof *sysfs_events; i++) {
        char file[64];
        (void)snprintf(file, sizeof file, "events/%s", sysfs_events[i]);
        if (pmu_has(pmu, file))
            take(sysfs_events[i], pmu, found);
    }
    (void)snprintf(found->origin, sizeof found->origin, "the kernel's description");
    if (found->n || !event_table_find(cpu, pmu->name, &row, found->complaints, sizeof found->complaints))
        return;
    (void)snprintf(found->origin, sizeof found->origin, "%.63s", row.origin);
    found->tells_source = row.tells_source;
    take(row.load, pmu, found);
    take(row.store, pmu, found);
}

/* Removes events that the kernel does not open; if none is left, *out says why. */
static void keep_working(struct found *found, struct source_probe *out)
{
    struct source_probe probed;
    unsigned n = 0;
    for (unsigned i = 0; i < found->n; i++) {
        address_probe(&found->events[i].attr, &probed);
        if (i == 0 || probed.works)
            *out = probed;
        if (probed.works)
            found->events[n++] = found->events[i];
    }
    found->n = n;
}

static void explain_absence(const struct machine_cpu *cpu, bool has_pmu, struct source_probe *out)
{
    *out = (struct source_probe){.is_foreign = cpu->vendor != CPU_POWER};
    if (out->is_foreign) {
        (void)snprintf(out->reason, sizeof out->reason, "marked events are POWER's, this is another processor");
    } else if (!has_pmu) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "this partition or virtual machine has no PMU (the kernel shows no PMU cpu)");
        (void)snprintf(out->fix, sizeof out->fix,
                       "a machine without hypervisor, or one that passes its PMU on; FAULTS needs none");
    } else {
        (void)snprintf(out->reason, sizeof out->reason,
                       "neither the kernel (events mem-loads and mem-stores of the PMU cpu) nor this version knows "
                       "marked events of this processor (version %#x)",
                       cpu->pvr);
        (void)snprintf(out->fix, sizeof out->fix, "a newer kernel, or name a raw event: hpcrun -e rHEX");
    }
}

static void examine(struct found *found, struct source_probe *out)
{
    struct machine_cpu cpu;
    struct pmu pmu;
    machine_cpu(&cpu);
    bool has_pmu = pmu_find(PMU, &pmu);
    *found = (struct found){0};
    if (cpu.vendor == CPU_POWER && has_pmu)
        find_events(&cpu, &pmu, found);
    if (found->n == 0) {
        explain_absence(&cpu, has_pmu, out);
        return;
    }
    keep_working(found, out);
    if (!out->works)
        return;
    size_t len = (size_t)snprintf(out->reason, sizeof out->reason, "marked instructions, user mode:");
    for (unsigned i = 0; i < found->n && len < sizeof out->reason; i++)
        len += (size_t)snprintf(out->reason + len, sizeof out->reason - len, "%s %s (0x%" PRIx64 ")", i ? "," : "",
                                found->events[i].event, (uint64_t)found->events[i].attr.config);
    if (len < sizeof out->reason)
        (void)snprintf(out->reason + len, sizeof out->reason - len, ", by %s", found->origin);
}

static void probe(struct source_probe *out)
{
    struct found found;
    examine(&found, out);
}

static int add_event(const char *event, const struct found *found, unsigned i, const struct source_threshold *threshold,
                     struct source_plan *out, struct error *err)
{
    char metric[sizeof out->events[0].metric];
    struct perf_event_attr attr = found->events[i].attr;
    name_metric(found->events[i].event, &attr, metric, sizeof metric);
    attr.freq = 0;
    attr.sample_freq = 0;
    struct source_event *row = address_plan_add(out, event, metric, &attr, err);
    if (!row)
        return ERR_RANGE;
    if (found->tells_source)
        row->decode = MEM_DECODE_DATA_SRC;
    else
        row->flags &= ~SOURCE_DATA_SRC;
    (void)snprintf(row->description, sizeof row->description, "Marked instructions of POWER, user mode (%.48s, %s)",
                   found->events[i].event, found->origin);
    return address_set_rate(&rate, event, threshold, row, out, err);
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    struct found found;
    struct source_probe probed;
    char how_often[96];
    int status = 0;
    uint32_t first = out->n_events;
    examine(&found, &probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "MRK cannot be sampled here: %s%s%s.", probed.reason,
                         probed.fix[0] ? "; " : "", probed.fix);
    for (unsigned i = 0; status == 0 && i < found.n; i++)
        status = add_event(event, &found, i, threshold, out, err);
    if (status != 0)
        return status;
    if (found.complaints[0])
        source_plan_warn(out, "%s", found.complaints);
    address_say_rate(&rate, &out->events[first], how_often, sizeof how_often);
    (void)snprintf(out->choice, sizeof out->choice, "MRK, %.96s%s%.96s: %s%s", found.events[0].event,
                   found.n > 1 ? ", " : "", found.n > 1 ? found.events[1].event : "", how_often,
                   found.n > 1 ? " each" : "");
    return 0;
}

const struct sample_source source_power = {
    .name = "MRK",
    .summary = "Loads and stores by data address, from the marked events of POWER hardware",
    .datacentric_rank = 100,
    .probe = probe,
    .plan = plan,
};
