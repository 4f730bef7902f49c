/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of perf events; see perf-names.h. Ordinary code of the launcher. */
#include "sampling/perf-names.h"

#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

/* Cuts the suffix :p, :pp or :ppp off and returns its number of p. */
static unsigned cut_precision(char *name)
{
    char *colon = strrchr(name, ':');
    if (!colon)
        return 0;
    size_t n = strspn(colon + 1, "p");
    if (n == 0 || n > 3 || colon[1 + n])
        return 0;
    *colon = '\0';
    return (unsigned)n;
}

bool perf_name_encode(const char *name, struct perf_event_attr *attr)
{
    char plain[256];
    struct perf_event_attr found = {.size = sizeof found};
    pfm_perf_encode_arg_t argument = {.attr = &found, .size = sizeof argument};
    (void)snprintf(plain, sizeof plain, "%s", name);
    unsigned precision = cut_precision(plain);
    if (pfm_initialize() != PFM_SUCCESS ||
        pfm_get_os_event_encoding(plain, PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &argument) != PFM_SUCCESS)
        return false;
    attr->type = found.type;
    attr->config = found.config;
    attr->config1 = found.config1;
    attr->config2 = found.config2;
    attr->exclude_user = found.exclude_user;
    attr->exclude_kernel = found.exclude_kernel;
    attr->exclude_hv = found.exclude_hv;
    attr->precise_ip = precision & 3;
    return true;
}

static bool is_counter(const pfm_pmu_info_t *unit)
{
    return unit->is_present && unit->pmu != PFM_PMU_PERF_EVENT && unit->pmu != PFM_PMU_PERF_EVENT_RAW;
}

static unsigned visit_unit(pfm_pmu_t pmu, void (*visit)(const char *name, const char *summary, void *ctx), void *ctx)
{
    unsigned n = 0;
    pfm_pmu_info_t unit = {.size = sizeof unit};
    if (pfm_get_pmu_info(pmu, &unit) != PFM_SUCCESS || !is_counter(&unit))
        return 0;
    for (int i = unit.first_event; i != -1; i = pfm_get_event_next(i)) {
        char name[256];
        pfm_event_info_t event = {.size = sizeof event};
        if (pfm_get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS)
            continue;
        (void)snprintf(name, sizeof name, "%s::%s", unit.name, event.name);
        visit(name, event.desc ? event.desc : "", ctx);
        n++;
    }
    return n;
}

unsigned perf_name_visit(void (*visit)(const char *name, const char *summary, void *ctx), void *ctx)
{
    unsigned n = 0;
    if (pfm_initialize() != PFM_SUCCESS)
        return 0;
    for (int pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++)
        n += visit_unit((pfm_pmu_t)pmu, visit, ctx);
    return n;
}
