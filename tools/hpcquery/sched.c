/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery sched: what tasks and CPUs did, from recordings of the kernel's scheduler. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "base/spelling.h"
#include "export/streams/sched-report.h"
#include "hpcquery.h"

enum { TOP_IN_TEXT = 40 };

/* A trace.dat cannot say which tasks it does not know. */
static void warn_of_tier(const struct settings *settings, const struct sched_report *report,
                         const struct stream *stream)
{
    const uint64_t chosen = ASK(TASK) | ASK(CPU) | ASK(EVENT) | ASK(FILTER);
    if (report->flags & SCHED_NO_GAPS && settings->given & chosen)
        (void)tool_error("hpcquery",
                         "%s: warning: what was chosen is written alone; readers of trace.dat cannot learn "
                         "that, and take what is missing for rest",
                         stream->path);
    if ((report->flags & SCHED_NO_GAPS) && (stream->tier == STREAM_TIER_PROGRAM || stream->tier == STREAM_TIER_OWN))
        (void)tool_error("hpcquery", "%s: warning: knows only %s; readers of trace.dat cannot learn that", stream->path,
                         stream_tier_name(stream->tier));
}

/* What of the options beside those of streams and forms the report uses. */
static int check_options(const struct settings *settings, const struct sched_report *report)
{
    const uint64_t common = ASK_OF_STREAMS | ASK(SESSION) | ASK(SAVE_SESSION) | ASK(CSV) | ASK(JSON) | ASK(OUTPUT);
    for (int what = 1; what < ASKS; what++)
        if (settings->given >> what & 1 && !((common | report->options) >> what & 1)) {
            const char *name = option_name((enum ask)what);
            return tool_usage("hpcquery", "sched %s has no %.*s", report->name, (int)strcspn(name, " ="), name);
        }
    return 0;
}

static struct sched_job job_of(const struct settings *settings, const struct sched_report *report,
                               const struct opened_streams *opened)
{
    struct terminal terminal = terminal_get(settings);
    bool is_text = strcmp(settings->form, "text") == 0;
    bool is_search = settings_ask(settings, ASK_NEXT) || settings_ask(settings, ASK_PREVIOUS);
    return (struct sched_job){.streams = opened->all,
                              .n_streams = opened->n,
                              .views = &opened->views,
                              .form = settings->form,
                              .tasks = settings->values[ASK_TASK],
                              .cpus = settings->values[ASK_CPU],
                              .events = settings->values[ASK_EVENT],
                              .find = settings->values[ASK_FIND],
                              .with_lines = settings_ask(settings, ASK_LINES),
                              .time_form = streams_time_form(settings, opened),
                              .slices = settings->slices,
                              .top = settings->top >= 0                             ? (size_t)settings->top
                                     : is_search                                    ? 1
                                     : is_text && !(report->flags & SCHED_ALL_ROWS) ? TOP_IN_TEXT
                                                                                    : 0,
                              .columns = terminal.columns,
                              .unicode = terminal.unicode};
}

static int print_report(const struct settings *settings, const struct sched_report *report,
                        const struct kept_session *session, const struct opened_streams *opened)
{
    struct sched_job job = job_of(settings, report, opened);
    struct sched_place place;
    struct buf out = {0};
    struct error err = {0};
    int status = streams_window(settings, opened, &job.window);
    if (!status && (settings->values[ASK_NEXT] || settings->values[ASK_PREVIOUS])) {
        job.place = &place;
        status = streams_place(settings, opened, &place);
    }
    status = status ? status : kept_apply(session, opened);
    status = status ? status : streams_filter(settings, opened);
    if (status)
        return status;
    int code = sched_job_check(&job, &err);
    code = code ? code : streams_find(&job, &err);
    code = code ? code : report->write(&job, &out, &err);
    if (!code)
        warn_of_tier(settings, report, opened->all[0].stream);
    status = !code               ? put_output(settings, &out)
             : code == ERR_USAGE ? tool_usage("hpcquery", "%s", err.text)
                                 : tool_error("hpcquery", "%s", err.text);
    if (!status && settings->values[ASK_SAVE_SESSION])
        status = kept_save(settings, session, opened, &job.window);
    buf_fini(&out);
    return status;
}

/* The first of several words names neither a report nor a file. */
static int no_such_report(const char *word)
{
    const char *names[32];
    size_t n = 0;
    struct buf text = {0};
    for (const struct sched_report *report; n < 32 && (report = sched_report_at(n)); n++)
        names[n] = report->name;
    spelling_suggest(&text, word, names, n);
    int status = tool_usage("hpcquery", "there is no report '%s' of recordings, and no such file%s", word,
                            text.data && !text.failed ? text.data : "");
    buf_fini(&text);
    return status;
}

const struct report_kind sched_kind = {
    .name = "sched",
    .operands = "sched [REPORT] [options] [STREAM-OPTIONS] STREAM...",
    .summary = "what tasks and CPUs did, from recordings of the kernel's scheduler",
    .manual = "sched prints what tasks and CPUs did, from recordings of the kernel's scheduler: files of trace-cmd "
              "(trace.dat) and of perf (perf.data, with tracepoints or with the records of perf record "
              "--switch-events), and measurements with logs of samples. The report is tasks unless another one is "
              "named. Several recordings stand on one axis of time, and the head of each report says how they got "
              "there, and what a recording can know: what it cannot know is \"-\", nothing in CSV and null in JSON, "
              "never zero. --couplebreak, --topology, --view, --offset and --buffer are about the stream that follows "
              "them.",
    .example = "sched latencies --task 'app*' --from +1.5 perf.data",
    .options = ASK_OF_STREAMS | ASK(TASK) | ASK(CPU) | ASK(EVENT) | ASK(TOP) | ASK(SLICES) | ASK(FILTER) | ASK(FIND) |
               ASK(NEXT) | ASK(PREVIOUS) | ASK(LINES) | ASK(SESSION) | ASK(SAVE_SESSION) | ASK(CSV) | ASK(JSON),
};

/* session: where the words are from, NULL: the command line. first: of the recordings among them. */
static int run_report(const struct settings *settings, const struct sched_report *report,
                      const struct kept_session *session, char **words, size_t n_words, size_t first)
{
    struct opened_streams opened;
    struct sched_names *names = report->flags & SCHED_NAMES ? sched_names_new() : NULL;
    const struct stream_namer namer = sched_namer(names);
    const uint64_t whole = ASK(FILTER) | ASK(NEXT) | ASK(PREVIOUS) | ASK(SESSION) | ASK(SAVE_SESSION);
    bool may_be_parts = report->flags & SCHED_PART && !(settings->given & whole) && !session;
    int status = streams_open(settings, words, n_words, first, names ? &namer : NULL, may_be_parts, &opened);
    if (!status)
        status = print_report(settings, report, session, &opened);
    if (!status)
        status = opened.n_refused > 0;
    streams_close(&opened);
    sched_names_free(names);
    return status;
}

static int run_session(const struct settings *settings, const struct sched_report *report)
{
    struct kept_session session;
    int status = kept_open(settings, ASK_OF_STREAMS | report->options, &session);
    if (!status)
        status = run_report(&session.settings, report, &session, session.words, session.n_words, 1);
    kept_close(&session);
    return status;
}

int sched_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n_words)
{
    (void)kind;
    const struct sched_report *report = n_words > 1 ? sched_report_find(words[1]) : NULL;
    size_t first = report ? 2 : 1;
    bool has_session = settings_ask(settings, ASK_SESSION);
    if (n_words <= first && !has_session)
        return tool_usage("hpcquery", "give a recording after sched%s%s", report ? " " : "",
                          report ? report->name : "");
    if (!report && n_words > 2 && !strchr(words[1], '/') && access(words[1], F_OK) != 0)
        return no_such_report(words[1]);
    if (has_session && n_words > first)
        return tool_usage("hpcquery", "--session goes without recordings: it has them");
    report = report ? report : sched_report_at(0);
    int status = check_options(settings, report);
    if (status)
        return status;
    return has_session ? run_session(settings, report) : run_report(settings, report, NULL, words, n_words, first);
}

bool sched_describe(size_t i, const char **name, char *text, size_t n_text)
{
    const struct sched_report *report = sched_report_at(i);
    if (!report)
        return false;
    *name = report->name;
    (void)snprintf(text, n_text, "sched %s: %s.", report->name, report->summary);
    return true;
}
