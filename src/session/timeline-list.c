/* SPDX-License-Identifier: BSD-3-Clause */
/* Single things of the time line: its events as a list, one stay with what led to it, and what a window holds without
 * time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/streams/sched-report.h"
#include "session/timeline.h"
#include "streams/couplebreak.h"
#include "streams/parts.h"
#include "table/table.h"

enum { COUNT_USUAL = 200, COUNT_MOST = 200000, MEMO_SLOTS = 1024 };

/* The number of a row of a recording; absent: it has none. */
static void put_row_of(struct table *table, const struct time_stream *of, enum level_kind kind, int32_t number)
{
    size_t row = levels_find(&of->levels, kind, number);
    table_put_if(table, row != SIZE_MAX, (int64_t)(of->first_row + row));
}

/* A time of the axis: since the beginning. */
static void put_time(struct table *table, const struct timeline *timeline, int64_t t_ns)
{
    table_put_count(table, time_add(t_ns, -timeline->begin_ns));
}

/* As it was called at a time of the axis. */
static void put_task_name(struct table *table, const struct stream *stream, int32_t task, int64_t t_ns)
{
    struct buf name = {0};
    buf_printf(&name, "%s:%" PRId32, stream_comm_at(stream, task, t_ns), task);
    table_put_made(table, &name);
}

/* --- events --- */

static const struct column event_columns[] = {
    {"place", NULL, CELL_COUNT},   {"time_ns", NULL, CELL_SPAN},  {"time", NULL, CELL_TEXT},
    {"stream", NULL, CELL_COUNT},  {"index", NULL, CELL_COUNT},   {"cpu", NULL, CELL_COUNT},
    {"cpu_row", NULL, CELL_COUNT}, {"task", NULL, CELL_COUNT},    {"task_row", NULL, CELL_COUNT},
    {"comm", NULL, CELL_TEXT},     {"latency", NULL, CELL_TEXT},  {"event", NULL, CELL_TEXT},
    {"info", NULL, CELL_TEXT},     {"twin_of", NULL, CELL_COUNT},
};

static const struct column event_head[] = {
    {"from_ns", NULL, CELL_SPAN}, {"to_ns", NULL, CELL_SPAN}, {"start", NULL, CELL_COUNT}, {"found", NULL, CELL_COUNT}};

/* Whether tasks or types are wanted, as far as it has been asked. */
struct memo {
    int32_t numbers[MEMO_SLOTS];
    uint8_t answers[MEMO_SLOTS]; /* 0: not asked, 1: no, 2: yes */
};

/* A recording that is gone through. */
struct walk {
    size_t first, at, end; /* of the window, the next one, and behind the last */
    size_t filled;         /* behind the last one that has been read so far; 0: not known */
    struct memo tasks, types;
};

/* An event that says what is looked for. */
struct match {
    size_t stream, index, place;
    bool is_there, is_put;
};

/* The list that is asked for. */
struct listing {
    const struct timeline *timeline;
    struct sched_job job;       /* what is wanted */
    struct walk *walks;         /* [n_streams] */
    size_t start, count, place; /* place: of the next event that is found */
    bool seeks;                 /* start is where at_ns is */
    int64_t at_ns;
    bool takes_all;   /* nothing chooses among events: once all wanted ones are found the rest is left out */
    const char *text; /* of count events the first and the last one that say it; NULL: all of them */
    struct match last;
};

static bool asks(struct memo *memo, const struct sched_job *job, const struct stream *stream,
                 const struct stream_event *event, bool of_type)
{
    int32_t number = of_type ? event->id : event->task;
    size_t slot = (uint32_t)number % MEMO_SLOTS;
    if (!memo->answers[slot] || memo->numbers[slot] != number) {
        bool is_wanted = of_type ? sched_wants_event(job, stream_event_name(stream, event))
                                 : sched_wants_task(job, stream, event->task);
        memo->numbers[slot] = number;
        memo->answers[slot] = is_wanted ? 2 : 1;
    }
    return memo->answers[slot] == 2;
}

static bool is_wanted(struct listing *listing, size_t i, const struct stream_event *event)
{
    const struct stream *stream = listing->timeline->streams[i].stream;
    const struct sched_job *job = &listing->job;
    return (event->visible & STREAM_VISIBLE_TEXT) && (!job->cpus || sched_wants_cpu(job, event->cpu)) &&
           (!job->tasks || asks(&listing->walks[i].tasks, job, stream, event, false)) &&
           (!job->events || asks(&listing->walks[i].types, job, stream, event, true));
}

/* The recording whose next event is the earliest; n_streams: there is none. */
static size_t next_of(const struct listing *listing)
{
    size_t n = listing->timeline->n_streams, found = n;
    int64_t t_ns = 0;
    for (size_t i = 0; i < n; i++) {
        const struct walk *walk = &listing->walks[i];
        const struct stream_event *event = &listing->timeline->streams[i].stream->events[walk->at];
        if (walk->at < walk->end && (found == n || event->t_ns < t_ns)) {
            found = i;
            t_ns = event->t_ns;
        }
    }
    return found;
}

/* err: as stream_put_info */
static int put_event(struct table *table, const struct listing *listing, size_t i, const struct stream_event *event,
                     struct error *err)
{
    const struct time_stream *of = &listing->timeline->streams[i];
    const struct stream_event *origin = couplebreak_origin(of->stream, event);
    struct buf text = {0}, latency = {0}, info = {0};
    int code = stream_put_latency(of->stream, event, &latency, err);
    code = code ? code : stream_put_info(of->stream, event, &info, err);
    table_put_count(table, (int64_t)listing->place);
    put_time(table, listing->timeline, event->t_ns);
    time_text_put(event->t_ns, &text);
    table_put_made(table, &text);
    table_put_count(table, (int64_t)i);
    table_put_count(table, event - of->stream->events);
    table_put_if(table, event->cpu != STREAM_NO_CPU, event->cpu);
    put_row_of(table, of, LEVEL_CPU, event->cpu);
    table_put_if(table, event->task != STREAM_NO_TASK, event->task);
    put_row_of(table, of, LEVEL_TASK, event->task);
    table_put_text(table, event->task == STREAM_NO_TASK ? NULL : stream_comm_at(of->stream, event->task, event->t_ns));
    table_put_made(table, &latency);
    table_put_text(table, stream_event_name(of->stream, event));
    table_put_made(table, &info);
    table_put_if(table, origin, origin ? origin - of->stream->events : 0);
    return code;
}

/* Whether the time of an event has a text, with nine digits or rounded to microseconds. */
static bool time_says(int64_t t_ns, const char *text)
{
    enum { ROUNDS_NS = 500, DIGITS = 3 };
    struct buf exact = {0}, rounded = {0};
    bool says = false;
    if (strchr(text, '.') && strspn(text, "-.0123456789") == strlen(text)) {
        time_text_put(t_ns, &exact);
        time_text_put(time_add(t_ns, ROUNDS_NS), &rounded);
        if (!exact.failed && !rounded.failed && rounded.len_bytes > DIGITS) {
            rounded.data[rounded.len_bytes - DIGITS] = 0;
            says = strstr(exact.data, text) || strstr(rounded.data, text);
        }
    }
    buf_fini(&exact);
    buf_fini(&rounded);
    return says;
}

/* Looks whether an event says the text, "#7" its number, and puts the first one that does.  err: as put_event */
static int look_at(struct listing *listing, struct table *table, size_t i, const struct stream_event *event,
                   struct error *err)
{
    struct stream *stream = listing->timeline->streams[i].stream;
    size_t index = (size_t)(event - stream->events);
    bool is_number = *listing->text == '#', says;
    int code = 0;
    if (is_number)
        says = strtoull(listing->text + 1, NULL, 10) == index;
    else if (!(says = time_says(event->t_ns, listing->text)))
        code = stream_says(stream, event, STREAM_IN_ALL, listing->text, &says, err);
    if (code != 0 || !says)
        return code;
    bool is_first = !listing->last.is_there;
    listing->last = (struct match){i, index, listing->place, true, is_first};
    return is_first ? put_event(table, listing, i, event, err) : 0;
}

/* Puts the last event that says the text, which may have been let go.  err: as put_event */
static int put_last(struct listing *listing, struct table *table, struct error *err)
{
    const struct match *last = &listing->last;
    size_t place = listing->place, end;
    if (!last->is_there || last->is_put)
        return 0;
    struct stream *stream = listing->timeline->streams[last->stream].stream;
    int code = stream->part ? stream_part_fill(stream, last->index, &end, err) : 0;
    listing->place = last->place;
    code = code ? code : put_event(table, listing, last->stream, &stream->events[last->index], err);
    listing->place = place;
    return code;
}

/* Reads the next event of each recording of which parts are read, and some more.  err: as stream_part_fill */
static int fill_next(struct listing *listing, struct error *err)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < listing->timeline->n_streams; i++) {
        struct walk *walk = &listing->walks[i];
        struct stream *stream = listing->timeline->streams[i].stream;
        if (!stream->part || walk->at < walk->filled || walk->at >= walk->end)
            continue;
        stream_part_rest(stream);
        code = stream_part_fill(stream, walk->at, &walk->filled, err);
    }
    return code;
}

/* Where a time is among the events of a recording's window. */
static size_t place_in(const struct listing *listing, size_t i, int64_t t_ns)
{
    const struct walk *walk = &listing->walks[i];
    size_t at = stream_at(listing->timeline->streams[i].stream, t_ns);
    return at < walk->first ? walk->first : at < walk->end ? at : walk->end;
}

/* How many events of the window are before a time. */
static size_t count_before(const struct listing *listing, int64_t t_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < listing->timeline->n_streams; i++)
        n += place_in(listing, i, t_ns) - listing->walks[i].first;
    return n;
}

/* Goes to the first event that is wanted, or near it, where nothing chooses among them. */
static void skip_to_start(struct listing *listing, int64_t from_ns, int64_t to_ns)
{
    struct walk *walks = listing->walks;
    int64_t low_ns = from_ns, high_ns = to_ns;
    if (listing->seeks)
        listing->start = count_before(listing, listing->at_ns);
    listing->seeks = false;
    if (listing->timeline->n_streams == 1) {
        size_t n = walks->end - walks->first;
        listing->place = listing->start < n ? listing->start : n;
        walks->at = walks->first + listing->place;
        return;
    }
    while (low_ns < high_ns) { /* the last time before which there are no more than start */
        int64_t middle_ns = high_ns - (int64_t)(((uint64_t)high_ns - (uint64_t)low_ns) / 2);
        if (count_before(listing, middle_ns) <= listing->start)
            low_ns = middle_ns;
        else
            high_ns = middle_ns - 1;
    }
    listing->place = count_before(listing, low_ns);
    for (size_t i = 0; i < listing->timeline->n_streams; i++)
        walks[i].at = place_in(listing, i, low_ns);
}

/* Goes through the events of the window that are wanted.  err: as stream_put_info */
static int list_events(struct listing *listing, struct table *table, struct error *err)
{
    size_t i, n_put = 0;
    int code = 0;
    listing->count = listing->count < COUNT_MOST ? listing->count : COUNT_MOST;
    while ((code = code ? code : fill_next(listing, err)) == 0 &&
           (i = next_of(listing)) < listing->timeline->n_streams && !(listing->takes_all && n_put == listing->count)) {
        const struct stream_event *event = &listing->timeline->streams[i].stream->events[listing->walks[i].at++];
        if (!is_wanted(listing, i, event))
            continue;
        if (listing->seeks && event->t_ns >= listing->at_ns) {
            listing->start = listing->place;
            listing->seeks = false;
        }
        if (!listing->seeks && listing->place >= listing->start && n_put < listing->count) {
            code = listing->text ? look_at(listing, table, i, event, err) : put_event(table, listing, i, event, err);
            n_put++;
        }
        listing->place++;
    }
    code = code ? code : put_last(listing, table, err);
    if (listing->takes_all && code == 0) /* as many as there are */
        listing->place = count_before(listing, INT64_MAX);
    if (!listing->text && listing->start + n_put < listing->place)
        table->n_more = listing->place - listing->start - n_put;
    return code;
}

/* Reads what is asked for of recordings: all of one, where many events of it have to be looked at, unless it has too
 * many.  err: as timeline_load */
static int load_listed(struct listing *listing, struct timeline *timeline, int64_t from_ns, int64_t to_ns,
                       struct error *err)
{
    enum { LOADED_MOST = 16000000, LOOKED_MOST = 1 << 18 };
    int code = 0;
    listing->takes_all = !listing->job.tasks && !listing->job.cpus && !listing->job.events;
    for (size_t i = 0; code == 0 && i < timeline->n_streams; i++) {
        const struct time_stream *of = &timeline->streams[i];
        code = timeline_load_part(timeline, i, from_ns, err);
        bool is_part = code == 0 && of->stream->part, is_whole = listing->takes_all || !is_part;
        if (!is_whole && of->n_events <= LOADED_MOST &&
            stream_at(of->stream, to_ns) - stream_at(of->stream, from_ns) > LOOKED_MOST)
            code = timeline_load(timeline, i, err);
        listing->takes_all = listing->takes_all && is_part; /* else some may be hidden */
    }
    return code;
}

int time_make_events(struct timeline *timeline, const struct request *request, struct answer *answer, struct error *err)
{
    struct listing listing = {.timeline = timeline,
                              .job = {.streams = timeline->axis,
                                      .n_streams = timeline->n_streams,
                                      .tasks = request->task,
                                      .cpus = request->cpu,
                                      .events = request->event},
                              .text = request->find && *request->find ? request->find : NULL,
                              .start = request->start,
                              .count = request->count ? request->count : COUNT_USUAL,
                              .seeks = request->has_at,
                              .at_ns = time_add(timeline->begin_ns, request->at_ns)};
    int64_t from_ns, to_ns;
    int code = timeline_window(timeline, request, &from_ns, &to_ns, err);
    code = code ? code : sched_job_check(&listing.job, err);
    code = code ? code : load_listed(&listing, timeline, from_ns, to_ns, err);
    listing.walks = calloc(timeline->n_streams + 1, sizeof *listing.walks);
    if (code == 0 && !listing.walks)
        code = error_memory(err);
    for (size_t i = 0; code == 0 && i < timeline->n_streams; i++) {
        const struct stream *stream = timeline->streams[i].stream;
        struct walk *walk = &listing.walks[i];
        walk->at = walk->first = stream_at(stream, from_ns);
        walk->end = to_ns == INT64_MAX ? stream->n_events : stream_at(stream, to_ns + 1);
    }
    if (code == 0 && listing.takes_all)
        skip_to_start(&listing, from_ns, to_ns);
    answer_begin(answer, "events", COLUMNS(event_columns));
    if (code == 0)
        code = list_events(&listing, &answer->rows, err);
    free(listing.walks);
    struct table *head = answer_set_head(answer, COLUMNS(event_head));
    table_put_count(head, request->has_from ? request->from_ns : 0);
    table_put_count(head, time_add(code ? 0 : to_ns, -timeline->begin_ns));
    table_put_count(head, (int64_t)(listing.seeks ? listing.place : listing.start));
    table_put_count(head, (int64_t)listing.place);
    return code;
}

/* --- a stay --- */

static const struct column stay_columns[] = {
    {"row", NULL, CELL_COUNT},           {"from_ns", NULL, CELL_SPAN},      {"to_ns", NULL, CELL_SPAN},
    {"from", NULL, CELL_TEXT},           {"to", NULL, CELL_TEXT},           {"state", NULL, CELL_TEXT},
    {"task", NULL, CELL_TEXT},           {"task_row", NULL, CELL_COUNT},    {"cpu", NULL, CELL_COUNT},
    {"cpu_row", NULL, CELL_COUNT},       {"ran_ns", NULL, CELL_SPAN},       {"waited_ns", NULL, CELL_SPAN},
    {"waited_from_ns", NULL, CELL_SPAN}, {"waker", NULL, CELL_TEXT},        {"waker_row", NULL, CELL_COUNT},
    {"waker_cpu", NULL, CELL_COUNT},     {"woken_ns", NULL, CELL_SPAN},     {"then", NULL, CELL_TEXT},
    {"before", NULL, CELL_TEXT},         {"before_row", NULL, CELL_COUNT},  {"next", NULL, CELL_TEXT},
    {"next_row", NULL, CELL_COUNT},      {"before_state", NULL, CELL_TEXT},
};

/* What a row did at a time, on the clock of its levels: a stay, or what lies between two of them. */
static struct level_stay stay_at(const struct levels *levels, size_t row, int64_t t_ns)
{
    const struct level_track track = levels_track(levels, row);
    size_t i = level_stay_at(&track, t_ns);
    if (i < track.n && track.stays[i].from_ns <= t_ns)
        return track.stays[i];
    const struct level_stay *last = i > 0 ? &track.stays[i - 1] : NULL;
    return (struct level_stay){.from_ns = last ? last->to_ns : levels->begin_ns,
                               .to_ns = i < track.n ? track.stays[i].from_ns : levels->end_ns,
                               .key = LEVEL_NO_KEY,
                               .part = LEVEL_PARTS,
                               .state = last && last->part == LEVEL_RUNNING ? last->state : SCHEDULE_UNKNOWN};
}

/* The stay of a row that ends, or begins, exactly then; part LEVEL_PARTS: there is none. */
static struct level_stay stay_beside(const struct levels *levels, size_t row, int64_t t_ns, bool ends)
{
    struct level_stay found = {.part = LEVEL_PARTS};
    if (row != SIZE_MAX)
        found = stay_at(levels, row, ends ? t_ns - 1 : t_ns);
    if ((ends ? found.to_ns : found.from_ns) != t_ns)
        found.part = LEVEL_PARTS;
    return found;
}

/* Who ran beside a task on its CPU: the stay that ends, or begins, when its own one begins, or ends. Where the CPU does
 * not say, because not all tasks were recorded, the switch may name a task of which nothing more is known. */
static struct level_stay neighbour(const struct time_stream *of, size_t cpu_row, int32_t task, int64_t t_ns, bool ends)
{
    struct level_stay found = stay_beside(&of->levels, cpu_row, t_ns, ends);
    int64_t axis_ns = time_add(t_ns, of->stream->offset_ns);
    struct schedule_source source;
    if (found.part == LEVEL_RUNNING || task == LEVEL_NO_KEY)
        return found;
    schedule_source_init(&source, of->stream);
    int32_t other = ends ? schedule_previous_of(&source, task, axis_ns) : schedule_next_of(&source, task, axis_ns);
    if (other != SCHEDULE_NOBODY)
        found = (struct level_stay){.from_ns = t_ns, .to_ns = t_ns, .key = other, .part = LEVEL_RUNNING};
    return found;
}

/* The name at a time, and the row, of who ran on a CPU before, or then; the idle task has a name alone. */
static void put_neighbour(struct table *table, const struct time_stream *of, const struct level_stay *stay,
                          int64_t t_ns, bool is_idle)
{
    bool is_task = stay->part == LEVEL_RUNNING && stay->key != 0;
    is_idle |= stay->part == LEVEL_RUNNING && stay->key == 0;
    if (is_task)
        put_task_name(table, of->stream, stay->key, time_add(t_ns, of->stream->offset_ns));
    else
        table_put_text(table, is_idle ? "<idle>" : NULL);
    if (is_task)
        put_row_of(table, of, LEVEL_TASK, stay->key);
    else
        table_put_absent(table);
}

/* What became of who ran before. */
static void put_before_state(struct table *table, const struct levels *levels, const struct level_stay *before)
{
    bool is_task = before->part == LEVEL_RUNNING && before->key != 0;
    size_t row = is_task ? levels_find(levels, LEVEL_TASK, before->key) : SIZE_MAX;
    struct level_stay own = stay_beside(levels, row, before->to_ns, true);
    bool is_known = own.part == LEVEL_RUNNING && own.state;
    table_put_borrowed(table, is_known ? schedule_state_name(own.state) : NULL);
}

static const char *state_of(const struct level_row *row, const struct level_stay *stay)
{
    switch (stay->part) {
    case LEVEL_RUNNING:
        return "running";
    case LEVEL_WOKEN:
        return schedule_state_name(SCHEDULE_WOKEN);
    case LEVEL_PREEMPTED:
        return schedule_state_name(SCHEDULE_PREEMPTED);
    case LEVEL_UNKNOWN:
        return schedule_state_name(SCHEDULE_UNKNOWN);
    default:
        return row->kind == LEVEL_CPU ? "idle" : stay->state ? schedule_state_name(stay->state) : "off CPU";
    }
}

/* What a task did before it ran: how long it waited, and who woke it. */
static void put_wait(struct table *table, const struct timeline *timeline, const struct time_stream *of,
                     const struct level_stay *wait, int32_t task)
{
    bool has_waited = wait->part == LEVEL_WOKEN || wait->part == LEVEL_PREEMPTED;
    int64_t from_ns = time_add(wait->from_ns, of->stream->offset_ns);
    struct schedule_source source;
    schedule_source_init(&source, of->stream);
    const struct stream_event *waking = wait->part == LEVEL_WOKEN ? schedule_waking_of(&source, task, from_ns) : NULL;
    bool is_known = waking && waking->task != STREAM_NO_TASK;
    table_put_if(table, has_waited, wait->to_ns - wait->from_ns);
    table_put_if(table, has_waited, time_add(from_ns, -timeline->begin_ns));
    if (is_known)
        put_task_name(table, of->stream, waking->task, from_ns);
    else
        table_put_absent(table);
    if (is_known)
        put_row_of(table, of, LEVEL_TASK, waking->task);
    else
        table_put_absent(table);
    table_put_if(table, waking && waking->cpu != STREAM_NO_CPU, waking ? waking->cpu : 0);
    table_put_if(table, waking, time_add(from_ns, -timeline->begin_ns));
}

int time_make_stay(struct timeline *timeline, const struct request *request, struct answer *answer, struct error *err)
{
    struct time_row at;
    if (!request->has_at)
        return error_set(err, ERR_USAGE, "stay takes a row and the time at which it is");
    int code = timeline_row(timeline, request->row, &at, err);
    if (code == 0)
        code = timeline_load_part(timeline, at.stream, time_add(timeline->begin_ns, request->at_ns), err);
    if (code != 0)
        return code;
    const struct levels *levels = &at.of->levels;
    const struct level_row *row = &levels->rows[at.row];
    struct level_stay stay =
        stay_at(levels, at.row, time_of_levels(at.of, time_add(timeline->begin_ns, request->at_ns)));
    bool is_run = stay.part == LEVEL_RUNNING, is_cpu = row->kind == LEVEL_CPU;
    int32_t task = is_cpu ? stay.key : row->number, cpu = is_cpu ? row->number : stay.key;
    size_t task_row = task == LEVEL_NO_KEY ? SIZE_MAX : levels_find(levels, LEVEL_TASK, task);
    size_t cpu_row = cpu == LEVEL_NO_KEY ? SIZE_MAX : levels_find(levels, LEVEL_CPU, cpu);
    struct level_stay own = is_run ? stay_beside(levels, task_row, stay.from_ns, false) : stay;
    struct level_stay wait = is_run ? stay_beside(levels, task_row, stay.from_ns, true) : stay;
    bool has_next = is_run || stay.part == LEVEL_PREEMPTED; /* of a task that was displaced: by whom */
    struct level_stay before = {.part = LEVEL_PARTS}, next = before;
    if (is_run)
        before = neighbour(at.of, cpu_row, task, stay.from_ns, true);
    if (has_next)
        next = neighbour(at.of, cpu_row, task, is_run ? stay.to_ns : stay.from_ns, false);
    int64_t offset_ns = at.of->stream->offset_ns;
    struct buf from = {0}, to = {0};
    answer_begin(answer, "stay", COLUMNS(stay_columns));
    struct table *table = &answer->rows;
    table_put_count(table, (int64_t)request->row);
    put_time(table, timeline, time_add(stay.from_ns, offset_ns));
    put_time(table, timeline, time_add(stay.to_ns, offset_ns));
    time_text_put(time_add(stay.from_ns, offset_ns), &from);
    time_text_put(time_add(stay.to_ns, offset_ns), &to);
    table_put_made(table, &from);
    table_put_made(table, &to);
    table_put_borrowed(table, state_of(row, &stay));
    if (task_row == SIZE_MAX)
        table_put_absents(table, 2);
    else {
        put_task_name(table, at.of->stream, task, time_add(stay.from_ns, offset_ns));
        table_put_count(table, (int64_t)(at.of->first_row + task_row));
    }
    table_put_if(table, cpu_row != SIZE_MAX, cpu);
    table_put_if(table, cpu_row != SIZE_MAX, (int64_t)(at.of->first_row + cpu_row));
    table_put_if(table, is_run, stay.to_ns - stay.from_ns);
    put_wait(table, timeline, at.of, &wait, task);
    table_put_borrowed(table, is_run && own.part == LEVEL_RUNNING && own.state ? schedule_state_name(own.state) : NULL);
    put_neighbour(table, at.of, &before, before.to_ns,
                  is_run && before.part == LEVEL_PARTS && stay.from_ns > levels->begin_ns);
    put_neighbour(table, at.of, &next, next.from_ns,
                  has_next && next.part == LEVEL_PARTS && stay.to_ns < levels->end_ns);
    put_before_state(table, levels, &before);
    return 0;
}
