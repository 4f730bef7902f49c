/* SPDX-License-Identifier: BSD-3-Clause */
/* From the user's -e options to a plan; "datacentric" is resolved here: the best address source that works on this
 * machine, page faults, and the sizes of variables. Ordinary code of the launcher. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sampling/plan-parts.h"

#define EVENT_BYTES 256
#define DATACENTRIC "datacentric"

/* True when event is name, terms (NAME,term=VALUE) and forms (FAULTS@ring) apart. */
static bool is_name(const char *name, const char *event)
{
    size_t len = strcspn(event, "@,");
    return name[0] && strlen(name) == len && !strncasecmp(name, event, len);
}

static const struct sample_source *find_source(const char *event)
{
    const struct sample_source *catch_all = NULL;
    for (const struct sample_source *const *source = source_table(); *source; source++) {
        size_t len = strlen((*source)->name);
        if (is_name((*source)->name, event) ||
            ((*source)->takes_file && !strncasecmp((*source)->name, event, len) && event[len] == ':'))
            return *source;
        if (!(*source)->name[0])
            catch_all = *source;
    }
    return catch_all;
}

static const struct sample_source *best_address_source(struct source_probe *why)
{
    const struct sample_source *best = NULL;
    for (const struct sample_source *const *source = source_table(); *source; source++) {
        struct source_probe probe;
        if ((*source)->datacentric_rank <= 0 || (best && best->datacentric_rank >= (*source)->datacentric_rank))
            continue;
        (*source)->probe(&probe);
        if (probe.works)
            best = *source;
        *why = probe;
    }
    return best;
}

/* Why the addresses do not come from the hardware: what each source says that is meant for this processor. */
static void say_no_hardware(char *text, size_t n)
{
    size_t len = 0;
    text[0] = '\0';
    for (const struct sample_source *const *source = source_table(); *source; source++) {
        struct source_probe probe;
        if ((*source)->datacentric_rank < SOURCE_RANK_HARDWARE)
            continue;
        (*source)->probe(&probe);
        if (!probe.is_foreign && len < n)
            len += (size_t)snprintf(text + len, n - len, "%s%s: %s", len ? "; " : "", (*source)->name, probe.reason);
    }
    if (!len)
        (void)snprintf(text, n, "no hardware address sampling is known for this processor");
}

static void say_choice(struct source_plan *plan, const struct source_event *address, const char *faults)
{
    char chosen[sizeof plan->choice], why[320];
    memcpy(chosen, plan->choice, sizeof chosen);
    if (chosen[0]) {
        (void)snprintf(plan->choice, sizeof plan->choice, DATACENTRIC ": %.480s; %.480s", chosen, faults);
        return;
    }
    say_no_hardware(why, sizeof why);
    if (!address) {
        (void)snprintf(plan->choice, sizeof plan->choice, DATACENTRIC ": %.480s only (%s)", faults, why);
        return;
    }
    uint64_t period_ns = address->flags & SOURCE_TIMER ? address->timer_interval_ns : address->attr.sample_period;
    (void)snprintf(plan->choice, sizeof plan->choice,
                   DATACENTRIC ": %s, %" PRIu64 " samples per CPU second, addresses worked out in software (%s); %s",
                   address->name, period_ns ? UINT64_C(1000000000) / period_ns : 0, why, faults);
}

static int plan_faults(struct source_plan *plan, char *text, size_t n)
{
    const struct source_threshold none = {0};
    struct error refused;
    int status = find_source("FAULTS")->plan("FAULTS", &none, plan, &refused);
    (void)snprintf(text, n, "%.500s", status == 0 ? "FAULTS for first touches" : refused.text);
    return status;
}

static int plan_source(const struct sample_source *source, const char *event, const struct source_threshold *threshold,
                       struct source_plan *plan, struct error *err)
{
    if (source->name[0] && !source->takes_terms && !source->takes_file && strchr(event, ','))
        return error_set(err, ERR_USAGE, "%s: %s takes no terms.", event, source->name);
    return source->plan(event, threshold, plan, err);
}

static int refuse_terms(const char *terms, const struct sample_source *source, struct error *err)
{
    char hardware[320];
    say_no_hardware(hardware, sizeof hardware);
    return error_set(err, ERR_USAGE,
                     DATACENTRIC "%s: terms are for addresses from the hardware; here they come from %s (%s).", terms,
                     source->name, hardware);
}

static int refuse_datacentric(const struct source_probe *software, const char *faults, struct error *err)
{
    char hardware[320];
    say_no_hardware(hardware, sizeof hardware);
    return error_set(err, ERR_UNSUPPORTED, "No source of data addresses works here. %s. EADDR: %s. %.400s", hardware,
                     software->reason, faults);
}

/* terms: what the user wrote after the name, from the comma on, for the source that is chosen. */
static int plan_datacentric(const char *terms, const struct source_threshold *threshold, struct source_plan *plan,
                            struct error *err)
{
    char faults[512], event[EVENT_BYTES + 64];
    struct source_probe why = {0};
    const struct source_event *address = NULL;
    const struct sample_source *source = best_address_source(&why);
    if (source) {
        uint32_t at = plan->n_events;
        if (terms[0] && !source->takes_terms)
            return refuse_terms(terms, source, err);
        (void)snprintf(event, sizeof event, "%s%s", source->name, terms);
        int status = plan_source(source, event, threshold, plan, err);
        if (status != 0)
            return status;
        address = &plan->events[at];
    }
    int status = plan_faults(plan, faults, sizeof faults);
    if (!source && status != 0)
        return refuse_datacentric(&why, faults, err);
    plan->wants_datacentric = true;
    say_choice(plan, address, faults);
    return 0;
}

static int plan_one(const char *text, const struct source_threshold *standard, struct source_plan *plan,
                    struct error *err)
{
    char name[EVENT_BYTES];
    struct source_threshold threshold;
    int status = source_parse_event(text, name, sizeof name, &threshold, err);
    if (status != 0)
        return status;
    if (!threshold.is_given && standard)
        threshold = *standard;
    if (is_name(DATACENTRIC, name))
        return plan_datacentric(name + strlen(DATACENTRIC), &threshold, plan, err);
    uint32_t from = plan->n_events;
    status = plan_source(find_source(name), name, &threshold, plan, err);
    for (uint32_t i = from; status == 0 && i < plan->n_events; i++)
        plan->wants_datacentric |= (plan->events[i].flags & SOURCE_ADDRESS) != 0;
    return status;
}

static bool is_in_group(const struct source_plan *plan, uint32_t event)
{
    for (uint32_t i = 0; i < plan->n_events; i++)
        if (plan->events[i].leader == event + 1)
            return true;
    return plan->events[event].leader != 0;
}

static void remove_event(struct source_plan *plan, uint32_t event)
{
    plan->n_events--;
    for (uint32_t i = event; i < plan->n_events; i++)
        plan->events[i] = plan->events[i + 1];
    for (uint32_t i = 0; i < plan->n_events; i++)
        plan->events[i].leader -= plan->events[i].leader > event + 1;
}

/* The event of the plan, before this one, with the same metric; this one when there is none. */
static uint32_t find_twin(const struct source_plan *plan, uint32_t event)
{
    for (uint32_t i = 0; i < event; i++)
        if (!strcasecmp(plan->events[event].metric, plan->events[i].metric))
            return i;
    return event;
}

/* Where the events from first on, which one word of the command line asked for, have been asked for before, the later
 * word counts; but what datacentric brings along is no word on an event (is_along). */
static int settle_twins(struct source_plan *plan, uint32_t first, bool is_along, struct error *err)
{
    for (uint32_t i = first; i < plan->n_events;) {
        uint32_t twin = find_twin(plan, i);
        if (twin == i) {
            i++;
            continue;
        }
        if (twin >= first || is_in_group(plan, i) || is_in_group(plan, twin))
            return error_set(err, ERR_USAGE, "%s is asked for twice.", plan->events[i].name);
        if (!is_along)
            plan->events[twin] = plan->events[i];
        remove_event(plan, i);
    }
    return 0;
}

int source_plan_events(const char *const *events, unsigned n_events, const char *count, struct source_plan *plan,
                       struct error *err)
{
    static const char *const nothing_named[] = {DATACENTRIC};
    struct source_threshold standard = {0};
    *plan = (struct source_plan){0};
    int status = count ? source_parse_threshold("-c", count, &standard, err) : 0;
    standard.is_standard = true;
    if (n_events == 0) {
        events = nothing_named;
        n_events = 1;
    }
    for (unsigned i = 0; status == 0 && i < n_events; i++) {
        uint32_t first = plan->n_events;
        status = plan_one(events[i], count ? &standard : NULL, plan, err);
        if (status == 0)
            status = settle_twins(plan, first, is_name(DATACENTRIC, events[i]), err);
    }
    return status;
}
