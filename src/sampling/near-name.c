/* SPDX-License-Identifier: BSD-3-Clause */
/* Nearest names by edit distance; see near-name.h. Ordinary code of the launcher. */
#include "sampling/near-name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sampling/perf-names.h"
#include "sampling/source.h"

#define NAME_MAX_BYTES 64

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

static void consider(const char *name, const char *known, char *text, size_t n)
{
    size_t len_name = strlen(name);
    unsigned limit = len_name < 6 ? 2 : 3;
    size_t len = strlen(text);
    bool is_start = len_name >= 3 && !strncasecmp(known, name, len_name);
    if (is_start || near_name_distance(name, known, limit) <= limit)
        (void)snprintf(text + len, n - len, "%s%s", len ? ", " : "", known);
}

void near_name_list(const char *name, char *text, size_t n)
{
    text[0] = '\0';
    consider(name, "datacentric", text, n);
    for (const struct sample_source *const *source = source_table(); *source; source++)
        if ((*source)->name[0])
            consider(name, (*source)->name, text, n);
    for (const struct perf_name *row = perf_name_table(); row->name; row++)
        consider(name, row->name, text, n);
}
