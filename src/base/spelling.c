/* SPDX-License-Identifier: BSD-3-Clause */
/* What is like a misspelt name: few letters differ, or one of the two is a part of the other. */
#include "base/spelling.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum {
    MAX_SUGGESTED = 3,
    MAX_LISTED = 24,
    MIN_DISTANCE = 2,    /* that is still alike, in short words */
    LETTERS_A_SLIP = 3,  /* in longer words one of so many may differ */
    MIN_PART_BYTES = 3,  /* of a name that is a part of another one */
    DISTANCE_OF_PART = 3 /* what is a part counts at most as this */
};

static int lower(char c)
{
    return tolower((unsigned char)c);
}

size_t spelling_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t row[SPELLING_MAX_BYTES + 1];
    if (n_a > SPELLING_MAX_BYTES || n_b > SPELLING_MAX_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= n_a; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_b; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_a; j++) {
            size_t best = diagonal + (lower(b[i - 1]) != lower(a[j - 1]));
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n_a];
}

/* How unlike a name is; SIZE_MAX: it is another one. */
static size_t unlikeness(const char *word, const char *name)
{
    size_t n_word = strlen(word), n_name = strlen(name), distance = spelling_distance(word, n_word, name, n_name);
    size_t most = n_word / LETTERS_A_SLIP > MIN_DISTANCE ? n_word / LETTERS_A_SLIP : MIN_DISTANCE;
    bool is_part =
        (n_word >= MIN_PART_BYTES && strcasestr(name, word)) || (n_name >= MIN_PART_BYTES && strcasestr(word, name));
    if (is_part && distance > DISTANCE_OF_PART)
        return DISTANCE_OF_PART;
    return is_part || (distance <= most && distance < n_name) ? distance : SIZE_MAX;
}

static void put_list(struct buf *out, const char *const *names, size_t n)
{
    size_t n_listed = n > MAX_LISTED ? MAX_LISTED : n;
    buf_printf(out, "; there %s", n == 0 ? "are none" : "are: ");
    for (size_t i = 0; i < n_listed; i++)
        buf_printf(out, "%s'%s'", i ? ", " : "", names[i]);
    if (n_listed < n)
        buf_printf(out, " and %zu more", n - n_listed);
}

void spelling_suggest(struct buf *out, const char *word, const char *const *names, size_t n)
{
    const char *best[MAX_SUGGESTED];
    size_t scores[MAX_SUGGESTED], n_best = 0;
    for (size_t i = 0; i < n; i++) {
        size_t score = unlikeness(word, names[i]), at = n_best < MAX_SUGGESTED ? n_best++ : MAX_SUGGESTED;
        for (; at > 0 && scores[at - 1] > score; at--)
            if (at < MAX_SUGGESTED) {
                scores[at] = scores[at - 1];
                best[at] = best[at - 1];
            }
        if (at < MAX_SUGGESTED) {
            scores[at] = score;
            best[at] = names[i];
        }
    }
    while (n_best && scores[n_best - 1] == SIZE_MAX)
        n_best--;
    if (n_best == 0) {
        put_list(out, names, n);
        return;
    }
    buf_printf(out, "; did you mean ");
    for (size_t i = 0; i < n_best; i++)
        buf_printf(out, "%s'%s'", i == 0 ? "" : i + 1 == n_best ? " or " : ", ", best[i]);
    buf_printf(out, "?");
}
