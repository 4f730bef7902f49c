/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of events: all that are wanted, or the next or previous ones from a place; as a table, or as the lines that
 * KernelShark dumps. Several streams are merged by time, equal times by their order. Ordinary code. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/streams/sched-report.h"
#include "streams/couplebreak.h"
#include "table/table.h"

#define EVENT_COLUMNS                                                                                                  \
    {"index", "#", CELL_COUNT}, {"time_ns", "time", CELL_TIME}, {"cpu", "CPU", CELL_COUNT}, SCHED_TASK_COLUMNS,        \
        {"latency", "flags", CELL_TEXT}, {"event", "event", CELL_TEXT}, {"info", "info", CELL_TEXT},                   \
        {"event_id", NULL, CELL_COUNT}, {"origin", NULL, CELL_COUNT},                                                  \
    {                                                                                                                  \
        "origin_tid", NULL, CELL_COUNT                                                                                 \
    }

static const struct column event_columns[] = {EVENT_COLUMNS};
static const struct column line_columns[] = {EVENT_COLUMNS, {"line", NULL, CELL_TEXT}};

/* An event of a stream. */
struct found {
    size_t stream, index;
};

/* What is on the way through all streams. */
struct walk {
    const struct sched_job *job;
    size_t *places; /* [job->n_streams] forward: the next event; backward: the one behind it */
    struct found *found;
    size_t n, capacity;
    size_t n_more;
};

/* --- which events --- */

static bool wants(const struct sched_job *job, const struct stream *stream, const struct stream_event *event)
{
    return event->visible & STREAM_VISIBLE_TEXT && event->t_ns >= job->window.from_ns &&
           event->t_ns <= job->window.to_ns && sched_wants_cpu(job, event->cpu) &&
           (!job->tasks || sched_wants_task(job, stream, event->task)) &&
           (!job->events || sched_wants_event(job, stream_event_name(stream, event)));
}

/* The stream whose next event is the earliest, or, backward, whose event before is the latest; n_streams: none is left.
 */
static size_t next_stream(const struct walk *walk, bool is_backward)
{
    const struct sched_job *job = walk->job;
    size_t best = job->n_streams;
    int64_t best_ns = 0;
    for (size_t i = 0; i < job->n_streams; i++) {
        const struct stream *stream = job->streams[i].stream;
        if (is_backward ? walk->places[i] == 0 : walk->places[i] == stream->n_events)
            continue;
        int64_t t_ns = stream->events[walk->places[i] - is_backward].t_ns;
        if (best == job->n_streams || (is_backward ? t_ns >= best_ns : t_ns < best_ns)) {
            best = i;
            best_ns = t_ns;
        }
    }
    return best;
}

/* Where a stream stands at the beginning. */
static size_t start_of(const struct sched_job *job, size_t i)
{
    const struct sched_place *place = job->place;
    const struct stream *stream = job->streams[i].stream;
    if (!place)
        return stream_at(stream, job->window.from_ns);
    if (!place->is_event)
        return place->is_before            ? stream_at(stream, place->from_ns)
               : place->to_ns == INT64_MAX ? stream->n_events
                                           : stream_at(stream, place->to_ns + 1);
    if (i == place->stream)
        return place->is_before ? place->index : place->index + 1;
    /* among equal times, streams stand in their order */
    int64_t t_ns = job->streams[place->stream].stream->events[place->index].t_ns;
    return stream_at(stream, i < place->stream && t_ns < INT64_MAX ? t_ns + 1 : t_ns);
}

static bool add_found(struct walk *walk, size_t stream, size_t index)
{
    if (!vec_reserve(&walk->found, &walk->capacity, walk->n + 1, sizeof *walk->found))
        return false;
    walk->found[walk->n++] = (struct found){stream, index};
    return true;
}

/* Finds the events that are wanted; from a place, no more than are wanted.  err: ERR_MEMORY, as stream_put_info */
static int find_events(struct walk *walk, struct error *err)
{
    const struct sched_job *job = walk->job;
    bool is_backward = job->place && job->place->is_before, says = true;
    int code = 0;
    for (size_t i = 0; i < job->n_streams; i++)
        walk->places[i] = start_of(job, i);
    while (!code) {
        size_t i = next_stream(walk, is_backward);
        if (i == job->n_streams)
            break;
        struct stream *stream = job->streams[i].stream;
        size_t index = is_backward ? --walk->places[i] : walk->places[i]++;
        const struct stream_event *event = &stream->events[index];
        if (is_backward ? event->t_ns < job->window.from_ns : event->t_ns > job->window.to_ns)
            break;
        if (!wants(job, stream, event))
            continue;
        if (job->find)
            code = stream_says(stream, event, STREAM_IN_ALL, job->find, &says, err);
        if (code || !says)
            continue;
        if (!job->top || walk->n < job->top)
            code = add_found(walk, i, index) ? 0 : error_memory(err);
        else if (job->place)
            break;
        else
            walk->n_more++;
    }
    for (size_t i = 0; is_backward && i < walk->n / 2; i++) {
        struct found swapped = walk->found[i];
        walk->found[i] = walk->found[walk->n - 1 - i];
        walk->found[walk->n - 1 - i] = swapped;
    }
    return code;
}

/* --- how they are shown --- */

static int put_event(struct table *table, const struct sched_job *job, size_t i, size_t index, struct error *err)
{
    struct stream *stream = job->streams[i].stream;
    const struct stream_event *event = &stream->events[index], *origin = couplebreak_origin(stream, event);
    struct buf flags = {0}, info = {0}, line = {0};
    int code = stream_put_latency(stream, event, &flags, err);
    code = code ? code : stream_put_info(stream, event, &info, err);
    table_put_count(table, (int64_t)index);
    table_put_count(table, event->t_ns);
    table_put_if(table, event->cpu != STREAM_NO_CPU, event->cpu);
    sched_put_task_cells(table, job, i, event->task, event->t_ns);
    table_put_made(table, &flags);
    table_put_text(table, stream_event_name(stream, event));
    table_put_made(table, &info);
    table_put_count(table, event->id);
    table_put_if(table, origin, origin ? origin - stream->events : 0);
    table_put_if(table, origin, origin ? origin->task : 0);
    if (job->with_lines) {
        code = code ? code : stream_put_line(stream, (int)i, event, &line, err);
        table_put_made(table, &line);
    }
    return code;
}

static int put_lines(const struct walk *walk, struct buf *out, struct error *err)
{
    int code = 0;
    for (size_t i = 0; !code && i < walk->n; i++) {
        struct stream *stream = walk->job->streams[walk->found[i].stream].stream;
        code = stream_put_line(stream, (int)walk->found[i].stream, &stream->events[walk->found[i].index], out, err);
        buf_append(out, "\n", 1);
    }
    return code;
}

static int put_table(const struct walk *walk, struct buf *out, struct error *err)
{
    struct table lines = TABLE_OF(line_columns), events = TABLE_OF(event_columns);
    struct table *table = walk->job->with_lines ? &lines : &events;
    int code = 0;
    for (size_t i = 0; !code && i < walk->n && !table->failed; i++)
        code = put_event(table, walk->job, walk->found[i].stream, walk->found[i].index, err);
    table->n_more = walk->n_more;
    return sched_finish_table(walk->job, "events", table, out, code, err);
}

int sched_write_events(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct walk walk = {.job = job, .places = calloc(job->n_streams, sizeof *walk.places)};
    bool is_text = strcmp(job->form, "text") == 0;
    int code = walk.places ? find_events(&walk, err) : error_memory(err);
    if (!code)
        code = is_text && job->with_lines ? put_lines(&walk, out, err) : put_table(&walk, out, err);
    free(walk.places);
    free(walk.found);
    return code;
}
