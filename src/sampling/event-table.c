/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading pmu-events.txt; see event-table.h. */
#include "sampling/event-table.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_NAME "pmu-events.txt"
#define PERIOD_MAX (UINT64_C(1) << 47) /* counters of 48 bits, the highest one the sign */

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
    unsigned vendor, family, model; /* of the CPU, as the columns count them */
    const char *pmu;
    struct event_row *row;
    bool is_found;
    char *complaints;
    size_t n_complaints;
    bool is_full; /* complaints take no more */
    const char *path;
    const char *shown; /* origin without line, NULL: the path */
    unsigned line;
};

/* Whole sentences only: what does not fit is a last short one. */
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

/* 1 when "85,106-108" or "*" holds model, 0 when not, -1 when it is no such list. */
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
        complain(search, columns[COLUMN_LDLAT], "is no latency threshold: a number from 1 to 65535, or -");
    else if ((row->ldlat > 0) != (strstr(row->load, "LDLAT") != NULL))
        complain(search, columns[COLUMN_LOAD], row->ldlat ? "does not say where LDLAT, the threshold, goes"
                                                          : "names LDLAT, but the row has no threshold");
    else if (!parse_periods(columns[COLUMN_PERIOD], row))
        complain(search, columns[COLUMN_PERIOD], "is no period: a number, or LOADS/STORES");
    else if (strcasecmp(columns[COLUMN_RECORD], "source") != 0 && strcasecmp(columns[COLUMN_RECORD], "address") != 0)
        complain(search, columns[COLUMN_RECORD], "is neither source nor address");
    else {
        row->tells_source = !strcasecmp(columns[COLUMN_RECORD], "source");
        return true;
    }
    return false;
}

/* True when the row is about the CPU and PMU that are looked for; complains of what cannot be understood. */
static bool is_about(struct search *search, char *const columns[COLUMNS])
{
    uint64_t family;
    int vendor = parse_vendor(columns[COLUMN_VENDOR]);
    int has_model = holds_model(columns[COLUMN_MODELS], search->model);
    if (vendor < 0)
        complain(search, columns[COLUMN_VENDOR], "is none of intel, amd, power, arm");
    else if (!parse_number(columns[COLUMN_FAMILY], UINT_MAX, &family))
        complain(search, columns[COLUMN_FAMILY], "is no number of a family");
    else if (has_model < 0)
        complain(search, columns[COLUMN_MODELS], "is no list of models such as 85,106-108 or *");
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

/* Beside the running program: in a build directory, or installed, also below another prefix than planned. */
static void read_installed(struct search *search)
{
    static const char *const places[] = {"share/locus/" FILE_NAME, "../share/locus/" FILE_NAME};
    char path[PATH_MAX + sizeof "../share/locus/" FILE_NAME];
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    while (len > 0 && path[len - 1] != '/')
        len--;
    for (size_t i = 0; len > 0 && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path + len, sizeof path - (size_t)len, "%s", places[i]);
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
