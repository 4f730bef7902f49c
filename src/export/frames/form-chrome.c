/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace events, for Perfetto and chrome://tracing: a track for each profile, on which call paths lie one after the
 * other on an axis of costs. A second is a second; what is no time counts as microseconds. All ends are whole
 * nanoseconds, rounded in the same way, so that events nest exactly. Source: "Trace Event Format",
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: complete events and metadata. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/frames/stacks.h"
#include "fmt/json.h"

extern const struct frame_form form_chrome;

struct writing {
    const struct frame_job *job;
    struct stacks stacks;
    double ns_per_cost;
    bool has_event;
    struct buf *out;
    struct buf text;
};

/* A text that may hold any bytes. */
static void put_text(struct writing *writing, const char *text)
{
    writing->text.len_bytes = 0;
    stacks_put_name(&writing->text, text);
    json_put_text(writing->out, writing->text.data ? writing->text.data : "");
}

static void begin_event(struct writing *writing)
{
    buf_printf(writing->out, "%s\n{\"name\": ", writing->has_event ? "," : "");
    writing->has_event = true;
}

/* Nanoseconds as microseconds. */
static void put_time(struct writing *writing, const char *key, double ns)
{
    uint64_t whole = ns < 9e18 ? (uint64_t)ns : UINT64_C(9000000000000000000);
    buf_printf(writing->out, ", \"%s\": %" PRIu64 ".%03u", key, whole / 1000, (unsigned)(whole % 1000));
}

/* What a process or thread is called. */
static void put_metadata(struct writing *writing, const char *what, int64_t pid, size_t tid, const char *name)
{
    begin_event(writing);
    buf_printf(writing->out, "\"%s\", \"ph\": \"M\", \"pid\": %" PRId64 ", \"tid\": %zu, \"args\": {\"name\": ", what,
               pid, tid);
    put_text(writing, name);
    buf_printf(writing->out, "}}");
}

static void put_span(struct writing *writing, const struct stack_span *span, int64_t pid, size_t tid)
{
    const struct frame *frame = writing->job->frame;
    uint32_t node = writing->stacks.items[span->item].node;
    double start = rint(span->start * writing->ns_per_cost), end = rint(span->end * writing->ns_per_cost);
    begin_event(writing);
    put_text(writing, frame_name(frame, node));
    buf_printf(writing->out, ", \"cat\": \"%s\", \"ph\": \"X\"", frame_kind_name(frame_kind(frame, node)));
    put_time(writing, "ts", start);
    put_time(writing, "dur", end - start);
    buf_printf(writing->out, ", \"pid\": %" PRId64 ", \"tid\": %zu", pid, tid);
    if (*frame_file(frame, node)) {
        buf_printf(writing->out, ", \"args\": {\"file\": ");
        put_text(writing, frame_file(frame, node));
        buf_printf(writing->out, ", \"line\": %" PRIu32 "}", frame_line(frame, node));
    }
    buf_append(writing->out, "}", 1);
}

static int put_track(struct writing *writing, const struct stack_cost *costs, size_t n_costs, int64_t pid, size_t tid,
                     struct error *err)
{
    struct stack_span *spans;
    size_t n;
    int code = stacks_spans(&writing->stacks, costs, n_costs, &spans, &n, err);
    for (size_t i = 0; code == 0 && i < n; i++)
        put_span(writing, &spans[i], pid, tid);
    free(code == 0 ? spans : NULL);
    return code;
}

static int put_all(struct writing *writing, struct error *err)
{
    struct stack_cost *costs;
    size_t n;
    int code = stacks_costs(&writing->stacks, &costs, &n, err);
    if (code != 0)
        return code;
    put_metadata(writing, "process_name", 0, 1, writing->job->title ? writing->job->title : "");
    put_metadata(writing, "thread_name", 0, 1, frame_column_name(writing->job->frame, writing->job->column));
    code = put_track(writing, costs, n, 0, 1, err);
    free(costs);
    return code;
}

/* A track for each profile that has costs: threads of the processes that they say. */
static int put_each(struct writing *writing, const struct stack_cost *costs, const size_t *starts, struct error *err)
{
    const struct frame_job *job = writing->job;
    size_t n = job->view.profiles ? job->view.n_profiles : frame_n_profiles(job->frame);
    int64_t named = -1;
    int code = 0;
    for (size_t i = 0; code == 0 && i < n; i++) {
        uint32_t number = job->view.profiles ? job->view.profiles[i] : (uint32_t)i;
        const struct frame_profile *profile = frame_profile(job->frame, number);
        int64_t pid = profile->process >= 0 ? profile->process : profile->rank >= 0 ? profile->rank : 0;
        if (starts[i + 1] == starts[i])
            continue;
        if (named != pid)
            put_metadata(writing, "process_name", pid, number + 1, job->title ? job->title : "");
        named = pid;
        put_metadata(writing, "thread_name", pid, number + 1, profile->name);
        code = put_track(writing, costs + starts[i], starts[i + 1] - starts[i], pid, number + 1, err);
    }
    return code;
}

static double find_scale(const struct writing *writing)
{
    const char *column = frame_column_name(writing->job->frame, writing->job->column);
    return strcmp(stacks_unit(column, writing->stacks.is_whole), "seconds") == 0 ? 1e9 : 1e3;
}

static int write_chrome(const struct frame_job *job, struct buf *out, struct error *err)
{
    struct writing writing = {.job = job, .out = out};
    struct stack_cost *costs = NULL;
    size_t *starts = NULL;
    int code = stacks_make(job, &writing.stacks, err);
    if (code == 0) {
        writing.ns_per_cost = find_scale(&writing);
        code = stacks_costs_by_profile(job, &writing.stacks, &costs, &starts, err);
    }
    buf_printf(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    if (code == 0)
        code = costs ? put_each(&writing, costs, starts, err) : put_all(&writing, err);
    buf_printf(out, "]}\n");
    free(costs);
    free(starts);
    buf_fini(&writing.text);
    stacks_fini(&writing.stacks);
    return code;
}

const struct frame_form form_chrome = {
    .name = "chrome", .summary = "trace events, for Perfetto and chrome://tracing", .write = write_chrome};
