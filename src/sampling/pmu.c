/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMUs of sysfs and the files in their directories; see pmu.h. */
#include "sampling/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/machine.h"

#define DEVICES "/sys/bus/event_source/devices"
#define TERMS_BYTES 512

/* Path of a file of this PMU on the described machine. */
static bool file_path(const char *pmu, const char *file, char *path, size_t n_path)
{
    int len = snprintf(path, n_path, DEVICES "/%s/%s", pmu, file);
    return len > 0 && (size_t)len < n_path;
}

bool pmu_has(const struct pmu *pmu, const char *file)
{
    char path[PATH_MAX];
    return file_path(pmu->name, file, path, sizeof path) && machine_exists(path);
}

bool pmu_read(const struct pmu *pmu, const char *file, char *out, unsigned n_out)
{
    char path[PATH_MAX];
    return file_path(pmu->name, file, path, sizeof path) && machine_read(path, out, n_out);
}

bool pmu_find(const char *name, struct pmu *pmu)
{
    char text[32];
    if (!name[0] || name[0] == '.' || strchr(name, '/') || strlen(name) >= sizeof pmu->name)
        return false;
    *pmu = (struct pmu){0};
    (void)snprintf(pmu->name, sizeof pmu->name, "%s", name);
    if (!pmu_read(pmu, "type", text, sizeof text))
        return false;
    pmu->type = (uint32_t)strtoul(text, NULL, 10);
    if (pmu_read(pmu, "caps/max_precise", text, sizeof text))
        pmu->max_precise = (unsigned)strtoul(text, NULL, 10);
    if (!pmu_read(pmu, "cpus", pmu->cpus, sizeof pmu->cpus))
        (void)pmu_read(pmu, "cpumask", pmu->cpus, sizeof pmu->cpus);
    return true;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Compares by bytes, whatever the locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Passes the names in a directory of the machine, sorted, to take until it returns false. */
static void visit_names(const char *path, bool (*take)(const char *name, void *ctx), void *ctx)
{
    char real[PATH_MAX];
    struct dirent **entries = NULL;
    bool is_wanted = true;
    int n = machine_path(path, real, sizeof real) ? scandir(real, &entries, is_visible, by_bytes) : -1;
    for (int i = 0; i < n; i++) {
        is_wanted = is_wanted && take(entries[i]->d_name, ctx);
        free(entries[i]);
    }
    free(entries);
}

struct pmu_visitor {
    bool (*visit)(const struct pmu *pmu, void *ctx);
    void *ctx;
};

static bool take_pmu(const char *name, void *ctx)
{
    const struct pmu_visitor *visitor = ctx;
    struct pmu pmu;
    return !pmu_find(name, &pmu) || visitor->visit(&pmu, visitor->ctx);
}

void pmu_visit(bool (*visit)(const struct pmu *pmu, void *ctx), void *ctx)
{
    struct pmu_visitor visitor = {visit, ctx};
    visit_names(DEVICES, take_pmu, &visitor);
}

struct file_visitor {
    const struct pmu *pmu;
    const char *folder;
    bool (*visit)(const char *name, const char *text, void *ctx);
    void *ctx;
};

static bool take_file(const char *name, void *ctx)
{
    const struct file_visitor *visitor = ctx;
    char file[NAME_MAX + 16], text[TERMS_BYTES];
    if (strchr(name, '.'))
        return true;
    (void)snprintf(file, sizeof file, "%s/%s", visitor->folder, name);
    return !pmu_read(visitor->pmu, file, text, sizeof text) || visitor->visit(name, text, visitor->ctx);
}

static void visit_files(struct file_visitor visitor)
{
    char path[PATH_MAX];
    if (file_path(visitor.pmu->name, visitor.folder, path, sizeof path))
        visit_names(path, take_file, &visitor);
}

void pmu_visit_events(const struct pmu *pmu, bool (*visit)(const char *name, const char *terms, void *ctx), void *ctx)
{
    visit_files((struct file_visitor){pmu, "events", visit, ctx});
}

void pmu_visit_terms(const struct pmu *pmu, bool (*visit)(const char *name, const char *bits, void *ctx), void *ctx)
{
    visit_files((struct file_visitor){pmu, "format", visit, ctx});
}

/* --- finding one --- */

/* Finds the PMU that a user means: by its name without the number, or by one of its events. See pmu.h. */

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
    return error_set(err, ERR_USAGE, "there is no PMU '%s' on this machine; it has: %s.", name,
                     known[0] ? known : "none that the kernel shows");
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
