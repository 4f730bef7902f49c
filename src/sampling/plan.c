/* SPDX-License-Identifier: BSD-3-Clause */
/* From the user's -e options to a plan, and functions that sources share; see probe.h. Ordinary code of the launcher.
 */
#include "sampling/probe.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "sampling/machine.h"

#define PERIOD_MAX_NS UINT64_C(1000000000000)
#define FREQUENCY_MAX_HZ 100000 /* the kernel's own default */

/* Sets a name. One that is too long is cut and ends in a hash of the whole, so that different names stay different. */
static void set_name(char *out, size_t n, const char *name)
{
    uint32_t hash = 2166136261u;
    if (snprintf(out, n, "%s", name) < (int)n)
        return;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    (void)snprintf(out + n - 10, 10, "~%08" PRIx32, hash);
}

struct source_event *source_plan_add(struct source_plan *plan, enum source_number source, const char *name,
                                     const char *metric, struct error *err)
{
    if (plan->n_events == SOURCE_EVENTS_MAX) {
        (void)error_set(err, ERR_RANGE, "More than %d events cannot be sampled in one run.", SOURCE_EVENTS_MAX);
        return NULL;
    }
    struct source_event *event = &plan->events[plan->n_events++];
    *event = (struct source_event){.source = source, .scale = 1};
    set_name(event->name, sizeof event->name, name);
    set_name(event->metric, sizeof event->metric, metric);
    return event;
}

void source_plan_warn(struct source_plan *plan, const char *format, ...)
{
    size_t len = strlen(plan->warning);
    va_list arguments;
    if (len > 0 && len < sizeof plan->warning - 1)
        plan->warning[len++] = ' ';
    va_start(arguments, format);
    (void)vsnprintf(plan->warning + len, sizeof plan->warning - len, format, arguments);
    va_end(arguments);
}

static void list_terms(const struct source_term *known, char *out, size_t n_out)
{
    size_t len = 0;
    out[0] = '\0';
    for (const struct source_term *term = known; term->name && len < n_out; term++)
        len += (size_t)snprintf(out + len, n_out - len, "%s%s%s", len ? ", " : "", term->name,
                                term->has_value ? "=N" : "");
}

static int take_term(const char *event, const char *text, const struct source_term *known, struct error *err)
{
    char names[160], *end = NULL;
    size_t len = strcspn(text, "=");
    for (const struct source_term *term = known; term->name; term++) {
        if (strlen(term->name) != len || strncasecmp(term->name, text, len) != 0 ||
            term->has_value != (text[len] == '='))
            continue;
        const char *digits = text + len + 1;
        if (!term->has_value) {
            *term->value = 1;
            return 0;
        }
        errno = 0;
        *term->value = isdigit((unsigned char)*digits) ? strtoull(digits, &end, 0) : 0;
        if (!end || *end || errno)
            return error_set(err, ERR_USAGE, "%s: '%s' is not a number.", event, digits);
        return 0;
    }
    list_terms(known, names, sizeof names);
    return error_set(err, ERR_USAGE, "%s: there is no term '%s' here; the known ones are %s.", event, text, names);
}

int source_parse_terms(const char *event, const struct source_term *known, struct error *err)
{
    char text[256];
    for (const char *at = strchr(event, ','); at; at = strchr(at + 1, ',')) {
        (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(at + 1, ","), at + 1);
        int status = take_term(event, text, known, err);
        if (status != 0)
            return status;
    }
    return 0;
}

void source_attr_init(struct perf_event_attr *attr, uint32_t type, uint64_t config)
{
    *attr = (struct perf_event_attr){
        .size = sizeof *attr,
        .type = type,
        .config = config,
        .sample_type = PERF_SAMPLE_IP,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .wakeup_events = 1,
        .write_backward = 1,
    };
}

/* "1 ms": in the largest unit that needs no fraction. */
static void say_time(uint64_t ns, char *text, size_t n)
{
    if (ns % CLOCK_S_NS == 0)
        (void)snprintf(text, n, "%" PRIu64 " s", ns / CLOCK_S_NS);
    else if (ns % CLOCK_MS_NS == 0)
        (void)snprintf(text, n, "%" PRIu64 " ms", ns / CLOCK_MS_NS);
    else if (ns % CLOCK_US_NS == 0)
        (void)snprintf(text, n, "%" PRIu64 " us", ns / CLOCK_US_NS);
    else
        (void)snprintf(text, n, "%" PRIu64 " ns", ns);
}

int source_check_clock(const char *event, uint64_t period_ns, const char *unit, unsigned bare_ns, struct error *err)
{
    char period[40];
    if (period_ns >= SOURCE_CLOCK_MIN_NS && period_ns <= PERIOD_MAX_NS)
        return 0;
    say_time(period_ns, period, sizeof period);
    return error_set(
        err, ERR_RANGE,
        "%s: a period of %s is too %s: a clock takes %u us (%u samples a second) to %u s; a number without "
        "a unit is %s, so write for example %s@%u, %s@1ms or %s@f1000.",
        event, period, period_ns > PERIOD_MAX_NS ? "long" : "short", (unsigned)(SOURCE_CLOCK_MIN_NS / CLOCK_US_NS),
        (unsigned)(CLOCK_S_NS / SOURCE_CLOCK_MIN_NS), (unsigned)(PERIOD_MAX_NS / CLOCK_S_NS), unit, event,
        (unsigned)(CLOCK_MS_NS / bare_ns), event, event);
}

int source_check_count(const char *event, const struct source_threshold *threshold, struct error *err)
{
    if (!threshold->is_given || !threshold->is_time)
        return 0;
    return error_set(err, ERR_USAGE,
                     "%s counts events, not time: its period is a number without ns, us, ms or s; only the clocks "
                     "(EADDR, CPUTIME, REALTIME, task-clock, cpu-clock) take a time.",
                     event);
}

int source_period_ns(const char *event, const struct source_threshold *threshold, unsigned default_hz,
                     uint64_t *period_ns, struct error *err)
{
    uint64_t value = threshold->value;
    *period_ns = CLOCK_S_NS / default_hz;
    if (threshold->is_given && threshold->is_frequency)
        *period_ns = CLOCK_S_NS / value;
    else if (threshold->is_given && threshold->is_time)
        *period_ns = value;
    else if (threshold->is_given) /* as HPCToolkit's; beyond the longest period it matters no more how long */
        *period_ns = value <= UINT64_MAX / CLOCK_US_NS ? value * CLOCK_US_NS : UINT64_MAX;
    return source_check_clock(event, *period_ns, "microseconds", CLOCK_US_NS, err);
}

static uint64_t frequency_max(void)
{
    long max = machine_read_number("/proc/sys/kernel/perf_event_max_sample_rate", FREQUENCY_MAX_HZ);
    return max > 0 ? (uint64_t)max : FREQUENCY_MAX_HZ;
}

int source_check_frequency(const char *event, uint64_t hz, struct error *err)
{
    uint64_t max = frequency_max();
    if (hz <= max)
        return 0;
    return error_set(err, ERR_RANGE,
                     "%s: %" PRIu64 " samples a second are more than the kernel allows: "
                     "kernel.perf_event_max_sample_rate is %" PRIu64 " (sysctl, as root).",
                     event, hz, max);
}

uint64_t source_default_frequency(uint64_t hz)
{
    uint64_t max = frequency_max();
    return hz < max ? hz : max;
}

unsigned source_tick_hz(void)
{
    struct timespec tick;
    if (machine_is_fixture() || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0 || tick.tv_nsec <= 0)
        return 250; /* the value that most kernels are built with */
    return (unsigned)((long)CLOCK_S_NS / tick.tv_nsec);
}

/* --- the plan --- */

/* From the user's -e options to a plan; "datacentric" becomes the best address source that works on this machine, page
 * faults, and the sizes of variables. Ordinary code of the launcher. */

#define EVENT_BYTES 256
#define DATACENTRIC "datacentric"

/* True when event is name, ignoring terms (NAME,term=VALUE) and forms (FAULTS@ring). */
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

/* Explains why the addresses do not come from the hardware: the answer of each source for this processor. */
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
                   DATACENTRIC ": %s, %" PRIu64 " per CPU second, addresses by software (%s); %s", address->name,
                   period_ns ? CLOCK_S_NS / period_ns : 0, why, faults);
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
    return error_set(err, ERR_UNSUPPORTED, "no source of data addresses works here. %s. EADDR: %s. %.400s", hardware,
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

#define MODIFIERS "ukhIGHpPSDWe" /* of perf events; other text behind a colon is the name of a tracepoint */

/* What has no meaning as a perf event may be one of our sources, written as if it were one. */
static int explain_misuse(const char *event, int status, struct error *err)
{
    bool is_group = *event == '{';
    for (const char *at = event + is_group; *at && status == ERR_USAGE; at += strcspn(at, ",}"), at += *at != '\0') {
        char word[EVENT_BYTES];
        int len = (int)strcspn(at, ":,}@");
        (void)snprintf(word, sizeof word, "%.*s", len, at);
        const struct sample_source *source = find_source(word);
        if (!source->name[0] || !strstr(err->text, word))
            continue;
        if (is_group)
            return error_set(err, status, "%s: %s is no perf event and cannot be in a group; give it a -e of its own.",
                             event, source->name);
        const char *modifiers = at + len + 1;
        if (at[len] == ':' && !modifiers[strspn(modifiers, MODIFIERS)])
            return error_set(err, status, "%s: %s takes no modifiers; write -e %s.", event, source->name, word);
    }
    return status;
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
    const struct sample_source *source = find_source(name);
    status = plan_source(source, name, &threshold, plan, err);
    if (!source->name[0])
        status = explain_misuse(name, status, err);
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

/* Page faults that needed a disk, or none, are two events of one metric. */
static bool is_pair(const struct source_event *a, const struct source_event *b)
{
    return a->source == SOURCE_NUMBER_FAULTS && b->source == SOURCE_NUMBER_FAULTS &&
           a->attr.config + b->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MIN + PERF_COUNT_SW_PAGE_FAULTS_MAJ &&
           a->attr.config != b->attr.config;
}

/* The first event in [first, end) that has the same metric as event and cannot be beside it; end when there is none. */
static uint32_t find_rival(const struct source_plan *plan, uint32_t event, uint32_t first, uint32_t end)
{
    const struct source_event *this = &plan->events[event];
    while (first < end &&
           (strcasecmp(this->metric, plan->events[first].metric) != 0 || is_pair(this, &plan->events[first])))
        first++;
    return first;
}

/* The events from first on come from one word of the command line. If an event is in the plan already, the later word
 * wins; but events that datacentric only adds (is_along) replace none. */
static int settle_twins(struct source_plan *plan, uint32_t first, bool is_along, struct error *err)
{
    for (uint32_t i = first; i < plan->n_events; i++) {
        uint32_t rival = find_rival(plan, i, 0, i);
        if (rival == i)
            continue;
        if (rival >= first || is_in_group(plan, i) || is_in_group(plan, rival))
            return error_set(err, ERR_USAGE, "%s is asked for twice.", plan->events[i].name);
        if (!is_along)
            plan->events[rival] = plan->events[i];
        remove_event(plan, i--);
        for (uint32_t old; !is_along && (old = find_rival(plan, rival, rival + 1, first)) < first; first--, i--)
            remove_event(plan, old);
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
