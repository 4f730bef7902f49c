/* SPDX-License-Identifier: BSD-3-Clause */
/* From an event's text to attr: who knows the name is asked in order, the kernel's sysfs before libpfm4. See pmu.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sampling/event-places.h"
#include "sampling/near-name.h"
#include "sampling/perf-names.h"
#include "sampling/pmu-parts.h"

#define RAW_PREFIX "perf_raw::"
#define HIGHEST_PRECISE 3

static unsigned highest_precise(const struct pmu *pmu)
{
    return pmu->max_precise ? pmu->max_precise : HIGHEST_PRECISE;
}

static int encode_pmu(const char *event, const struct pmu_text *text, struct perf_event_attr *attr, struct error *err)
{
    struct pmu pmu;
    struct perf_event_attr found = *attr;
    int status = pmu_find_near(text->pmu, &pmu, err);
    if (status != 0)
        return status;
    found.type = pmu.type;
    found.config = found.config1 = found.config2 = 0;
    status = pmu_apply_terms(&pmu, text->terms, &found, err);
    if (status == 0)
        status = pmu_apply_modifiers(event, text->modifiers, highest_precise(&pmu), &found, err);
    if (status == 0)
        *attr = found;
    return status;
}

static bool is_raw(const char *name, uint64_t *config)
{
    if (!strncasecmp(name, RAW_PREFIX, sizeof RAW_PREFIX - 1))
        name += sizeof RAW_PREFIX - 1;
    const char *digits = name + 1;
    size_t n = strspn(digits, "0123456789abcdefABCDEF");
    if (name[0] != 'r' || n == 0 || n > 16 || digits[n])
        return false;
    *config = strtoull(digits, NULL, 16);
    return true;
}

/* A name without modifiers. Returns 1 when nobody knows it. */
static int encode_name(const char *name, struct perf_event_attr *attr, unsigned *max_precise, struct error *err)
{
    struct pmu pmu;
    uint64_t raw;
    const struct perf_name *software = perf_name_find(name);
    *max_precise = HIGHEST_PRECISE;
    if (software) {
        attr->type = PERF_TYPE_SOFTWARE;
        attr->config = software->config;
        attr->config1 = attr->config2 = 0;
        return 0;
    }
    if (pmu_of_event(name, &pmu)) {
        *max_precise = highest_precise(&pmu);
        attr->type = pmu.type;
        attr->config = attr->config1 = attr->config2 = 0;
        return pmu_apply_terms(&pmu, name, attr, err);
    }
    if (is_raw(name, &raw)) {
        attr->type = PERF_TYPE_RAW;
        attr->config = raw;
        attr->config1 = attr->config2 = 0;
        return 0;
    }
    if (tracepoint_encode(name, attr))
        return 0;
    enum perf_name_status status = perf_name_encode(name, attr);
    if (status == PERF_NAME_INCOMPLETE)
        return error_set(err, ERR_USAGE, "%s needs a sub-event, %s:PART; hpcrun -L %s lists them.", name, name, name);
    return status == PERF_NAME_ENCODED ? 0 : 1;
}

static int encode_breakpoint(const char *event, struct perf_event_attr *attr, struct error *err)
{
    struct perf_event_attr found = *attr;
    const char *modifiers;
    int status = breakpoint_encode(event, &found, &modifiers, err);
    if (status == 0)
        status = pmu_apply_modifiers(event, modifiers, 0, &found, err);
    if (status == 0)
        *attr = found;
    return status;
}

/* The form of a tracepoint: two names and one colon. */
static bool is_place(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon && colon != name && colon[1] && !strchr(colon + 1, ':');
}

/* Where only the letters behind the last colon are wrong, the error is about them. */
static int refuse_event(const char *event, const char *name, struct error *err)
{
    char near[512], start[256];
    unsigned max_precise;
    struct perf_event_attr unused = {0};
    const char *colon = strrchr(name, ':');
    (void)snprintf(start, sizeof start, "%.*s", colon ? (int)(colon - name) : 0, name);
    if (colon && isalpha((unsigned char)colon[1]) && encode_name(start, &unused, &max_precise, err) == 0)
        return error_set(err, ERR_USAGE, "%s: '%s' is neither a sub-event nor a list of modifiers (u, k, h, G, H, I, "
                                         "D and e once each, and p, pp, ppp or P).", event, colon + 1);
    if (strchr(name, ','))
        return error_set(err, ERR_USAGE, "'%s' is no event: give -e for each of several events, or write {A,B} for a "
                                         "group.", event);
    if (is_place(name) && tracepoint_obstacle())
        return error_set(err, ERR_USAGE, "There is no event '%s' on this machine; whether it is a tracepoint cannot be "
                                         "told, because %s.", event, tracepoint_obstacle());
    near_name_list(name, near, sizeof near);
    return error_set(err, ERR_USAGE, "There is no event '%s' on this machine%s%s; hpcrun -L lists them.", event,
                     near[0] ? "; near names: " : "", near);
}

/* Letters that end the name behind a colon are cut off, as often as that is needed to find the rest: a sub-event of
 * libpfm4 may look like modifiers. */
static int encode_with_modifiers(const char *event, struct perf_event_attr *attr, struct error *err)
{
    char name[256], letters[64] = "";
    if (snprintf(name, sizeof name, "%s", event) >= (int)sizeof name)
        return error_set(err, ERR_USAGE, "The event '%.64s...' is too long.", event);
    for (;;) {
        unsigned max_precise;
        int status = encode_name(name, attr, &max_precise, err);
        if (status <= 0)
            return status == 0 ? pmu_apply_modifiers(event, letters, max_precise, attr, err) : status;
        char *colon = strrchr(name, ':');
        if (!colon || colon == name || colon[-1] == ':' || !pmu_modifiers_are_valid(colon + 1) ||
            strlen(letters) + strlen(colon + 1) >= sizeof letters)
            break;
        memmove(letters + strlen(colon + 1), letters, strlen(letters) + 1);
        memcpy(letters, colon + 1, strlen(colon + 1));
        *colon = '\0';
    }
    return refuse_event(event, name, err);
}

int pmu_encode(const char *event, struct perf_event_attr *attr, struct error *err)
{
    struct pmu_text text;
    struct perf_event_attr found = *attr;
    if (breakpoint_is_named(event))
        return encode_breakpoint(event, attr, err);
    if (pmu_text_parse(event, &text))
        return encode_pmu(event, &text, attr, err);
    int status = encode_with_modifiers(event, &found, err);
    if (status == 0)
        *attr = found;
    return status;
}
