/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: a database is opened once and asked for reports, those of hpcquery, whose answers are tables. What is asked
 * is a request; the words of an error are hpcquery's. Ordinary code; a session, its answers and its frames are used by
 * one thread at a time. All that crosses the library is opaque or begins with its size.
 *
 * The room: session.c may call all others; request.c has what a request may say; face.h is for our own tools. */
#ifndef LOCUS_SESSION_SESSION_H
#define LOCUS_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct session;
struct answer;
struct table;
struct frame;

/* What is asked; all but size and report may be zero. Options that a report does not use are refused. */
struct request {
    size_t size;                /* sizeof(struct request): what a caller does not know is as if zero */
    const char *report;         /* "vars" */
    const char *subject;        /* annotate: the file or function; others: the variable, NULL: all */
    const char *metric;         /* NULL: latency where the hardware reported it, else the first with data addresses */
    const char *by;             /* what rows are split by: "thread"; NULL: not */
    const char *order;          /* "time": by all time; NULL or "memory": by the time that waits for memory */
    const char *const *derived; /* [n_derived] columns "NAME = EXPRESSION" */
    size_t n_derived;
    uint64_t top;   /* the largest rows, 0: all */
    double least;   /* if has_least: percent of the total, 0 to 100, below which rows are left out */
    bool has_least; /* else as the report likes: most have all rows */
    bool with_paths, with_fields, with_unused; /* hpcquery's --paths, --fields and -a */
    bool with_instructions, at_mark;           /* --instructions and --mark */
    const char *tree;                          /* nodes: "code", "data" or, as NULL, "both" */
    /* What viewers ask of time lines: nanoseconds since the first event; all of it where they are not said. */
    int64_t from_ns, to_ns, at_ns;
    bool has_from, has_to, has_at;
    uint64_t width;       /* pixels of a picture */
    const uint64_t *rows; /* [n_rows] numbers of those that are wanted; n_rows 0: all */
    size_t n_rows;
    uint64_t row, start, count;     /* a row; of a list, the first item and how many */
    const char *task, *cpu, *event; /* lists as hpcquery's --task, --cpu and --event take them */
    uint64_t stream;                /* a recording by its number, of which from now on ... */
    const char *couplebreak;        /* ... couplebreak is "on" or "off", NULL: as it was ... */
    const char *topology;           /* ... and the topology is "own", "given", "given:FILE", which replaces the given
                                     * one, or "none", NULL: as it was */
    bool beyond_noise;              /* of runs, regression: only what changed by more than runs that are alike differ */
    const char *profiles;           /* vars, functions, lines, annotate, nodes: only the threads for which this is true
                                     * of rank, process and thread, as frame_choose takes it; NULL: all */
    const char *find;               /* events: of count events the first and the last one that have this text */
};

/* Opens the database in a directory, of which there is one: n_paths is 1. *session is the caller's.
 * err: ERR_NOT_FOUND, ERR_IO, ERR_FORMAT (file, offset, reason), ERR_UNSUPPORTED, ERR_MEMORY */
int session_open(const char *const *paths, size_t n_paths, struct session **session, struct error *err);

/* As session_open, of one path, also what other tools wrote and frames can read: callgrind, Caliper, databases of
 * HPCToolkit. Such a session answers what is about code, and of what viewers ask the nodes, sources and what it is; all
 * else is ERR_UNSUPPORTED.  err: as session_open and frame_open */
int session_open_any(const char *path, struct session **session, struct error *err);

/* Frees it; answers are freed before. NULL is allowed. */
void session_close(struct session *session);

/* The name of report i, in the order of the manual, and in one line what it says; NULL behind the last one. */
const char *session_report(size_t i);
const char *session_report_summary(size_t i);

/* Key i of a request as JSON (session_ask_json), but for "report", and whether a report takes it; and the i-th word
 * that its key "by" takes. Reports and keys by their numbers; NULL and false behind the last one. */
const char *session_key(size_t i);
bool session_report_takes(size_t report, size_t key);
const char *session_report_by(size_t report, size_t i);

/* The name of metric i that can be asked for, and a note on the measurement; NULL behind the last one. */
const char *session_metric(const struct session *session, size_t i);
const char *session_note(const struct session *session, size_t i);

/* Answers a request. *answer is the caller's, who frees it before the session.
 * err: ERR_USAGE (what a report does not take), ERR_NOT_FOUND (metric, variable, function: which ones there are),
 * ERR_UNSUPPORTED, ERR_IO, ERR_FORMAT, ERR_MEMORY */
int session_ask(struct session *session, const struct request *request, struct answer **answer, struct error *err);

/* The same as texts: the request is a JSON object whose keys are "report", "subject" and hpcquery's long options
 * without dashes ("metric", "by", "order", "variable", "derive": texts or a list of them, "top", "min", "paths",
 * "fields", "all", "instructions", "mark", "profiles"), and *text, malloc'ed, what hpcquery --json prints. Viewers ask
 * beside reports "session" (what the database is, and what can be asked), "nodes" (of its trees; "tree": code, data or
 * both; below "min" percent they are folded), "source" (the copy of a file, around the lines with values if it is long;
 * "all": all of it) and "trust" (what became of the samples); and of recordings of the scheduler "streams" (the rows of
 * their time line), "timeline" (a picture of rows), "window", "stay", "events" and
 * "file" (a window as a file; "subject": trace-dat or chrome), whose times are nanoseconds since the first event. err:
 * ERR_FORMAT (no JSON), ERR_USAGE also for keys that there are not */
int session_ask_json(struct session *session, const char *request, char **text, struct error *err);

/* The same as hpcquery prints it for a terminal of so many columns, without colors; *text, malloc'ed.  err: as
 * session_ask */
int session_ask_text(struct session *session, const struct request *request, unsigned columns, char **text,
                     struct error *err);

/* Answers a report about several inputs [n_paths], each of them a run: "list" (what they were), "functions" (statistics
 * over the runs of each group), "scaling" and "regression", as hpcquery runs does. Of the request report, metric, top,
 * least, by (the key of what groups have in common, or of the number of workers), with_unused and subject (regression:
 * the path of the run that others are compared with; NULL: the first) and beyond_noise are used. *answer is the
 * caller's. err: ERR_USAGE, ERR_NOT_FOUND (metric, key, run), and as session_open and frame_open */
int session_ask_runs(const char *const *paths, size_t n_paths, const struct request *request, struct answer **answer,
                     struct error *err);

/* The name of report i about runs, and in one line what it says; NULL behind the last one. */
const char *session_runs_report(size_t i);
const char *session_runs_summary(size_t i);

/* Answers what a state (answer/state.h) shows, "view=annotate&active=line:cg.c:52": the report that is its view, about
 * what stands for its active thing there.  err: as session_ask; ERR_USAGE (what is wrong in the text), ERR_NOT_FOUND
 * (the thing, or why the view cannot show it), ERR_UNSUPPORTED (it has steps of a trail) */
int session_ask_state(struct session *session, const char *state, struct answer **answer, struct error *err);

/* The request that a state is, as session_ask_json takes it; *request is malloc'ed.  err: as session_ask_state */
int session_state_request(struct session *session, const char *state, char **request, struct error *err);

/* The command line that prints the same, "hpcquery annotate spmv app-database"; *line is malloc'ed.
 * err: as session_ask_state */
int session_state_line(struct session *session, const char *state, char **line, struct error *err);

/* Which trees of the database are in a frame: what is called, what is accessed (the same costs once more), both, or
 * both with the fields of variables as nodes. */
enum session_tree { SESSION_CODE, SESSION_DATA, SESSION_BOTH, SESSION_FIELDS };

/* The frame of the database. It is kept by the session, and *frame is one owner's more: frame_close ends that.
 * err: as frame_open */
int session_frame(struct session *session, enum session_tree tree, struct frame **frame, struct error *err);

/* --- frames in the forms of hpcquery --- */

/* The name of form i, "tree", "dot", "folded", and in one line what it is; NULL behind the last one. */
const char *print_form(size_t i);
const char *print_form_summary(size_t i);

/* How a frame is printed; all but size may be zero. */
struct print_job {
    size_t size;              /* sizeof(struct print_job) */
    const char *column;       /* that the form shows, or sorts by; NULL: the default one */
    const char *const *named; /* [n_named] columns that a table has beside it; with column NULL: all */
    size_t n_named;
    const uint32_t *profiles; /* [n_profiles] in ascending order; NULL: all */
    size_t n_profiles;
    uint64_t top;             /* rows at most; 0: all */
    double least;             /* if has_least: percent of the total below which nodes are left out */
    bool has_least;           /* else as the form likes */
    const char *title, *path; /* of a page or file; of the input, for its sources. NULL: none */
    bool color, unicode;      /* escape sequences; characters beyond ASCII */
    unsigned columns;         /* of the terminal; 0: 120 */
    uint32_t depth;           /* levels of a tree at most; 0: all */
};

/* Prints a frame in a form. *text, malloc'ed, has *len_bytes bytes and a NUL behind them.
 * err: ERR_NOT_FOUND (the form, or a column), ERR_UNSUPPORTED (a graph where the form needs a tree), ERR_MEMORY, and as
 * frame_values */
int print_frame(struct frame *frame, const char *form, const struct print_job *job, char **text, size_t *len_bytes,
                struct error *err);

/* --- answers --- */

/* What an answer is about: the program, the metric (NULL: none), and what its rows are ("variables"). */
const char *answer_program(const struct answer *answer);
const char *answer_metric(const struct answer *answer);
const char *answer_name(const struct answer *answer);

/* Its rows; the one row of what is true of all of it, such as totals, a table without rows where there is nothing; and
 * how many rows were left out because the request said so, as far as the report counts them. */
const struct table *answer_rows(const struct answer *answer);
const struct table *answer_head(const struct answer *answer);
uint64_t answer_n_left(const struct answer *answer);

/* NULL is allowed. */
void answer_free(struct answer *answer);

#ifdef __cplusplus
}
#endif

#endif
