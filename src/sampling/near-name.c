/* SPDX-License-Identifier: BSD-3-Clause */
/* Nearest names by edit distance; see near-name.h. Ordinary code of the launcher. */
#include "sampling/near-name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sampling/event-places.h"
#include "sampling/perf-names.h"
#include "sampling/source.h"

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

/* What is being put together: names near to name. */
struct nearest {
    const char *name;
    char *text;
    size_t n;
    unsigned n_names;
};

static void consider(const char *known, const char *shown, struct nearest *nearest)
{
    size_t len_name = strlen(nearest->name), len = strlen(nearest->text);
    unsigned limit = len_name < 6 ? 2 : 3;
    bool is_start = len_name >= 3 && !strncasecmp(known, nearest->name, len_name);
    if (nearest->n_names == NAMES_MAX ||
        (!is_start && near_name_distance(nearest->name, known, limit) > limit))
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
