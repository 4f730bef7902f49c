/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters: which events are shown, by type, task, CPU and fields. */
#include "streams/readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

/* Ids in ascending order. */
struct id_set {
    int32_t *ids;
    size_t n, capacity;
};

struct stream_filters {
    struct id_set sets[STREAM_N_FILTERS];
    uint8_t mask;
    bool has_condition;
};

enum { MASK_ALL = STREAM_VISIBLE_TEXT | STREAM_VISIBLE_GRAPH | STREAM_VISIBLE_EVENT };

static bool id_is_before(const void *context, size_t i)
{
    const int32_t *const *search = context;
    return search[0][i] < *search[1];
}

static size_t id_place(const struct id_set *set, int32_t id)
{
    const int32_t *search[] = {set->ids, &id};
    return search_where(set->n, id_is_before, search);
}

static bool has_id(const struct id_set *set, int32_t id)
{
    size_t at = id_place(set, id);
    return at < set->n && set->ids[at] == id;
}

static struct stream_filters *get_filters(struct stream *stream)
{
    if (!stream->filters && (stream->filters = calloc(1, sizeof *stream->filters)))
        stream->filters->mask = MASK_ALL;
    return stream->filters;
}

void stream_filters_free(struct stream_filters *filters)
{
    for (size_t i = 0; filters && i < STREAM_N_FILTERS; i++)
        free(filters->sets[i].ids);
    free(filters);
}

int stream_filter_add(struct stream *stream, enum stream_filter filter, int32_t value, struct error *err)
{
    struct stream_filters *filters = get_filters(stream);
    struct id_set *set = filters ? &filters->sets[filter] : NULL;
    if (!set || !vec_reserve(&set->ids, &set->capacity, set->n + 1, sizeof *set->ids))
        return error_memory(err);
    size_t at = id_place(set, value);
    if (at < set->n && set->ids[at] == value)
        return 0;
    memmove(set->ids + at + 1, set->ids + at, (set->n++ - at) * sizeof *set->ids);
    set->ids[at] = value;
    return 0;
}

void stream_filter_clear(struct stream *stream, enum stream_filter filter)
{
    if (stream->filters)
        stream->filters->sets[filter].n = 0;
}

int stream_filter_mask(struct stream *stream, uint8_t mask, struct error *err)
{
    struct stream_filters *filters = get_filters(stream);
    if (!filters)
        return error_memory(err);
    filters->mask = mask & MASK_ALL;
    return 0;
}

/* --- conditions on fields --- */

/* A condition as it is read: libtraceevent takes a field that no type has for one that is never true, and may end on a
 * text that ends too early. */
struct condition {
    const struct stream *stream;
    const char *types; /* "sched_switch,sched/sched_waking"; NULL: all */
    size_t n_types;
    const char *at, *end;
};

/* Whether a type is one of those that a condition is about. Patterns are left to the library: they may be any. */
static bool is_meant(const struct condition *condition, const struct stream_type *type)
{
    const char *slash = strchr(type->name, '/'), *name = slash ? slash + 1 : type->name;
    if (!condition->types)
        return true;
    for (const char *at = condition->types, *end = at + condition->n_types; at < end;) {
        at += strspn(at, ", ");
        size_t n = strcspn(at, ", :");
        bool is_whole = strlen(type->name) == n && memcmp(type->name, at, n) == 0;
        if (is_whole || (strlen(name) == n && memcmp(name, at, n) == 0))
            return true;
        at += n + (n == 0);
    }
    return false;
}

/* Refuses a field that no type of those has, unless no such type is known.  err: ERR_USAGE */
static int check_field(const struct condition *condition, const char *name, size_t n, struct error *err)
{
    static const char *const special[] = {"COMM", "CPU", "common_comm"};
    const struct stream_type *first = NULL;
    struct buf text = {0};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strlen(special[i]) == n && memcmp(special[i], name, n) == 0)
            return 0;
    for (size_t i = 0; i < condition->stream->n_types; i++) {
        const struct stream_type *type = &condition->stream->types[i];
        if (!is_meant(condition, type))
            continue;
        first = first ? first : type;
        for (size_t k = 0; k < type->n_fields; k++)
            if (strlen(type->fields[k].name) == n && memcmp(type->fields[k].name, name, n) == 0)
                return 0;
    }
    if (!first)
        return 0;
    for (size_t k = 0; k < first->n_fields; k++)
        buf_printf(&text, "%s%s", k ? ", " : "", first->fields[k].name);
    int code = text.failed ? error_memory(err)
                           : error_set(err, ERR_USAGE, "there is no field '%.*s'; %s has %s", (int)(n < 60 ? n : 60),
                                       name, first->name, text.data ? text.data : "none");
    buf_fini(&text);
    return code;
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Reads one condition: fields stand where a value may begin, and are followed by what compares.  err: ERR_USAGE */
static int check_condition(struct condition *condition, struct error *err)
{
    bool wants_value = true, is_left = true;
    int depth = 0, code = 0;
    while (condition->at < condition->end && code == 0) {
        const char *at = condition->at;
        char c = *at++;
        if (c == '"' || c == '\'') {
            while (at < condition->end && *at != c)
                at += *at == '\\' ? 2 : 1;
            if (at++ >= condition->end)
                return error_set(err, ERR_USAGE, "a text in it has no end");
            wants_value = false;
        } else if (is_word(c)) {
            while (at < condition->end && (is_word(*at) || *at == '.'))
                at++;
            if (is_left && !(c >= '0' && c <= '9'))
                code = check_field(condition, condition->at, (size_t)(at - condition->at), err);
            wants_value = is_left = false;
        } else if (strchr("=!<>~&|^+-*/%", c)) {
            bool joins = at < condition->end && *at == c && (c == '&' || c == '|');
            is_left = joins || (c == '!' && wants_value && (at == condition->end || (*at != '=' && *at != '~')));
            at += joins || (at < condition->end && strchr("=~", *at));
            wants_value = true;
        }
        depth += (c == '(') - (c == ')');
        condition->at = at;
    }
    if (code == 0 && (wants_value || depth))
        code = error_set(err, ERR_USAGE,
                         depth > 0   ? "a bracket in it is not closed"
                         : depth < 0 ? "a bracket in it is not opened"
                                     : "it ends where a value is expected");
    return code;
}

/* Reads what libtraceevent is to take, a condition a line.  err: ERR_USAGE */
static int check_conditions(const struct stream *stream, const char *text, struct error *err)
{
    int code = 0;
    for (const char *at = text; *at && code == 0;) {
        const char *end = at + strcspn(at, "\n"), *colon = memchr(at, ':', (size_t)(end - at));
        const char *quote = strpbrk(at, "\"'");
        bool has_types = colon && (!quote || colon < quote);
        struct condition condition = {.stream = stream, .end = end, .at = has_types ? colon + 1 : at};
        condition.types = has_types ? at : NULL;
        condition.n_types = has_types ? (size_t)(colon - at) : 0;
        if (end > at)
            code = check_condition(&condition, err);
        at = end + (*end == '\n');
    }
    return code;
}

int stream_filter_fields(struct stream *stream, const char *condition, struct error *err)
{
    struct stream_filters *filters = get_filters(stream);
    if (!filters)
        return error_memory(err);
    if (condition && strstr(condition, "couplebreak/"))
        return error_set(err, ERR_UNSUPPORTED,
                         "%.200s: twins of couplebreak have no fields of their own to filter by; "
                         "filter their origins",
                         condition);
    if (!stream->formats)
        return error_set(err, ERR_UNSUPPORTED, "%.200s: a %s has no fields to filter by", condition ? condition : "",
                         stream->kind);
    int code = condition ? check_conditions(stream, condition, err) : 0;
    code = code ? code : formats_set_condition(stream->formats, condition ? condition : "", err);
    filters->has_condition = code == 0 && condition && *condition;
    return code;
}

static bool is_hidden(const struct stream_filters *filters, enum stream_filter show, enum stream_filter hide,
                      int32_t id)
{
    const struct id_set *shown = &filters->sets[show], *hidden = &filters->sets[hide];
    return (shown->n && !has_id(shown, id)) || (hidden->n && has_id(hidden, id));
}

/* Of hidden types only the time lines remain: they show what the task does, not that it is an event. */
static uint8_t visible_of(const struct stream_filters *filters, const struct stream_event *event, bool is_unfit)
{
    uint8_t visible = STREAM_VISIBLE_ALL;
    if (is_unfit || is_hidden(filters, STREAM_SHOW_EVENT, STREAM_HIDE_EVENT, event->id))
        visible &= (uint8_t) ~(filters->mask & ~STREAM_VISIBLE_GRAPH);
    if (is_hidden(filters, STREAM_SHOW_TASK, STREAM_HIDE_TASK, event->task) ||
        is_hidden(filters, STREAM_SHOW_CPU, STREAM_HIDE_CPU, event->cpu))
        visible &= (uint8_t)~filters->mask;
    return visible;
}

/* Events [n] from first, all asked at once. */
static int apply_to(struct stream *stream, size_t first, size_t n, struct error *err)
{
    struct formats_record records[FORMATS_BATCH] = {0};
    bool is_unfit[FORMATS_BATCH] = {0}, answers[FORMATS_BATCH];
    size_t asked[FORMATS_BATCH], n_asked = 0;
    for (size_t i = 0; i < n && stream->filters->has_condition; i++) {
        const struct stream_event *event = &stream->events[first + i];
        struct formats_record *record = &records[n_asked];
        *record = (struct formats_record){.t_ns = event->t_ns, .cpu = event->cpu};
        if (event->id >= 0 && stream_event_bytes(stream, event, &record->bytes, &record->n_bytes))
            asked[n_asked++] = i;
    }
    int code = n_asked ? formats_match(stream->formats, records, n_asked, answers, err) : 0;
    for (size_t i = 0; i < n_asked && code == 0; i++)
        is_unfit[asked[i]] = answers[i];
    for (size_t i = 0; i < n && code == 0; i++) {
        struct stream_event *event = &stream->events[first + i];
        event->visible = visible_of(stream->filters, event, is_unfit[i]);
    }
    return code;
}

int stream_filter_apply(struct stream *stream, struct error *err)
{
    int code = get_filters(stream) ? 0 : error_memory(err);
    for (size_t i = 0; i < stream->n_events && code == 0; i += FORMATS_BATCH)
        code = apply_to(stream, i, stream->n_events - i < FORMATS_BATCH ? stream->n_events - i : FORMATS_BATCH, err);
    return code;
}
