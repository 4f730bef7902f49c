/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMUs of sysfs and the files in their directories; see pmu.h. */
#include "sampling/pmu-parts.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/machine.h"

#define DEVICES "/sys/bus/event_source/devices"
#define TERMS_BYTES 512

/* Path of a file of this PMU as on the machine described. */
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

/* Byte order, whatever the locale says. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Names in a directory of the machine, sorted; each is passed to take until that returns false. */
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
