/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of hpcquery share: the options, and the way out. */
#ifndef LOCUS_TOOLS_HPCQUERY_H
#define LOCUS_TOOLS_HPCQUERY_H

#include "answer/answer.h"
#include "frame/frame.h"
#include "streams/axis.h"
#include "streams/recordings.h"
#include "streams/schedule.h"
#include "streams/topology.h"

/* An option of a stream, and how many operands came before it. */
struct stream_option {
    enum ask what;
    const char *value; /* NULL of a flag */
    size_t operand;
};

/* The command line without its operands. */
struct settings {
    uint64_t given;           /* enum ask, a bit for each that was given */
    const char *values[ASKS]; /* by enum ask: the last one; NULL: not given, or a flag */
    const char *form;         /* "text", "csv", "json", "html" */
    const char **metrics;     /* [n_metrics] all that were given */
    size_t n_metrics, cap_metrics;
    const char **derived; /* [n_derived] "name = expression" */
    size_t n_derived, cap_derived;
    struct stream_option *stream_options; /* [n_stream_options] */
    size_t n_stream_options, cap_stream_options;
    bool with_parts;    /* inputs are opened by frame_open_parts */
    size_t slices;      /* 0: not given */
    long top;           /* -1: not given */
    double min_percent; /* below 0: not given */
};

/* Whether an option was given. */
bool settings_ask(const struct settings *settings, enum ask what);

/* Does what a verb is asked; words [n_words] begin with it. Returns the exit status. */
typedef int verb_run(const struct settings *settings, const struct report_kind *kind, char **words, size_t n_words);

/* What the first word can be: a report on a database, or one of the kinds below. */
struct verb {
    const struct report_kind *kind;
    verb_run *run;
};

/* Verb i, reports first; false behind the last one. */
bool verb_at(size_t i, struct verb *verb);

/* All options; what their help says is true for every verb that has them. */
extern const struct option_row option_rows[];

enum { STATUS_DIFFERENT = 3 }; /* exit status of diff and of regressions that found something */

/* hpcquery.c's own files: what is no report on a database. The kind of operations and forms has no word for a name. */
extern const struct report_kind events_kind, sched_kind, topo_kind, export_kind, diff_kind, runs_kind, chain_kind;
verb_run report_run, events_run, sched_run, topo_run, export_run, diff_run, runs_run, chain_run;

/* Prints what a standard option (base/options.h) asks for, OPTION_HELP of one kind unless it is NULL. Returns the exit
 * status. */
int help_print(int id, const struct report_kind *kind);

/* Prints all words that can come first, one a line; returns 0. */
int help_list_verbs(void);

/* Prints the names of the options that a kind has, of all kinds for NULL, one a line; returns 0. */
int help_list_options(const struct report_kind *kind);

/* Prints the metrics of the first word that is a database, for the completion of the shell. Returns the exit status. */
int list_metrics(char **words);

/* Whether a name that is one of a report and of a form of frames means the report, of the input at path. */
bool report_is_meant(const struct settings *settings, const char *path);

/* Those of all streams, and of the one that follows. */
#define ASK_OF_STREAMS                                                                                                 \
    (ASK(COUPLEBREAK) | ASK(TOPOLOGY) | ASK(VIEW) | ASK(OFFSET) | ASK(BUFFER) | ASK(FROM) | ASK(TO) | ASK(NS))

/* The long name of an option, and what follows it in its row. */
const char *option_name(enum ask what);

/* What the terminal shows: colours, characters beyond ASCII, and its width. */
struct terminal {
    bool color, unicode;
    unsigned columns;
};

/* What the standard output can show, by the environment and the options. */
struct terminal terminal_get(const struct settings *settings);

/* Writes out to the file of -o, or to the standard output; returns the exit status. */
int put_output(const struct settings *settings, const struct buf *out);

/* Whether a word names an input that is there: a path, "-" for the standard input, or a descriptor, as shells write it
 * for <(command). */
bool input_is_there(const char *name);

#define INPUT_PATH_BYTES 32

/* The path by which an input of the second or third kind can be opened, of a file in memory where it comes through a
 * pipe; "" for other names. Returns the exit status. */
int input_path(const char *name, char path[INPUT_PATH_BYTES]);

/* Sections of the man page (base/options.h): the operations and the forms; and the words for all of them, printed one a
 * line. */
bool chain_describe_operation(size_t i, const char **name, char *text, size_t n_text);
bool chain_describe_form(size_t i, const char **name, char *text, size_t n_text);
void chain_list_steps(void);

/* Whether a word is the name of an operation or form. */
bool chain_knows(const char *word);

/* Opens an input, with the profiles that are wanted and the columns that are derived. *frame is the caller's, NULL
 * after a failure. Returns the exit status. */
int input_open_frame(const struct settings *settings, const char *path, struct frame **frame);

/* Streams, opened and on one axis, and their topologies by their places. All zero is none. */
struct opened_streams {
    struct axis_stream *all; /* [n] */
    size_t n;
    const char **buffers; /* [n] that were asked for, NULL: the top ones */
    struct stream_views views;
    bool may_be_parts; /* what lies outside the window need not be read */
    size_t n_refused;  /* topologies, after a message: their streams have none */
};

/* Notes an option of a stream that comes behind n_operands operands; false when out of memory. */
bool streams_take_option(struct settings *settings, enum ask what, const char *value, int n_operands);

/* Opens the streams words[first .. n_words - 1] as their options say; namer: as in struct stream_options. may_be_parts:
 * nobody asks for what lies outside of the window. Returns the exit status; streams_close frees what there is after a
 * failure as well. */
int streams_open(const struct settings *settings, char *const *words, size_t n_words, size_t first,
                 const struct stream_namer *namer, bool may_be_parts, struct opened_streams *opened);
void streams_close(struct opened_streams *opened);

/* How times stand in text: as the tool of the recordings prints them, or as --ns says. */
enum time_form streams_time_form(const struct settings *settings, const struct opened_streams *opened);

/* The window of --from and --to: events whose times stand in text as these are inside. Returns the exit status. */
int streams_window(const struct settings *settings, const struct opened_streams *opened,
                   struct schedule_window *window);

struct sched_job;
struct sched_place;

/* The place of --next or --previous: a time, #EVENT, or STREAM#EVENT. Returns the exit status. */
int streams_place(const struct settings *settings, const struct opened_streams *opened, struct sched_place *place);

/* Hides the events that do not fulfill the condition of --filter. Returns the exit status. */
int streams_filter(const struct settings *settings, const struct opened_streams *opened);

/* Checks that the recordings have something of each of the job's lists and of its window; an empty table would not say
 * what is wrong.  err: ERR_NOT_FOUND, with what they have instead */
int streams_find(const struct sched_job *job, struct error *err);

/* A session as a command line. */
struct kept_session {
    struct settings settings; /* those that were given, and the session's */
    char **words;             /* [n_words] from 1 on its streams */
    size_t n_words;
    struct recordings session;
    char (*texts)[32]; /* of times */
};

/* Reads the session of --session; uses: the options that the report has. Returns the exit status; kept_close frees
 * what there is after a failure as well. */
int kept_open(const struct settings *settings, uint64_t uses, struct kept_session *session);
void kept_close(struct kept_session *session);

/* Applies its filters to the streams, which have been opened; session NULL: there is none. Returns the exit status. */
int kept_apply(const struct kept_session *session, const struct opened_streams *opened);

/* Writes the session of --save-session: what is open, was asked for, and what the session before (NULL: none) had
 * beside. Returns the exit status. */
int kept_save(const struct settings *settings, const struct kept_session *before, const struct opened_streams *opened,
              const struct schedule_window *window);

/* Section of the man page: the reports of sched. */
bool sched_describe(size_t i, const char **name, char *text, size_t n_text);

/* Section of the man page: the reports of runs. */
bool runs_describe_report(size_t i, const char **name, char *text, size_t n_text);

/* Writes one input in a form. Returns the exit status. */
int chain_export(const struct settings *settings, const char *form, char *input);

#endif
