/* SPDX-License-Identifier: BSD-3-Clause */
/* SPE: loads and stores by data address, from Arm's statistical profiling extension. The size of AUX areas, and the
 * source; see probe.h. Ordinary code of the launcher. */
#include "sampling/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampling/abi/data-src.h"
#include "sampling/abi/spe.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"

#define AUX_PAGES_MAX 32
#define AUX_PAGES_MIN 4
#define AUX_BYTES_MAX (UINT64_C(1) << 20)
#define RING_PAGES 2   /* control and data page for each AUX area ... */
#define FAULTS_PAGES 2 /* ... and those of FAULTS */
#define MLOCK_KB_DEFAULT 516
#define CAP_IPC_LOCK_BIT 14

/* The text after key in a file of "key value" lines; false when there is none. */
static bool find_line(const char *path, const char *key, char *value, size_t n_value)
{
    char text[4096];
    const char *at = machine_read(path, text, sizeof text) ? strstr(text, key) : NULL;
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    (void)snprintf(value, n_value, "%.*s", (int)strcspn(at, " \t\n"), at);
    return true;
}

static uint64_t read_page_bytes(void)
{
    char text[32];
    if (machine_is_fixture() && find_line("/proc/self/smaps", "KernelPageSize:", text, sizeof text))
        return strtoull(text, NULL, 10) * 1024;
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Number of CPUs in a list such as 0-3,8,10-11. */
static unsigned count_cpus(const char *list)
{
    unsigned n = 0;
    while (*list) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (end == list)
            return n;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        n += last >= first ? (unsigned)(last - first + 1) : 0;
        list = end + (*end == ',');
    }
    return n;
}

void aux_limits_read(struct aux_limits *limits)
{
    char text[256];
    *limits =
        (struct aux_limits){.page_bytes = read_page_bytes(), .n_cpus = 1, .n_areas = 1, .memlock_bytes = UINT64_MAX};
    long mlock_kb = machine_read_number("/proc/sys/kernel/perf_event_mlock_kb", MLOCK_KB_DEFAULT);
    limits->mlock_kb = mlock_kb > 0 ? (uint64_t)mlock_kb : 0;
    if (machine_read("/sys/devices/system/cpu/online", text, sizeof text) && count_cpus(text) > 0)
        limits->n_cpus = count_cpus(text);
    if (find_line("/proc/self/limits", "Max locked memory", text, sizeof text) && strcmp(text, "unlimited") != 0)
        limits->memlock_bytes = strtoull(text, NULL, 10);
    limits->is_unlimited = machine_read_number("/proc/sys/kernel/perf_event_paranoid", 2) < 0;
    if (find_line("/proc/self/status", "CapEff:", text, sizeof text))
        limits->is_unlimited |= (strtoull(text, NULL, 16) >> CAP_IPC_LOCK_BIT & 1) != 0;
}

static uint64_t thread_bytes(const struct aux_limits *limits, uint64_t aux_bytes)
{
    return limits->n_areas * (aux_bytes + RING_PAGES * limits->page_bytes) + FAULTS_PAGES * limits->page_bytes;
}

static uint64_t allowed_bytes(const struct aux_limits *limits)
{
    if (limits->is_unlimited || limits->memlock_bytes == UINT64_MAX)
        return UINT64_MAX;
    return limits->mlock_kb * 1024 * limits->n_cpus + limits->memlock_bytes;
}

void aux_size_choose(const struct aux_limits *limits, struct aux_size *size)
{
    uint64_t allowed = allowed_bytes(limits), least = AUX_PAGES_MIN * limits->page_bytes;
    uint64_t most =
        limits->hardware_bytes && limits->hardware_bytes < AUX_BYTES_MAX ? limits->hardware_bytes : AUX_BYTES_MAX;
    uint64_t aux_bytes = AUX_PAGES_MAX * limits->page_bytes;
    while (aux_bytes > least && (aux_bytes > most || thread_bytes(limits, aux_bytes) > allowed / limits->n_cpus))
        aux_bytes /= 2;
    bool fits = thread_bytes(limits, aux_bytes) <= allowed;
    *size = (struct aux_size){
        .aux_bytes = fits ? (uint32_t)aux_bytes : 0,
        .ring_bytes = (uint32_t)limits->page_bytes,
        .needed_bytes = thread_bytes(limits, least),
        .allowed_bytes = allowed,
        .n_threads = allowed == UINT64_MAX ? UINT64_MAX : allowed / thread_bytes(limits, aux_bytes),
    };
}

/* --- the source --- */

/* SPE: Arm's statistical profiling extension. The hardware writes records of sampled loads and stores into an AUX area
 * of each thread; the thread's handler reads them when half of it is full. Machines with different kinds of cores have
 * a unit for each kind, and there is an event for each unit. Ordinary code of the launcher. */

#define PMU_PREFIX "arm_spe_"
#define UNITS_MAX 4
#define DECODE_SHIFT 8 /* EVENT_DECODE_SHIFT of arena/arena.h */
#define DEFAULT_PERIOD 4096
#define INTERVAL_STEP 256 /* PMSIRR_EL1.INTERVAL leaves the lowest 8 bits out */
#define INTERVAL_MAX UINT64_C(0xffffff00)

struct spe_units {
    unsigned n;
    struct pmu units[UNITS_MAX];
};

static bool take_unit(const struct pmu *pmu, void *ctx)
{
    struct spe_units *units = ctx;
    if (!strncmp(pmu->name, PMU_PREFIX, strlen(PMU_PREFIX)) && units->n < UNITS_MAX)
        units->units[units->n++] = *pmu;
    return true;
}

/* The driver does not say why there is no unit; the kernel's documents list the causes.
 * src: tools/perf/Documentation/perf-arm-spe.txt, "Kernel Requirements" */
static void explain_absence(struct source_probe *out)
{
    struct machine_cpu cpu;
    machine_cpu(&cpu);
    *out = (struct source_probe){.is_foreign = cpu.vendor != CPU_ARM};
    if (out->is_foreign) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "the statistical profiling extension is Arm's, this is another processor");
    } else if (cpu.has_kpti) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "no PMU arm_spe_0: the kernel isolates its page tables (KPTI; vulnerabilities/meltdown says "
                       "PTI), and then its driver refuses the unit");
        (void)snprintf(out->fix, sizeof out->fix,
                       "kpti=off on the kernel's command line, where that is acceptable (dmesg says: profiling buffer "
                       "inaccessible)");
    } else if (cpu.is_virtual) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "this virtual machine has no statistical profiling extension (no PMU arm_spe_0)");
        (void)snprintf(out->fix, sizeof out->fix,
                       "a machine without hypervisor, or one that passes it on; FAULTS needs none");
    } else {
        (void)snprintf(out->reason, sizeof out->reason, "the kernel shows no PMU arm_spe_0");
        (void)snprintf(
            out->fix, sizeof out->fix,
            "as root: modprobe arm_spe_pmu; if the PMU does not appear, the processor has no such unit, the firmware "
            "does not describe its interrupt, or this is a virtual machine without it");
    }
}

static uint64_t read_cap(const struct pmu *pmu, const char *file)
{
    char text[32];
    unsigned long long value = 0;
    if (pmu_read(pmu, file, text, sizeof text))
        (void)sscanf(text, "%llu", &value);
    return value;
}

/* First CPU of the unit; 0 when it is not known. */
static unsigned first_cpu(const struct pmu *pmu)
{
    unsigned cpu = 0;
    return sscanf(pmu->cpus, "%u", &cpu) == 1 ? cpu : 0;
}

/* The encoding of data source packets of the unit's CPUs: from the main identification register, else from
 * /proc/cpuinfo.
 * src: Arm, Ampere: technical reference manuals; the list of CPUs that share Arm's encoding is perf's */
static enum spe_sources find_encoding(const struct pmu *pmu)
{
    static const uint16_t arm_parts[] = {0xd0c, 0xd40, 0xd49, 0xd4c, 0xd4e, 0xd4f, 0xd81, 0xd85, 0xd87};
    char path[96];
    struct machine_cpu cpu;
    machine_cpu(&cpu);
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/regs/identification/midr_el1", first_cpu(pmu));
    long midr = machine_read_number(path, 0);
    unsigned implementer = midr ? (unsigned)midr >> 24 & 0xff : cpu.implementer;
    unsigned part = midr ? (unsigned)midr >> 4 & 0xfff : cpu.part;
    if (implementer == 0xc0 && (part == 0xac3 || part == 0xac4))
        return SPE_SOURCES_AMPERE;
    for (size_t i = 0; implementer == 0x41 && i < sizeof arm_parts / sizeof *arm_parts; i++)
        if (part == arm_parts[i])
            return SPE_SOURCES_NEOVERSE;
    return SPE_SOURCES_COMMON;
}

static void choose_aux(const struct spe_units *units, struct aux_limits *limits, struct aux_size *size)
{
    aux_limits_read(limits);
    limits->n_areas = units->n;
    limits->hardware_bytes = read_cap(&units->units[0], "caps/max_buff_size");
    aux_size_choose(limits, size);
}

/* Fills *attr for one unit: loads and stores in user mode, with jitter and time stamps. Physical addresses and physical
 * time need privileges and are of no use to us. err: the kernel's format directory lacks a term */
static int fill_attr(const struct pmu *pmu, const struct aux_size *size, struct perf_event_attr *attr,
                     struct error *err)
{
    static const char *const terms[] = {"ts_enable", "jitter", "load_filter", "store_filter"};
    source_attr_init(attr, pmu->type, 0);
    attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr->write_backward = 0; /* its records say where in the AUX area to read, so each is needed */
    attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    attr->sample_period = DEFAULT_PERIOD;
    attr->aux_watermark = size->aux_bytes / 2;
    int status = 0;
    for (size_t i = 0; status == 0 && i < sizeof terms / sizeof *terms; i++)
        status = pmu_set_term(pmu, terms[i], 1, attr, err);
    return status;
}

static void explain_memory(const struct aux_limits *limits, const struct aux_size *size, struct source_probe *out)
{
    *out = (struct source_probe){.works = false};
    (void)snprintf(out->reason, sizeof out->reason,
                   "a thread's buffers take at least %" PRIu64 " KiB of locked memory; %" PRIu64 " KiB are allowed "
                   "(kernel.perf_event_mlock_kb %" PRIu64 " for each of %u CPUs, and ulimit -l %" PRIu64 " KiB)",
                   size->needed_bytes / 1024, size->allowed_bytes / 1024, limits->mlock_kb, limits->n_cpus,
                   limits->memlock_bytes / 1024);
    (void)snprintf(out->fix, sizeof out->fix,
                   "as root: sysctl kernel.perf_event_mlock_kb=%" PRIu64 " (the kernel's own default); or raise ulimit "
                   "-l",
                   512 + limits->page_bytes / 1024);
}

static void say_working(const struct spe_units *units, const struct aux_size *size, struct source_probe *out)
{
    size_t len = 0;
    char threads[64] = "any number of";
    for (unsigned i = 0; i < units->n && len < sizeof out->reason; i++)
        len += (size_t)snprintf(out->reason + len, sizeof out->reason - len, "%s%s%s%s", i ? ", " : "",
                                units->units[i].name, units->units[i].cpus[0] ? " on CPUs " : "", units->units[i].cpus);
    if (size->n_threads != UINT64_MAX)
        (void)snprintf(threads, sizeof threads, "%" PRIu64, size->n_threads);
    if (len < sizeof out->reason)
        (void)snprintf(out->reason + len, sizeof out->reason - len,
                       ": user mode, one sample every %" PRIu64 " operations or more; AUX area of %u KiB, locked "
                       "memory for %s threads",
                       read_cap(&units->units[0], "caps/min_interval"), size->aux_bytes / 1024, threads);
}

static void probe_units(struct spe_units *units, struct aux_size *size, struct source_probe *out)
{
    struct perf_event_attr attr;
    struct aux_limits limits;
    struct error err;
    *units = (struct spe_units){0};
    pmu_visit(take_unit, units);
    if (units->n == 0) {
        explain_absence(out);
        return;
    }
    choose_aux(units, &limits, size);
    if (size->aux_bytes == 0) {
        explain_memory(&limits, size, out);
        return;
    }
    if (fill_attr(&units->units[0], size, &attr, &err) != 0) {
        *out = (struct source_probe){.works = false};
        (void)snprintf(out->reason, sizeof out->reason, "%.500s", err.text);
        return;
    }
    source_probe_perf(&attr, false, out);
    if (out->works)
        say_working(units, size, out);
}

static void probe(struct source_probe *out)
{
    struct spe_units units;
    struct aux_size size;
    probe_units(&units, &size, out);
}

/* Applies filters of the hardware that the user may give. */
static int apply_terms(const char *event, const struct pmu *pmu, struct perf_event_attr *attr, struct error *err)
{
    static const char *const names[] = {"min_latency", "event_filter", "inv_event_filter"};
    uint64_t values[] = {0, 0, 0};
    const struct source_term known[] = {
        {names[0], true, &values[0]}, {names[1], true, &values[1]}, {names[2], true, &values[2]}, {NULL, false, NULL}};
    int status = source_parse_terms(event, known, err);
    for (size_t i = 0; status == 0 && i < sizeof names / sizeof *names; i++) {
        char file[64];
        (void)snprintf(file, sizeof file, "format/%s", names[i]);
        if (values[i] && !pmu_has(pmu, file))
            return error_set(err, ERR_UNSUPPORTED, "%s: this machine has no filter '%s' (%s/%s).", event, names[i],
                             pmu->name, file);
        if (values[i])
            status = pmu_set_term(pmu, names[i], values[i], attr, err);
    }
    return status;
}

static int plan_unit(const char *event, const struct source_threshold *threshold, const struct pmu *pmu, bool is_only,
                     const struct aux_size *size, struct source_plan *out, struct error *err)
{
    char metric[sizeof out->events[0].metric] = "SPE";
    struct perf_event_attr attr;
    uint64_t min_interval = read_cap(pmu, "caps/min_interval");
    const struct address_rate rate = {
        .period = min_interval > DEFAULT_PERIOD ? min_interval : DEFAULT_PERIOD,
        .period_min = min_interval > INTERVAL_STEP ? min_interval : INTERVAL_STEP,
        .period_max = INTERVAL_MAX,
        .period_step = INTERVAL_STEP,
        .unit = "operations",
        .is_fixed = true,
    };
    int status = fill_attr(pmu, size, &attr, err);
    if (status == 0)
        status = apply_terms(event, pmu, &attr, err);
    if (status != 0)
        return status;
    if (!is_only)
        (void)snprintf(metric, sizeof metric, "SPE (%.40s)", pmu->name);
    struct source_event *row = address_plan_add(out, event, metric, &attr, err);
    if (!row)
        return ERR_RANGE;
    row->flags |= SOURCE_AUX | SOURCE_BATCH;
    row->decode = MEM_DECODE_SPE | (uint32_t)find_encoding(pmu) << DECODE_SHIFT;
    row->aux_bytes = size->aux_bytes;
    row->ring_bytes = size->ring_bytes;
    (void)snprintf(row->description, sizeof row->description,
                   "Loads and stores of Arm's statistical profiling extension, user mode%s%.100s",
                   is_only || !pmu->cpus[0] ? "" : ", on CPUs ", is_only ? "" : pmu->cpus);
    return address_set_rate(&rate, event, threshold, row, out, err);
}

static int plan(const char *event, const struct source_threshold *threshold, struct source_plan *out, struct error *err)
{
    struct spe_units units;
    struct aux_size size;
    struct source_probe probed;
    probe_units(&units, &size, &probed);
    if (!probed.works)
        return error_set(err, ERR_UNSUPPORTED, "SPE cannot be sampled here: %s%s%s.", probed.reason,
                         probed.fix[0] ? "; " : "", probed.fix);
    int status = 0;
    uint32_t first = out->n_events;
    for (unsigned i = 0; status == 0 && i < units.n; i++)
        status = plan_unit(event, threshold, &units.units[i], units.n == 1, &size, out, err);
    if (status == 0)
        (void)snprintf(out->choice, sizeof out->choice,
                       "SPE, one operation in %" PRIu64 " sampled, its record kept if it is a load or store; "
                       "records gathered in %u KiB per thread, no call paths",
                       (uint64_t)out->events[first].attr.sample_period, size.aux_bytes / 1024);
    return status;
}

const struct sample_source source_spe = {
    .name = "SPE",
    .summary = "Loads and stores by data address, from Arm hardware (terms: min_latency=N, event_filter=N)",
    .datacentric_rank = 100,
    .takes_terms = true,
    .probe = probe,
    .plan = plan,
};
