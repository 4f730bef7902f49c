/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.db: when each traced thread was in which context. The lengths are known before, so that every trace has its
 * place and any thread may write it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scratch.h"
#include "export/v4-export.h"

enum { EVENT_BYTES = 12, ROW_BYTES = 24, TABLE_AT = 64 };

struct traces {
    const struct model *model;
    const struct value_source *source;
    const char *path;
    int fd;
    uint32_t *threads; /* [n] that have a trace */
    uint64_t *places;  /* [n + 1] */
    uint32_t n;
    uint64_t min_time_ns, max_time_ns;
    struct trace_info *infos; /* [n_threads] of all members of a team */
};

/* A trace on its way into the file. */
struct writing {
    const struct traces *traces;
    uint64_t offset;
    struct trace_event *all; /* [n_all] kept to be sorted; NULL: written as they come */
    size_t n_all, cap_all;
    bool keeps;
};

static struct trace_info own_info(const struct traces *traces, uint32_t t)
{
    return traces->source->trace(traces->source->self, traces->model->threads[t].profile);
}

/* What is known of all traces; in a team each member has some of them. */
static int gather_infos(struct traces *traces, const struct team *team, struct error *err)
{
    uint32_t n = (uint32_t)traces->model->n_threads;
    int64_t *numbers = calloc(4 * (size_t)n + 1, sizeof *numbers);
    traces->infos = calloc((size_t)n + 1, sizeof *traces->infos);
    int code = numbers && traces->infos ? 0 : error_set(err, ERR_MEMORY, "out of memory");
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
    struct writing *writing = context;
    if (writing->keeps) {
        if (!vec_reserve(&writing->all, &writing->cap_all, writing->n_all + n, sizeof *writing->all))
            return error_set(err, ERR_MEMORY, "out of memory for a trace");
        memcpy(writing->all + writing->n_all, events, n * sizeof *events);
        writing->n_all += n;
        return 0;
    }
    int code = write_events(writing->traces, writing->offset, events, n, err);
    writing->offset += EVENT_BYTES * n;
    return code;
}

static int compare_events(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->scope < y->scope ? -1 : x->scope > y->scope;
}

static int write_trace(void *context, struct workers *workers, size_t worker, size_t i, struct error *err)
{
    (void)workers;
    (void)worker;
    const struct traces *traces = context;
    uint32_t t = traces->threads[i];
    struct trace_info info = own_info(traces, t);
    if (info.n_events == 0) /* another member of the team has it */
        return 0;
    struct writing writing = {.traces = traces, .offset = traces->places[i], .keeps = info.is_disordered};
    size_t profile = traces->model->threads[t].profile;
    int code = traces->source->visit_trace(traces->source->self, profile, take, &writing, err);
    if (code == 0 && writing.n_all) {
        qsort(writing.all, writing.n_all, sizeof *writing.all, compare_events);
        code = write_events(traces, writing.offset, writing.all, writing.n_all, err);
    }
    free(writing.all);
    return code;
}

/* Lists the threads with traces and gives each its place. */
static bool list_traces(struct traces *traces)
{
    const struct model *model = traces->model;
    traces->threads = calloc(model->n_threads + 1, sizeof *traces->threads);
    traces->places = calloc(model->n_threads + 2, sizeof *traces->places);
    if (!traces->threads || !traces->places)
        return false;
    for (uint32_t t = 0; t < model->n_threads; t++) {
        struct trace_info info = traces->infos[t];
        if (info.n_events == 0)
            continue;
        if (traces->n == 0 || info.min_time_ns < traces->min_time_ns)
            traces->min_time_ns = info.min_time_ns;
        if (info.max_time_ns > traces->max_time_ns)
            traces->max_time_ns = info.max_time_ns;
        traces->places[traces->n + 1] = info.n_events; /* for now */
        traces->threads[traces->n++] = t;
    }
    traces->places[0] = TABLE_AT + (uint64_t)ROW_BYTES * traces->n;
    for (uint32_t i = 0; i < traces->n; i++)
        traces->places[i + 1] = traces->places[i] + (EVENT_BYTES * traces->places[i + 1] + 7) / 8 * 8;
    return true;
}

/* Header, table and mark. */
static int write_frame(const struct traces *traces, struct error *err)
{
    struct v4_file file = {.kind = V4_TRACE,
                           .n_traces = traces->n,
                           .min_time_ns = traces->min_time_ns,
                           .max_time_ns = traces->max_time_ns};
    struct buf head = {0};
    file.traces = calloc(traces->n + 1, sizeof *file.traces);
    int code = file.traces ? v4_write(&file, &head, err) : error_set(err, ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; code == 0 && i < traces->n; i++) {
        char *row = head.data + TABLE_AT + (size_t)ROW_BYTES * i;
        uint32_t profile = traces->threads[i] + 1;
        struct trace_info info = traces->infos[traces->threads[i]];
        uint64_t end = traces->places[i] + EVENT_BYTES * info.n_events;
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

/* is_new: to be created. */
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
    if (code == 0 && (asprintf(&path, "%s/%s", directory, v4_file_name(V4_TRACE)) < 0 || !list_traces(&traces)))
        code = error_set(err, ERR_MEMORY, "out of memory");
    traces.path = path;
    code = team_agree(job->team, code, err);
    if (code == 0 && traces.n > 0)
        code = write_file(&traces, job, err);
    free(path);
    free(traces.infos);
    free(traces.threads);
    free(traces.places);
    return code;
}
