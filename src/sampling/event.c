/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as the user writes them: NAME, NAME@period, NAME@TIME, NAME@fHZ; as in the original, a colon before a digit or
 * an f also separates them if there is no @. Ordinary code of the launcher. */
#include "sampling/event.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "sampling/perf-names.h"
#include "sampling/pmu.h"
#include "sampling/probe.h"
#include "sampling/source.h"

/* A unit of time that may follow a number; 0 ns when text is none. */
static uint64_t unit_ns(const char *text)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", CLOCK_US_NS}, {"ms", CLOCK_MS_NS}, {"s", CLOCK_S_NS}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(text, units[i].name))
            return units[i].ns;
    return 0;
}

static const char *find_separator(const char *text)
{
    const char *at = strrchr(text, '@'), *close = strrchr(text, '}');
    if (text[0] == '{') /* the thresholds in a group belong to its members */
        return close && close[strcspn(close, "@")] ? close + strcspn(close, "@") : NULL;
    if (at)
        return strcasecmp(at, "@ring") ? at : NULL;
    if (breakpoint_is_named(text)) /* its number is an address */
        return NULL;
    at = strrchr(text, ':');
    if (!at || at == text || at[-1] == ':')
        return NULL;
    const char *digits = at + 1 + (at[1] == 'f');
    size_t n = strspn(digits, "0123456789");
    return n > 0 && (digits[n] == '\0' || unit_ns(digits + n)) ? at : NULL;
}

static int parse_threshold(const char *event, const char *text, struct source_threshold *threshold, struct error *err)
{
    char *end = NULL;
    threshold->is_given = true;
    threshold->is_frequency = text[0] == 'f' || text[0] == 'F';
    const char *digits = text + threshold->is_frequency;
    errno = 0;
    unsigned long long value = isdigit((unsigned char)digits[0]) ? strtoull(digits, &end, 10) : 0;
    uint64_t unit = end && !threshold->is_frequency ? unit_ns(end) : 0;
    if (!end || (*end && !unit))
        return error_set(err, ERR_USAGE,
                         "%s: '%s' is neither a period (a number, of clocks also a time such as 500us, 2ms or 1s) nor "
                         "a frequency (f and a number, in Hz).",
                         event, text);
    if (value == 0)
        return error_set(err, ERR_RANGE, "%s: a %s of 0 is impossible.", event,
                         threshold->is_frequency ? "frequency" : "period");
    threshold->is_time = unit != 0;
    unit = unit ? unit : 1;
    if (errno == ERANGE || value > (1ull << 62) / unit)
        return error_set(err, ERR_RANGE, "%s: %s is too large.", event, text);
    threshold->value = value * unit;
    return 0;
}

int source_parse_threshold(const char *event, const char *text, struct source_threshold *threshold, struct error *err)
{
    *threshold = (struct source_threshold){0};
    return parse_threshold(event, text, threshold, err);
}

int source_parse_event(const char *text, char *name, unsigned n_name, struct source_threshold *threshold,
                       struct error *err)
{
    const char *separator = find_separator(text);
    size_t len = separator ? (size_t)(separator - text) : strlen(text);
    *threshold = (struct source_threshold){0};
    if (len == 0)
        return error_set(err, ERR_USAGE, "'%s' is not an event.", text);
    if (len >= n_name)
        return error_set(err, ERR_USAGE, "the event name '%s' is too long.", text);
    memcpy(name, text, len);
    name[len] = '\0';
    return separator ? parse_threshold(text, separator + 1, threshold, err) : 0;
}

/* --- similar names --- */

/* Most similar names by edit distance; see event.h. Ordinary code of the launcher. */

#define NAME_MAX_BYTES 64
#define NAMES_MAX 8

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

unsigned near_name_distance(const char *a, const char *b, unsigned limit)
{
    unsigned row[NAME_MAX_BYTES + 1];
    size_t n_a = strlen(a), n_b = strlen(b);
    if (n_a > NAME_MAX_BYTES || n_b > NAME_MAX_BYTES)
        return limit + 1;
    for (unsigned j = 0; j <= n_b; j++)
        row[j] = j;
    for (unsigned i = 1; i <= n_a; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= n_b; j++) {
            unsigned above = row[j];
            unsigned differs = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + differs);
            diagonal = above;
        }
    }
    return row[n_b] <= limit ? row[n_b] : limit + 1;
}

/* The names similar to name that have been found. */
struct nearest {
    const char *name;
    char *text;
    size_t n;
    unsigned n_names;
};

/* Adds a known name if it begins or ends with the name, or if at most a third of the letters differ. */
static void consider(const char *known, const char *shown, struct nearest *nearest)
{
    size_t len_name = strlen(nearest->name), len_known = strlen(known), len = strlen(nearest->text);
    unsigned limit = (unsigned)(len_name < 9 ? len_name / 3 : 3);
    bool is_part =
        len_name >= 3 && len_name <= len_known &&
        (!strncasecmp(known, nearest->name, len_name) || !strcasecmp(known + len_known - len_name, nearest->name));
    if (nearest->n_names == NAMES_MAX || (!is_part && near_name_distance(nearest->name, known, limit) > limit))
        return;
    (void)snprintf(nearest->text + len, nearest->n - len, "%s%s", len ? ", " : "", shown);
    nearest->n_names++;
}

static bool consider_event(const char *name, const char *terms, void *ctx)
{
    (void)terms;
    consider(name, name, ctx);
    return true;
}

static bool consider_pmu(const struct pmu *pmu, void *ctx)
{
    pmu_visit_events(pmu, consider_event, ctx);
    return true;
}

/* libpfm4's names are compared without their PMU when none was given. */
static void consider_table(const char *name, const char *summary, void *ctx)
{
    struct nearest *nearest = ctx;
    const char *event = strstr(name, "::");
    (void)summary;
    consider(event && !strstr(nearest->name, "::") ? event + 2 : name, name, nearest);
}

static bool consider_tracepoint(const char *name, void *ctx)
{
    consider(name, name, ctx);
    return true;
}

static void consider_tables(const struct perf_table *table, void *ctx)
{
    perf_table_visit_events(table->name, false, consider_table, ctx);
}

void near_name_of_pmu(const struct pmu *pmu, const char *name, char *text, size_t n)
{
    struct nearest nearest = {.name = name, .text = text, .n = n};
    text[0] = '\0';
    pmu_visit_events(pmu, consider_event, &nearest);
    pmu_visit_terms(pmu, consider_event, &nearest);
}

void near_name_list(const char *name, char *text, size_t n)
{
    struct nearest nearest = {.name = name, .text = text, .n = n};
    text[0] = '\0';
    consider("datacentric", "datacentric", &nearest);
    for (const struct sample_source *const *source = source_table(); *source; source++)
        if ((*source)->name[0])
            consider((*source)->name, (*source)->name, &nearest);
    for (const struct perf_name *row = perf_name_table(); row->name; row++)
        consider(row->name, row->name, &nearest);
    pmu_visit(consider_pmu, &nearest);
    perf_table_visit(consider_tables, &nearest);
    if (strchr(name, ':'))
        tracepoint_visit(consider_tracepoint, &nearest);
}

/* --- the table of events --- */

/* Reading pmu-events.txt; see event.h. */

#define FILE_NAME "pmu-events.txt"
#define PERIOD_MAX (UINT64_C(1) << 47) /* counters have 48 bits, of which the highest is the sign */

enum column {
    COLUMN_VENDOR,
    COLUMN_FAMILY,
    COLUMN_MODELS,
    COLUMN_PMU,
    COLUMN_LOAD,
    COLUMN_STORE,
    COLUMN_LDLAT,
    COLUMN_PERIOD,
    COLUMN_RECORD,
    COLUMNS
};

/* One search through all files. */
struct search {
    unsigned vendor, family, model; /* of the CPU, in the numbers of the columns */
    const char *pmu;
    struct event_row *row;
    bool is_found;
    char *complaints;
    size_t n_complaints;
    bool is_full; /* no room for more complaints */
    const char *path;
    const char *shown; /* origin without the line; NULL: the path */
    unsigned line;
};

/* Adds a complaint. Only whole sentences: if one does not fit, a short one ends the text. */
static void complain(struct search *search, const char *column, const char *reason)
{
    static const char more[] = " More rows are left out.";
    size_t len = strlen(search->complaints), space = search->n_complaints - len;
    if (search->is_full)
        return;
    int n = snprintf(search->complaints + len, space, "%s%s:%u: '%s' %s; the row is left out.", len ? " " : "",
                     search->path, search->line, column, reason);
    search->is_full = n < 0 || (size_t)n + sizeof more > space;
    if (search->is_full)
        (void)snprintf(search->complaints + len, space, "%s", more + (len == 0));
}

static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    return isdigit((unsigned char)text[0]) && !*end && !errno && *value <= max;
}

static int parse_vendor(const char *text)
{
    static const char *const names[] = {
        [CPU_UNKNOWN] = "", [CPU_INTEL] = "intel", [CPU_AMD] = "amd", [CPU_POWER] = "power", [CPU_ARM] = "arm"};
    for (int i = CPU_INTEL; i <= CPU_ARM; i++)
        if (!strcasecmp(text, names[i]))
            return i;
    return -1;
}

/* 1 when a list such as "85,106-108" or "*" contains model, 0 when not, -1 when it is not such a list. */
static int holds_model(const char *list, unsigned model)
{
    char copy[256], *rest = copy;
    int found = 0;
    if (!strcmp(list, "*"))
        return 1;
    (void)snprintf(copy, sizeof copy, "%s", list);
    for (char *part = strtok_r(rest, ",", &rest); part; part = strtok_r(rest, ",", &rest)) {
        uint64_t low, high;
        char *dash = strchr(part, '-');
        if (dash)
            *dash = '\0';
        if (!parse_number(part, UINT_MAX, &low) || !parse_number(dash ? dash + 1 : part, UINT_MAX, &high) || low > high)
            return -1;
        found |= model >= low && model <= high;
    }
    return copy[0] && list[strlen(list) - 1] != ',' ? found : -1;
}

static bool parse_periods(const char *text, struct event_row *row)
{
    char load[64];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    (void)snprintf(load, sizeof load, "%.*s", (int)len, text);
    return parse_number(load, PERIOD_MAX, &row->load_period) && row->load_period > 0 &&
           parse_number(slash ? slash + 1 : load, PERIOD_MAX, &row->store_period) && row->store_period > 0;
}

static bool parse_event(const char *text, char *event, size_t n)
{
    size_t len = strlen(text);
    if (!strcmp(text, "-"))
        len = 0;
    if (len >= n)
        return false;
    memcpy(event, text, len);
    event[len] = '\0';
    return true;
}

/* Fills *row from the columns of a line; complains and returns false when one of them is wrong. */
static bool take_columns(struct search *search, char *const columns[COLUMNS], struct event_row *row)
{
    if (!parse_event(columns[COLUMN_LOAD], row->load, sizeof row->load) ||
        !parse_event(columns[COLUMN_STORE], row->store, sizeof row->store))
        complain(search, columns[COLUMN_LOAD], "or the store event is too long");
    else if (!row->load[0] && !row->store[0])
        complain(search, columns[COLUMN_LOAD], "as load and as store event gives nothing to sample");
    else if (strcmp(columns[COLUMN_LDLAT], "-") != 0 &&
             (!parse_number(columns[COLUMN_LDLAT], UINT16_MAX, &row->ldlat) || row->ldlat == 0))
        complain(search, columns[COLUMN_LDLAT], "is not a latency threshold: a number from 1 to 65535, or -");
    else if ((row->ldlat > 0) != (strstr(row->load, "LDLAT") != NULL))
        complain(search, columns[COLUMN_LOAD],
                 row->ldlat ? "does not say where LDLAT, the threshold, goes"
                            : "names LDLAT, but the row has no threshold");
    else if (!parse_periods(columns[COLUMN_PERIOD], row))
        complain(search, columns[COLUMN_PERIOD], "is not a period: a number, or LOADS/STORES");
    else if (strcasecmp(columns[COLUMN_RECORD], "source") != 0 && strcasecmp(columns[COLUMN_RECORD], "address") != 0)
        complain(search, columns[COLUMN_RECORD], "is neither source nor address");
    else {
        row->tells_source = !strcasecmp(columns[COLUMN_RECORD], "source");
        return true;
    }
    return false;
}

/* True when the row is for the CPU and PMU of the search; complains if it cannot be understood. */
static bool is_about(struct search *search, char *const columns[COLUMNS])
{
    uint64_t family;
    int vendor = parse_vendor(columns[COLUMN_VENDOR]);
    int has_model = holds_model(columns[COLUMN_MODELS], search->model);
    if (vendor < 0)
        complain(search, columns[COLUMN_VENDOR], "is none of intel, amd, power, arm");
    else if (!parse_number(columns[COLUMN_FAMILY], UINT_MAX, &family))
        complain(search, columns[COLUMN_FAMILY], "is not the number of a family");
    else if (has_model < 0)
        complain(search, columns[COLUMN_MODELS], "is not a list of models such as 85,106-108 or *");
    else
        return (unsigned)vendor == search->vendor && family == search->family && has_model &&
               !strcmp(columns[COLUMN_PMU], search->pmu);
    return false;
}

static void take_line(struct search *search, char *line)
{
    char *columns[COLUMNS], *rest = line;
    struct event_row row = {0};
    unsigned n = 0;
    line[strcspn(line, "#\r\n")] = '\0';
    while (n < COLUMNS && (columns[n] = strtok_r(rest, " \t", &rest)))
        n++;
    if (n == 0)
        return;
    if (n < COLUMNS) {
        complain(search, columns[0], "begins a row of too few columns (nine are needed, notes may follow)");
        return;
    }
    if (!is_about(search, columns) || !take_columns(search, columns, &row))
        return;
    if (search->shown)
        (void)snprintf(row.origin, sizeof row.origin, "%s", search->shown);
    else
        (void)snprintf(row.origin, sizeof row.origin, "%s:%u", search->path, search->line);
    *search->row = row;
    search->is_found = true;
}

/* False with errno when it cannot be read. */
static bool read_file(struct search *search, const char *path, const char *shown)
{
    char *line = NULL;
    size_t n_line = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    search->path = path;
    search->shown = shown;
    errno = 0;
    for (search->line = 1; getline(&line, &n_line, file) >= 0; search->line++)
        take_line(search, line);
    bool is_read = feof(file);
    free(line);
    (void)fclose(file);
    return is_read;
}

/* Reads the table that belongs to the running program: in a build directory, or installed, also below another prefix
 * than configured. */
static void read_installed(struct search *search)
{
    static const char *const places[] = {"share/locus/" FILE_NAME, "../share/locus/" FILE_NAME};
    char path[PATH_MAX + sizeof "../share/locus/" FILE_NAME];
    tool_directory(path, PATH_MAX);
    size_t len = strlen(path);
    for (size_t i = 0; len > 0 && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path + len, sizeof path - len, "%s", places[i]);
        if (read_file(search, path, "the installed event table"))
            return;
    }
    (void)read_file(search, LOCUS_DATA "/" FILE_NAME, "the installed event table");
}

void event_table_user_path(char *path, size_t n_path)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/')
        (void)snprintf(path, n_path, "%s/locus/" FILE_NAME, config);
    else
        (void)snprintf(path, n_path, "%s/.config/locus/" FILE_NAME, home ? home : "~");
}

static void read_named(struct search *search)
{
    const char *path = getenv("HPCRUN_PMU_TABLE");
    size_t len = strlen(search->complaints);
    if (path && path[0] && !read_file(search, path, NULL))
        (void)snprintf(search->complaints + len, search->n_complaints - len, "%sHPCRUN_PMU_TABLE=%s: %s.",
                       len ? " " : "", path, strerror(errno));
}

bool event_table_find(const struct machine_cpu *cpu, const char *pmu, struct event_row *row, char *complaints,
                      size_t n_complaints)
{
    char user[PATH_MAX];
    struct search search = {
        .vendor = cpu->vendor,
        .family = cpu->family,
        .model = cpu->model,
        .pmu = pmu,
        .row = row,
        .complaints = complaints,
        .n_complaints = n_complaints,
    };
    if (cpu->vendor == CPU_POWER) {
        search.family = cpu->pvr;
        search.model = 0;
    } else if (cpu->vendor == CPU_ARM) {
        search.family = cpu->implementer;
        search.model = cpu->part;
    }
    complaints[0] = '\0';
    read_installed(&search);
    event_table_user_path(user, sizeof user);
    (void)read_file(&search, user, NULL);
    read_named(&search);
    return search.is_found;
}

/* --- lists of events --- */

/* Listing events; see event.h. */

#define NAME_BYTES 320

/* One listing, and the unit that is being listed. */
struct listing {
    const char *const *patterns;
    const struct event_lister *lister;
    unsigned n_events;
    const char *unit;   /* name of the PMU or table; patterns may match it, too */
    bool is_one_answer; /* a probe's answer about the unit holds for all its events */
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

/* True when the kernel gives the same answer for every event of a unit; other answers are about one event. */
static bool is_about_unit(const struct source_probe *probe)
{
    return probe->works || (probe->error != 0 && probe->error != EINVAL && probe->error != ENODATA);
}

/* Lists an event with the result of a probe, or with the answer that holds for its unit. */
static void put_tried(struct listing *listing, const char *event, const char *summary)
{
    struct source_probe probe = listing->probe;
    if (!listing->has_probe)
        source_perf_try(event, &probe);
    bool is_answer = probe.works || probe.error != 0; /* an answer of the kernel, not a problem with the name */
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
        (void)snprintf(text, sizeof text, "%s",
                       obstacle ? obstacle
                                : "a pattern with a colon lists them: hpcrun -L "
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
    listing->lister->note("EVENT@PERIOD, EVENT@fHZ     a sample every PERIOD events, or HZ a second",
                          listing->lister->ctx);
    listing->lister->note(
        "EADDR@500, EADDR@500us      a clock's period: microseconds, or with ns, us, ms or s (200us or "
        "more)",
        listing->lister->ctx);
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
