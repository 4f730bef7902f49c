/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeping what this machine's kernel answers, as rules for a description of the machine: with HPCRUN_RECORD_OPENS=FILE
 * each trial of an event adds one to FILE. A rule names the fields that an answer may depend on, those that are 0 too.
 * Ordinary code of the launcher. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/attr-fields.h"
#include "sampling/machine.h"
#include "sampling/pmu.h"

/* A PMU looked for by its type. */
struct wanted {
    uint32_t type;
    char name[64];
};

static bool is_wanted(const struct pmu *pmu, void *ctx)
{
    struct wanted *wanted = ctx;
    if (pmu->type == wanted->type)
        (void)snprintf(wanted->name, sizeof wanted->name, "%s", pmu->name);
    return pmu->type != wanted->type;
}

/* Types are numbers that change from boot to boot; names stay. */
static void put_type(FILE *out, uint32_t type)
{
    struct wanted wanted = {.type = type};
    (void)snprintf(wanted.name, sizeof wanted.name, "%u", type);
    pmu_visit(is_wanted, &wanted);
    (void)fprintf(out, " type=%s", wanted.name);
}

static bool matters(const struct attr_field *field)
{
    static const char *const always[] = {"config", "config1", "config2", "sample_type", "precise_ip",
                                         "exclude_kernel", "exclude_user", "freq", "watermark"};
    static const char *const never[] = {"type", "size", "sample_period", "sample_freq", "wakeup_events",
                                        "wakeup_watermark", "disabled"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!strcmp(field->name, always[i]))
            return true;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (!strcmp(field->name, never[i]))
            return false;
    return field->value != 0;
}

void machine_record_open(const struct perf_event_attr *attr, const struct perf_event_attr *group_of, int answer)
{
    struct attr_field fields[ATTR_FIELDS_MAX];
    const char *path = getenv("HPCRUN_RECORD_OPENS");
    const char *name = answer ? strerrorname_np(answer) : "ok";
    FILE *out = path && name && !machine_is_fixture() ? fopen(path, "ae") : NULL;
    if (!out)
        return;
    (void)fputs(name, out);
    put_type(out, attr->type);
    unsigned n = attr_fields(attr, fields);
    for (unsigned i = 0; i < n; i++)
        if (matters(&fields[i]))
            (void)fprintf(out, fields[i].is_hex ? " %s=%#llx" : " %s=%llu", fields[i].name,
                          (unsigned long long)fields[i].value);
    if (group_of)
        (void)fprintf(out, " leader.config=%#llx\n", (unsigned long long)group_of->config);
    else
        (void)fputs(" leader=none\n", out);
    (void)fclose(out);
}
