/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams on the command line: options that precede a stream are its own. They are opened, brought onto one axis of
 * time, and shown in the order that their topologies give. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/spelling.h"
#include "export/streams/sched-report.h"
#include "table/table.h"
#include "hpcquery.h"
#include "streams/axis.h"
#include "streams/couplebreak.h"
#include "streams/levels.h"
#include "streams/parts.h"
#include "streams/topology.h"

bool streams_take_option(struct settings *settings, enum ask what, const char *value, int n_operands)
{
    if (!vec_reserve(&settings->stream_options, &settings->cap_stream_options, settings->n_stream_options + 1,
                     sizeof *settings->stream_options))
        return false;
    settings->stream_options[settings->n_stream_options++] =
        (struct stream_option){what, value, n_operands > 0 ? (size_t)n_operands : 0};
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

/* --offset */
static bool take_seconds(const char *text, int64_t *ns)
{
    int64_t first_ns, last_ns;
    return time_take(text + (*text == '+'), TIME_WHOLE, ns, &first_ns, &last_ns);
}

/* err: ERR_USAGE */
static int take_wish(const struct stream_option *option, struct wishes *wishes, struct error *err)
{
    switch (option->what) {
    case ASK_COUPLEBREAK:
        wishes->options.couplebreak = true;
        return 0;
    case ASK_TOPOLOGY:
        wishes->topology = option->value;
        return 0;
    case ASK_BUFFER:
        wishes->options.buffer = option->value;
        return 0;
    case ASK_OFFSET:
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

/* Opens the part of a recording that --from and --to leave, and some more, if an index is kept of it: NULL is no
 * failure, and whatever is wrong shows when all of it is opened. */
static struct stream *open_part(const struct settings *settings, const char *path)
{
    const char *texts[] = {settings->values[ASK_FROM], settings->values[ASK_TO]};
    enum { MARGIN_NS = 1000 }; /* times are printed as microseconds */
    int64_t times[2], first_ns, last_ns;
    struct error ignored = {0};
    struct stream *stream = NULL;
    struct parts_index *index = texts[0] && texts[1] ? levels_find_index(path) : NULL;
    bool is_clear = index;
    for (size_t i = 0; i < 2 && is_clear; i++) {
        bool is_distance = *texts[i] == '+';
        is_clear = time_take(texts[i] + is_distance, TIME_ROUNDED, &times[i], &first_ns, &last_ns) &&
                   !__builtin_add_overflow(times[i], is_distance ? parts_index_begin_ns(index) : 0, &times[i]) &&
                   !__builtin_add_overflow(times[i], i ? MARGIN_NS : -MARGIN_NS, &times[i]);
    }
    if (!is_clear || times[0] > times[1]) {
        parts_index_free(index);
        return NULL;
    }
    return stream_open_part(path, index, times[0], times[1], &stream, &ignored) == 0 ? stream : NULL;
}

static int open_one(const struct settings *settings, char *const *words, size_t operand, size_t first,
                    const struct stream_namer *namer, struct opened_streams *opened, struct error *err)
{
    struct wishes wishes = {.options = {.size = sizeof wishes.options, .namer = namer}};
    struct axis_stream *own = &opened->all[opened->n];
    int code = wishes_of(settings, operand, first, &wishes, err);
    if (!code && opened->may_be_parts && !settings->n_stream_options)
        own->stream = open_part(settings, words[operand]);
    if (!own->stream)
        code = code ? code : stream_open(words[operand], &wishes.options, &own->stream, err);
    if (!code && stream_follow_names(own->stream, err) != 0) {
        stream_close(own->stream);
        code = err->code;
    }
    if (code)
        return code;
    if (wishes.has_view && wishes.view == TOPOLOGY_VIEW_NUMATREE && !wishes.topology)
        wishes.topology = own->stream->topology;
    if (wishes.has_view && wishes.view == TOPOLOGY_VIEW_NUMATREE && !wishes.topology)
        return stream_close(own->stream), error_set(err, ERR_USAGE, "--view numatree goes with --topology FILE");
    own->is_given = wishes.has_offset;
    own->given_ns = wishes.offset_ns;
    opened->buffers[opened->n++] = wishes.options.buffer;
    if (wishes.topology && set_view(opened, opened->n - 1, &wishes, err) != 0) {
        (void)tool_error("hpcquery", "%s", err->text);
        opened->n_refused++;
    }
    return 0;
}

int streams_open(const struct settings *settings, char *const *words, size_t n_words, size_t first,
                 const struct stream_namer *namer, bool may_be_parts, struct opened_streams *opened)
{
    struct error err = {0};
    *opened = (struct opened_streams){.all = calloc(n_words + 1, sizeof *opened->all),
                                      .buffers = calloc(n_words + 1, sizeof *opened->buffers),
                                      .may_be_parts = may_be_parts && n_words == first + 1};
    int code = opened->all && opened->buffers ? 0 : error_memory(&err);
    for (size_t i = 0; i < settings->n_stream_options && !code; i++)
        if (settings->stream_options[i].operand >= n_words)
            code = error_set(&err, ERR_USAGE, "%s precedes the stream that it is about",
                             option_name(settings->stream_options[i].what));
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
    free(opened->buffers);
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

/* How times with six digits are to be understood, and stand in text without --ns. */
static enum time_form usual_form(const struct opened_streams *opened)
{
    bool are_cut = opened->n > 0;
    for (size_t i = 0; i < opened->n; i++)
        are_cut = are_cut && opened->all[i].stream->cuts_times;
    return are_cut ? TIME_CUT : TIME_ROUNDED;
}

enum time_form streams_time_form(const struct settings *settings, const struct opened_streams *opened)
{
    return settings_ask(settings, ASK_NS) ? TIME_WHOLE : usual_form(opened);
}

/* The first and the last event of all streams from *from_ns to *to_ns, which become their times where they lie farther
 * apart than t_ns: what was printed as this time. */
static void widen(const struct opened_streams *opened, int64_t first_ns, int64_t last_ns, int64_t *from_ns,
                  int64_t *to_ns)
{
    for (size_t i = 0; i < opened->n; i++) {
        const struct stream *stream = opened->all[i].stream;
        size_t first = stream_at(stream, first_ns), behind = stream_at(stream, last_ns + 1);
        if (first < behind && stream->events[first].t_ns < *from_ns)
            *from_ns = stream->events[first].t_ns;
        if (first < behind && stream->events[behind - 1].t_ns > *to_ns)
            *to_ns = stream->events[behind - 1].t_ns;
    }
}

/* A time on the axis in seconds, or with a sign from the first event on; *from_ns, *to_ns: from the first to the last
 * event that stands in text with this time, and the time itself. */
static bool take_time(const struct opened_streams *opened, const char *text, int64_t begin_ns, int64_t *from_ns,
                      int64_t *to_ns)
{
    int64_t t_ns, first_ns, last_ns;
    bool is_distance = *text == '+';
    if (!time_take(text + is_distance, usual_form(opened), &t_ns, &first_ns, &last_ns) ||
        __builtin_add_overflow(t_ns, is_distance ? begin_ns : 0, &t_ns))
        return false;
    *from_ns = *to_ns = t_ns;
    if (!is_distance)
        widen(opened, first_ns, last_ns, from_ns, to_ns);
    return true;
}

int streams_window(const struct settings *settings, const struct opened_streams *opened, struct schedule_window *window)
{
    int64_t begin_ns = 0, end_ns = 0, other_ns;
    const char *from = settings->values[ASK_FROM], *to = settings->values[ASK_TO];
    *window = (struct schedule_window){INT64_MIN, INT64_MAX};
    (void)extent(opened, &begin_ns, &end_ns);
    if ((from && !take_time(opened, from, begin_ns, &window->from_ns, &other_ns)) ||
        (to && !take_time(opened, to, begin_ns, &other_ns, &window->to_ns)))
        return tool_usage("hpcquery", "--from and --to take seconds on the axis, nanoseconds such as 1500ns, or "
                                      "+SECONDS from its beginning");
    if (window->from_ns > window->to_ns)
        return tool_usage("hpcquery", "--from is later than --to");
    return 0;
}

/* --- search and filters --- */

/* "#41" or "1#41"; false: it is none. */
static bool take_event(const struct opened_streams *opened, const char *text, struct sched_place *place)
{
    char *end = (char *)(uintptr_t)text;
    place->stream = *text == '#' ? 0 : strtoull(text, &end, 10);
    if (*end != '#' || !strchr("0123456789#", *text) || place->stream >= opened->n || !end[1] ||
        end[1 + strspn(end + 1, "0123456789")])
        return false;
    place->index = strtoull(end + 1, NULL, 10);
    place->is_event = place->index < opened->all[place->stream].stream->n_events;
    return place->is_event;
}

int streams_place(const struct settings *settings, const struct opened_streams *opened, struct sched_place *place)
{
    const char *next = settings->values[ASK_NEXT], *text = next ? next : settings->values[ASK_PREVIOUS];
    int64_t begin_ns = 0, end_ns = 0;
    *place = (struct sched_place){.is_before = !next};
    if (next && settings->values[ASK_PREVIOUS])
        return tool_usage("hpcquery", "give --next or --previous");
    (void)extent(opened, &begin_ns, &end_ns);
    if (take_event(opened, text, place) || take_time(opened, text, begin_ns, &place->from_ns, &place->to_ns))
        return 0;
    return tool_usage("hpcquery", "--next and --previous take a time as --from does, or the number of an event in its "
                                  "recording, such as #41, of the second recording 1#41");
}

int streams_filter(const struct settings *settings, const struct opened_streams *opened)
{
    struct error err = {0};
    int code = 0;
    for (size_t i = 0; settings->values[ASK_FILTER] && !code && i < opened->n; i++) {
        code = stream_filter_fields(opened->all[i].stream, settings->values[ASK_FILTER], &err);
        code = code ? code : stream_filter_apply(opened->all[i].stream, &err);
    }
    return !code               ? 0
           : code == ERR_USAGE ? tool_usage("hpcquery", "--filter: %s", err.text)
                               : tool_error("hpcquery", "--filter: %s", err.text);
}

/* --- whether what was chosen is there --- */

static bool has_task(const struct sched_job *job, const struct stream *stream)
{
    for (size_t i = 0; i < stream->n_tasks; i++)
        if (sched_wants_task(job, stream, stream->tasks[i].task))
            return true;
    return false;
}

static bool has_cpu(const struct sched_job *job, const struct stream *stream)
{
    for (uint32_t cpu = 0; cpu < stream->n_cpus; cpu++)
        if (sched_wants_cpu(job, (uint16_t)cpu))
            return true;
    return false;
}

static bool has_type(const struct sched_job *job, const struct stream *stream)
{
    int32_t twins[COUPLEBREAK_N];
    int n_twins = couplebreak_ids(stream, twins);
    for (int i = 0; i < n_twins; i++)
        if (sched_wants_event(job, couplebreak_name(twins[i])))
            return true;
    for (size_t i = 0; i < stream->n_types; i++)
        if (sched_wants_event(job, stream->types[i].name))
            return true;
    return sched_wants_event(job, STREAM_LOST_NAME);
}

/* Names of what the recordings have, for messages. */
struct choice {
    const char *names[64];
    size_t n;
};

static void add_name(struct choice *choice, const char *name)
{
    if (*name == '<') /* idle tasks, and those without names */
        return;
    for (size_t i = 0; i < choice->n; i++)
        if (strcmp(choice->names[i], name) == 0)
            return;
    if (choice->n < sizeof choice->names / sizeof *choice->names)
        choice->names[choice->n++] = name;
}

static void add_tasks(const struct stream *stream, struct choice *choice)
{
    for (size_t i = 0; i < stream->n_tasks; i++) {
        const char *name;
        for (size_t k = 0; (stream->tasks[i].n_events || stream->n_totals) &&
                           (name = stream_comm_number(stream, stream->tasks[i].task, k)) != NULL;
             k++)
            add_name(choice, name);
    }
}

static void add_types(const struct stream *stream, struct choice *choice)
{
    int32_t twins[COUPLEBREAK_N];
    int n_twins = couplebreak_ids(stream, twins);
    for (int i = 0; i < n_twins; i++)
        add_name(choice, couplebreak_name(twins[i]));
    for (size_t i = 0; i < stream->n_types; i++)
        if (stream->types[i].n_events)
            add_name(choice, stream->types[i].name);
}

static int no_such(const struct sched_job *job, const char *option, const char *list, const char *what,
                   void (*add)(const struct stream *stream, struct choice *choice), struct error *err)
{
    struct choice choice = {.n = 0};
    struct buf text = {0};
    char word[64];
    for (size_t i = 0; i < job->n_streams; i++)
        add(job->streams[i].stream, &choice);
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(list, ","), list);
    if (choice.n)
        spelling_suggest(&text, word, choice.names, choice.n);
    int code = error_set(err, ERR_NOT_FOUND, "%s %.300s: the recordings have no such %s%s", option, list, what,
                         text.len_bytes && !text.failed ? text.data : "");
    buf_fini(&text);
    return code;
}

static int no_such_cpu(const struct sched_job *job, struct error *err)
{
    uint32_t n = 0;
    for (size_t i = 0; i < job->n_streams; i++)
        n = job->streams[i].stream->n_cpus > n ? job->streams[i].stream->n_cpus : n;
    return n ? error_set(err, ERR_NOT_FOUND, "--cpu %.300s: the recordings have no such CPU; they have 0 to %" PRIu32,
                         job->cpus, n - 1)
             : error_set(err, ERR_NOT_FOUND, "--cpu %.300s: the recordings do not say on which CPUs they were made",
                         job->cpus);
}

static int no_such_time(const struct sched_job *job, struct error *err)
{
    struct sched_job whole = *job;
    struct buf text = {0};
    int64_t from_ns = 0, to_ns = 0;
    whole.window = (struct schedule_window){INT64_MIN, INT64_MAX};
    (void)sched_extent(&whole, &from_ns, &to_ns);
    time_put(&text, from_ns, job->time_form);
    buf_printf(&text, " to ");
    time_put(&text, to_ns, job->time_form);
    int code =
        error_set(err, ERR_NOT_FOUND, "nothing was recorded between --from and --to; the recordings are from %s s",
                  text.failed ? "" : text.data);
    buf_fini(&text);
    return code;
}

int streams_find(const struct sched_job *job, struct error *err)
{
    bool found[3] = {!job->tasks, !job->cpus, !job->events}, has_events = false;
    int64_t from_ns, to_ns;
    for (size_t i = 0; i < job->n_streams; i++) {
        const struct stream *stream = job->streams[i].stream;
        found[0] = found[0] || has_task(job, stream);
        found[1] = found[1] || has_cpu(job, stream);
        found[2] = found[2] || has_type(job, stream);
        has_events |= stream->n_events > 0;
    }
    if (!found[0])
        return no_such(job, "--task", job->tasks, "task", add_tasks, err);
    if (!found[1])
        return no_such_cpu(job, err);
    if (!found[2])
        return no_such(job, "--event", job->events, "type of events", add_types, err);
    if (has_events && !sched_extent(job, &from_ns, &to_ns))
        return no_such_time(job, err);
    return 0;
}
