/* SPDX-License-Identifier: BSD-3-Clause */
/* Bits of attr.config... by the PMU's format directory: "config:0-7,32-35" spreads a value over the bits from the
 * lowest up. See pmu.h.  src: Documentation/ABI/testing/sysfs-bus-event_source-devices-format */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/near-name.h"
#include "sampling/pmu-parts.h"

#define TERM_BYTES 256

/* The word of attr that a format names; NULL when this build has none. */
static __u64 *word_of(const char *format, struct perf_event_attr *attr)
{
    size_t len = strcspn(format, ":");
    if (len == 6 && !strncmp(format, "config", len))
        return &attr->config;
    if (len != 7 || strncmp(format, "config", 6) != 0)
        return NULL;
    switch (format[6]) {
    case '1':
        return &attr->config1;
    case '2':
        return &attr->config2;
#ifdef PERF_ATTR_SIZE_VER8
    case '3':
        return &attr->config3;
#endif
    default:
        return NULL;
    }
}

static uint64_t ones(unsigned n_bits)
{
    return n_bits >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n_bits) - 1;
}

/* Goes through the ranges after the colon: puts value there; returns the number of bits, 0 for a format that cannot be
 * read. word may be NULL: count only. */
static unsigned spread(const char *ranges, uint64_t value, __u64 *word)
{
    unsigned n_bits = 0;
    for (const char *at = ranges; *at;) {
        char *end;
        unsigned long low = strtoul(at, &end, 10), high = low;
        if (end == at)
            return 0;
        if (*end == '-') {
            at = end + 1;
            high = strtoul(at, &end, 10);
            if (end == at)
                return 0;
        }
        if (high < low || high > 63 || (*end != ',' && *end != '\0'))
            return 0;
        unsigned width = (unsigned)(high - low + 1);
        if (word)
            *word = (*word & ~(ones(width) << low)) | ((n_bits < 64 ? value >> n_bits : 0) & ones(width)) << low;
        n_bits += width;
        at = end + (*end == ',');
    }
    return n_bits;
}

struct list {
    char *text;
    size_t n;
};

static bool add_name(const char *name, const char *bits, void *ctx)
{
    struct list *list = ctx;
    size_t len = strlen(list->text);
    (void)bits;
    (void)snprintf(list->text + len, list->n - len, "%s%s", len ? ", " : "", name);
    return true;
}

static int refuse_term(const struct pmu *pmu, const char *term, struct error *err)
{
    char known[480] = "", near[256];
    struct list list = {known, sizeof known};
    pmu_visit_terms(pmu, add_name, &list);
    near_name_of_pmu(pmu, term, near, sizeof near);
    return error_set(err, ERR_USAGE, "The PMU %s has neither an event nor a term '%s'%s%s; its terms: %s.", pmu->name,
                     term, near[0] ? "; near names: " : "", near, known[0] ? known : "config, config1, config2");
}

int pmu_set_term(const struct pmu *pmu, const char *term, uint64_t value, struct perf_event_attr *attr,
                 struct error *err)
{
    char file[TERM_BYTES], format[TERM_BYTES];
    if (strchr(term, '/') || snprintf(file, sizeof file, "format/%s", term) >= (int)sizeof file ||
        !pmu_read(pmu, file, format, sizeof format))
        return refuse_term(pmu, term, err);
    const char *colon = strchr(format, ':');
    __u64 *word = colon ? word_of(format, attr) : NULL;
    unsigned n_bits = colon ? spread(colon + 1, 0, NULL) : 0;
    if (n_bits == 0)
        return error_set(err, ERR_FORMAT, "The kernel's format of %s/%s/, '%s', cannot be read.", pmu->name, term,
                         format);
    if (!word)
        return error_set(err, ERR_UNSUPPORTED,
                         "%s/%s/ lies in %.*s of the event, which the kernel headers of this build do not have.",
                         pmu->name, term, (int)(colon - format), format);
    if (value & ~ones(n_bits))
        return error_set(err, ERR_RANGE, "%s/%s=%" PRIu64 "/ does not fit into %s: at most %" PRIu64 ".", pmu->name,
                         term, value, format, ones(n_bits));
    (void)spread(colon + 1, value, word);
    return 0;
}
