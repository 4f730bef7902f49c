/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of hpcquery share: the options, and the way out. */
#ifndef LOCUS_TOOLS_HPCQUERY_H
#define LOCUS_TOOLS_HPCQUERY_H

#include "base/vec.h"
#include "frame/frame.h"

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
    const char *report_option; /* one that only reports know was given; NULL: none */
    long top;                  /* -1: not given */
    double min_percent;        /* below 0: not given */
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

/* Runs a chain of operations: words [n_words] are steps separated by ":" and then inputs. Returns the exit status. */
int chain_run(const struct settings *settings, char **words, size_t n_words);

/* Writes one input in a form. Returns the exit status. */
int chain_export(const struct settings *settings, const char *form, char *input);

#endif
