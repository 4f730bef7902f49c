/* SPDX-License-Identifier: BSD-3-Clause */
/* Any other perf event by name, and groups of them. This source has no name in the table: the plan asks it for every
 * event that no other source knows. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sampling/abi/perf-record.h"
#include "sampling/perf-names.h"
#include "sampling/pmu.h"

#define DEFAULT_HZ 300
#define GROUP_MAX 8

/* One of the user's events while it is planned. */
struct planned_event {
    const char *event; /* as written, without a threshold */
    struct source_threshold threshold;
    struct source_event *row;
    uint32_t leader; /* index in the plan of the leader of its group, its own if it has no group */
    struct source_plan *plan;
    const struct pmu *core; /* the kind of cores that counts it; NULL: any */
};

#define CORE_KINDS 2
#define EXTENDED_TYPE_SHIFT 32 /* PERF_PMU_TYPE_SHIFT: generic events name the kind of cores above their config */

static void probe(struct source_probe *out)
{
    struct perf_event_attr attr;
    source_attr_init(&attr, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    source_probe_perf(&attr, false, out);
}

static bool is_hardware(const struct perf_event_attr *attr)
{
    return attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT && attr->type != PERF_TYPE_BREAKPOINT;
}

/* The period when the user gives none; 0: use a frequency. */
static uint64_t default_period(const struct perf_event_attr *attr)
{
    const struct perf_name *name = attr->type == PERF_TYPE_SOFTWARE ? perf_name_of_config(attr->config) : NULL;
    if (attr->type == PERF_TYPE_TRACEPOINT || attr->type == PERF_TYPE_BREAKPOINT)
        return 1;
    return name ? name->default_period : 0;
}

static void use_period(struct source_event *row, uint64_t period)
{
    row->attr.freq = 0;
    row->attr.sample_period = period;
    row->scale = (double)period;
}

static int use_frequency(const char *event, struct source_event *row, uint64_t hz, struct error *err)
{
    int status = source_check_frequency(event, hz, err);
    row->attr.freq = 1;
    row->attr.sample_freq = hz;
    row->attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;
    if (!abi_is_counted_sig(&row->attr))
        row->attr.sample_type |= PERF_SAMPLE_PERIOD;
    row->flags |= SOURCE_RING | SOURCE_WEIGHTED;
    return status;
}

/* A threshold written after the event wins over its terms period= and freq=, and these win over -c. */
static int choose_rate(const struct planned_event *planned, struct error *err)
{
    struct source_event *row = planned->row;
    const struct source_threshold *threshold = &planned->threshold;
    if (row->attr.sample_period && (!threshold->is_given || threshold->is_standard)) {
        if (row->attr.freq)
            return use_frequency(planned->event, row, row->attr.sample_freq, err);
        use_period(row, row->attr.sample_period);
        return 0;
    }
    uint64_t period = threshold->is_given ? threshold->value : default_period(&row->attr);
    if (threshold->is_given ? !threshold->is_frequency : period != 0) {
        use_period(row, period);
        return 0;
    }
    uint64_t hz = threshold->is_given ? threshold->value : source_default_frequency(DEFAULT_HZ);
    return use_frequency(planned->event, row, hz, err);
}

/* Perf's clocks count nanoseconds, and as fast as ours may they run, no faster. */
static int set_rate(const struct planned_event *planned, struct error *err)
{
    const struct perf_event_attr *attr = &planned->row->attr;
    int status = abi_is_clock_sig(attr) ? 0 : source_check_count(planned->event, &planned->threshold, err);
    if (status == 0)
        status = choose_rate(planned, err);
    if (status != 0 || !abi_is_clock_sig(attr))
        return status;
    uint64_t period_ns = attr->freq ? CLOCK_S_NS / attr->sample_freq : attr->sample_period;
    return source_check_clock(planned->event, period_ns, "nanoseconds here, as perf's", 1, err);
}

/* Whether the event happens only in the kernel: an event for user mode would never see it. */
static bool is_in_kernel(const struct perf_event_attr *attr)
{
    const struct perf_name *name = attr->type == PERF_TYPE_SOFTWARE ? perf_name_of_config(attr->config) : NULL;
    return attr->type == PERF_TYPE_TRACEPOINT || (name && name->is_in_kernel);
}

static void see_kernel(const struct planned_event *planned)
{
    struct source_event *row = planned->row;
    if (is_in_kernel(&row->attr) && !pmu_names_levels(planned->event))
        row->attr.exclude_kernel = 0;
    if (row->attr.exclude_kernel)
        return;
    row->attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    row->attr.exclude_callchain_user = 1;
    row->flags |= SOURCE_RING | SOURCE_KERNEL;
    source_plan_warn(planned->plan, "%s %s in the kernel: its signal may interrupt system calls.", planned->event,
                     is_in_kernel(&row->attr) ? "happens" : "also counts");
}

static bool is_generic(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE;
}

/* Encodes an event for one of two kinds of cores: as PMU/EVENT/, or as a generic event with the PMU's type. */
static int encode_on_core(const char *event, const struct pmu *core, struct perf_event_attr *attr, struct error *err)
{
    char file[160], whole[320];
    int len_name = (int)strcspn(event, ":");
    (void)snprintf(file, sizeof file, "events/%.*s", len_name, event);
    (void)snprintf(whole, sizeof whole, "%s/%.*s/%s", core->name, len_name, event,
                   event[len_name] ? event + len_name + 1 : "");
    if (pmu_has(core, file))
        return pmu_encode(whole, attr, err);
    int status = pmu_encode(event, attr, err);
    if (status == 0 && is_generic(attr))
        attr->config |= (uint64_t)core->type << EXTENDED_TYPE_SHIFT;
    return status;
}

static int encode(const struct planned_event *planned, struct error *err)
{
    struct source_event *row = planned->row;
    source_attr_init(&row->attr, PERF_TYPE_SOFTWARE, 0);
    int status = planned->core ? encode_on_core(planned->event, planned->core, &row->attr, err)
                               : pmu_encode(planned->event, &row->attr, err);
    if (status == 0 && row->attr.sample_type & PERF_SAMPLE_READ)
        status = error_set(err, ERR_UNSUPPORTED,
                           "%s: the modifier S is not possible here: each event of a group is "
                           "sampled by itself and is a metric of its own.",
                           planned->event);
    if (status == 0)
        status = set_rate(planned, err);
    if (status != 0)
        return status;
    if (is_hardware(&row->attr)) /* counters may be multiplexed: how long did it really count? */
        row->attr.read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    if (row->attr.type == PERF_TYPE_BREAKPOINT && row->attr.bp_type != HW_BREAKPOINT_X) {
        row->attr.sample_type |= PERF_SAMPLE_ADDR;
        row->flags |= SOURCE_RING | SOURCE_ADDRESS;
    }
    see_kernel(planned);
    return 0;
}

static void try_row(const struct planned_event *planned, struct source_probe *out)
{
    const struct source_event *leader = &planned->plan->events[planned->leader];
    source_probe_members(leader, (unsigned)(planned->row - leader) + 1, (planned->row->flags & SOURCE_RING) != 0, out);
}

/* Opens the row at its precise level or, with P, at the highest that opens; out gets the first refusal. */
static void settle_precision(const struct planned_event *planned, struct source_probe *out)
{
    struct source_probe lower;
    struct perf_event_attr *attr = &planned->row->attr;
    unsigned wanted = attr->precise_ip;
    try_row(planned, out);
    lower = *out;
    while (!lower.works && attr->precise_ip > 0) {
        attr->precise_ip = (attr->precise_ip - 1u) & 3;
        try_row(planned, &lower);
    }
    if (lower.works && pmu_wants_highest_precision(planned->event)) {
        *out = lower;
    } else if (lower.works && !out->works) {
        size_t len = strlen(out->reason);
        (void)snprintf(out->reason + len, sizeof out->reason - len, ", but it opens at precise level %u",
                       (unsigned)attr->precise_ip);
        (void)snprintf(out->fix, sizeof out->fix, "write :P for the highest level that opens");
        attr->precise_ip = wanted & 3;
    }
}

static void describe(const struct planned_event *planned, bool was_precise)
{
    char precise[40] = "", group[96] = "";
    const struct source_event *leader = &planned->plan->events[planned->leader];
    if (was_precise)
        (void)snprintf(precise, sizeof precise, ", precise level %u", (unsigned)planned->row->attr.precise_ip);
    if (leader != planned->row)
        (void)snprintf(group, sizeof group, ", in a group led by %.60s", leader->name);
    (void)snprintf(planned->row->description, sizeof planned->row->description, "perf event %.80s%s%s", planned->event,
                   precise, group);
}

static int plan_row(struct planned_event *planned, struct source_probe *probed, struct error *err)
{
    char label[64], metric[352];
    (void)snprintf(metric, sizeof metric, "%s%s%s%s", planned->event, planned->core ? " (" : "",
                   planned->core ? planned->core->name : "", planned->core ? ")" : "");
    bool has_label = pmu_event_label(planned->event, label, sizeof label);
    planned->row = source_plan_add(planned->plan, SOURCE_NUMBER_PERF, planned->event, has_label ? label : metric, err);
    if (!planned->row)
        return ERR_RANGE;
    if (planned->leader + 1 < planned->plan->n_events)
        planned->row->leader = planned->leader + 1;
    int status = encode(planned, err);
    if (status != 0)
        return status;
    bool is_precise = planned->row->attr.precise_ip > 0;
    settle_precision(planned, probed);
    describe(planned, is_precise);
    if (!probed->works)
        return error_set(err, ERR_UNSUPPORTED, "%s cannot be sampled here%s: %s; %s.", planned->event,
                         planned->row->leader ? " in this group" : "", probed->reason, probed->fix);
    return 0;
}

void source_perf_try(const char *event, struct source_probe *out)
{
    static struct source_plan plan;
    struct error err;
    struct planned_event planned = {.event = event, .plan = &plan};
    plan = (struct source_plan){0};
    *out = (struct source_probe){0};
    if (plan_row(&planned, out, &err) != 0 && !out->reason[0])
        (void)snprintf(out->reason, sizeof out->reason, "%.*s", (int)sizeof out->reason - 1, err.text);
}

/* On a machine with two kinds of cores, an event without a PMU means both, because threads move between them. */
static bool find_core_kinds(const char *event, struct pmu cores[CORE_KINDS])
{
    char file[160];
    struct perf_event_attr attr = {0};
    struct error unused;
    if (strpbrk(event, "/{") || !pmu_find("cpu_core", &cores[0]) || !pmu_find("cpu_atom", &cores[1]))
        return false;
    (void)snprintf(file, sizeof file, "events/%.*s", (int)strcspn(event, ":"), event);
    return (pmu_has(&cores[0], file) && pmu_has(&cores[1], file)) ||
           (pmu_encode(event, &attr, &unused) == 0 && is_generic(&attr));
}

static int plan_on_cores(const char *event, const struct source_threshold *threshold, const struct pmu *cores,
                         struct source_plan *out, struct error *err)
{
    struct source_probe probed;
    struct error refused;
    struct planned_event large = {
        .event = event, .threshold = *threshold, .leader = out->n_events, .plan = out, .core = cores};
    int status = plan_row(&large, &probed, err);
    if (status != 0)
        return status;
    struct planned_event small = {
        .event = event, .threshold = *threshold, .leader = out->n_events, .plan = out, .core = cores + 1};
    if (plan_row(&small, &probed, &refused) != 0) {
        out->n_events = small.leader;
        source_plan_warn(out, "%s is counted on the cores of %s only: %s", event, cores->name, refused.text);
    }
    return 0;
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    struct pmu cores[CORE_KINDS];
    if (find_core_kinds(event, cores))
        return plan_on_cores(event, threshold, cores, out, err);
    char members[GROUP_MAX][256], name[256];
    struct source_probe probed;
    int n = pmu_split_group(event, members, GROUP_MAX, err), status = n < 0 ? n : 0;
    uint32_t leader = out->n_events;
    for (int i = 0; status == 0 && i < n; i++) {
        struct planned_event planned = {.event = event, .threshold = *threshold, .leader = leader, .plan = out};
        if (event[0] == '{') {
            struct source_threshold own;
            planned.event = name;
            status = source_parse_event(members[i], name, sizeof name, &own, err);
            if (own.is_given)
                planned.threshold = own;
        }
        if (status == 0)
            status = plan_row(&planned, &probed, err);
    }
    return status;
}

const struct sample_source source_perf = {
    .name = "",
    .summary = "Any other perf event by name: software events, and the hardware's where there are counters",
    .probe = probe,
    .plan = plan,
};
