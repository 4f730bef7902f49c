/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports about what tasks and CPUs of streams did. The streams are on one axis. Each view begins with the streams,
 * their clocks, and what their recordings can know. Ordinary code. */
#ifndef LOCUS_EXPORT_STREAMS_SCHED_REPORT_H
#define LOCUS_EXPORT_STREAMS_SCHED_REPORT_H

#include "base/error.h"
#include "base/vec.h"
#include "streams/axis.h"
#include "streams/schedule.h"
#include "streams/topology.h"
#include "table/table.h"

/* A place among the events of all streams; what is looked for lies behind it, or before. */
struct sched_place {
    bool is_before;
    bool is_event; /* event number index of the stream; else a time */
    size_t stream, index;
    int64_t from_ns, to_ns; /* all times that are meant */
};

/* What the user asked for. */
struct sched_job {
    const struct axis_stream *streams; /* [n_streams] */
    size_t n_streams;
    const struct stream_views *views; /* of the streams by their place */
    const char *form;                 /* "text", "csv", "json" */
    struct schedule_window window;    /* on the axis, inclusive */
    /* Lists separated by commas, NULL: all. Tasks: numbers or names, which may have * and ?; CPUs: numbers and ranges;
     * events: names with or without their system, which may have * and ?. */
    const char *tasks, *cpus, *events;
    const char *find; /* what events have in their task, name or info, in capital letters or small ones; NULL: all */
    const struct sched_place *place; /* from where on events are looked for, NULL: from the beginning */
    bool with_lines;                 /* events: their lines as KernelShark dumps them */
    size_t top;                      /* rows at most; 0: all */
    size_t slices; /* of time; 0: as many as fit in text, else one (topologies) or a hundred (time lines) */
    unsigned columns;
    bool unicode;
    enum time_form time_form; /* in text */
};

/* The names of a measurement's variables and functions as its reports have them. */
struct sched_names;

/* Those of no measurement as yet: it is loaded when a stream asks for names. NULL when out of memory; the caller frees
 * it. */
struct sched_names *sched_names_new(void);

/* Frees them; NULL is allowed. */
void sched_names_free(struct sched_names *names);

/* What streams ask; names must live as long. */
struct stream_namer sched_namer(struct sched_names *names);

enum sched_report_flag {
    SCHED_NAMES = 1,    /* it shows those of samples: their streams are opened with a namer */
    SCHED_ALL_ROWS = 2, /* in text, too, unless --top says otherwise */
    SCHED_NO_GAPS = 4,  /* it cannot say what a recording does not know */
    SCHED_PART = 8      /* with a window, it asks for nothing outside but what it finds by its time */
};

struct sched_report {
    const char *name, *summary;
    /* Appends the report.  err: ERR_MEMORY, ERR_USAGE (a form that it has not), ERR_FORMAT (a library has failed on the
     * file) */
    int (*write)(const struct sched_job *job, struct buf *out, struct error *err);
    unsigned flags;   /* of enum sched_report_flag */
    uint64_t options; /* set of enum ask (answer/answer.h): those that it uses beside those of streams and forms */
};

/* The report with a name, NULL: none; the one at index i, NULL behind the last. */
const struct sched_report *sched_report_find(const char *name);
const struct sched_report *sched_report_at(size_t i);

/* Checks lists of tasks, CPUs and events.  err: ERR_USAGE */
int sched_job_check(const struct sched_job *job, struct error *err);

/* Appends how busy the parts of the machines of all streams were; as sched_report.write. */
int topo_write(const struct sched_job *job, struct buf *out, struct error *err);

/* Appends the tree of a machine, without a stream. */
int topo_write_machine(const struct sched_job *job, const struct stream_view *view, struct buf *out, struct error *err);

/* --- private part: what the files of the reports share --- */

/* Whether a task, CPU or event is among those that are wanted. */
bool sched_wants_task(const struct sched_job *job, const struct stream *stream, int32_t task);
bool sched_wants_cpu(const struct sched_job *job, uint16_t cpu);
bool sched_wants_event(const struct sched_job *job, const char *name);

/* The first time and the last one of all streams; false when there are no events. */
bool sched_extent(const struct sched_job *job, int64_t *from_ns, int64_t *to_ns);

/* Appends the head of a view in text. */
void sched_put_head(const struct sched_job *job, struct buf *out);

/* Appends head and table in the form of the job; name: of the report. */
void sched_put_table(const struct sched_job *job, const char *name, const struct table *table, struct buf *out);

/* Appends "{"report": NAME, "streams": [...]", which the caller goes on with. */
void sched_put_json_head(const struct sched_job *job, const char *name, struct buf *out);

/* The cells that rows of all tables begin with: stream, clock, tier. SCHED_STREAM_COLUMNS are their columns. */
void sched_put_stream(struct table *table, const struct sched_job *job, size_t i);
#define SCHED_STREAM_COLUMNS                                                                                           \
    {"stream", NULL, CELL_COUNT}, {"clock", NULL, CELL_TEXT},                                                          \
    {                                                                                                                  \
        "tier", NULL, CELL_TEXT                                                                                        \
    }

/* Stands for no time: a task then has all of its names. */
#define SCHED_ALL_TIMES INT64_MIN

/* The same of a task, with the name that it has at a time; SCHED_TASK_COLUMNS are its columns. */
void sched_put_task_cells(struct table *table, const struct sched_job *job, size_t i, int32_t task, int64_t t_ns);
#define SCHED_TASK_COLUMNS                                                                                             \
    {"name", "task", CELL_TEXT}, SCHED_STREAM_COLUMNS, {"comm", NULL, CELL_TEXT}, {"tid", NULL, CELL_COUNT},           \
    {                                                                                                                  \
        "pid", NULL, CELL_COUNT                                                                                        \
    }

/* Ends a report that is a table: appends it unless code says that it failed. Returns code, or ERR_MEMORY. */
int sched_finish_table(const struct sched_job *job, const char *name, struct table *table, struct buf *out, int code,
                       struct error *err);

/* "comm:tid" of a task at a time, in text; with several streams with the number of its stream. */
void sched_put_task(const struct sched_job *job, size_t i, int32_t task, int64_t t_ns, struct buf *out);

/* Its name at a time; of SCHED_ALL_TIMES the last one. */
const char *sched_comm(const struct stream *stream, int32_t task, int64_t t_ns);

/* Which CPUs of a stream are shown, in the order of its rows: *cpus [*n], malloc'ed.  err: ERR_MEMORY */
int sched_cpu_rows(const struct sched_job *job, size_t i, const struct schedule *sched, uint32_t **cpus, size_t *n,
                   struct error *err);

/* What can be told of the runs of tasks: when they come and leave. */
bool sched_knows_runs(const struct stream *stream);

/* Whether an event is a sample of a measurement; and what such a sample is on, in the words of all reports: its
 * variable or, without one, its class as "<class>"; nothing where its fields cannot be read. */
bool sched_is_sample(const struct stream *stream, const struct stream_event *event);
void sched_put_variable(const struct stream *stream, const struct stream_event *event, struct buf *out);

/* The reports that have files of their own; as sched_report.write. */
int sched_write_events(const struct sched_job *job, struct buf *out, struct error *err);
int sched_write_timeline(const struct sched_job *job, struct buf *out, struct error *err);
int sched_write_chrome(const struct sched_job *job, struct buf *out, struct error *err);
int sched_write_samples(const struct sched_job *job, struct buf *out, struct error *err);
int sched_write_variables(const struct sched_job *job, struct buf *out, struct error *err);
int sched_write_paths(const struct sched_job *job, struct buf *out, struct error *err);
int sched_write_trace_dat(const struct sched_job *job, struct buf *out, struct error *err);

#endif
