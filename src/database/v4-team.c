/* SPDX-License-Identifier: BSD-3-Clause */
/* The values and traces of a version 4 database written by a team: see v4.h. The length of each part is computed before
 * what follows it is written, so the bytes are those that one process would write. */
#include "database/v4.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scratch.h"

enum { VALUE_BYTES = 10, INDEX_BYTES = 12, CELL_BYTES = 12, METRIC_BYTES = 10 };

#define NO_PLACE UINT64_MAX

static uint64_t round_up(uint64_t n_bytes)
{
    return (n_bytes + 7) / 8 * 8;
}

/* Shares the sizes of all profiles, from the members that have written them. */
static int share_sizes(struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    size_t n = values->model->n_threads + 1;
    int64_t *sizes = calloc(2 * n, sizeof *sizes);
    int code = team_agree(team, sizes ? 0 : error_memory(err), err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        sizes[2 * i] = (int64_t)values->places[i].n_values;
        sizes[2 * i + 1] = values->places[i].n_indices;
    }
    if (code == 0)
        team->combine(team, sizes, 2 * n, TEAM_SUM);
    for (size_t i = 0; code == 0 && i < n; i++) {
        values->places[i].n_values = (uint64_t)sizes[2 * i];
        values->places[i].n_indices = (uint32_t)sizes[2 * i + 1];
    }
    free(sizes);
    return code;
}

static size_t owner_of(const struct v4_values *values, size_t t)
{
    return team_owner(values->job->team, values->model->threads[t].profile);
}

int v4_baton_init(struct v4_baton *baton, struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    size_t n = values->model->n_threads;
    *baton = (struct v4_baton){.values = values, .mine = calloc(n + 1, sizeof *baton->mine)};
    for (size_t t = 0; baton->mine && t < n; t++)
        if (owner_of(values, t) == team->rank)
            baton->mine[baton->n_mine++] = t;
    int64_t start = (int64_t)values->profile_end; /* only the leader knows it; the others have 0 */
    team->combine(team, &start, 1, TEAM_SUM);
    values->profile_end = baton->end = (uint64_t)start;
    return team_agree(team, baton->mine ? 0 : error_memory(err), err);
}

void v4_baton_fini(struct v4_baton *baton)
{
    free(baton->mine);
}

/* Where thread t's profile begins; NO_PLACE when that will not be known. */
static uint64_t receive_place(const struct v4_baton *baton, size_t t)
{
    const struct team *team = baton->values->job->team;
    uint64_t place = baton->end;
    if (t == 0 || owner_of(baton->values, t - 1) == team->rank)
        return place;
    struct buf message = {0};
    team->receive(team, owner_of(baton->values, t - 1), &message);
    memcpy(&place, message.data, sizeof place);
    buf_fini(&message);
    return place;
}

static void send_place(struct v4_baton *baton, size_t t, uint64_t place)
{
    const struct team *team = baton->values->job->team;
    baton->end = place;
    baton->n_done++;
    if (t + 1 < baton->values->model->n_threads && owner_of(baton->values, t + 1) != team->rank)
        team->send(team, owner_of(baton->values, t + 1), &place, sizeof place);
}

int v4_baton_take(struct v4_baton *baton, size_t len_bytes, uint64_t *place, struct error *err)
{
    size_t t = baton->mine[baton->n_done];
    *place = receive_place(baton, t);
    send_place(baton, t, *place == NO_PLACE ? NO_PLACE : *place + len_bytes);
    return *place == NO_PLACE ? error_set(err, ERR_USAGE, TEAM_ENDED) : 0;
}

void v4_baton_drop(struct v4_baton *baton)
{
    while (baton->n_done < baton->n_mine) {
        size_t t = baton->mine[baton->n_done];
        (void)receive_place(baton, t);
        send_place(baton, t, NO_PLACE);
    }
}

static void place_profiles(struct v4_values *values)
{
    for (size_t i = 1; i <= values->model->n_threads; i++) {
        struct v4_place *place = &values->places[i];
        place->values = values->profile_end;
        place->indices = place->values + round_up(VALUE_BYTES * place->n_values);
        values->profile_end = place->indices + round_up((uint64_t)INDEX_BYTES * place->n_indices);
    }
}

int v4_team_profiles(struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    int code = share_sizes(values, err);
    if (code != 0)
        return code;
    struct v4_layout *layout = &values->layout;
    team->combine(team, (int64_t *)(void *)values->n_values, values->n_contexts, TEAM_SUM);
    team->combine(team, (int64_t *)(void *)layout->present, values->n_contexts * layout->n_words, TEAM_OR);
    place_profiles(values);
    return 0;
}

static bool is_present(const uint64_t *present, uint32_t id)
{
    return present[id / 64] >> id % 64 & 1;
}

/* How many values of V4_ID_LEXICAL a context has in the sum over all profiles, but in none of these. */
static uint64_t n_only_summed(const uint64_t *present, uint32_t n_ids)
{
    uint64_t n = 0;
    for (uint32_t id = 0; id < n_ids; id += V4_IDS_PER_METRIC)
        n += !is_present(present, id + V4_ID_LEXICAL) && is_present(present, id + V4_ID_FUNCTION);
    return n;
}

struct v4_lengths v4_team_lengths(const struct v4_values *values, uint32_t first, uint32_t end)
{
    const struct v4_layout *layout = &values->layout;
    struct v4_lengths lengths = {0};
    for (uint32_t c = first; c < end; c++) {
        const uint64_t *present = &layout->present[c * layout->n_words];
        uint64_t n_metrics = 0;
        if (values->n_values[c] == 0)
            continue;
        for (size_t w = 0; w < layout->n_words; w++)
            n_metrics += (uint64_t)__builtin_popcountll(present[w]);
        lengths.n_bytes += round_up(CELL_BYTES * values->n_values[c]) + round_up(METRIC_BYTES * n_metrics);
        lengths.n_summary += n_metrics + n_only_summed(present, values->n_ids);
        lengths.n_contexts++;
    }
    return lengths;
}

void v4_team_divide(struct v4_values *values)
{
    const struct team *team = values->job->team;
    uint64_t n_all = 0, n = 0;
    values->layout.first = 0;
    values->layout.end = values->n_contexts;
    if (!team_is_several(team))
        return;
    values->layout.end = 0;
    for (uint32_t c = 0; c < values->n_contexts; c++)
        n_all += values->n_values[c] + 1;
    for (uint32_t c = 0; c < values->n_contexts; c++) {
        size_t rank = (size_t)((double)n / (double)n_all * (double)team->n_ranks);
        n += values->n_values[c] + 1;
        if (rank < team->rank)
            values->layout.first = c + 1;
        if (rank <= team->rank)
            values->layout.end = c + 1;
    }
}

/* Takes the own values of the contexts that v4_team_divide gave to member rank. */
static int take_own(struct v4_values *values, size_t rank, struct error *err)
{
    const struct team *team = values->job->team;
    struct model *model = values->model;
    struct buf message = {0};
    uint32_t first = 0;
    team->receive(team, rank, &message);
    if (message.failed || message.len_bytes < 4)
        return error_set(err, ERR_MEMORY, "out of memory for the sums of another process");
    memcpy(&first, message.data, 4);
    memcpy(model->own + first * model->n_metrics, message.data + 4, message.len_bytes - 4);
    buf_fini(&message);
    return 0;
}

int v4_team_own(struct v4_values *values, struct error *err)
{
    const struct team *team = values->job->team;
    const struct model *model = values->model;
    int code = 0;
    if (team_leads(team)) {
        for (size_t rank = 1; rank < team->n_ranks; rank++) {
            int failed = take_own(values, rank, err);
            code = code ? code : failed;
        }
        return team_agree(team, code, err);
    }
    struct buf message = {0};
    uint32_t first = values->layout.first, end = values->layout.end;
    if (end > model->n_scopes)
        end = (uint32_t)model->n_scopes;
    buf_append(&message, &first, 4);
    if (first < end)
        buf_append(&message, model->own + first * model->n_metrics,
                   (size_t)(end - first) * model->n_metrics * sizeof(double));
    team->send(team, 0, message.data, message.failed ? 0 : message.len_bytes);
    buf_fini(&message);
    return team_agree(team, 0, err);
}

/* --- trace.db --- */

/* trace.db: in which context each traced thread was at which time. The lengths are known in advance, so every trace has
 * its place and any thread may write it. */

enum { EVENT_BYTES = 12, ROW_BYTES = 24, TABLE_AT = 64 };

struct traces {
    const struct model *model;
    const struct value_source *source;
    const char *path;
    int fd;
    uint64_t *places; /* [n + 1] */
    uint32_t n;       /* all threads, or 0 when none has a trace */
    uint64_t min_time_ns, max_time_ns;
    struct trace_info *infos; /* [n_threads] of all members of a team */
};

/* Where the next events of a trace belong. */
struct place_in_file {
    const struct traces *traces;
    uint64_t offset;
};

static struct trace_info own_info(const struct traces *traces, uint32_t t)
{
    return traces->source->trace(traces->source->self, traces->model->threads[t].profile);
}

/* Gathers what is known about all traces; in a team each member has some of them. */
static int gather_infos(struct traces *traces, const struct team *team, struct error *err)
{
    uint32_t n = (uint32_t)traces->model->n_threads;
    int64_t *numbers = calloc(4 * (size_t)n + 1, sizeof *numbers);
    traces->infos = calloc((size_t)n + 1, sizeof *traces->infos);
    int code = numbers && traces->infos ? 0 : error_memory(err);
    code = team_agree(team, code, err);
    for (uint32_t t = 0; code == 0 && t < n; t++) {
        struct trace_info info = own_info(traces, t);
        if (info.n_events == 0)
            continue;
        numbers[4 * t] = (int64_t)info.n_events;
        numbers[4 * t + 1] = (int64_t)info.min_time_ns;
        numbers[4 * t + 2] = (int64_t)info.max_time_ns;
        numbers[4 * t + 3] = info.is_disordered;
    }
    if (code == 0 && team_is_several(team))
        team->combine(team, numbers, 4 * (size_t)n, TEAM_SUM);
    for (uint32_t t = 0; code == 0 && t < n; t++)
        traces->infos[t] = (struct trace_info){(uint64_t)numbers[4 * t], (uint64_t)numbers[4 * t + 1],
                                               (uint64_t)numbers[4 * t + 2], numbers[4 * t + 3] != 0};
    free(numbers);
    return code;
}

static int write_events(const struct traces *traces, uint64_t offset, const struct trace_event *events, size_t n,
                        struct error *err)
{
    char *bytes = malloc(n * EVENT_BYTES + 1);
    if (!bytes)
        return error_set(err, ERR_MEMORY, "out of memory for a trace");
    for (size_t i = 0; i < n; i++) {
        memcpy(bytes + EVENT_BYTES * i, &events[i].time_ns, 8);
        memcpy(bytes + EVENT_BYTES * i + 8, &events[i].scope, 4);
    }
    int code = spill_write_at(traces->fd, traces->path, offset, bytes, n * EVENT_BYTES, err);
    free(bytes);
    return code;
}

static int take(void *context, const struct trace_event *events, size_t n, struct error *err)
{
    struct place_in_file *place = context;
    int code = write_events(place->traces, place->offset, events, n, err);
    place->offset += EVENT_BYTES * n;
    return code;
}

static int write_trace(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    (void)workers;
    (void)worker;
    const struct traces *traces = context;
    struct trace_info info = own_info(traces, (uint32_t)i);
    if (info.n_events == 0) /* it is empty, or another member of the team has it */
        return 0;
    struct place_in_file place = {traces, traces->places[i]};
    return trace_visit_in_order(traces->source, traces->model->threads[i].profile, take, &place, err);
}

/* Gives each thread's trace its place. hpcviewer takes the n-th trace for that of the n-th thread, so that those of
 * threads without events are there as well, and empty. */
static bool place_traces(struct traces *traces)
{
    uint32_t n = (uint32_t)traces->model->n_threads;
    traces->places = calloc((size_t)n + 2, sizeof *traces->places);
    if (!traces->places)
        return false;
    for (uint32_t t = 0; t < n; t++) {
        struct trace_info info = traces->infos[t];
        if (info.n_events == 0)
            continue;
        if (traces->n == 0 || info.min_time_ns < traces->min_time_ns)
            traces->min_time_ns = info.min_time_ns;
        if (info.max_time_ns > traces->max_time_ns)
            traces->max_time_ns = info.max_time_ns;
        traces->n = n;
    }
    traces->places[0] = TABLE_AT + (uint64_t)ROW_BYTES * traces->n;
    for (uint32_t t = 0; t < traces->n; t++)
        traces->places[t + 1] = traces->places[t] + (EVENT_BYTES * traces->infos[t].n_events + 7) / 8 * 8;
    return true;
}

/* Writes the header, the table and the mark at the end. */
static int write_frame(const struct traces *traces, struct error *err)
{
    struct v4_file file = {.kind = V4_TRACE,
                           .n_traces = traces->n,
                           .min_time_ns = traces->min_time_ns,
                           .max_time_ns = traces->max_time_ns};
    struct buf head = {0};
    file.traces = calloc(traces->n + 1, sizeof *file.traces);
    int code = file.traces ? v4_write(&file, &head, err) : error_memory(err);
    for (uint32_t i = 0; code == 0 && i < traces->n; i++) {
        char *row = head.data + TABLE_AT + (size_t)ROW_BYTES * i;
        uint32_t profile = i + 1;
        uint64_t end = traces->places[i] + EVENT_BYTES * traces->infos[i].n_events;
        memcpy(row, &profile, 4);
        memcpy(row + 8, &traces->places[i], 8);
        memcpy(row + 16, &end, 8);
    }
    if (code == 0)
        code = spill_write_at(traces->fd, traces->path, 0, head.data, traces->places[0], err);
    if (code == 0)
        code = spill_write_at(traces->fd, traces->path, traces->places[traces->n], "trace.db", 8, err);
    free(file.traces);
    buf_fini(&head);
    return code;
}

static int write_all(struct traces *traces, const struct job *job, struct error *err)
{
    struct workers workers = {
        .job = job, .phase = "writing traces", .n_tasks = traces->n, .task = write_trace, .context = traces};
    int code = workers_run(&workers, err);
    return code || !team_leads(job->team) ? code : write_frame(traces, err);
}

/* is_new: creates it. */
static int open_file(struct traces *traces, bool is_new, struct error *err)
{
    traces->fd = open(traces->path, is_new ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0644);
    return traces->fd >= 0 ? 0
                           : error_set(err, ERR_IO, "%.600s: cannot %s: %s", traces->path, is_new ? "create" : "open",
                                       strerror(errno));
}

static int write_file(struct traces *traces, const struct job *job, struct error *err)
{
    int code = team_agree(job->team, team_leads(job->team) ? open_file(traces, true, err) : 0, err);
    if (code == 0 && !team_leads(job->team))
        code = open_file(traces, false, err);
    if (code == 0)
        code = write_all(traces, job, err);
    if (traces->fd >= 0 && close(traces->fd) != 0 && code == 0)
        code = error_set(err, ERR_IO, "%.600s: cannot write: %s", traces->path, strerror(errno));
    return team_agree(job->team, code, err);
}

int v4_export_traces(const struct model *model, const struct value_source *source, const struct job *job,
                     const char *directory, struct error *err)
{
    struct traces traces = {.model = model, .source = source, .fd = -1};
    char *path = NULL;
    int code = gather_infos(&traces, job->team, err);
    if (code == 0 && (asprintf(&path, "%s/%s", directory, v4_file_name(V4_TRACE)) < 0 || !place_traces(&traces)))
        code = error_memory(err);
    traces.path = path;
    code = team_agree(job->team, code, err);
    if (code == 0 && traces.n > 0)
        code = write_file(&traces, job, err);
    free(path);
    free(traces.infos);
    free(traces.places);
    return code;
}
