/* SPDX-License-Identifier: BSD-3-Clause */
/* Command-line options as a table: parsing, --help, the man page and the shell completion come from the same rows.
 * A tool declares one `static const struct option_row []` and one struct option_spec. */
#ifndef LOCUS_BASE_OPTIONS_H
#define LOCUS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "base/process.h" /* every main begins with it */

/* One option. names: all spellings with their dashes, separated by blanks ("-o --output"); multi-letter single-dash
 * names such as "-ds" are allowed. arg: name of the argument in help texts, NULL for a flag; "[=FILE]" for one that may
 * be left out and is only given after an equals sign.
 * help: one or more sentences; lines are wrapped by the printer; NULL hides the option from people.
 * A row whose names is NULL ends the table. */
struct option_row {
    int id; /* > 0, the tool's own enum, below OPTION_HELP */
    const char *names;
    const char *arg;
    const char *help;
};

/* Rows with ids from here on are options of HPCToolkit that mean nothing here. They are taken, and one line says so. */
enum { OPTION_UNUSED = 1000, OPTION_UNUSED_MAX = 64 };
struct option_unused {
    const struct option_row *rows[OPTION_UNUSED_MAX];
    size_t n;
};
struct option_spec;

/* Remembers that such an option was given; a second time changes nothing. */
void option_unused_add(struct option_unused *unused, const struct option_spec *spec, int id);

/* Prints "TOOL: no effect here: -nu, --disable-gprof" to standard error, the first name of each; nothing for none. */
void option_unused_say(const struct option_unused *unused, const char *tool);

/* The rows that every tool has; put OPTION_ROWS_STANDARD before the last row and let options_standard act on them. */
enum { OPTION_HELP = 100001, OPTION_VERSION, OPTION_HELP_MAN, OPTION_HELP_BASH, OPTION_HELP_ZSH };

#define OPTION_ROWS_STANDARD                                                                                           \
    {OPTION_HELP, "-h --help", NULL, "Print this help and exit."},                                                     \
        {OPTION_VERSION, "-V --version", NULL, "Print the version and exit."},                                         \
        {OPTION_HELP_MAN, "--help-man", NULL, NULL}, {OPTION_HELP_BASH, "--help-bash", NULL, NULL},                    \
    {                                                                                                                  \
        OPTION_HELP_ZSH, "--help-zsh", NULL, NULL                                                                      \
    }

/* What the shell offers for an argument or operand when its name alone does not tell. A row whose what is NULL ends the
 * table. */
enum option_choice_kind {
    CHOICE_WORDS, /* what: the words, separated by blanks */
    CHOICE_LINES, /* what: an option of the tool that prints them, one a line; the words of the command line follow */
    CHOICE_DIRECTORIES /* those that hold a file called what, or all where there is none */
};
enum { OPTIONS_THEMSELVES = -2 };
struct option_choice {
    int id;           /* of the option; 0: an operand; OPTIONS_THEMSELVES: bash asks the tool for its options */
    unsigned operand; /* which one, counted from 1; 0: all that have no row of their own */
    enum option_choice_kind kind;
    const char *what;
};

/* Row i of a table that becomes a section of the man page: a name, and sentences about it; false after the last one.
 * text [n_text] receives the sentences. */
typedef bool option_section_row(size_t i, const char **name, char *text, size_t n_text);

/* A section of the man page, and of --help where is_in_help. A section without title ends the table. */
struct option_section {
    const char *title;
    option_section_row *row;
    bool is_in_help;
};

/* A tool's command line. Paragraphs of description, examples and exit status are plain text, separated by blank
 * lines. stop_at_operand: the first operand ends the options (a launcher); otherwise they may be mixed. */
struct option_spec {
    const char *tool;        /* "hpcrun" */
    const char *summary;     /* one line, without the name: goes into NAME of the man page */
    const char *synopsis;    /* "[options] [--] COMMAND [ARG...]"; several lines allowed */
    const char *description; /* paragraphs; a line that begins with a blank is kept as it is */
    const struct option_row *rows;
    const char *examples;    /* indented command lines with a sentence each, may be NULL */
    const char *environment; /* "NAME  sentence" lines, may be NULL */
    const char *exit_status; /* sentences */
    const char *see_also;    /* "hpcprof(1), hpcquery(1)" */
    int stop_at_operand;
    const struct option_choice *choices;   /* may be NULL */
    const struct option_section *sections; /* may be NULL */
};

/* Progress of one parse; initialise with {0}. After OPTIONS_END the operands are argv[index..argc-1] (when options
 * and operands are mixed they have been moved to the end of argv, order kept). */
struct option_scan {
    int index;
    const char *value; /* the argument of the option just returned, borrowed from argv; NULL for a flag, or left out */
    int n_operands;    /* seen so far; after OPTIONS_END all of them */
};

enum { OPTIONS_END = 0, OPTIONS_BAD = -1 };

/* Returns the id of the next option, OPTIONS_END, or OPTIONS_BAD with *err filled (unknown option with the nearest
 * known name, missing argument). Accepts "-o X", "-oX" only for one-letter names, "--output X" and "--output=X";
 * "--" ends the options. argv[0] is the tool's name. */
int options_next(const struct option_spec *spec, struct option_scan *scan, int argc, char **argv, struct error *err);

/* Whether word, with or without "=VALUE", is an option of the table. */
bool options_is_known(const struct option_spec *spec, const char *word);

/* Does what the standard rows ask for: prints help, version or man page to out and returns true when id is one of
 * OPTION_ROWS_STANDARD; otherwise prints nothing and returns false. version: PACKAGE_VERSION. */
bool options_standard(const struct option_spec *spec, int id, const char *version, FILE *out);

/* Prints what went wrong to standard error, in one line of the form that all tools use: "TOOL: PATH: what went wrong:
 * system's reason". A full stop at the end is dropped, because some libraries write one; unprintable characters are
 * escaped. Returns 1, the exit status. */
int tool_error(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a wrong command line, which points to the help. Returns 2. */
int tool_usage(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The directory of the executable that runs, with a slash at its end, into path [n]; n is at least 1. "" when it is not
 * known. A path of n bytes or more loses its end, up to a slash. */
void tool_directory(char *path, size_t n);

/* Finds a file of the installation: beside the executable that runs, in folder (".libs/"), as it is built; in lib or
 * lib64 of its prefix; as far from it as file was in prefix, whose folder bin had it, if all was moved; or where it was
 * installed. path [n] is set; false: it is nowhere there. */
bool tool_find_part(const char *folder, const char *prefix, const char *file, char *path, size_t n);

/* Prints the --help text: synopsis, description, options, examples, environment, exit status. */
void options_print_help(const struct option_spec *spec, FILE *out);

/* Prints the man page in mdoc-free man(7) macros; version goes into the footer. */
void options_print_man(const struct option_spec *spec, const char *version, FILE *out);

#endif
