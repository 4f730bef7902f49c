/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams on the command line: options that precede a stream are its own. They are opened, brought onto one axis of
 * time, and shown in the order that their topologies give. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "hpcquery.h"
#include "streams/axis.h"
#include "streams/topology.h"

bool streams_take_option(struct settings *settings, int kind, const char *value, int n_operands)
{
    if (!vec_reserve(&settings->stream_options, &settings->cap_stream_options, settings->n_stream_options + 1,
                     sizeof *settings->stream_options))
        return false;
    settings->stream_options[settings->n_stream_options++] =
        (struct stream_option){kind, value, n_operands > 0 ? (size_t)n_operands : 0};
    return true;
}

/* What was said of one stream. */
struct wishes {
    struct stream_options options;
    const char *topology;
    enum topology_view view;
    bool has_view, has_offset;
    int64_t offset_ns;
};

static bool take_seconds(const char *text, int64_t *ns)
{
    char *end;
    double seconds = plain_number(text, &end);
    if (end == text || *end || !isfinite(seconds) || fabs(seconds) > 9e9)
        return false;
    *ns = (int64_t)llround(seconds * 1e9);
    return true;
}

/* err: ERR_USAGE */
static int take_wish(const struct stream_option *option, struct wishes *wishes, struct error *err)
{
    switch (option->kind) {
    case STREAM_OPTION_COUPLEBREAK:
        wishes->options.couplebreak = true;
        return 0;
    case STREAM_OPTION_TOPOLOGY:
        wishes->topology = option->value;
        return 0;
    case STREAM_OPTION_BUFFER:
        wishes->options.buffer = option->value;
        return 0;
    case STREAM_OPTION_OFFSET:
        wishes->has_offset = true;
        return take_seconds(option->value, &wishes->offset_ns)
                   ? 0
                   : error_set(err, ERR_USAGE, "--offset takes seconds, such as -0.25");
    default:
        wishes->has_view = true;
        wishes->view = strcmp(option->value, "numatree") == 0 ? TOPOLOGY_VIEW_NUMATREE : TOPOLOGY_VIEW_DEFAULT;
        return strcmp(option->value, "numatree") == 0 || strcmp(option->value, "default") == 0
                   ? 0
                   : error_set(err, ERR_USAGE, "--view takes numatree or default");
    }
}

static const char *option_name(int kind)
{
    static const char *const names[] = {[STREAM_OPTION_COUPLEBREAK] = "--couplebreak",
                                        [STREAM_OPTION_TOPOLOGY] = "--topology",
                                        [STREAM_OPTION_VIEW] = "--view",
                                        [STREAM_OPTION_OFFSET] = "--offset",
                                        [STREAM_OPTION_BUFFER] = "--buffer"};
    return names[kind];
}

/* The options of the stream that is operand number operand; those before the first stream are its own.
 * err: ERR_USAGE */
static int wishes_of(const struct settings *settings, size_t operand, size_t first, struct wishes *wishes,
                     struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < settings->n_stream_options && !code; i++) {
        const struct stream_option *option = &settings->stream_options[i];
        size_t of = option->operand < first ? first : option->operand;
        if (of == operand)
            code = take_wish(option, wishes, err);
    }
    if (!code && wishes->has_view && wishes->view == TOPOLOGY_VIEW_NUMATREE && !wishes->topology)
        code = error_set(err, ERR_USAGE, "--view numatree goes with --topology FILE");
    return code;
}

/* Gives a stream the topology that was asked for.  err: as stream_views_create */
static int set_view(struct opened_streams *opened, size_t i, const struct wishes *wishes, struct error *err)
{
    const struct stream *stream = opened->all[i].stream;
    bool *has_events = calloc((size_t)stream->n_cpus + 1, sizeof *has_events);
    enum topology_view view = wishes->has_view ? wishes->view : TOPOLOGY_VIEW_NUMATREE;
    if (!has_events)
        return error_memory(err);
    for (size_t j = 0; j < stream->n_events; j++)
        if (stream->events[j].cpu < stream->n_cpus)
            has_events[stream->events[j].cpu] = true;
    const struct stream_cpus cpus = {stream->n_cpus, has_events};
    int change = stream_views_create(&opened->views, (uint32_t)i, &cpus, view, wishes->topology, err);
    free(has_events);
    return change == VIEW_REFUSED ? err->code : 0;
}

static int open_one(const struct settings *settings, char *const *words, size_t operand, size_t first,
                    const struct stream_namer *namer, struct opened_streams *opened, struct error *err)
{
    struct wishes wishes = {.options.namer = namer};
    struct axis_stream *own = &opened->all[opened->n];
    int code = wishes_of(settings, operand, first, &wishes, err);
    code = code ? code : stream_open(words[operand], &wishes.options, &own->stream, err);
    if (code)
        return code;
    own->is_given = wishes.has_offset;
    own->given_ns = wishes.offset_ns;
    opened->n++;
    if (wishes.topology && set_view(opened, opened->n - 1, &wishes, err) != 0) {
        (void)tool_error("hpcquery", "%s", err->text);
        opened->n_refused++;
    }
    return 0;
}

int streams_open(const struct settings *settings, char *const *words, size_t n_words, size_t first,
                 const struct stream_namer *namer, struct opened_streams *opened)
{
    struct error err = {0};
    *opened = (struct opened_streams){.all = calloc(n_words + 1, sizeof *opened->all)};
    int code = opened->all ? 0 : error_memory(&err);
    for (size_t i = 0; i < settings->n_stream_options && !code; i++)
        if (settings->stream_options[i].operand >= n_words)
            code = error_set(&err, ERR_USAGE, "%s precedes the stream that it is about",
                             option_name(settings->stream_options[i].kind));
    for (size_t i = first; i < n_words && !code; i++)
        code = open_one(settings, words, i, first, namer, opened, &err);
    code = code ? code : axis_align(opened->all, opened->n, &err);
    return !code               ? 0
           : code == ERR_USAGE ? tool_usage("hpcquery", "%s", err.text)
                               : tool_error("hpcquery", "%s", err.text);
}

void streams_close(struct opened_streams *opened)
{
    stream_views_clear(&opened->views);
    for (size_t i = 0; i < opened->n; i++)
        stream_close(opened->all[i].stream);
    free(opened->all);
    *opened = (struct opened_streams){0};
}

/* --- the window --- */

/* The first and the last time of all streams; false when there is no event. */
static bool extent(const struct opened_streams *opened, int64_t *from_ns, int64_t *to_ns)
{
    bool has_any = false;
    for (size_t i = 0; i < opened->n; i++) {
        const struct stream *stream = opened->all[i].stream;
        for (size_t end = 0; stream->n_events && end < 2; end++) {
            int64_t t_ns = stream->events[end ? stream->n_events - 1 : 0].t_ns;
            *from_ns = !has_any || t_ns < *from_ns ? t_ns : *from_ns;
            *to_ns = !has_any || t_ns > *to_ns ? t_ns : *to_ns;
            has_any = true;
        }
    }
    return has_any;
}

/* A time on the axis in seconds, or with a sign from the first event on. */
static bool take_time(const char *text, int64_t begin_ns, int64_t *t_ns)
{
    int64_t ns;
    if (!take_seconds(*text == '+' ? text + 1 : text, &ns))
        return false;
    return !__builtin_add_overflow(ns, *text == '+' ? begin_ns : 0, t_ns);
}

int streams_window(const struct settings *settings, const struct opened_streams *opened, struct schedule_window *window)
{
    int64_t begin_ns = 0, end_ns = 0;
    *window = (struct schedule_window){INT64_MIN, INT64_MAX};
    (void)extent(opened, &begin_ns, &end_ns);
    if ((settings->from && !take_time(settings->from, begin_ns, &window->from_ns)) ||
        (settings->to && !take_time(settings->to, begin_ns, &window->to_ns)))
        return tool_usage("hpcquery", "--from and --to take seconds on the axis, or +SECONDS from its beginning");
    if (window->from_ns > window->to_ns)
        return tool_usage("hpcquery", "--from is later than --to");
    return 0;
}
