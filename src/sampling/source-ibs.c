/* SPDX-License-Identifier: BSD-3-Clause */
/* IBS: AMD instruction-based sampling of dispatched operations. The hardware cannot leave out the kernel; a kernel with
 * the term swfilt drops the kernel's samples itself, so that every user may open the event. Operations that are neither
 * load nor store are sampled too; the runtime counts them as such. Ordinary code of the launcher. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sampling/abi/data-src.h"
#include "sampling/pmu.h"
#include "sampling/probe.h"

#define PMU "ibs_op"
/* Between 500 and 3000 samples a second on today's processors; about a third of them are loads and stores. */
#define DEFAULT_PERIOD 2000000
#define FILTERED_PERIOD 128000 /* few operations miss caches, and the others cause no interrupt */
#define LDLAT_MIN 128          /* tools/perf/Documentation/perf-amd-ibs.txt */
#define LDLAT_MAX 2048

static const struct address_rate rate = {
    .period = DEFAULT_PERIOD,
    .period_min = 144, /* from Linux 6.15 on the kernel refuses less */
    .period_max = UINT64_C(1) << 40,
    .period_step = 16,
    .unit = "dispatched operations",
};

/* Says why there is no such unit here. */
static void explain_absence(struct source_probe *out)
{
    struct machine_cpu cpu;
    machine_cpu(&cpu);
    *out = (struct source_probe){.is_foreign = cpu.vendor != CPU_AMD};
    if (out->is_foreign) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "instruction-based sampling is AMD's, this is another processor");
    } else if (cpu.is_virtual) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "this virtual machine has no instruction-based sampling (no PMU ibs_op)");
        (void)snprintf(out->fix, sizeof out->fix,
                       "a machine without hypervisor, or one that passes it on; EADDR and FAULTS need none");
    } else {
        (void)snprintf(out->reason, sizeof out->reason, "the kernel shows no PMU ibs_op");
        (void)snprintf(out->fix, sizeof out->fix,
                       "a kernel with CONFIG_PERF_EVENTS_AMD_IBS, and IBS enabled in the firmware's settings");
    }
}

/* Explains the refusal by a kernel that cannot exclude itself. */
static void explain_unfiltered(int error, struct source_probe *out)
{
    char release[96] = "?";
    long paranoid = machine_read_number("/proc/sys/kernel/perf_event_paranoid", 2);
    (void)machine_read("/proc/sys/kernel/osrelease", release, sizeof release);
    if (error == EINVAL) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "perf_event_open: EINVAL; this kernel (%s) gives ibs_op to whole processors, not to threads",
                       release);
        (void)snprintf(out->fix, sizeof out->fix, "Linux 6.2 or newer; without privileges Linux 6.14 or newer");
        return;
    }
    (void)snprintf(out->reason, sizeof out->reason,
                   "this kernel (%s) cannot leave its own code out of ibs_op (no term swfilt, which Linux 6.14 "
                   "brought), and sampling the kernel is refused (%s, perf_event_paranoid %ld)",
                   release, strerrorname_np(error), paranoid);
    (void)snprintf(out->fix, sizeof out->fix,
                   "Linux 6.14 or newer; or as root: sysctl kernel.perf_event_paranoid=1; or grant CAP_PERFMON");
}

/* Fills *attr with an event that opens here and says how; it uses the kernel's filter if there is one. */
static void examine(struct pmu *pmu, struct perf_event_attr *attr, struct source_probe *out)
{
    if (!pmu_find(PMU, pmu)) {
        explain_absence(out);
        return;
    }
    address_attr_init(attr, pmu->type);
    attr->sample_type |= PERF_SAMPLE_RAW;
    attr->exclude_hv = 0; /* refused by kernels without the filter, and by the newest with it */
    attr->sample_period = DEFAULT_PERIOD;
    bool has_filter = pmu_has(pmu, "format/swfilt");
    if (pmu_set_term(pmu, "cnt_ctl", 1, attr, NULL) != 0 ||
        (has_filter && pmu_set_term(pmu, "swfilt", 1, attr, NULL) != 0)) {
        *out = (struct source_probe){.reason = "the kernel's description of ibs_op (format/cnt_ctl, format/swfilt) "
                                               "cannot be understood"};
        return;
    }
    attr->exclude_kernel = has_filter;
    address_probe(attr, out);
    if (out->works)
        (void)snprintf(out->reason, sizeof out->reason, "%s",
                       has_filter ? "ibs_op, user mode only by the kernel's filter (swfilt), no privileges needed"
                                  : "ibs_op; this kernel has no filter (swfilt): its own samples are taken too, and "
                                    "counted apart");
    else if (!has_filter && (out->error == EINVAL || out->error == EACCES))
        explain_unfiltered(out->error, out);
}

static void probe(struct source_probe *out)
{
    struct pmu pmu;
    struct perf_event_attr attr;
    examine(&pmu, &attr, out);
}

struct ibs_terms {
    uint64_t ldlat, l3missonly, large; /* 0: not given */
};

static int set_filter(const char *event, const struct pmu *pmu, const char *term, const char *since, uint64_t value,
                      struct perf_event_attr *attr, struct error *err)
{
    char file[64];
    (void)snprintf(file, sizeof file, "format/%s", term);
    if (!value)
        return 0;
    if (!pmu_has(pmu, file))
        return error_set(err, ERR_UNSUPPORTED, "%s: this machine has no filter '%s' (%s).", event, term, since);
    return pmu_set_term(pmu, term, value, attr, err);
}

static int apply_terms(const char *event, const struct pmu *pmu, struct ibs_terms *given, struct perf_event_attr *attr,
                       struct error *err)
{
    const struct source_term known[] = {{"ldlat", true, &given->ldlat},
                                        {"l3missonly", false, &given->l3missonly},
                                        {"large", false, &given->large},
                                        {NULL, false, NULL}};
    int status = source_parse_terms(event, known, err);
    if (status != 0)
        return status;
    if (given->ldlat && (given->ldlat < LDLAT_MIN || given->ldlat > LDLAT_MAX))
        return error_set(err, ERR_RANGE, "%s: the hardware takes an ldlat of %d to %d cycles.", event, LDLAT_MIN,
                         LDLAT_MAX);
    status = set_filter(event, pmu, "ldlat", "it came with Zen 5 and Linux 6.15", given->ldlat, attr, err);
    return status != 0 ? status
                       : set_filter(event, pmu, "l3missonly", "it came with Zen 4 and Linux 5.19", given->l3missonly,
                                    attr, err);
}

static void say_choice(const struct source_event *row, const struct ibs_terms *given, struct source_plan *out)
{
    char how_often[96], loads[96] = "";
    address_say_rate(&rate, row, how_often, sizeof how_often);
    if (given->ldlat)
        (void)snprintf(loads, sizeof loads, ", only loads whose cache miss takes %" PRIu64 " cycles or more",
                       given->ldlat);
    (void)snprintf(out->choice, sizeof out->choice, "IBS, %s%s%s%s%s%s", how_often,
                   given->ldlat || given->l3missonly ? "" : ", about a third of them loads and stores", loads,
                   given->l3missonly ? ", only what misses the L3 cache" : "",
                   row->attr.exclude_kernel ? "" : "; the kernel's samples are taken too",
                   given->large ? "; large buffers, no call paths, but the hardware has none of its own: each sample "
                                  "still interrupts"
                                : "; a signal and a call path for each sample");
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    struct pmu pmu;
    struct perf_event_attr attr;
    struct source_probe probed;
    struct ibs_terms given = {0};
    examine(&pmu, &attr, &probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "IBS cannot be sampled here: %s%s%s.", probed.reason,
                         probed.fix[0] ? "; " : "", probed.fix);
    int status = apply_terms(event, &pmu, &given, &attr, err);
    if (status != 0)
        return status;
    struct source_event *row = address_plan_add(out, event, "IBS-OP", &attr, err);
    if (!row)
        return ERR_RANGE;
    row->decode = MEM_DECODE_IBS_RAW;
    (void)snprintf(row->description, sizeof row->description, "Operations of AMD instruction-based sampling%s",
                   attr.exclude_kernel ? ", user mode" : "");
    struct address_rate used = rate;
    if (given.ldlat || given.l3missonly)
        used.period = FILTERED_PERIOD;
    if (given.large)
        address_set_large(row);
    status = address_set_rate(&used, event, threshold, row, out, err);
    if (status == 0)
        say_choice(row, &given, out);
    return status;
}

const struct sample_source source_ibs = {
    .name = "IBS",
    .summary = "Loads and stores by data address, from AMD hardware (terms: ldlat=N, l3missonly, large)",
    .datacentric_rank = 100,
    .takes_terms = true,
    .probe = probe,
    .plan = plan,
};
