/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of the time line as a file of other tools, which a page hands to its user: the same bytes that hpcquery
 * sched writes. */
#include <inttypes.h>
#include <string.h>

#include "export/streams/sched-report.h"
#include "session/timeline.h"
#include "streams/stream.h"
#include "table/table.h"

/* What a page can hold beside all else that it has. */
enum { EVENTS_MOST = 1000000 };

static const struct file_form {
    const char *name, *media_type, *ending;
    bool of_one, is_session; /* it holds one recording; what was opened, and no events */
} forms[] = {
    {"trace-dat", "application/octet-stream", "dat", true, false},
    {"chrome", "application/json", "json", false, false},
    {"session", "application/json", "session", false, true},
};

static const struct column file_columns[] = {
    {"name", NULL, CELL_TEXT}, {"type", NULL, CELL_TEXT}, {"bytes", NULL, CELL_COUNT}, {"base64", NULL, CELL_TEXT}};

static const struct file_form *find_form(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}

/* Events of the window in the recordings of a job. */
static size_t count_events(const struct sched_job *job)
{
    size_t n = 0;
    for (size_t i = 0; i < job->n_streams; i++) {
        const struct stream *stream = job->streams[i].stream;
        size_t end = job->window.to_ns == INT64_MAX ? stream->n_events : stream_at(stream, job->window.to_ns + 1);
        n += end - stream_at(stream, job->window.from_ns);
    }
    return n;
}

static int write_file(const struct sched_job *job, const struct file_form *form, struct buf *out, struct error *err)
{
    const struct sched_report *report = sched_report_find(form->name);
    int code = sched_job_check(job, err);
    size_t n_events = code ? 0 : count_events(job);
    if (code == 0 && n_events > EVENTS_MOST)
        code = error_set(err, ERR_UNSUPPORTED,
                         "the window has %zu events, and a page writes %d at most: choose a shorter one, or write it "
                         "with hpcquery sched %s -o FILE",
                         n_events, EVENTS_MOST, form->name);
    code = code ? code : report->write(job, out, err);
    return code == 0 && out->failed ? error_memory(err) : code;
}

int time_make_file(struct timeline *timeline, const struct request *request, struct answer *answer, struct error *err)
{
    const struct file_form *form = find_form(request->subject);
    struct buf bytes = {0}, name = {0}, text = {0};
    struct sched_job job = {.form = "text", .tasks = request->task, .cpus = request->cpu, .events = request->event};
    if (!form)
        return error_set(err, ERR_USAGE, "a time line is written as trace-dat, chrome or session, not as %s",
                         request->subject);
    if (request->stream >= timeline->n_streams)
        return error_set(err, ERR_NOT_FOUND, "there is no recording %" PRIu64, request->stream);
    int code = timeline_window(timeline, request, &job.window.from_ns, &job.window.to_ns, err);
    size_t first = form->of_one ? request->stream : 0;
    job.streams = timeline->axis + first;
    job.n_streams = form->of_one ? 1 : timeline->n_streams;
    for (size_t i = 0; code == 0 && i < job.n_streams && !form->is_session; i++)
        code = timeline_load(timeline, first + i, err);
    if (code == 0)
        code = form->is_session ? timeline_put_session(timeline, &bytes, err) : write_file(&job, form, &bytes, err);
    answer_begin(answer, "file", COLUMNS(file_columns));
    if (code == 0) {
        buf_printf(&name, "time-line.%s", form->ending);
        table_put_made(&answer->rows, &name);
        table_put_borrowed(&answer->rows, form->media_type);
        table_put_count(&answer->rows, (int64_t)bytes.len_bytes);
        buf_put_base64(&text, bytes.data, bytes.len_bytes);
        table_put_made(&answer->rows, &text);
    }
    buf_fini(&bytes);
    return code;
}
