/* SPDX-License-Identifier: BSD-3-Clause */
/* PMU/TERMS/: lists of terms, of which some name events that are lists of terms themselves. See pmu-parts.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/pmu-parts.h"

#define TERMS_BYTES 512

/* One term "NAME[=VALUE]". */
struct term {
    char name[128];
    const char *value; /* behind the '=', NULL without one */
    char text[256];    /* what value points into */
};

/* Takes the next term off *rest; false at the end. */
static bool next_term(const char **rest, struct term *term)
{
    size_t len = strcspn(*rest, ",");
    if (!**rest)
        return false;
    (void)snprintf(term->text, sizeof term->text, "%.*s", (int)len, *rest);
    *rest += len + ((*rest)[len] == ',');
    char *equals = strchr(term->text, '=');
    term->value = equals ? equals + 1 : NULL;
    (void)snprintf(term->name, sizeof term->name, "%.*s", (int)strcspn(term->text, "="), term->text);
    return true;
}

static int parse_value(const struct pmu *pmu, const struct term *term, uint64_t *value, struct error *err)
{
    char *end = NULL;
    *value = 1;
    if (!term->value)
        return 0;
    if (!strcmp(term->value, "?"))
        return error_set(err, ERR_USAGE, "The event of %s needs a value: write %s=NUMBER.", pmu->name, term->name);
    errno = 0;
    if (isdigit((unsigned char)term->value[0]))
        *value = strtoull(term->value, &end, 0);
    if (!end || *end)
        return error_set(err, ERR_USAGE, "%s/%s/: '%s' is no number.", pmu->name, term->text, term->value);
    if (errno == ERANGE)
        return error_set(err, ERR_RANGE, "%s/%s/: %s has more than 64 bits.", pmu->name, term->text, term->value);
    return 0;
}

/* True when the term is one that every PMU has; then it has been done. */
static bool apply_common(const char *name, uint64_t value, struct perf_event_attr *attr)
{
    if (!strcmp(name, "config")) {
        attr->config = value;
    } else if (!strcmp(name, "config1")) {
        attr->config1 = value;
    } else if (!strcmp(name, "config2")) {
        attr->config2 = value;
#ifdef PERF_ATTR_SIZE_VER8
    } else if (!strcmp(name, "config3")) {
        attr->config3 = value;
#endif
    } else if (!strcmp(name, "period")) {
        attr->freq = 0;
        attr->sample_period = value;
    } else if (!strcmp(name, "freq")) {
        attr->freq = 1;
        attr->sample_freq = value;
    } else {
        return false;
    }
    return true;
}

static bool is_event(const struct pmu *pmu, const struct term *term, char *terms, size_t n_terms)
{
    char file[160];
    (void)snprintf(file, sizeof file, "events/%s", term->name);
    return !term->value && !strpbrk(term->name, "./") && pmu_read(pmu, file, terms, (unsigned)n_terms);
}

static bool has_parameter(const char *terms, const char *name)
{
    struct term term;
    for (const char *rest = terms; next_term(&rest, &term);)
        if (!strcmp(term.name, name))
            return true;
    return false;
}

/* The terms of a list but for the events in it. given: the user's list, whose values stand in for a "?". */
static int apply_plain(const struct pmu *pmu, const char *terms, const char *given, struct perf_event_attr *attr,
                       struct error *err)
{
    struct term term;
    char event_terms[TERMS_BYTES];
    int status = 0;
    for (const char *rest = terms; status == 0 && next_term(&rest, &term);) {
        uint64_t value;
        if (is_event(pmu, &term, event_terms, sizeof event_terms) || !strcmp(term.name, "name"))
            continue;
        if (term.value && !strcmp(term.value, "?") && given && has_parameter(given, term.name))
            continue;
        status = parse_value(pmu, &term, &value, err);
        if (status == 0 && !apply_common(term.name, value, attr))
            status = pmu_set_term(pmu, term.name, value, attr, err);
    }
    return status;
}

int pmu_apply_terms(const struct pmu *pmu, const char *terms, struct perf_event_attr *attr, struct error *err)
{
    struct term term;
    char event_terms[TERMS_BYTES];
    int status = 0;
    for (const char *rest = terms; status == 0 && next_term(&rest, &term);)
        if (is_event(pmu, &term, event_terms, sizeof event_terms))
            status = apply_plain(pmu, event_terms, terms, attr, err);
    return status == 0 ? apply_plain(pmu, terms, NULL, attr, err) : status;
}

bool pmu_text_parse(const char *event, struct pmu_text *text)
{
    const char *slash = strchr(event, '/'), *end = slash ? strrchr(slash + 1, '/') : NULL;
    if (!end || slash == event)
        return false;
    const char *modifiers = end + 1 + (end[1] == ':');
    int lengths[] = {snprintf(text->pmu, sizeof text->pmu, "%.*s", (int)(slash - event), event),
                     snprintf(text->terms, sizeof text->terms, "%.*s", (int)(end - slash - 1), slash + 1),
                     snprintf(text->modifiers, sizeof text->modifiers, "%s", modifiers)};
    return (size_t)lengths[0] < sizeof text->pmu && (size_t)lengths[1] < sizeof text->terms &&
           (size_t)lengths[2] < sizeof text->modifiers;
}

bool pmu_event_label(const char *event, char *out, unsigned n_out)
{
    struct pmu_text text;
    struct term term;
    bool has_label = false;
    if (!pmu_text_parse(event, &text))
        return false;
    for (const char *rest = text.terms; next_term(&rest, &term);)
        if (!strcmp(term.name, "name") && term.value && term.value[0]) {
            (void)snprintf(out, n_out, "%s", term.value);
            has_label = true;
        }
    return has_label;
}
