/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody looks at, from a text to the request that it means: see state.h. */
#include "answer/state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"
#include "fmt/json.h"

#define NO_OPTION ((enum ask)0)

static const struct state_key keys[] = {
    {"view", STATE_ONE, NO_OPTION, "the report that is shown"},
    {"active", STATE_ONE, NO_OPTION, "the thing that the view is about, KIND:NAME"},
    {"selected", STATE_MANY, NO_OPTION, "another thing that is marked"},
    {"metric", STATE_ONE, ASK_METRIC, "what the report is about"},
    {"metric2", STATE_ONE, NO_OPTION, "another metric, shown beside it"},
    {"by", STATE_ONE, ASK_BY, "what rows are split by"},
    {"order", STATE_ONE, ASK_ORDER, "the order of the rows"},
    {"top", STATE_ONE, ASK_TOP, "how many rows"},
    {"min", STATE_ONE, ASK_MIN, "the least part of the total of a row, in percent"},
    {"derive", STATE_MANY, ASK_DERIVE, "a column that is added"},
    {"paths", STATE_FLAG, ASK_PATHS, "allocation paths apart"},
    {"fields", STATE_FLAG, ASK_FIELDS, "with fields"},
    {"all", STATE_FLAG, ASK_ALL, "also what has no samples"},
    {"mark", STATE_FLAG, ASK_MARK, "at the mark"},
    {"instructions", STATE_FLAG, ASK_INSTRUCTIONS, "with machine code"},
    {"profiles", STATE_ONE, ASK_PROFILES, "only these profiles"},
    {"trail", STATE_MANY, NO_OPTION, "a step that was taken: an operation and its argument"},
    {"percent", STATE_ONE, NO_OPTION, "what numbers are a part of: total, parent or selection; or absolute"},
    {"cycles", STATE_FLAG, NO_OPTION, "circles of calls are one thing"},
    {"hidden", STATE_MANY, NO_OPTION, "a thing that is not shown"},
    {"filter", STATE_ONE, NO_OPTION, "words that names must have"},
    {"layout", STATE_ONE, NO_OPTION, "which views are open, and where"},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

const struct state_key *state_key_at(size_t i)
{
    return i < N_KEYS ? &keys[i] : NULL;
}

static const struct state_key *find_key(const char *name)
{
    for (size_t i = 0; i < N_KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static int refuse_key(const char *name, struct error *err)
{
    const char *names[N_KEYS];
    struct buf text = {0};
    for (size_t i = 0; i < N_KEYS; i++)
        names[i] = keys[i].name;
    spelling_suggest(&text, name, names, N_KEYS);
    int code =
        text.failed ? error_memory(err) : error_set(err, ERR_USAGE, "a state has no '%.100s'%.600s", name, text.data);
    buf_fini(&text);
    return code;
}

/* --- pairs --- */

void state_fini(struct state *state)
{
    for (size_t i = 0; i < state->n; i++)
        free(state->pairs[i].value);
    free(state->pairs);
    *state = (struct state){0};
}

/* Adds a pair behind the others of its key and of earlier ones. Takes the value. */
static int add_pair(struct state *state, const struct state_key *key, char *value, struct error *err)
{
    size_t at = state->n;
    if (!value || !vec_reserve(&state->pairs, &state->cap, state->n + 1, sizeof *state->pairs)) {
        free(value);
        return error_memory(err);
    }
    for (; at > 0 && state->pairs[at - 1].key > key; at--)
        state->pairs[at] = state->pairs[at - 1];
    state->pairs[at] = (struct state_pair){key, value};
    state->n++;
    return 0;
}

static void remove_pairs(struct state *state, const struct state_key *key)
{
    size_t n = 0;
    for (size_t i = 0; i < state->n; i++)
        if (state->pairs[i].key == key)
            free(state->pairs[i].value);
        else
            state->pairs[n++] = state->pairs[i];
    state->n = n;
}

/* What a value of a key must be, in words; NULL when it is that. */
static const char *refused_value(const struct state_key *key, const char *value)
{
    bool is_digits = *value && !value[strspn(value, "0123456789")];
    if (!*value)
        return "a value";
    if (key->kind == STATE_FLAG)
        return strcmp(value, "1") == 0 ? NULL : "1";
    if (key->option == ASK_TOP)
        return is_digits && strlen(value) <= 15 ? NULL : "a number of rows";
    if (key->option == ASK_MIN)
        return is_digits || (isdigit((unsigned char)*value) && !value[strspn(value, "0123456789.")] &&
                             strchr(value, '.') == strrchr(value, '.'))
                   ? plain_number(value, NULL) <= 100 ? NULL : "a percentage, from 0 to 100"
                   : "a percentage, from 0 to 100";
    if (key->option == ASK_ORDER)
        return strcmp(value, "time") == 0 || strcmp(value, "memory") == 0 ? NULL : "time or memory";
    return NULL;
}

static int refuse_value(const struct state_key *key, const char *wanted, struct error *err)
{
    return error_set(err, ERR_USAGE, "a state: '%s' takes %s", key->name, wanted);
}

int state_set(struct state *state, const char *name, const char *value, struct error *err)
{
    const struct state_key *key = find_key(name);
    if (!key)
        return refuse_key(name, err);
    const char *wanted = *value ? refused_value(key, value) : NULL;
    if (wanted)
        return refuse_value(key, wanted, err);
    if (key->kind != STATE_MANY || !*value)
        remove_pairs(state, key);
    return *value ? add_pair(state, key, strdup(value), err) : 0;
}

const char *state_get(const struct state *state, const char *name)
{
    for (size_t i = 0; i < state->n; i++)
        if (strcmp(state->pairs[i].key->name, name) == 0)
            return state->pairs[i].value;
    return NULL;
}

/* --- text --- */

/* Whether a byte stands for itself: it has no meaning in an address behind '#', nor in this text. */
static bool is_plain(unsigned char byte)
{
    return isalnum(byte) || (byte && strchr("-._~:/@!$'()*,;?", byte));
}

void state_put_text(const struct state *state, struct buf *out)
{
    for (size_t i = 0; i < state->n; i++) {
        buf_printf(out, "%s%s=", i ? "&" : "", state->pairs[i].key->name);
        for (const char *at = state->pairs[i].value; *at; at++) {
            if (is_plain((unsigned char)*at))
                buf_append(out, at, 1);
            else
                buf_printf(out, "%%%02X", (unsigned char)*at);
        }
    }
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A copy of n bytes of text in which %XX and + are what they stand for; NULL: out of memory, or a bad one, at *bad. */
static char *decoded(const char *text, size_t n, const char **bad)
{
    char *out = calloc(n + 1, 1), *to = out;
    *bad = NULL;
    for (size_t i = 0; out && i < n; i++) {
        if (text[i] != '%') {
            *to++ = text[i] == '+' ? ' ' : text[i];
            continue;
        }
        int high = i + 2 < n ? digit_of(text[i + 1]) : -1, low = i + 2 < n ? digit_of(text[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0) {
            *bad = text + i;
            free(out);
            return NULL;
        }
        *to++ = (char)(high * 16 + low);
        i += 2;
    }
    return out;
}

/* Reads "KEY=VALUE" of n bytes. */
static int read_pair(const char *whole, const char *text, size_t n, struct state *state, struct error *err)
{
    const char *equals = memchr(text, '=', n), *bad;
    char name[32];
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof name)
        return error_set(err, ERR_USAGE, "a state is KEY=VALUE, joined by &; this is none: '%.*s'",
                         (int)(n < 100 ? n : 100), text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = 0;
    const struct state_key *key = find_key(name);
    if (!key)
        return refuse_key(name, err);
    if (key->kind != STATE_MANY && state_get(state, name))
        return error_set(err, ERR_USAGE, "a state has one '%s', not two", name);
    char *value = decoded(equals + 1, n - (size_t)(equals + 1 - text), &bad);
    if (!value)
        return bad ? error_set(err, ERR_USAGE, "a state: %% needs two hexadecimal digits, not 00, at byte %zu",
                               (size_t)(bad - whole))
                   : error_memory(err);
    const char *wanted = refused_value(key, value);
    if (wanted) {
        free(value);
        return refuse_value(key, wanted, err);
    }
    return add_pair(state, key, value, err);
}

int state_of_text(const char *text, struct state *state, struct error *err)
{
    *state = (struct state){0};
    int code = 0;
    for (const char *at = text + (*text == '#'); code == 0 && *at;) {
        size_t n = strcspn(at, "&");
        code = read_pair(text, at, n, state, err);
        at += n + (at[n] == '&');
    }
    if (code != 0)
        state_fini(state);
    return code;
}

/* --- what it asks --- */

/* The thing that a report is about where this one is active: itself if it is of a kind that the report is about, else
 * the first that stands for it. NULL with an error when there is none. */
static const struct item *find_shown(const struct report_kind *report, struct items *items, const char *active,
                                     const struct item *item, const struct item_kind **kind, struct error *err)
{
    struct error missing = {0};
    for (const char *const *about = report->about; *about; about++)
        if (strcmp(*about, ABOUT_ANY) == 0 || strcmp(*about, (*kind)->name) == 0)
            return item;
    for (const char *const *about = report->about; *about; about++) {
        const struct item_kind *wanted = item_kind_find(*about);
        const struct item *found = items_stand_in(items, *kind, item, wanted, &missing);
        if (!found && missing.code != ERR_MEMORY)
            continue;
        *kind = wanted;
        if (!found)
            (void)error_memory(err);
        return found;
    }
    (void)error_set(err, ERR_NOT_FOUND, "%s cannot show %.300s: %.500s", report->name, active, missing.text);
    return NULL;
}

static bool is_operand(const struct report_kind *report)
{
    return strchr(report->operands, ' ') != NULL;
}

static int refuse_view(const char *view, struct error *err)
{
    const char *names[64];
    struct buf text = {0};
    size_t n;
    const struct report_kind *const *all = reports(&n);
    n = n < sizeof names / sizeof *names ? n : sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++)
        names[i] = all[i]->name;
    spelling_suggest(&text, view, names, n);
    int code = text.failed ? error_memory(err)
                           : error_set(err, ERR_NOT_FOUND, "there is no view '%.100s'%.600s", view, text.data);
    buf_fini(&text);
    return code;
}

/* The options of a report where its rows are split as the state says. */
static uint64_t options_of(const struct report_kind *report, const struct state *state)
{
    const char *by = state_get(state, "by");
    bool is_split = by && report->by >> split_by_named(by) & 1;
    return is_split && report->options_by ? report->options_by : report->options;
}

/* Refuses what would change the numbers, but which the view does not know. */
static int check_keys(const struct state *state, const struct report_kind *report, struct error *err)
{
    const char *by = state_get(state, "by");
    if (state_get(state, "trail"))
        return error_set(err, ERR_UNSUPPORTED, "a view with a trail cannot be printed: its steps are for viewers");
    if (state_get(state, "profiles") && !(options_of(report, state) >> ASK_PROFILES & 1))
        return error_set(err, ERR_UNSUPPORTED, "%s is about all profiles: it does not know a choice of them",
                         report->name);
    return by && split_by_named(by) == SPLIT_NONE
               ? error_set(err, ERR_USAGE,
                           "a state: 'by' takes thread, process, rank, cpu, core, package, node, region, "
                           "phase or function")
               : 0;
}

int state_resolve(const struct state *state, struct items *items, struct state_query *query, struct error *err)
{
    const char *view = state_get(state, "view"), *active = state_get(state, "active");
    const struct item_kind *kind = NULL;
    const struct item *item = NULL;
    struct error failure = {0};
    struct buf name = {0};
    size_t n;
    *query = (struct state_query){.report = view ? report_find(view) : *reports(&n)};
    if (!query->report)
        return refuse_view(view, err);
    int code = check_keys(state, query->report, err);
    if (code == 0 && active)
        code = items_find(items, active, &kind, &item, err);
    if (code == 0 && !active && is_operand(query->report))
        code = error_set(err, ERR_NOT_FOUND, "%s shows one thing, and none is active", query->report->name);
    if (code != 0 || !active || !query->report->about)
        return code;
    item = find_shown(query->report, items, active, item, &kind, &failure);
    if (!item)
        return error_set(err, failure.code, "%s", failure.text);
    if (strcmp(query->report->about[0], ABOUT_ANY) == 0)
        buf_printf(&name, "%s:%s", kind->name, item->name);
    else
        item_put_subject(items, kind, item, &name);
    if (name.failed) {
        buf_fini(&name);
        return error_memory(err);
    }
    query->subject = name.data;
    return 0;
}

void state_query_fini(struct state_query *query)
{
    free(query->subject);
    *query = (struct state_query){0};
}

/* Whether the report has the option of a pair, where its rows are split as the state says. */
static bool has_option(const struct report_kind *report, const struct state *state, const struct state_pair *pair)
{
    const char *by = state_get(state, "by");
    enum ask option = pair->key->option;
    bool is_split = by && report->by >> split_by_named(by) & 1;
    return option == ASK_BY ? is_split : option && options_of(report, state) >> option & 1;
}

/* --- as words --- */

void state_words_fini(struct state_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->words[i]);
    free(words->words);
    *words = (struct state_words){0};
}

static bool add_word(struct state_words *words, const char *word, size_t n)
{
    char *copy = vec_reserve(&words->words, &words->cap, words->n + 1, sizeof *words->words) ? strndup(word, n) : NULL;
    if (copy)
        words->words[words->n++] = copy;
    return copy;
}

static bool add_option(const struct state_pair *pair, struct state_words *words)
{
    struct buf name = {0};
    buf_printf(&name, pair->key->kind == STATE_FLAG ? "--%s" : "--%s=%s", pair->key->name, pair->value);
    bool ok = !name.failed && add_word(words, name.data, name.len_bytes);
    buf_fini(&name);
    return ok;
}

/* As a value behind =, or as an operand: no name is an option then. */
static bool add_subject(const struct state_query *query, struct state_words *words)
{
    struct buf text = {0};
    bool has_dash = *query->subject == '-';
    buf_printf(&text, "%s%s", is_operand(query->report) ? "" : "--variable=", query->subject);
    bool ok = !text.failed && (!is_operand(query->report) || !has_dash || add_word(words, "--", SIZE_MAX)) &&
              add_word(words, text.data, text.len_bytes);
    buf_fini(&text);
    return ok;
}

int state_put_words(const struct state *state, const struct state_query *query, struct state_words *words,
                    struct error *err)
{
    *words = (struct state_words){0};
    bool ok = add_word(words, query->report->name, SIZE_MAX);
    for (size_t i = 0; i < state->n && ok; i++)
        if (has_option(query->report, state, &state->pairs[i]))
            ok = add_option(&state->pairs[i], words);
    if (query->subject)
        ok = ok && add_subject(query, words);
    if (ok)
        return 0;
    state_words_fini(words);
    return error_memory(err);
}

void state_put_line(const struct state_words *words, struct buf *out)
{
    for (size_t i = 0; i < words->n; i++) {
        const char *word = words->words[i];
        bool is_bare = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                   "0123456789_-+./:,=@%")];
        buf_append(out, " ", i > 0);
        buf_append(out, "'", !is_bare);
        for (; *word; word++)
            buf_append(out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
        buf_append(out, "'", !is_bare);
    }
}

/* --- as a request --- */

/* Appends the values of a key as a member: a list where there can be several. */
static void put_member(const struct state *state, const struct state_key *key, struct buf *out)
{
    bool is_many = key->kind == STATE_MANY;
    const char *before = is_many ? "[" : "";
    buf_printf(out, ", \"%s\": ", key->name);
    for (size_t i = 0; i < state->n; i++) {
        if (state->pairs[i].key != key)
            continue;
        buf_printf(out, "%s", before);
        before = ", ";
        if (key->kind == STATE_FLAG)
            buf_printf(out, "true");
        else if (key->option == ASK_TOP)
            buf_put_word(out, strtoull(state->pairs[i].value, NULL, 10));
        else if (key->option == ASK_MIN)
            json_put_double(out, plain_number(state->pairs[i].value, NULL));
        else
            json_put_text(out, state->pairs[i].value);
    }
    buf_append(out, "]", is_many);
}

void state_put_request(const struct state *state, const struct state_query *query, struct buf *out)
{
    buf_printf(out, "{\"report\": \"%s\"", query->report->name);
    if (query->subject)
        buf_printf(out, ", \"%s\": ", is_operand(query->report) ? "subject" : "variable");
    if (query->subject)
        json_put_text(out, query->subject);
    for (size_t i = 0; i < state->n; i++)
        if ((i == 0 || state->pairs[i - 1].key != state->pairs[i].key) &&
            has_option(query->report, state, &state->pairs[i]))
            put_member(state, state->pairs[i].key, out);
    buf_append(out, "}", 1);
}
