/* SPDX-License-Identifier: BSD-3-Clause */
/* Tracepoints by the directory that the kernel keeps of them; see event-places.h. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampling/event-places.h"
#include "sampling/machine.h"

/* The events directory of tracefs; false when it is nowhere. */
static bool find_events(char *path, size_t n)
{
    static const char *const places[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (machine_exists(places[i]))
            return snprintf(path, n, "%s", places[i]) < (int)n;
    return false;
}

const char *tracepoint_obstacle(void)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (find_events(path, sizeof path))
        return machine_path(path, real, sizeof real) && access(real, R_OK | X_OK) == 0 ?
                   NULL :
                   "tracefs may be read by root only";
    if (!machine_is_fixture() && access("/sys/kernel/tracing", X_OK) != 0 && errno == EACCES)
        return "tracefs may be read by root only";
    return "tracefs is not mounted (as root: mount -t tracefs tracefs /sys/kernel/tracing)";
}

static bool read_id(const char *events, const char *subsystem, const char *name, uint64_t *id)
{
    char path[PATH_MAX], text[32], *end;
    int len = snprintf(path, sizeof path, "%s/%s/%s/id", events, subsystem, name);
    if (len < 0 || (size_t)len >= sizeof path || !machine_read(path, text, sizeof text))
        return false;
    *id = strtoull(text, &end, 10);
    return end != text;
}

bool tracepoint_encode(const char *name, struct perf_event_attr *attr)
{
    char events[PATH_MAX], subsystem[128];
    uint64_t id;
    const char *colon = strchr(name, ':');
    if (!colon || colon == name || strpbrk(name, "/.") || strchr(colon + 1, ':') || !colon[1])
        return false;
    (void)snprintf(subsystem, sizeof subsystem, "%.*s", (int)(colon - name), name);
    if (!find_events(events, sizeof events) || !read_id(events, subsystem, colon + 1, &id))
        return false;
    attr->type = PERF_TYPE_TRACEPOINT;
    attr->config = id;
    attr->config1 = attr->config2 = 0;
    return true;
}

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

struct walk {
    const char *events, *subsystem;
    bool (*visit)(const char *name, void *ctx);
    void *ctx;
};

static bool visit_point(const struct walk *walk, const char *name)
{
    char whole[2 * NAME_MAX];
    uint64_t id;
    if (!read_id(walk->events, walk->subsystem, name, &id))
        return true;
    (void)snprintf(whole, sizeof whole, "%s:%s", walk->subsystem, name);
    return walk->visit(whole, walk->ctx);
}

/* Entries of a directory, sorted, until take returns false; false then. */
static bool visit_entries(const struct walk *walk, const char *subsystem,
                          bool (*take)(const struct walk *walk, const char *name))
{
    char path[PATH_MAX], real[PATH_MAX];
    struct dirent **entries = NULL;
    bool goes_on = true;
    (void)snprintf(path, sizeof path, "%s/%s", walk->events, subsystem);
    int n = machine_path(path, real, sizeof real) ? scandir(real, &entries, is_name, by_bytes) : -1;
    for (int i = 0; i < n; i++) {
        goes_on = goes_on && take(walk, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return goes_on;
}

static bool visit_subsystem(const struct walk *walk, const char *subsystem)
{
    struct walk inner = *walk;
    inner.subsystem = subsystem;
    return visit_entries(&inner, subsystem, visit_point);
}

void tracepoint_visit(bool (*visit)(const char *name, void *ctx), void *ctx)
{
    char events[PATH_MAX];
    const struct walk walk = {.events = events, .visit = visit, .ctx = ctx};
    if (find_events(events, sizeof events))
        (void)visit_entries(&walk, "", visit_subsystem);
}
