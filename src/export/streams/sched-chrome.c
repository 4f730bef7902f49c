/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams as trace events, for Perfetto and chrome://tracing: for each stream a process with a track for each CPU, and
 * one with a track for each task. Source: "Trace Event Format",
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: complete and instant events,
 * metadata. */
#include "export/streams/sched-report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fmt/json.h"
#include "streams/couplebreak.h"

struct writing {
    const struct sched_job *job;
    size_t stream;
    bool has_event;
    struct buf *out;
};

/* The processes of a stream: of its CPUs, and of its tasks. */
static size_t cpus_pid(size_t stream)
{
    return 2 * stream + 1;
}

static size_t tasks_pid(size_t stream)
{
    return 2 * stream + 2;
}

static void begin_event(struct writing *writing, const char *kind, size_t pid, int64_t tid)
{
    buf_printf(writing->out, "%s\n{\"ph\": \"%s\", \"pid\": %zu, \"tid\": %" PRId64, writing->has_event ? "," : "",
               kind, pid, tid);
    writing->has_event = true;
}

/* Nanoseconds as microseconds. */
static void put_time(struct buf *out, const char *key, int64_t ns)
{
    uint64_t size_ns = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    buf_printf(out, ", \"%s\": %s%" PRIu64 ".%03u", key, ns < 0 ? "-" : "", size_ns / 1000, (unsigned)(size_ns % 1000));
}

static void put_metadata(struct writing *writing, const char *what, size_t pid, int64_t tid, const char *name)
{
    begin_event(writing, "M", pid, tid);
    buf_printf(writing->out, ", \"name\": \"%s\", \"args\": {\"name\": ", what);
    json_put_text(writing->out, name);
    buf_printf(writing->out, "}}");
}

static void put_sort_index(struct writing *writing, const char *what, size_t pid, int64_t tid, size_t index)
{
    begin_event(writing, "M", pid, tid);
    buf_printf(writing->out, ", \"name\": \"%s\", \"args\": {\"sort_index\": %zu}}", what, index);
}

/* --- tracks --- */

static void put_process(struct writing *writing, const char *what, size_t pid)
{
    const struct stream *stream = writing->job->streams[writing->stream].stream;
    struct buf name = {0};
    buf_printf(&name, "%s of %s", what, stream->host ? stream->host : stream->path);
    put_metadata(writing, "process_name", pid, 0, name.data ? name.data : what);
    put_sort_index(writing, "process_sort_index", pid, 0, pid);
    writing->out->failed |= name.failed;
    buf_fini(&name);
}

static int put_tracks(struct writing *writing, const struct schedule *sched, struct error *err)
{
    const struct stream *stream = writing->job->streams[writing->stream].stream;
    uint32_t *cpus = NULL;
    size_t n = 0;
    char label[32];
    int code = sched_cpu_rows(writing->job, writing->stream, sched, &cpus, &n, err);
    put_process(writing, "CPUs", cpus_pid(writing->stream));
    for (size_t i = 0; !code && i < n; i++) {
        (void)snprintf(label, sizeof label, "CPU %" PRIu32, cpus[i]);
        put_metadata(writing, "thread_name", cpus_pid(writing->stream), cpus[i], label);
        put_sort_index(writing, "thread_sort_index", cpus_pid(writing->stream), cpus[i], i);
    }
    free(cpus);
    put_process(writing, "Tasks", tasks_pid(writing->stream));
    for (size_t i = 0; !code && i < stream->n_tasks; i++) {
        const struct stream_task *task = &stream->tasks[i];
        struct buf name = {0};
        bool has_track = schedule_task_of(sched, task->task) || (task->n_events && task->task != 0);
        if (!has_track || !sched_wants_task(writing->job, stream, task->task))
            continue;
        stream_put_comms(stream, task->task, &name);
        put_metadata(writing, "thread_name", tasks_pid(writing->stream), task->task, name.data ? name.data : "");
        writing->out->failed |= name.failed;
        buf_fini(&name);
    }
    return code;
}

/* --- events --- */

static void take_piece(void *context, const struct schedule_piece *piece)
{
    struct writing *writing = context;
    const struct stream *stream = writing->job->streams[writing->stream].stream;
    struct buf name = {0};
    if (piece->task == 0 || !sched_wants_task(writing->job, stream, piece->task))
        return;
    bool has_cpu = piece->cpu != STREAM_NO_CPU;
    if (piece->state == SCHEDULE_RUNNING && has_cpu && sched_wants_cpu(writing->job, piece->cpu)) {
        begin_event(writing, "X", cpus_pid(writing->stream), piece->cpu);
        buf_printf(writing->out, ", \"cat\": \"sched\", \"name\": ");
        buf_printf(&name, "%s:%" PRId32, stream_comm_at(stream, piece->task, piece->to_ns), piece->task);
        json_put_text(writing->out, name.data ? name.data : "");
        put_time(writing->out, "ts", piece->from_ns);
        put_time(writing->out, "dur", piece->to_ns - piece->from_ns);
        buf_printf(writing->out, ", \"args\": {\"tid\": %" PRId32 "}}", piece->task);
    }
    begin_event(writing, "X", tasks_pid(writing->stream), piece->task);
    buf_printf(writing->out, ", \"cat\": \"sched\", \"name\": \"%s\"", schedule_state_name(piece->state));
    put_time(writing->out, "ts", piece->from_ns);
    put_time(writing->out, "dur", piece->to_ns - piece->from_ns);
    if (has_cpu)
        buf_printf(writing->out, ", \"args\": {\"cpu\": %u}", piece->cpu);
    buf_append(writing->out, "}", 1);
    writing->out->failed |= name.failed;
    buf_fini(&name);
}

/* Events that are no stretches of time: of scheduling only those that are asked for. */
static bool is_instant(const struct sched_job *job, const struct stream *stream, const struct stream_event *event)
{
    const char *name = stream_event_name(stream, event);
    if (!(event->visible & STREAM_VISIBLE_EVENT) || event->t_ns < job->window.from_ns ||
        event->t_ns > job->window.to_ns || !sched_wants_cpu(job, event->cpu) ||
        (job->tasks && !sched_wants_task(job, stream, event->task)))
        return false;
    return job->events ? sched_wants_event(job, name)
                       : strncmp(name, "sched/", 6) != 0 && !couplebreak_is_twin(event->id);
}

/* A colour of chrome://tracing for a name; Perfetto has its own by name. */
static const char *color_of(const char *name)
{
    static const char *const colors[] = {"thread_state_running",
                                         "thread_state_runnable",
                                         "thread_state_iowait",
                                         "rail_response",
                                         "rail_animation",
                                         "rail_idle",
                                         "rail_load",
                                         "startup",
                                         "heap_dump_stack_frame",
                                         "cq_build_running",
                                         "good",
                                         "bad",
                                         "terrible",
                                         "yellow",
                                         "olive"};
    uint64_t hash = bytes_hash(BYTES_HASH_START, name, strlen(name));
    return colors[hash % (sizeof colors / sizeof *colors)];
}

/* An event on a track; variable NULL: it is no sample. */
static void put_instant(struct writing *writing, const struct stream_event *event, const char *info,
                        const char *variable, size_t pid, int64_t tid)
{
    const char *name = stream_event_name(writing->job->streams[writing->stream].stream, event);
    begin_event(writing, "i", pid, tid);
    buf_printf(writing->out, ", \"s\": \"t\", \"cat\": \"%s\", \"name\": ", variable ? "sample" : "event");
    json_put_text(writing->out, variable ? variable : name);
    put_time(writing->out, "ts", event->t_ns);
    if (variable)
        buf_printf(writing->out, ", \"cname\": \"%s\"", color_of(variable));
    buf_printf(writing->out, ", \"args\": {\"tid\": %" PRId32 ", \"event\": ", event->task);
    json_put_text(writing->out, name);
    if (event->cpu != STREAM_NO_CPU)
        buf_printf(writing->out, ", \"cpu\": %u", event->cpu);
    json_put_text_at(writing->out, "info", info);
    buf_printf(writing->out, "}}");
}

/* Events on the tracks of their CPUs; samples, and what does not say where it was, on those of their tasks as well. */
static int put_instants(struct writing *writing, struct error *err)
{
    struct stream *stream = writing->job->streams[writing->stream].stream;
    struct buf info = {0}, variable = {0};
    int code = 0;
    for (size_t i = 0; i < stream->n_events && !code; i++) {
        const struct stream_event *event = &stream->events[i];
        if (!is_instant(writing->job, stream, event))
            continue;
        info.len_bytes = variable.len_bytes = 0;
        code = stream_put_info(stream, event, &info, err);
        bool is_sample = sched_is_sample(stream, event), has_cpu = event->cpu != STREAM_NO_CPU;
        if (is_sample)
            sched_put_variable(stream, event, &variable);
        const char *on = variable.len_bytes ? variable.data : NULL;
        if (has_cpu)
            put_instant(writing, event, info.len_bytes ? info.data : "", on, cpus_pid(writing->stream), event->cpu);
        if (is_sample || !has_cpu)
            put_instant(writing, event, info.len_bytes ? info.data : "", on, tasks_pid(writing->stream), event->task);
    }
    writing->out->failed |= info.failed || variable.failed;
    buf_fini(&info);
    buf_fini(&variable);
    return code;
}

/* Whether any event can stand as an instant: most streams have none, and need not be gone through. */
static int put_stream(struct writing *writing, struct error *err)
{
    const struct stream *stream = writing->job->streams[writing->stream].stream;
    const struct schedule_sink sink = {.piece = take_piece, .context = writing};
    struct schedule sched = {0};
    int code = schedule_analyse(stream, &writing->job->window, NULL, &sched, err);
    code = code ? code : put_tracks(writing, &sched, err);
    schedule_close(&sched);
    code = code ? code : schedule_analyse(stream, &writing->job->window, &sink, &sched, err);
    schedule_close(&sched);
    return code ? code : put_instants(writing, err);
}

int sched_write_chrome(const struct sched_job *job, struct buf *out, struct error *err)
{
    struct writing writing = {.job = job, .out = out};
    int code = 0;
    if (strcmp(job->form, "csv") == 0)
        return error_set(err, ERR_USAGE, "trace events are JSON; --csv goes with the other reports");
    buf_printf(out, "{\"displayTimeUnit\": \"ns\", \"otherData\": ");
    sched_put_json_head(job, "chrome", out);
    buf_printf(out, "},\n\"traceEvents\": [");
    for (; writing.stream < job->n_streams && !code; writing.stream++)
        code = put_stream(&writing, err);
    buf_printf(out, "]}\n");
    return code;
}
