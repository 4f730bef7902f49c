/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request may say: which options go with which report, and requests as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"
#include "fmt/json.h"
#include "session/face.h"
#include "session/questions.h"

/* --- which options a report has --- */

static uint64_t forms_of(const struct report_forms *forms)
{
    return (report_has_form(forms, "csv") ? ASK(CSV) : 0) | (report_has_form(forms, "json") ? ASK(JSON) : 0) |
           (report_has_form(forms, "html") ? ASK(HTML) : 0);
}

uint64_t kind_options(const struct report_kind *kind)
{
    return kind->options | forms_of(&kind->forms) | ASK(OUTPUT);
}

/* Fails with a text that is freed. */
static int refuse_text(struct buf *text, struct error *err)
{
    int code = text->failed ? error_memory(err) : error_set(err, ERR_USAGE, "%s", text->data ? text->data : "");
    buf_fini(text);
    return code;
}

/* Refuses options that are all given, but do not go together. */
static int refuse_set(const struct asker *asker, uint64_t set, struct error *err)
{
    struct buf text = {0};
    for (unsigned what = 1; what < ASKS; set &= ~(UINT64_C(1) << what++)) {
        if (!(set >> what & 1))
            continue;
        const char *name = asker->name_of((enum ask)what);
        bool is_last = !(set >> what >> 1);
        buf_printf(&text, "%s%.*s", !text.len_bytes ? "" : is_last ? " and " : ", ", (int)strcspn(name, " "), name);
    }
    buf_printf(&text, " do not go together");
    return refuse_text(&text, err);
}

/* Refuses an option that a kind does not have: which ones have it. */
static int refuse(const struct asker *asker, const struct report_kind *kind, enum ask what, struct error *err)
{
    const char *name = asker->name_of(what), *pending = NULL;
    const struct report_kind *other;
    int len = (int)strcspn(name, " ");
    struct buf text = {0};
    if (what == ASK_BY && kind->no_by)
        return error_set(err, ERR_USAGE, "%s has no --by: %s", kind->name, kind->no_by);
    if (kind_options(kind) >> what & 1)
        return error_set(err, ERR_USAGE, "%.*s does not go with --by", len, name);
    buf_printf(&text, "%.*s goes with ", len, name);
    size_t empty = text.len_bytes;
    for (size_t i = 0; (other = asker->kind_at(i)); i++) {
        if (!(kind_options(other) >> what & 1))
            continue;
        if (pending)
            buf_printf(&text, "%s%s", text.len_bytes > empty ? ", " : "", pending);
        pending = other->name;
    }
    buf_printf(&text, "%s%s, not with %s", text.len_bytes > empty ? " and " : "", pending ? pending : "nothing",
               kind->name);
    return refuse_text(&text, err);
}

int asks_check(const struct asker *asker, const struct report_kind *kind, uint64_t given, struct error *err)
{
    uint64_t left = given & ~kind_options(kind);
    if (left & ASK(BY))
        return refuse(asker, kind, ASK_BY, err);
    if (!left && kind->by && given & ASK(BY))
        left = given & ~(kind->options_by | forms_of(report_forms_of(kind, true, false)) | ASK(OUTPUT));
    for (unsigned what = 1; what < ASKS; what++)
        if (left >> what & 1)
            return refuse(asker, kind, (enum ask)what, err);
    for (const uint64_t *set = kind->apart; set && *set; set++)
        if ((given & *set) == *set)
            return refuse_set(asker, *set, err);
    return 0;
}

void by_put_words(unsigned set, struct buf *out)
{
    const char *pending = NULL;
    bool is_first = true;
    for (unsigned by = SPLIT_NONE + 1; by < SPLIT_BYS; by++) {
        if (!(set >> by & 1))
            continue;
        if (pending)
            buf_printf(out, "%s%s", is_first ? "" : ", ", pending);
        is_first = is_first && !pending;
        pending = split_by_name((enum split_by)by);
    }
    buf_printf(out, "%s%s", is_first ? "" : " or ", pending ? pending : "");
}

int by_check(const struct report_kind *kind, const char *by, struct error *err)
{
    struct buf text = {0};
    if (!by || kind->by >> split_by_named(by) & 1)
        return 0;
    buf_printf(&text, "%s --by takes ", kind->name);
    by_put_words(kind->by, &text);
    return refuse_text(&text, err);
}

/* --- requests --- */

/* What a request says beside its report: a key of JSON, and where in the struct its value is. */
enum field_kind { FIELD_TEXT, FIELD_WORD, FIELD_PERCENT, FIELD_FLAG, FIELD_TEXTS, FIELD_TIME, FIELD_WORDS };
#define FIELD(key, kind, member, what)                                                                                 \
    {                                                                                                                  \
        "--" key, FIELD_##kind, offsetof(struct request, member), ASK_##what, 0                                        \
    }
#define FIELD_WITH(key, kind, member, has, what)                                                                       \
    {                                                                                                                  \
        "--" key, FIELD_##kind, offsetof(struct request, member), ASK_##what, offsetof(struct request, has)            \
    }
static const struct field {
    const char *option;
    enum field_kind kind;
    size_t offset;
    enum ask what;
    size_t has; /* where the struct says whether it is given, or how many there are; 0: the value does */
} fields[] = {
    {"--report", FIELD_TEXT, offsetof(struct request, report), ASKS, 0},
    {"--subject", FIELD_TEXT, offsetof(struct request, subject), ASKS, 0},
    FIELD("variable", TEXT, subject, VARIABLE),
    FIELD("metric", TEXT, metric, METRIC),
    FIELD("by", TEXT, by, BY),
    FIELD("order", TEXT, order, ORDER),
    FIELD_WITH("derive", TEXTS, derived, n_derived, DERIVE),
    FIELD("top", WORD, top, TOP),
    FIELD_WITH("min", PERCENT, least, has_least, MIN),
    FIELD("paths", FLAG, with_paths, PATHS),
    FIELD("fields", FLAG, with_fields, FIELDS),
    FIELD("all", FLAG, with_unused, ALL),
    FIELD("instructions", FLAG, with_instructions, INSTRUCTIONS),
    FIELD("mark", FLAG, at_mark, MARK),
    FIELD("profiles", TEXT, profiles, PROFILES),
    FIELD("tree", TEXT, tree, TREE),
    FIELD_WITH("from", TIME, from_ns, has_from, FROM),
    FIELD_WITH("to", TIME, to_ns, has_to, TO),
    FIELD_WITH("at", TIME, at_ns, has_at, AT),
    FIELD("width", WORD, width, WIDTH),
    FIELD_WITH("rows", WORDS, rows, n_rows, ROWS_OF),
    FIELD("row", WORD, row, ROW),
    FIELD("start", WORD, start, START),
    FIELD("count", WORD, count, COUNT),
    FIELD("task", TEXT, task, TASK),
    FIELD("cpu", TEXT, cpu, CPU),
    FIELD("event", TEXT, event, EVENT),
    FIELD("find", TEXT, find, FIND),
    FIELD("stream", WORD, stream, STREAM),
    FIELD("couplebreak", TEXT, couplebreak, COUPLEBREAK),
    FIELD("topology", TEXT, topology, TOPOLOGY),
};

#define N_FIELDS (sizeof fields / sizeof *fields)

static bool is_given(const struct request *request, const struct field *field)
{
    const void *member = (const char *)request + field->offset, *has = (const char *)request + field->has;
    switch (field->kind) {
    case FIELD_TEXT:
        return *(const char *const *)member;
    case FIELD_WORD:
        return *(const uint64_t *)member;
    case FIELD_PERCENT:
    case FIELD_TIME:
        return *(const bool *)has;
    case FIELD_FLAG:
        return *(const bool *)member;
    default:
        return *(const size_t *)has;
    }
}

static const struct report_kind *kind_at(size_t i)
{
    size_t n;
    const struct report_kind *const *all = reports(&n);
    return i < n ? all[i] : NULL;
}

const char *session_key(size_t i)
{
    return i + 1 < N_FIELDS ? fields[i + 1].option + 2 : NULL;
}

bool session_report_takes(size_t report, size_t key)
{
    const struct report_kind *kind = kind_at(report);
    if (!kind || !session_key(key))
        return false;
    bool has_subject = strchr(kind->operands, ' ') != NULL;
    enum ask what = fields[key + 1].what;
    return what == ASKS ? has_subject : kind->options >> what & 1 && !(what == ASK_VARIABLE && has_subject);
}

const char *session_report_by(size_t report, size_t i)
{
    const struct report_kind *kind = kind_at(report);
    for (unsigned by = SPLIT_NONE + 1; kind && by < SPLIT_BYS; by++)
        if (kind->by >> by & 1 && i-- == 0)
            return split_by_name((enum split_by)by);
    return NULL;
}

static const char *name_of(enum ask what)
{
    size_t i = 0;
    while (i + 1 < N_FIELDS && fields[i].what != what)
        i++;
    return fields[i].option;
}

static int refuse_report(const char *name, struct error *err)
{
    const char *names[64];
    struct buf text = {0};
    size_t n = 0;
    while (n < sizeof names / sizeof *names && kind_at(n)) {
        names[n] = kind_at(n)->name;
        n++;
    }
    buf_printf(&text, name ? "there is no report '%s'" : "a request names a report%.0s", name ? name : "");
    spelling_suggest(&text, name ? name : "", names, n);
    return refuse_text(&text, err);
}

int request_check(const struct request *request, const struct report_kind **kind, struct error *err)
{
    static const struct asker asker = {kind_at, name_of};
    uint64_t given = 0;
    *kind = request->report ? report_find(request->report) : NULL;
    if (!*kind && request->report)
        *kind = question_find(request->report);
    if (!*kind && request->report)
        *kind = timeline_find(request->report);
    if (!*kind)
        return refuse_report(request->report, err);
    bool has_subject = strchr((*kind)->operands, ' ') != NULL;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (fields[i].what != ASKS && is_given(request, &fields[i]))
            given |= UINT64_C(1) << fields[i].what;
    if (has_subject && !request->subject)
        return error_set(err, ERR_USAGE, "give %s after %s", (*kind)->operands, (*kind)->name);
    if (has_subject)
        given &= ~ASK(VARIABLE);
    if (request->has_least && !(request->least >= 0 && request->least <= 100))
        return error_set(err, ERR_USAGE, "--min and --threshold take a percentage, from 0 to 100");
    if (request->order && strcmp(request->order, "time") != 0 && strcmp(request->order, "memory") != 0)
        return error_set(err, ERR_USAGE, "--order takes time or memory");
    for (size_t i = 0; i < request->n_derived; i++)
        if (strspn(request->derived[i], " ") == strcspn(request->derived[i], "=") || !strchr(request->derived[i], '='))
            return error_set(err, ERR_USAGE,
                             "--derive takes a name, = and an expression: --derive 'miss%% = 100 * misses / loads'");
    int code = asks_check(&asker, *kind, given, err);
    return code || timeline_find((*kind)->name) ? code : by_check(*kind, request->by, err);
}

/* --- as JSON --- */

/* Takes a text, or a list of them. */
static bool take_derived(const json_t *value, struct request_text *parsed)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    bool is_right = (parsed->derived = calloc(n + 1, sizeof *parsed->derived));
    for (size_t i = 0; is_right && i < n; i++)
        is_right = (parsed->derived[i] = json_string_value(json_is_array(value) ? json_array_get(value, i) : value));
    parsed->request.derived = parsed->derived;
    parsed->request.n_derived = is_right ? n : 0;
    return is_right;
}

/* Takes a list of numbers. */
static bool take_words(const json_t *value, struct request_text *parsed)
{
    size_t n = json_array_size(value);
    bool is_right = json_is_array(value) && (parsed->rows = calloc(n + 1, sizeof *parsed->rows));
    for (size_t i = 0; is_right && i < n; i++) {
        const json_t *item = json_array_get(value, i);
        is_right = json_is_integer(item) && json_integer_value(item) >= 0;
        parsed->rows[i] = (uint64_t)json_integer_value(item);
    }
    parsed->request.rows = parsed->rows;
    parsed->request.n_rows = is_right ? n : 0;
    return is_right;
}

/* Takes nanoseconds; what has parts of them is rounded. */
static bool take_time(const json_t *value, int64_t *ns)
{
    double number = json_number_value(value);
    *ns = json_is_integer(value) ? json_integer_value(value) : 0;
    if (json_is_real(value) && fabs(number) < 9e18)
        *ns = llround(number);
    return json_is_integer(value) || (json_is_real(value) && fabs(number) < 9e18);
}

/* Takes the value of a field, which is not null; false when it is of another kind. */
static bool take_field(const struct field *field, const json_t *value, struct request_text *parsed)
{
    struct request *request = &parsed->request;
    void *member = (char *)request + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
        *(const char **)member = json_string_value(value);
        return json_is_string(value);
    case FIELD_WORD:
        *(uint64_t *)member = (uint64_t)json_integer_value(value);
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case FIELD_PERCENT:
        request->has_least = true;
        *(double *)member = json_number_value(value);
        return json_is_number(value);
    case FIELD_TIME:
        *(bool *)((char *)request + field->has) = true;
        return take_time(value, member);
    case FIELD_WORDS:
        return take_words(value, parsed);
    case FIELD_FLAG:
        *(bool *)member = json_is_true(value);
        return json_is_boolean(value);
    default:
        return take_derived(value, parsed);
    }
}

static int refuse_key(const char *key, struct error *err)
{
    const char *names[N_FIELDS];
    struct buf text = {0};
    for (size_t i = 0; i < N_FIELDS; i++)
        names[i] = fields[i].option + 2;
    buf_printf(&text, "a request has no '%.200s'", key);
    spelling_suggest(&text, key, names, N_FIELDS);
    return refuse_text(&text, err);
}

int request_of_json(const char *text, struct request_text *parsed, struct error *err)
{
    static const char *const kinds[] = {"a text", "a number, 0 or more",     "a number",         "true or false",
                                        "texts",  "a number of nanoseconds", "a list of numbers"};
    struct json_take take = {.name = "request", .err = err};
    const char *key;
    json_t *value;
    *parsed = (struct request_text){.request = {.size = sizeof parsed->request}};
    parsed->json = json_take_parse(&take, text, strlen(text));
    json_object_foreach(parsed->json, key, value)
    {
        size_t i = 0;
        while (i < N_FIELDS && strcmp(fields[i].option + 2, key) != 0)
            i++;
        if (i == N_FIELDS)
            return refuse_key(key, err);
        if (!json_is_null(value) && !take_field(&fields[i], value, parsed))
            return error_set(err, ERR_USAGE, "request: %s takes %s", key, kinds[fields[i].kind]);
    }
    return take.code;
}

void request_text_fini(struct request_text *parsed)
{
    json_decref(parsed->json);
    free(parsed->derived);
    free(parsed->rows);
    *parsed = (struct request_text){0};
}
