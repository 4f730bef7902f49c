/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of hpcquery share: the options, and the way out. */
#ifndef LOCUS_TOOLS_HPCQUERY_H
#define LOCUS_TOOLS_HPCQUERY_H

#include "base/vec.h"
#include "frame/frame.h"
#include "streams/axis.h"
#include "streams/schedule.h"
#include "streams/topology.h"

/* An option of a stream, and how many operands came before it. */
enum stream_option_kind {
    STREAM_OPTION_COUPLEBREAK,
    STREAM_OPTION_TOPOLOGY,
    STREAM_OPTION_VIEW,
    STREAM_OPTION_OFFSET,
    STREAM_OPTION_BUFFER
};
struct stream_option {
    int kind;
    const char *value; /* NULL of a flag */
    size_t operand;
};

/* The command line without its operands. */
struct settings {
    const char *form, *metric; /* form: "text", "csv", "json", "html" */
    const char *subject;       /* of annotate; NULL: none */
    const char *variable;      /* of cpus; NULL: all */
    const char *by;            /* NULL: not given */
    const char *profiles;      /* a condition; NULL: all */
    const char *tree;          /* "code", "data", "both"; NULL: not given */
    const char *output;        /* a file; NULL: standard output */
    const char **metrics;      /* [n_metrics] all that were given; metric is the last one */
    size_t n_metrics, cap_metrics;
    const char **derived; /* [n_derived] "name = expression" */
    size_t n_derived, cap_derived;
    struct stream_option *stream_options; /* [n_stream_options] */
    size_t n_stream_options, cap_stream_options;
    const char *from, *to, *tasks, *cpus, *events; /* of streams; NULL: not given */
    const char *session, *save_session;            /* files; NULL: not given */
    size_t slices;                                 /* 0: not given */
    const char *report_option;                     /* one that only reports know was given; NULL: none */
    long top;                                      /* -1: not given */
    double min_percent;                            /* below 0: not given */
    bool by_time, with_unused, with_paths, with_fields, with_instructions, at_mark, is_verbose, lists_metrics,
        increases, beyond_noise;
};

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

/* Compares two inputs. Returns the exit status: 3 for differences beyond the threshold. */
int diff_run(const struct settings *settings, char **words, size_t n_words);

/* Prints the logs of samples in a measurement directory. Returns the exit status. */
int events_run(const struct settings *settings, const char *directory);

/* Streams, opened and on one axis, and their topologies by their places. All zero is none. */
struct opened_streams {
    struct axis_stream *all; /* [n] */
    size_t n;
    struct stream_views views;
    size_t n_refused; /* topologies, after a message: their streams have none */
};

/* Notes an option of a stream that comes behind n_operands operands; false when out of memory. */
bool streams_take_option(struct settings *settings, int kind, const char *value, int n_operands);

/* Opens the streams words[first .. n_words - 1] as their options say; namer: as in struct stream_options. Returns the
 * exit status; streams_close frees what there is after a failure as well. */
int streams_open(const struct settings *settings, char *const *words, size_t n_words, size_t first,
                 const struct stream_namer *namer, struct opened_streams *opened);
void streams_close(struct opened_streams *opened);

/* The window of --from and --to. Returns the exit status. */
int streams_window(const struct settings *settings, const struct opened_streams *opened,
                   struct schedule_window *window);

struct sched_job;

/* Checks that the recordings have something of each of the job's lists and of its window; an empty table would not say
 * what is wrong.  err: ERR_NOT_FOUND, with what they have instead */
int streams_find(const struct sched_job *job, struct error *err);

/* Reports of scheduling: words are sched, a report or none, and streams. Returns the exit status. */
int sched_run(const struct settings *settings, char **words, size_t n_words);

/* Topologies, of recordings with how busy their parts were: words are topo, and streams or none. Returns the exit
 * status. */
int topo_run(const struct settings *settings, char **words, size_t n_words);

/* Section of the man page: the reports of sched. */
bool sched_describe(size_t i, const char **name, char *text, size_t n_text);

/* Runs a chain of operations: words [n_words] are steps separated by ":" and then inputs. Returns the exit status. */
int chain_run(const struct settings *settings, char **words, size_t n_words);

/* Writes one input in a form. Returns the exit status. */
int chain_export(const struct settings *settings, const char *form, char *input);

#endif
