/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared pieces of the sources; see plan-parts.h. Ordinary code of the launcher. */
#include "sampling/plan-parts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "sampling/machine.h"

#define PERIOD_MIN_NS UINT64_C(10000) /* 100 kHz: below, the handler takes all of the time */
#define PERIOD_MAX_NS UINT64_C(1000000000000)
#define FREQUENCY_MAX_HZ 100000 /* the kernel's own default */
#define NS_PER_S UINT64_C(1000000000)

/* Names too long for their place are cut, with a hash of the whole at the end that keeps them apart. */
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
            return error_set(err, ERR_USAGE, "%s: '%s' is no number.", event, digits);
        return 0;
    }
    list_terms(known, names, sizeof names);
    return error_set(err, ERR_USAGE, "%s: there is no term '%s' here; known are %s.", event, text, names);
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

int source_period_ns(const char *event, const struct source_threshold *threshold, unsigned default_hz,
                     uint64_t *period_ns, struct error *err)
{
    uint64_t period = NS_PER_S / default_hz;
    if (threshold->is_given)
        period = threshold->is_frequency ? NS_PER_S / threshold->value : threshold->value;
    if (period < PERIOD_MIN_NS || period > PERIOD_MAX_NS)
        return error_set(err, ERR_RANGE,
                         "%s: a period of %" PRIu64 " ns is impossible: this clock takes %" PRIu64 " ns (100 kHz) to %"
                         PRIu64 " s; write for example %s@f1000 for 1000 samples a second.",
                         event, period, PERIOD_MIN_NS, PERIOD_MAX_NS / NS_PER_S, event);
    *period_ns = period;
    return 0;
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
    return error_set(err, ERR_RANGE, "%s: %" PRIu64 " samples a second are more than the kernel allows: "
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
        return 250; /* what most kernels are built with */
    return (unsigned)(1000000000L / tick.tv_nsec);
}
