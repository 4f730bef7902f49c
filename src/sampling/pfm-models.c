/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU models by the names of libpfm4's tables; see pfm-models.h.  src: libpfm4's manual pages, and the vendors' lists
 * of family and model numbers. */
#include "sampling/pfm-models.h"

#include <stddef.h>

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
        {0x1a, 0x1a, "nhm"}, {0x1e, 0x1f, "nhm"}, {0x2e, 0x2e, "nhm_ex"}, {0x25, 0x25, "wsm"}, {0x2c, 0x2c, "wsm_dp"},
        {0x2f, 0x2f, "wsm_dp"}, {0x2a, 0x2a, "snb"}, {0x2d, 0x2d, "snb_ep"}, {0x3a, 0x3a, "ivb"},
        {0x3e, 0x3e, "ivb_ep"}, {0x3c, 0x3c, "hsw"}, {0x45, 0x46, "hsw"}, {0x3f, 0x3f, "hsw_ep"},
        {0x3d, 0x3d, "bdw"}, {0x47, 0x47, "bdw"}, {0x4f, 0x4f, "bdw_ep"}, {0x56, 0x56, "bdw_ep"},
        {0x4e, 0x4e, "skl"}, {0x5e, 0x5e, "skl"}, {0x8e, 0x8e, "skl"}, {0x9e, 0x9e, "skl"}, {0xa5, 0xa6, "skl"},
        {0x57, 0x57, "knl"}, {0x85, 0x85, "knm"}, {0x37, 0x37, "slm"}, {0x4d, 0x4d, "slm"}, {0x5c, 0x5c, "glm"},
        {0x5f, 0x5f, "glm"}, {0x7a, 0x7a, "glm"}, {0x86, 0x86, "tmt"}, {0x96, 0x96, "tmt"}, {0x7d, 0x7e, "icl"},
        {0xa7, 0xa7, "icl"}, {0x8c, 0x8d, "icl"}, {0x6a, 0x6a, "icx"}, {0x6c, 0x6c, "icx"}, {0x8f, 0x8f, "spr"},
        {0xcf, 0xcf, "emr"}, {0xad, 0xae, "gnr"}, {0x97, 0x97, "adl_glc"}, {0x9a, 0x9a, "adl_glc"}, {0, 0, NULL},
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
        {0x1002, 0x1003, "amd64_fam10h_barcelona"}, {0x1004, 0x1007, "amd64_fam10h_shanghai"},
        {0x1008, 0x100a, "amd64_fam10h_istanbul"}, {0x1100, 0x11ff, "amd64_fam11h_turion"},
        {0x1200, 0x12ff, "amd64_fam12h_llano"}, {0x1400, 0x14ff, "amd64_fam14h_bobcat"},
        {0x1500, 0x15ff, "amd64_fam15h_interlagos"}, {0x1600, 0x16ff, "amd64_fam16h"},
        {0x1700, 0x172f, "amd64_fam17h_zen1"}, {0x1730, 0x17ff, "amd64_fam17h_zen2"},
        {0x1910, 0x191f, "amd64_fam19h_zen4"}, {0x1960, 0x19af, "amd64_fam19h_zen4"},
        {0x1900, 0x19ff, "amd64_fam19h_zen3"}, {0x1a00, 0x1aff, "amd64_fam1ah_zen5"}, {0, 0, NULL},
    };
    return cpu->model > 0xff ? NULL : find(rows, cpu->family << 8 | cpu->model);
}

static const char *power(const struct machine_cpu *cpu)
{
    static const struct model_row rows[] = {
        {0x3e, 0x3e, "power6"}, {0x3f, 0x3f, "power7"}, {0x4a, 0x4a, "power7"}, {0x4b, 0x4d, "power8"},
        {0x4e, 0x4e, "power9"}, {0x80, 0x80, "power10"}, {0x82, 0x82, "power11"}, {0, 0, NULL},
    };
    return find(rows, cpu->pvr);
}

static const char *arm(const struct machine_cpu *cpu)
{
    static const struct model_row rows[] = {
        {0x41d0c, 0x41d0c, "arm_n1"}, {0x41d40, 0x41d40, "arm_v1"}, {0x41d49, 0x41d49, "arm_n2"},
        {0x41d4f, 0x41d4f, "arm_v2"}, {0x41d8e, 0x41d8e, "arm_n3"}, {0x41d84, 0x41d84, "arm_v3"},
        {0x41d08, 0x41d08, "arm_ac72"}, {0x46001, 0x46001, "arm_a64fx"},
        {0x48d01, 0x48d01, "arm_hisilicon_kunpeng"}, {0, 0, NULL},
    };
    return find(rows, cpu->implementer << 12 | cpu->part);
}

const char *pfm_model_of(const struct machine_cpu *cpu)
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
