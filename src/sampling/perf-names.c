/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of perf events; see perf-names.h. Ordinary code of the launcher. */
#include "sampling/perf-names.h"

#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sampling/machine.h"
#include "sampling/pfm-models.h"

const struct perf_name *perf_name_table(void)
{
    static const struct perf_name table[] = {
        {"task-clock", NULL, "CPU time of the thread, ns", PERF_COUNT_SW_TASK_CLOCK, 1000000, false},
        {"cpu-clock", NULL, "time on a CPU, ns", PERF_COUNT_SW_CPU_CLOCK, 1000000, false},
        {"page-faults", "faults", "page faults", PERF_COUNT_SW_PAGE_FAULTS, 0, false},
        {"minor-faults", NULL, "page faults served from memory", PERF_COUNT_SW_PAGE_FAULTS_MIN, 0, false},
        {"major-faults", NULL, "page faults served from a disk", PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, false},
        {"context-switches", "cs", "context switches", PERF_COUNT_SW_CONTEXT_SWITCHES, 1, true},
        {"cpu-migrations", "migrations", "moves to another CPU", PERF_COUNT_SW_CPU_MIGRATIONS, 1, true},
        {"alignment-faults", NULL, "unaligned accesses handled by the kernel", PERF_COUNT_SW_ALIGNMENT_FAULTS, 1,
         false},
        {"emulation-faults", NULL, "instructions emulated by the kernel", PERF_COUNT_SW_EMULATION_FAULTS, 1, false},
        {NULL, NULL, NULL, 0, 0, false},
    };
    return table;
}

const struct perf_name *perf_name_find(const char *name)
{
    for (const struct perf_name *row = perf_name_table(); row->name; row++)
        if (!strcasecmp(row->name, name) || (row->alias && !strcasecmp(row->alias, name)))
            return row;
    return NULL;
}

const struct perf_name *perf_name_of_config(uint64_t config)
{
    for (const struct perf_name *row = perf_name_table(); row->name; row++)
        if (row->config == config)
            return row;
    return NULL;
}

/* libpfm4 must know before it starts whether it may encode events of other CPUs than the running one. */
static bool start_pfm(void)
{
    static bool was_fixture;
    if (was_fixture != machine_is_fixture()) {
        pfm_terminate();
        was_fixture = machine_is_fixture();
        if (was_fixture)
            (void)setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
        else
            (void)unsetenv("LIBPFM_ENCODE_INACTIVE");
    }
    return pfm_initialize() == PFM_SUCCESS;
}

/* PFM_SUCCESS, or why not. */
static int encode(const char *name, struct perf_event_attr *found)
{
    pfm_perf_encode_arg_t argument = {.attr = found, .size = sizeof argument};
    *found = (struct perf_event_attr){.size = sizeof *found};
    return pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &argument);
}

/* The running CPU's tables say nothing about a fixture: a name without a PMU belongs to the fixture's CPU or kernel. */
static int encode_for_fixture(const char *name, struct perf_event_attr *found)
{
    int status = PFM_ERR_NOTFOUND;
    char whole[320];
    struct machine_cpu cpu;
    machine_cpu(&cpu);
    const char *const tables[] = {pfm_model_of(&cpu), "perf"};
    if (strstr(name, "::"))
        return encode(name, found);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == PFM_ERR_NOTFOUND; i++) {
        if (!tables[i])
            continue;
        (void)snprintf(whole, sizeof whole, "%s::%s", tables[i], name);
        status = encode(whole, found);
    }
    return status;
}

enum perf_name_status perf_name_encode(const char *name, struct perf_event_attr *attr)
{
    struct perf_event_attr found;
    if (!start_pfm())
        return PERF_NAME_UNKNOWN;
    int status = machine_is_fixture() ? encode_for_fixture(name, &found) : encode(name, &found);
    if (status == PFM_ERR_UMASK)
        return PERF_NAME_INCOMPLETE;
    if (status != PFM_SUCCESS)
        return PERF_NAME_UNKNOWN;
    attr->type = found.type;
    attr->config = found.config;
    attr->config1 = found.config1;
    attr->config2 = found.config2;
    attr->exclude_user = found.exclude_user;
    attr->exclude_kernel = found.exclude_kernel;
    attr->exclude_hv |= found.exclude_hv;
    if (strstr(name, ":mg") || strstr(name, ":mh")) { /* without them libpfm4 has a default of its own */
        attr->exclude_guest = found.exclude_guest;
        attr->exclude_host = found.exclude_host;
    }
    attr->precise_ip = found.precise_ip;
    attr->pinned |= found.pinned;
    attr->exclusive |= found.exclusive;
    return PERF_NAME_ENCODED;
}

/* The tables of counters that hold here: those that libpfm4 detected, or the one of the fixture's CPU. */
static bool is_counter(const pfm_pmu_info_t *unit)
{
    struct machine_cpu cpu;
    if (unit->pmu == PFM_PMU_PERF_EVENT || unit->pmu == PFM_PMU_PERF_EVENT_RAW)
        return false;
    if (!machine_is_fixture())
        return unit->is_present;
    machine_cpu(&cpu);
    const char *model = pfm_model_of(&cpu);
    return model && !strcmp(model, unit->name);
}

struct name_visitor {
    bool with_parts;
    void (*visit)(const char *name, const char *summary, void *ctx);
    void *ctx;
};

static void visit_parts(const char *event_name, const pfm_event_info_t *event, const struct name_visitor *visitor)
{
    char name[320];
    for (int i = 0; i < event->nattrs; i++) {
        pfm_event_attr_info_t part = {.size = sizeof part};
        if (pfm_get_event_attr_info(event->idx, i, PFM_OS_PERF_EVENT_EXT, &part) != PFM_SUCCESS ||
            part.type != PFM_ATTR_UMASK)
            continue;
        (void)snprintf(name, sizeof name, "%s:%s", event_name, part.name);
        visitor->visit(name, part.desc ? part.desc : "", visitor->ctx);
    }
}

/* The kernel's table has every event twice, and software events and tracepoints, which are listed elsewhere. */
static bool is_listed(const pfm_pmu_info_t *unit, const char *event)
{
    struct perf_event_attr attr = {.size = sizeof attr};
    if (unit->pmu != PFM_PMU_PERF_EVENT)
        return true;
    return strncmp(event, "PERF_COUNT_", 11) != 0 && perf_name_encode(event, &attr) == PERF_NAME_ENCODED &&
           (attr.type == PERF_TYPE_HARDWARE || attr.type == PERF_TYPE_HW_CACHE);
}

static void visit_unit(const pfm_pmu_info_t *unit, const struct name_visitor *visitor)
{
    for (int i = unit->first_event; i != -1; i = pfm_get_event_next(i)) {
        char name[256];
        pfm_event_info_t event = {.size = sizeof event};
        if (pfm_get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS || !is_listed(unit, event.name))
            continue;
        (void)snprintf(name, sizeof name, "%s::%s", unit->name, event.name);
        visitor->visit(name, event.desc ? event.desc : "", visitor->ctx);
        if (visitor->with_parts && unit->pmu != PFM_PMU_PERF_EVENT)
            visit_parts(name, &event, visitor);
    }
}

void perf_table_visit(void (*visit)(const struct perf_table *table, void *ctx), void *ctx)
{
    static const struct perf_table generic = {"perf", "Hardware events that the kernel knows on every CPU"};
    if (!start_pfm())
        return;
    visit(&generic, ctx);
    for (int pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
        pfm_pmu_info_t unit = {.size = sizeof unit};
        if (pfm_get_pmu_info((pfm_pmu_t)pmu, &unit) != PFM_SUCCESS || !is_counter(&unit))
            continue;
        const struct perf_table table = {unit.name, unit.desc};
        visit(&table, ctx);
    }
}

void perf_table_visit_events(const char *table, bool with_parts,
                             void (*visit)(const char *name, const char *summary, void *ctx), void *ctx)
{
    const struct name_visitor visitor = {with_parts, visit, ctx};
    for (int pmu = PFM_PMU_NONE; start_pfm() && pmu < PFM_PMU_MAX; pmu++) {
        pfm_pmu_info_t unit = {.size = sizeof unit};
        if (pfm_get_pmu_info((pfm_pmu_t)pmu, &unit) == PFM_SUCCESS && !strcmp(unit.name, table))
            visit_unit(&unit, &visitor);
    }
}
