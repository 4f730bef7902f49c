/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing of command lines by a table: see options.h. */
#include "base/options.h"

#include <stdint.h>
#include <string.h>

enum { MAX_NAME = 64, MAX_SUGGESTION_DISTANCE = 2 };

/* One spelling inside option_row.names, not terminated. */
struct spelling {
    const char *text;
    size_t len_bytes;
};

/* What a word on the command line turned out to be. */
struct match {
    const struct option_row *row;
    const char *attached; /* the argument inside the same word, NULL when there is none */
};

/* Steps through names; returns false after the last spelling. *cursor starts at names. */
static bool next_spelling(const char **cursor, struct spelling *spelling)
{
    const char *text = *cursor + strspn(*cursor, " ");
    spelling->text = text;
    spelling->len_bytes = strcspn(text, " ");
    *cursor = text + spelling->len_bytes;
    return spelling->len_bytes > 0;
}

static const struct option_row *find_exact(const struct option_spec *spec, const char *word, size_t len_bytes)
{
    for (const struct option_row *row = spec->rows; row->names; row++) {
        const char *cursor = row->names;
        struct spelling spelling;
        while (next_spelling(&cursor, &spelling))
            if (spelling.len_bytes == len_bytes && memcmp(spelling.text, word, len_bytes) == 0)
                return row;
    }
    return NULL;
}

static struct match match_word(const struct option_spec *spec, const char *word)
{
    struct match match = {find_exact(spec, word, strlen(word)), NULL};
    if (match.row)
        return match;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        if (equals)
            match = (struct match){find_exact(spec, word, (size_t)(equals - word)), equals + 1};
        return match;
    }
    const struct option_row *row = find_exact(spec, word, 2);
    if (row && row->arg)
        match = (struct match){row, word + 2};
    return match;
}

/* Levenshtein distance of word and spelling; SIZE_MAX when either is longer than any option. */
static size_t edit_distance(const char *word, struct spelling spelling)
{
    size_t n = strlen(word);
    size_t row[MAX_NAME + 1];
    if (n > MAX_NAME || spelling.len_bytes > MAX_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= spelling.len_bytes; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (spelling.text[i - 1] != word[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

/* The long visible option most like word; its text is NULL when none is near. */
static struct spelling find_nearest(const struct option_spec *spec, const char *word)
{
    struct spelling nearest = {NULL, 0};
    size_t nearest_distance = MAX_SUGGESTION_DISTANCE + 1;
    for (const struct option_row *row = spec->rows; row->names; row++) {
        const char *cursor = row->names;
        struct spelling spelling;
        while (row->help && next_spelling(&cursor, &spelling)) {
            size_t distance = edit_distance(word, spelling);
            if (distance < nearest_distance && distance < spelling.len_bytes - 1) {
                nearest_distance = distance;
                nearest = spelling;
            }
        }
    }
    return nearest;
}

static int refuse_unknown(const struct option_spec *spec, const char *word, struct error *err)
{
    char name[MAX_NAME + 1];
    size_t len_bytes = strcspn(word, "=");
    if (len_bytes > MAX_NAME)
        len_bytes = MAX_NAME;
    memcpy(name, word, len_bytes);
    name[len_bytes] = '\0';
    struct spelling nearest = find_nearest(spec, name);
    if (nearest.text)
        (void)error_set(err, ERR_USAGE, "unknown option %s; did you mean %.*s?", word, (int)nearest.len_bytes,
                        nearest.text);
    else
        (void)error_set(err, ERR_USAGE, "unknown option %s; see %s --help", word, spec->tool);
    return OPTIONS_BAD;
}

/* Moves the n_words words at index in front of the operands that were skipped, order kept. */
static void move_before_operands(struct option_scan *scan, char **argv, int n_words)
{
    for (int word = 0; word < n_words; word++) {
        int from = scan->index + word;
        char *moved = argv[from];
        memmove(argv + from - scan->n_operands + 1, argv + from - scan->n_operands,
                (size_t)scan->n_operands * sizeof *argv);
        argv[from - scan->n_operands] = moved;
    }
    scan->index += n_words;
}

static int finish(struct option_scan *scan, int argc)
{
    scan->index -= scan->n_operands;
    scan->n_operands = argc - scan->index;
    return OPTIONS_END;
}

/* Passes operands until an option or the end stands at index; true when there is an option. */
static bool skip_operands(const struct option_spec *spec, struct option_scan *scan, int argc, char **argv)
{
    while (scan->index < argc) {
        const char *word = argv[scan->index];
        if (word[0] == '-' && word[1] != '\0')
            return true;
        if (spec->stop_at_operand)
            return false;
        scan->index++;
        scan->n_operands++;
    }
    return false;
}

bool options_is_optional(const struct option_row *row)
{
    return row->arg && row->arg[0] == '[' && row->arg[1] == '=';
}

bool options_is_known(const struct option_spec *spec, const char *word)
{
    return match_word(spec, word).row != NULL;
}

int options_next(const struct option_spec *spec, struct option_scan *scan, int argc, char **argv, struct error *err)
{
    scan->value = NULL;
    if (scan->index == 0)
        scan->index = 1;
    if (!skip_operands(spec, scan, argc, argv))
        return finish(scan, argc);
    char *word = argv[scan->index];
    if (strcmp(word, "--") == 0) {
        move_before_operands(scan, argv, 1);
        return finish(scan, argc);
    }
    struct match match = match_word(spec, word);
    if (!match.row)
        return refuse_unknown(spec, word, err);
    if (match.attached && !match.row->arg) {
        (void)error_set(err, ERR_USAGE, "option %.*s takes no argument", (int)(match.attached - 1 - word), word);
        return OPTIONS_BAD;
    }
    bool wants_next = match.row->arg && !match.attached && !options_is_optional(match.row);
    if (wants_next && scan->index + 1 >= argc) {
        (void)error_set(err, ERR_USAGE, "option %s needs an argument: %s", word, match.row->arg);
        return OPTIONS_BAD;
    }
    scan->value = wants_next ? argv[scan->index + 1] : match.attached;
    move_before_operands(scan, argv, wants_next ? 2 : 1);
    return match.row->id;
}
