/* SPDX-License-Identifier: BSD-3-Clause */
/* libpfm4's names of CPU models and of events; see perf-names.h.  src: libpfm4's manual pages, and the vendors' lists
 * of family and model numbers. */
#include "sampling/perf-names.h"

#include <ctype.h>
#include <dlfcn.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sampling/machine.h"

#define INTEL_FAMILY 6

struct model_row {
    unsigned first, last; /* model numbers, or family << 8 | model, or POWER version, or part of Arm */
    const char *name;
};

static const char *find(const struct model_row *rows, unsigned number)
{
    for (; rows->name; rows++)
        if (number >= rows->first && number <= rows->last)
            return rows->name;
    return NULL;
}

static const char *intel(const struct machine_cpu *cpu)
{
    static const struct model_row rows[] = {
        {0x1a, 0x1a, "nhm"},     {0x1e, 0x1f, "nhm"},    {0x2e, 0x2e, "nhm_ex"}, {0x25, 0x25, "wsm"},
        {0x2c, 0x2c, "wsm_dp"},  {0x2f, 0x2f, "wsm_dp"}, {0x2a, 0x2a, "snb"},    {0x2d, 0x2d, "snb_ep"},
        {0x3a, 0x3a, "ivb"},     {0x3e, 0x3e, "ivb_ep"}, {0x3c, 0x3c, "hsw"},    {0x45, 0x46, "hsw"},
        {0x3f, 0x3f, "hsw_ep"},  {0x3d, 0x3d, "bdw"},    {0x47, 0x47, "bdw"},    {0x4f, 0x4f, "bdw_ep"},
        {0x56, 0x56, "bdw_ep"},  {0x4e, 0x4e, "skl"},    {0x5e, 0x5e, "skl"},    {0x8e, 0x8e, "skl"},
        {0x9e, 0x9e, "skl"},     {0xa5, 0xa6, "skl"},    {0x57, 0x57, "knl"},    {0x85, 0x85, "knm"},
        {0x37, 0x37, "slm"},     {0x4d, 0x4d, "slm"},    {0x5c, 0x5c, "glm"},    {0x5f, 0x5f, "glm"},
        {0x7a, 0x7a, "glm"},     {0x86, 0x86, "tmt"},    {0x96, 0x96, "tmt"},    {0x7d, 0x7e, "icl"},
        {0xa7, 0xa7, "icl"},     {0x8c, 0x8d, "icl"},    {0x6a, 0x6a, "icx"},    {0x6c, 0x6c, "icx"},
        {0x8f, 0x8f, "spr"},     {0xcf, 0xcf, "emr"},    {0xad, 0xae, "gnr"},    {0x97, 0x97, "adl_glc"},
        {0x9a, 0x9a, "adl_glc"}, {0, 0, NULL},
    };
    if (cpu->family != INTEL_FAMILY)
        return NULL;
    if (cpu->model == 0x55) /* Skylake and Cascade Lake share a number */
        return cpu->stepping >= 5 ? "clx" : "skx";
    return find(rows, cpu->model);
}

static const char *amd(const struct machine_cpu *cpu)
{
    static const struct model_row rows[] = {
        {0x1002, 0x1003, "amd64_fam10h_barcelona"},
        {0x1004, 0x1007, "amd64_fam10h_shanghai"},
        {0x1008, 0x100a, "amd64_fam10h_istanbul"},
        {0x1100, 0x11ff, "amd64_fam11h_turion"},
        {0x1200, 0x12ff, "amd64_fam12h_llano"},
        {0x1400, 0x14ff, "amd64_fam14h_bobcat"},
        {0x1500, 0x15ff, "amd64_fam15h_interlagos"},
        {0x1600, 0x16ff, "amd64_fam16h"},
        {0x1700, 0x172f, "amd64_fam17h_zen1"},
        {0x1730, 0x17ff, "amd64_fam17h_zen2"},
        {0x1910, 0x191f, "amd64_fam19h_zen4"},
        {0x1960, 0x19af, "amd64_fam19h_zen4"},
        {0x1900, 0x19ff, "amd64_fam19h_zen3"},
        {0x1a00, 0x1aff, "amd64_fam1ah_zen5"},
        {0, 0, NULL},
    };
    return cpu->model > 0xff ? NULL : find(rows, cpu->family << 8 | cpu->model);
}

static const char *power(const struct machine_cpu *cpu)
{
    static const struct model_row rows[] = {
        {0x3e, 0x3e, "power6"}, {0x3f, 0x3f, "power7"},  {0x4a, 0x4a, "power7"},  {0x4b, 0x4d, "power8"},
        {0x4e, 0x4e, "power9"}, {0x80, 0x80, "power10"}, {0x82, 0x82, "power11"}, {0, 0, NULL},
    };
    return find(rows, cpu->pvr);
}

static const char *arm(const struct machine_cpu *cpu)
{
    static const struct model_row rows[] = {
        {0x41d0c, 0x41d0c, "arm_n1"},
        {0x41d40, 0x41d40, "arm_v1"},
        {0x41d49, 0x41d49, "arm_n2"},
        {0x41d4f, 0x41d4f, "arm_v2"},
        {0x41d8e, 0x41d8e, "arm_n3"},
        {0x41d84, 0x41d84, "arm_v3"},
        {0x41d08, 0x41d08, "arm_ac72"},
        {0x46001, 0x46001, "arm_a64fx"},
        {0x48d01, 0x48d01, "arm_hisilicon_kunpeng"},
        {0, 0, NULL},
    };
    return find(rows, cpu->implementer << 12 | cpu->part);
}

/* Name of libpfm4's table ("spr"); NULL for a CPU that is not known. The installed libpfm4 may lack it. Static. */
static const char *pfm_model_of(const struct machine_cpu *cpu)
{
    switch (cpu->vendor) {
    case CPU_INTEL:
        return intel(cpu);
    case CPU_AMD:
        return amd(cpu);
    case CPU_POWER:
        return power(cpu);
    case CPU_ARM:
        return arm(cpu);
    default:
        return NULL;
    }
}

/* --- names of events --- */

/* Names of perf events; see perf-names.h. Ordinary code of the launcher. */

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

/* libpfm4 is loaded when a name is asked of it: its tables have forty thousand addresses that the loader has to set,
 * which took a tenth of hpcrun's whole start, and the default events need none of them. */
static struct {
    bool is_tried, is_there;
    __typeof__(pfm_initialize) *initialize;
    __typeof__(pfm_terminate) *terminate;
    __typeof__(pfm_get_os_event_encoding) *get_os_event_encoding;
    __typeof__(pfm_get_event_attr_info) *get_event_attr_info;
    __typeof__(pfm_get_event_next) *get_event_next;
    __typeof__(pfm_get_event_info) *get_event_info;
    __typeof__(pfm_get_pmu_info) *get_pmu_info;
} pfm;

static bool load_pfm(void)
{
    static const struct {
        const char *name;
        void *function; /* a pointer to one */
    } wanted[] = {
        {"pfm_initialize", &pfm.initialize},
        {"pfm_terminate", &pfm.terminate},
        {"pfm_get_os_event_encoding", &pfm.get_os_event_encoding},
        {"pfm_get_event_attr_info", &pfm.get_event_attr_info},
        {"pfm_get_event_next", &pfm.get_event_next},
        {"pfm_get_event_info", &pfm.get_event_info},
        {"pfm_get_pmu_info", &pfm.get_pmu_info},
    };
    if (pfm.is_tried)
        return pfm.is_there;
    pfm.is_tried = true;
    void *library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
    pfm.is_there = library != NULL;
    for (size_t i = 0; pfm.is_there && i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(library, wanted[i].name);
        memcpy(wanted[i].function, &found, sizeof found);
        pfm.is_there = found != NULL;
    }
    return pfm.is_there;
}

const char *perf_names_obstacle(void)
{
    return load_pfm() ? NULL : "libpfm4 (libpfm.so.4), which knows the names of processors' events, cannot be loaded";
}

/* libpfm4 must be told before it starts whether it may encode events of CPUs other than the running one. */
static bool start_pfm(void)
{
    static bool was_fixture;
    if (!load_pfm())
        return false;
    if (was_fixture != machine_is_fixture()) {
        pfm.terminate();
        was_fixture = machine_is_fixture();
        if (was_fixture)
            (void)setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
        else
            (void)unsetenv("LIBPFM_ENCODE_INACTIVE");
    }
    return pfm.initialize() == PFM_SUCCESS;
}

/* Returns PFM_SUCCESS or libpfm4's error. */
static int encode(const char *name, struct perf_event_attr *found)
{
    pfm_perf_encode_arg_t argument = {.attr = found, .size = sizeof argument};
    *found = (struct perf_event_attr){.size = sizeof *found};
    return pfm.get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &argument);
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

#define FP "FP_ARITH_INST_RETIRED:"
#define DP_OPS                                                                                                         \
    FP "SCALAR_DOUBLE + 2 * " FP "128B_PACKED_DOUBLE + 4 * " FP "256B_PACKED_DOUBLE + 8 * " FP "512B_PACKED_DOUBLE"
#define SP_OPS                                                                                                         \
    FP "SCALAR_SINGLE + 4 * " FP "128B_PACKED_SINGLE + 8 * " FP "256B_PACKED_SINGLE + 16 * " FP "512B_PACKED_SINGLE"

/* PAPI's presets: an event of the same meaning, or a formula of several; the first row whose events this machine knows
 * counts.  src: PAPI's documentation of its presets; Intel's and AMD's descriptions of their events */
static const struct preset {
    const char *papi, *formula;
} presets[] = {
    {"TOT_CYC", "perf::PERF_COUNT_HW_CPU_CYCLES"},
    {"TOT_INS", "perf::PERF_COUNT_HW_INSTRUCTIONS"},
    {"REF_CYC", "perf::PERF_COUNT_HW_REF_CPU_CYCLES"},
    {"BR_INS", "perf::PERF_COUNT_HW_BRANCH_INSTRUCTIONS"},
    {"BR_MSP", "perf::PERF_COUNT_HW_BRANCH_MISSES"},
    {"RES_STL", "perf::PERF_COUNT_HW_STALLED_CYCLES_BACKEND"},
    {"STL_ICY", "perf::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND"},
    {"LD_INS", "perf::PERF_COUNT_HW_CACHE_L1D:READ:ACCESS"},
    {"SR_INS", "perf::PERF_COUNT_HW_CACHE_L1D:WRITE:ACCESS"},
    {"L1_DCR", "perf::PERF_COUNT_HW_CACHE_L1D:READ:ACCESS"},
    {"L1_DCW", "perf::PERF_COUNT_HW_CACHE_L1D:WRITE:ACCESS"},
    {"L1_LDM", "perf::PERF_COUNT_HW_CACHE_L1D:READ:MISS"},
    {"L1_DCM", "perf::PERF_COUNT_HW_CACHE_L1D:READ:MISS"},
    {"L1_STM", "perf::PERF_COUNT_HW_CACHE_L1D:WRITE:MISS"},
    {"L1_ICM", "perf::PERF_COUNT_HW_CACHE_L1I:READ:MISS"},
    {"L3_TCA", "perf::PERF_COUNT_HW_CACHE_REFERENCES"},
    {"L3_TCM", "perf::PERF_COUNT_HW_CACHE_MISSES"},
    {"L3_LDM", "perf::PERF_COUNT_HW_CACHE_LL:READ:MISS"},
    {"L3_STM", "perf::PERF_COUNT_HW_CACHE_LL:WRITE:MISS"},
    {"TLB_DM", "perf::PERF_COUNT_HW_CACHE_DTLB:READ:MISS"},
    {"TLB_IM", "perf::PERF_COUNT_HW_CACHE_ITLB:READ:MISS"},
    {"BR_CN", "BR_INST_RETIRED:COND"},
    {"FP_OPS", "RETIRED_SSE_AVX_FLOPS:ANY"},
    {"L2_TCM", "L2_RQSTS:MISS"},
    {"L2_TCA", "L2_RQSTS:REFERENCES"},
    {"L1_TCM", "PAPI_L1_DCM + PAPI_L1_ICM"},
    {"L1_DCA", "PAPI_L1_DCR + PAPI_L1_DCW"},
    {"LST_INS", "PAPI_LD_INS + PAPI_SR_INS"},
    {"TLB_TL", "PAPI_TLB_DM + PAPI_TLB_IM"},
    {"BR_PRC", "BR_INST_RETIRED:COND - BR_MISP_RETIRED:COND"},
    {"DP_OPS", DP_OPS},
    {"SP_OPS", SP_OPS},
    {"FP_OPS", DP_OPS " + " SP_OPS},
};

static int encode_any(const char *name, struct perf_event_attr *found)
{
    return machine_is_fixture() ? encode_for_fixture(name, found) : encode(name, found);
}

/* The name of a preset behind "PAPI_" or "papi::PAPI_", up to what follows it; NULL: it is none. */
static const char *preset_name(const char *name, size_t *len)
{
    name += strncasecmp(name, "papi::", 6) == 0 ? 6 : 0;
    *len = strcspn(name, ":") - 5;
    return strncasecmp(name, "PAPI_", 5) == 0 ? name + 5 : NULL;
}

static bool is_preset(const struct preset *preset, const char *name, size_t len)
{
    return strlen(preset->papi) == len && strncasecmp(preset->papi, name, len) == 0;
}

/* Encodes a preset of PAPI that is one event here, with what follows its name. */
static int encode_preset(const char *name, struct perf_event_attr *found)
{
    char event[240];
    size_t len;
    int status = PFM_ERR_NOTFOUND;
    const char *papi = preset_name(name, &len);
    for (size_t i = 0; papi && status != PFM_SUCCESS && i < sizeof presets / sizeof *presets; i++)
        if (is_preset(&presets[i], papi, len) && !strchr(presets[i].formula, ' ') &&
            snprintf(event, sizeof event, "%s%s", presets[i].formula, papi + len) < (int)sizeof event)
            status = encode_any(event, found);
    return status;
}

/* Whether all events of a formula are known here. */
static bool is_known_formula(const char *formula)
{
    struct perf_event_attr found;
    char event[80];
    for (const char *at = formula; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        (void)snprintf(event, sizeof event, "%.*s", (int)len, at);
        bool is_event = isalpha((unsigned char)*at);
        if (is_event && encode_preset(event, &found) != PFM_SUCCESS && encode_any(event, &found) != PFM_SUCCESS)
            return false;
        at += len;
    }
    return true;
}

const char *perf_preset_formula(const char *name)
{
    size_t len;
    const char *papi = start_pfm() ? preset_name(name, &len) : NULL;
    for (size_t i = 0; papi && i < sizeof presets / sizeof *presets; i++)
        if (is_preset(&presets[i], papi, len) && strchr(presets[i].formula, ' ') &&
            is_known_formula(presets[i].formula))
            return presets[i].formula;
    return NULL;
}

enum perf_name_status perf_name_encode(const char *name, struct perf_event_attr *attr)
{
    struct perf_event_attr found;
    if (!start_pfm())
        return PERF_NAME_UNKNOWN;
    int status = encode_preset(name, &found);
    if (status != PFM_SUCCESS)
        status = encode_any(name, &found);
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
    if (strstr(name, ":mg") || strstr(name, ":mh")) { /* without them libpfm4 uses its own default */
        attr->exclude_guest = found.exclude_guest;
        attr->exclude_host = found.exclude_host;
    }
    attr->precise_ip = found.precise_ip;
    attr->pinned |= found.pinned;
    attr->exclusive |= found.exclusive;
    return PERF_NAME_ENCODED;
}

/* Whether the table of counters is valid here: libpfm4 has detected it, or it is that of the fixture's CPU. */
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
        if (pfm.get_event_attr_info(event->idx, i, PFM_OS_PERF_EVENT_EXT, &part) != PFM_SUCCESS ||
            part.type != PFM_ATTR_UMASK)
            continue;
        (void)snprintf(name, sizeof name, "%s:%s", event_name, part.name);
        visitor->visit(name, part.desc ? part.desc : "", visitor->ctx);
    }
}

/* Whether to list an event: the kernel's table has every event twice, and it has software events and tracepoints, which
 * are listed elsewhere. */
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
    for (int i = unit->first_event; i != -1; i = pfm.get_event_next(i)) {
        char name[256];
        pfm_event_info_t event = {.size = sizeof event};
        if (pfm.get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS || !is_listed(unit, event.name))
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
        if (pfm.get_pmu_info((pfm_pmu_t)pmu, &unit) != PFM_SUCCESS || !is_counter(&unit))
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
        if (pfm.get_pmu_info((pfm_pmu_t)pmu, &unit) == PFM_SUCCESS && !strcmp(unit.name, table))
            visit_unit(&unit, &visitor);
    }
}
