/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the session, whose answers are kept, and the cells of their tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "face/term/screen.h"

/* --- questions --- */

/* Reports that are about all metrics, or about none. */
static bool has_metric(const char *report)
{
    static const char *const none[] = {"streams", "timeline", "window", "first-touch"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(report, none[i]) == 0)
            return false;
    return true;
}

static void put_key(const struct request *request, struct buf *out)
{
    buf_printf(out, "%s|%s|%s|%s|%s|%d|%g|%d|%d", request->report, request->subject ? request->subject : "",
               request->metric ? request->metric : "", request->by ? request->by : "",
               request->tree ? request->tree : "", request->with_fields, request->least, request->has_least,
               request->with_unused);
}

const struct answer *ask(struct screen *screen, const struct request *request, struct error *err)
{
    struct request full = *request;
    struct buf key = {0};
    const char *metric = look_get(&screen->now, LOOK_METRIC);
    full.size = sizeof full;
    full.metric = *metric && has_metric(full.report) ? metric : NULL;
    put_key(&full, &key);
    size_t i = 0;
    while (i < screen->n_answers && key.data && strcmp(screen->answers[i].key, key.data) != 0)
        i++;
    if (i == screen->n_answers) {
        if (key.failed || !vec_reserve(&screen->answers, &screen->cap_answers, i + 1, sizeof *screen->answers)) {
            buf_fini(&key);
            (void)error_memory(err);
            return NULL;
        }
        struct asked_answer *made = &screen->answers[screen->n_answers++];
        *made = (struct asked_answer){.key = key.data};
        key = (struct buf){0};
        (void)session_ask(screen->session, &full, &made->answer, &made->err);
    }
    buf_fini(&key);
    *err = screen->answers[i].err;
    return screen->answers[i].answer;
}

const struct answer *ask_report(struct screen *screen, const char *report, const char *by, struct error *err)
{
    const struct request request = {.report = report, .by = by};
    return ask(screen, &request, err);
}

void answers_clear(struct screen *screen)
{
    for (size_t i = 0; i < screen->n_answers; i++) {
        free(screen->answers[i].key);
        answer_free(screen->answers[i].answer);
    }
    screen->n_answers = 0;
}

/* Puts a word that has bytes which a terminal would act on. */
static void put_bytes(struct buf *out, const char *word)
{
    buf_append(out, "$'", 2);
    for (; *word; word++)
        if ((unsigned char)*word < ' ' || (unsigned char)*word > '~')
            buf_printf(out, "\\x%02x", (unsigned char)*word);
        else
            buf_printf(out, *word == '\'' || *word == '\\' ? "\\%c" : "%c", *word);
    buf_append(out, "'", 1);
}

void word_put(struct buf *out, const char *word)
{
    static const char plain[] = "%+,./:=@-_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    struct buf safe = {0};
    printable_put(&safe, word);
    bool is_safe = safe.data && strcmp(safe.data, word) == 0;
    buf_append(out, " ", 1);
    if (*word && word[strspn(word, plain)] == 0) {
        buf_append(out, word, strlen(word));
    } else if (!is_safe && *word) {
        put_bytes(out, word);
    } else {
        buf_append(out, "'", 1);
        for (; *word; word++)
            buf_append(out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
        buf_append(out, "'", 1);
    }
    buf_fini(&safe);
}

void request_put_words(const struct screen *screen, const struct request *request, struct buf *out)
{
    const char *metric = look_get(&screen->now, LOOK_METRIC);
    struct buf word = {0};
    word_put(out, request->report);
    if (request->by) {
        buf_printf(&word, "--by=%s", request->by);
        word_put(out, word.data ? word.data : "");
    }
    word.len_bytes = 0;
    if (*metric && has_metric(request->report)) {
        buf_printf(&word, "--metric=%s", metric);
        word_put(out, word.data ? word.data : "");
    }
    if (request->with_fields)
        word_put(out, "--fields");
    if (request->subject && *request->subject == '-')
        word_put(out, "--");
    if (request->subject)
        word_put(out, request->subject);
    buf_fini(&word);
}

/* --- cells --- */

size_t rows_of(const struct table *table)
{
    return table ? table_rows(table) : 0;
}

size_t column_of(const struct table *table, const char *key)
{
    size_t n = table ? table_columns(table) : 0, members = 0, found = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        bool is_member = members > 0;
        members = is_member ? members - 1 : table_members(table, i);
        if (is_member || strcmp(table_key(table, i), key) != 0)
            continue;
        if (!table_is_for_csv(table, i)) /* else another one may say the same in full */
            return i;
        found = i;
    }
    return found;
}

const char *cell_text_at(const struct table *table, size_t row, size_t column)
{
    const char *text = NULL;
    if (column != SIZE_MAX && row < table_rows(table))
        (void)table_get_texts(table, column, row, 1, &text);
    return text ? text : "";
}

double cell_number_at(const struct table *table, size_t row, size_t column)
{
    double number = NAN;
    if (column == SIZE_MAX || row >= table_rows(table) || !table_get_numbers(table, column, row, 1, &number))
        return NAN;
    return number;
}

const char *cell_text(const struct table *table, size_t row, const char *key)
{
    return cell_text_at(table, row, column_of(table, key));
}

double cell_number(const struct table *table, size_t row, const char *key)
{
    return cell_number_at(table, row, column_of(table, key));
}

double cell_number_in(const struct table *table, size_t row, const char *in, const char *key)
{
    double number = NAN;
    size_t column = column_of(table, in), n = column == SIZE_MAX ? 0 : table_members(table, column);
    for (size_t i = column + 1; n && i <= column + n; i++)
        if (strcmp(table_key(table, i), key) == 0 && table_get_numbers(table, i, row, 1, &number))
            return number;
    return NAN;
}

const struct table *cell_table(const struct table *table, size_t row, const char *key)
{
    const struct table *found = NULL;
    size_t column = column_of(table, key);
    if (column != SIZE_MAX && row < table_rows(table))
        (void)table_get_tables(table, column, row, 1, &found);
    return found;
}

size_t row_of_item(const struct table *table, const char *item)
{
    size_t column = column_of(table, "item"), n = rows_of(table);
    const char *text;
    for (size_t i = 0; column != SIZE_MAX && *item && i < n; i++)
        if (table_get_texts(table, column, i, 1, &text) && text && strcmp(text, item) == 0)
            return i;
    return SIZE_MAX;
}

/* --- what belongs together --- */

const struct table *vars_table(struct screen *screen)
{
    const struct request request = {.report = "vars", .with_fields = true};
    struct error ignored;
    const struct answer *answer = ask(screen, &request, &ignored);
    return answer ? answer_rows(answer) : NULL;
}

const struct table *lines_table(struct screen *screen)
{
    struct error ignored;
    const struct answer *answer = ask_report(screen, "lines", NULL, &ignored);
    return answer ? answer_rows(answer) : NULL;
}

const char *stand_in(struct screen *screen, const char *kind, const char **why)
{
    const char *item = look_get(&screen->now, LOOK_ACTIVE);
    size_t len = strlen(kind);
    *why = "nothing is chosen";
    if (!*item)
        return NULL;
    if (strncmp(item, kind, len) == 0 && item[len] == ':')
        return item;
    const struct request request = {.report = "items", .subject = item};
    const struct answer *answer = ask(screen, &request, &screen->reason);
    *why = screen->reason.text;
    const struct table *table = answer ? answer_rows(answer) : NULL;
    for (size_t i = 0; i < rows_of(table); i++)
        if (strcmp(cell_text(table, i, "kind"), kind) == 0) {
            *why = cell_text(table, i, "missing");
            return *cell_text(table, i, "item") ? cell_text(table, i, "item") : NULL;
        }
    if (answer)
        *why = "nothing stands for it there";
    return NULL;
}
