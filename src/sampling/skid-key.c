/* SPDX-License-Identifier: BSD-3-Clause */
/* What kind of machine this is, as far as skid depends on it. */
#include "sampling/skid.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Value of the first line "name : value" of /proc/cpuinfo, or "unknown". */
static void cpuinfo_value(const char *name, char *value, size_t n_bytes)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    (void)snprintf(value, n_bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        size_t n_name = strlen(name);
        if (!colon || strncmp(line, name, n_name) != 0 || line + n_name + strspn(line + n_name, "\t ") != colon)
            continue;
        colon[strcspn(colon, "\n")] = 0;
        (void)snprintf(value, n_bytes, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        (void)fclose(file);
}

static void hypervisor_name(char *name, size_t n_bytes)
{
    (void)snprintf(name, n_bytes, "unknown");
#if defined(__x86_64__)
    unsigned a, b, c, d;
    char signature[13] = "";
    (void)snprintf(name, n_bytes, "none");
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 31))
        return;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(signature, &b, 4);
    memcpy(signature + 4, &c, 4);
    memcpy(signature + 8, &d, 4);
    for (char *p = signature; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            *p = '?';
    (void)snprintf(name, n_bytes, "%s", signature[0] ? signature : "unnamed");
#endif
}

void skid_key_read(struct skid_key *key)
{
    char model[60], family[12], number[12], stepping[12];
    struct utsname names;
    cpuinfo_value("model name", model, sizeof model);
    cpuinfo_value("cpu family", family, sizeof family);
    cpuinfo_value("model", number, sizeof number);
    cpuinfo_value("stepping", stepping, sizeof stepping);
    (void)snprintf(key->cpu, sizeof key->cpu, "%s (family %s, model %s, stepping %s)", model, family, number, stepping);
    cpuinfo_value("microcode", key->microcode, sizeof key->microcode);
    bool is_known = uname(&names) == 0;
    (void)snprintf(key->kernel, sizeof key->kernel, "%.*s", SKID_KEY_BYTES - 1, is_known ? names.release : "unknown");
    hypervisor_name(key->hypervisor, sizeof key->hypervisor);
}
