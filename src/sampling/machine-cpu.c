/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPU this is, by /proc/cpuinfo of each architecture; see machine.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/machine.h"

#define CPUINFO_BYTES 16384 /* the first processor and more */

/* Value of the first line with this key, cut at its end; false when there is none. */
static bool find_value(const char *text, const char *key, char *value, size_t n_value)
{
    size_t n_key = strlen(key);
    const char *end;
    for (const char *line = text; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (strncmp(line, key, n_key) != 0)
            continue;
        const char *at = line + n_key + strspn(line + n_key, " \t");
        if (*at != ':')
            continue;
        at += 1 + strspn(at + 1, " \t");
        (void)snprintf(value, n_value, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    return false;
}

static unsigned find_number(const char *text, const char *key)
{
    char value[64];
    return find_value(text, key, value, sizeof value) ? (unsigned)strtoul(value, NULL, 0) : 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

static void read_x86(const char *text, const char *vendor, struct machine_cpu *cpu)
{
    char flags[CPUINFO_BYTES];
    cpu->vendor = CPU_UNKNOWN;
    if (!strcmp(vendor, "GenuineIntel"))
        cpu->vendor = CPU_INTEL;
    else if (!strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine"))
        cpu->vendor = CPU_AMD;
    cpu->family = find_number(text, "cpu family");
    cpu->model = find_number(text, "model");
    cpu->stepping = find_number(text, "stepping");
    (void)find_value(text, "model name", cpu->name, sizeof cpu->name);
    cpu->is_virtual = find_value(text, "flags", flags, sizeof flags) && has_word(flags, "hypervisor");
}

static void read_power(const char *text, struct machine_cpu *cpu)
{
    char revision[128] = "";
    cpu->vendor = CPU_POWER;
    (void)find_value(text, "revision", revision, sizeof revision);
    const char *pvr = strstr(revision, "(pvr ");
    cpu->pvr = pvr ? (unsigned)strtoul(pvr + 5, NULL, 16) : 0;
    cpu->name[strcspn(cpu->name, ",")] = '\0';
    cpu->is_virtual = strstr(text, "emulated by qemu") != NULL;
}

static const char *arm_name(unsigned implementer, unsigned part)
{
    static const struct {
        unsigned implementer, part;
        const char *name;
    } known[] = {
        {0x41, 0xd0c, "Arm Neoverse N1"}, {0x41, 0xd49, "Arm Neoverse N2"}, {0x41, 0xd8e, "Arm Neoverse N3"},
        {0x41, 0xd40, "Arm Neoverse V1"}, {0x41, 0xd4f, "Arm Neoverse V2"}, {0x41, 0xd84, "Arm Neoverse V3"},
        {0x41, 0xd4a, "Arm Neoverse E1"}, {0x41, 0xd08, "Arm Cortex-A72"},  {0x46, 0x001, "Fujitsu A64FX"},
        {0x48, 0xd01, "HiSilicon TSV110"}, {0xc0, 0xac3, "Ampere-1"},       {0xc0, 0xac4, "Ampere-1a"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].implementer == implementer && known[i].part == part)
            return known[i].name;
    return NULL;
}

static void read_arm(const char *text, struct machine_cpu *cpu)
{
    cpu->vendor = CPU_ARM;
    cpu->implementer = find_number(text, "CPU implementer");
    cpu->part = find_number(text, "CPU part");
    cpu->stepping = find_number(text, "CPU revision");
    const char *name = arm_name(cpu->implementer, cpu->part);
    if (name)
        (void)snprintf(cpu->name, sizeof cpu->name, "%s", name);
    else
        (void)snprintf(cpu->name, sizeof cpu->name, "Arm implementer %#x part %#x", cpu->implementer, cpu->part);
}

void machine_cpu(struct machine_cpu *cpu)
{
    char text[CPUINFO_BYTES], meltdown[128], vendor[64];
    *cpu = (struct machine_cpu){0};
    if (!machine_read("/proc/cpuinfo", text, sizeof text))
        return;
    if (find_value(text, "vendor_id", vendor, sizeof vendor))
        read_x86(text, vendor, cpu);
    else if (find_value(text, "CPU implementer", vendor, sizeof vendor))
        read_arm(text, cpu);
    else if (find_value(text, "cpu", cpu->name, sizeof cpu->name) && !strncmp(cpu->name, "POWER", 5))
        read_power(text, cpu);
    cpu->is_virtual |= machine_exists("/sys/hypervisor/type") || machine_exists("/proc/device-tree/hypervisor");
    cpu->has_kpti = machine_read("/sys/devices/system/cpu/vulnerabilities/meltdown", meltdown, sizeof meltdown) &&
                    strstr(meltdown, "PTI") != NULL;
}
