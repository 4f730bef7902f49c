/* SPDX-License-Identifier: BSD-3-Clause */
/* Listing events; see event-list.h. */
#include "sampling/event-list.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "sampling/event-places.h"
#include "sampling/perf-names.h"
#include "sampling/pmu.h"
#include "sampling/source-perf.h"

#define NAME_BYTES 320

/* One listing, and the unit that is being listed. */
struct listing {
    const char *const *patterns;
    const struct event_lister *lister;
    unsigned n_events;
    const char *unit;     /* name of the PMU or table; may be matched, too */
    bool is_one_answer;   /* an answer about the unit is asked for once */
    bool has_probe;
    struct source_probe probe; /* the answer about the unit */
};

static bool matches_one(const char *pattern, const char *name)
{
    return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, FNM_CASEFOLD) == 0 : strcasestr(name, pattern) != NULL;
}

static bool matches(const struct listing *listing, const char *name, const char *whole)
{
    if (!listing->patterns[0])
        return true;
    for (const char *const *pattern = listing->patterns; *pattern; pattern++)
        if (matches_one(*pattern, name) || (whole && matches_one(*pattern, whole)))
            return true;
    return false;
}

static void put(struct listing *listing, enum event_mark mark, const char *name, const char *summary,
                const struct source_probe *why)
{
    listing->lister->event(mark, name, summary, why, listing->lister->ctx);
    listing->n_events++;
}

static void begin_unit(struct listing *listing, const char *unit, bool is_one_answer, const char *title)
{
    listing->unit = unit;
    listing->is_one_answer = is_one_answer;
    listing->has_probe = false;
    listing->lister->section(title, listing->lister->ctx);
}

/* True when the kernel says the same of every event of a unit; other answers are about one event. */
static bool is_about_unit(const struct source_probe *probe)
{
    return probe->works || (probe->error != 0 && probe->error != EINVAL && probe->error != ENODATA);
}

/* Tries an event, or takes the answer that holds for its unit. */
static void put_tried(struct listing *listing, const char *event, const char *summary)
{
    struct source_probe probe = listing->probe;
    if (!listing->has_probe)
        source_perf_try(event, &probe);
    bool is_answer = probe.works || probe.error != 0; /* of the kernel, not about the name */
    if (listing->is_one_answer && is_about_unit(&probe)) {
        listing->probe = probe;
        listing->has_probe = true;
    }
    put(listing, probe.works ? EVENT_OPENS : is_answer ? EVENT_REFUSED : EVENT_INCOMPLETE, event, summary, &probe);
}

static void list_sources(struct listing *listing)
{
    begin_unit(listing, "", false, "Sources");
    if (matches(listing, "datacentric", NULL))
        put(listing, EVENT_OPENS, "datacentric",
            "The best source of data addresses here, FAULTS, and sizes (the default)", NULL);
    for (const struct sample_source *const *row = source_table(); *row; row++) {
        struct source_probe probe;
        if (!(*row)->name[0] || !matches(listing, (*row)->name, NULL))
            continue;
        (*row)->probe(&probe);
        if (!probe.is_foreign)
            put(listing, probe.works ? EVENT_OPENS : EVENT_REFUSED, (*row)->name, (*row)->summary, &probe);
    }
}

static void list_software(struct listing *listing)
{
    char summary[160];
    begin_unit(listing, "software", false, "Software events of the kernel");
    for (const struct perf_name *row = perf_name_table(); row->name; row++) {
        if (!matches(listing, row->name, row->alias))
            continue;
        (void)snprintf(summary, sizeof summary, "%s%s%s", row->summary, row->alias ? "; also " : "",
                       row->alias ? row->alias : "");
        put_tried(listing, row->name, summary);
    }
}

static bool list_sysfs_event(const char *name, const char *terms, void *ctx)
{
    struct listing *listing = ctx;
    char whole[NAME_BYTES];
    (void)snprintf(whole, sizeof whole, "%s/%s/", listing->unit, name);
    if (matches(listing, name, whole))
        put_tried(listing, whole, terms);
    return true;
}

struct terms {
    char text[1024];
};

static bool add_term(const char *name, const char *bits, void *ctx)
{
    struct terms *terms = ctx;
    size_t len = strlen(terms->text);
    (void)snprintf(terms->text + len, sizeof terms->text - len, "%s%s (%s)", len ? ", " : "", name, bits);
    return true;
}

static bool is_own_unit(const char *name)
{
    static const char *const own[] = {"software", "tracepoint", "breakpoint", "kprobe", "uprobe"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], name))
            return true;
    return false;
}

static bool list_pmu(const struct pmu *pmu, void *ctx)
{
    struct listing *listing = ctx;
    struct terms terms = {""};
    char title[320], note[1100], bare[80];
    if (is_own_unit(pmu->name))
        return true;
    unsigned n_before = listing->n_events;
    (void)snprintf(title, sizeof title, "PMU %s, as the kernel describes it", pmu->name);
    begin_unit(listing, pmu->name, false, title);
    pmu_visit_events(pmu, list_sysfs_event, listing);
    (void)snprintf(bare, sizeof bare, "%s//", pmu->name);
    if (listing->n_events == n_before && matches(listing, bare, NULL))
        put_tried(listing, bare, "by its terms only");
    pmu_visit_terms(pmu, add_term, &terms);
    (void)snprintf(note, sizeof note, "%s/TERM=VALUE,.../ with the terms %s", pmu->name, terms.text);
    if (terms.text[0] && listing->n_events > n_before)
        listing->lister->note(note, listing->lister->ctx);
    return true;
}

static void list_table_event(const char *name, const char *summary, void *ctx)
{
    struct listing *listing = ctx;
    static const struct source_probe incomplete = {.reason = "needs a sub-event, NAME:PART; hpcrun -L NAME lists them"};
    struct perf_event_attr attr = {.size = sizeof attr};
    const char *event = strstr(name, "::");
    if (!matches(listing, event ? event + 2 : name, name))
        return;
    if (perf_name_encode(name, &attr) == PERF_NAME_INCOMPLETE)
        put(listing, EVENT_INCOMPLETE, name, summary, &incomplete);
    else
        put_tried(listing, name, summary);
}

static void list_table(const struct perf_table *table, void *ctx)
{
    struct listing *listing = ctx;
    char title[320];
    (void)snprintf(title, sizeof title, "%.250s (names of libpfm4)", table->summary);
    begin_unit(listing, table->name, true, title);
    perf_table_visit_events(table->name, listing->patterns[0] != NULL, list_table_event, listing);
}

static bool list_tracepoint(const char *name, void *ctx)
{
    struct listing *listing = ctx;
    if (matches(listing, name, NULL))
        put_tried(listing, name, "");
    return true;
}

static bool asks_for_tracepoints(const struct listing *listing)
{
    for (const char *const *pattern = listing->patterns; *pattern; pattern++) {
        const char *colon = strchr(*pattern, ':');
        if (colon && colon[1] != ':')
            return true;
    }
    return false;
}

static void list_tracepoints(struct listing *listing)
{
    char text[256];
    begin_unit(listing, "tracepoint", true, "Tracepoints of the kernel");
    if (asks_for_tracepoints(listing)) {
        tracepoint_visit(list_tracepoint, listing);
    } else if (!listing->patterns[0]) {
        const char *obstacle = tracepoint_obstacle();
        (void)snprintf(text, sizeof text, "%s", obstacle ? obstacle : "a pattern with a colon lists them: hpcrun -L "
                                                                      "'sched:*'");
        listing->lister->note(text, listing->lister->ctx);
    }
}

static void list_forms(struct listing *listing)
{
    if (listing->patterns[0])
        return;
    begin_unit(listing, "", false, "Other forms");
    listing->lister->note("rHEX                        raw event of the CPU", listing->lister->ctx);
    listing->lister->note("mem:ADDRESS[/BYTES][:rwx]   breakpoint", listing->lister->ctx);
    listing->lister->note("{EVENT,EVENT,...}           group: counted together or not at all", listing->lister->ctx);
    listing->lister->note("EVENT:MODIFIERS             u user, k kernel, h hypervisor; p pp ppp P precise; G H guests, "
                          "hosts; I D e",
                          listing->lister->ctx);
}

unsigned event_list(const char *const *patterns, const struct event_lister *lister)
{
    struct listing listing = {.patterns = patterns, .lister = lister};
    list_sources(&listing);
    list_software(&listing);
    pmu_visit(list_pmu, &listing);
    perf_table_visit(list_table, &listing);
    list_tracepoints(&listing);
    list_forms(&listing);
    return listing.n_events;
}
