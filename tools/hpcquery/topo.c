/* SPDX-License-Identifier: BSD-3-Clause */
/* hpcquery topo: the CPUs of a machine by NUMA node and core, how busy each part was in recordings, and sessions, which
 * keep how recordings were looked at. */
#include <string.h>

#include "base/options.h"
#include "export/streams/sched-report.h"
#include "hpcquery.h"

/* Prints what is in out, or says why it is not there. */
static int finish(const struct settings *settings, int code, const struct buf *out, const struct error *err)
{
    return !code ? put_output(settings, out) : tool_error("hpcquery", "%s", err->text);
}

static struct sched_job job_of(const struct settings *settings)
{
    struct terminal terminal = terminal_get(settings);
    return (struct sched_job){.form = settings->form,
                              .cpus = settings->values[ASK_CPU],
                              .slices = settings->slices,
                              .columns = terminal.columns,
                              .unicode = terminal.unicode};
}

/* The topology of this machine, or of a file. */
static int print_machine(const struct settings *settings)
{
    char here[] = "this machine", *path = NULL;
    for (size_t i = 0; i < settings->n_stream_options; i++) {
        const struct stream_option *option = &settings->stream_options[i];
        if (option->what != ASK_TOPOLOGY)
            return tool_usage("hpcquery", "without a recording, topo takes --topology alone");
        path = (char *)option->value;
    }
    struct sched_job job = job_of(settings);
    struct stream_view view = {.view = TOPOLOGY_VIEW_NUMATREE, .path = path ? path : here};
    struct buf out = {0};
    struct error err = {0}, why = {0};
    if (sched_job_check(&job, &err) != 0)
        return tool_usage("hpcquery", "%s", err.text);
    int code = path ? topology_read(path, &view.topology, &err) : topology_read_here(&view.topology, &err);
    if (code == 0 && (code = brief_topology_make(&view.topology, &view.brief, &why)) != 0)
        (void)error_set(&err, code, "%s: %s", view.path, why.text);
    code = code ? code : topo_write_machine(&job, &view, &out, &err);
    int status = finish(settings, code, &out, &err);
    brief_topology_fini(&view.brief);
    topology_fini(&view.topology);
    buf_fini(&out);
    return status;
}

static int print_streams(const struct settings *settings, const struct kept_session *session,
                         const struct opened_streams *opened)
{
    struct sched_job job = job_of(settings);
    struct buf out = {0};
    struct error err = {0};
    job.streams = opened->all;
    job.n_streams = opened->n;
    job.views = &opened->views;
    job.time_form = streams_time_form(settings, opened);
    int status = streams_window(settings, opened, &job.window);
    if (!status && sched_job_check(&job, &err) != 0)
        status = tool_usage("hpcquery", "%s", err.text);
    int code = status ? 0 : streams_find(&job, &err);
    if (!status)
        status = finish(settings, code ? code : topo_write(&job, &out, &err), &out, &err);
    if (!status && settings->values[ASK_SAVE_SESSION])
        status = kept_save(settings, session, opened, &job.window);
    buf_fini(&out);
    return status ? status : opened->n_refused > 0;
}

/* session: where the words are from, NULL: the command line. */
static int run_streams(const struct settings *settings, const struct kept_session *session, char **words,
                       size_t n_words)
{
    struct opened_streams opened;
    int status = streams_open(settings, words, n_words, 1, NULL, false, &opened);
    status = status ? status : kept_apply(session, &opened);
    if (!status)
        status = print_streams(settings, session, &opened);
    streams_close(&opened);
    return status;
}

static int run_session(const struct settings *settings, const struct report_kind *kind)
{
    struct kept_session session;
    int status = kept_open(settings, kind->options, &session);
    if (!status)
        status = run_streams(&session.settings, &session, session.words, session.n_words);
    kept_close(&session);
    return status;
}

const struct report_kind topo_kind = {
    .name = "topo",
    .operands = "topo [options] [[STREAM-OPTIONS] STREAM...]",
    .summary = "the CPUs of a machine as a tree, and how busy each of them was in recordings",
    .manual = "topo prints the machine as a tree of NUMA nodes (NN), cores (C) and CPUs, and how busy each of them was "
              "in recordings of its scheduler, over all and in slices of time: which node worked more. Nodes and cores "
              "have hwloc's logical numbers, CPUs those of the operating system. Rows of packages (P), and of memory "
              "that CPUs have beside their own node, stand above the tree. Busy is the time in which a task other than "
              "the idle one ran, as a share of the time for which that is known. Without --topology the rows are CPUs "
              "alone; without a recording it prints the tree of FILE, or of this machine. A topology that cannot be "
              "read, or that has another number of CPUs than the recording, is left out with a message, and the exit "
              "status is 1.",
    .example = "topo --topology a.xml a.dat --topology b.xml b.dat --slices 4 --csv",
    .options = ASK_OF_STREAMS | ASK(CPU) | ASK(SLICES) | ASK(SESSION) | ASK(SAVE_SESSION) | ASK(CSV) | ASK(JSON),
};

int topo_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n_words)
{
    if (settings->values[ASK_SESSION])
        return n_words == 1 ? run_session(settings, kind)
                            : tool_usage("hpcquery", "--session goes without recordings: it has them");
    if (n_words == 1 && (settings->values[ASK_SAVE_SESSION] || settings->values[ASK_FROM] || settings->values[ASK_TO] ||
                         settings->slices))
        return tool_usage("hpcquery", "--save-session, --from, --to and --slices go with recordings");
    return n_words == 1 ? print_machine(settings) : run_streams(settings, NULL, words, n_words);
}
