/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the PMU that a user means: by a name without its number, or by one of its events. See pmu-parts.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "sampling/pmu-parts.h"

struct search {
    const char *name;
    struct pmu *found;
    bool is_found;
    char *known; /* names of all PMUs, for the message */
    size_t n_known;
};

/* arm_spe_0 for arm_spe: what follows the name is one number. */
static bool is_numbered(const char *full, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(full, name, len) != 0)
        return false;
    const char *rest = full + len + (full[len] == '_');
    size_t n = strspn(rest, "0123456789");
    return n > 0 && rest[n] == '\0';
}

static bool take_numbered(const struct pmu *pmu, void *ctx)
{
    struct search *search = ctx;
    size_t len = strlen(search->known);
    (void)snprintf(search->known + len, search->n_known - len, "%s%s", len ? ", " : "", pmu->name);
    search->is_found = is_numbered(pmu->name, search->name);
    if (search->is_found)
        *search->found = *pmu;
    return !search->is_found;
}

int pmu_find_near(const char *name, struct pmu *pmu, struct error *err)
{
    char known[512] = "";
    struct search search = {.name = name, .found = pmu, .known = known, .n_known = sizeof known};
    if (pmu_find(name, pmu))
        return 0;
    pmu_visit(take_numbered, &search);
    if (search.is_found)
        return 0;
    return error_set(err, ERR_USAGE, "There is no PMU '%s' on this machine; it has: %s.", name,
                     known[0] ? known : "none that the kernel tells of");
}

static bool has_event(const struct pmu *pmu, const char *name)
{
    char file[256];
    int len = snprintf(file, sizeof file, "events/%s", name);
    return len > 0 && (size_t)len < sizeof file && !strpbrk(name, "./") && pmu_has(pmu, file);
}

static bool take_event(const struct pmu *pmu, void *ctx)
{
    struct search *search = ctx;
    search->is_found = has_event(pmu, search->name);
    if (search->is_found)
        *search->found = *pmu;
    return !search->is_found;
}

bool pmu_of_event(const char *name, struct pmu *pmu)
{
    static const char *const first[] = {"cpu", "cpu_core", "cpu_atom"};
    struct search search = {.name = name, .found = pmu};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (pmu_find(first[i], pmu) && has_event(pmu, name))
            return true;
    pmu_visit(take_event, &search);
    return search.is_found;
}
