/* SPDX-License-Identifier: BSD-3-Clause */
/* From an event's text to its attributes: terms of a PMU, modifiers, groups, breakpoints and tracepoints. See pmu.h. */
#include "sampling/pmu.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/hw_breakpoint.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/environment.h"
#include "sampling/event.h"
#include "sampling/machine.h"
#include "sampling/perf-names.h"

#define TERMS_BYTES 512

/* One term "NAME[=VALUE]". */
struct term {
    char name[128];
    const char *value; /* after the '=', NULL without one */
    char text[256];    /* the text that value points into */
};

/* Takes the next term from the front of *rest; false at the end. */
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
        return error_set(err, ERR_USAGE, "the event of %s needs a value: write %s=NUMBER.", pmu->name, term->name);
    errno = 0;
    if (isdigit((unsigned char)term->value[0]))
        *value = strtoull(term->value, &end, 0);
    if (!end || *end)
        return error_set(err, ERR_USAGE, "%s/%s/: '%s' is not a number.", pmu->name, term->text, term->value);
    if (errno == ERANGE)
        return error_set(err, ERR_RANGE, "%s/%s/: %s has more than 64 bits.", pmu->name, term->text, term->value);
    return 0;
}

/* Applies a term that every PMU has; false when it is another one. */
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

/* Applies the terms of a list except the events in it. given: the user's list, whose values replace a "?". */
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

/* Applies the terms "mem-loads,ldlat=30" to attr->config...: those of named events first.
 * err: ERR_USAGE, ERR_RANGE, ERR_UNSUPPORTED */
static int pmu_apply_terms(const struct pmu *pmu, const char *terms, struct perf_event_attr *attr, struct error *err)
{
    struct term term;
    char event_terms[TERMS_BYTES];
    int status = 0;
    for (const char *rest = terms; status == 0 && next_term(&rest, &term);)
        if (is_event(pmu, &term, event_terms, sizeof event_terms))
            status = apply_plain(pmu, event_terms, terms, attr, err);
    return status == 0 ? apply_plain(pmu, terms, NULL, attr, err) : status;
}

/* Splits "PMU/TERMS/[:]MODIFIERS"; false when the text does not have this form or is too long. */
static bool pmu_text_parse(const char *event, struct pmu_text *text)
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

/* --- modifiers --- */

/* The letters after an event and the groups around events; see pmu.h.  src: perf-list(1), "EVENT MODIFIERS" */

#define LETTERS "ukhpPGHIDeS"

static size_t count(const char *letters, char letter)
{
    size_t n = 0;
    for (; *letters; letters++)
        n += *letters == letter;
    return n;
}

/* True when letters are modifiers and none occurs too often. */
static bool pmu_modifiers_are_valid(const char *letters)
{
    size_t len = strlen(letters);
    if (len == 0 || strspn(letters, LETTERS) != len)
        return false;
    for (const char *letter = LETTERS; *letter; letter++)
        if (count(letters, *letter) > (*letter == 'p' ? 3u : 1u))
            return false;
    return !(strchr(letters, 'p') && strchr(letters, 'P'));
}

static void set_levels(const char *letters, struct perf_event_attr *attr)
{
    if (strpbrk(letters, "ukh")) {
        attr->exclude_user = !strchr(letters, 'u');
        attr->exclude_kernel = !strchr(letters, 'k');
        attr->exclude_hv = !strchr(letters, 'h');
    }
    if (strpbrk(letters, "GH")) {
        attr->exclude_guest = !strchr(letters, 'G');
        attr->exclude_host = !strchr(letters, 'H');
    }
    if (strchr(letters, 'I'))
        attr->exclude_idle = 1;
}

/* Applies the modifiers to attr; max_precise: what P means.  err: ERR_USAGE letters that are not modifiers */
static int pmu_apply_modifiers(const char *event, const char *letters, unsigned max_precise,
                               struct perf_event_attr *attr, struct error *err)
{
    if (!letters[0])
        return 0;
    if (!pmu_modifiers_are_valid(letters))
        return error_set(err, ERR_USAGE,
                         "%s: '%s' are not modifiers: u, k, h, G, H, I, D and e once each, and p, pp, ppp or P.", event,
                         letters);
    set_levels(letters, attr);
    if (strpbrk(letters, "pP"))
        attr->precise_ip = (strchr(letters, 'P') ? max_precise : (unsigned)count(letters, 'p')) & 3;
    if (strchr(letters, 'D'))
        attr->pinned = 1;
    if (strchr(letters, 'e'))
        attr->exclusive = 1;
    if (strchr(letters, 'S')) {
        attr->sample_type |= PERF_SAMPLE_READ;
        attr->read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
    }
    return 0;
}

/* True when one of these letters is among the event's modifiers. */
static bool has_modifier(const char *event, const char *letters)
{
    struct pmu_text text;
    const char *colon = strrchr(event, ':');
    if (pmu_text_parse(event, &text))
        return strpbrk(text.modifiers, letters) != NULL;
    return colon && pmu_modifiers_are_valid(colon + 1) && strpbrk(colon + 1, letters);
}

bool pmu_wants_highest_precision(const char *event)
{
    return has_modifier(event, "P");
}

bool pmu_names_levels(const char *event)
{
    return has_modifier(event, "ukh");
}

/* Length of the group's member at text, which ends at a comma or closing brace outside slashes. */
static size_t member_length(const char *text)
{
    bool is_inside = false;
    size_t len = 0;
    for (; text[len] && (is_inside || (text[len] != ',' && text[len] != '}')); len++)
        is_inside ^= text[len] == '/';
    return len;
}

static int add_member(const char *event, const char *text, size_t len, const char *modifiers, char *member,
                      struct error *err)
{
    bool has_slashes = memchr(text, '/', len) != NULL;
    const char *colon = has_slashes || !modifiers[0] ? "" : ":";
    const char *at = memchr(text, '@', len);
    size_t len_name = at ? (size_t)(at - text) : len;
    if (len == 0)
        return error_set(err, ERR_USAGE, "%s: an event of the group is empty.", event);
    if (memchr(text, '{', len))
        return error_set(err, ERR_USAGE, "%s: groups cannot be nested.", event);
    if (snprintf(member, 256, "%.*s%s%s%.*s", (int)len_name, text, colon, modifiers, (int)(len - len_name),
                 text + len_name) >= 256)
        return error_set(err, ERR_USAGE, "%s: an event of the group is too long.", event);
    return 0;
}

/* Finds the closing brace and checks the text after it. */
static const char *find_close(const char *event, struct error *err)
{
    const char *close = strrchr(event, '}');
    if (!close) {
        (void)error_set(err, ERR_USAGE, "%s: the group lacks its closing brace.", event);
        return NULL;
    }
    if (close[1] && (close[1] != ':' || !pmu_modifiers_are_valid(close + 2))) {
        (void)error_set(err, ERR_USAGE, "%s: '%s' are not modifiers of a group.", event, close + 1);
        return NULL;
    }
    return close;
}

int pmu_split_group(const char *event, char (*members)[256], unsigned n_max, struct error *err)
{
    unsigned n = 0;
    if (event[0] != '{') {
        if (n_max == 0 || snprintf(members[0], sizeof members[0], "%s", event) >= (int)sizeof members[0])
            return error_set(err, ERR_USAGE, "the event '%.64s...' is too long.", event);
        return 1;
    }
    const char *close = find_close(event, err);
    if (!close)
        return ERR_USAGE;
    const char *modifiers = close[1] ? close + 2 : "";
    for (const char *at = event + 1;; n++) {
        size_t len = member_length(at);
        if (n == n_max)
            return error_set(err, ERR_USAGE, "%s: more than %u events cannot be in one group.", event, n_max);
        int status = add_member(event, at, len, modifiers, members[n], err);
        if (status != 0)
            return status;
        at += len;
        if (at >= close)
            return (int)n + 1;
        at++;
    }
}

/* --- fields of a format --- */

/* Bits of attr.config... from the PMU's format directory: "config:0-7,32-35" spreads a value over these bits, lowest
 * first. See pmu.h.  src: Documentation/ABI/testing/sysfs-bus-event_source-devices-format */

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
    return error_set(err, ERR_USAGE, "the PMU %s has neither an event nor a term '%s'%s%s; its terms: %s.", pmu->name,
                     term, near[0] ? "; similar names: " : "", near, known[0] ? known : "config, config1, config2");
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
        return error_set(err, ERR_FORMAT, "the kernel's format of %s/%s/, '%s', cannot be read.", pmu->name, term,
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

/* --- breakpoints --- */

/* Breakpoints as events; see event.h. */

#define PREFIX "mem:"

bool breakpoint_is_named(const char *event)
{
    return !strncmp(event, PREFIX, sizeof PREFIX - 1) && isdigit((unsigned char)event[sizeof PREFIX - 1]);
}

/* The kinds of access given after a colon; 0 when the letters name none (then they are modifiers). */
static uint32_t access_of(const char *letters, size_t len)
{
    uint32_t access = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t bit = letters[i] == 'r'   ? HW_BREAKPOINT_R
                       : letters[i] == 'w' ? HW_BREAKPOINT_W
                       : letters[i] == 'x' ? HW_BREAKPOINT_X
                                           : 0;
        if (!bit || access & bit)
            return 0;
        access |= bit;
    }
    return access;
}

static int parse_number(const char *event, const char **at, const char *what, uint64_t *value, struct error *err)
{
    char *end;
    errno = 0;
    *value = strtoull(*at, &end, 0);
    if (end == *at || !isdigit((unsigned char)**at) || errno)
        return error_set(err, ERR_USAGE, "%s: there is no %s at '%s'; the form is mem:ADDRESS[/BYTES][:rwx].", event,
                         what, *at);
    *at = end;
    return 0;
}

static int check(const char *event, const struct perf_event_attr *attr, struct error *err)
{
    if (attr->bp_len != 1 && attr->bp_len != 2 && attr->bp_len != 4 && attr->bp_len != 8)
        return error_set(err, ERR_RANGE, "%s: a breakpoint covers 1, 2, 4 or 8 bytes.", event);
    if (!(attr->bp_type & HW_BREAKPOINT_X) && attr->bp_addr % attr->bp_len)
        return error_set(err, ERR_RANGE, "%s: the address is not a multiple of its %llu bytes.", event,
                         (unsigned long long)attr->bp_len);
    if (attr->bp_type != HW_BREAKPOINT_X && attr->bp_type & HW_BREAKPOINT_X)
        return error_set(err, ERR_USAGE, "%s: x cannot be combined with r or w.", event);
    return 0;
}

/* mem:ADDRESS[/BYTES][:ACCESS]: type, bp_type, bp_addr and bp_len of *attr. ACCESS: r, w, rw or x; the defaults are rw
 * and 4 bytes. *modifiers points to the rest of the text, modifiers without their colon, inside event, or to "".
 * src: perf_event_open(2), perf-record(1)
 * err: ERR_USAGE, ERR_RANGE */
static int breakpoint_encode(const char *event, struct perf_event_attr *attr, const char **modifiers, struct error *err)
{
    uint64_t address, n_bytes = 0;
    const char *at = event + sizeof PREFIX - 1;
    int status = parse_number(event, &at, "address", &address, err);
    if (status == 0 && *at == '/') {
        at++;
        status = parse_number(event, &at, "number of bytes", &n_bytes, err);
    }
    if (status != 0)
        return status;
    uint32_t access = *at == ':' ? access_of(at + 1, strcspn(at + 1, ":")) : 0;
    if (access)
        at += 1 + strcspn(at + 1, ":");
    if (*at && *at != ':')
        return error_set(err, ERR_USAGE, "%s: '%s' is not understood; the form is mem:ADDRESS[/BYTES][:rwx].", event,
                         at);
    *modifiers = *at ? at + 1 : at;
    attr->type = PERF_TYPE_BREAKPOINT;
    attr->config = 0;
    attr->bp_type = access ? access : HW_BREAKPOINT_RW;
    attr->bp_addr = address;
    attr->bp_len = n_bytes ? n_bytes : access == HW_BREAKPOINT_X ? sizeof(long) : sizeof(uint32_t);
    return check(event, attr, err);
}

/* --- tracepoints --- */

/* Tracepoints from the kernel's directory of them; see event.h. */

/* Finds the events directory of tracefs; false when there is none. */
static bool find_events(char *path, size_t n)
{
    static const char *const places[] = {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (machine_exists(places[i]) && (machine_is_fixture() || !environment_lacks("tracepoints")))
            return snprintf(path, n, "%s", places[i]) < (int)n;
    return false;
}

const char *tracepoint_obstacle(void)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (find_events(path, sizeof path))
        return machine_path(path, real, sizeof real) && access(real, R_OK | X_OK) == 0
                   ? NULL
                   : "tracefs may be read by root only";
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

/* SUBSYSTEM:NAME: sets type and config of *attr from tracefs. False when tracefs has no such tracepoint. */
static bool tracepoint_encode(const char *name, struct perf_event_attr *attr)
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

struct tracepoint_visitor {
    const char *events, *subsystem;
    bool (*visit)(const char *name, void *ctx);
    void *ctx;
};

static bool visit_point(const struct tracepoint_visitor *visitor, const char *name)
{
    char whole[2 * NAME_MAX];
    uint64_t id;
    if (!read_id(visitor->events, visitor->subsystem, name, &id))
        return true;
    (void)snprintf(whole, sizeof whole, "%s:%s", visitor->subsystem, name);
    return visitor->visit(whole, visitor->ctx);
}

/* Passes the entries of a directory, sorted, to take until it returns false; returns false then. */
static bool visit_entries(const struct tracepoint_visitor *visitor, const char *subsystem,
                          bool (*take)(const struct tracepoint_visitor *visitor, const char *name))
{
    char path[PATH_MAX], real[PATH_MAX];
    struct dirent **entries = NULL;
    bool goes_on = true;
    (void)snprintf(path, sizeof path, "%s/%s", visitor->events, subsystem);
    int n = machine_path(path, real, sizeof real) ? scandir(real, &entries, is_name, by_bytes) : -1;
    for (int i = 0; i < n; i++) {
        goes_on = goes_on && take(visitor, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return goes_on;
}

static bool visit_subsystem(const struct tracepoint_visitor *visitor, const char *subsystem)
{
    struct tracepoint_visitor inner = *visitor;
    inner.subsystem = subsystem;
    return visit_entries(&inner, subsystem, visit_point);
}

void tracepoint_visit(bool (*visit)(const char *name, void *ctx), void *ctx)
{
    char events[PATH_MAX];
    const struct tracepoint_visitor visitor = {.events = events, .visit = visit, .ctx = ctx};
    if (find_events(events, sizeof events))
        (void)visit_entries(&visitor, "", visit_subsystem);
}

/* --- an event --- */

/* From an event's text to attr: the places that may know the name are asked in order, the kernel's sysfs before
 * libpfm4. See pmu.h. */

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

/* Encodes a name without modifiers. Returns 1 when the name is not known anywhere. */
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
    /* where debugfs is mounted, libpfm4 knows tracepoints too, with other modifiers: those of tracefs stand */
    return status == PERF_NAME_ENCODED && attr->type != PERF_TYPE_TRACEPOINT ? 0 : 1;
}

static int encode_breakpoint(const char *event, struct perf_event_attr *attr, struct error *err)
{
    struct perf_event_attr found = *attr;
    const char *modifiers = NULL;
    int status = breakpoint_encode(event, &found, &modifiers, err);
    if (status == 0)
        status = pmu_apply_modifiers(event, modifiers, 0, &found, err);
    if (status == 0)
        *attr = found;
    return status;
}

/* True when the name has the form of a tracepoint: two names and one colon. */
static bool is_place(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon && colon != name && colon[1] && !strchr(colon + 1, ':');
}

/* Reports a preset of PAPI that is made of several events, and how it is had of them. */
static int refuse_preset(const char *event, const char *name, const char *formula, struct error *err)
{
    char words[512], quoted[512], *rest = NULL;
    size_t n_words = 0, n_quoted = 0;
    char *copy = strdup(formula);
    if (!copy)
        return error_memory(err);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        bool is_event = isalpha((unsigned char)*word);
        if (is_event && n_words < sizeof words)
            n_words += (size_t)snprintf(words + n_words, sizeof words - n_words, " -e %s", word);
        if (n_quoted < sizeof quoted)
            n_quoted += (size_t)snprintf(quoted + n_quoted, sizeof quoted - n_quoted, is_event ? " '%s'" : " %s", word);
    }
    free(copy);
    return error_set(err, ERR_USAGE,
                     "%s is several events here, which are sampled one by one:%s. hpcquery makes it of them: --derive "
                     "\"%s =%s\"",
                     event, words, name + (strncasecmp(name, "papi::", 6) == 0 ? 6 : 0), quoted);
}

/* Reports an unknown event. If only the letters after the last colon are wrong, the error is about them. */
static int refuse_event(const char *event, const char *name, struct error *err)
{
    char near[512], start[256];
    unsigned max_precise;
    struct perf_event_attr unused = {0};
    const char *colon = strrchr(name, ':'), *formula = perf_preset_formula(name);
    if (formula)
        return refuse_preset(event, name, formula, err);
    (void)snprintf(start, sizeof start, "%.*s", colon ? (int)(colon - name) : 0, name);
    if (colon && isalpha((unsigned char)colon[1]) && encode_name(start, &unused, &max_precise, err) == 0)
        return error_set(err, ERR_USAGE,
                         "%s: '%s' is neither a sub-event nor a list of modifiers (u, k, h, G, H, I, "
                         "D and e once each, and p, pp, ppp or P).",
                         event, colon + 1);
    if (strchr(name, ','))
        return error_set(err, ERR_USAGE,
                         "'%s' is not an event: give -e for each of several events, or write {A,B} for a "
                         "group.",
                         event);
    if (is_place(name) && tracepoint_obstacle())
        return error_set(err, ERR_USAGE,
                         "there is no event '%s' on this machine; it is not known whether it is a "
                         "tracepoint, because %s.",
                         event, tracepoint_obstacle());
    if (perf_names_obstacle())
        return error_set(err, ERR_USAGE, "there is no event '%s' on this machine, as far as is known: %s.", event,
                         perf_names_obstacle());
    near_name_list(name, near, sizeof near);
    return error_set(err, ERR_USAGE, "there is no event '%s' on this machine%s%s; hpcrun -L lists them.", event,
                     near[0] ? "; similar names: " : "", near);
}

/* Splits letters after a colon off the end of the name, as often as needed until the rest is a known name: a sub-event
 * of libpfm4 may look like modifiers. */
static int encode_with_modifiers(const char *event, struct perf_event_attr *attr, struct error *err)
{
    char name[256], letters[64] = "";
    if (snprintf(name, sizeof name, "%s", event) >= (int)sizeof name)
        return error_set(err, ERR_USAGE, "the event '%.64s...' is too long.", event);
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
